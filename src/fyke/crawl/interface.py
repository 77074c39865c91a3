"""A crawl from Python: `fyke.Crawl`, a context manager over the pages as they are archived.

The same object serves `with` and `async with`. The synchronous form has an event loop of its own, and runs it in the
caller's thread only while it is asked for the next page. Pages pass through a buffer. When it is full the fetcher is
held back: a slow reader slows the crawl down, and memory stays bounded by `BUFFER_PAGES`, `BUFFER_BYTES` and the
downloads under way.

A reader that lets the loop stand still for long would make servers look slow, because time limits go on while nobody
reads the sockets. It gets its pages when nothing is on its way.

Invariant: every page archived while the block is open is given to the reader once, in the order of the archive; unread
pages can be read after the block.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack

import uvloop

from fyke.archive.directory import CrawlDirectory
from fyke.archive.statistics import CrawlStatistics
from fyke.core.config import Config, build
from fyke.core.errors import ConfigurationError, PluginError
from fyke.core.pages import Page
from fyke.core.plugins import PageSink, ProcessingModule, ProtocolModule, UrlFilter, lacking
from fyke.crawl.agent import Agent
from fyke.crawl.loop import Ending
from fyke.crawl.opening import Plugins

BUFFER_PAGES = 64
BUFFER_BYTES = 32 << 20  # of their contents
HALF = 0.5
SLOW_READER_S = 0.5  # a synchronous reader that is away longer gets its pages when nothing is under way
SETTLE_S = 5.0  # the longest that such a reader waits for that
SETTLE_BEAT_S = 0.01

_Plugin = TypeVar("_Plugin")


class CrawlOptions(TypedDict, total=False):
    """Options by keyword: the keys of `[crawl]`, except for seeds and agents."""

    scope: str  # seeds, prefix, host, domain or web
    pages: int
    bytes: int
    for_s: float
    wait_s: float
    depth: int
    allow: Sequence[str]
    deny: Sequence[str]
    sitemaps: bool
    rewrite: str
    requisites: bool


class Crawl:
    """The crawl that begins at `seeds`, in the directory `into`; the same call again resumes it.

    `config` holds all other settings; keywords go over its `[crawl]` section. Without seeds, the crawl in `into` goes
    on as it was asked. Plug-ins are objects, used in order after those that `config` names.

    Iterate over it for its pages, without sitemaps and feeds (`page.content` is there, `page.exchange.body` is closed).
    Each comes once, after it was archived. Pages that a broken or killed loop left unread do not come again: they are
    in the archive and the tables.

    Raises FykeError if its arguments cannot be used, or no crawl can be opened there.
    """

    def __init__(
        self,
        seeds: str | Iterable[str] = (),
        into: str | Path = "",
        *,
        config: Config | None = None,
        filters: Iterable[UrlFilter] = (),
        protocols: Iterable[ProtocolModule] = (),
        processors: Iterable[ProcessingModule] = (),
        sinks: Iterable[PageSink] = (),
        **asked: Unpack[CrawlOptions],
    ) -> None:
        if not str(into):
            raise ConfigurationError('no directory given: name the crawl\'s directory, Crawl(seeds, into="there")')
        self._directory = CrawlDirectory(Path(into))
        self._config = _settings([seeds] if isinstance(seeds, str) else list(seeds), self._directory, config, asked)
        self._reader = _PageBuffer()
        self._agent = Agent(
            self._directory,
            self._config,
            plugins=Plugins(
                _fitting(filters, UrlFilter),
                _fitting(protocols, ProtocolModule),
                _fitting(processors, ProcessingModule),
                [*_fitting(sinks, PageSink), self._reader],
            ),
        )
        self._runner: asyncio.Runner | None = None
        self._running: asyncio.Task[Ending] | None = None
        self._closed = False
        self._reported = False  # the failure that ended the crawl was raised already
        self._last = CrawlStatistics()
        self._gave_at = time.monotonic()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "not open" if self._running is None else "running"
        return f"Crawl({str(self._directory.path)!r}, {state})"

    @property
    def config(self) -> Config:
        """All settings of the crawl."""
        return self._config

    @property
    def ending(self) -> Ending | None:
        """Why the crawl ended (`Ending`: "finished", "pages", ...); None while it runs, or if it failed."""
        running = self._running
        if running is None or not running.done() or running.cancelled() or running.exception() is not None:
            return None
        return running.result()

    def statistics(self) -> CrawlStatistics:
        """Return how the crawl stands now, or stood at the end of the block."""
        return self._last if self._closed or self._running is None else self._agent.statistics()

    def stop(self) -> None:
        """End soon, so that the crawl can be resumed; pages archived by then still come."""
        if self._running is not None and not self._closed:
            self._agent.stop()

    # -- the asynchronous form -------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._running is not None:
            raise RuntimeError("a Crawl can be opened only once: make another with the same arguments to resume")
        await self._agent.__aenter__()
        self._reader.hold = self._agent.hold
        self._running = asyncio.get_running_loop().create_task(self._agent.run())
        self._running.add_done_callback(lambda _: self._reader.arrived.set())
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        running = self._running
        assert running is not None, "left before it was entered"
        self._agent.stop()
        try:
            await asyncio.wait([running])
        finally:
            running.cancel()  # it has ended, unless we were cancelled while we waited
            failure = self._failure()
            self._last = self._agent.statistics()
            self._closed = True
            await self._agent.__aexit__(type(failure) if failure else None, failure, None)
        if failure is not None and kind is None:
            raise failure

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Page:
        page = await self._next()
        if page is None:
            raise StopAsyncIteration
        return page

    # -- the synchronous form --------------------------------------------------------------------

    def __enter__(self) -> Self:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise ConfigurationError("an event loop is running here: use `async with fyke.Crawl(...)` and `async for`")
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        try:
            self._runner.run(self.__aenter__())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        assert self._runner is not None, "left before it was entered"
        try:
            self._runner.run(self.__aexit__(*error))
        finally:
            self._runner.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Page:
        if self._runner is None:
            raise RuntimeError("open the crawl first: `with fyke.Crawl(...) as crawl: for page in crawl`")
        page = self._reader.take() if self._closed else self._runner.run(self._next_in_step())
        if page is None:
            raise StopIteration
        return page

    async def _next_in_step(self) -> Page | None:
        """Return the next page to a reader that lets the loop stand still while it is away."""
        slow = time.monotonic() - self._gave_at > SLOW_READER_S
        page = await self._next(low=0.0 if slow else HALF)
        if slow and page is not None:
            await self._settle()
        self._gave_at = time.monotonic()
        return page

    async def _settle(self) -> None:
        """Hold the fetcher back, and wait until nothing is on its way."""
        self._reader.hold_back()
        until = time.monotonic() + SETTLE_S
        while not self._agent.quiet and time.monotonic() < until:
            await asyncio.sleep(SETTLE_BEAT_S)

    # -- both ------------------------------------------------------------------------------------

    async def _next(self, low: float = HALF) -> Page | None:
        """Return the next page, None after the last; let the fetcher go on if the buffer is filled up to `low` at
        most."""
        running, reader = self._running, self._reader
        if running is None:
            raise RuntimeError("open the crawl first: `async with fyke.Crawl(...) as crawl: async for page in crawl`")
        await asyncio.sleep(0)  # so that a reader that never waits lets the crawl go on
        while not reader.pages and not running.done():
            reader.go_on()
            reader.arrived.clear()
            await reader.arrived.wait()
        page = reader.take()
        if reader.filled <= low and not self._closed:
            reader.go_on()
        if page is None and not self._reported and (failure := self._failure()) is not None:
            raise failure
        return page

    def _failure(self) -> BaseException | None:
        """Return the crawl's failure, if it was not raised yet."""
        running = self._running
        if self._reported or running is None or not running.done() or running.cancelled():
            return None
        failure = running.exception()
        self._reported = failure is not None
        return failure


