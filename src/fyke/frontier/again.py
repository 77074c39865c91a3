"""Pages that were visited before, and which of them are visited again: the first stage of a pass over a crawl.

`fyke crawl --again` begins a pass. Every page is then in one of three places: among the visits that have ended since
the last pass began, which the table of pages has and `learn` is told; in the queue of those that rest, since a visit
was not worth it last time; or it waits for its visit, in this queue or a later stage. Of those of the first kind it is
looked up what was believed of them; then they rest too, what is believed with them. `plan` lets those wait whose visits
are worth most (`revisit.choice`), as many as are asked for, or as there is room for; without a bound all are visited.
Sitemaps and feeds come first in a pass, since they say what is new. From the queue pages go on through the robots gate
like any: they were let through by their domain's budget once.

What earlier visits brought is in two Drums by the URL's key: `known`, the history of a page in a few numbers, and
`copies`, where the newest answer with its content is archived. Both are asked when a page is handed out. A third,
`habits`, adds up how often pages of a domain change: what is believed of one that was seen little. What lists say of
changes waits in `told`; how far it is believed of a host (`revisit.signals`) is in `evidence`, of hosts that said
anything. `found` has the pages that brought links to new ones.

All is read and written in sequence: what was known is merged with the visits since the last plan, and a plan reads what
is believed of those that rest, and then reads and writes them whole (a pass with lists: twice). It goes on batch by
batch, and a checkpoint may come between two of them. Memory holds a batch. Invariant: a page is in one place, once.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, URLS, Kind, Mask, keep, numbers, u64, with_column
from fyke.disk.drum import Drum
from fyke.disk.operations import Combine, Values
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.domains import Domains
from fyke.frontier.found import NewLinks
from fyke.frontier.resting import BATCH_ROWS, BELIEVED, Pages, RestingPages, pages_of, those, urls_of
from fyke.frontier.revisit.belief import Belief, Column, faded, prior
from fyke.frontier.revisit.calibration import Calibration
from fyke.frontier.revisit.choice import Choice, Lines, Resting, Standing, Terms
from fyke.frontier.revisit.signals import EVIDENCE, Trust, added_up, fresh_chance, learned, no_trust, seen, trust
from fyke.frontier.told import Signals, Told
from fyke.frontier.weights import Weights

USUAL_S = 30 * 86400.0  # between changes of a page of which nothing is known


class Visited(IntEnum):
    """What the visit before says of a page."""

    NEVER = 0  # there was none
    THERE = 1  # or not known to be away: a server that fails says nothing of its pages
    MISSING = 2  # 404 or 410
    GONE = 3  # the same twice in a row: it is not asked for any more


class News(IntEnum):
    """What a visit says of the page's content."""

    NONE = 0  # it brought none
    SAME = 1
    CHANGED = 2  # or was met for the first time


KNOWN = np.dtype(
    [
        ("visited", "u1"),  # a `Visited`
        ("at", "<f8"),  # unix seconds: when its content was last brought, or found to be the same
        ("shape", "<f4"),  # what is believed of its rate of change, in seconds
        ("time", "<f4"),
    ]
)
COPY = np.dtype(
    [
        ("offset", "<u8"),  # of the record in its archive file
        ("fingerprint", "<u8"),  # of the decoded body
        ("length", "<u4"),  # of the record; 0: there is no copy
        ("file", "<u4"),  # number of the archive file
    ]
)
HABIT = np.dtype([("changes", "<u4"), ("time", "<u8")])  # of a domain's pages: changes seen, in so many seconds
ENDED = pa.schema([*URLS, ("visited", pa.uint8()), ("news", pa.uint8()), ("at", pa.float64())])
LEARNED = pa.schema([("key", pa.uint64()), ("record", pa.binary(KNOWN.itemsize))])


