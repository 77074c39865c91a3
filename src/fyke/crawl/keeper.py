"""Who keeps the crawl safe: when a checkpoint is taken, and what is in it.

A checkpoint names where every room stands at one instant between two turns of the loop. What is leased,
in the workbench or under way, is written down as waiting: after a crash it is fetched again. The loop
asks `due` and `take`; the fsyncs run in a thread beside it.

Invariant: record, rows and links of a visit are in a checkpoint together, or the visit is in it as waiting.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from fyke.core.batches import URLS
from fyke.core.clock import Clock
from fyke.disk.checkpoint import Checkpoint, Snapshot, newest
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

LEASED_ROWS = 4096


class Writer(Protocol):
    """Who writes files outside the shard: the archive and the tables."""

    def state(self) -> dict[str, Any]: ...

    def dirty_files(self) -> list[Path]: ...

    def durable(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Kept:
    """What a checkpoint is made of."""

    writers: Mapping[str, Writer]
    states: Mapping[str, Callable[[], Any]]
    leased: Callable[[], pa.RecordBatch]
    before: Callable[[], None]  # called first, on the loop


class Keeper:
    """Takes checkpoints of `kept`, `every_s` seconds apart."""

    def __init__(self, checkpoint: Checkpoint, kept: Kept, clock: Clock, every_s: float) -> None:
        self._store = checkpoint.store
        self._checkpoint = checkpoint
        self._kept = kept
        self._clock = clock
        self._every_s = every_s
        self._due = clock.now() + every_s
        self._leased: DiskQueue | None = None
        self.taken = 0

    def __repr__(self) -> str:
        return f"Keeper({self._checkpoint!r}, every {self._every_s} s)"

    def leased(self, saved: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """The URLs that were leased at the checkpoint `saved`."""
        if saved:
            self._leased = leased_queue(self._store, saved)
            while (batch := self._leased.get(LEASED_ROWS)) is not None:
                yield batch

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self._clock.now() >= self._due

    async def take(self) -> None:
        """Take a checkpoint now, and make it safe in a thread."""
        snapshot = self._snapshot("running")
        await asyncio.get_running_loop().run_in_executor(None, snapshot.make_durable)
        self._committed(snapshot)

    def last(self, ending: str) -> None:
        """The checkpoint of a crawl that is closing."""
        snapshot = self._snapshot(ending)
        snapshot.make_durable()
        self._committed(snapshot)

    def _snapshot(self, ending: str) -> Snapshot:
        kept = self._kept
        kept.before()
        states = {name: state() for name, state in kept.states.items()}
        states |= {name: writer.state() for name, writer in kept.writers.items()}
        states["leased"] = self._lease()
        dirty = [path for writer in kept.writers.values() for path in writer.dirty_files()]
        return self._checkpoint.take(states, {"ending": ending, "taken_at": self._clock.now()}, dirty)

    def _lease(self) -> dict[str, Any]:
        """Write down what is leased, in place of what was before."""
        if self._leased is not None:
            self._leased.destroy()
        self._leased = DiskQueue(self._store, "leased", URLS)
        self._leased.put(self._kept.leased())
        return self._leased.state()

    def _committed(self, snapshot: Snapshot) -> None:
        self._checkpoint.committed(snapshot)
        for writer in self._kept.writers.values():
            writer.durable()
        self._due = self._clock.now() + self._every_s
        self.taken += 1


def leased_queue(store: Store, saved: Mapping[str, Any]) -> DiskQueue:
    """The queue of what was leased at the checkpoint `saved`."""
    return DiskQueue(store, "leased", URLS, saved["leased"])


def saved_state(directory: Path) -> dict[str, Any]:
    """What the newest checkpoint in the shard `directory` holds, by name; empty when there is none.

    Raises StateDamaged.
    """
    manifest = newest(directory)
    return {**manifest.participants, **manifest.counters, "number": manifest.number} if manifest.number else {}
