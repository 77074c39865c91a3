"""URLs that may be fetched, in order: the ready queues, and the visits for which a host had no room.

URLs that passed every stage come in, and go into the window, of which each host holds only its share
(`fyke.frontier.window`). The crawl order (`fyke.frontier.order`) gives each URL one of `LEVELS` queues, as Mercator's
front queues do. A level is drained twice as fast as the next. Differs: by turns and not by chance.

Visits beyond a host's share come back and wait on disk in one of `SPILLS` queues by host, so that a slow giant delays
only its own pages and never crowds out the rest (IRLbot, section 1.3). Some go ahead of their hosts' others, in a queue
of their own (`fyke.frontier.rare`). A spill queue is read again when a host in it runs low.

Bounded by the disk; memory holds one batch a queue. Invariant: a URL that came in is in exactly one queue, or was
handed out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import EMPTY, URLS, Mask, concat, keep, u64
from fyke.core.plugins import CrawlOrder
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.order import LAST, LEVELS

SPILLS = 16
AHEAD = SPILLS  # the place of the queue of those that go ahead


class Ready:
    """The ready queues, one a level, and the spill queues."""

    def __init__(self, store: Store, order: CrawlOrder, state: Mapping[str, Any] | None = None) -> None:
        states = state or {}
        self._order = order
        self._taken = 0
        self.failures: Counter[str] = Counter()  # batches for which the plug-in raised or gave nonsense
        self._levels = [DiskQueue(store, f"ready-{n}", URLS, states.get(f"ready-{n}")) for n in range(LEVELS)]
        self._spills = [DiskQueue(store, f"spill-{n:02}", URLS, states.get(f"spill-{n:02}")) for n in range(SPILLS + 1)]

    def __repr__(self) -> str:
        return f"Ready({self.waiting} ready, {self.spilled} spilled)"

    def __len__(self) -> int:
        return self.waiting + self.spilled

    @property
    def waiting(self) -> int:
        """Number of rows that were never handed out."""
        return sum(map(len, self._levels))

    @property
    def spilled(self) -> int:
        """Number of rows that wait for room at their host."""
        return sum(map(len, self._spills))

    def put(self, urls: pa.RecordBatch) -> None:
        """Let `urls` wait, each in the level that the order gives it, or in the last if that fails."""
        levels = self._levels_of(urls)
        for level in np.unique(levels).tolist():
            self._levels[level].put(keep(urls, levels == level))

    def _levels_of(self, urls: pa.RecordBatch) -> npt.NDArray[np.integer]:
        try:
            levels = np.clip(np.asarray(self._order.levels(urls)).astype(np.float64), 0, LAST)
        except Exception:  # noqa: BLE001 - a plug-in may raise anything; it then orders nothing
            levels = np.zeros(0)
        if levels.shape == (urls.num_rows,) and not np.isnan(levels).any():
            return levels.astype(np.intp)
        self.failures[type(self._order).__name__] += 1
        return np.full(urls.num_rows, LAST, np.intp)

    def take(self, rows: int) -> pa.RecordBatch:
        """Return the next `rows` URLs or fewer: from each level that has some twice as many as from the next.

        Over all calls, every second URL is of the first level, every second other one of the next, and so on. So no
        level starves, even if the caller takes URLs one by one.
        """
        filled = [queue for queue in self._levels if len(queue)]
        begin, self._taken = self._taken, self._taken + rows
        batches = []
        spare = 0  # what levels lacked of their shares
        for place, queue in enumerate(filled):
            share = rows if place == len(filled) - 1 else _ruled(self._taken, place) - _ruled(begin, place)
            rows -= share
            batch = queue.get(share + spare)
            spare += share
            if batch is not None:
                batches.append(batch)
                spare -= batch.num_rows
        return concat(batches)

    def put_back(self, urls: pa.RecordBatch, ahead: Mask | None = None) -> npt.NDArray[np.int64]:
        """Let `urls` (n rows), for which their hosts had no room, wait in the spill queues, some of them `ahead` of
        their hosts' others (bool[n], None for none). Returns their places: int64[n]."""
        places: npt.NDArray[np.int64] = (u64(urls, "host") % np.uint64(SPILLS)).astype(np.int64)
        if ahead is not None:
            places[ahead] = AHEAD
        for place in np.unique(places).tolist():
            self._spills[place].put(keep(urls, places == place))
        return places

    def spilled_at(self, place: int) -> int:
        """Return the number of rows in the spill queue at `place`: 0 to `SPILLS` - 1, of hosts whose keys have this
        remainder, or `AHEAD`."""
        return len(self._spills[place])

    def take_spilled(self, place: int, rows: int) -> pa.RecordBatch:
        """Return the next `rows` URLs of a spill queue or fewer."""
        batch = self._spills[place].get(rows)
        return EMPTY if batch is None else batch

    def drain(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Take out and yield every URL, `rows` at a time: spilled ones first, then by level."""
        for queue in (*self._spills, *self._levels):
            yield from queue.drain(rows)

    def queues(self) -> Sequence[DiskQueue]:
        """Return all queues, for checkpoints and explanations."""
        return [*self._levels, *self._spills]

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield every URL that waits here."""
        for queue in self.queues():
            yield from queue.scan()

    def state(self) -> dict[str, Any]:
        return {queue.name: queue.state() for queue in self.queues()}

    def close(self) -> None:
        for queue in self.queues():
            queue.close()


def _ruled(count: int, place: int) -> int:
    """Return how many of 1 to `count` end in exactly `place` binary zeros, as marks of that length on a ruler."""
    return (count + (1 << place)) >> (place + 1)
