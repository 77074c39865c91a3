"""One agent: opens a crawl's directory and its rooms (`opening`), runs the loop, keeps it safe, closes it (`closing`).

`Agent` is used by the command line (`crawl_with_panel`), by the Python interface (`fyke.Crawl`), and by each process of
several agents (`member`). Order matters at both ends: a crawl is restored before anything is written, and its files are
finished before its last checkpoint.

Invariant: from entering it to leaving it the directory is held by this process alone.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.division import division
from fyke.archive.figures import Figures, HostFigures
from fyke.archive.lost import require_state
from fyke.archive.statistics import CrawlStatistics
from fyke.core.clock import Clock, SystemClock
from fyke.core.config import Config
from fyke.core.errors import ConfigurationError, DirectoryInUse, FykeError
from fyke.core.seeds import seeds_of
from fyke.core.urls import host_keys
from fyke.crawl.closing import close_whole
from fyke.crawl.control import Steering
from fyke.crawl.known_agents import Stand
from fyke.crawl.loop import Ending, Loop
from fyke.crawl.opening import Plugins, Prepared, Rooms
from fyke.crawl.owed import take_over
from fyke.crawl.passes import Pass, next_pass
from fyke.crawl.post.letters import Envelope
from fyke.crawl.post.seat import Seat
from fyke.disk.checkpoint import Checkpoint
from fyke.frontier.revisit.choice import Terms

SET_S = 1.0  # worth a line of the log: time servers correct less
PAUSE_BEAT_S = 1.0


class Agent:
    """A crawl of `config` in `directory`. Use as an async context manager; then `run` it."""

    def __init__(
        self,
        directory: CrawlDirectory,
        config: Config,
        *,
        seat: Seat | None = None,
        listed: Iterable[str] | None = None,
        asked_pass: Pass | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        """`seat` is its place among the agents of the crawl; None: it is alone.

        `listed`: canonical URLs to begin at, beside the seeds of `config`; to resume, the same URLs or None.
        `asked_pass` is a pass over a crawl that has ended.

        `plugins` are used after those that `config` names.
        """
        self._listed = listed
        self.directory = directory
        self._seat = seat
        self.config = config
        self._clock = SystemClock()
        self._asked_pass = asked_pass
        self._prepared = Prepared(directory, config, plugins or Plugins())
        self._news = asyncio.Event()  # set when something ended, or was asked for
        self._ending: Ending | None = None

    def __repr__(self) -> str:
        return f"Agent({self.directory!r})"

    @property
    def clock(self) -> Clock:
        """The crawl's clock."""
        return self._clock

    # -- opening ---------------------------------------------------------------------------------

    async def __aenter__(self) -> "Agent":
        directory = self.directory
        with ExitStack() as opened:
            if self._seat is None:
                if division(directory.state).agents > 1:
                    raise ConfigurationError(
                        f"{directory.path} is a crawl of several agents, and Python runs only one: resume it with fyke"
                        f" crawl --into {directory.path}"
                    )
                opened.enter_context(taken(directory, self.config, self._listed))
            try:
                self._checkpoint = Checkpoint(directory.shard)
            except DirectoryInUse:
                raise DirectoryInUse(
                    f"{directory.path} is in use by another crawl: stop it, or choose another folder with --into"
                ) from None
            opened.callback(self._checkpoint.close)
            self._open(opened)
            self._opened = opened.pop_all()
        loop = asyncio.get_running_loop()
        self._handler_before = loop.get_exception_handler()
        loop.set_exception_handler(self._failed)
        return self

    def _open(self, opened: ExitStack) -> None:
        saved = saved_state(self.directory.shard)
        if self._seat is None and brought_nothing(saved):
            self.directory.forget()  # under the lock: another crawl could begin here, and lose its files
            self._checkpoint.reopen()
            saved = {}
        self.directory.listed.verify()
        others = self.directory.settings_differ(saved)
        if self._seat is None:
            self._keep_time(saved)
            may_begin = may_begin_again(saved)
            self._asked_pass = next_pass([saved], self._asked_pass, self._clock.now(), may_begin=may_begin)
        else:
            self._keep_time(self._seat.clock)
        self._rooms = rooms = Rooms(
            self.directory, self.config, self._prepared, self._seat, self._clock, self._news, self._checkpoint, saved
        )
        opened.callback(rooms.close)
        if others:
            self._note("settings changed")
            rooms.frontier.rouse()
        self._loop = Loop(
            rooms.engines(self._asked_pass),
            self.config.crawl,
            self._clock,
            self._news,
            hours=self._prepared.hours,
        )
        self._resumed = bool(saved)
        self._take_up(begun=bool(saved))
        waiting = rooms.frontier.statistics().rows
        self._note("resumed" if saved else "begun", seeds=len(self._prepared.seeds), waiting=waiting)

    def _keep_time(self, noted: Mapping[str, Any]) -> None:
        """Go on by the clock as `noted` in the last checkpoint. By the wall clock, rests would last longer, or be cut
        short, by what it was set since."""
        clock = SystemClock(noted) if noted else self._clock
        clock.require_sane()
        if noted:
            self._clock = clock
            self._prepared.hours.wall_ahead_s = clock.wall_ahead_s
            if abs(clock.wall_ahead_s) > SET_S:
                way = "forward" if clock.wall_ahead_s > 0 else "back"
                self._note(f"clock set {way}", seconds=round(abs(clock.wall_ahead_s), 1))

    def _take_up(self, *, begun: bool) -> None:
        """Go on with waiting URLs, as the person wants it now, and begin the pass asked for."""
        rooms, frontier = self._rooms, self._rooms.frontier
        asked = rooms.asked
        self._steering = Steering(
            asked, self._prepared.seeds, rooms.outbox, frontier, rooms.fetcher, rooms.post, self._clock
        )
        if self._asked_pass is not None and self._asked_pass.number > len(rooms.passes.began):
            self._begin(self._asked_pass)
        frontier.resume()
        rooms.fetcher.blocked.update(host_keys(name)[0] for name in asked.blocked)
        frontier.block(rooms.fetcher.blocked)
        for key in rooms.fetcher.blocked:
            rooms.post.block(key)
        frontier.unblock(())  # hosts that were blocked when the last run ended, and are not now
        self._put_seeds(begun=begun)

    def _put_seeds(self, *, begun: bool) -> None:
        """Begin, or go on, at the seeds of this shard; make those of others known."""
        self._rooms.frontier.know_seeds(self._prepared.seeds)
        self._rooms.frontier.put_seeds(self._rooms.post.own_seeds(self._prepared.seeds))
        for listed in self.directory.listed.batches():
            self._rooms.frontier.know_seeds(listed, named=False)
            if not begun:
                self._rooms.frontier.put_seeds(self._rooms.post.own_seeds(listed), named=False)

    def _begin(self, asked: Pass) -> None:
        """Have pages visited again, at once or each in its time, and ask servers again what is asked once a crawl."""
        rooms, crawl, now = self._rooms, self.config.crawl, self._clock.now()
        if not asked.forever:
            most = asked.share(self.directory.part)
            limited = bool(crawl.pages or crawl.bytes or crawl.for_s)
            plan = rooms.frontier.plan_revisits(now, Terms(most=most), first=limited)
            for work in (rooms.learn(), plan):
                deque(work, maxlen=0)
            rooms.book.forgive()
        rooms.passes.begin(asked, rooms.archive.state()["serial"])
        rooms.limit_pages()
        self._note("again", number=len(rooms.passes.began), waiting=len(rooms.frontier.known_pages))

    # -- running ---------------------------------------------------------------------------------

    async def run(self) -> Ending:
        """Crawl until the end, a limit, or `stop`."""
        if not self._resumed:
            await self._rooms.keeper.take()  # so that an archive without a manifest means that the state was lost
        noting = asyncio.create_task(self._note_pauses())
        try:
            self._ending = await self._loop.run(self._rooms.keeper)
        finally:
            noting.cancel()
        if self._rooms.rewriting is not None:
            self._rooms.rewriting.merge_aside()
        return self._ending

    async def _note_pauses(self) -> None:
        """Log how long the process stood still."""
        fetcher = self._rooms.fetcher
        noted_s = 0.0
        while True:
            await asyncio.sleep(PAUSE_BEAT_S)
            if fetcher.stood_still_s > noted_s:
                self._note("stood still", seconds=round(fetcher.stood_still_s - noted_s, 1))
                noted_s = fetcher.stood_still_s

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """End soon, so that the crawl can be resumed."""
        self._loop.stop(ending)

    # -- among others ----------------------------------------------------------------------------

    def put(self, envelope: Envelope) -> None:
        """Take an envelope that came from another agent."""
        assert self._rooms.office is not None
        self._rooms.office.put(envelope)

    def stand(self) -> Stand:
        """Return what the supervisor needs to tell when all is done, and which agents may fetch more pages."""
        rooms, office = self._rooms, self._rooms.office
        assert office is not None
        frontier, fetcher = rooms.frontier, rooms.fetcher
        return Stand(
            idle=self._loop.idle,
            level_done=frontier.level_done,
            rests_until=frontier.rests_until(self._clock.now()),
            activity=office.activity,
            unsafe_letters=office.unsafe_letters,
            later=frontier.later_urls,
            level=frontier.level,
            blocked=frontier.blocked_urls,
            checkpoints=rooms.keeper.taken,
            answered=rooms.barn.answered,
            hosts=len(fetcher.bench),
            unreached=fetcher.unreached,
            pages=rooms.brought,
            pages_left=fetcher.pages_left,
            waiting=fetcher.bench.visits,
            resting=not (fetcher.in_flight or fetcher.ended),
        )

    def take_checkpoint(self) -> None:
        """Take a checkpoint at the next turn."""
        self._loop.wants_checkpoint = True
        self._news.set()

    def descend(self, level: int) -> None:
        """Go down to `level`: in all shards, all pages nearer to the seeds are done."""
        self._loop.next_level = level
        self._news.set()

    def allow(self, pages: int) -> None:
        """Let this agent begin `pages` more pages."""
        self._rooms.fetcher.give_back(pages)
        self._news.set()

    def recall_pages(self) -> int:
        """Take the allowance of pages back; return what was left of it."""
        left, self._rooms.fetcher.pages_left = self._rooms.fetcher.pages_left, 0
        return max(0, left)

    def hold(self, held: bool) -> None:
        """Start no request while `held`: the reader of the pages is behind."""
        self._rooms.fetcher.held = held
        self._news.set()

    def add_seeds(self, urls: Iterable[str]) -> int:
        """Take `urls` as seeds, also after a restart; return how many were new. Raises BadUrl, and takes none."""
        count = self._steering.add_seeds(seeds_of(urls, self._prepared.schemes))
        self._news.set()
        return count

    def block(self, host: str, blocked: bool) -> str:
        """Request nothing more of `host`, also after a restart, or go on with it; return what was done, in words."""
        if blocked:
            return f"{host} is blocked" if self._steering.block(host) else f"{host} was already blocked"
        released = self._steering.unblock(host)
        self._news.set()
        return f"{host} is no longer blocked; {released:,} of its URLs go on"

    def figures(self) -> Figures:
        """Return everything that can be watched."""
        return self._steering.figures(self.statistics(), self._clock.now(), held=self._rooms.fetcher.held)

    def host_figures(self, host: str) -> HostFigures | None:
        """Return how `host` stands at the workbench, if it is there."""
        return self._steering.host(host, self._clock.now())

    @property
    def quiet(self) -> bool:
        """True if nothing is on its way from the network."""
        return self._rooms.fetcher.quiet

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the crawl with an exception that no callback or task caught."""
        self._loop.failure = context.get("exception") or RuntimeError(context["message"])
        self._news.set()

    def _note(self, event: str, **facts: object) -> None:
        """Write a line of the log."""
        agent = {} if self._seat is None else {"agent": self._seat.me}
        self.directory.log(self._clock.now(), event, **agent, **facts)

    def statistics(self) -> CrawlStatistics:
        """Return how the crawl stands now."""
        return self._rooms.counts.statistics()

    # -- closing ---------------------------------------------------------------------------------

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._rooms.fetcher.abort()
        self._rooms.slow_lane.close()
        await self._rooms.resolver.close()
        asyncio.get_running_loop().set_exception_handler(self._handler_before)
        try:
            if error is None:
                close_whole(self.directory, self._rooms)
                self._rooms.keeper.last(self._ending.value if self._ending else Ending.STOPPED.value)
        finally:
            self._opened.close()
            told = str(error) if isinstance(error, FykeError) else repr(error) if error else None
            self._note("closed", ending=self._ending or "error", error=told)


@contextmanager
def taken(directory: CrawlDirectory, config: Config, listed: Iterable[str] | None) -> Iterator[None]:
    """Keep other crawls out of `directory`, which is made ready for the agents of the crawl of `config`, while the
    block runs. Raises OtherCrawl, DirectoryInUse, DirectoryError, DiskFull or StateDamaged."""
    directory.prepare(config)
    with directory.held():
        for part in directory.parts:
            require_state(part)
        with directory.recorded(config, listed):
            take_over(directory)
            yield


def may_begin_again(state: Mapping[str, Any]) -> bool:
    """Return whether the crawl in `state`, or the pass over it, has ended, so that the next pass may begin."""
    return state.get("ending") in (Ending.FINISHED, Ending.PAGES)


def brought_nothing(state: Mapping[str, Any]) -> bool:
    """Return whether a run ended in `state` before any server answered; the next begins anew."""
    ended = state.get("ending") in (Ending.UNREACHED, Ending.FINISHED)
    return ended and not state["totals"]["archive_bytes"]
