"""Views: URLs that show less of a page than another URL does, such as print views and pages for small screens.

A view and its page have different contents, so rules for views are found by URLs alone: the page was fetched under the
URL that is left without a key, a segment, or at the site's main host. Then the two pages are read. They support the
rule if the page holds all that the view says, shows and leads to (`harvest/containment`), so that nothing is lost
without the view. What at least half of the views say and their pages do not, such as "printed from", does not count,
nor do words of the view's own URL. A rule is not learned if most pages that it would lead to were not fetched: they may
not be there.

Bounded: of a rule, `MOST_PAIRS` pairs of pages are read.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fyke.core.batches import NO_KEYS, U64
from fyke.core.pages import Page
from fyke.core.rewrite_rules import Rule, Shape
from fyke.core.rewriting import Rewriter
from fyke.core.urls import key_of, split
from fyke.harvest.containment import held_by, missing, words_of_url
from fyke.harvest.prints import Place
from fyke.rewrite.candidates import MOST_PARTS, SIGNS
from fyke.rewrite.fetched import AnsweredPage
from fyke.rewrite.learning import FEW_SUPPORT, Evidence

MOST_CANDIDATES = 48
MOST_PAIRS = 200
FIRST_PAIRS = 24  # of which many must not contradict
LEAST_HELD = 20  # keys of a view that count: a notice in its place says next to nothing

Read = Callable[[AnsweredPage], Page | None]


class ViewOfPage(NamedTuple):
    """A view, and the page to which a rule leads instead."""

    view: AnsweredPage
    page: AnsweredPage

    @property
    def urls(self) -> tuple[str, str]:
        return self.view.url, self.page.url


def views(
    pages: Iterable[AnsweredPage], rules: Sequence[Rule], read: Read, without: Container[Place] = frozenset()
) -> Iterator[Rule]:
    """Yield rules for views among the `pages` of a site that has also these `rules`, each with its evidence. If fewer
    than `LEAST_SUPPORT` contents support a rule, their number is its `support`. `read` returns a page from the archive,
    or None. Numbers at the places `without` do not count."""
    at = _by_rewritten(pages, Rewriter(rules))
    known = [*rules]
    for rule in _candidates(at):
        pairs, lost = _pairs(rule, known, at)
        reading = partial(_held, Rewriter([*known, rule]), read, without)
        held: list[tuple[U64, U64]] = []
        for most in (FIRST_PAIRS, MOST_PAIRS):
            held += map(reading, pairs[len(held) : most])
            tried, found = _tried(pairs[:most], held)
            tried = tried.and_of(Evidence(Counter(), lost))
            if not tried.may_hold:
                break
        if len(tried.agreeing) >= FEW_SUPPORT and tried.holds:
            support = tried.support if tried.enough else len(tried.agreeing)
            rule = rule.model_copy(update={"support": support, "contradictions": tried.contradictions, **found})
            known.append(rule)
            yield rule


def _by_rewritten(pages: Iterable[AnsweredPage], rewriter: Rewriter) -> dict[str, AnsweredPage]:
    """Return a page for each URL that `rewriter` makes of those of `pages`: the one at that URL, or the longest."""
    found: dict[str, tuple[tuple[bool, bool, int], AnsweredPage]] = {}
    for page in pages:
        url = rewriter.rewrite(page.url).url
        worth = url == page.url, page.fingerprint != 0, page.row["warc_length"] or 0
        if url not in found or found[url][0] < worth:
            found[url] = worth, page
    return {url: page for url, (_, page) in found.items()}


def _candidates(at: Mapping[str, AnsweredPage]) -> Iterator[Rule]:
    """Yield the rules that lead from several pages to others, the most frequent first."""
    whole = {url: page.fingerprint for url, page in at.items() if page.fingerprint}
    hosts = Counter(split(url).host for url in whole)
    main = max(hosts, key=lambda host: (hosts[host], host), default="")
    count: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for url, fingerprint in whole.items():
        for target, fields in _less(url, main):
            if whole.get(target, fingerprint) != fingerprint:
                count[tuple(fields.items())] += 1
    for rule, pairs in count.most_common(MOST_CANDIDATES):
        if pairs >= FEW_SUPPORT:
            yield Rule(**dict(rule), view=True)


def _less(url: str, main: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the URLs that are left of `url` without a part, each with the fields of the rule that leaves it out."""
    root, host = "/".join(url.split("/", 3)[:3]), split(url).host
    path, mark, query = url.split("/", 3)[3].partition("?")
    if host != main:
        yield url.replace(f"//{host}", f"//{main}", 1), {"shape": Shape.HOST, "host": host, "to": main}
    pairs = query.split("&") if mark else []
    for number, pair in enumerate(pairs[:MOST_PARTS]):
        key, _, value = pair.partition("=")
        if key and not set(key) & set(SIGNS):
            rest = "&".join([*pairs[:number], *pairs[number + 1 :]])
            target = f"{root}/{path}?{rest}" if rest else f"{root}/{path}"
            drops: dict[str, Any] = {"shape": Shape.DROP_KEY, "host": host, "key": key}
            yield target, drops
            yield target, {**drops, "value": value}
    segments = path.split("/")
    for place, name in enumerate(segments[:MOST_PARTS]) if len(segments) > 1 else ():
        if name and not set(name) & set(SIGNS):
            target = f"{root}/{'/'.join([*segments[:place], *segments[place + 1 :]])}{mark}{query}"
            for where in (place, place - len(segments)):
                yield target, {"shape": Shape.DROP_SEGMENT, "host": host, "key": name, "place": where}


