"""Pages that were visited before, and which are visited again: the first stage of a pass over a crawl.

`fyke crawl --again` begins a pass. Every page is then in one place:
- in the table of pages, among the visits that have ended since the last pass began; `learn` takes these;
- in the queue of pages that rest, because a visit was not worth it last time, or in that of pages that are gone;
- waiting for its visit, in this queue or a later stage.

For pages of the first kind, what was believed of them is looked up and corrected by the visit; then they rest too.
`plan` queues the pages whose visits are worth most (`revisit.choice`), as many as are asked for or as there is room
for; without a bound it queues all. Sitemaps and feeds come first in a pass, because they say what is new. Pages from
the queue go through the robots gate like any URL, but not through BEAST: their domain's budget let them through once.

Drums have the results of earlier visits. By the URL's key: `known`, the history of a page in a few numbers, and
`copies`, where the newest answer with its content is archived; both are asked when a page is handed out. `habits` adds
up how often pages of a domain change, for pages that were seen little. `told` has the dates of changes that lists give;
`evidence` counts how often the dates of a host proved right (`revisit.signals`), for hosts that gave any. `found` has
the pages that brought links to new ones.

All is read and written in sequence. The history is merged with the visits since the last plan. A plan reads the beliefs
of all resting pages, and then reads and writes all their columns (twice in a pass with lists). It goes batch by batch,
and a checkpoint may come between two batches. Memory holds a batch. Invariant: a page is in one place, once.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, URLS, Kind, Mask, keep, numbers, u64, with_column
from fyke.core.messages import Freshness
from fyke.disk.drum import Drum
from fyke.disk.operations import Combine, Values
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.domains import Domains
from fyke.frontier.found import NewLinks
from fyke.frontier.gone import GonePages
from fyke.frontier.resting import BATCH_ROWS, BELIEVED, Pages, RestingPages, pages_of, those, urls_of
from fyke.frontier.revisit.belief import Belief, Column, faded, prior
from fyke.frontier.revisit.calibration import Calibration
from fyke.frontier.revisit.choice import Choice, Lines, Resting, Terms
from fyke.frontier.revisit.signals import EVIDENCE, Trust, added_up, fresh_chance, learned, no_trust, seen, trust
from fyke.frontier.told import Signals, Told
from fyke.frontier.weights import Weights

USUAL_S = 30 * 86400.0  # between changes of an unknown page


class Visited(IntEnum):
    """Result of the last visit to a page."""

    NEVER = 0  # no visit
    THERE = 1  # or not known to be away: a failing server says nothing of its pages
    MISSING = 2  # 404 or 410
    GONE = 3  # 404 or 410 twice in a row: it is asked for seldom


class News(IntEnum):
    """Result of a visit for the page's content."""

    NONE = 0  # no content came
    SAME = 1
    CHANGED = 2  # or content came for the first time


KNOWN = np.dtype(
    [
        ("visited", "u1"),  # a `Visited`
        ("at", "<f8"),  # unix seconds: when its content was last brought, or found to be the same
        ("shape", "<f4"),  # belief of its rate of change, in seconds
        ("time", "<f4"),
    ]
)
COPY = np.dtype(
    [
        ("offset", "<u8"),  # of the record in its archive file
        ("fingerprint", "<u8"),  # of the decoded body
        ("length", "<u4"),  # of the record; 0: no copy
        ("file", "<u4"),  # number of the archive file
    ]
)
HABIT = np.dtype([("changes", "<u4"), ("time", "<u8")])  # of a domain's pages: changes seen, and seconds
ENDED = pa.schema([*URLS, ("visited", pa.uint8()), ("news", pa.uint8()), ("at", pa.float64())])
LEARNED = pa.schema([("key", pa.uint64()), ("record", pa.binary(KNOWN.itemsize))])


class Before(NamedTuple):
    """Results of earlier visits to n pages; zero for pages without one."""

    visited: npt.NDArray[np.uint8]  # a `Visited` for each
    at: Column  # unix seconds: when their content was last brought, or found to be the same
    copies: Values  # dtype `COPY`


class _Visits(NamedTuple):
    """Visits that ended, n rows."""

    host: U64
    belief: Belief  # before
    signals: Column  # since the visit before
    news: npt.NDArray[np.integer]
    since: Column  # seconds


