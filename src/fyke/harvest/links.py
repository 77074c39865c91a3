"""The links of an HTML page: what it points at, what it asks of robots, what it is called.

A processing module, run by `fyke.harvest.parser` for every HTML page: the hottest code of the room. One query finds all
that is read, since each walk through a large tree costs a quarter of making it; it goes through one selector engine
kept for all pages, since making one (`tree.css`) costs as much as parsing a small page. The tree goes as soon as the
page is read, unless somebody shares it: the trees of a batch of pages are more than the processor's caches hold, and
parsing into memory just let go costs a third less.

Invariant: links are given as written but for their queries (`fyke.harvest.queries`), in the order of the page,
each once; they are relative to `Links.base`, the first `<base href>` or the page's own URL.
"""

import threading
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from selectolax.lexbor import LexborCSSSelector, LexborDocumentOptions, LexborHTMLParser

from fyke.core.urls import canonical
from fyke.core.visits import Page, PageLinks
from fyke.harvest.headers import obey, refresh_target, rel_of
from fyke.harvest.markup import bounded
from fyke.harvest.queries import encode_queries
from fyke.harvest.requisites import html_requisites

Attributes = dict[str, str | None]

_READ = "a:not([href^='#']),area,title,link,meta,base,iframe,frame"  # most links of a long page lead within it
_ANCHORS: Final = frozenset({"a", "area"})
_HREF: Final = itemgetter("href")
_FIRST: Final = itemgetter(0)
_OPTIONS = LexborDocumentOptions.WO_EVENTS  # events of changing trees; a tenth of the cost of parsing
_UNFIT = ("#", "javascript:", "mailto:", "data:", "tel:", "about:", "blob:")
_SUSPECT: Final = frozenset("#jJmMdDtTaAbB \t\r\n\f")  # how they begin
_TITLE_CHARS = 512
_TITLE_BYTES = 1 << 14


HTML_TYPES = ("text/html", "application/xhtml+xml")


class _SelectorEngine(threading.local):
    """lexbor's engine for queries, one in each thread."""

    def __init__(self) -> None:
        self.find: Any = LexborCSSSelector().find  # type: ignore[no-untyped-call]


class HtmlLinks:
    """Finds the links, title and robots directives of HTML; requisites if `requisites`."""

    media_types = HTML_TYPES

    def __init__(self, product: str = "fyke", requisites: bool = False, *, shared: bool = True) -> None:
        """`shared`: other modules will ask for the tree, so that it stays with the page."""
        self._product = product
        self._requisites = requisites
        self._shared = shared
        self._engine = _SelectorEngine()

    def process(self, page: Page) -> None:
        """Fill `links`, `title`, `noindex` and `nofollow` of `page`."""
        tree = self._tree(page)
        root = tree.root
        if root is None:
            return
        find = self._engine.find
        anchors: list[Any] = []
        others: list[Any] = []
        for node in find(_READ, root):
            (anchors if node.tag in _ANCHORS else others).append(node)
        _read_anchors(page.links, [node.attributes for node in anchors])
        self._read_others(page, others)
        if self._requisites:
            page.links.requisites += html_requisites(find, root)
        page.links.pages = fit(page.links.pages)
        encode_queries(page.links, page.charset)

    def _read_others(self, page: Page, others: list[Any]) -> None:
        bases: list[str] = []
        titles: list[str] = []
        for node in others:
            attributes = node.attributes
            tag = node.tag
            if tag == "meta":
                self._read_meta(page, attributes)
            elif tag == "link":
                self._read_link(page.links, attributes)
            elif tag == "title":
                if not titles and node.parent.tag != "svg":
                    titles.append(node.text())
            elif tag == "base":
                bases += [attributes["href"] or ""] if "href" in attributes else []
            else:
                page.links.pages.append(attributes.get("src") or "")
        page.title = collapsed(titles[0]) if titles else ""
        if bases:
            page.links.base = canonical(bases[0], page.url) or page.links.base

    def _tree(self, page: Page) -> LexborHTMLParser:
        """The page's tree, made here unless somebody asked for it before, of no more than is safe.

        One of less than the page stays with it in any case: whoever asked for another would get the whole.
        """
        if page._tree is not None:
            return page._tree
        content = page.content if page.charset == "utf-8" else page.text.encode("utf-8", "replace")
        safe = bounded(content)
        tree = LexborHTMLParser(safe, options=_OPTIONS)
        if self._shared or len(safe) < len(content):
            page._tree = tree
        return tree

    def _read_meta(self, page: Page, attributes: Attributes) -> None:
        content = attributes.get("content")
        if not content:
            return
        name = (attributes.get("name") or "").lower()
        if name in ("robots", self._product):
            obey(page, set(content.lower().replace(",", " ").split()))
        elif (attributes.get("http-equiv") or "").lower() == "refresh":
            page.links.pages.append(refresh_target(content))

    def _read_link(self, links: PageLinks, attributes: Attributes) -> None:
        href = attributes.get("href")
        if not href:
            return
        rel = rel_of(attributes.get("rel") or "")
        if rel.page:
            if rel.nofollow:
                links.nofollow += fit([href])
            else:
                links.pages.append(href)
        elif rel.requisite and self._requisites:
            links.requisites.append(href)


def _read_anchors(links: PageLinks, anchors: list[Attributes]) -> None:
    if any(map(_shunned, [attributes for attributes in anchors if "rel" in attributes])):
        links.nofollow += fit([_href(attributes) for attributes in anchors if _shunned(attributes)])
        anchors = [attributes for attributes in anchors if not _shunned(attributes)]
    try:
        links.pages += list(map(_HREF, anchors))  # one without a value is None, and `fit` drops it
    except KeyError:  # an anchor that is no link, or an SVG one
        links.pages += [_href(attributes) for attributes in anchors]


def _shunned(attributes: Attributes) -> bool:
    return "nofollow" in (attributes.get("rel") or "").lower().split()


def _href(attributes: Attributes) -> str:
    return attributes.get("href") or attributes.get("xlink:href") or ""


def collapsed(text: str) -> str:
    """`text` as a title: white space collapsed, at most 512 characters."""
    return " ".join(text[:_TITLE_BYTES].split())[:_TITLE_CHARS]


def fit(hrefs: Iterable[str]) -> list[str]:
    """Those of `hrefs` that may lead to something fetched, each once, in order."""
    once = dict.fromkeys(filter(None, hrefs))
    if _SUSPECT.isdisjoint(map(_FIRST, once)):
        return list(once)
    return [href for href in once if href[0] not in _SUSPECT or _fits(href)]


def _fits(href: str) -> bool:
    href = href[:64].strip()
    return bool(href) and not href.startswith(_UNFIT) and not href.lower().startswith(_UNFIT)
