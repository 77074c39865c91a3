"""How a crawl runs: the loop between two engines, top to bottom.

        ┌──────────────── frontier: what may be fetched next ────────────────┐
    links ─► filter ─► seen ─► star ─► beast ─► robots gate ─► order ─► ready
        └─────────────────────────────────────────────────────────────────────┘
       ▲                                                              │ visits
       │                                                              ▼
        ┌──────────────── fetcher: what the servers say ─────────────────────┐
       parse ◄─ content-seen ◄─ protocol module ◄─ robots ◄─ dns ◄─ politeness
        └──────────┬──────────────────────────────────────────────────────────┘
                   └─► archive, tables, sinks

`turn` is the figure. It runs when visits have ended and on a slow beat; between turns the fetcher moves
on its own. Everything is on one thread, and what comes of a visit (its record, its rows, its links) is
handed over within one turn, so that a checkpoint between turns finds each visit either done or waiting.

Invariant: a visit leaves the set of those waiting only when record and links are in files that the
next checkpoint names.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.visits import Exchange, batch_of, visits_of
from fyke.crawl.fetcher import Fetcher
from fyke.crawl.harvest import Harvest
from fyke.frontier.frontier import Frontier
from fyke.hosts.politeness import Workbench

BEAT_S = 0.05
GRACE_S = 2.0
REFILL_ROWS = 2048
MERGE_SHARE = 4  # merges while visits run low may take one part in this many of the time
UNREACHED_TRIES = 2  # failures of each host after which a crawl without any answer gives up


class Ending(StrEnum):
    """Why a crawl ended, or paused."""

    FINISHED = "finished"  # nothing is left to fetch
    PAGES = "pages"  # as many pages as were asked for
    TIME = "time"  # as long as was asked for
    STOPPED = "stopped"  # by the person
    UNREACHED = "unreached"  # no server answers


@dataclass(frozen=True, slots=True)
class Engines:
    """The two halves, and what lies between them."""

    frontier: Frontier
    bench: Workbench
    fetcher: Fetcher
    harvest: Harvest


class Loop:
    """Runs the engines until nothing is left, a limit is reached, or `stop` is called."""

    def __init__(self, engines: Engines, config: Config, clock: Clock, ended: "deque[Exchange]") -> None:
        self._frontier = engines.frontier
        self._bench = engines.bench
        self._fetcher = engines.fetcher
        self._harvest = engines.harvest
        self._config = config
        self._clock = clock
        self._ended = ended
        self._wake = asyncio.Event()
        self._feed_at = 0.0
        self._merge_at = 0.0  # when the frontier may merge less than a full batch again
        self._moved = False
        self._stop: Ending | None = None
        self.failure: BaseException | None = None

    def wake(self) -> None:
        """Something ended: take a turn soon."""
        self._wake.set()

    def stop(self) -> None:
        """End the crawl at the next turn; it can be resumed."""
        self._stop = Ending.STOPPED
        self._wake.set()

    async def run(self, checkpoint_due: Callable[[], bool], checkpoint: Callable[[], Awaitable[None]]) -> Ending:
        """Turn until the end; then let what is under way end, for `GRACE_S` at most."""
        started = self._clock.now()
        while (ending := self._ending(started)) is None:
            self.turn()
            if checkpoint_due():
                await checkpoint()
            await self._rest()
        await self._wind_down()
        return ending

    def turn(self) -> None:
        """The figure, once around."""
        self._harvest.take_in(self._ended)
        self._turn_frontier()
        self._fetcher.refuse(visits_of(self._frontier.refused()))
        self._fill_window()
        self._fetcher.pump()

    def _turn_frontier(self) -> None:
        """Let the frontier move on; while visits run low, its merges may take one part in `MERGE_SHARE` of the time."""
        idle, begun = self.idle, self._clock.now()
        starving = self._bench.visits < self._config.frontier.window_visits // 2 and not self._frontier.ready.waiting
        dry = starving and self._bench.visits + self._fetcher.in_flight < self._config.fetch.connections
        may_merge = idle or (starving and begun >= self._merge_at)
        self._moved = self._frontier.turn(begun, may_merge=may_merge, dry=dry, idle=idle)
        if may_merge:
            ended = self._clock.now()
            self._merge_at = ended + (ended - begun) * (MERGE_SHARE - 1)

    def _fill_window(self) -> None:
        """Give the workbench work when it runs low, and its hungry hosts what waits for them on disk."""
        ready = self._frontier.ready
        low = self._config.frontier.window_visits // 2
        self._fetcher.bring_rules(self._frontier.wanted(self._fetcher.rules_room))
        while self._bench.visits < low and ready.waiting:
            self._offer(self._frontier.take(REFILL_ROWS))
        now = self._clock.now()
        if ready.spilled and now >= self._feed_at:
            self._feed_at = now + BEAT_S
            self._feed_hungry(low)

    def _offer(self, urls: pa.RecordBatch) -> None:
        excess = self._fetcher.offer(visits_of(urls))
        if excess:
            self._frontier.ready.put_back(batch_of(excess))

    def _feed_hungry(self, low: int) -> None:
        ready = self._frontier.ready
        overflowed = False
        for host in list(self._bench):
            overflowed = overflowed or host.overflowed
            if self._bench.hungry(host):
                host.overflowed = False  # set again when some of its visits find no room
                left = ready.spilled_with(host.key)
                while left > 0 and self._bench.host_room(host) > 0:
                    batch = ready.take_spilled(host.key, min(left, REFILL_ROWS))
                    left -= batch.num_rows
                    self._offer(batch)
                host.overflowed = host.overflowed or left > 0
        if not overflowed and self._bench.visits < low:  # a restart: no host knows what waits for it
            self._offer(ready.take_spilled(ready.longest_spill(), REFILL_ROWS))

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting in memory or under way."""
        return not (self._bench.visits or self._fetcher.in_flight or self._ended)

    def _ending(self, started: float) -> Ending | None:
        if self.failure is not None:
            raise self.failure
        if self._stop is not None:
            return self._stop
        crawl = self._config.crawl
        if crawl.for_s and self._clock.now() - started >= crawl.for_s:
            return Ending.TIME
        if self._fetcher.pages_left == 0 and not self._fetcher.in_flight and not self._ended:
            return Ending.PAGES
        if self._unreached():
            return Ending.UNREACHED
        return Ending.FINISHED if self.idle and self._frontier.empty else None

    def _unreached(self) -> bool:
        """Whether nobody has ever answered and every host was tried again: the fault is likely on our side."""
        if self._harvest.answered or self._fetcher.in_flight:
            return False
        hosts = list(self._bench)
        return bool(hosts) and all(host.failures >= UNREACHED_TRIES for host in hosts)

    async def _rest(self) -> None:
        """Until something ends, or the next beat; work that can go on gets no rest."""
        self._wake.clear()
        if self._ended or (self.idle and self._moved):
            await asyncio.sleep(0)
            return
        timer = asyncio.get_running_loop().call_later(BEAT_S, self._wake.set)
        await self._wake.wait()
        timer.cancel()

    async def _wind_down(self) -> None:
        await self._fetcher.stop()
        deadline = self._clock.now() + GRACE_S
        while self._fetcher.in_flight and self._clock.now() < deadline:
            await self._rest()
        self._fetcher.abort()
        await asyncio.sleep(0)
        self._harvest.take_in(self._ended)
