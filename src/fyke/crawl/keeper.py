"""When is a checkpoint taken, and what is in it?

A checkpoint names the state of every room at one instant between two turns of the loop. A visit that is handed out is
written down as waiting: after a crash it is fetched again. The loop calls `due` and `take`; the fsyncs run in a thread
beside it.

Invariant: record, rows and links of a visit are in a checkpoint together, or the visit is in it as waiting.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from fyke.archive.summaries import CLOSING
from fyke.core.clock import Clock
from fyke.disk.checkpoint import Checkpoint, Snapshot


class Stateful(Protocol):
    """A room with a state in each checkpoint."""

    def state(self) -> Any: ...


class Writer(Stateful, Protocol):
    """A room that writes files outside the shard: the archive and the tables."""

    def dirty_files(self) -> list[Path]: ...

    def durable(self) -> None: ...


class Keeper:
    """Takes checkpoints of `rooms` and `writers`, by name, `every_s` seconds apart."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        rooms: Mapping[str, Stateful],
        writers: Mapping[str, Writer],
        clock: Clock,
        every_s: float,
        settings: Mapping[str, int] | None = None,
    ) -> None:
        """`settings` are the digests of what was asked (`CrawlDirectory.settings_digests`)."""
        self._checkpoint = checkpoint
        self._rooms = rooms
        self._writers = writers
        self._clock = clock
        self._every_s = every_s
        self._settings = {} if settings is None else {"settings": dict(settings)}
        others = settings is not None and checkpoint.counters.get("settings", settings) != settings
        self._due = clock.now() + (0.0 if others else every_s)  # readers must not take the new settings for damage
        self.taken = 0

    def __repr__(self) -> str:
        return f"Keeper({self._checkpoint!r}, every {self._every_s} s)"

    def due(self) -> bool:
        """Return whether it is time for a checkpoint."""
        return self._clock.now() >= self._due

    async def take(self) -> None:
        """Take a checkpoint now, and make it safe in a thread."""
        snapshot = self._snapshot("running")
        await asyncio.get_running_loop().run_in_executor(None, snapshot.make_durable)
        self._committed(snapshot)

    def last(self, ending: str) -> None:
        """Take the checkpoint of a crawl that is closing."""
        snapshot = self._snapshot(ending, summaries=CLOSING)
        snapshot.make_durable()
        self._committed(snapshot)

    def _snapshot(self, ending: str, **more: Any) -> Snapshot:
        states = more | {name: room.state() for name, room in {**self._rooms, **self._writers}.items()}
        dirty = [path for writer in self._writers.values() for path in writer.dirty_files()]
        counters = {"ending": ending, **self._clock.noted(), **self._settings}
        return self._checkpoint.take(states, counters, dirty)

    def _committed(self, snapshot: Snapshot) -> None:
        self._checkpoint.committed(snapshot)
        for writer in self._writers.values():
            writer.durable()
        self._due = self._clock.now() + self._every_s
        self.taken += 1
