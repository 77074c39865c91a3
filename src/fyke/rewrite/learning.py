"""The rules that hold at a site, among those that may.

A rule *acts* on two URLs that it makes one, all other rules applied. URLs that become one are a group. The `support` of
a rule counts groups on which it acts and whose URLs all have one content. At most `MOST_OF_CONTENT` groups of the same
content count, so that an error page shown for anything, or an empty page, says next to nothing. `contradictions` counts
the pages that a rule would lose. A group on which it acts, and whose URLs have several contents, adds the number that
say different things (`likeness`), less the most that are one without the rule. If none is left, the group counts as
one, together with all such groups that say much the same. So a page that changes at every request counts once, however
many URLs it has, and a list of thirty pages about thirty times. A common URL that is no page, while others are, counts.

Candidates that fail alone go first. The others are tried together, because what varies with every link (session and
tracking) shows no group alone. Then the rule that takes the most contradictions with it goes, until few are left. One
half of the groups decides that. A rule is accepted if `LEAST_SUPPORT` contents support it, and its contradictions are
at most `MOST_CONTRADICTED` of its support. In each half they may be `PART_CONTRADICTED` of it and two, because pages
that change by themselves contradict all rules alike.

Invariant: accepted rules satisfy that bound on what was fetched, all applied together.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from fyke.core.rewrite_rules import Rule, Shape
from fyke.core.rewriting import Rewriter
from fyke.core.urls import key_of
from fyke.rewrite.likeness import Outline, different

LEAST_SUPPORT = 10  # contents
FEW_SUPPORT = 2  # contents; one may be chance
LEAST_HALF = 4  # of its contents, in each half
MOST_CONTRADICTED = 0.02
PART_CONTRADICTED = 0.05  # of the support in one half, plus two
MOST_OF_CONTENT = 4  # counted groups of a content


class Content(NamedTuple):
    """A URL that answered, its content (0 if it is no page), and the outline of its text, if read."""

    url: str
    content: int
    outline: Outline | None = None


class SameContents:
    """Numbers of contents; several may stand for the same one."""

    def __init__(self) -> None:
        self._leads: dict[int, int] = {}

    def first(self, content: int) -> int:
        """Return the number for all contents like `content`."""
        path = []
        while (further := self._leads.get(content, content)) != content:
            path.append(content)
            content = further
        self._leads.update(dict.fromkeys(path, content))
        return content

    def join(self, contents: Sequence[int]) -> None:
        """Note that all `contents` are of one page."""
        first = self.first(contents[0])
        for content in contents[1:]:
            other = self.first(content)
            if other != first:
                self._leads[other] = first


class Evidence(NamedTuple):
    """Evidence for a rule, and against it."""

    agreeing: Counter[int]  # groups, by content
    contradictions: int

    @property
    def support(self) -> int:
        return sum(min(groups, MOST_OF_CONTENT) for groups in self.agreeing.values())

    @property
    def enough(self) -> bool:
        """True if more contents speak for the rule than chance explains."""
        return len(self.agreeing) >= LEAST_SUPPORT

    @property
    def holds(self) -> bool:
        return self.contradictions <= MOST_CONTRADICTED * self.support

    @property
    def may_hold(self) -> bool:
        """True if one half allows the rule. A few contradictions more may be pages that changed."""
        return self.contradictions <= PART_CONTRADICTED * self.support + 2

    def and_of(self, other: "Evidence") -> "Evidence":
        """Return what this and the `other`, of other groups, say together."""
        return Evidence(self.agreeing + other.agreeing, self.contradictions + other.contradictions)


class RewrittenGroups:
    """The `pages`, grouped by the URL that `rules` make of theirs."""

    def __init__(self, rules: Iterable[Rule], pages: Iterable[Content]) -> None:
        self.rules = list(rules)
        self._rewriter = rewriter = Rewriter(self.rules)
        found: dict[str, list[Content]] = defaultdict(list)
        for page in pages:
            found[rewriter.rewrite(page.url).url].append(page)
        self.several = {url: group for url, group in found.items() if len(group) > 1}

    def half(self, odd: bool) -> dict[str, list[Content]]:
        """Return the groups of one half."""
        return {url: group for url, group in self.several.items() if key_of(url) & 1 == odd}

    def evidence(self, rule: Rule, groups: Mapping[str, Sequence[Content]]) -> Evidence:
        """Return the evidence of `groups` for `rule`, one of the rules."""
        agreeing: Counter[int] = Counter()
        lost, changed = 0, []
        for url, group, apart in self._acted_on(rule, groups):
            if not is_contradicted(url, group):
                if sum(page.content != 0 for page in group) > 1:
                    agreeing.update({page.content for page in group if page.content})
            elif not _overlap(apart, url):
                more = _pages(group) - max(map(_pages, apart.values()))
                lost += max(0, more)
                changed += [group] if more <= 0 else []
        return Evidence(agreeing, lost + _distinct(changed))

    def _acted_on(
        self, rule: Rule, groups: Mapping[str, Sequence[Content]]
    ) -> Iterator[tuple[str, Sequence[Content], dict[str, list[Content]]]]:
        """Yield the `groups` on which `rule` acts: URL, pages, and pages by the URL that the other rules make."""
        without = Rewriter(one for one in self.rules if one is not rule)
        for url, group in groups.items():
            apart: dict[str, list[Content]] = defaultdict(list)
            for page in group:
                apart[without.rewrite(page.url).url].append(page)
            if len(apart) > 1:
                yield url, group, apart

    def against(self, rule: Rule) -> tuple[str, str]:
        """Return two URLs that `rule` makes one and whose contents differ; empty strings if nothing contradicts it."""
        for url, group, apart in self._acted_on(rule, self.several):
            if is_contradicted(url, group) and not _overlap(apart, url):
                firsts = sorted((min(pages, key=_plain) for pages in apart.values()), key=_plain)
                other = next((page for page in firsts if page.content != firsts[0].content), None)
                if other is not None:
                    return firsts[0].url, other.url
        return "", ""

    def example(self, rule: Rule) -> tuple[str, str]:
        """Return a URL, and what `rule` makes of it with as few other rules as possible."""
        best, shown = (len(self.rules) + 1, 0), ("", "")
        for group in self.several.values():
            for page in group if len({page.content for page in group}) == 1 else ():
                made = self._rewriter.rewrite(page.url)
                plainness = len(made.rules), len(page.url)
                if rule in made.rules and plainness < best:
                    best, shown = plainness, (page.url, made.url)
        return shown


def _plain(page: Content) -> tuple[int, str]:
    return len(page.url), page.url


def _pages(group: Iterable[Content]) -> int:
    """Return the number of pages that the URLs of `group` are: contents that say different things."""
    contents = {page.content: page.outline for page in group if page.content}
    read = [outline for outline in contents.values() if outline is not None]
    return len(contents) - len(read) + (different(read) if len(read) > 1 else len(read))


def _distinct(groups: Sequence[Sequence[Content]]) -> int:
    """Return how many pages these `groups` are, if each is one page that changes."""
    firsts = [next((page for page in group if page.outline is not None), None) for group in groups]
    read = [page.outline for page in firsts if page is not None and page.outline is not None]
    return len(firsts) - len(read) + (different(read) if read else 0)


def _overlap(apart: Mapping[str, Sequence[Content]], url: str) -> bool:
    """Return whether all subgroups `apart` that a rule joins to `url` share a content, so that the rule is not at
    fault."""
    if any(not page.content for page in apart.get(url, ())):
        return False
    found = ({page.content for page in group} - {0} for group in apart.values())
    several = [contents for contents in found if contents]
    return len(several) < 2 or bool(set.intersection(*several))


def is_contradicted(url: str, group: Sequence[Content]) -> bool:
    """Return whether the URLs of `group` that become `url` are not one page."""
    contents = {page.content for page in group if page.content}
    return len(contents) > 1 or (bool(contents) and any(page.url == url and not page.content for page in group))


def accepted(candidates: Sequence[Rule], pages: Sequence[Content]) -> list[Rule]:
    """Return the `candidates` that hold for `pages`, with their evidence."""
    rules = _that_hold_together(_that_hold_alone(candidates, pages), pages)
    while rules:
        groups = RewrittenGroups(rules, pages)
        halves = [groups.half(odd) for odd in (False, True)]
        found = [[groups.evidence(rule, half) for half in halves] for rule in rules]
        worths = [_worth(*two) for two in found]
        if min(worths) > 0:
            return [
                rule.model_copy(update=_told(groups, rule, first.and_of(second)))
                for rule, (first, second) in zip(rules, found, strict=True)
            ]
        del rules[worths.index(min(worths))]
    return []


def short_of_support(likely: Iterable[Rule], rules: Sequence[Rule], pages: Sequence[Content]) -> Iterator[Rule]:
    """Yield those of the `likely` rules, besides the accepted `rules`, that `pages` do not contradict, but too few of
    their contents support: each with their number, from `FEW_SUPPORT` on."""
    names = {rule.name for rule in rules}
    for rule in likely:
        if rule.name not in names:
            groups = RewrittenGroups([*rules, rule], pages)
            found = groups.evidence(rule, groups.several)
            if not found.contradictions and FEW_SUPPORT <= len(found.agreeing) < 2 * LEAST_SUPPORT:
                yield rule.model_copy(update={"support": len(found.agreeing)})


def _worth(first: Evidence, second: Evidence) -> float:
    """Return how well two halves support a rule; 0 or less if it is not accepted."""
    whole = first.and_of(second)
    enough = whole.enough and min(len(first.agreeing), len(second.agreeing)) >= LEAST_HALF
    if enough and first.may_hold and second.may_hold and whole.holds:
        return float(whole.support)
    return -1.0 - whole.contradictions - (0.0 if enough else 1.0 / (1 + whole.support))


def _told(groups: RewrittenGroups, rule: Rule, whole: Evidence) -> dict[str, object]:
    """Return the fields that the file has for an accepted rule."""
    told = {"support": whole.support, "contradictions": whole.contradictions}
    return {**told, "example": groups.example(rule), "against": groups.against(rule)}


def _that_hold_alone(candidates: Sequence[Rule], pages: Sequence[Content]) -> list[Rule]:
    """Return the `candidates` that the first half allows as the only rule."""
    each = ((rule, RewrittenGroups([rule], pages)) for rule in candidates)
    return [rule for rule, groups in each if groups.evidence(rule, groups.half(odd=False)).may_hold]


def _that_hold_together(rules: list[Rule], pages: Sequence[Content]) -> list[Rule]:
    """Return `rules` without the worst, until the first half has few contradictions."""
    while rules and not _all(groups := RewrittenGroups(rules, pages).half(odd=False)).may_hold:
        wrong = [page for url, group in groups.items() if is_contradicted(url, group) for page in group]
        each_left_out = ([one for one in rules if one is not rule] for rule in rules)
        rules = min(each_left_out, key=lambda left: _contradicted(left, wrong))
    return rules


def _all(groups: Mapping[str, Sequence[Content]]) -> Evidence:
    """Return the evidence of `groups` for all rules together."""
    bad = {url: group for url, group in groups.items() if is_contradicted(url, group)}
    good = [{page.content for page in group if page.content} for url, group in groups.items() if url not in bad]
    changed = [group for group in bad.values() if _pages(group) == 1]
    return Evidence(Counter(chain.from_iterable(good)), len(bad) - len(changed) + _distinct(changed))


def _contradicted(rules: Sequence[Rule], pages: Sequence[Content]) -> tuple[float, int]:
    """Return how bad `rules` are for `pages`, as a sort key: the share of contradicted groups, then support."""
    found = _all(RewrittenGroups(rules, pages).several)
    return (found.contradictions + 1) / (found.support + found.contradictions + 1), -found.support


def hosts_that_merge(rules: Sequence[Rule]) -> set[str]:
    """Return the hosts whose pages `rules` move to another."""
    return {rule.host for rule in rules if rule.shape is Shape.HOST}
