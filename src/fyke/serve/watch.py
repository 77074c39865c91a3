"""The state of a crawl: live from its process while one runs, otherwise from its newest checkpoint.

Each crawl on the shelf has one, which the server runs as long as it lives. The dashboard's event streams, the API and
the metrics read `latest`. It listens once a second at the control socket of a running crawl (`fyke.crawl.control`).
Each order has a connection of its own there. Invariant: memory is bounded however long it watches; `latest` is
replaced and never changed.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory
from fyke.archive.figures import Figures
from fyke.archive.inspect import status_of
from fyke.archive.orders import block, connected, ordered
from fyke.core.errors import FykeError, NotACrawl

LOOK_S = 2.0  # between looks at a crawl that tells nothing
SILENCE_S = 15.0  # a running crawl silent for longer is left until the next look
RATE_S = 5.0  # over which pages and bytes a second are measured
MOST_SAMPLES = 600  # for the plots


class HistoryPoint(NamedTuple):
    """Figures of an instant that are plotted."""

    at: float  # unix seconds
    pages_s: float
    bytes_s: float
    waiting: int
    awake: int  # hosts
    memory_bytes: int


class History:
    """The samples of one crawl since it was first heard, in order of time, `MOST_SAMPLES` at most. When it is full,
    every second sample goes, and from then on samples are taken half as often: it always spans the whole time."""

    def __init__(self) -> None:
        self._samples: list[HistoryPoint] = []
        self._every_s = 0.0

    def __repr__(self) -> str:
        return f"History({len(self._samples)} samples, {self._every_s} s apart)"

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def samples(self) -> list[HistoryPoint]:
        return list(self._samples)

    def add(self, sample: HistoryPoint) -> None:
        """Take `sample`, if it is not too near to the one before."""
        if self._samples and sample.at - self._samples[-1].at < self._every_s:
            return
        self._samples.append(sample)
        if len(self._samples) > MOST_SAMPLES:
            del self._samples[1::2]
            self._every_s = max(0.9, 2 * self._every_s)


@dataclass(frozen=True, slots=True)
class CrawlState:
    """State of a crawl at an instant. `state`: running, paused, stopped, finished, killed, …, or none."""

    state: str = "none"
    live: bool = False  # from the crawl itself, not its checkpoint
    at: float = 0.0  # unix seconds
    pages_s: float = 0.0
    bytes_s: float = 0.0
    trouble: str = ""  # why nothing is known
    figures: Figures | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as browsers and programs read it."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**told, "figures": {} if self.figures is None else self.figures.as_dict()}


class Watch:
    """Watcher of the crawl in `directory`; its `run` must go on in a task."""

    def __init__(self, directory: CrawlDirectory) -> None:
        self._directory = directory
        self._changed = asyncio.Event()
        self.latest = CrawlState()
        self.history = History()
        self._lately: list[tuple[float, int, int]] = []
        self._ended = False
        self._looked: Any = None  # checkpoint and state at the last look

    def __repr__(self) -> str:
        return f"Watch({self._directory!r}, {self.latest.state})"

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            with suppress(OSError, TimeoutError, ValueError, KeyError, TypeError):
                await self._listen()
            self._lately.clear()
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def changes(self) -> AsyncIterator[CrawlState]:
        """Yield the latest state, and each new one until the end; a slow reader misses states between."""
        while not self._ended:
            changed = self._changed
            yield self.latest
            await changed.wait()

    def end(self) -> None:
        """End the streams of all that wait for changes, because the server ends."""
        self._ended = True
        self._changed.set()

    async def _listen(self) -> None:
        """Hear the crawl until it ends the stream. Raises OSError if no crawl listens."""
        async with connected(self._directory.state) as (reader, _):
            while line := await asyncio.wait_for(reader.readline(), SILENCE_S):
                self._heard(Figures.read(json.loads(line)["figures"]))

    def _heard(self, figures: Figures) -> None:
        now = figures.statistics
        at, pages, size_bytes = figures.at, now.pages, now.bytes
        self._lately = [one for one in self._lately if at - RATE_S <= one[0] < at] or self._lately[-1:]
        self._lately.append((at, pages, size_bytes))
        began, pages_then, bytes_then = self._lately[0]
        if began == at:  # a rate takes two
            return
        pages_s, bytes_s = (pages - pages_then) / (at - began), (size_bytes - bytes_then) / (at - began)
        state = "paused" if figures.held else "running"
        self._tell(CrawlState(state, True, at, round(pages_s, 2), round(bytes_s, 1), "", figures))
        awake = now.hosts - now.hosts_asleep
        self.history.add(HistoryPoint(at, pages_s, bytes_s, now.waiting, awake, now.memory_bytes))

    def _tell(self, latest: CrawlState) -> None:
        self.latest = latest
        self._changed.set()
        self._changed = asyncio.Event()

    async def look(self) -> None:
        """Read the newest checkpoint, if it is another than before."""
        try:
            looked, latest = await asyncio.to_thread(self._read)
        except FykeError as error:
            looked, latest = None, CrawlState("none", trouble="" if isinstance(error, NotACrawl) else str(error))
        if self.latest.live or looked != self._looked or latest.state != self.latest.state:
            self._looked = looked
            self._tell(latest)

    def _read(self) -> tuple[Any, CrawlState]:
        status = status_of(self._directory)
        looked = status.checkpoint, status.state
        if looked == self._looked and not self.latest.live:
            return looked, self.latest
        blocked = AskedLater(self._directory.state).blocked
        figures = Figures(at=status.taken_at, statistics=status.statistics, blocked=blocked)
        return looked, CrawlState(status.state, False, status.taken_at, figures=figures)

    async def order(self, what: str, **more: Any) -> tuple[bool, Any]:
        """Have the crawl do `what`; return whether it did, and what it says. Raises NotACrawl if none runs."""
        try:
            return await ordered(self._directory.state, what, **more)
        except (OSError, TimeoutError, ValueError):
            raise NotACrawl(f"{self._directory.path}: no running crawl answers here") from None

    async def block(self, host: str, blocked: bool) -> tuple[bool, str]:
        """Block `host`, or unblock it, also if no crawl runs. Returns whether it was done, and what was said."""
        try:
            return True, await block(self._directory, host, blocked)
        except FykeError as error:
            return False, str(error)