def _pairs(rule: Rule, known: Sequence[Rule], at: Mapping[str, AnsweredPage]) -> tuple[list[ViewOfPage], int]:
    """Return the views on which `rule` acts, though no `known` rule does, with their pages, in the order of their keys;
    and the number of views whose page is none. No pairs if most pages are not known."""
    before, after = Rewriter(known), Rewriter([*known, rule])
    part = rule.host if rule.shape is Shape.HOST else rule.key
    pairs, lost, unknown = [], 0, 0
    for url, view in at.items():
        if not view.fingerprint or part not in url or before.rewrite(url).url != url:
            continue
        target = after.rewrite(url).url
        page = at.get(target)
        if page is None:
            unknown += 1
        elif target != url:
            pairs += [ViewOfPage(view, page)] if page.fingerprint else []
            lost += not page.fingerprint
    if unknown > len(pairs) + lost:
        return [], 0
    return sorted(pairs, key=lambda pair: key_of(pair.view.url)), lost


def _tried(pairs: Sequence[ViewOfPage], held: Sequence[tuple[U64, U64]]) -> tuple[Evidence, dict[str, tuple[str, str]]]:
    """Return what `pairs` say for a rule and against it, with an example of either; `held` is `_held` of each."""
    lacking = [lacks for _, lacks in held]
    keys, counts = np.unique(np.concatenate([NO_KEYS, *lacking]), return_counts=True)
    usual = keys[2 * counts >= len(held)] if len(held) > 1 else NO_KEYS
    agreeing: Counter[int] = Counter()
    told: dict[str, tuple[str, str]] = {}
    contradictions = 0
    for pair, (said, lacks) in zip(pairs, held, strict=True):
        if len(np.setdiff1d(lacks, usual)):
            contradictions += 1
            told.setdefault("against", pair.urls)
        elif len(np.setdiff1d(said, usual)) >= LEAST_HELD:
            agreeing[pair.view.fingerprint] += 1
            told["example"] = min(told.get("example", pair.urls), pair.urls, key=lambda urls: (len(urls[0]), urls))
    return Evidence(agreeing, contradictions), told


def _held(rewriter: Rewriter, read: Read, without: Container[Place], pair: ViewOfPage) -> tuple[U64, U64]:
    """Return what the view of `pair` holds, and what of it its page lacks; nothing if either cannot be read."""
    held = []
    for answered in pair:
        page = read(answered)
        if page is None:
            return NO_KEYS, NO_KEYS
        media_type = answered.row["media_type"]
        held.append(held_by(page.content, media_type, page.url, lambda url: rewriter.rewrite(url).url, without))
    return held[0], np.setdiff1d(missing(*held), words_of_url(pair.view.url))
