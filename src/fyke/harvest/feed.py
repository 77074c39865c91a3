"""XML and JSON documents that list pages, which are feeds, and sitemaps by their root element; and drawings (SVG).

Processing modules run by `fyke.harvest.parser` for every XML and JSON media type. RSS 0.9 to 2.0, RDF, Atom and JSON
Feed give the links of their entries, a drawing that is a page of its own those of its anchors. XML with the root `html`
is read as HTML. All other XML and JSON is left alone.

Invariant: links are as written, relative to the document's URL; absolute below an `xml:base`.
"""

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Any

from fyke.core.batches import Kind
from fyke.core.pages import Page
from fyke.core.strange_json import json_of
from fyke.harvest.dates import DatedEntries, time_of
from fyke.harvest.links import MOST_LINKS, HtmlLinks, collapsed, fit
from fyke.harvest.sitemap import ROOTS, add_links
from fyke.harvest.xmlscan import Attributes, Enough, Read, root_of, scan, seen_from

MAX_JSON_BYTES = 2 << 20  # many small objects take forty times as much in memory
MAX_UTF8_BYTES = 64 << 20  # of a document in another encoding, which may grow threefold
_FEEDS = frozenset({"rss", "rdf", "feed", "channel"})
_OWNERS = frozenset({"item", "entry", "channel", "feed", "rdf", "rss"})
_DATES = frozenset({"updated", "modified", "pubdate", "date"})  # Atom, RSS and its Dublin Core
_OF_ENTRY = frozenset({"", "alternate"})
_PAGE_RELS = _OF_ENTRY | frozenset({"next", "prev", "previous", "prev-archive", "next-archive"})


class XmlLinks:
    """Finds the links of XML documents whose root element it knows."""

    media_types = ("text/xml", "application/xml", "application/*+xml", "image/svg+xml")

    def __init__(self, html: HtmlLinks) -> None:
        self._html = html

    def process(self, page: Page) -> None:
        """Add the links of a feed, sitemap or drawing to `page`, and the title of a feed or drawing."""
        if page.media_type in self._html.media_types:
            return
        root = _root(page)
        if root in ROOTS:
            add_links(page, root, partial(_utf8, page))
        elif root in _FEEDS:
            _read_feed(page, partial(_utf8, page))
        elif root == "html":
            self._html.process(page)
        elif root == "svg" and page.exchange.visit.kind in (Kind.PAGE, Kind.SEED):  # not if a page only shows it
            _read_drawing(page, partial(_utf8, page))

    def lists(self, page: Page) -> bool:
        """Return whether `page` is a feed or sitemap."""
        return page.media_type not in self._html.media_types and _root(page) in ROOTS | _FEEDS


class JsonFeed:
    """Finds the links of JSON Feed (jsonfeed.org); other JSON is left alone."""

    media_types = ("application/feed+json", "application/json")

    def process(self, page: Page) -> None:
        """Add the links of the items to `page`, and the title."""
        if not self.lists(page) or page.size_bytes > MAX_JSON_BYTES:
            return
        try:
            feed = json_of(page.text)
        except (ValueError, RecursionError):
            return
        if not isinstance(feed, dict) or "jsonfeed.org" not in str(feed.get("version")):
            return
        items = feed.get("items")
        entries = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        for item in entries:
            changed = time_of(_text(item.get("date_modified")) or _text(item.get("date_published")))
            if changed and _text(item.get("url")):
                page.links.dated[item["url"]] = changed
        links = [feed.get("home_page_url"), feed.get("next_url")]
        links += [item.get(name) for item in entries for name in ("url", "external_url")]
        page.links.pages += fit([link for link in links if isinstance(link, str)])
        page.title = collapsed(_text(feed.get("title")))

    def lists(self, page: Page) -> bool:
        """Return whether `page` is a feed, by its beginning."""
        return b"jsonfeed.org" in page.beginning(4096)


def _root(page: Page) -> str:
    return root_of(next(_utf8(page), b""))


def _utf8(page: Page) -> Iterator[bytes]:
    """Yield the content of `page` as UTF-8 without a byte order mark, piece by piece. In another encoding, only about
    the first `MAX_UTF8_BYTES`."""
    left = inf if page.charset == "utf-8" else MAX_UTF8_BYTES
    for piece in page.in_utf8():
        yield piece
        left -= len(piece)
        if left <= 0:
            break


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _read_feed(page: Page, read: Read) -> None:
    found: list[str] = []
    entries = DatedEntries()

    def see(name: str, parent: str, attributes: Attributes, text: str, base: str) -> None:
        if len(found) > MOST_LINKS:
            raise Enough
        rel = attributes.get("rel", "").lower() if "href" in attributes else ""
        if name == "link" and parent in _OWNERS and rel in _PAGE_RELS:
            found.append(seen_from(base, attributes.get("href", text), page.url))
            entries.link(found[-1] if rel in _OF_ENTRY else "")  # a feed's own page changes with its first entry
        elif name in _DATES:
            entries.date(text)
        elif name in _OWNERS:
            entries.end()
        elif name == "guid" and attributes.get("ispermalink", attributes.get("isPermaLink")) != "false":
            if text.startswith(("http://", "https://")):
                found.append(text)
        elif name == "title" and parent in ("channel", "feed") and not page.title:
            page.title = collapsed(text)

    scan(read, page.url, see)
    page.links.pages += fit(found)
    page.links.dated |= entries.dated()


def _read_drawing(page: Page, read: Read) -> None:
    found: list[str] = []
    shunned: list[str] = []

    def see(name: str, parent: str, attributes: Attributes, text: str, base: str) -> None:
        if len(found) + len(shunned) > MOST_LINKS:
            raise Enough
        if name == "a":
            href = attributes.get("href") or attributes.get("xlink:href", "")
            links = shunned if "nofollow" in attributes.get("rel", "").lower().split() else found
            links.append(seen_from(base, href, page.url))
        elif name == "title" and parent == "svg" and not page.title:
            page.title = collapsed(text)

    scan(read, page.url, see)
    page.links.pages += fit(found)
    page.links.nofollow += fit(shunned)
