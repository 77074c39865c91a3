"""The links of an HTML page: what it points at, what it asks of robots, what it is called.

A processing module, run by `fyke.harvest.parser` for every HTML page: the hottest code of the room. If no other module
asks for the page's tree, none is made: `scanner`, in C, reads the bytes, and says where it is not sure. There, and
where it was not compiled, lexbor's tree decides. One query finds all that is read of a tree, because each walk through
a large one costs a quarter of making it. All pages of a thread share one selector engine: making one (`tree.css`) costs
as much as parsing a small page. A tree that is not shared is dropped as soon as its page is read: the trees of a batch
exceed the processor's caches, and parsing into memory just freed costs a third less.

Invariant: links are given as written except for their queries (`fyke.harvest.queries`), in the order of the page, each
once. They are relative to `Links.base`, the first `<base href>` that is HTML, or the page's own URL. Scanner and tree
give the same.
"""

import re
import threading
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final, NamedTuple

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

from fyke.core.foreign import ForeignParts
from fyke.core.markup import MAX_BYTES, TREE_OPTIONS, parts, tree_of
from fyke.core.pace import breathe
from fyke.core.pages import HTML_TYPES, Page, PageLinks
from fyke.core.resolve import MOST_WRITTEN_BYTES
from fyke.core.urls import MAX_HREF_CHARS, canonical
from fyke.harvest.headers import BETWEEN, obey, refresh_target, rel_of
from fyke.harvest.queries import encode_queries
from fyke.harvest.requisites import html_requisites

try:
    from fyke.harvest.scanner import scan
except ImportError:  # there was no compiler when Fyke was installed
    scan = None  # type: ignore[assignment]

Attributes = dict[str, str | None]
Other = tuple[str, str, str]  # its kind, where it leads or what it says, and the `rel` of a link

MOST_TREES = 16  # made of one page
MOST_LINKS = 100_000  # taken from one document; a sitemap may name 50,000 pages
ANCHORS_AT_ONCE = 10_000  # whose attributes are held, which take as much as the elements
_READ = "a:not([href^='#']),area,title,link,meta,base,iframe,frame"  # most links of a long page lead within it
_ANCHORS: Final = frozenset({"a", "area"})
_HREF: Final = itemgetter("href")
_FIRST: Final = itemgetter(0)
_UNFIT = ("#", "javascript:", "mailto:", "data:", "tel:", "about:", "blob:")
_SUSPECT: Final = frozenset("#jJmMdDtTaAbB \t\r\n\f")  # first characters of unfit links
_BLANK = re.compile(rb"=\s*(?:\"[\"#]|'['#]|#)")
_OWN_LINKS = "a[href=''],area[href=''],a[href^='#'],area[href^='#']"
_TITLE_CHARS = 512
_TITLE_BYTES = 1 << 14


class _SelectorEngine(threading.local):
    """lexbor's engine for queries, one per thread."""

    def __init__(self) -> None:
        self.find: Any = LexborCSSSelector().find  # type: ignore[no-untyped-call]


class ReadLinks(NamedTuple):
    """What was read from a page, in its order, as written there."""

    pages: list[str]
    shunned: list[str]  # links that ask not to be followed
    others: list[Other]
    title: str


