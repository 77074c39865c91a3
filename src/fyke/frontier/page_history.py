"""What earlier visits to pages brought, and what is believed of them: the memory of the frontier's `KnownPages`.

Drums have the results of earlier visits. By the URL's key: `known`, the history of a page in a few numbers, and
`copies`, where the newest answer with its content is archived; both are asked when a page is handed out. `habits` adds
up how often pages of a domain change, for pages that were seen little. `evidence` counts how often the dates that lists
of a host give proved right (`revisit.signals`), for hosts that gave any.

Visits that ended wait for `learn`, which merges them with the history in sequence. Invariant: between two calls of
`learn` the history does not change.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, URLS, Kind, Mask, numbers, u64
from fyke.disk.drum import Drum
from fyke.disk.operations import Combine, Values
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.list_signals import Signals
from fyke.frontier.resting import BATCH_ROWS
from fyke.frontier.revisit.belief import Belief, Column, faded, prior
from fyke.frontier.revisit.calibration import Calibration
from fyke.frontier.revisit.signals import EVIDENCE, Trust, added_up, fresh_chance, learned, no_trust, seen, trust

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


class Learned(NamedTuple):
    """Visits that ended and what is known of their pages now, n rows."""

    visits: pa.RecordBatch  # schema `ENDED`
    before: Values  # dtype `KNOWN`
    after: Values  # the same
    since: Column  # seconds since the page's content was last brought or confirmed
    again: Mask  # whether the visit did that once more


class PageHistory:
    """The history of pages, in a store; `saved` has the parts of `state()` at the checkpoint."""

    def __init__(self, store: Store, memory_bytes: int, saved: Mapping[str, Any]) -> None:
        self._known = Drum(store, "known", saved.get("known"), value=KNOWN, aux=ENDED, memory_bytes=memory_bytes)
        self._copies = Drum(store, "copies", saved.get("copies"), value=COPY, memory_bytes=memory_bytes)
        self._habits = Drum(
            store, "habits", saved.get("habits"), value=HABIT, combine=Combine.ADD, memory_bytes=memory_bytes
        )
        self._evidence = Drum(store, "evidence", saved.get("evidence"), value=EVIDENCE, memory_bytes=memory_bytes)
        self._learned = DiskQueue(store, "learned", LEARNED, saved.get("learned"), pack=True)
        self.calibration = Calibration(saved.get("calibration", (0.0, 0.0, 0.0)))
        self._changes, self._time = saved.get("sums", (0.0, 0.0))  # of all pages: changes seen, and seconds

    def __repr__(self) -> str:
        return f"PageHistory({len(self._known)} known)"

    def __len__(self) -> int:
        return len(self._known)

    @property
    def full(self) -> bool:
        """True if enough visits wait for `learn`."""
        return self._known.full

    def put(self, ended: pa.RecordBatch, copied: Mask, copies: Values) -> None:
        """Let visits that ended (schema `ENDED`, n rows) wait for `learn`. `copies` [n] (dtype `COPY`) are the newest
        archived contents of their pages, where `copied`."""
        self._copies.update(u64(ended, "key")[copied], copies[copied])
        if self._copies.full:
            self._copies.settle()
        self._known.check(u64(ended, "key"), aux=ended)

    def learn(self, signals: Signals) -> Iterator[Learned]:
        """Look up the history of pages whose visits ended, learn from these visits, and yield both. The history has
        them once it was iterated to its end."""
        for answers in self._known.merge():
            assert answers.aux is not None and answers.values is not None
            since, again = _since(answers.aux, answers.values)
            after = self._learn(answers.aux, answers.values, signals, since, again)
            yield Learned(answers.aux, answers.values, after, since, again)
        while (rows := self._learned.get(BATCH_ROWS)) is not None:
            self._known.update(u64(rows, "key"), _records(rows.column("record")))
            if self._known.full:
                self._known.settle()
        for part in (self._known, self._habits, self._evidence):
            part.settle()

    def settle_copies(self) -> None:
        """Write down the copies that wait."""
        self._copies.settle()

    def _learn(self, ended: pa.RecordBatch, before: Values, signals: Signals, since: Column, again: Mask) -> Values:
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
        self.calibration.note(believed[again], change[again], visits.since[again])
        if speak.any():
            belief = Belief(*(column[speak] for column in visits.belief))
            added = learned(evidence[of[speak]], belief, visits.signals[speak], change[speak], visits.since[speak])
            spoke = np.unique(of[speak])
            self._evidence.update(hosts[spoke], added_up(evidence, added, of[speak])[spoke])
            if self._evidence.full:
                self._evidence.settle()
        return seen(visits.belief, trusted, visits.signals, change, visits.since)

    def trust_of(self, hosts: U64) -> Trust:
        """Return how far signals of `hosts` (uint64[n]) are trusted."""
        if not len(self._evidence):
            return no_trust(len(hosts))
        unique, of = np.unique(hosts, return_inverse=True)
        return Trust(*(column[of] for column in trust(self._evidence.values_of(unique))))

    def records(self, keys: U64) -> Values:
        """Return the history [n] (dtype `KNOWN`) of the pages with `keys` (uint64[n])."""
        return self._known.stored(keys)

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

    def state(self) -> dict[str, Any]:
        return {
            "known": self._known.state(),
            "copies": self._copies.state(),
            "habits": self._habits.state(),
            "evidence": self._evidence.state(),
            "learned": self._learned.state(),
            "calibration": self.calibration.state(),
            "sums": [self._changes, self._time],
        }

    def close(self) -> None:
        for part in (self._known, self._copies, self._habits, self._evidence):
            part.close()
        self._learned.close()


def _since(ended: pa.RecordBatch, before: Values) -> tuple[Column, Mask]:
    """Return for visits that `ended` the seconds since the page's content was last brought or confirmed, and which
    visits did that once more: bool[n]."""
    again: Mask = (before["at"] > 0) & (numbers(ended, "news") != News.NONE)
    return np.maximum(ended.column("at").to_numpy() - before["at"], 1.0), again


def _records(column: pa.FixedSizeBinaryArray) -> Values:
    return np.frombuffer(column.buffers()[1], KNOWN, column.offset + len(column))[column.offset :]
