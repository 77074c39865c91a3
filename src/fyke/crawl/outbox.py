"""What is on its way to the frontier: links and outcomes, gathered until a message is worth its cost.

The loop puts in what the harvest found, page by page, and takes out messages of thousands of rows: a message of 64 rows
costs ten times as much a row as one of 4,096. Most links repeat, so a bounded cache stands in front (Mercator's cache
of popular URLs). It drops a link that was sent lately, unless the link is the first from its page's domain to another,
because STAR counts who links to whom.

The filters thus see a link only once. Whether a link is wanted may depend on its URL, kind and depth alone
(`fyke.core.plugins.UrlFilter`). When the scope grows, the cache is emptied.

A page may bring tens of thousands of links. They are taken out in portions, so that nobody waits long. The outcomes of
visits wait until all links are out, because a visit is over only when its links have left. What was judged of a page
may leave before, because other URLs like it are fetched until the frontier knows.

Invariants: a link that was put in is in the next messages, or was in an earlier one with the same URL, kind, depth (if
that counts) and `fixed`. The outcome of a visit is never in a message before its links.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import U64, Kind, Mask, numbers, u64
from fyke.core.messages import (
    DELAYED,
    NONE_DATED,
    NONE_PRINTED,
    Links,
    Outcomes,
    Rules,
    ended_batch,
    judged_batch,
    learned_batch,
    links_of,
    put_off_batch,
)
from fyke.core.mixing import GOLDEN
from fyke.core.outcomes import Outcome
from fyke.core.urls import Locator
from fyke.core.visits import Visit

MESSAGE_ROWS = 4096  # links, enough for a message
SENT_LINKS = 100_000  # sent lately, and not sent again
ENOUGH_ENDED = 256  # ended visits that are enough for a message
CROWDED_BYTES = 8 << 20  # of links that wait, beyond which no more should be put in


class _Lately:
    """Numbers met lately: each has a place among `1 << bits`, until another takes it over."""

    def __init__(self, bits: int) -> None:
        self._mask = np.uint64((1 << bits) - 1)
        self._met = np.empty(1 << bits, np.uint64)
        self.clear()

    def new(self, numbers: U64) -> Mask:
        """Return which of `numbers` were not met lately: bool[n]. Of equal numbers only the first is new."""
        place = numbers & self._mask
        new: Mask = np.not_equal(self._met[place], numbers)
        rows = np.flatnonzero(new)
        _, first = np.unique(numbers[rows], return_index=True)
        new[rows] = False
        new[rows[first]] = True
        self._met[place] = numbers
        return new

    def clear(self) -> None:
        self._met[:] = ~np.arange(len(self._met), dtype=np.uint64)  # each place gets a number that belongs elsewhere


class LinkCache:
    """Links sent lately, about `limit` of them: 16 bytes each."""

    def __init__(self, limit: int, *, by_depth: bool) -> None:
        """`by_depth`: whether a link counts as another at another depth."""
        self._by_depth = by_depth
        bits = max(0, limit).bit_length()
        self._links, self._domains = _Lately(bits), _Lately(bits)
        self._used = limit > 0

    def new(self, links: Links) -> Mask:
        """Return which of `links` to send, bool[n]: those not sent lately, and the first from their domain to
        another."""
        urls = links.urls
        if not self._used:
            return np.ones(urls.num_rows, np.bool_)
        means = numbers(urls, "kind").astype(np.uint64) + np.uint64(1)
        if links.fixed is not None:
            means += links.fixed.astype(np.uint64) << np.uint64(4)
        if self._by_depth:
            means += numbers(urls, "depth").astype(np.uint64) << np.uint64(8)
        new = self._links.new(u64(urls, "key") ^ means * GOLDEN)
        return new | self._domains.new(u64(urls, "domain") ^ links.sources * GOLDEN)

    def clear(self) -> None:
        """Forget everything, so that every link is sent again."""
        self._links.clear()
        self._domains.clear()


class Outbox:
    """Messages for the frontier in the making."""

    def __init__(self, cache: LinkCache) -> None:
        self._cache = cache
        self._rows = self._bytes = 0  # of links that wait
        self._batches: deque[Links] = deque()
        self._ended: list[tuple[Visit, Outcome]] = []
        self._learned: list[tuple[str, Rules, float]] = []
        self._put_off: list[tuple[Visit, float]] = []
        self._judged: list[tuple[Visit, bool | None]] = []
        self._dated: list[pa.RecordBatch] = []
        self._printed: list[pa.RecordBatch] = []
        self._delayed: list[dict[str, float]] = []
        self.links = 0  # put in so far, sent or not

    def __repr__(self) -> str:
        return f"Outbox({self._rows} links, {len(self._ended)} outcomes)"

    @property
    def waiting(self) -> int:
        """Number of links that were not taken out yet."""
        return self._rows

    @property
    def full(self) -> bool:
        """True if there is enough for a message, or something is waited for."""
        ended = len(self._ended) + len(self._put_off)
        enough = self._rows >= MESSAGE_ROWS or ended >= ENOUGH_ENDED
        return enough or bool(self._learned) or self.crowded

    @property
    def crowded(self) -> bool:
        """True if links of `CROWDED_BYTES` wait, so that no more should be put in."""
        return self._bytes >= CROWDED_BYTES

    @property
    def has_stale(self) -> bool:
        """True if a page without new text waits to be told of."""
        return not all(fresh for _, fresh in self._judged)

    def __bool__(self) -> bool:
        """Return whether anything waits."""
        return bool(self._rows or self._ended or self._learned or self._put_off)

    def put_links(self, links: Links) -> None:
        """Put in the `links` of pages, without those sent lately."""
        self.links += links.urls.num_rows
        grows = bool((numbers(links.urls, "kind") == Kind.SEED).any())  # a seed redirects there: the scope grows
        if grows:
            self._cache.clear()
        else:
            links = links.keep(self._cache.new(links))
        self.pass_on(links)

    def pass_on(self, links: Links) -> None:
        """Put in `links` that other agents found, as they are: the cache knows only links that were found here."""
        if links.urls.num_rows:
            self._batches.append(links)
            self._rows += links.urls.num_rows
            self._bytes += links.urls.nbytes

    def put_ended(self, visit: Visit, outcome: Outcome) -> None:
        """Note that `visit` is over; everything else it brought was put in."""
        self._ended.append((visit, outcome))

    def put_judged(self, visit: Visit, fresh: bool | None) -> None:
        """Note whether the page of `visit` had new text; None for a redirect that leads somewhere. `put_ended` comes as
        well."""
        self._judged.append((visit, fresh))

    def put_dated(self, dated: pa.RecordBatch) -> None:
        """Put in when pages changed, as lists say (schema `DATED`)."""
        self._dated.append(dated)

    def put_printed(self, printed: pa.RecordBatch) -> None:
        """Put in what pages say that rewrite rules speak of (schema `PRINTED`). `put_ended` is called for them as
        well."""
        self._printed.append(printed)

    def put_delayed(self, visit: Visit, target: Locator, until: float) -> None:
        """Put in that `target`, to which `visit` was redirected, is not asked for that before `until` (unix
        seconds)."""
        self._delayed.append({"via": visit.key, "domain": target.domain, "until": until})

    def put_learned(self, origin: str, rules: Rules, until: float) -> None:
        """Put in what the robots.txt of `origin` says until `until` (unix seconds)."""
        self._learned.append((origin, rules, until))

    def put_off(self, visits: Sequence[tuple[Visit, float]]) -> None:
        """Put in `visits` that come back, each with the time before which its host is not asked (unix seconds)."""
        self._put_off += visits

    def take_links(self, most_bytes: int) -> Links:
        """Take out the links that came first, as one message: about `most_bytes` of URLs, but one link at least."""
        taken = []
        while self._batches and most_bytes > 0:
            links = self._batches.popleft()
            self._bytes -= links.urls.nbytes
            lengths = np.cumsum(pc.binary_length(links.urls.column("url")).to_numpy())
            rows = int(np.searchsorted(lengths, most_bytes)) + 1
            if rows < len(lengths):
                self._batches.appendleft(links.part(slice(rows, None)))
                self._bytes += self._batches[0].urls.nbytes
                links = links.part(slice(rows))
            taken.append(links)
            self._rows -= links.urls.num_rows
            most_bytes -= int(lengths[links.urls.num_rows - 1])
        return links_of(taken)

    def take_outcomes(self) -> Outcomes:
        """Take out all outcomes, as one message; while links wait, none of visits that ended."""
        ended: list[tuple[Visit, Outcome]] = []
        if not self._batches:
            ended, self._ended = self._ended, []
        outcomes = Outcomes(
            ended_batch(ended),
            learned_batch(self._learned),
            put_off_batch(self._put_off),
            self.take_judged(),
            pa.concat_batches([NONE_DATED, *self._dated]),
            pa.concat_batches([NONE_PRINTED, *self._printed]),
            pa.RecordBatch.from_pylist(self._delayed, DELAYED),
        )
        self._learned, self._put_off, self._dated, self._printed, self._delayed = [], [], [], [], []
        return outcomes

    def take_judged(self) -> pa.RecordBatch:
        """Take out which pages had new text (schema `JUDGED`)."""
        judged, self._judged = self._judged, []
        return judged_batch(judged)

    def forget_links(self) -> None:
        """Have links sent again that were sent lately, because the scope grew."""
        self._cache.clear()