class HtmlLinks:
    """Finds the links, title and robots directives of HTML; also requisites if `requisites`."""

    media_types = tuple(sorted(HTML_TYPES))

    def __init__(self, product: str, requisites: bool, *, shared: bool) -> None:
        """`shared` says that other modules will ask for the tree, so it stays with a page of one part."""
        self._product = product
        self._requisites = requisites
        self._shared = shared
        self._engine = _SelectorEngine()

    def process(self, page: Page) -> None:
        """Fill `links`, `title`, `noindex` and `nofollow` of `page`."""
        trees = 0
        for piece in page.html():
            breathe()
            if _are_enough(page.links):  # the rest is not read for links that would not be taken
                page.cut = True
                break
            if (found := self._scanned(page, piece)) is not None:
                self._note(page, found)
            elif trees < MOST_TREES:
                trees = self._read_parts(page, piece, trees)
            else:  # its safe part is not even asked for
                page.cut = True
            del piece, found  # before the next is made
        page.links.pages = fit(page.links.pages)
        if page.links.base != page.url and _BLANK.search(page.beginning(MAX_BYTES)):
            self._read_blank(page)
        encode_queries(page.links, page.charset)

    def _read_parts(self, page: Page, piece: bytes, trees: int) -> int:
        """Read the trees of `piece`; return the number made of `page` by then."""
        for part in parts(piece):
            if trees == MOST_TREES:
                page.cut = True
                break
            if trees:
                page.drop_tree()  # before the next is made: each may be large
            root = self._tree(page, part, first=not trees).root
            trees += 1
            texts: list[tuple[bytes, bool]] = []
            if root is not None:
                self._note(page, of_tree(self._engine.find, root, self._product))
                texts = self._documents(page, root)
                if self._requisites:
                    page.links.requisites += html_requisites(self._engine.find, root)
            del root
            for text, is_framed in texts:
                page.drop_tree()
                self._read_document(page, text, is_framed=is_framed)
        return trees

    def _documents(self, page: Page, root: LexborNode) -> list[tuple[bytes, bool]]:
        """Return what is text to an HTML parser: parts for readers without frames, and documents in frames (True)."""
        found = self._engine.find("noframes,iframe[srcdoc]", root)
        page.cut |= len(found) > MOST_TREES
        texts = []
        for node in found[:MOST_TREES]:
            is_framed = node.tag == "iframe"
            text = node.attributes["srcdoc"] or "" if is_framed else node.text()
            texts.append((text.encode("utf-8", "replace"), is_framed))
        return texts

    def _read_document(self, page: Page, text: bytes, *, is_framed: bool) -> None:
        """Read `text` that was in a page. A document in a frame gives links, but none if it has a base of its own or
        asks something of robots. Frames in it are not looked into."""
        root = tree_of(text).root
        if root is None:
            return
        found = of_tree(self._engine.find, root, self._product)
        if is_framed:
            if any(kind in ("base", "meta") for kind, *_ in found.others):
                return
            found = found._replace(title="")
            if self._requisites:
                page.links.requisites += html_requisites(self._engine.find, root)
        self._note(page, found)

    def _read_blank(self, page: Page) -> None:
        """Add the base if an empty link or a fragment leads there, because a <base> makes it another page."""
        root = page.tree.root
        anchors = self._engine.find(_OWN_LINKS, root) if root is not None else ()
        if any(not _shunned(node.attributes) for node in anchors):
            page.links.pages = fit([*page.links.pages, page.links.base])

    def _scanned(self, page: Page, content: bytes) -> ReadLinks | None:
        """Return what the scanner reads of a page; None if its tree is needed."""
        if page._tree is not None or self._shared or self._requisites:
            return None
        return scanned(content, self._product)

    def _note(self, page: Page, found: ReadLinks) -> None:
        if found.shunned:
            page.links.nofollow += fit(found.shunned)
        page.links.pages += found.pages
        if len(page.links.pages) > MOST_LINKS:  # a long page has more, which may all be the same
            page.links.pages = _taken(page.links.pages)
        if len(page.links.nofollow) > MOST_LINKS:
            page.links.nofollow = _taken(page.links.nofollow)
        self._read_others(page, found.others)
        page.title = page.title or found.title

    def _read_others(self, page: Page, others: Iterable[Other]) -> None:
        links = page.links
        base = ""
        for kind, value, rel in others:
            if kind == "meta":
                obey(page, set(BETWEEN.sub(" ", value.lower()).split()))
            elif kind == "refresh":
                links.pages.append(refresh_target(value))
            elif kind == "link":
                self._read_link(links, value, rel)
            elif kind == "base":
                base = base or canonical(value, page.url) or page.url
            else:
                links.pages.append(value)
        if links.base == page.url:  # no earlier part of the page has one
            links.base = base or page.url

    def _tree(self, page: Page, part: bytes, *, first: bool) -> LexborHTMLParser:
        """Return the tree of a part of the page. If the tree is shared, the first part's is the page's for now."""
        if first and (page._tree is not None or self._shared):
            return page.tree
        return LexborHTMLParser(part, options=TREE_OPTIONS)

    def _read_link(self, links: PageLinks, href: str, value: str) -> None:
        rel = rel_of(value)
        if rel.page:
            if rel.nofollow:
                links.nofollow += fit([href])
            else:
                links.pages.append(href)
        elif rel.requisite and self._requisites:
            links.requisites.append(href)


# -- without a tree ------------------------------------------------------------------------------------


def _are_enough(links: PageLinks) -> bool:
    """Return whether no more links are taken of a page, by number or written out."""
    count = len(links)
    return count > MOST_LINKS or (
        count * MAX_HREF_CHARS > MOST_WRITTEN_BYTES
        and sum(map(len, links.pages)) + sum(map(len, links.nofollow)) > MOST_WRITTEN_BYTES
    )


