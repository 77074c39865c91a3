"""What is in an exchange: decoded, asked of content-seen, parsed, its links resolved.

A worker: exchanges go in, what they hold comes out, and it keeps nothing of them. Content-seen asks whether the
same body was read at the same place: then its links are known and it is not parsed again. The place counts because
relative links mean something else elsewhere: by the body alone (Mercator, section 3.5) pages would be lost. It is
the folder, and for a page with links like `?page=2`, which keep the page's own name, the whole path.

Invariant: every exchange that goes in comes out once, in order, whatever its bytes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from fyke.core.batches import Kind, LinkKind
from fyke.core.config import FetchSection
from fyke.core.decoding import decode_body
from fyke.core.outcomes import Outcome
from fyke.core.resolve import LinkResolver
from fyke.core.urls import Locator, key_of
from fyke.core.visits import Exchange, Page, Purpose
from fyke.harvest import HTML_TYPES, Parser
from fyke.harvest.content_seen import ContentSeen
from fyke.harvest.headers import said_of_links
from fyke.harvest.media import label_of
from fyke.harvest.redirects import MOST_HOPS, Redirects

BATCH_PAGES = 64
BATCH_BYTES = 4 << 20  # of bodies and what they unfold to, so that a batch of large ones does not fill the memory
DEEPEST_SITEMAP = 3  # indexes above a sitemap; sitemaps.org allows one
MOST_SITEMAPS = 50_000  # that the indexes of one host may name, in all
INDEXING_HOSTS = 10_000  # whose sitemaps are counted at a time
_URL = itemgetter(0)
TO_PARSE = frozenset({Outcome.OK, Outcome.REDIRECTED, Outcome.TOO_LARGE})


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
class Pointers:
    """Links of one kind in a page."""

    row: LinkKind  # what they are in the table of links
    found: Sequence[Locator]
    depth: int
    kind: Kind | None  # as what they go to the frontier; None: they are not to be followed


@dataclass(frozen=True, slots=True)
class Reaped:
    """An exchange, and what is in it. One about robots.txt has no page to speak of."""

    exchange: Exchange
    page: Page
    pointers: Sequence[Pointers] = field(default=())

    @property
    def is_page(self) -> bool:
        """Whether it brought a page: no errand of the crawler's own, and no failure."""
        visit = self.exchange.visit
        fetched = self.exchange.outcome is Outcome.OK and visit.purpose is Purpose.PAGE
        return fetched and visit.kind is not Kind.LISTING

    @property
    def found(self) -> list[Locator]:
        """All that it points at, in order."""
        return [at for pointers in self.pointers for at in pointers.found]

    @property
    def redirect_to(self) -> str | None:
        """Where it redirects to."""
        found = self.found if self.exchange.outcome is Outcome.REDIRECTED else []
        return found[0].url.decode() if found else None


