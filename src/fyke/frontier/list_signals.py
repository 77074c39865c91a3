"""Signals: dates of changes that sitemaps and feeds gave, which wait until the pages are visited.

`note` takes dates as they come. Each plan has them `gathered` by page: the newest date, and how many dates came, each
later than the one before. They are *spent* once the newest is no later than the visit to the page, and dropped if it is
older than the greatest time between two visits. Signals are hints, told again by the next list: `MOST` are kept, the
newest. Invariant: memory holds gathered signals only while a plan is made.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, keep, numbers, u64
from fyke.core.messages import DATED
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.revisit.belief import Column

MOST = 1 << 20
NEWS = pa.schema([DATED.field("key"), DATED.field("at")])
TOLD = NEWS.append(pa.field("times", pa.uint8()))  # dates given for the page, each later than the one before


class Signals:
    """Signals of m pages, sorted by key."""

    def __init__(self, told: pa.RecordBatch) -> None:
        self._told = told
        self._keys = u64(told, "key")
        self._at: Column = numbers(told, "at").astype(np.float64)
        self._times: Column = numbers(told, "times").astype(np.float64)
        self._spent = np.zeros(len(self._keys), np.bool_)

    def __len__(self) -> int:
        return len(self._keys)

    def since(self, keys: U64, at: Column) -> Column:
        """Return how many signals each of the pages with `keys` (uint64[n]) had since it was visited `at`: [n]. Marks
        signals no later than that visit as spent."""
        if not len(self):
            return np.zeros(len(keys))
        places = np.minimum(np.searchsorted(self._keys, keys), len(self) - 1)
        met = self._keys[places] == keys
        later = self._at[places] > at
        self._spent[places[met & ~later]] = True
        return np.where(met & later, self._times[places], 0.0)

    def left(self) -> pa.RecordBatch:
        """Return the signals that are not spent."""
        return keep(self._told, ~self._spent)


NONE = Signals(pa.RecordBatch.from_pylist([], TOLD))


class ListSignals:
    """Signals on disk: those noted since the last plan, and older ones that are not spent."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._news = DiskQueue(store, "dated", NEWS, saved.get("news"))
        self._waiting = DiskQueue(store, "told", TOLD, saved.get("waiting"))

    def __repr__(self) -> str:
        return f"ListSignals({len(self._news)} new, {len(self._waiting)} waiting)"

    def note(self, dated: pa.RecordBatch) -> None:
        """Note the dates (schema `DATED`) that lists give of pages. Beyond `MOST` they are dropped."""
        if len(self._news) < MOST:
            self._news.put(dated.select(NEWS.names))

    def gathered(self, oldest: float) -> Signals:
        """Return all waiting signals that are no older than `oldest` (unix seconds)."""
        if not len(self._news) and not len(self._waiting):
            return NONE
        waiting, news = _taken(self._waiting), _taken(self._news)
        signals = Signals(_by_page(_joined(waiting, news), waiting.num_rows, oldest))
        self._waiting.put(signals.left())
        return signals

    def settle(self, signals: Signals) -> None:
        """Keep those of the gathered `signals` that are not spent."""
        _taken(self._waiting)
        self._waiting.put(signals.left())

    def of(self, key: int, since: float) -> float:
        """Return how many signals of one page came after `since` (unix seconds), and take none out."""
        both = pa.concat_batches([*self._waiting.scan(), NONE.left()])
        news = pa.concat_batches([*self._news.scan(), NONE.left().select(NEWS.names)])
        signals = Signals(_by_page(_joined(both, news), both.num_rows, 0.0))
        return float(signals.since(np.array([key], np.uint64), np.array([since]))[0])

    def state(self) -> dict[str, Any]:
        return {"news": self._news.state(), "waiting": self._waiting.state()}

    def close(self) -> None:
        self._news.close()
        self._waiting.close()


def _taken(queue: DiskQueue) -> pa.RecordBatch:
    found = queue.get(len(queue)) if len(queue) else None
    return found if found is not None else pa.RecordBatch.from_pylist([], schema=queue.schema)


def _joined(waiting: pa.RecordBatch, news: pa.RecordBatch) -> pa.RecordBatch:
    ones = pa.array(np.ones(news.num_rows, np.uint8))
    return pa.concat_batches([waiting, pa.RecordBatch.from_arrays([*news.columns, ones], schema=TOLD)])


def _by_page(told: pa.RecordBatch, waited: int, oldest: float) -> pa.RecordBatch:
    """Return a row a page of the rows `told`: the first `waited` have one a page, the others a date each. Drops dates
    before `oldest`."""
    if not told.num_rows:
        return told
    keys, at, times = u64(told, "key"), numbers(told, "at"), numbers(told, "times").astype(np.int64)
    order = np.lexsort((np.arange(len(keys)) >= waited, at, keys))
    keys, at, times = keys[order], at[order], times[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    repeats = ~first
    repeats[1:] &= at[1:] == at[:-1]
    times[repeats] = 0
    begins = np.flatnonzero(first)
    ends = np.append(begins[1:], len(keys)) - 1
    from_row = _last_of_group(order < waited, begins)  # dates no later than the waiting one were told before
    sums = np.cumsum(times)
    count = np.minimum(sums[ends] - sums[from_row] + times[from_row], 255).astype(np.uint8)
    newest = at[ends]
    kept = newest >= oldest
    if kept.sum() > MOST:
        kept &= newest >= np.partition(newest, -MOST)[-MOST]
    columns: list[npt.NDArray[Any]] = [keys[ends], newest, count]
    return pa.RecordBatch.from_arrays([pa.array(column[kept]) for column in columns], schema=TOLD)


def _last_of_group(marked: npt.NDArray[np.bool_], begins: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the place of each group's last marked row, or of its first row if it has none."""
    places = np.zeros(len(marked), np.intp)
    places[begins] = begins
    places[marked] = np.flatnonzero(marked)
    found: npt.NDArray[np.intp] = np.maximum.reduceat(places, begins)
    return found