def scanned(content: bytes, product: str) -> ReadLinks | None:
    """Return what is read of `content` (UTF-8); None if only the tree can tell, or the scanner was not compiled."""
    found = None if scan is None else scan(content, product.encode(), _unescaped, _taken)
    if found is None:
        return None
    pages, shunned, others, title = found
    plain = b"&" not in title and b"\r" not in title
    text = title.decode("utf-8", "replace") if plain else _text(b"<title>%b</title>" % title)
    return ReadLinks(pages, shunned, others, collapsed(text))


def _unescaped(value: bytes) -> str:
    """Return the value of an attribute that has character references."""
    node = LexborHTMLParser(b'<a href="%b">' % value.replace(b'"', b"&quot;")).css_first("a")
    return (node.attributes["href"] or "") if node is not None else ""


def _text(title: bytes) -> str:
    node = LexborHTMLParser(title).css_first("title")
    return node.text() if node is not None else ""


# -- of a tree -----------------------------------------------------------------------------------------


def of_tree(find: Any, root: LexborNode, product: str) -> ReadLinks:
    """Return what is read of the tree below `root`; `find` is a selector engine's."""
    anchors: list[Any] = []
    others: list[Other] = []
    titles: list[str] = []
    foreign = ForeignParts()
    for node in find(_READ, root):
        tag = node.tag
        if tag in _ANCHORS:
            anchors.append(node)
        elif tag == "base" and not foreign.is_html(node):
            continue
        elif tag != "title":
            others += _other(tag, node.attributes, product)
        elif not titles and node.parent.tag != "svg":
            titles.append(node.text())
    pages: list[str] = []
    shunned: list[str] = []
    for begin in range(0, len(anchors), ANCHORS_AT_ONCE):
        breathe()
        some = _followed([node.attributes for node in anchors[begin : begin + ANCHORS_AT_ONCE]])
        pages += some[0]
        shunned += some[1]
        if len(pages) > 2 * MOST_LINKS:
            pages = _taken(pages)
    return ReadLinks(pages, shunned, others, collapsed(titles[0]) if titles else "")


def _other(tag: str, attributes: Attributes, product: str) -> list[Other]:
    """Return what an element says, if anything."""
    if tag == "meta":
        content = attributes.get("content")
        if content and (attributes.get("name") or "").lower() in ("robots", product):
            return [("meta", content, "")]
        refreshes = (attributes.get("http-equiv") or "").lower() == "refresh"
        return [("refresh", content, "")] if content and refreshes else []
    if tag == "base":
        return [("base", attributes["href"] or "", "")] if "href" in attributes else []
    if tag == "link":
        href = attributes.get("href")
        return [("link", href, attributes.get("rel") or "")] if href else []
    return [(tag, attributes.get("src") or "", "")]


def _followed(anchors: list[Attributes]) -> tuple[list[str], list[str]]:
    """Return the links of `anchors` to follow, and those that ask not to be followed."""
    shunned: list[str] = []
    if any(map(_shunned, [attributes for attributes in anchors if "rel" in attributes])):
        shunned = [_href(attributes) for attributes in anchors if _shunned(attributes)]
        anchors = [attributes for attributes in anchors if not _shunned(attributes)]
    try:
        return list(map(_HREF, anchors)), shunned  # a link without a value is None, and `fit` drops it
    except KeyError:  # an anchor without `href`, or an SVG one
        return [_href(attributes) for attributes in anchors], shunned


def _shunned(attributes: Attributes) -> bool:
    return "nofollow" in (attributes.get("rel") or "").lower().split()


def _href(attributes: Attributes) -> str:
    return attributes.get("href") or attributes.get("xlink:href") or ""


def collapsed(text: str) -> str:
    """Return `text` as a title: white space collapsed, at most 512 characters."""
    return " ".join(text[:_TITLE_BYTES].split())[:_TITLE_CHARS]


def fit(hrefs: Iterable[str]) -> list[str]:
    """Return the `hrefs` that may lead to something that is fetched, each once, in order."""
    once = dict.fromkeys(filter(None, hrefs))
    if _SUSPECT.isdisjoint(map(_FIRST, once)):
        return list(once)
    return [href for href in once if href[0] not in _SUSPECT or _fits(href)]


def _taken(hrefs: Iterable[str]) -> list[str]:
    """Return as many of `hrefs` as are taken of a page, and one more to show that there were more."""
    return fit(hrefs)[: MOST_LINKS + 1]


def _fits(href: str) -> bool:
    href = href[:64].strip()
    return bool(href) and not href.startswith(_UNFIT) and not href.lower().startswith(_UNFIT)
