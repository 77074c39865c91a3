"""A crawl from the command line: the agent, the panel, Ctrl-C, and the summary at the end.

The first Ctrl-C (or SIGTERM, or SIGHUP) stops cleanly within a few seconds, the second at once. Neither loses anything,
because what no checkpoint holds is fetched again. A crawl that SIGTERM stopped did as it was asked: it ends with 0, as
service managers expect.
"""

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, closing, nullcontext, suppress
from math import inf
from pathlib import Path

import uvloop
from rich.console import Console

from fyke.archive.directory import CrawlDirectory, crawl_clock, room_bytes, saved_state
from fyke.archive.division import Division, divide, division
from fyke.archive.inspect import ending_of
from fyke.archive.statistics import totals_of
from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.errors import EXIT_INTERRUPTED, DirectoryInUse, DiskFull, FykeError, LimitMet, NetworkDown, Stopped
from fyke.core.memory import let_go_of_libraries, peak_memory_bytes
from fyke.core.plugins import named, schemes_of
from fyke.core.rewrite_rules import rewrite_rules_of
from fyke.crawl.agent import Agent, brought_nothing, may_begin_again, taken
from fyke.crawl.control import Control
from fyke.crawl.exporter import Exporter, address_of
from fyke.crawl.forks import ForkServer
from fyke.crawl.loop import Ending
from fyke.crawl.member import Orders
from fyke.crawl.monitor import Monitor, seeds_in_words
from fyke.crawl.passes import Pass, next_pass
from fyke.crawl.post.sockets import folder_for_sockets
from fyke.crawl.rewriting import is_settled
from fyke.crawl.seed_sources import SeedSources
from fyke.crawl.signals import leave_terminal, stop_signals, stopped_at_once
from fyke.crawl.summary import Summary, nothing_reached
from fyke.crawl.supervisor import Supervisor
from fyke.disk.files import real_path
from fyke.fetcher.access import unused_proxies
from fyke.fetcher.connections import other_connections
from fyke.frontier.filters import filters_for
from fyke.frontier.quota import NAME as PAGES_RULE
from fyke.frontier.quota import PageLimits
from fyke.progress import Progress, print_line
from fyke.quantities import duration, size

OPENING = "while the crawl was opened, before the first request; the same command goes on"
READING = (
    "while seeds were read, before the first request: those after the first {:,} were not read; the same command begins"
    " again"
)
ROOM_BYTES = 16 << 20  # free, with which a paused crawl goes on; doubled each time that it was too little
ROOM_BEAT_S = 1.0
SWITCH_S = 0.0005  # for which a thread that reads a large page keeps the loop waiting


def crawl_with_panel(
    directory: CrawlDirectory,
    config: Config,
    console: Console,
    sources: Sequence[str] = (),
    *,
    asked_pass: Pass | None,
    metrics: str | None = None,
) -> Summary:
    """Run the crawl of `config` in `directory` to its end, and show on `console` how it goes. `asked_pass` is a pass
    over a crawl that has ended, `metrics` the address at which Prometheus is answered.

    `sources` of seeds are as in `seed_sources`. Raises FykeError; NetworkDown if no server could be reached.
    """
    if metrics is not None:
        address_of(metrics)  # a mistake is told before anything is written
    _tune()
    several = config.crawl.agents > 1 or division(directory.state).agents > 1
    with ForkServer() if several else nullcontext() as forks:  # before plug-ins are loaded: each agent has its own
        run = _CrawlRun(directory, config, console, asked_pass, metrics, forks)
        with run.stopped_at_once():
            summary = run.whole(sources)
    if nothing_reached(summary):
        met = ", ".join(name.replace("_", " ") for name in summary.statistics.outcomes)
        raise NetworkDown(
            f"nothing could be reached{f' ({met})' if met else ''}: check the network, the URL,"
            " --dns, and --private for addresses that are not public, then run the same command again;"
            f" fyke why {directory.path} {directory.first_seed(config)} says more"
        )
    return summary


def _tune() -> None:
    """Keep imported objects out of garbage collection and libraries' files out of memory; pages make hardly a cycle."""
    let_go_of_libraries()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    sys.setswitchinterval(SWITCH_S)


