"""Sitemaps: lists of pages a site wants visited (sitemaps.org), in XML or plain text, either in gzip.

Processing modules run by `fyke.harvest.parser`. An index's entries are links like any other: they lead to sitemaps,
which are read when they are fetched.

Invariant: a gzip body unfolds to at most `MAX_UNFOLDED_BYTES`, and only if it begins like a sitemap.
"""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import islice

from fyke.core.batches import Kind
from fyke.core.codings import gunzip
from fyke.core.document import read_on
from fyke.core.pages import Page
from fyke.core.slices import whole
from fyke.core.urls import text_of
from fyke.harvest.dates import DatedEntries
from fyke.harvest.links import MOST_LINKS
from fyke.harvest.media import GZIP
from fyke.harvest.xmlscan import MOST_BEFORE_BYTES, Attributes, Enough, Read, begin_of, root_of, scan, seen_from
from fyke.quantities import counted

MAX_UNFOLDED_BYTES = 64 << 20  # sitemaps.org allows 50 MB
ROOTS = frozenset({"urlset", "sitemapindex"})

_FOLDED = 1032  # bytes that one byte of deflate unfolds to, at most (zlib.net/zlib_tech.html)
_HEAD_BYTES = 2 * MOST_BEFORE_BYTES
_LINES_BYTES = 64 << 10  # by which plain text that is called a sitemap is judged
_WIDE_BYTES = 8 << 20  # of plain text in UTF-16, which grows when it is decoded: the URLs of a whole sitemap
_WIDE = (BOM_UTF16_LE, BOM_UTF16_BE)
_ENTRIES = frozenset({"url", "sitemap"})
# Lines end by LF, CR or both. The second expression is the begin of a line that is neither blank nor a comment.
_LINE = re.compile(rb"(?<![^\r\n])[ \t]*+((?:https?|ftp|gopher)://[^\s<>\"]++)[ \t]*+(?![^\r\n])", re.IGNORECASE)
_WRITTEN = re.compile(rb"(?<![^\r\n])[ \t]*+[^\s#]")


class TextSitemap:
    """Reads `…sitemap….txt`, one URL a line, and plain text that is called a sitemap and is one. Other plain text is
    left alone. Lines that are no URLs are counted in the page's detail."""

    media_types = ("text/plain",)

    def process(self, page: Page) -> None:
        """Add the links of a text sitemap to `page`."""
        if self.lists(page):
            _add_lines(page, page.content)

    def lists(self, page: Page) -> bool:
        """Return whether `page` is a text sitemap: named like one, or called one by somebody, maybe a stranger, and
        holding URLs above all."""
        return is_text_sitemap(page.url) or (
            page.exchange.visit.kind is Kind.LISTING and _lists_urls(page.beginning(_LINES_BYTES + 1))
        )


class GzipSitemap:
    """Reads sitemaps that are gzip files by their own media type."""

    media_types = ("application/gzip", "application/x-gzip")

    def process(self, page: Page) -> None:
        """Add the links of a sitemap in gzip to `page`."""
        root = _root_within(page)
        if _holds_lines(page):
            _add_lines(page, unfold(page.content))
        elif root in ROOTS:
            add_links(page, root, partial(_unfolded, page))

    def lists(self, page: Page) -> bool:
        """Return whether `page` is a sitemap."""
        return _holds_lines(page) or _root_within(page) in ROOTS


def type_of_list(content: bytes, media_type: str) -> str:
    """Return the media type by which to read `content`, which is called a sitemap, though its server may call it
    anything else: no media type is prescribed for sitemaps."""
    head = _in_utf8(content[:_HEAD_BYTES])
    is_xml = media_type.endswith(("/xml", "+xml"))
    if content.startswith(GZIP):
        return "application/gzip"
    if _root(head) in ROOTS:
        return media_type if is_xml else "application/xml"
    if not (is_xml and head.startswith(b"<", begin_of(head))) and _lists_urls(content[: _LINES_BYTES + 1]):
        return TextSitemap.media_types[0]
    return media_type


def most_bytes(page: Page) -> int:
    """Return the most bytes held of `page` when it is read; for a sitemap in gzip, what it may unfold to."""
    size_bytes = page.size_bytes
    if page.listing and page.media_type in GzipSitemap.media_types:
        return max(size_bytes, min(size_bytes * _FOLDED, MAX_UNFOLDED_BYTES))
    return size_bytes


