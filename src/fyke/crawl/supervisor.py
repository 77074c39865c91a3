"""A crawl of several agents: adds up how they stand, decides what they do next, and ends it.

It carries no links and fetches nothing. Ten times a second it asks all agents how they stand. If all give the same
answer twice, and nothing is on its way anywhere, nothing is left: it has them take checkpoints, because outcomes must
be safe with the agents that made the visits, and the next level begins, or the crawl ends. It holds the crawl's folder,
has the control socket, and divides a limit of pages among the agents. `processes` keeps the agents alive.

Invariant: the pages that agents may have never add up to more than the limit. An agent that dies is started again, from
its checkpoint; pages it was allowed and has not fetched are free again. One that stands still while the crawl is to end
is killed, and ends after it was started again. If none can be started, all take checkpoints and the crawl ends. No
agent requests anything before all were opened once.
"""

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.division import Division
from fyke.archive.figures import Figures, HostFigures
from fyke.archive.statistics import CrawlStatistics, sum_of_agents
from fyke.archive.turns import Turns
from fyke.core import errors
from fyke.core.clock import SystemClock
from fyke.core.config import Config
from fyke.core.hours import HostHours
from fyke.core.memory import MemoryGauge
from fyke.core.plugins import named, schemes_of
from fyke.core.seeds import seeds_of
from fyke.crawl.control import SLOWEST
from fyke.crawl.forks import ForkServer, gone
from fyke.crawl.known_agents import KnownAgent, Stand, allotted, have_their_pages, nobody_reached, standing_before
from fyke.crawl.loop import Ending
from fyke.crawl.member import Orders
from fyke.crawl.processes import Process, Processes

ROUND_S = 0.1  # between two questions
BUSY_ROUND_S = 0.4  # the same while all have work and need no allowance of pages
FIGURES_S = 1.0