class Harvest:
    """Turns exchanges into pages and links."""

    def __init__(
        self,
        parser: Parser,
        content_seen: ContentSeen,
        named: NamedSitemaps,
        redirects: Redirects,
        limits: FetchSection,
        links: LinkResolver,
    ) -> None:
        self._parser = parser
        self._content_seen = content_seen
        self._named = named
        self._redirects = redirects
        self._limits = limits
        self._links = links

    def __repr__(self) -> str:
        return f"Harvest({self._parser!r})"

    def reap(self, exchanges: Sequence[Exchange]) -> Iterator[Reaped]:
        """What is in `exchanges`, in order. Their bodies are still open, for the archive."""
        batch: list[tuple[Exchange, Page]] = []
        size_bytes = 0
        for exchange in exchanges:
            page = opened(self._parser, self._limits, exchange)
            batch.append((exchange, page))
            size_bytes += exchange.body.size + len(page.content)
            if len(batch) >= BATCH_PAGES or size_bytes >= BATCH_BYTES:
                yield from self._read(batch)
                batch, size_bytes = [], 0
        yield from self._read(batch)

    def _read(self, batch: Sequence[tuple[Exchange, Page]]) -> Iterator[Reaped]:
        places = [_places(page) for _, page in batch]
        known = self._content_seen.known([key for keys in places for key in keys])
        for (exchange, page), keys in zip(batch, places, strict=True):
            page.duplicate = any(key in known or self._content_seen.entered(key) for key in keys)
            level = exchange.visit.depth + 1 if exchange.visit.kind is Kind.LISTING else 0
            if exchange.outcome is Outcome.OK:
                _judge_kind(page)
            hops = self._hops(exchange)
            if exchange.outcome in TO_PARSE and exchange.visit.purpose is Purpose.PAGE and not page.duplicate:
                self._parser.process(page)
            reaped = Reaped(exchange, page, [*self._pointers(page), *self._sitemaps(page, level)])
            if hops and reaped.found:
                self._redirects.lead_to(reaped.found[0].key, hops)
            if keys and not page.duplicate:
                self._content_seen.enter(keys[_depends_on_name(page, reaped.found)])
            yield reaped

    def _hops(self, exchange: Exchange) -> int:
        """How many redirects in a row `exchange` is the last of; where these are too many, that is its outcome."""
        key = exchange.visit.key
        if exchange.outcome is not Outcome.REDIRECTED:
            self._redirects.ended(key)
            return 0
        hops = self._redirects.followed(key)
        if hops > MOST_HOPS:
            exchange.outcome = Outcome.REDIRECTED_TOO_OFTEN
            exchange.detail = f"it is redirect {hops} in a row, and no more are followed"
        return hops

    def _pointers(self, page: Page) -> list[Pointers]:
        visit, links = page.exchange.visit, page.links
        groups: list[tuple[LinkKind, list[str], int, Kind | None]]
        if page.exchange.outcome is Outcome.REDIRECTED:  # the same page elsewhere: as near to the seeds, and as wanted
            groups = [
                (LinkKind.REDIRECT, links.pages[:1], visit.depth, visit.kind),
                (LinkKind.REDIRECT, links.pages[1:], visit.depth, Kind.PAGE),
            ]
        else:
            groups = [
                (LinkKind.PAGE, links.pages, visit.depth + 1, Kind.PAGE),
                (LinkKind.REQUISITE, links.requisites, visit.depth + 1, Kind.REQUISITE),
                (LinkKind.NOFOLLOW, links.nofollow, 0, None),
            ]
        return [
            Pointers(row, self._links.resolve(links.base, hrefs), depth, kind)
            for row, hrefs, depth, kind in groups
            if hrefs
        ]

    def _sitemaps(self, page: Page, level: int) -> list[Pointers]:
        """The sitemaps that the index `page` names, `level` indexes below the first: those to be read, and others."""
        visit, links = page.exchange.visit, page.links
        if not links.listings:
            return []
        found = self._links.resolve(links.base, links.listings)
        wanted = self._named.admitted(visit.host, found, level)
        return [
            Pointers(LinkKind.PAGE, wanted, level, Kind.LISTING),
            Pointers(LinkKind.PAGE, found[len(wanted) :], 0, None),
        ]


def opened(parser: Parser, limits: FetchSection, exchange: Exchange) -> Page:
    """What is known of a page before it is parsed; its fingerprint is 0 when it has no body to compare."""
    if exchange.outcome not in TO_PARSE or exchange.visit.purpose is not Purpose.PAGE:
        return Page(exchange, "", b"")
    page = parser.page_of(exchange, decode_body(exchange, limits).content)
    if not page.content or exchange.outcome is not Outcome.OK:
        page.fingerprint = 0
    return page


def _judge_kind(page: Page) -> None:
    """What an answer is decides, not who named it: a page that a robots.txt calls a sitemap is one."""
    visit = page.exchange.visit
    if page.listing:
        visit.kind = Kind.LISTING
    elif visit.kind is Kind.LISTING and page.media_type in HTML_TYPES:
        visit.kind = Kind.PAGE


def _places(page: Page) -> tuple[int, ...]:
    """The keys under which content-seen may know `page`: of its folder, and of its whole path; none without a body."""
    if not page.fingerprint:
        return ()
    path, mark, _ = page.url.partition("?")
    folder = path[: path.rindex("/") + 1]
    means = f"{page.media_type} {label_of(page.exchange)} {said_of_links(page.exchange)}"
    # No path has a question mark, so the page `/a/` itself is not taken for the folder. The link `?` leads a page with
    # a query elsewhere, and one without to itself: so what was read of the one is not known of the other.
    return tuple(page.fingerprint ^ key_of(f"{place} {means}") for place in (f"{folder}?{mark}", path))


def _depends_on_name(page: Page, found: Sequence[Locator]) -> bool:
    """Whether one of the links `found` in `page` would lead elsewhere from a page of another name in the folder.

    Only a link that keeps the whole path of what it is relative to does, however it is written; one that leads to
    the page itself is none.
    """
    targets = b"\n".join([b"", *map(_URL, found), b""])
    if b"?" not in targets and "?" not in page.url and "?" not in page.links.base:
        return False
    for url in {page.url, page.links.base}:
        path, _, query = url.encode().partition(b"?")
        if b"\n%b?" % path in targets or (query and b"\n%b\n" % path in targets):
            return True
    return False