class Before(NamedTuple):
    """What earlier visits to n pages brought; zero where there were none."""

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
    """The queue of known pages, those that rest, and what is known of all."""

    def __init__(
        self, store: Store, memory_bytes: int, state: Mapping[str, Any] | None = None, domains: Domains | None = None
    ) -> None:
        """`domains` know the in-degrees, where pages are weighed by these."""
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
        self._learned = DiskQueue(store, "learned", LEARNED, saved.get("learned"), pack=True)
        self._left = len(self._queue)  # rows that were not looked at for this level
        self._lines = Lines()
        self.standing = Standing(*saved.get("standing", ()))
        self._calibration = Calibration(saved.get("calibration", (0.0, 0.0, 0.0)))
        self._changes, self._time = saved.get("sums", (0.0, 0.0))  # of all pages: changes seen, in so much time
        self.rows = int(saved.get("rows", 0))  # of the table of pages that were learned

    def __repr__(self) -> str:
        return f"Again({len(self)} waiting, {self.resting} resting, {len(self._known)} known)"

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def resting(self) -> int:
        """Pages that wait for a pass in which a visit is worth it."""
        return len(self._resting)

    # --- a pass begins

    def learn(self, ended: pa.RecordBatch, copied: Mask, copies: Values) -> None:
        """Visits that ended (schema `ENDED`, n rows), in order; `copies` [n] (dtype `COPY`) are what the archive has of
        their pages from now on, where `copied`. They wait for `plan`."""
        self._copies.update(u64(ended, "key")[copied], copies[copied])
        if self._copies.full:
            self._copies.settle()
        self._known.check(u64(ended, "key"), aux=ended)
        if self._known.full:
            self._absorb(self._told.gathered(0.0))
        self.rows += ended.num_rows

    def pass_over(self, rows: int) -> None:
        """So many rows of the table of pages are of other shards."""
        self.rows += rows

    def note(self, dated: pa.RecordBatch) -> None:
        """Lists say when pages changed (schema `DATED`); the next plan hears of it."""
        self._told.note(dated)

    def met(self, pages: U64) -> None:
        """A URL that nobody had met was found on each of `pages` (uint64[n], with repeats)."""
        if len(self._known):
            self._found.note(pages[self.knows(pages)])

    def plan(self, now: float, terms: Terms, *, by_line: bool = False) -> Iterator[None]:
        """Let pages wait for a visit: of those that are due at `now` (unix seconds) on these `terms` the ones whose
        visits are worth most; `by_line`, as many as there is room for. They wait once the plan is read to its end; it
        may rest, and be given up, after each batch."""
        signals = self._told.gathered(now - terms.greatest_s if terms.greatest_s else 0.0)
        self._absorb(signals)
        self._copies.settle()
        if terms.most is not None:
            self._rest_waiting()
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
        self.standing = choice.standing if by_line else Standing()

    def _rest_waiting(self) -> None:
        """Let those rest that wait: of a pass that visits so many, they are chosen among all."""
        for urls in self._queue.drain(BATCH_ROWS):
            keys = u64(urls, "key")
            records = self._known.stored(keys)
            believed: dict[str, Any] = {name: records[name] for name in ("at", "shape", "time")}
            believed["silent"] = np.zeros(len(keys))  # that a visit brought nothing is forgotten
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
        """Pages that rest (schema `BELIEFS`), for a choice."""
        at, silent, shape, time, finds = (beliefs.column(name).to_numpy().astype(np.float64) for name in BELIEVED)
        hosts, first = u64(beliefs, "host"), numbers(beliefs, "kind") == Kind.LISTING
        told = signals.since(u64(beliefs, "key"), at)
        weight = self.weights.of(beliefs)
        return Resting(hosts, at, at + silent, Belief(shape, time), first, self._trust_of(hosts), told, weight, finds)

    def _weighed(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """`urls` with the in-degrees of their domains, where pages are weighed by these."""
        if self._domains is None or not self.weights.by_in_degree:
            return urls
        return with_column(urls, "in_degree", self._domains.in_degrees(u64(urls, "domain")))

    def _trust_of(self, hosts: U64) -> Trust:
        if not len(self._evidence):
            return no_trust(len(hosts))
        unique, of = np.unique(hosts, return_inverse=True)
        return Trust(*(column[of] for column in trust(self._evidence.values_of(unique))))

    def _absorb(self, signals: Signals) -> None:
        """Look up what was known of the pages whose visits ended, learn from these, and let the pages rest."""
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
        while (rows := self._learned.get(BATCH_ROWS)) is not None:
            self._known.update(u64(rows, "key"), _records(rows.column("record")))
            if self._known.full:
                self._known.settle()
        self._known.settle()
        for part in (self._habits, self._evidence, self._found):
            part.settle()
        self._resting.take_over()

    def _learn(self, ended: pa.RecordBatch, before: Values, signals: Signals) -> Values:
        """The records of pages after their visits, by those from `before`. They are written when the merge is over."""
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
        """What is believed of pages after `visits`, by what their hosts said before; those to pages visited `again`
        are evidence of how far it is true."""
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
        """The next `rows` pages or fewer that are not deeper than `level`; None when there are no more."""
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
        """Known pages (schema `URLS`) wait for a visit that they did not get in the pass before."""
        self._queue.put(urls)
        self._left = len(self._queue)

    @property
    def spent(self) -> bool:
        """Whether none is left that is not too deep."""
        return self._left <= 0

    def next_level(self) -> None:
        """The level is another one: look at all of them again."""
        self._left = len(self._queue)

    def knows(self, keys: U64) -> Mask:
        """Which of the pages with `keys` (uint64[n]) were visited before the last plan: bool[n]."""
        if not len(self._known):
            return np.zeros(len(keys), np.bool_)
        known: Mask = self._known.stored(keys)["visited"] != Visited.NEVER
        return known

    def before(self, keys: U64) -> Before | None:
        """What earlier visits to the pages with `keys` (uint64[n]) brought; None when nothing is known of any page."""
        if not len(self._known):
            return None
        known = self._known.stored(keys)  # none of them was visited since the last plan
        return Before(known["visited"], known["at"], self._copies.stored(keys))

    # --- life

    def scan(self) -> Iterator[pa.RecordBatch]:
        """All that wait for a visit in this pass."""
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
            "calibration": self._calibration.state(),
            "sums": [self._changes, self._time],
            "rows": self.rows,
            "standing": list(self.standing),
        }

    def close(self) -> None:
        for part in (self._known, self._copies, self._habits, self._evidence, self._told, self._found):
            part.close()
        for queue in (self._queue, self._resting, self._learned):
            queue.close()


def _since(ended: pa.RecordBatch, before: Values) -> tuple[Column, Mask]:
    """How long after the visits before these `ended`, in seconds, and which brought what had been brought before."""
    again: Mask = (before["at"] > 0) & (numbers(ended, "news") != News.NONE)
    return np.maximum(ended.column("at").to_numpy() - before["at"], 1.0), again


def _records(column: pa.FixedSizeBinaryArray) -> Values:
    return np.frombuffer(column.buffers()[1], KNOWN, column.offset + len(column))[column.offset :]