class _CrawlRun:
    """One run of a crawl: with as many agents as it is to have, through full disks, to its ending."""

    def __init__(
        self,
        directory: CrawlDirectory,
        config: Config,
        console: Console,
        asked_pass: Pass | None,
        metrics: str | None,
        forks: ForkServer | None,
    ) -> None:
        """`forks` starts the processes, if there are several."""
        self._directory, self._config, self._console = directory, config, console
        self._asked_pass, self._metrics, self._forks = asked_pass, metrics, forks
        self._stops: list[int] = []  # signals that came while there was no agent to stop
        self._time_is_up_at = time.monotonic() + (config.crawl.for_s or inf)
        self._sources: SeedSources | None = None  # of seeds, while they are read
        self._told_of_clock = False
        self._room_bytes = 0  # with which it went on the last time, at `_went_on_at`
        self._went_on_at = 0.0

    def stopped_at_once(self) -> AbstractContextManager[None]:
        """As the function, until the time of the crawl is over."""
        return stopped_at_once(self._doing, self._left_s)

    def _doing(self) -> str:
        """Say what is being done before the crawl runs."""
        return OPENING if self._sources is None else READING.format(self._sources.seeds)

    @property
    def _left_s(self) -> float:
        """Of the time asked for; pauses count too."""
        return self._time_is_up_at - time.monotonic()

    def whole(self, sources: Sequence[str]) -> Summary:
        """Begin or go on, also at the seeds of `sources`, unless nothing is left to do."""
        if not sources:
            return self._with_seeds(None)
        found = SeedSources(sources, schemes_of(named(self._config.plugins, "protocols")))
        with closing(self._reading(found)) as listed:
            return self._with_seeds(listed)

    def _reading(self, sources: SeedSources) -> Generator[str]:
        """Yield the URLs of `sources`; show the progress, and at the end what was left out."""
        with Progress(self._console, "reading seeds") as progress:
            self._sources = sources
            for count, url in enumerate(sources):
                if not count % 10_000:
                    progress.tell(f"reading seeds: {count:,}", 0, 0)
                yield url
            self._sources = None
        if sources.complaint:
            print_line(self._console, f"fyke: {sources.complaint}")

    def _with_seeds(self, listed: Iterable[str] | None) -> Summary:
        directory, config, console = self._directory, self._config, self._console
        if self._asked_pass is not None:
            if directory.holds_crawl:
                directory.compare(config)
        elif (done := finished_before(directory, config, listed)) is not None:
            return done
        if unused := unused_proxies(config.site):
            print_line(console, f"fyke: {unused}")
        there = directory.path.exists()
        try:
            other_connections(config.fetch.connections)  # with too few files there is not even an event loop
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(self.to_its_end(listed))
        except FykeError as error:
            if not (there or isinstance(error, DirectoryInUse)):
                directory.withdraw()
            raise

    async def to_its_end(self, listed: Iterable[str] | None) -> Summary:
        """Crawl, also from the seeds in `listed`. If the disk is full, wait for room, and go on from the last
        checkpoint."""
        while True:
            try:
                if self._forks is None:
                    return await self._with_one_agent(listed)
                return await self._with_agents(listed, self._forks)
            except DiskFull as error:
                if not self._directory.holds_crawl or not await self._has_room_again(error):
                    raise
                listed = None  # it is in the directory by now
            gc.collect()  # the run that broke off is as large as the next

    async def _has_room_again(self, error: DiskFull) -> bool:
        """Wait for room, as long as for a host that rests; return False if none comes, or a limit was met. Signals to
        stop end the wait."""
        stop, clock = asyncio.Event(), asyncio.get_running_loop().time
        wait_s = min(self._config.crawl.wait_s, self._left_s)
        if isinstance(error, LimitMet) or wait_s <= 0:
            return False
        is_new = clock() - self._went_on_at > self._config.crawl.wait_s  # otherwise the work under way takes more
        self._room_bytes = ROOM_BYTES if is_new else max(ROOM_BYTES, 2 * self._room_bytes)
        pause = f"the crawl pauses, for {duration(wait_s)} at most, and goes on once {size(self._room_bytes)} are free"
        print_line(self._console, f"fyke: {error}; until then {pause}")
        came = _obey_signals(stop.set)
        deadline = clock() + wait_s
        while not (stop.is_set() or clock() > deadline):
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), ROOM_BEAT_S)
            if room_bytes(self._directory.path) >= self._room_bytes:
                self._stops += came
                self._went_on_at = clock()
                if not came:
                    print_line(self._console, "fyke: the disk has room again: the crawl goes on")
                return True
        return False

    async def _with_one_agent(self, listed: Iterable[str] | None) -> Summary:
        directory = self._directory
        async with AsyncExitStack() as opened:
            with self.stopped_at_once():
                agent = Agent(directory, self._config, listed=listed, asked_pass=self._asked_pass)
                await opened.enter_async_context(agent)
                self._tell_of(agent.clock)
                signals = _obey_signals(agent.stop)
            await opened.enter_async_context(Control(agent, directory.state))
            ending, terminated = await self._watched(agent, signals)
            statistics = agent.statistics()
        return Summary(ending, statistics, peak_memory_bytes(), terminated=terminated)

    async def _with_agents(self, listed: Iterable[str] | None, forks: ForkServer) -> Summary:
        directory, config = self._directory, self._config
        with ExitStack() as locked:
            with self.stopped_at_once():
                Agent(directory, config)  # tells what is wrong with `config` before anything is written
                locked.enter_context(taken(directory, config, listed))
                sockets = locked.enter_context(folder_for_sockets(directory.state))
                divided, orders = self._orders(sockets)
                crawl = Supervisor(directory, config, divided, config.crawl.agents, orders, forks)
                signals = _obey_signals(crawl.stop)
            async with crawl, Control(crawl, directory.state):
                ending, terminated = await self._watched(crawl, signals)
            totals = totals_of(directory.states)
        return Summary(ending, totals, crawl.peak_memory_bytes, terminated=terminated)

    def _orders(self, sockets: Path) -> tuple[Division, Orders]:
        """Return how the crawl is divided from now on, and the orders with which its agents begin."""
        directory, agents = self._directory, self._config.crawl.agents
        before = division(directory.state)
        states = [saved_state(part.shard) for part in directory.parts]
        if states and all(not state or brought_nothing(state) for state in states):
            for part in directory.parts:
                part.forget()
            states = []
        divided = divide(directory.state, agents, begun=any(states))
        known = [state for state in states if state]
        may_begin = bool(known) and all(map(may_begin_again, known))
        clock = crawl_clock(directory)
        clock.require_sane()
        self._tell_of(clock)
        asked_pass = next_pass(states, self._asked_pass, clock.now(), may_begin=may_begin)
        moved = any(states) and divided.agents != before.agents
        return divided, Orders(str(sockets), moved=moved, clock=clock.noted(), asked_pass=asked_pass)

    def _tell_of(self, clock: Clock) -> None:
        """Tell the person if the machine's clock was set by days since the crawl began."""
        days = round(clock.wall_ahead_s / 86_400)
        if days and not self._told_of_clock:
            ahead = "behind" if days > 0 else "ahead of"
            told = f"fyke: the clock of this crawl is {abs(days)} days {ahead} the machine's clock"
            remedy = "the crawl keeps its own clock; if the machine's is right, begin another crawl"
            print_line(self._console, f"{told}: {remedy}")
        self._told_of_clock = True

    async def _watched(self, crawl: Agent | Supervisor, signals: Sequence[int]) -> tuple[Ending, bool]:
        """Run `crawl` to its end, with the panel on the console. `signals` stop it; at once, if one came before.
        Returns the ending, and whether SIGTERM came."""
        directory, config = self._directory, self._config
        heading = seeds_in_words(directory.first_seed(config), len(config.crawl.seeds) + len(directory.listed))
        name = real_path(directory.path).name
        async with AsyncExitStack() as beside:
            if self._metrics is not None:
                await beside.enter_async_context(Exporter(self._metrics, name, crawl.figures))
            if self._stops:
                crawl.stop()
            if self._left_s < inf:
                time_is_up = asyncio.get_running_loop().call_later(max(0, self._left_s), crawl.stop, Ending.TIME)
                beside.callback(time_is_up.cancel)
            watching = asyncio.create_task(Monitor(crawl.statistics, config.crawl, self._console, heading).run())
            try:
                ending = await crawl.run()
            finally:
                watching.cancel()
                with suppress(asyncio.CancelledError, OSError):  # the terminal may be gone
                    await watching
        return ending, signal.SIGTERM in (*self._stops, *signals)


