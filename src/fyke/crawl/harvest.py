"""What becomes of an exchange: content-seen, parsed, archived, its links handed on.

The loop gives it every visit that ended, once. Content-seen asks whether the same body was read at the
same place: then its links are known and it is not parsed again. The place counts because relative links
mean something else elsewhere: by the body alone (Mercator, section 3.5) pages would be lost. It is the folder,
and for a page with links like `?page=2`, which keep the page's own name, the whole path.

Invariant: when `take_in` returns, record, rows and links of the visit are handed over together, and the
visit is no longer waiting.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fyke.core.batches import Kind
from fyke.core.config import FetchSection
from fyke.core.outcomes import Outcome
from fyke.core.plugins import PageSink
from fyke.core.resolve import LinkResolver
from fyke.core.urls import Locator, canonical, key_of, locate
from fyke.core.visits import Exchange, Page, Purpose
from fyke.fetch import decode_body
from fyke.frontier.frontier import Frontier
from fyke.frontier.seen import ContentSeen
from fyke.parse import Parser
from fyke.parse.headers import said_of_links
from fyke.parse.media import label_of
from fyke.store import LinkKind, LinksTable, PagesTable, WarcWriter

BATCH_PAGES = 64
BATCH_BYTES = 4 << 20  # of bodies and what they unfold to, so that a batch of large ones does not fill the memory
TO_PARSE = frozenset({Outcome.OK, Outcome.REDIRECTED, Outcome.TOO_LARGE})


@dataclass(frozen=True, slots=True)
class Barn:
    """Where the harvest goes."""

    archive: WarcWriter
    pages: PagesTable
    links: LinksTable | None  # None when nobody wants the table
    frontier: Frontier
    content_seen: ContentSeen
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
        self.outcomes = outcomes
        self.body_bytes = 0
        self.sink_failures: Counter[str] = Counter()

    def take_in(self, ended: "deque[Exchange]") -> None:
        """Do all that is to be done with visits that ended, in order; `ended` is then empty."""
        while ended:
            batch: list[tuple[Exchange, Page]] = []
            size_bytes = 0
            while ended and len(batch) < BATCH_PAGES and size_bytes < BATCH_BYTES:
                exchange = ended.popleft()
                page = opened(self._parser, self._limits, exchange)
                batch.append((exchange, page))
                size_bytes += exchange.body.size + len(page.content)
            self._take_batch(batch)

    def _take_batch(self, batch: Sequence[tuple[Exchange, Page]]) -> None:
        places = [_places(page) for _, page in batch]
        known = self._barn.content_seen.known([key for keys in places for key in keys])
        for (exchange, page), keys in zip(batch, places, strict=True):
            page.duplicate = any(key in known or self._barn.content_seen.entered(key) for key in keys)
            if exchange.visit.purpose is Purpose.PAGE:
                found = self._page(exchange, page)
                if keys and not page.duplicate:
                    self._barn.content_seen.enter(keys[_depends_on_name(page, found)])
            elif exchange.outcome.answered:
                self._barn.archive.write(exchange)
            self.body_bytes += exchange.body.size
            exchange.body.close()

    @property
    def answered(self) -> bool:
        """Whether any server has ever answered in this crawl."""
        return self._barn.archive.statistics().bytes > 0

    def _page(self, exchange: Exchange, page: Page) -> list[Locator]:
        """All that is to be done with a page; what it points at."""
        if exchange.outcome in TO_PARSE and not page.duplicate:
            self._parser.process(page)
        place = None
        if exchange.outcome.answered:
            place = self._barn.archive.write(
                exchange, media_type=page.media_type, charset=page.charset, duplicate=page.duplicate
            )
        found = self._hand_on_links(page)
        moved = exchange.outcome is Outcome.REDIRECTED and found
        redirect_to = found[0].url.decode() if moved else None
        self._barn.pages.add(exchange, place, page, links=len(found), redirect_to=redirect_to)
        self.outcomes[exchange.outcome] += 1
        self._done(exchange)
        if exchange.outcome is Outcome.OK:
            self._barn.frontier.fetched(exchange.visit.domain)
            self._give_to_sinks(page)
        else:
            self._barn.frontier.ended(exchange.visit.domain)
        return found

    def _hand_on_links(self, page: Page) -> list[Locator]:
        """Give what `page` points at to the frontier and the table."""
        visit, links = page.exchange.visit, page.links
        redirected = page.exchange.outcome is Outcome.REDIRECTED
        if redirected:  # the same page elsewhere: as near to the seeds, and as wanted
            targets = self._point(page, links.pages, LinkKind.REDIRECT, visit.depth, visit.kind)
            if visit.kind is Kind.SEED and targets:
                self._landed(locate(visit.url), targets[0])
            return targets
        found = self._point(page, links.pages, LinkKind.PAGE, visit.depth + 1, Kind.PAGE)
        found += self._point(page, links.requisites, LinkKind.REQUISITE, visit.depth + 1, Kind.REQUISITE)
        return found + self._point(page, links.nofollow, LinkKind.NOFOLLOW)

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
        found = [url for url in map(canonical, urls) if url]
        if found:
            self._barn.frontier.discover([locate(url) for url in found], via=0, domain=0, depth=0, kind=Kind.PAGE)


def opened(parser: Parser, limits: FetchSection, exchange: Exchange) -> Page:
    """What is known of a page before it is parsed; its fingerprint is 0 when it has no body to compare."""
    if exchange.outcome not in TO_PARSE or exchange.visit.purpose is not Purpose.PAGE:
        return Page(exchange, "", b"")
    page = parser.page_of(exchange, decode_body(exchange, limits).content)
    if not page.content or exchange.outcome is not Outcome.OK:
        page.fingerprint = 0
    return page


def _places(page: Page) -> tuple[int, ...]:
    """The keys under which content-seen may know `page`: of its folder, and of its whole path; none without a body."""
    if not page.fingerprint:
        return ()
    path = page.url.partition("?")[0]
    folder = path[: path.rindex("/") + 1]
    means = f"{page.media_type} {label_of(page.exchange)} {said_of_links(page.exchange)}"
    # No path has a question mark, so the page `/a/` itself is not taken for the folder.
    return tuple(page.fingerprint ^ key_of(f"{place} {means}") for place in (f"{folder}?", path))


def _depends_on_name(page: Page, found: Sequence[Locator]) -> bool:
    """Whether one of the links `found` in `page` would lead elsewhere from a page of another name in the folder.

    Only a link that keeps the whole path of what it is relative to does, however it is written; one that leads to
    the page itself is none.
    """
    targets = b"\n".join([b"", *(at.url for at in found), b""])
    for url in {page.url, page.links.base}:
        path, _, query = url.encode().partition(b"?")
        if b"\n%b?" % path in targets or (query and b"\n%b\n" % path in targets):
            return True
    return False