class Again:
    """The queue of known pages to visit, the pages that rest, and the history of all."""

    def __init__(
        self, store: Store, memory_bytes: int, state: Mapping[str, Any] | None = None, domains: Domains | None = None
    ) -> None:
        """`domains` has the in-degrees, if pages are weighed by them."""
        saved = state or {}
        self._domains = domains
        self.weights = Weights()
        self._known = Drum(store, "known", saved.get("known"), value=KNOWN, aux=ENDED, memory_bytes=memory_bytes)
        self._copies = Drum(store, "copies", saved.get("copies"), value=COPY, memory_bytes=memory_bytes)
        self._habits = Drum(
            store, "habits", saved.get("habits"), value=HABIT, combine=Combine.ADD, memory_bytes=memory_bytes
        )
        self._evidence = Drum(store, "evidence", saved.get("evidence"), value=EVIDENCE, memory_bytes=memory_bytes)
        self._told = Told(store, saved.get("told"))
        self._found = NewLinks(store, memory_bytes, saved.get("found"))
        self._queue = DiskQueue(store, "again", URLS, saved.get("queue"), pack=True)
        self._resting = RestingPages(store, saved)
        self._gone = GonePages(store, saved.get("gone"))
        self._learned = DiskQueue(store, "learned", LEARNED, saved.get("learned"), pack=True)
        self._left = len(self._queue)  # rows not looked at for this level
        self._lines = Lines()
        self.freshness = Freshness(*saved.get("standing", ()))
        self._calibration = Calibration(saved.get("calibration", (0.0, 0.0, 0.0)))
        self._changes, self._time = saved.get("sums", (0.0, 0.0))  # of all pages: changes seen, and seconds
        self.rows = int(saved.get("rows", 0))  # learned from the table of pages

    def __repr__(self) -> str:
        return f"Again({len(self)} waiting, {self.resting} resting, {len(self._known)} known)"

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
        self._copies.update(u64(ended, "key")[copied], copies[copied])
        if self._copies.full:
            self._copies.settle()
        self._known.check(u64(ended, "key"), aux=ended)
        if self._known.full:
            self._absorb(self._told.gathered(0.0))
        self.rows += ended.num_rows

    def pass_over(self, rows: int) -> None:
        """Count `rows` of the table of pages that are of other shards."""
        self.rows += rows

    def note(self, dated: pa.RecordBatch) -> None:
        """Note when lists say that pages changed (schema `DATED`); the next plan uses it."""
        self._told.note(dated)

    def met(self, pages: U64) -> None:
        """Note that a new URL was found on each of `pages` (uint64[n], with repeats)."""
        if len(self._known):
            self._found.note(pages[self.knows(pages)])

    def plan(self, now: float, terms: Terms, *, by_line: bool = False) -> Iterator[None]:
        """Queue the pages that are due at `now` (unix seconds) on these `terms`, those worth most first; `by_line`,
        only as many as there is room for. `get` gives them once the plan was iterated to its end. The caller may pause
        it after each batch, or give it up."""
        signals = self._told.gathered(now - terms.greatest_s if terms.greatest_s else 0.0)
        self._absorb(signals)
        self._copies.settle()
        for urls in chain(self._gone.due(now), self._queue.drain(BATCH_ROWS) if terms.most is not None else ()):
            self._rest(urls)  # also those that wait, because a limited pass chooses among all
            yield
        choice = Choice(now, terms, self._lines.room() if by_line else None, self._calibration)
        lists = False
        for beliefs in self._resting.beliefs():
            resting = self._read(beliefs, signals)
            choice.count(resting)
            lists |= bool(resting.first.any())
            yield
        if choice.settle():
            yield from self._choose(choice, signals, lists_first=lists and not by_line)
        self._told.settle(signals)
        self._left = len(self._queue)
        self.freshness = choice.freshness if by_line else Freshness()

    def _rest(self, urls: pa.RecordBatch) -> None:
        """Let known pages rest. Visits that brought nothing are forgotten."""
        keys = u64(urls, "key")
        records = self._known.stored(keys)
        believed: dict[str, Any] = {name: records[name] for name in ("at", "shape", "time")}
        believed["silent"] = np.zeros(len(keys))
        believed["finds"] = self._found.rates_of(keys).astype(np.float32)
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
        return Resting(hosts, at, at + silent, Belief(shape, time), first, self._trust_of(hosts), told, weight, finds)

    def _weighed(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Return `urls` with the in-degrees of their domains, if pages are weighed by them."""
        if self._domains is None or not self.weights.by_in_degree:
            return urls
        return with_column(urls, "in_degree", self._domains.in_degrees(u64(urls, "domain")))

    def _trust_of(self, hosts: U64) -> Trust:
        if not len(self._evidence):
            return no_trust(len(hosts))
        unique, of = np.unique(hosts, return_inverse=True)
        return Trust(*(column[of] for column in trust(self._evidence.values_of(unique))))

    def _absorb(self, signals: Signals) -> None:
        """Look up the history of pages whose visits ended, learn from these visits, and let the pages rest."""
        for answers in self._known.merge():
            assert answers.aux is not None and answers.values is not None
            records = self._learn(answers.aux, answers.values, signals)
            self._lines.visited(u64(answers.aux, "host")[answers.values["visited"] != Visited.NEVER])
            since, again = _since(answers.aux, answers.values)
            believed: dict[str, Any] = {name: records[name] for name in ("at", "shape", "time")}
            believed["silent"] = answers.aux.column("at").to_numpy() - records["at"]
            believed["finds"] = self._found.learn(answers.keys, again, since).astype(np.float32)
            there = records["visited"] != Visited.GONE
            pages = pages_of(self._weighed(answers.aux.select(URLS.names)), believed)
            self._resting.put(those(pages, there))
            self._gone.put(keep(answers.aux, ~there))
        while (rows := self._learned.get(BATCH_ROWS)) is not None:
            self._known.update(u64(rows, "key"), _records(rows.column("record")))
            if self._known.full:
                self._known.settle()
        self._known.settle()
        for part in (self._habits, self._evidence, self._found):
            part.settle()
        self._resting.take_over()

    def _learn(self, ended: pa.RecordBatch, before: Values, signals: Signals) -> Values:
        """Return the records of pages after their visits, given those from `before`. They are written after the
        merge."""
        news, at = numbers(ended, "news"), ended.column("at").to_numpy()
        records = before.copy()
        records["visited"] = numbers(ended, "visited")
        first = before["shape"] == 0
        domains, of = np.unique(u64(ended, "domain"), return_inverse=True)
        habits = self._habits.values_of(domains)[of]
        usual = (self._changes + 1) / (self._time + USUAL_S)
        common = prior(habits["changes"].astype(np.float64), habits["time"].astype(np.float64), usual)
        belief = Belief(np.where(first, common.shape, before["shape"]), np.where(first, common.time, before["time"]))
        since, again = _since(ended, before)
        visits = _Visits(u64(ended, "host"), belief, signals.since(u64(ended, "key"), before["at"]), news, since)
        after = faded(self._judge(visits, again & (numbers(ended, "kind") != Kind.LISTING)), common)
        for name, old, new in zip(("shape", "time"), belief, after, strict=True):
            records[name] = np.where(again, new, old)
        records["at"] = np.where(news != News.NONE, at, before["at"])
        learned = np.zeros(len(domains), HABIT)
        learned["changes"] = np.bincount(of, again & (news == News.CHANGED), len(domains))
        learned["time"] = np.bincount(of, np.where(again, since, 0.0), len(domains))
        self._habits.update(domains, learned)
        if self._habits.full:
            self._habits.settle()
        self._changes += float(learned["changes"].sum())
        self._time += float(learned["time"].sum())
        raw = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(KNOWN.itemsize), len(records), [None, pa.py_buffer(records.tobytes())]
        )
        self._learned.put(pa.RecordBatch.from_arrays([ended.column("key"), raw], schema=LEARNED))
        return records

    def _judge(self, visits: "_Visits", again: Mask) -> Belief:
        """Return the belief of pages after `visits`, which trusts signals as far as their hosts were right before.
        Visits to pages that had content before (`again`) are new evidence of that."""
        hosts, of = np.unique(visits.host, return_inverse=True)
        evidence = self._evidence.values_of(hosts)
        change = visits.news == News.CHANGED
        trusted = Trust(*(column[of] for column in trust(evidence)))
        speak = (np.bincount(of, visits.signals, len(hosts)) + evidence["visits"] > 0)[of] & again
        believed = fresh_chance(visits.belief, trusted, visits.signals, visits.since)
        self._calibration.note(believed[again], change[again], visits.since[again])
        if speak.any():
            belief = Belief(*(column[speak] for column in visits.belief))
            added = learned(evidence[of[speak]], belief, visits.signals[speak], change[speak], visits.since[speak])
            spoke = np.unique(of[speak])
            self._evidence.update(hosts[spoke], added_up(evidence, added, of[speak])[spoke])
            if self._evidence.full:
                self._evidence.settle()
        return seen(visits.belief, trusted, visits.signals, change, visits.since)

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
        if not len(self._known):
            return np.zeros(len(keys), np.bool_)
        known: Mask = self._known.stored(keys)["visited"] != Visited.NEVER
        return known

    def before(self, keys: U64) -> Before | None:
        """Return the results of earlier visits to the pages with `keys` (uint64[n]); None when no page is known."""
        if not len(self._known):
            return None
        known = self._known.stored(keys)  # no page was visited since the last plan
        return Before(known["visited"], known["at"], self._copies.stored(keys))

    # --- life

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield all pages that wait for a visit in this pass."""
        return self._queue.scan()

    def state(self) -> dict[str, Any]:
        return {
            "known": self._known.state(),
            "copies": self._copies.state(),
            "habits": self._habits.state(),
            "evidence": self._evidence.state(),
            "told": self._told.state(),
            "queue": self._queue.state(),
            **self._resting.state(),
            "found": self._found.state(),
            "learned": self._learned.state(),
            "gone": self._gone.state(),
            "calibration": self._calibration.state(),
            "sums": [self._changes, self._time],
            "rows": self.rows,
            "standing": list(self.freshness),
        }

    def close(self) -> None:
        for part in (self._known, self._copies, self._habits, self._evidence, self._told, self._found):
            part.close()
        for queue in (self._queue, self._resting, self._learned, self._gone):
            queue.close()


def _since(ended: pa.RecordBatch, before: Values) -> tuple[Column, Mask]:
    """Return for visits that `ended` the seconds since the page's content was last brought or confirmed, and which
    visits did that once more: bool[n]."""
    again: Mask = (before["at"] > 0) & (numbers(ended, "news") != News.NONE)
    return np.maximum(ended.column("at").to_numpy() - before["at"], 1.0), again


def _records(column: pa.FixedSizeBinaryArray) -> Values:
    return np.frombuffer(column.buffers()[1], KNOWN, column.offset + len(column))[column.offset :]
