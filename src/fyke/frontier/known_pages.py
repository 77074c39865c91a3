"""Known pages: those that were visited before, and which are visited again. The first stage of a pass over a crawl.

`fyke crawl --again` begins a pass. Every page is then in one place:
- in the table of pages, among the visits that have ended since the last pass began; `learn` takes these;
- in the queue of pages that rest, because a visit was not worth it last time, or in that of pages that are gone;
- waiting for its visit, in this queue or a later stage.

For pages of the first kind, what was believed of them is looked up and corrected by the visit (`page_history`); then
they rest too. `plan` queues the pages whose visits are worth most (`revisit.choice`), as many as are asked for or as
there is room for; without a bound it queues all. Sitemaps and feeds come first in a pass, because they say what is new.
Pages from the queue go through the robots gate like any URL, but not through BEAST: their domain's budget let them
through once.

`list_signals` has the dates of changes that lists give, `new_links` the pages that brought links to new ones.

All is read and written in sequence. The history is merged with the visits since the last plan. A plan reads the beliefs
of all resting pages, and then reads and writes all their columns (twice in a pass with lists). It goes batch by batch,
and a checkpoint may come between two batches. Memory holds a batch. Invariant: a page is in one place, once.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, URLS, Kind, Mask, keep, numbers, u64, with_column
from fyke.core.freshness import Freshness
from fyke.disk.operations import Values
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.domains import Domains
from fyke.frontier.gone import GonePages
from fyke.frontier.list_signals import ListSignals, Signals
from fyke.frontier.new_links import NewLinks
from fyke.frontier.page_history import Before, PageHistory, Visited
from fyke.frontier.resting import BATCH_ROWS, BELIEVED, Pages, RestingPages, pages_of, those, urls_of
from fyke.frontier.revisit.belief import Belief
from fyke.frontier.revisit.choice import Choice, Lines, Resting, Terms
from fyke.frontier.weights import Weights


class KnownPages:
    """The queue of known pages to visit, the pages that rest, and the history of all."""

    def __init__(
        self, store: Store, memory_bytes: int, state: Mapping[str, Any] | None = None, domains: Domains | None = None
    ) -> None:
        """`domains` has the in-degrees, if pages are weighed by them."""
        saved = state or {}
        self._domains = domains
        self.weights = Weights()
        self._history = PageHistory(store, memory_bytes, saved)
        self._signals = ListSignals(store, saved.get("told"))
        self._new_links = NewLinks(store, memory_bytes, saved.get("found"))
        self._queue = DiskQueue(store, "again", URLS, saved.get("queue"), pack=True)
        self._resting = RestingPages(store, saved)
        self._gone = GonePages(store, saved.get("gone"))
        self._left = len(self._queue)  # rows not looked at for this level
        self._lines = Lines()
        self.freshness = Freshness(*saved.get("standing", ()))
        self.rows = int(saved.get("rows", 0))  # learned from the table of pages

    def __repr__(self) -> str:
        return f"KnownPages({len(self)} waiting, {self.resting} resting, {len(self._history)} known)"

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def resting(self) -> int:
        """Number of pages that rest until a visit is worth it."""
        return len(self._resting)

    # --- a pass begins

    def learn(self, ended: pa.RecordBatch, copied: Mask, copies: Values) -> None:
        """Learn from visits that ended (schema `ENDED`, n rows), in order. `copies` [n] (dtype `COPY`) are the newest
        archived contents of their pages, where `copied`. The pages wait for `plan`."""
        self._history.put(ended, copied, copies)
        if self._history.full:
            self._absorb(self._signals.gathered(0.0))
        self.rows += ended.num_rows

    def pass_over(self, rows: int) -> None:
        """Count `rows` of the table of pages that are of other shards."""
        self.rows += rows

    def note(self, dated: pa.RecordBatch) -> None:
        """Note when lists say that pages changed (schema `DATED`); the next plan uses it."""
        self._signals.note(dated)

    def note_new_links(self, pages: U64) -> None:
        """Note that a new URL was found on each of `pages` (uint64[n], with repeats)."""
        if len(self._history):
            self._new_links.note(pages[self.knows(pages)])

    def plan(self, now: float, terms: Terms, *, by_line: bool = False) -> Iterator[None]:
        """Queue the pages that are due at `now` (unix seconds) on these `terms`, those worth most first; `by_line`,
        only as many as there is room for. `get` gives them once the plan was iterated to its end. The caller may pause
        it after each batch, or give it up."""
        signals = self._signals.gathered(now - terms.greatest_s if terms.greatest_s else 0.0)
        self._absorb(signals)
        self._history.settle_copies()
        limited = by_line or terms.most is not None
        gone = self._gone.due(now) if limited else self._gone.take()
        for urls in chain(gone, self._queue.drain(BATCH_ROWS) if terms.most is not None else ()):
            self._rest(urls)  # also those that wait, because a limited pass chooses among all
            yield
        choice = Choice(now, terms, self._lines.room() if by_line else None, self._history.calibration)
        lists = False
        for beliefs in self._resting.beliefs():
            resting = self._read(beliefs, signals)
            choice.count(resting)
            lists |= bool(resting.first.any())
            yield
        if choice.settle():
            yield from self._choose(choice, signals, lists_first=lists and not by_line)
        self._signals.settle(signals)
        self._left = len(self._queue)
        self.freshness = choice.freshness if by_line else Freshness()

    def _rest(self, urls: pa.RecordBatch) -> None:
        """Let known pages rest. Visits that brought nothing are forgotten."""
        keys = u64(urls, "key")
        records = self._history.records(keys)
        believed: dict[str, Any] = {name: records[name] for name in ("at", "shape", "time")}
        believed["silent"] = np.zeros(len(keys))
        believed["finds"] = self._new_links.rates_of(keys).astype(np.float32)
        self._resting.put(pages_of(self._weighed(urls), believed))

    def _choose(self, choice: Choice, signals: Signals, *, lists_first: bool) -> Iterator[None]:
        if lists_first:
            for pages in self._resting.take_all():
                listings = numbers(pages[0], "kind") == Kind.LISTING
                lists = those(pages, listings)
                self._move(lists, choice.take(self._read(lists[0], signals)))
                self._resting.put(those(pages, ~listings))
                yield
        for pages in self._resting.take_all():
            self._move(pages, choice.take(self._read(pages[0], signals)))
            yield

    def _move(self, pages: Pages, chosen: Mask) -> None:
        self._queue.put(urls_of(those(pages, chosen)))
        self._resting.put(those(pages, ~chosen))
        self._lines.wait(u64(pages[0], "host")[chosen])

    def _read(self, beliefs: pa.RecordBatch, signals: Signals) -> Resting:
        """Return pages that rest (schema `BELIEFS`) in the form for a choice."""
        at, silent, shape, time, finds = (beliefs.column(name).to_numpy().astype(np.float64) for name in BELIEVED)
        hosts, first = u64(beliefs, "host"), numbers(beliefs, "kind") == Kind.LISTING
        told = signals.since(u64(beliefs, "key"), at)
        weight = self.weights.of(beliefs)
        return Resting(
            hosts, at, at + silent, Belief(shape, time), first, self._history.trust_of(hosts), told, weight, finds
        )

    def _weighed(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Return `urls` with the in-degrees of their domains, if pages are weighed by them."""
        if self._domains is None or not self.weights.by_in_degree:
            return urls
        return with_column(urls, "in_degree", self._domains.in_degrees(u64(urls, "domain")))

    def _absorb(self, signals: Signals) -> None:
        """Learn from the visits that ended, and let their pages rest."""
        for learned in self._history.learn(signals):
            visits, records = learned.visits, learned.after
            self._lines.visited(u64(visits, "host")[learned.before["visited"] != Visited.NEVER])
            believed: dict[str, Any] = {name: records[name] for name in ("at", "shape", "time")}
            believed["silent"] = visits.column("at").to_numpy() - records["at"]
            finds = self._new_links.learn(u64(visits, "key"), learned.again, learned.since)
            believed["finds"] = finds.astype(np.float32)
            there = records["visited"] != Visited.GONE
            pages = pages_of(self._weighed(visits.select(URLS.names)), believed)
            self._resting.put(those(pages, there))
            self._gone.put(keep(visits, ~there))
        self._new_links.settle()

    # --- visits

    def get(self, rows: int, level: int | None) -> pa.RecordBatch | None:
        """Return the next `rows` pages or fewer that are not deeper than `level`; None when there are no more."""
        while self._left > 0:
            urls = self._queue.get(min(rows, self._left))
            assert urls is not None
            self._left -= urls.num_rows
            if level is None:
                return urls
            near = numbers(urls, "depth") <= level
            self._queue.put(keep(urls, ~near))
            if near.any():
                return keep(urls, near)
        return None

    def wait(self, urls: pa.RecordBatch) -> None:
        """Let known pages (schema `URLS`) wait that got no visit in the last pass."""
        self._queue.put(urls)
        self._left = len(self._queue)

    @property
    def spent(self) -> bool:
        """True if no waiting page is near enough for the level."""
        return self._left <= 0

    def next_level(self) -> None:
        """Look at all waiting pages again, because the level is another one."""
        self._left = len(self._queue)

    def knows(self, keys: U64) -> Mask:
        """Return which pages with `keys` (uint64[n]) were visited before the last plan: bool[n]."""
        return self._history.knows(keys)

    def before(self, keys: U64) -> Before | None:
        """Return the results of earlier visits to the pages with `keys` (uint64[n]); None when no page is known."""
        return self._history.before(keys)

    # --- life

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield all pages that wait for a visit in this pass."""
        return self._queue.scan()

    def state(self) -> dict[str, Any]:
        return {
            **self._history.state(),
            "told": self._signals.state(),
            "queue": self._queue.state(),
            **self._resting.state(),
            "found": self._new_links.state(),
            "gone": self._gone.state(),
            "rows": self.rows,
            "standing": list(self.freshness),
        }

    def close(self) -> None:
        for part in (self._history, self._signals, self._new_links, self._queue, self._resting, self._gone):
            part.close()