class _PageBuffer:
    """The sink that keeps pages for the reader: filled by the harvest, emptied by `take`."""

    def __init__(self) -> None:
        self.pages: deque[Page] = deque()
        self.arrived = asyncio.Event()
        self.hold: Callable[[bool], None] = lambda held: None
        self._held = False

    def page(self, page: Page) -> None:
        self.pages.append(page)
        self.arrived.set()
        if self.filled >= 1:
            self.hold_back()

    @property
    def filled(self) -> float:
        """How full it is: 0 if empty, 1 or more if full."""
        return max(len(self.pages) / BUFFER_PAGES, sum(page.size_bytes for page in self.pages) / BUFFER_BYTES)

    def take(self) -> Page | None:
        return self.pages.popleft() if self.pages else None

    def hold_back(self) -> None:
        if not self._held:
            self._held = True
            self.hold(True)

    def go_on(self) -> None:
        if self._held:
            self._held = False
            self.hold(False)

    def close(self) -> None:
        """Close nothing: unread pages can still be read."""


def _settings(seeds: list[str], directory: CrawlDirectory, config: Config | None, asked: CrawlOptions) -> Config:
    """Return `config`, or without seeds the directory's, with what was said by keyword over it."""
    there = not seeds and config is None
    values: dict[str, Any] = (config or (directory.config() if there else Config())).model_dump(mode="json")
    if there:
        values["crawl"]["for_s"] = 0
    values["crawl"] |= asked
    if seeds:
        values["crawl"]["seeds"] = seeds
    settings = build(values, "fyke.Crawl")
    if not settings.crawl.seeds:
        raise ConfigurationError("nothing to crawl: give a URL, or the directory of a crawl to resume")
    if (agents := settings.crawl.agents) > 1:
        raise ConfigurationError(
            f"crawl.agents = {agents}: Python runs only one agent; leave it out, or run fyke crawl --agents {agents}"
        )
    return settings


def _fitting(plugins: Iterable[_Plugin], protocol: type) -> list[_Plugin]:
    """Return `plugins` as a list. Raises PluginError for one that does not fit `protocol`."""
    found = list(plugins)
    for plugin in found:
        if isinstance(plugin, type):
            raise PluginError(f"{plugin!r} is not a {protocol.__name__}: give an object, not a class")
        if not isinstance(plugin, protocol):
            raise PluginError(f"{plugin!r} is not a {protocol.__name__}{lacking(plugin, protocol)}")
    return found
