"""Opens the rooms of one agent, in the order in which they need each other.

`Prepared` is made of the settings before anything is written, so that a mistake costs no directory. `Rooms` are the
rooms, each as the crawl's last checkpoint left it: the only place that knows all of them. `agent` runs them.

Invariant: a room is restored before anything is written; if one cannot be opened, those before it are closed.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fyke.archive.asked import AskedLater, all_seeds
from fyke.archive.directory import CrawlDirectory
from fyke.archive.lost import require_asked
from fyke.archive.payloads import Payloads
from fyke.archive.records import pack
from fyke.archive.table_files import series
from fyke.archive.tables import ExtractedTable, LinksTable, PagesTable
from fyke.archive.warc import WarcWriter
from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.errors import ConfigurationError
from fyke.core.hours import HostHours
from fyke.core.outcomes import Outcome
from fyke.core.pace import Pace
from fyke.core.plugins import PageSink, ProcessingModule, ProtocolModule, UrlFilter, named, schemes_of
from fyke.core.resolve import LinkResolver
from fyke.core.rewrite_rules import rewrite_rules_of
from fyke.core.rewriting import Rewriter
from fyke.core.version import VERSION
from fyke.crawl.barn import Barn
from fyke.crawl.counts import Counts
from fyke.crawl.engines import Engines
from fyke.crawl.gathering import Gathering
from fyke.crawl.keeper import Keeper, Stateful, Writer
from fyke.crawl.learning import learn, learn_own
from fyke.crawl.outbox import SENT_LINKS, LinkCache, Outbox
from fyke.crawl.passes import Pass, Passes
from fyke.crawl.past import Past
from fyke.crawl.post.alone import Alone, Post
from fyke.crawl.post.office import Office
from fyke.crawl.post.seat import PostRooms, Seat
from fyke.crawl.printing import Printing
from fyke.crawl.remote import Remote
from fyke.crawl.revisits import Revisits
from fyke.crawl.rewriting import Rewriting
from fyke.crawl.weight_lists import read_weights
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.files import real_path
from fyke.fetcher.access import Sites
from fyke.fetcher.book import HostBook
from fyke.fetcher.chosen import Chosen
from fyke.fetcher.connections import KEPT_OF_ADDRESS, kept_connections, other_connections
from fyke.fetcher.dns_query import server_of
from fyke.fetcher.fetcher import Fetcher
from fyke.fetcher.names import MOST_NAMES, Resolver
from fyke.fetcher.rests import Rests
from fyke.fetcher.shared_book import SharedBook
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.http import agent_name
from fyke.fetcher.wire.registry import build_registry
from fyke.fetcher.wiring import Wiring
from fyke.fetcher.workbench import Workbench
from fyke.frontier.budgets import budget_function
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier
from fyke.frontier.order import crawl_order
from fyke.harvest import Parser
from fyke.harvest.binder import Binder
from fyke.harvest.content_seen import ContentSeen
from fyke.harvest.fields import Extractor
from fyke.harvest.harvest import Harvest
from fyke.harvest.named_sitemaps import NamedSitemaps
from fyke.harvest.new_text import NewText
from fyke.harvest.redirects import Redirects
from fyke.harvest.slow_lane import SlowLane


@dataclass(frozen=True, slots=True)
class Plugins:
    """Objects that take part in a crawl, in the order in which they are asked."""

    filters: Sequence[UrlFilter] = ()
    protocols: Sequence[ProtocolModule] = ()
    processors: Sequence[ProcessingModule] = ()
    sinks: Sequence[PageSink] = ()


class Prepared:
    """What the crawl of `config` in `directory` needs and no file holds. `given` plug-ins follow those that `config`
    names. Raises ConfigurationError, PluginError or BadUrl."""

    def __init__(self, directory: CrawlDirectory, config: Config, given: Plugins) -> None:
        self.filters = [*named(config.plugins, "filters"), *given.filters]
        self.protocols = [*named(config.plugins, "protocols"), *given.protocols]
        self.processors = [*named(config.plugins, "processors"), *given.processors]
        self.sinks = [*named(config.plugins, "sinks"), *given.sinks]
        crawl_order(config.frontier)  # the frontier makes its own; a wrong one costs no directory here
        budget_function(config.frontier)
        self.schemes = schemes_of(self.protocols)
        require_asked(directory)
        self.seeds = all_seeds(directory.state, config, self.schemes)
        self.sites = Sites(config.site)
        self.hours = HostHours(config.politeness.hours, config.site)
        self.extractors = [Extractor(section) for section in config.extract]
        for server in config.dns.servers:
            server_of(server)
        if config.fetch.ca_file and not Path(config.fetch.ca_file).is_file():
            raise ConfigurationError(f"fetch.ca_file = {config.fetch.ca_file!r}: no such file; name a PEM file")
        self.weights = read_weights(config.revisit.weights)
        self.rules = rewrite_rules_of(config.crawl)
        Rewriter(self.rules)
        self.other_connections = other_connections(config.fetch.connections)
        self.filtering = filters_for(config.crawl, self.seeds, sorted(self.schemes), self.filters)


class Rooms:
    """The rooms of an agent, as `saved` of the `checkpoint` has them; they set `news` if they have something for the
    loop."""

    def __init__(
        self,
        directory: CrawlDirectory,
        config: Config,
        prepared: Prepared,
        seat: Seat | None,
        clock: Clock,
        news: asyncio.Event,
        checkpoint: Checkpoint,
        saved: dict[str, Any],
    ) -> None:
        self._directory = directory
        self._config = config
        self._prepared = prepared
        self._seat = seat
        self._shared = seat is not None
        self._agents = 1 if seat is None else seat.division.agents
        self._clock = clock
        self._news = news
        self._store = checkpoint.store
        self._pace = Pace(clock)
        self.started_at = clock.now()
        self.passes = Passes(saved.get("again"))
        self.asked = AskedLater(directory.state, shared=self._shared)  # under the lock: others may have written it
        self.asked.keep()
        with ExitStack() as self._opened:
            self._open_hosts(saved)
            self._open_archive(saved)
            self._open_frontier(saved)
            self._open_harvest(saved)
            self._open_post(saved)
            self._open_fetcher()
            self.counts = Counts(
                frontier=self.frontier, fetcher=self.fetcher, barn=self.barn, outbox=self.outbox,
                filters=prepared.filtering, parser=self._parser, registry=self._registry, archive=self.archive,
                passes=self.passes, clock=clock, totals=saved.get("totals", {}), started_at=self.started_at,
                rewriting=self.rewriting, deaths={} if seat is None else seat.deaths,
            )  # fmt: skip
            self.keeper = self._keeper(checkpoint)
            self._opened = self._opened.pop_all()

    def __repr__(self) -> str:
        return f"Rooms({self._directory!r})"

    def _open_archive(self, saved: dict[str, Any]) -> None:
        store, path, part = self._config.store, self._directory.path, self._directory.part
        agent = self._config.agent
        info = {"operator": agent.contact, "robots": "RFC 9309", "http-header-user-agent": agent_name(agent)}
        self.archive = WarcWriter(
            path,
            store.warc_bytes,
            f"fyke/{VERSION}",
            crawl=series(real_path(path).name or "crawl", part),
            info={key: value for key, value in info.items() if value},
        )
        self.pages = PagesTable(path, store.table_rows, part)
        self.links = LinksTable(path, store.table_rows, part)
        for writer in (self.archive, self.pages, self.links):
            self._opened.callback(writer.abandon)
        self.archive.restore(saved.get("archive", {}))
        self.pages.restore(saved.get("pages", {}))
        self.links.restore(saved.get("links", {}))
        self.extracted = {
            f"extract {one.name}": ExtractedTable(path, one.name, one.schema, store.table_rows, part)
            for one in self._prepared.extractors
        }
        for name, table in self.extracted.items():
            self._opened.callback(table.abandon)
            table.restore(saved.get(name, {}))

    def _open_hosts(self, saved: dict[str, Any]) -> None:
        directory, config = self._directory, self._config
        self.book = (
            HostBook(directory.hosts) if self._seat is None else SharedBook(directory.hosts, directory.host_books)
        )
        self._opened.callback(self.book.close)
        self.rests = Rests(
            directory.rests,
            config.politeness,
            config.fetch.timeout_s,
            self.started_at,
            resumed=bool(saved),
            others=self._seat is not None and self._seat.moved,
        )
        self._opened.callback(self.rests.close)
        if saved:
            self.rests.check_book(self.book.writes)
            self.book.forget_since(saved["taken_at"])
        self.rests.note_book(self.book.writes, self.started_at)

    def _open_frontier(self, saved: dict[str, Any]) -> None:
        config = self._config
        self.frontier = Frontier(
            self._store,
            config.frontier,
            self._prepared.filtering,
            by_level=config.crawl.depth > 0,
            host_delay_s=config.politeness.host_delay_s,
            few_visits=config.fetch.connections,
            opened_at=self._clock.now(),
            state=saved.get("frontier"),
            descends=not self._shared,
            sites=config.site,
        )
        self.content_seen = ContentSeen(self._store, config.frontier.table_memory_bytes, saved.get("content"))
        self.payloads = Payloads(self._store, config.frontier.table_memory_bytes, saved.get("payloads"))

    def _open_harvest(self, saved: dict[str, Any]) -> None:
        config, prepared, loop = self._config, self._prepared, asyncio.get_running_loop()
        self.named_sitemaps = NamedSitemaps(saved.get("sitemaps", {}))
        self._redirects = Redirects(saved.get("redirects", {}))
        self._past = Past(self.frontier.known_pages, self._directory.path)
        self.barn = Barn(
            self.archive,
            self.payloads,
            self.pages,
            self.links if config.store.links else None,
            prepared.sinks,
            self.passes,
            {one.name: self.extracted[f"extract {one.name}"] for one in prepared.extractors},
            saved.get("totals", {}),
        )
        self.rewriting = None
        if prepared.rules or saved.get("rewriting"):
            memory = config.frontier.table_memory_bytes
            self.rewriting = Rewriting(
                self._store, prepared.rules, prepared.filtering, memory, saved.get("rewriting") or {}
            )
        by_depth = bool(config.crawl.depth or prepared.filters)
        self.outbox = Outbox(LinkCache(SENT_LINKS, by_depth=by_depth))
        self._parser = Parser(
            prepared.processors,
            config.crawl.requisites,
            product=config.agent.user_agent,
            shared=bool(prepared.sinks),
            extractors=prepared.extractors,
        )
        self.slow_lane: SlowLane[Any] = SlowLane(lambda: loop.call_soon_threadsafe(self._news.set), self._pace)
        self._opened.callback(self.slow_lane.close)
        links = LinkResolver(prepared.schemes)
        binder = Binder(links, self.named_sitemaps, self.content_seen, self._redirects)
        self._harvest = Harvest(
            self._parser, self.content_seen, binder, config.fetch, self.slow_lane, self._past.content, pack
        )

    def _open_post(self, saved: dict[str, Any]) -> None:
        prepared, seat = self._prepared, self._seat
        self._chosen = Chosen(prepared.seeds, self._config.dns.private)
        self.resolver = Resolver(
            self._config.dns,
            self._clock,
            self._chosen.host,
            by_proxy=prepared.sites.by_proxy,
            most_names=MOST_NAMES // self._agents,
        )
        self.resolver.remember(self.rests)
        self.post: Post = Alone()
        self.office: Office | None = None  # the same, if there are other agents
        if seat is not None:
            of_before = saved.get("post", {})
            life = max(int(self._clock.now() * 1e6), of_before.get("letters", {}).get("life", 0) + 1)
            rooms = PostRooms(
                store=self._store, resolver=self.resolver, rests=self.rests, past=self._past, clock=self._clock
            )
            self.post = self.office = Office(seat, rooms, life, of_before, self._news)
        self._opened.callback(self.post.close)

    def _open_fetcher(self) -> None:
        config, prepared, loop = self._config, self._prepared, asyncio.get_running_loop()
        kept = kept_connections(config.fetch.connections, prepared.other_connections)
        # Without a rest, hosts are asked at once at one address; a proxy is asked for many hosts.
        shares = not config.politeness.address_delay_s or any(table.proxy for table in config.site)
        of_address = 0 if shares else KEPT_OF_ADDRESS
        self._curl = CurlClient(
            loop, config.fetch, self._clock, str(self._directory.state), self._pace, kept=kept, of_address=of_address
        )
        self._opened.callback(self._curl.close)
        self._registry = build_registry(
            loop, self._curl, config.agent, self._clock, prepared.protocols, self._chosen.port, prepared.sites
        )
        self.bench = Workbench(
            config.politeness, config.frontier.default_budget_urls, prepared.sites.delay_s, prepared.hours
        )
        wiring = Wiring(
            bench=self.bench,
            resolver=self.resolver,
            book=self.book,
            rests=self.rests,
            protocols=self._registry,
            abort=self._curl.close,
            clock=self._clock,
            past=self._past,
            cut=self._curl.cut,
            holds_back=self._harvest.holds_back,
            room=self._curl.room,
            ours=self.post.owns,
            shared=self._shared,
            pace=self._pace,
        )
        self.fetcher = Fetcher(wiring, config, self._news, prepared.other_connections)
        self.limit_pages()

    def limit_pages(self) -> None:
        """Let as many pages begin as the crawl, or its last pass, may still bring."""
        if pages := self._config.crawl.pages:
            self.fetcher.pages_left = 0 if self._shared else max(0, pages - self.brought)  # the supervisor allows them

    def engines(self, asked_pass: Pass | None) -> Engines:
        """Return the parts between which the loop moves messages. `asked_pass` says whether the crawl never ends."""
        remote = revisits = None
        if self.office is not None:
            remote = Remote(
                self.frontier, self.fetcher, self.outbox, self.office, self._past, self._clock, self.rewriting
            )
        if asked_pass is not None and asked_pass.forever:
            self.frontier.known_pages.weights = self._prepared.weights
            revisits = Revisits(self.frontier, self.learn, self.book.forgive, self._clock, self._config.revisit)
        new_text = NewText() if self._config.frontier.trap_pages else None
        printing = None if self.rewriting is None else Printing(self._prepared.rules)
        gathering = Gathering(self._harvest, self.barn, new_text, printing, listens=revisits is not None)
        return Engines(
            self.frontier, self.fetcher, gathering, self.outbox, remote, revisits, self.rewriting, self._pace
        )

    @property
    def brought(self) -> int:
        """Number of pages that count towards a limit: of the last pass, or of the crawl."""
        return self.passes.pages if self.passes.began else self.barn.outcomes[Outcome.OK]

    def learn(self) -> Iterator[None]:
        """Tell the frontier of visits that ended, batch by batch, and let sitemaps be read once more."""
        self.named_sitemaps.clear()
        pages, folder = self.frontier.known_pages, self._directory.path
        if self._seat is None:
            self.pages.flush()
            yield from learn(pages, folder)
        else:
            yield from learn_own(pages, folder, self._seat.division, self._seat.me)

    def _keeper(self, checkpoint: Checkpoint) -> Keeper:
        writers: dict[str, Writer] = {"archive": self.archive, "pages": self.pages, "links": self.links}
        writers |= self.extracted
        if self.office is not None:
            writers["post"] = self.office
        rewriting: dict[str, Stateful] = {} if self.rewriting is None else {"rewriting": self.rewriting}
        return Keeper(
            checkpoint,
            {
                **rewriting,
                "frontier": self.frontier,
                "content": self.content_seen,
                "payloads": self.payloads,
                "sitemaps": self.named_sitemaps,
                "redirects": self._redirects,
                "fetcher": self.fetcher,
                "totals": self.counts,
                "again": self.passes,
                "asked": self.asked,
            },
            writers,
            self._clock,
            self._config.store.checkpoint_s,
            self._directory.settings_digests(),
        )

    def close(self) -> None:
        """Give back what was opened, as it is. The store closes its own files."""
        self._opened.close()
