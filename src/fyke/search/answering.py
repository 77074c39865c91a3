"""An answer: the pages of all indexes that match, in one order, a few of each site.

The searcher makes one for each query. Each index is asked for as many pages as the answer may need, and for more if
many fall away as further pages of a site. Invariant: hit number `n` of a query is the same for every offset and limit.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import tantivy
from tantivy import Occur

from fyke.core.urls import split
from fyke.search.language import is_untranslated
from fyke.search.live_index import View
from fyke.search.repeated import shown
from fyke.search.results import Hit
from fyke.search.snippets import Highlighter

PER_SITE = 2
MOST_LIKE_IT = 5  # near-duplicates of a hit that are named
MOST_COPIES = 64  # near-duplicates of a hit among which its original is looked for
FARTHEST = 1_000  # pages of an answer, at most
_FIRST_WINDOW = 50


@dataclass(frozen=True, slots=True)
class Ranked:
    """A page in an index, as it is ranked."""

    score: float
    key: int
    host: int
    fingerprint: int
    near: int  # its cluster of near-duplicates, 0 for none
    shard: int
    address: tantivy.DocAddress


class Answer:
    """The pages that `compiled` (a query for each of `views`) finds, `grouped` by site if there are several.

    The best of near-duplicates is listed, but an untranslated copy's original, and the plain address of one with a
    query, if they match too; with `whole_clusters`, all of a cluster are.
    """

    def __init__(
        self, views: Sequence[View], compiled: Sequence[tantivy.Query], *, grouped: bool, whole_clusters: bool = False
    ) -> None:
        self._views = views
        self._compiled = compiled
        self._whole_clusters = whole_clusters
        self._grouped = grouped and len({host for view in views for host in view.hosts}) > 1
        self.total = 0

    def hits(self, offset: int, limit: int, highlight: Highlighter, skip: Callable[[Ranked], bool]) -> Iterator[Hit]:
        """Yield at most `limit` hits from number `offset` on, without pages to `skip`. Counts `total` too."""
        wanted = min(offset + limit, FARTHEST)
        listed = self._listed(wanted, skip)
        counts: Counter[int] = Counter()
        for number, found in enumerate(listed):
            counts[found.host] += 1
            if number >= offset:
                full = self._grouped and counts[found.host] == PER_SITE
                yield self._hit(found, highlight, self._more_from_site(found) if full else 0)

    def count(self) -> int:
        """Count pages that match; one in several indexes counts in each."""
        results = [view.engine.search(query, 1) for view, query in zip(self._views, self._compiled, strict=True)]
        return sum(map(count_of, results))

    def _listed(self, wanted: int, skip: Callable[[Ranked], bool]) -> list[Ranked]:
        """Return the first `wanted` pages, one of a cluster of near-duplicates and at most `PER_SITE` of a site."""
        window = max(_FIRST_WINDOW, 2 * wanted)
        while True:
            ranked, exhausted = self._ranked(window)
            listed = list(islice(self._thinned(found for found in ranked if not skip(found)), wanted))
            if len(listed) >= wanted or exhausted or window >= FARTHEST:
                return listed
            window = min(4 * window, FARTHEST)

    def _ranked(self, window: int) -> tuple[list[Ranked], bool]:
        """Return the best `window` pages of each index in one order, a page once, and whether these are all."""
        found: list[Ranked] = []
        self.total, exhausted = 0, True
        for number, (view, query) in enumerate(zip(self._views, self._compiled, strict=True)):
            result = view.engine.search(query, window, weight_by_field="weight")
            found += _found(view, number, result.hits)
            total = count_of(result)
            self.total += total
            exhausted = exhausted and total <= window
        found.sort(key=_order)
        seen: set[int] = set()
        ranked = []
        for one in found:
            if one.key not in seen and (not one.fingerprint or one.fingerprint not in seen):
                ranked.append(one)
                seen |= {one.key, one.fingerprint}
        self.total -= len(found) - len(ranked)
        return ranked, exhausted

    def _thinned(self, ranked: Iterator[Ranked]) -> Iterator[Ranked]:
        counts: Counter[int] = Counter()
        clusters: set[int] = set()
        for found in ranked:
            if self._whole_clusters or found.near not in clusters:
                clusters |= {found.near} - {0}
                best = found if self._whole_clusters else self._original(found)
                counts[best.host] += 1
                if not self._grouped or counts[best.host] <= PER_SITE:
                    yield best

    def _original(self, found: Ranked) -> Ranked:
        """Return what stands for `found` among the pages of its cluster: the best whose address names no other language
        than that of its text, and of that page the plain address, without a query."""
        if not found.near:
            return found
        url, untranslated = self._told(found)
        if not untranslated and _plain(url) == url:
            return found
        others: list[Ranked] = []
        for number, (view, result) in enumerate(self._matching("near", found.near, MOST_COPIES)):
            others += _found(view, number, result.hits)
        told = [(one, *self._told(one)) for one in sorted(others, key=_order)]
        if untranslated:
            best = ((one, url) for one, url, strange in told if not strange)
            found, url = next(best, (found, url))
        return next((one for one, other, _ in told if other == _plain(url)), found)

    def _told(self, found: Ranked) -> tuple[str, bool]:
        """Return its URL, and whether that names another language than that of the text."""
        page = self._views[found.shard].engine.doc(found.address)
        url = _first(page, "url")
        return url, is_untranslated(url, _first(page, "language"))

    def _like_it(self, found: Ranked) -> tuple[int, tuple[str, ...]]:
        """Return how many other pages of its cluster match, and the URLs of the best."""
        if not found.near or self._whole_clusters:
            return 0, ()
        count = -1  # without itself
        order: dict[str, tuple[float, int]] = {}
        for view, result in self._matching("near", found.near, MOST_LIKE_IT + 1):
            count += count_of(result)
            for score, address in result.hits:
                page = view.engine.doc(address)
                if (key := _first(page, "key")) != found.key:
                    order.setdefault(_first(page, "url"), (-float(score), key))
        return max(0, count), tuple(sorted(order, key=order.__getitem__)[:MOST_LIKE_IT])

    def _more_from_site(self, found: Ranked) -> int:
        """Count pages of the host that match beyond those listed."""
        return max(0, sum(count_of(result) for _, result in self._matching("host", found.host, 1)) - PER_SITE)

    def _matching(self, field: str, value: int, most: int) -> Iterator[tuple[View, tantivy.SearchResult]]:
        """Yield of each index the best pages, at most so many, that match and have `value` in `field`."""
        for view, query in zip(self._views, self._compiled, strict=True):
            also = tantivy.Query.const_score_query(tantivy.Query.term_query(view.schema, field, value), 0.0)
            both = tantivy.Query.boolean_query([(Occur.Must, query), (Occur.Must, also)])
            yield view, view.engine.search(both, most, weight_by_field="weight")

    def _hit(self, found: Ranked, highlight: Highlighter, more: int) -> Hit:
        view = self._views[found.shard]
        page = view.engine.doc(found.address)
        url, language = _first(page, "url"), _first(page, "language")
        more_like_it, like_it = self._like_it(found)
        return Hit(
            url=url,
            title=shown(page, "title"),
            snippet=highlight.snippet(
                shown(page, "text"), shown(page, "description"), language, view.repeated.on_host(found.host)
            ),
            site=split(url).host,
            dated=datetime.fromtimestamp(_first(page, "date_s"), UTC),
            fetched_at=datetime.fromtimestamp(_first(page, "fetched_at") / 1e6, UTC),
            language=language,
            score=round(found.score, 4),
            more_from_site=more,
            more_like_it=more_like_it,
            like_it=like_it,
        )


def _plain(url: str) -> str:
    """Return a URL without query and parameters."""
    return url.partition("?")[0].partition(";")[0]


def _order(one: Ranked) -> tuple[float, int, int]:
    return -one.score, one.key, one.shard


def _found(view: View, number: int, hits: Sequence[tuple[Any, tantivy.DocAddress]]) -> Iterator[Ranked]:
    addresses = [address for _, address in hits]
    columns = [view.engine.fast_field_values(name, addresses) for name in ("key", "host", "fingerprint", "near")]
    for (score, address), *numbers in zip(hits, *columns, strict=True):
        key, host, fingerprint, near = (int(value or 0) for value in numbers)
        yield Ranked(float(score), key, host, fingerprint, near, number, address)


def count_of(result: tantivy.SearchResult) -> int:
    """Return how many pages a search found."""
    return int(getattr(result, "count", 0) or 0)  # the stub lacks it


def _first(page: tantivy.Document, field: str) -> Any:
    return page.get_first(field)
