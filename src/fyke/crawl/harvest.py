"""What becomes of an exchange: content-seen, parsed, archived, its links handed on.

The loop gives it every visit that ended, once. Content-seen asks whether the same body was met at the
same place: then its links are known and it is not parsed again. The place counts because relative links
mean something else elsewhere: by the body alone (Mercator, section 3.5) pages would be lost.

Invariant: when `take_in` returns, record, rows and links of the visit are handed over together, and the
visit is no longer waiting.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fyke.core.batches import Kind
from fyke.core.config import FetchSection
from fyke.core.outcomes import Outcome
from fyke.core.plugins import PageSink
from fyke.core.resolve import LinkResolver
from fyke.core.urls import Locator, key_of, locate
from fyke.core.visits import Exchange, Page, Purpose
from fyke.fetch import decode_body
from fyke.frontier.frontier import Frontier
from fyke.frontier.seen import ContentSeen
from fyke.parse import HTML_TYPES, Parser
from fyke.store import LinkKind, LinksTable, PagesTable, WarcWriter

BATCH_PAGES = 64
BATCH_BYTES = 4 << 20  # of bodies and what they unfold to, so that a batch of large ones does not fill the memory
DEEPEST_SITEMAP = 3  # indexes above a sitemap; sitemaps.org allows one
MOST_SITEMAPS = 50_000  # that the indexes of one host may name, in all
INDEXING_HOSTS = 10_000  # whose sitemaps are counted at a time
_TO_PARSE = frozenset({Outcome.OK, Outcome.REDIRECTED, Outcome.TOO_LARGE})


class NamedSitemaps:
    """How many sitemaps the indexes of each host have named, so that no chain of indexes is without end.

    Bounded: of many hosts, those that named few are forgotten. Keys are those of hosts.
    """

    def __init__(self, saved: Mapping[str, int], most: int = MOST_SITEMAPS, hosts: int = INDEXING_HOSTS) -> None:
        self._named = Counter({int(host): count for host, count in saved.items()})
        self._most = most
        self._hosts = hosts

    def admitted(self, host: int, found: Sequence[Locator], level: int) -> Sequence[Locator]:
        """Those of `found` that may be read; `level` indexes lie between them and a robots.txt, a seed or a page."""
        if level > DEEPEST_SITEMAP:
            return []
        admitted = found[: max(0, self._most - self._named[host])]
        self._named[host] += len(admitted)
        if len(self._named) > self._hosts:
            self._named = Counter(dict(self._named.most_common(self._hosts // 2)))
        return admitted

    def state(self) -> dict[str, int]:
        """What a checkpoint records."""
        return {str(host): count for host, count in self._named.items()}


@dataclass(frozen=True, slots=True)
class Barn:
    """Where the harvest goes."""

    archive: WarcWriter
    pages: PagesTable
    links: LinksTable | None  # None when nobody wants the table
    frontier: Frontier
    content_seen: ContentSeen
    named: NamedSitemaps
    sinks: Sequence[PageSink]


class Harvest:
    """Turns exchanges into pages, records, rows and links."""

    def __init__(
        self,
        parser: Parser,
        barn: Barn,
        limits: FetchSection,
        links: LinkResolver,
        *,
        done: Callable[[Exchange], None],
        landed: Callable[[Locator, Locator], None],
        outcomes: Counter[str],
    ) -> None:
        self._parser = parser
        self._barn = barn
        self._limits = limits
        self._links = links
        self._done = done
        self._landed = landed  # a seed, and what it redirects to
        self.outcomes = outcomes  # of visits to pages
        self.listings = 0  # visits to sitemaps and feeds
        self.body_bytes = 0
        self.sink_failures: Counter[str] = Counter()

    def take_in(self, ended: "deque[Exchange]") -> None:
        """Do all that is to be done with visits that ended, in order; `ended` is then empty."""
        while ended:
            batch: list[tuple[Exchange, Page]] = []
            size_bytes = 0
            while ended and len(batch) < BATCH_PAGES and size_bytes < BATCH_BYTES:
                exchange = ended.popleft()
                page = self._opened(exchange)
                batch.append((exchange, page))
                size_bytes += exchange.body.size + len(page.content)
            self._take_batch(batch)

    def _take_batch(self, batch: Sequence[tuple[Exchange, Page]]) -> None:
        self._mark_duplicates([page for _, page in batch if page.fingerprint])
        for exchange, page in batch:
            if exchange.visit.purpose is Purpose.PAGE:
                self._page(exchange, page)
            elif exchange.outcome.answered:
                self._barn.archive.write(exchange)
            self.body_bytes += exchange.body.size
            exchange.body.close()

    @property
    def answered(self) -> bool:
        """Whether any server has ever answered in this crawl."""
        return self._barn.archive.statistics().bytes > 0

    def _opened(self, exchange: Exchange) -> Page:
        """What is known of a page before it is parsed; its fingerprint is 0 when it has no body to compare."""
        if exchange.outcome not in _TO_PARSE or exchange.visit.purpose is not Purpose.PAGE:
            return Page(exchange, "", b"")
        page = self._parser.page_of(exchange, decode_body(exchange, self._limits).content)
        if not page.content or exchange.outcome is not Outcome.OK:
            page.fingerprint = 0
        return page

    def _mark_duplicates(self, pages: Sequence[Page]) -> None:
        if pages:
            places = (key_of(page.url.partition("?")[0].encode()) for page in pages)
            keys = [page.fingerprint ^ place for page, place in zip(pages, places, strict=True)]
            for page, met in zip(pages, self._barn.content_seen.met(keys), strict=True):
                page.duplicate = met

    def _page(self, exchange: Exchange, page: Page) -> None:
        named = exchange.visit.kind is Kind.LISTING
        if exchange.outcome is Outcome.OK:
            self._judge_kind(page)
        listing = exchange.visit.kind is Kind.LISTING
        if exchange.outcome in _TO_PARSE and not page.duplicate:
            self._parser.process(page)
        place = None
        if exchange.outcome.answered:
            place = self._barn.archive.write(exchange, media_type=page.media_type, charset=page.charset)
        count, redirect_to = self._hand_on_links(page)
        count += self._hand_on_sitemaps(page, exchange.visit.depth + 1 if named else 0)
        self._barn.pages.add(exchange, place, page, links=count, redirect_to=redirect_to)
        if listing:
            self.listings += 1
        else:
            self.outcomes[exchange.outcome] += 1
        self._done(exchange)
        if exchange.outcome is Outcome.OK and not listing:
            self._barn.frontier.fetched(exchange.visit.domain)
            self._give_to_sinks(page)
        else:
            self._barn.frontier.ended(exchange.visit.domain)

    def _judge_kind(self, page: Page) -> None:
        """What an answer is decides, not who named it: a page that a robots.txt calls a sitemap is one."""
        visit = page.exchange.visit
        if page.listing:
            visit.kind = Kind.LISTING
        elif visit.kind is Kind.LISTING and page.media_type in HTML_TYPES:
            visit.kind = Kind.PAGE

    def _hand_on_links(self, page: Page) -> tuple[int, str | None]:
        """Give what `page` points at to the frontier and the table: how many links, and a redirect's target."""
        visit, links = page.exchange.visit, page.links
        redirected = page.exchange.outcome is Outcome.REDIRECTED
        if redirected:  # the same page elsewhere: as near to the seeds, and as wanted
            targets = self._point(page, links.pages, LinkKind.REDIRECT, visit.depth, visit.kind)
            if visit.kind is Kind.SEED and targets:
                self._landed(locate(visit.url), targets[0])
            return len(targets), targets[0].url.decode() if targets else None
        count = len(self._point(page, links.pages, LinkKind.PAGE, visit.depth + 1, Kind.PAGE))
        count += len(self._point(page, links.requisites, LinkKind.REQUISITE, visit.depth + 1, Kind.REQUISITE))
        return count + len(self._point(page, links.nofollow, LinkKind.NOFOLLOW)), None

    def _hand_on_sitemaps(self, page: Page, level: int) -> int:
        """Give the sitemaps that the index `page` names to the frontier, `level` indexes below the first: how many."""
        visit, links = page.exchange.visit, page.links
        if not links.listings:
            return 0
        found = self._links.resolve(links.base, links.listings)
        if self._barn.links is not None:
            self._barn.links.add(visit.key, found, LinkKind.PAGE)
        wanted = self._barn.named.admitted(visit.host, found, level)
        self._barn.frontier.discover(wanted, via=visit.key, domain=visit.domain, depth=level, kind=Kind.LISTING)
        return len(found)

    def _point(
        self, page: Page, hrefs: Sequence[str], row: LinkKind, depth: int = 0, kind: Kind | None = None
    ) -> list[Locator]:
        """Resolve `hrefs` of `page`; rows for all, and links of a `kind` for the frontier."""
        if not hrefs:
            return []
        source = page.exchange.visit.key
        found = self._links.resolve(page.links.base, hrefs)
        if self._barn.links is not None:
            self._barn.links.add(source, found, row)
        if kind is not None:
            domain = page.exchange.visit.domain
            self._barn.frontier.discover(found, via=source, domain=domain, depth=depth, kind=kind)
        return found

    def _give_to_sinks(self, page: Page) -> None:
        for sink in self._barn.sinks:
            try:
                sink.page(page)
            except Exception:  # noqa: BLE001 - a plug-in may raise anything; it costs its page
                self.sink_failures[type(sink).__name__] += 1

    def sitemaps(self, urls: Sequence[str]) -> None:
        """Sitemaps that a robots.txt names are links from nowhere, as near as a seed."""
        if urls:
            self._barn.frontier.discover([locate(url) for url in urls], via=0, domain=0, depth=0, kind=Kind.LISTING)
