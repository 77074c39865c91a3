"""What may be fetched, in order: the ready queue, and the visits for which a host had no room.

Filled by the frontier with URLs that passed every stage; emptied by the loop into the workbench,
whose hosts each hold only their share. What exceeds the share comes back here and waits on disk in one
of `SPILLS` queues by host, so that a slow giant delays only its own pages and never crowds out the rest
(IRLbot, section 1.3). A spill queue is read again when a host in it runs low.

Bounded by the disk; memory holds one batch a queue. Invariant: a URL that came in is in exactly one
queue, or was handed out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, URLS, u64
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

SPILLS = 16


@dataclass(frozen=True, slots=True)
class ReadyStatistics:
    """Rows that wait on disk."""

    ready: int
    spilled: int


class Ready:
    """The ready queue and the spill queues."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        states = state or {}
        self._ready = DiskQueue(store, "ready", URLS, states.get("ready"))
        self._spills = [DiskQueue(store, f"spill-{n:02}", URLS, states.get(f"spill-{n:02}")) for n in range(SPILLS)]

    def __repr__(self) -> str:
        return f"Ready({len(self._ready)} ready, {self.spilled} spilled)"

    def __len__(self) -> int:
        return len(self._ready) + self.spilled

    @property
    def waiting(self) -> int:
        """Rows that were never handed out."""
        return len(self._ready)

    @property
    def spilled(self) -> int:
        """Rows that wait for room at their host."""
        return sum(map(len, self._spills))

    def put(self, urls: pa.RecordBatch) -> None:
        """Let `urls` wait."""
        self._ready.put(urls)

    def take(self, rows: int) -> pa.RecordBatch:
        """The next `rows` URLs or fewer."""
        batch = self._ready.get(rows)
        return EMPTY if batch is None else batch

    def put_back(self, urls: pa.RecordBatch) -> None:
        """Let `urls`, for which their hosts had no room, wait in the spill queues."""
        places = u64(urls, "host") % np.uint64(SPILLS)
        for place in np.unique(places):
            self._spills[int(place)].put(urls.filter(pa.array(places == place)))

    def spilled_with(self, host: int) -> int:
        """Rows in the spill queue of the host with this key, its own and others'."""
        return len(self._spills[host % SPILLS])

    def take_spilled(self, host: int, rows: int) -> pa.RecordBatch:
        """The next `rows` URLs of that spill queue or fewer."""
        batch = self._spills[host % SPILLS].get(rows)
        return EMPTY if batch is None else batch

    def longest_spill(self) -> int:
        """A host key whose spill queue is the longest."""
        return max(range(SPILLS), key=lambda place: len(self._spills[place]))

    def queues(self) -> Sequence[DiskQueue]:
        """All queues, for checkpoints and explanations."""
        return [self._ready, *self._spills]

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Every URL that waits here."""
        for queue in self.queues():
            yield from queue.scan()

    def state(self) -> dict[str, Any]:
        return {queue.name: queue.state() for queue in self.queues()}

    def statistics(self) -> ReadyStatistics:
        return ReadyStatistics(len(self._ready), self.spilled)

    def close(self) -> None:
        for queue in self.queues():
            queue.close()
