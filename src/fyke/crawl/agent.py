"""One agent: opens a crawl's directory, puts the rooms together, runs the loop, keeps it safe.

The only place that knows all rooms. `Agent` is used by the command line (`crawl_with_panel`) and by the
Python interface (`fyke.Crawl`). Order matters at both ends: a crawl is restored before anything is
written, and closed so that its last checkpoint says what is on the disk.

Invariant: between `open` and `close` the directory is held by this process alone.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.archive import SCHEMAS, HostRow, LinksTable, PagesTable, WarcWriter, write_domains, write_hosts
from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.division import Division, division
from fyke.archive.statistics import CrawlStatistics
from fyke.archive.table_files import series
from fyke.archive.tables import ExtractedTable
from fyke.core.clock import Clock, SystemClock
from fyke.core.config import Config
from fyke.core.errors import ConfigurationError, DirectoryInUse, FykeError, StateDamaged
from fyke.core.outcomes import Outcome
from fyke.core.plugins import PageSink, ProcessingModule, ProtocolModule, UrlFilter, load_plugin, schemes_of
from fyke.core.resolve import LinkResolver
from fyke.core.seeds import seeds_of
from fyke.core.urls import host_keys
from fyke.core.version import VERSION
from fyke.crawl.barn import Barn
from fyke.crawl.control import Steering
from fyke.crawl.counts import Counts
from fyke.crawl.gathering import Gathering
from fyke.crawl.keeper import Keeper, Writer
from fyke.crawl.loop import Ending, Engines, Loop
from fyke.crawl.mail import Alone, LinkCache, Outbox, Post
from fyke.crawl.passes import Pass, Passes, Past, learn
from fyke.crawl.post.letters import Envelope
from fyke.crawl.post.office import Office, Transport
from fyke.crawl.remote import Remote
from fyke.disk.checkpoint import Checkpoint
from fyke.fetcher.access import Sites
from fyke.fetcher.book import HostBook, SharedBook
from fyke.fetcher.chosen import Chosen
from fyke.fetcher.connections import kept_connections, other_connections
from fyke.fetcher.dns_query import server_of
from fyke.fetcher.engine import Fetcher, Wiring
from fyke.fetcher.names import Resolver
from fyke.fetcher.rests import Rests
from fyke.fetcher.wire.curl import CurlEngine
from fyke.fetcher.wire.registry import build_registry
from fyke.fetcher.workbench import Workbench
from fyke.frontier.budgets import budget_function
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier
from fyke.frontier.order import crawl_order
from fyke.harvest import Parser
from fyke.harvest.aside import Aside
from fyke.harvest.content_seen import ContentSeen
from fyke.harvest.fields import Extractor
from fyke.harvest.redirects import Redirects
from fyke.harvest.worker import Harvest, NamedSitemaps


@dataclass(frozen=True, slots=True)
class Seat:
    """Where an agent sits among those of its crawl."""

    me: int
    division: Division
    transport: Transport
    most_rules: int  # origins that a shard asks for their rules at a time
    moved: bool  # whether addresses went from agent to agent since the last run


@dataclass(frozen=True, slots=True)
class Plugins:
    """Objects that take part in a crawl, in the order in which they are asked."""

    filters: Sequence[UrlFilter] = ()
    protocols: Sequence[ProtocolModule] = ()
    processors: Sequence[ProcessingModule] = ()
    sinks: Sequence[PageSink] = ()


class Agent:
    """A crawl of `config` in `directory`. Use as an async context manager; then `run` it."""

    def __init__(
        self,
        directory: CrawlDirectory,
        config: Config,
        *,
        seat: Seat | None = None,
        listed: Iterable[str] | None = None,
        clock: Clock | None = None,
        again: Pass | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        """`seat` is where it sits among other agents of the crawl; None: it is alone.

        `listed`: canonical URLs to begin at, beside the seeds of `config`; when it is resumed the same, or None.
        `again` is a pass over the crawl, if it has ended.

        `plugins` are used after those that `config` names.
        """
        self._listed = listed
        self.directory = directory
        self._seat = seat
        self.config = config
        self._clock = clock or SystemClock()
        self._again = again
        given = plugins or Plugins()
        self._filters, self._protocols = list(given.filters), list(given.protocols)
        self._processors, self._sinks = list(given.processors), list(given.sinks)
        self._asked_later = AskedLater(directory.state)
        self._open_plugins()
        self._schemes = schemes_of(self._protocols)
        self._seeds = seeds_of([*config.crawl.seeds, *self._asked_later.seeds], self._schemes)
        self._sites = Sites(config.site)
        self._extractors = [Extractor(section) for section in config.extract]
        for server in config.dns.servers:
            server_of(server)
        if config.fetch.ca_file and not Path(config.fetch.ca_file).is_file():
            raise ConfigurationError(f"fetch.ca_file = {config.fetch.ca_file!r}: there is no such file")
        self._other_connections = other_connections(config.fetch.connections)
        self._filtering = filters_for(config.crawl, self._seeds, sorted(self._schemes), self._filters)
        self._news = asyncio.Event()  # something ended, or was asked for
        self._ending: Ending | None = None

    def __repr__(self) -> str:
        return f"Agent({self.directory!r})"

    # -- opening ---------------------------------------------------------------------------------

    async def __aenter__(self) -> "Agent":
        config, directory = self.config, self.directory
        if self._seat is None:
            directory.prepare(config)
            if division(directory.state).agents > 1:
                raise ConfigurationError(
                    f"{directory.path} is crawled by several agents, and from Python one crawls: fyke crawl --into"
                    f" {directory.path} goes on with it"
                )
        try:
            self._checkpoint = Checkpoint(directory.shard)
        except DirectoryInUse:
            raise DirectoryInUse(
                f"{directory.path} is in use by another crawl: stop it, or choose another folder with --into"
            ) from None
        try:
            if self._seat is None:
                directory.record(config, self._listed)
            self._open()
        except BaseException:
            self._checkpoint.close()
            raise
        return self

    def _open(self) -> None:
        saved = saved_state(self.directory.shard)
        if not saved and self._seat is None and any(self.directory.warc.glob("*.warc.gz")):
            raise StateDamaged(
                f"{self.directory.shard} holds no manifest, yet {self.directory.warc} holds an archive: put the state"
                " back from a copy, or keep this folder as it is and crawl into another with --into"
            )
        if self._seat is None and brought_nothing(saved):
            self.directory.forget()  # under the lock: another crawl could begin here, and lose its files
            self._checkpoint.reopen()
            saved = {}
        self._store = self._checkpoint.store
        self._asked_later = AskedLater(self.directory.state)  # again: until the lock was held, others wrote it
        self._started_at = self._clock.now()
        self._passes = Passes(saved.get("again"))
        self._log_file = (self.directory.logs / "fyke.log").open("a", encoding="utf-8")
        self._open_stores(saved)
        self._open_frontier(saved)
        self._open_fetcher(saved)
        gathering = Gathering(self._harvest, self._barn)
        self._loop = Loop(
            Engines(self._frontier, self._fetcher, gathering, self._outbox, self._remote()), self.config.crawl,
            self._clock, self._news,
            has_its_bytes=lambda: 0 < self.config.crawl.bytes <= self._barn.body_bytes,
        )  # fmt: skip
        self._counts = Counts(
            self._frontier, self._fetcher, self._barn, self._outbox, self._filtering, self._parser, self._registry,
            self._archive, self._passes, self._clock, saved.get("totals", {}), self._started_at,
        )  # fmt: skip
        self._keeper = Keeper(
            self._checkpoint,
            {
                "frontier": self._frontier,
                "content": self._content_seen,
                "sitemaps": self._named_sitemaps,
                "redirects": self._redirects,
                "fetcher": self._fetcher,
                "totals": self._counts,
                "again": self._passes,
            },
            self._writers(),
            self._clock,
            self.config.store.checkpoint_s,
        )
        self._steering = Steering(
            self._asked_later, self._seeds, self._outbox, self._frontier, self._fetcher, self.post, self._clock
        )
        self._handler_before = asyncio.get_running_loop().get_exception_handler()
        asyncio.get_running_loop().set_exception_handler(self._failed)
        self._resumed = bool(saved)
        if self._again is not None and may_begin_again(saved):
            self._begin(self._again)
        self._frontier.resume()
        self._frontier.block(host_keys(name)[0] for name in self._asked_later.blocked)
        for name in self._asked_later.blocked:
            self.post.block(host_keys(name)[0])
        self._frontier.unblock(())  # hosts that were blocked when the last run ended, and are not now
        self._put_seeds(begun=bool(saved))
        waiting = self._frontier.statistics().rows
        self._note("resumed" if saved else "begun", seeds=len(self._seeds), waiting=waiting)

    def _put_seeds(self, *, begun: bool) -> None:
        """Begin, or go on, at the seeds of this shard; those of others are known."""
        self._frontier.know_seeds(self._seeds)
        self._frontier.put_seeds(self.post.own_seeds(self._seeds))
        for listed in self.directory.listed.batches():
            self._frontier.know_seeds(listed, named=False)
            if not begun:
                self._frontier.put_seeds(self.post.own_seeds(listed), named=False)

    def _begin(self, asked: Pass) -> None:
        """Have pages visited once more; and ask of servers what is asked once a crawl."""
        learn(self._frontier.again, self.directory.path)
        self._frontier.begin_again(self._clock.now(), asked.visits)
        self._named_sitemaps.clear()
        self._book.forgive()
        self._passes.begin(self._clock.now(), self._archive.state()["serial"])
        if self.config.crawl.pages:
            self._fetcher.pages_left = self.config.crawl.pages
        self._note("again", number=len(self._passes.began), waiting=len(self._frontier.again))

    def _open_stores(self, saved: dict[str, Any]) -> None:
        store, path, part = self.config.store, self.directory.path, self.directory.part
        info = {"operator": self.config.agent.contact, "robots": "RFC 9309", "http-header-user-agent": ""}
        self._archive = WarcWriter(
            path, store.warc_bytes, f"fyke/{VERSION}", crawl=series(path.resolve().name or "crawl", part),
            info={key: value for key, value in info.items() if value},
        )  # fmt: skip
        self._pages = PagesTable(path, store.table_rows, part)
        self._links = LinksTable(path, store.table_rows, part)
        self._archive.restore(saved.get("archive", {}))
        self._pages.restore(saved.get("pages", {}))
        self._links.restore(saved.get("links", {}))
        self._extracted = {
            f"extract {one.name}": ExtractedTable(path, one.name, one.schema, store.table_rows, part)
            for one in self._extractors
        }
        for name, table in self._extracted.items():
            table.restore(saved.get(name, {}))
        self._book = self._opened_book()
        self._rests = Rests(
            self.directory.rests, self.config.politeness, self.config.fetch.timeout_s, self._started_at,
            resumed=bool(saved), others=self._seat is not None and self._seat.moved,
        )  # fmt: skip
        if saved:
            self._book.forget_since(saved["taken_at"])

    def _remote(self) -> Remote | None:
        if not isinstance(self.post, Office):
            return None
        return Remote(self._frontier, self._fetcher, self._outbox, self.post, self._clock)

    def _writers(self) -> dict[str, Writer]:
        writers: dict[str, Writer] = {"archive": self._archive, "pages": self._pages, "links": self._links}
        writers |= self._extracted
        if isinstance(self.post, Office):
            writers["post"] = self.post
        return writers

    def _opened_book(self) -> HostBook:
        if self._seat is None:
            return HostBook(self.directory.hosts)
        return SharedBook(self.directory.hosts, [part.hosts for part in self.directory.parts])

    def _open_plugins(self) -> None:
        named = self.config.plugins
        self._filters[:0] = [load_plugin(name, "filters", UrlFilter) for name in named.filters]
        self._protocols[:0] = [load_plugin(name, "protocols", ProtocolModule) for name in named.protocols]
        self._processors[:0] = [load_plugin(name, "processors", ProcessingModule) for name in named.processors]
        self._sinks[:0] = [load_plugin(name, "sinks", PageSink) for name in named.sinks]
        crawl_order(self.config.frontier)  # the frontier makes its own: here a wrong one costs no directory yet
        budget_function(self.config.frontier)

    def _open_frontier(self, saved: dict[str, Any]) -> None:
        config = self.config
        moved: dict[str, Any] = {
            name: saved[name] for name in ("landed", "leased", "blocked") if name in saved
        }  # where 0.1 had them
        self._frontier = Frontier(
            self._store,
            config.frontier,
            self._filtering,
            by_level=config.crawl.depth > 0,
            host_delay_s=config.politeness.host_delay_s,
            few_visits=config.fetch.connections,
            opened_at=self._clock.now(),
            state={**moved, **saved.get("frontier", {})},
            descends=self._seat is None,
        )
        self._content_seen = ContentSeen(self._store, config.frontier.table_memory_bytes, saved.get("content"))

    def _open_fetcher(self, saved: dict[str, Any]) -> None:
        config, clock, loop = self.config, self._clock, asyncio.get_running_loop()
        self._named_sitemaps = NamedSitemaps(saved.get("sitemaps", {}))
        self._redirects = Redirects(saved.get("redirects", {}))
        self._barn = Barn(
            self._archive, self._pages, self._links if config.store.links else None, self._sinks, self._passes,
            [*zip(self._extractors, self._extracted.values(), strict=True)],
            saved.get("totals", {}),
        )  # fmt: skip
        self._outbox = Outbox(LinkCache(config.frontier.link_cache, by_depth=bool(config.crawl.depth or self._filters)))
        self._parser = Parser(
            self._processors,
            config.crawl.requisites,
            product=config.agent.user_agent,
            shared=bool(self._sinks or self._extractors),
        )
        self._aside: Aside[Any] = Aside(lambda: loop.call_soon_threadsafe(self._news.set))
        self._harvest = Harvest(
            self._parser, self._content_seen, self._named_sitemaps, config.fetch,
            LinkResolver(self._schemes), self._aside, self._redirects,
        )  # fmt: skip
        chosen = Chosen(self._seeds, config.dns.private)
        self._resolver = Resolver(config.dns, clock, chosen.host, by_proxy=self._sites.by_proxy)
        self.post: Post = Alone()
        if self._seat is not None:
            saved_post = saved.get("post", {})
            life = max(int(self._clock.now() * 1e6), saved_post.get("letters", {}).get("life", 0) + 1)
            self.post = Office(
                self._seat.me, self._seat.division, self._seat.transport,
                (self._store, self._resolver, self._rests, self._clock), life, saved_post, self._seat.most_rules,
                self._news,
            )  # fmt: skip
        kept = kept_connections(config.fetch.connections, self._other_connections)
        self._engine = CurlEngine(loop, config.fetch, clock, str(self.directory.state), kept=kept)
        self._registry = build_registry(
            loop, self._engine, config.agent, clock, self._protocols, chosen.port, self._sites
        )
        self._bench = Workbench(config.politeness, config.frontier.default_budget_urls, self._sites.delay_s)
        self._fetcher = Fetcher(
            Wiring(
                self._bench,
                self._resolver,
                self._book,
                self._rests,
                self._registry,
                self._engine.close,
                clock,
                Past(self._frontier.again, self.directory.path),
                self._engine.cut,
                self.post.owns,
                shared=self._seat is not None,
            ),
            config,
            self._news,
            self._other_connections,
        )
        if config.crawl.pages:
            brought = self._passes.pages if self._passes.began else self._barn.outcomes[Outcome.OK]
            left = max(0, config.crawl.pages - brought)
            self._fetcher.pages_left = left if self._seat is None else 0  # the supervisor allows them

    # -- running ---------------------------------------------------------------------------------

    async def run(self) -> Ending:
        """Crawl until the end, a limit, or `stop`."""
        if not self._resumed:
            await self._keeper.take()  # so that an archive without a manifest means that the state was lost
        self._ending = await self._loop.run(self._keeper)
        return self._ending

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """End soon, so that the crawl can be resumed."""
        self._loop.stop(ending)

    # -- among others ----------------------------------------------------------------------------

    def put(self, envelope: Envelope) -> None:
        """An envelope came from another agent."""
        assert isinstance(self.post, Office)
        self.post.put(envelope)

    def stand(self) -> dict[str, Any]:
        """What the supervisor must know to tell when all is done, and who may fetch how many pages."""
        assert isinstance(self.post, Office)
        fetcher = self._fetcher
        return {
            "quiet": self._loop.idle and self._frontier.level_done,
            "activity": self.post.activity,
            "unsafe": self.post.unsafe,
            "later": len(self._frontier.later),
            "level": self._frontier.level,
            "blocked": len(self._frontier.blocked),
            "checkpoints": self._keeper.taken,
            "answered": self._barn.answered,
            "hosts": len(fetcher.bench),
            "unreached": fetcher.unreached,
            "pages": self._barn.outcomes[Outcome.OK],
            "pages_left": fetcher.pages_left,
            "waiting": fetcher.bench.visits,
            "resting": not (fetcher.in_flight or fetcher.ended),
        }

    def take_checkpoint(self) -> None:
        """Take a checkpoint at the next turn."""
        self._loop.wants_checkpoint = True
        self._news.set()

    def descend(self, level: int) -> None:
        """All pages nearer to the seeds than `level` are done, in all shards."""
        if self._frontier.level < level:
            self._frontier.descend(level)
            self._news.set()

    def allow(self, pages: int) -> None:
        """So many more pages may be begun."""
        self._fetcher.give_back(pages)
        self._news.set()

    def recall_pages(self) -> int:
        """How many pages might have been begun, and may not any more."""
        left, self._fetcher.pages_left = self._fetcher.pages_left, 0
        return max(0, left)

    def hold(self, held: bool) -> None:
        """Start no request while `held`: who reads the pages is behind."""
        self._fetcher.held = held
        self._news.set()

    def add_seeds(self, urls: Iterable[str]) -> int:
        """Take `urls` for seeds from now on, also after a restart; how many were none. Raises BadUrl: none is taken."""
        count = self._steering.add_seeds(seeds_of(urls, self._schemes))
        self._news.set()
        return count

    def block(self, host: str, blocked: bool) -> str:
        """Request nothing more of `host`, also after a restart, or go on with it; what was done, in words."""
        if blocked:
            return f"{host} is blocked" if self._steering.block(host) else f"{host} was blocked before"
        released = self._steering.unblock(host)
        self._news.set()
        return f"{host} is not blocked; {released:,} of its URLs go on"

    def figures(self) -> dict[str, Any]:
        """All that can be watched."""
        return self._steering.figures(self.statistics(), self._clock.now(), held=self._fetcher.held)

    def host_figures(self, host: str) -> dict[str, Any] | None:
        """How `host` stands at the workbench; None when it is not there."""
        return self._steering.host(host, self._clock.now())

    @property
    def quiet(self) -> bool:
        """Whether nothing is on its way from the network."""
        return self._fetcher.quiet

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception nobody caught, in a callback or a task: the crawl ends with it."""
        self._loop.failure = context.get("exception") or RuntimeError(context["message"])
        self._news.set()

    def _note(self, event: str, **facts: object) -> None:
        """A line of the log: a JSON object."""
        at = datetime.fromtimestamp(self._clock.now(), UTC)
        line = {**facts, "event": event, "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"}
        print(json.dumps(line), file=self._log_file, flush=True)

    def statistics(self) -> CrawlStatistics:
        """How the crawl stands now."""
        return self._counts.statistics()

    # -- closing ---------------------------------------------------------------------------------

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._engine.close()
        self._aside.close()
        await self._resolver.close()
        asyncio.get_running_loop().set_exception_handler(self._handler_before)
        try:
            if error is None:
                self._close_whole()
        finally:
            for closing in (self.post, self._frontier, self._content_seen, self._book, self._rests, self._checkpoint):
                closing.close()
            told = str(error) if isinstance(error, FykeError) else repr(error) if error else None
            self._note("closed", ending=self._ending or "error", error=told)
            self._log_file.close()

    def _close_whole(self) -> None:
        """Close what a person reads: archive and tables whole, and the last checkpoint after them."""
        self._fetcher.state()
        part = self.directory.part
        write_hosts(self.directory.path, self._host_rows(), part)
        write_domains(self.directory.path, self._domain_rows(), part)
        for writer in (self._archive, self._pages, self._links):
            writer.close()
        for table in self._extracted.values():
            table.close()
        for sink in self._sinks:
            sink.close()
        ending = self._ending.value if self._ending else Ending.STOPPED.value
        self._keeper.last(ending)

    def _host_rows(self) -> Iterator[HostRow]:
        for host in self._book.all_hosts():
            yield HostRow(
                host.name,
                host.domain,
                host.addresses[0] if host.addresses else "",
                self._fetcher.robots_state(host.name),
                host.crawl_delay_s,
                host.pages,
                host.failures,
                host.retired,
                host.first_seen or None,
                host.last_seen or None,
            )

    def _domain_rows(self) -> Iterator[pa.RecordBatch]:
        star, schema = self._frontier.star, SCHEMAS["domains"]
        for names, records in self._frontier.domains.named():
            budgets = star.budgets(records["in_degree"])
            columns = {
                "domain": names,
                "in_degree": records["in_degree"],
                "rank": star.ranking.rank(records["in_degree"]),
                "budget": budgets,
                "urls": records["urls"],
                "fetched": records["fetched"],
                "waiting": np.maximum(records["urls"].astype(np.int64) - records["ended"], 0),
                "host_delay_s": [self._bench.domain_delay_s(budget) for budget in budgets.tolist()],
            }
            yield pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def may_begin_again(state: Mapping[str, Any]) -> bool:
    """Whether the crawl in `state`, or the pass over it, has come to its end, so that the next pass may begin."""
    return state.get("ending") in (Ending.FINISHED, Ending.PAGES)


def brought_nothing(state: Mapping[str, Any]) -> bool:
    """Whether a run ended in `state` before any server answered: the next one begins anew."""
    ended = state.get("ending") in (Ending.UNREACHED, Ending.FINISHED)
    return ended and not state["totals"]["archive_bytes"]