def _holds_lines(page: Page) -> bool:
    """Return whether `page` is a text sitemap in gzip, as `TextSitemap.lists` does."""
    return is_text_sitemap(page.url) or (
        page.exchange.visit.kind is Kind.LISTING
        and _lists_urls(unfold(page.beginning(_LINES_BYTES), _LINES_BYTES + 1))  # only the head, as below
    )


def _root_within(page: Page) -> str:
    """Return the root element of the XML that `page` holds in gzip, or the empty string."""
    return _root(unfold(page.beginning(_HEAD_BYTES), _HEAD_BYTES))  # only the head, because this runs on the loop


def _unfolded(page: Page) -> Iterator[bytes]:
    """Yield what `page` holds in gzip, piece by piece, from disk if it is long."""
    whole = page.exchange.body.beside()
    with suppress(OSError):
        whole.write(unfold(page.content))
    yield from read_on(whole.open())


def add_links(page: Page, root: str, read: Read) -> None:
    """Add the links of the sitemap that `read` gives to `page`: as sitemaps if its root is an index, otherwise as
    pages."""
    found, dated = sitemap_links(read, page.url)
    page.links.dated |= dated
    if root == "sitemapindex":
        page.links.listings += found
    else:
        page.links.pages += found


def _root(head: bytes) -> str:
    """Return the root element of the XML in `head`; empty if it is something else."""
    return root_of(head) if head.startswith(b"<", begin_of(head)) else ""


def is_text_sitemap(url: str) -> bool:
    """Return whether `url` is named like a text sitemap."""
    name = url.partition("?")[0].rpartition("/")[2].lower().removesuffix(".gz")
    return name.endswith(".txt") and "sitemap" in name


def _lists_urls(text: bytes) -> bool:
    """Return whether most lines of the first `_LINES_BYTES` of `text` are URLs. Blank lines and comments count for
    nothing."""
    is_cut = len(text) > _LINES_BYTES
    text = _in_utf8(text)
    if is_cut:
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
    return 2 * len(_LINE.findall(text)) > _written(text)


def _add_lines(page: Page, text: bytes) -> None:
    """Add the URLs that stand on a line of their own in `text` to `page`. Its detail counts the other lines."""
    page.cut |= len(text) > _WIDE_BYTES and text.startswith(_WIDE)
    text = _in_utf8(text)
    lines = islice(_LINE.finditer(text), MOST_LINKS + 1)
    found = [text_of(line[1]) for line in lines]
    page.links.pages += found
    others = _written(text) - len(found)
    if others and len(found) <= MOST_LINKS and not page.exchange.detail:
        page.exchange.detail = f"{counted(others, 'line')} of this sitemap {'is' if others == 1 else 'are'} no URL"


def _in_utf8(text: bytes) -> bytes:
    """Return `text` as UTF-8 without a byte order mark; if it is UTF-16, the first `_WIDE_BYTES` of it."""
    if text.startswith(_WIDE):
        return text[:_WIDE_BYTES].decode("utf-16", "replace").encode("utf-8", "replace")
    return text.removeprefix(BOM_UTF8)


def _written(text: bytes) -> int:
    """Count the lines of `text` that are neither blank nor comments."""
    return sum(1 for _ in _WRITTEN.finditer(text))


def sitemap_links(read: Read, url: str) -> tuple[list[str], dict[str, float]]:
    """Return the locations in the XML sitemap or index (UTF-8) at `url`, which `read` gives, with their alternates, and
    the dates it gives for them (unix seconds)."""
    found: dict[str, None] = {}
    entries = DatedEntries()

    def see(name: str, parent: str, attributes: Attributes, text: str, base: str) -> None:
        if len(found) > MOST_LINKS:
            raise Enough
        if name == "loc":
            if parent in _ENTRIES:
                location = seen_from(base, text, url)
                found[location] = None
                entries.link(location)
        elif name == "lastmod":
            entries.date(text)
        elif name in _ENTRIES:
            entries.end()
            if text.startswith(("http://", "https://")):  # an entry without <loc>
                found[seen_from(base, text, url)] = None
        elif name == "link" and attributes.get("rel") == "alternate":
            found[seen_from(base, attributes.get("href", ""), url)] = None

    scan(read, url, see)
    found.pop("", None)
    return list(found), entries.dated()


def unfold(data: bytes, limit: int = MAX_UNFOLDED_BYTES) -> bytes:
    """Return the first `limit` bytes that `data` (gzip, any number of members) holds, as far as it can be read."""
    layer = whole(gunzip(BytesIO(data), limit))
    return b"" if layer.content is data else layer.content