def _obey_signals(stop: Callable[[], None]) -> list[int]:
    """Have stop signals call `stop`; return the list of those that came, which grows."""
    came: list[int] = []

    def ask(number: int) -> None:
        if came:
            os._exit(EXIT_INTERRUPTED)  # as good as kill -9: the last checkpoint holds
        came.append(number)
        if number == signal.SIGHUP:
            leave_terminal()
        stop()

    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, ask, number)
    return came


def stopped_before(directory: CrawlDirectory, stopped: Stopped) -> Summary:
    """Return the summary of a crawl in `directory` that was stopped before it ran."""
    ending = Ending.TIME if stopped.time_is_up else Ending.STOPPED
    return Summary(ending, totals_of(directory.states), peak_memory_bytes())


def finished_before(directory: CrawlDirectory, config: Config, listed: Iterable[str] | None) -> Summary | None:
    """Return the summary of a crawl in `directory` that has nothing left to do; None if it has. Raises OtherCrawl."""
    if not directory.holds_crawl:
        return None
    directory.compare(config)
    states = directory.states
    if all(map(brought_nothing, states)):
        return None
    for state in states:
        directory.settings_differ(state)
    ending = ending_of(states)
    totals = totals_of(states)
    has_pages = ending == Ending.PAGES and 0 < config.crawl.pages <= totals.pages
    has_bytes = ending == Ending.BYTES and 0 < config.crawl.bytes <= totals.bytes
    limits = PageLimits(config.site).state()
    frontiers = [state.get("frontier", {}) for state in states]
    others = any(limits != one.get("quota", {}).get("limits", []) for one in frontiers)
    if others and totals.left_out.get(PAGES_RULE):
        return None
    filters = filters_for(config.crawl, (), (), named(config.plugins, "filters")).edited
    if any(one.get("left_out", {}).get("rules", filters) != filters for one in frontiers):
        return None
    rules = rewrite_rules_of(config.crawl)
    if not all(is_settled(state.get("rewriting", {}), rules) for state in states):
        return None
    if ending == Ending.FINISHED or has_pages or has_bytes:
        if listed is not None:
            directory.listed.compare(listed)
        return Summary(Ending(ending), totals, peak_memory_bytes(), already=True)
    return None
