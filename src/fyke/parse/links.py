"""The links of an HTML page: what it points at, what it asks of robots, what it is called.

A processing module, run by `fyke.parse.parser` for every HTML page: the hottest code of the room.
Queries go through one selector engine kept for all pages, since making one (`tree.css`) costs as much
as parsing a page; and every element is looked at once, by C code.

Invariant: links are given as written, in the order of the page, each once; they are relative to
`Links.base`, the first `<base href>` or the page's own URL.
"""

from typing import Any, Final

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

from fyke.core.urls import canonical
from fyke.core.visits import Links, Page
from fyke.parse.headers import obey, refresh_target, rel_of
from fyke.parse.markup import bounded
from fyke.parse.requisites import html_requisites

Attributes = dict[str, str | None]

_UNFIT = ("#", "javascript:", "mailto:", "data:", "tel:", "about:", "blob:")
_SUSPECT: Final = frozenset("#jJmMdDtTaAbB \t\r\n\f")  # how they begin
_TITLE_CHARS = 512
_TITLE_BYTES = 1 << 14


class HtmlLinks:
    """Finds the links, title and robots directives of HTML; requisites if `requisites`."""

    media_types = ("text/html", "application/xhtml+xml")

    def __init__(self, product: str = "fyke", requisites: bool = False) -> None:
        self._product = product
        self._requisites = requisites
        self._selector: Any = LexborCSSSelector()  # type: ignore[no-untyped-call]

    def process(self, page: Page) -> None:
        """Fill `links`, `title`, `noindex` and `nofollow` of `page`."""
        root = self._tree(page).root
        if root is None:
            return
        find = self._selector.find
        _read_anchors(page.links, find("a,area", root))
        bases: list[str] = []
        titles: list[str] = []
        for node in find("title,link,meta,base,iframe,frame", root):
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
        if self._requisites:
            page.links.requisites += html_requisites(find, root)
        page.links.pages = fit(page.links.pages)

    def _tree(self, page: Page) -> LexborHTMLParser:
        """The page's tree, made here unless somebody asked for it before, of no more than is safe."""
        if page._tree is None:
            utf8 = page.charset == "utf-8"
            page._tree = LexborHTMLParser(bounded(page.content if utf8 else page.text.encode("utf-8", "replace")))
        return page._tree

    def _read_meta(self, page: Page, attributes: Attributes) -> None:
        content = attributes.get("content")
        if not content:
            return
        name = (attributes.get("name") or "").lower()
        if name in ("robots", self._product):
            obey(page, set(content.lower().replace(",", " ").split()))
        elif (attributes.get("http-equiv") or "").lower() == "refresh":
            page.links.pages.append(refresh_target(content))

    def _read_link(self, links: Links, attributes: Attributes) -> None:
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


def _read_anchors(links: Links, anchors: list[LexborNode]) -> None:
    found = [node.attributes for node in anchors]
    if any(map(_shunned, [attributes for attributes in found if "rel" in attributes])):
        links.nofollow += fit([_href(attributes) for attributes in found if _shunned(attributes)])
        found = [attributes for attributes in found if not _shunned(attributes)]
    try:
        links.pages += [attributes["href"] or "" for attributes in found]
    except KeyError:  # an anchor that is no link, or an SVG one
        links.pages += [_href(attributes) for attributes in found]


def _shunned(attributes: Attributes) -> bool:
    return "nofollow" in (attributes.get("rel") or "").lower().split()


def _href(attributes: Attributes) -> str:
    return attributes.get("href") or attributes.get("xlink:href") or ""


def collapsed(text: str) -> str:
    """`text` as a title: white space collapsed, at most 512 characters."""
    return " ".join(text[:_TITLE_BYTES].split())[:_TITLE_CHARS]


def fit(hrefs: list[str]) -> list[str]:
    """Those of `hrefs` that may lead to something fetched, each once, in order."""
    return list(dict.fromkeys([href for href in hrefs if href and (href[0] not in _SUSPECT or _fits(href))]))


def _fits(href: str) -> bool:
    href = href[:64].strip()
    return bool(href) and not href.startswith(_UNFIT) and not href.lower().startswith(_UNFIT)
