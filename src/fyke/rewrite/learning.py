"""Which of the rules that may hold at a site do hold.

A rule *acts* on two URLs that it makes one, all other rules applied. URLs that become one are a group. `support` of a
rule counts contents of groups on which it acts and whose URLs all have one content: a content counts once, so that
an error page that is shown for anything, or an empty page, says next to nothing. `contradictions` counts groups on
which it acts and whose URLs have several contents, or whose common URL is no page while others are.

All candidates together are tried, since what varies with every link (session and tracking) shows no group alone; then
whichever takes the most contradictions with it goes, until few are left. That is done with one half of the groups. A
rule is accepted which has `LEAST_SUPPORT`, and at most `MOST_CONTRADICTED` of that in contradictions, in each half.

Invariant: what is accepted satisfies that bound on what was fetched, for all accepted rules applied together.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fyke.core.rewrite_rules import Rule, Shape
from fyke.core.rewriting import Rewriter
from fyke.core.urls import key_of

LEAST_SUPPORT = 10
LEAST_HALF = 4  # of it, in each half
MOST_CONTRADICTED = 0.02


class Page(NamedTuple):
    """A URL that answered, and its content: 0 where it is no page."""

    url: str
    content: int


class Evidence(NamedTuple):
    """What speaks for a rule, and against it."""

    agreeing: frozenset[int]  # contents
    contradictions: int

    @property
    def support(self) -> int:
        return len(self.agreeing)

    @property
    def holds(self) -> bool:
        return self.contradictions <= MOST_CONTRADICTED * self.support

    def and_of(self, other: "Evidence") -> "Evidence":
        """What this and the `other` say, of other groups."""
        return Evidence(self.agreeing | other.agreeing, self.contradictions + other.contradictions)


class Groups:
    """`pages` by the URL that `rules` make of theirs."""

    def __init__(self, rules: Iterable[Rule], pages: Iterable[Page]) -> None:
        self.rules = list(rules)
        self._rewriter = rewriter = Rewriter(self.rules)
        found: dict[str, list[Page]] = defaultdict(list)
        for page in pages:
            found[rewriter.rewrite(page.url).url].append(page)
        self.several = {url: group for url, group in found.items() if len(group) > 1}

    def half(self, odd: bool) -> dict[str, list[Page]]:
        """The groups of one half."""
        return {url: group for url, group in self.several.items() if key_of(url) & 1 == odd}

    def evidence(self, rule: Rule, groups: Mapping[str, Sequence[Page]]) -> Evidence:
        """What some `groups` say of `rule`, one of the rules."""
        without = Rewriter(one for one in self.rules if one is not rule)
        agreeing: set[int] = set()
        contradictions = 0
        for url, group in groups.items():
            apart: dict[str, set[int]] = defaultdict(set)
            for page in group:
                apart[without.rewrite(page.url).url].add(page.content)
            if len(apart) < 2:
                continue
            if not is_contradicted(url, group):
                if sum(page.content != 0 for page in group) > 1:
                    agreeing.update(page.content for page in group if page.content)
            elif not _overlap(apart, url):
                contradictions += 1
        return Evidence(frozenset(agreeing), contradictions)

    def example(self, rule: Rule) -> tuple[str, str]:
        """A URL, and what becomes of it, by `rule` and as little else as can be."""
        best, shown = (len(self.rules) + 1, 0), ("", "")
        for group in self.several.values():
            for page in group if len({page.content for page in group}) == 1 else ():
                made = self._rewriter.rewrite(page.url)
                plainness = len(made.rules), len(page.url)
                if rule in made.rules and plainness < best:
                    best, shown = plainness, (page.url, made.url)
        return shown


def _overlap(apart: Mapping[str, set[int]], url: str) -> bool:
    """Whether all that a rule makes `url` had a content in common before: then their difference is not its doing."""
    if 0 in apart.get(url, ()):
        return False
    several = [contents - {0} for contents in apart.values() if contents != {0}]
    return len(several) < 2 or bool(set.intersection(*several))


def is_contradicted(url: str, group: Sequence[Page]) -> bool:
    """Whether the URLs of `group` that become `url` are not one page."""
    contents = {page.content for page in group if page.content}
    return len(contents) > 1 or (bool(contents) and any(page.url == url and not page.content for page in group))


def accepted(candidates: Sequence[Rule], pages: Sequence[Page]) -> list[Rule]:
    """Those of `candidates` that hold for `pages`, with their evidence."""
    rules = _that_hold_together(_that_hold_alone(candidates, pages), pages)
    while rules:
        groups = Groups(rules, pages)
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


def _worth(first: Evidence, second: Evidence) -> float:
    """How well a rule is supported by two halves; not above 0 where it is not accepted."""
    whole = first.and_of(second)
    enough = whole.support >= LEAST_SUPPORT and min(first.support, second.support) >= LEAST_HALF
    if enough and first.holds and second.holds:
        return float(whole.support)
    return -1.0 - whole.contradictions - (0.0 if enough else 1.0 / (1 + whole.support))


def _told(groups: Groups, rule: Rule, whole: Evidence) -> dict[str, object]:
    """What the file says of an accepted rule."""
    told = {"support": whole.support, "contradictions": whole.contradictions}
    return {**told, "example": groups.example(rule)}


def _that_hold_alone(candidates: Sequence[Rule], pages: Sequence[Page]) -> list[Rule]:
    """Without those that contradictions speak against where nothing but they makes one URL of several."""
    kept = []
    for rule in candidates:
        groups = Groups([rule], pages)
        evidence = groups.evidence(rule, groups.half(odd=False))
        if evidence.contradictions < 2 or evidence.holds:
            kept.append(rule)
    return kept


def _that_hold_together(rules: list[Rule], pages: Sequence[Page]) -> list[Rule]:
    """Without those that take the most contradictions with them, until few are left in the first half."""
    while rules:
        groups = Groups(rules, pages).half(odd=False)
        wrong = [page for url, group in groups.items() if is_contradicted(url, group) for page in group]
        agreeing = {page.content for url, group in groups.items() if not is_contradicted(url, group) for page in group}
        bad = sum(is_contradicted(url, group) for url, group in groups.items())
        if bad <= MOST_CONTRADICTED * len(agreeing):
            break
        rules = min(_each_left_out(rules), key=lambda left: _contradicted(left, wrong))
    return rules


def _each_left_out(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    for rule in rules:
        yield [one for one in rules if one is not rule]


def _contradicted(rules: Sequence[Rule], pages: Sequence[Page]) -> tuple[float, int]:
    """What share of the groups that `rules` make of `pages` is contradicted, all where there are none; and the contents
    of the others, less."""
    groups = Groups(rules, pages).several
    bad = sum(is_contradicted(url, group) for url, group in groups.items())
    agreeing = {page.content for url, group in groups.items() if not is_contradicted(url, group) for page in group}
    return (bad + 1) / (len(agreeing) + bad + 1), -len(agreeing)


def hosts_that_merge(rules: Sequence[Rule]) -> set[str]:
    """The hosts whose pages `rules` move to another."""
    return {rule.host for rule in rules if rule.shape is Shape.HOST}
