"""How a crawl stands: live from its process while one runs, else from its newest checkpoint.

Each crawl on the shelf has one, run by the server for as long as it lives; the dashboard's event streams, the API and
the metrics read `standing`. While the crawl runs it is a listener at its control socket (`fyke.crawl.control`), once a
second; orders go the same way, each by a connection of its own. Invariant: memory is bounded however long it watches;
`standing` is replaced and never changed.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory
from fyke.archive.inspect import status_of
from fyke.archive.orders import block, connected, ordered
from fyke.core.errors import FykeError, NotACrawl
from fyke.serve.history import History, HistoryPoint

LOOK_S = 2.0  # between looks at a crawl that is not heard
SILENCE_S = 15.0  # without a word from a crawl that runs, it is given up until the next look
RATE_S = 5.0  # over which pages and bytes a second are measured


@dataclass(frozen=True, slots=True)
class CrawlState:
    """How a crawl stands at an instant. `state`: running, paused, stopped, finished, killed, …, or none."""

    state: str = "none"
    live: bool = False  # told by the crawl itself, and not by its checkpoint
    at: float = 0.0  # unix seconds
    pages_s: float = 0.0
    bytes_s: float = 0.0
    trouble: str = ""  # why nothing can be told
    figures: dict[str, Any] = field(default_factory=dict)  # as `fyke.crawl.control.Steering.figures` has them


class Watch:
    """Watches the crawl in `directory`: let `run` go on in a task."""

    def __init__(self, directory: CrawlDirectory) -> None:
        self._directory = directory
        self._changed = asyncio.Event()
        self.standing = CrawlState()
        self.history = History()
        self._lately: list[tuple[float, int, int]] = []
        self._ended = False
        self._looked: Any = None  # what the checkpoint that was last looked at is

    def __repr__(self) -> str:
        return f"Watch({self._directory!r}, {self.standing.state})"

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            with suppress(OSError, TimeoutError, ValueError, KeyError, TypeError):
                await self._listen()
            self._lately.clear()
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def changes(self) -> AsyncIterator[CrawlState]:
        """The standing now, and each that comes until the end; who is slow gets the latest only."""
        while not self._ended:
            changed = self._changed
            yield self.standing
            await changed.wait()

    def end(self) -> None:
        """The server ends: let those who wait for changes go."""
        self._ended = True
        self._changed.set()

    async def _listen(self) -> None:
        """Hear what the crawl says, until it says no more. Raises OSError when none listens."""
        async with connected(self._directory.state) as (reader, _):
            while line := await asyncio.wait_for(reader.readline(), SILENCE_S):
                self._heard(json.loads(line)["figures"])

    def _heard(self, figures: dict[str, Any]) -> None:
        statistics = figures["statistics"]
        at, pages, size_bytes = float(figures["at"]), int(statistics["pages"]), int(statistics["bytes"])
        self._lately = [one for one in self._lately if at - RATE_S <= one[0] < at] or self._lately[-1:]
        self._lately.append((at, pages, size_bytes))
        began, pages_then, bytes_then = self._lately[0]
        if began == at:  # a rate takes two
            return
        pages_s, bytes_s = (pages - pages_then) / (at - began), (size_bytes - bytes_then) / (at - began)
        state = "paused" if figures["held"] else "running"
        self._tell(CrawlState(state, True, at, round(pages_s, 2), round(bytes_s, 1), "", figures))
        awake = statistics["hosts"] - statistics["hosts_asleep"]
        memory = statistics["memory_bytes"]
        self.history.add(HistoryPoint(at, pages_s, bytes_s, statistics["waiting"], awake, memory))

    def _tell(self, standing: CrawlState) -> None:
        self.standing = standing
        self._changed.set()
        self._changed = asyncio.Event()

    async def look(self) -> None:
        """Read the newest checkpoint, if it is another than before."""
        try:
            looked, standing = await asyncio.to_thread(self._read)
        except FykeError as error:
            looked, standing = None, CrawlState("none", trouble="" if isinstance(error, NotACrawl) else str(error))
        if self.standing.live or looked != self._looked or standing.state != self.standing.state:
            self._looked = looked
            self._tell(standing)

    def _read(self) -> tuple[Any, CrawlState]:
        status = status_of(self._directory)
        looked = status.checkpoint, status.state
        if looked == self._looked and not self.standing.live:
            return looked, self.standing
        figures = {
            "at": status.taken_at,
            "held": False,
            "statistics": status.statistics.as_dict(),
            "queues": status.statistics.queues,
            "rounds": status.statistics.rounds,
            "edges": status.statistics.edges,
            "slowest": [],
            "blocked": AskedLater(self._directory.state).blocked,
        }
        return looked, CrawlState(status.state, False, status.taken_at, figures=figures)

    async def order(self, what: str, **more: Any) -> tuple[bool, Any]:
        """Have the crawl do `what`: whether it did, and what it says. Raises NotACrawl when none runs."""
        try:
            return await ordered(self._directory.state, what, **more)
        except (OSError, TimeoutError, ValueError):
            raise NotACrawl(f"{self._directory.path}: no crawl is running here that could be told") from None

    async def block(self, host: str, blocked: bool) -> tuple[bool, str]:
        """Block `host` or take that back, also when no crawl runs: whether it was done, and what was."""
        try:
            return True, await block(self._directory, host, blocked)
        except FykeError as error:
            return False, str(error)