class Supervisor:
    """The agents of the crawl in `directory`, in at most `processes` processes. Use as an async context manager."""

    def __init__(
        self, directory: CrawlDirectory, config: Config, of: Division, processes: int, orders: Orders, forks: ForkServer
    ) -> None:
        """`orders` are for all agents."""
        self._forks = forks
        self._directory = directory
        self._config = config
        self._forever = orders.asked_pass is not None and orders.asked_pass.forever
        self._clock = SystemClock(orders.clock)
        self._hours = HostHours(config.politeness.hours, config.site)
        self._hours.wall_ahead_s = self._clock.wall_ahead_s
        count = min(processes, of.agents)
        self._known = [KnownAgent(statistics=standing_before(directory, agent)) for agent in range(of.agents)]
        dealt = [list(range(first, of.agents, count)) for first in range(count)]
        self._processes = Processes(directory, [self._process(agents) for agents in dealt], orders, forks, self._clock)
        self._asked = AskedLater(directory.state)
        self._schemes = schemes_of(named(config.plugins, "protocols"))
        self._turns = Turns(directory.path)
        self._round = 0
        self._figures_at = self._stopped_at = 0.0
        self._idle: tuple[Any, ...] | None = None  # what all said the last time that nothing moved
        self._checkpoint_at: tuple[Any, ...] | None = None  # what all said when checkpoints were last asked for
        self._ending: Ending | None = None
        self._no_forks: errors.FykeError | None = None  # what the crawl ends with, once it was stopped
        self._held = self._all_began = False
        self._memory = MemoryGauge()
        self._peak = 0

    def __repr__(self) -> str:
        return f"Supervisor({len(self._known)} agents in {len(self._processes)} processes)"

    async def __aenter__(self) -> "Supervisor":
        self._asked.keep()
        for part in self._directory.parts:
            self._turns.add(part.part, saved_state(part.shard))
        await self._processes.__aenter__()
        self._forks.watch(self._end_without_forks)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._forks.unwatch()
        await self._processes.__aexit__()

    def _process(self, agents: list[int]) -> Process:
        return Process(agents, sum((Counter(self._known[agent].statistics.deaths) for agent in agents), Counter()))

    # --- what agents say

    def _take(self) -> None:
        """Take what the agents said since the last time."""
        taken = self._processes.take()
        for process, said in taken:
            if "begun" in said:
                self._begin(process)
            elif "stands" in said:
                for agent, figures in said["figures"].items():
                    self._known[int(agent)].note(Figures.read(figures))
                for agent, stand in said["stands"].items():
                    self._stands(int(agent), said["round"], Stand(**stand))
            elif "recalled" in said:
                self._known[said["agent"]].allowed_pages -= said["recalled"]
        self._all_began |= self._processes.all_begun
        if self._all_began and any("begun" in said for _, said in taken):
            self._processes.tell_all(do="begin")

    def _begin(self, process: Process) -> None:
        """Know nothing of the agents that `process` has just opened, and tell them what holds."""
        for agent in process.agents:
            self._known[agent] = replace(self._known[agent], stand=None, round=0, allowed_pages=-1, checkpoints=0)
        self._processes.tell(process, do="hold", held=self._held)
        if self._ending is not None:
            self._processes.tell(process, do="stop", ending=self._ending.value)

    def _stands(self, agent: int, number: int, stand: Stand) -> None:
        known = self._known[agent]
        if known.allowed_pages < 0:
            known.allowed_pages = stand.pages + max(0, stand.pages_left)
        if stand.checkpoints != known.checkpoints:
            known.checkpoints = stand.checkpoints
            self._processes.went_forward()
            self._turns.add(agent, saved_state(CrawlDirectory(self._directory.path, agent).shard))
        known.stand, known.round = stand, number

    # --- the crawl

    async def run(self) -> Ending:
        """Run the agents until the crawl ends. Raises what the agents failed with."""
        while not self._processes.all_ended:
            if self._processes.failure is not None:
                raise self._processes.failure
            self._round += 1
            figures = time.monotonic() >= self._figures_at
            if figures:
                self._figures_at = time.monotonic() + FIGURES_S
            self._processes.tell_all(do="stand", round=self._round, figures=figures)
            await self._pause()
            self._take()
            if self._ending is not None:
                self._processes.kill_silent(self._stopped_at)
            stands = [known.stand for known in self._known if known.stand is not None and known.round == self._round]
            if self._ending is None and len(stands) == len(self._known):
                self._judge(stands)
        if (failure := self._processes.failure or self._no_forks) is not None:
            raise failure
        for part in self._directory.parts:
            self._turns.add(part.part, saved_state(part.shard))
        return self._ending or Ending.STOPPED

    def _end_without_forks(self) -> None:
        if self._ending is None:
            self._no_forks = gone(self._directory.path)
            self.stop()

    async def _pause(self) -> None:
        """Wait for a round, or until there is a failure, or all processes have ended."""
        busy = not self._config.crawl.pages and all(known.stand and not known.stand.idle for known in self._known)
        until = time.monotonic() + (BUSY_ROUND_S if busy else ROUND_S)
        while (left := until - time.monotonic()) > 0:
            self._take()
            self._processes.news.clear()
            try:
                async with asyncio.timeout(left):
                    await self._processes.news.wait()
            except TimeoutError:
                return
            if self._processes.failure is not None or self._processes.all_ended:
                return

    def _judge(self, stands: list[Stand]) -> None:
        """End the crawl, or go a level down, if the agents' answers to one question allow it."""
        if (ending := self._limit(stands)) is not None:
            self.stop(ending)
            return
        idle = tuple(stand.activity for stand in stands) if all(stand.idle for stand in stands) else None
        before, self._idle = self._idle, idle
        if idle is None or idle != before:
            return
        waiting = [stand.rests_until for stand in stands if not stand.level_done]
        if self._forever and (waiting or not any(stand.later for stand in stands)):
            return  # pages that are left come back when they are due
        if waiting:
            until = min(waiting)
            if until - self._clock.now() > self._config.crawl.wait_s and not self._hours.is_opening(until):
                self.stop(Ending.RESTING)
            return
        taken = tuple(stand.checkpoints for stand in stands)
        if self._checkpoint_at is None:
            self._checkpoint_at = taken
            self._processes.tell_all(do="checkpoint")
        elif all(now > then for now, then in zip(taken, self._checkpoint_at, strict=True)):
            if not any(stand.unsafe_letters for stand in stands):
                self._done(stands)
            self._checkpoint_at = None

    def _limit(self, stands: list[Stand]) -> Ending | None:
        """Allow agents their pages; return the ending of the limit that is reached, if any."""
        if self._config.crawl.pages:
            self._allow(self._config.crawl.pages)
            if have_their_pages(stands, self._config.crawl.pages):
                return Ending.PAGES
        if 0 < self._config.crawl.bytes <= self.statistics().bytes:
            return Ending.BYTES
        return Ending.UNREACHED if nobody_reached(stands) else None

    def _done(self, stands: list[Stand]) -> None:
        """Go a level down, or end the crawl: only URLs of deeper levels or blocked hosts are left, and all is safe."""
        if any(stand.later for stand in stands):
            self._processes.tell_all(do="descend", level=max(stand.level for stand in stands) + 1)
            self._idle = None
        else:
            self.stop(Ending.BLOCKED if any(stand.blocked for stand in stands) else Ending.FINISHED)

    def _allow(self, limit: int) -> None:
        """Let agents that have visits begin pages. Each is asked first in turn, so that none starves."""
        for agent, pages in allotted(self._known, limit, self._round % len(self._known)):
            order = {"do": "allow", "pages": pages} if pages else {"do": "recall"}
            self._processes.tell(self._processes.of(agent), agent=agent, **order)

    # --- what is told

    @property
    def peak_memory_bytes(self) -> int:
        """The most memory that all processes together were seen to have."""
        return self._peak

    def statistics(self) -> CrawlStatistics:
        """Return how the crawl stands."""
        sums = sum_of_agents([known.statistics for known in self._known])
        now = time.monotonic()
        memory = sums.memory_bytes + self._memory.read(now) + self._forks.memory.read(now)
        self._peak = max(self._peak, memory)
        return replace(sums, memory_bytes=memory, deaths=dict(self._processes.deaths))

    # --- what a person asks for (`fyke.crawl.control.Steered`)

    def hold(self, held: bool) -> None:
        """Start no request while `held`."""
        self._held = held
        self._processes.tell_all(do="hold", held=held)

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """End soon, so that the crawl can be resumed."""
        if self._ending is None:
            self._ending, self._stopped_at = ending, time.monotonic()
            self._processes.tell_all(do="stop", ending=ending.value)

    def add_seeds(self, urls: Iterable[str]) -> int:
        """Take `urls` as seeds from now on; return how many were new. Raises BadUrl, and takes none."""
        known = {seed.url for seed in seeds_of([*self._config.crawl.seeds, *self._asked.seeds], self._schemes)}
        found = [seed for seed in dict.fromkeys(seeds_of(urls, self._schemes)) if seed.url not in known]
        if found:
            self._asked.add_seeds(seed.url.decode() for seed in found)
            self._processes.tell_all(do="seeds", urls=[seed.url.decode() for seed in found])
        return len(found)

    def block(self, host: str, blocked: bool) -> str:
        """Request nothing more of `host`, or go on with it; return what was done, in words."""
        if not self._asked.block(host, blocked) and blocked:
            return f"{host} was already blocked"
        self._processes.tell_all(do="block", host=host, blocked=blocked)
        return f"{host} is blocked" if blocked else f"{host} is no longer blocked; its URLs go on"

    def figures(self) -> Figures:
        """Return everything that can be watched."""
        told = [known.figures for known in self._known if known.figures is not None]
        statistics = self.statistics()
        bench = dict(sum((Counter(one.bench) for one in told), Counter[str]()))
        return Figures(
            at=self._clock.now(),
            held=self._held,
            statistics=statistics,
            bench=bench | {"rest_until": statistics.rest_until},
            slowest=heapq.nlargest(SLOWEST, chain(*(one.slowest for one in told)), key=lambda host: host.left_s),
            blocked=sorted(self._asked.blocked),
        )

    def host_figures(self, host: str) -> HostFigures | None:
        """Return how `host` stands, if it is among the slowest; only their agents know of others."""
        return next((one for one in self.figures().slowest if one.host == host), None)
