"""From an answer to a page: called by `fyke.harvest.harvest`, and by readers of answers from the archive.

It takes two steps, because a body met before needs only the first. `page_of` finds media type and fingerprint, and
whether the page is a sitemap or feed. `process` does the rest: charset, header, built-in modules, rows, plug-ins, each
chosen by media type. The body of an error page or redirect is not searched: its relative links are a trap, and the
header says it better.

Invariant: whatever the bytes, a page comes back. A plug-in that raises harms neither it nor the others.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import inf
from typing import Protocol, runtime_checkable

from fyke.core.batches import Kind
from fyke.core.markup import TakesLong, has_many_tags
from fyke.core.outcomes import Outcome
from fyke.core.pace import haste
from fyke.core.pages import HELD_BYTES, HTML, HTML_TYPES, Page, PageLinks
from fyke.core.plugins import ProcessingModule
from fyke.core.resolve import MOST_WRITTEN_BYTES
from fyke.core.urls import MAX_HREF_CHARS, key_of
from fyke.core.visits import Exchange
from fyke.harvest.charset import charset_of
from fyke.harvest.decoders import install
from fyke.harvest.documents import Documents, installed
from fyke.harvest.feed import JsonFeed, XmlLinks
from fyke.harvest.fields import Extractor
from fyke.harvest.headers import read_headers, read_robots, said_of_links
from fyke.harvest.links import MOST_LINKS, HtmlLinks, fit
from fyke.harvest.listing import FtpListing, GopherMenu
from fyke.harvest.media import FTP_LISTING, GOPHER_MENU, describe, label_of
from fyke.harvest.requisites import CssLinks
from fyke.harvest.sitemap import GzipSitemap, TextSitemap, is_text_sitemap, type_of_list

_WITH_BODY = frozenset({Outcome.OK, Outcome.TOO_LARGE, Outcome.INCOMPLETE})
_TEXTUAL = (
    "text/*",
    "*/*+xml",
    "*/*+json",
    "*/xml",
    "*/json",
    "*/javascript",
    "*/ecmascript",
    GOPHER_MENU,
    FTP_LISTING,
)
LIST_BYTES = 64 << 10  # of a sitemap or feed, read element by element: 15 ms
_SHORT_BYTES: dict[type, float] = {GzipSitemap: -1, Documents: -1, XmlLinks: LIST_BYTES, JsonFeed: LIST_BYTES}
_KINDS_REMEMBERED = 1000  # servers may invent any number of media types


@runtime_checkable
class Lister(Protocol):
    """A processing module that recognises lists of pages: sitemaps and feeds."""

    def lists(self, page: Page) -> bool: ...


@dataclass(frozen=True, slots=True)
class _MediaType:
    """The treatment of one media type."""

    textual: bool
    short_bytes: float  # up to this size a page is read quickly
    modules: tuple[ProcessingModule, ...]
    listers: tuple[Lister, ...]  # the `modules` that recognise sitemaps or feeds
    plugins: tuple[ProcessingModule, ...]


class Parser:
    """Turns answers into pages; `product` is our name in robots directives.

    `shared` says that someone beside `modules` will ask for the trees of pages: a sink, an index. Without it nothing
    breaks, but a tree asked for later is made a second time.
    """

    def __init__(
        self,
        modules: Sequence[ProcessingModule] = (),
        requisites: bool = False,
        *,
        product: str = "fyke",
        shared: bool = False,
        extractors: Sequence[Extractor] = (),
    ) -> None:
        install()
        html = HtmlLinks(product.lower(), requisites, shared=shared or bool(modules) or bool(extractors))
        self._built_in: list[ProcessingModule] = [html, XmlLinks(html), JsonFeed(), TextSitemap(), GzipSitemap()]
        self._built_in += [GopherMenu(), FtpListing()]
        if installed():
            self._built_in.append(Documents())
        if requisites:
            self._built_in.append(CssLinks())
        self._plugins = list(modules)
        self._extractors = extractors
        self._product = product.lower()
        self._requisites = requisites
        self._kinds: dict[str, _MediaType] = {}
        self.pages = 0  # that were parsed
        self.failures: Counter[str] = Counter()  # of plug-ins, by name

    def __repr__(self) -> str:
        return f"Parser({self.pages} pages)"

    def close(self) -> None:
        """End the process that reads documents; the next document begins another."""
        for module in self._built_in:
            if isinstance(module, Documents):
                module.close()

    def parse(self, exchange: Exchange, content: bytes) -> Page:
        """Return the page that an answer is; `content` is its body after transfer and content coding."""
        page = self.page_of(exchange, content)
        self.process(page)
        return page

    def page_of(self, exchange: Exchange, content: bytes) -> Page:
        """Return the page before its links are read: enough to tell whether it is a duplicate or a listing."""
        media_type, _ = describe(exchange, content)
        if exchange.visit.kind is Kind.LISTING or is_text_sitemap(exchange.visit.url):
            media_type = type_of_list(content, media_type)
        number = key_of(content)  # equal numbers mean the same page
        page = Page(exchange, media_type, content, links=PageLinks(exchange.visit.url), fingerprint=number)
        listers = self._kind(media_type).listers
        if listers:
            page.charset = charset_of(content, label_of(exchange))
            page.listing = any(lister.lists(page) for lister in listers)
        if len(content) > HELD_BYTES:
            page.to_disk()
        return page

    def takes_long(self, page: Page) -> bool:
        """Return whether reading `page` takes long for its size: it waits for another process, unfolds its content, or
        has an element in every few bytes. A page on disk does too."""
        if page.media_type in HTML_TYPES:
            return page.size_bytes > HELD_BYTES or has_many_tags(page.content)
        return page.size_bytes > self._kind(page.media_type).short_bytes

    def process(self, page: Page) -> None:
        """Fill `page`: charset, links, title, robots directives, rows, and what the plug-ins find."""
        redirect = self.read_links(page)
        self.make_rows(page)
        self.run_plugins(page, redirect)

    def process_in_haste(self, page: Page) -> bool:
        """Do the same while others wait. Return False if it would hold them up; then nothing was done."""
        try:
            with haste():
                redirect = self.read_links(page)
                self.make_rows(page)
        except TakesLong:
            page.links = PageLinks(page.url)
            return False
        self.run_plugins(page, redirect)
        return True

    def read_links(self, page: Page) -> list[str]:
        """Read header, charset and links with the built-in modules, and return where the header redirects to. Another
        thread may do it. Raises TakesLong in haste."""
        redirect = read_headers(page, self._product, self._requisites)
        kind = self._kind(page.media_type)
        if kind.textual:
            page.charset = charset_of(page.source, label_of(page.exchange), html=page.media_type == HTML)
        if page.exchange.outcome in _WITH_BODY:
            for module in kind.modules:
                module.process(page)
        return redirect

    def read_robots(self, page: Page) -> None:
        """Read the robots directives of the header alone: of a page whose links are known. They may be new."""
        read_robots(page, self._product)

    def read_news(self, page: Page) -> None:
        """Read the header of a 304: its robots directives, and its links if its copy had others."""
        exchange, earlier = page.exchange, page.exchange.visit.earlier
        self.read_robots(page)
        said = said_of_links(exchange)
        if said and earlier is not None and said != said_of_links(replace(exchange, head=earlier.head)):
            page.links = PageLinks(page.url)
            read_headers(page, self._product, self._requisites)
            if page.nofollow:
                page.links.pages.clear()

    def make_rows(self, page: Page) -> None:
        """Make the rows of a page whose links were read. Another thread may do it. Raises TakesLong in haste."""
        if page.exchange.outcome is Outcome.OK:
            page.rows = {extractor.name: extractor.rows(page) for extractor in self._extractors}

    def run_plugins(self, page: Page, redirect: Sequence[str]) -> None:
        """Settle the links of a page, which were read, and run the plug-ins on it."""
        page.cut |= self._settle(page.links, page.nofollow, redirect)
        if page.exchange.outcome in _WITH_BODY:
            for module in self._kind(page.media_type).plugins:
                self._run(module, page)

    def _settle(self, links: PageLinks, nofollow: bool, redirect: Sequence[str]) -> bool:
        """Sort the links that the modules found, and return whether some are left out, by number of a kind or written
        out. A page's nofollow holds for all its links."""
        cut = False
        if nofollow:
            links.nofollow = fit(links.pages + links.listings + links.nofollow)
            links.pages, links.listings = [], []
        if redirect:
            links.pages = [*redirect, *links.pages]
        for name in ("pages", "listings", "nofollow", "requisites"):
            found = getattr(links, name)
            if len(found) > MOST_LINKS:
                cut = True
                setattr(links, name, found[:MOST_LINKS])
            elif len(found) * MAX_HREF_CHARS > MOST_WRITTEN_BYTES:
                cut |= sum(map(len, found)) > MOST_WRITTEN_BYTES
        self.pages += 1
        return cut

    def _run(self, module: ProcessingModule, page: Page) -> None:
        try:
            module.process(page)
        except Exception:  # noqa: BLE001 - someone else's code: its fault is counted, and the page stays
            self.failures[type(module).__name__] += 1

    def _kind(self, media_type: str) -> _MediaType:
        kind = self._kinds.get(media_type)
        if kind is None:
            if len(self._kinds) >= _KINDS_REMEMBERED:
                self._kinds.clear()
            built_in = _for_type(self._built_in, media_type)
            kind = self._kinds[media_type] = _MediaType(
                any(fnmatchcase(media_type, pattern) for pattern in _TEXTUAL),
                min((_SHORT_BYTES.get(type(module), inf) for module in built_in), default=inf),
                built_in,
                tuple(module for module in built_in if isinstance(module, Lister)),
                _for_type(self._plugins, media_type),
            )
        return kind


def _for_type(modules: Sequence[ProcessingModule], media_type: str) -> tuple[ProcessingModule, ...]:
    """Return the `modules` that read `media_type`, in order."""
    return tuple(m for m in modules if any(fnmatchcase(media_type, pattern) for pattern in m.media_types))
