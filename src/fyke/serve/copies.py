"""The archived copy of a page in a frame: to be looked at, and dead.

Called by `fyke.serve.pages`. The frame is sandboxed and its policy forbids script and loading (`COPY_POLICY`). That
keeps us safe from all but links, for which there is no policy: they lead nowhere, and have their target as a title.
Elements that would only fail are taken out of HTML (scripts, frames, refreshes). Style sheets and images are put in if
the archive has them. A browser reads what we write anew, so text that is written as it is, such as that of a style
sheet, holds nothing that begins a tag: in SVG and MathML, or within a comment, it would be one.

Invariant: no byte is fetched from anywhere for a copy.
"""

import re
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fyke.core.markup import TREE_OPTIONS, bounded
from fyke.core.pages import HTML_TYPES, Page
from fyke.core.urls import canonical
from fyke.harvest.queries import with_queries_encoded
from fyke.quantities import size

IMAGES = frozenset(
    {
        "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml",
        "image/x-icon", "image/vnd.microsoft.icon",
    }
)  # fmt: skip
MOST_TEXT_CHARS = 4 << 20
MOST_IMAGE_BYTES = 16 << 20
MOST_PART_BYTES = 2 << 20  # of an image or a style sheet in a page
MOST_PARTS_BYTES = 12 << 20
MOST_PARTS = 80
MOST_IMPORTS_DEEP = 3
PARTS_S = 1.0  # for the search for parts
CUT = "The rest is not shown here: Save has all of it."

_OUT = (  # templates may be shown, and we cannot look into them; animations may set where a link leads
    "script,iframe,frame,object,embed,applet,portal,base,link,meta[http-equiv],audio,video,source,template,animate,set,"
    "noembed,noframes"
)
_AS_IT_IS = "xmp,plaintext"  # shown, but their text cannot be written in another way
_LINKS = frozenset({"a", "area"})
_LEADS = ("href", "xlink:href")  # in SVG either may count, whichever comes first
_STYLE = (
    "<style>:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;display:grid;place-content:center;"
    "min-height:90vh;margin:0;text-align:center}img{max-width:100%;max-height:96vh;background:#fff}</style>"
)
_DOCTYPE = re.compile(rb"(?:\s|<!--.*?-->)*+<!doctype", re.IGNORECASE | re.DOTALL)
_IMPORT = re.compile(r"""@import\s++(?:url\(\s*+)?["']?([^"')\s;]{1,2000}+)["']?\s*+\)?[^;]{0,200}+;""")
_TAG = re.compile(r"<!--|<(?=[A-Za-z/!?])")
_REL_STYLE = re.compile(r"\bstylesheet\b", re.IGNORECASE)

Find = Callable[[str], Page | None]


@dataclass(frozen=True, slots=True)
class Copy:
    """Content of the frame."""

    content: bytes
    content_type: str
    shown: bool = True  # False if it can only be saved


def copy_of(page: Page, find: Find) -> Copy:
    """Return `page` as it may be shown; `find` returns the archived page of a URL."""
    kind = page.media_type
    if kind in HTML_TYPES:
        return _html(page, find)
    if kind in IMAGES and len(page.content) <= MOST_IMAGE_BYTES:
        return Copy(_document(f'<img alt="" src="{_data_url(kind, page.content)}">'), "text/html; charset=utf-8")
    if page.charset:
        text = page.text
        if len(text) > MOST_TEXT_CHARS:
            text = f"{text[:MOST_TEXT_CHARS]}\n\n{CUT}"
        return Copy(text.encode("utf-8", "replace"), "text/plain; charset=utf-8")
    what = f"{escape(kind[:80] or 'data of an unknown kind')}, {size(len(page.content))}"
    return Copy(_document(f"<p>{what}<br>This cannot be shown here.</p>"), "text/html; charset=utf-8", shown=False)


def _document(body: str) -> bytes:
    return f"<!doctype html><meta charset=utf-8><title>Archived copy</title>{_STYLE}{body}".encode()


def _html(page: Page, find: Find) -> Copy:
    whole = page.text.encode("utf-8", "replace")
    content = bounded(whole)
    tree = LexborHTMLParser(content, options=TREE_OPTIONS)
    parts = _Requisites(page.links.base or page.url, page.charset, find)
    sheets = parts.styles(tree.css("link[href]"))
    parts.put_images(tree.css("img[src]"))
    out = f"{_OUT},{_AS_IT_IS}" if tree.css_first("svg,math") else _OUT
    for node in reversed(tree.css(out)):  # inner elements first
        node.decompose()
    for node in tree.css("style"):
        _without_tags(node)
    _put_styles(tree, sheets)
    for node in tree.css(r"[href],[xlink\:href],[ping]"):
        _deaden(node)
    text = f"{'<!doctype html>' if _DOCTYPE.match(whole[:1000]) else ''}{tree.html or ''}"
    if len(content) < len(whole):
        text = f'{text}<p style="all: revert">{CUT}</p>'
    return Copy(text.encode("utf-8", "replace"), "text/html; charset=utf-8")


def _as_style(css: str) -> str:
    """Return `css` without anything that begins a tag; it means the same."""
    return _TAG.sub(lambda match: "\\3c " if match[0] == "<" else " ", css)


def _without_tags(node: LexborNode) -> None:
    """Let the text of a style element begin no tag, wherever a browser may find it."""
    css = node.text(deep=True)
    if _TAG.search(css):
        node.inner_html = ""
        node.insert_child(_as_style(css))  # as text, whatever it says


def _put_styles(tree: LexborHTMLParser, sheets: list[tuple[str, str]]) -> None:
    """Put style `sheets`, each with its media, at the end of the head."""
    head = tree.head
    assert head is not None  # a tree of HTML always has one
    for media, css in sheets:
        style = tree.create_node("style")
        style.insert_child(_as_style(css))
        style.attrs["media"] = media
        head.insert_child(style)


def _deaden(node: LexborNode) -> None:
    """Let a link lead nowhere, except to places in the page itself."""
    written = node.attributes
    within = ("#", "data:image/") if node.tag == "image" else ("#",)
    hrefs = [written[name] or "" for name in _LEADS if name in written]
    elsewhere = [href for href in hrefs if not href.startswith(within)]
    for name in ("target", "ping", *(_LEADS if elsewhere else ())):
        if name in written:
            del node.attrs[name]
    if elsewhere and node.tag in _LINKS:
        node.attrs["href"] = "#"
        node.attrs["title"] = elsewhere[0][:500]


class _Requisites:
    """What a page needs to be shown, from the archive, with limits of number, size and time."""

    def __init__(self, base: str, charset: str, find: Find) -> None:
        self._base = base
        self._charset = charset
        self._find = find
        self._left_bytes = MOST_PARTS_BYTES
        self._left = MOST_PARTS
        self._until = time.monotonic() + PARTS_S

    @property
    def _spent(self) -> bool:
        return self._left <= 0 or time.monotonic() > self._until

    def _part(self, href: str, base: str = "") -> Page | None:
        if self._spent:  # before the address is read, because there may be millions
            return None
        if not base:  # the page's own; style sheets name their parts in UTF-8
            (href,) = with_queries_encoded([href], self._base, self._charset)
        url = canonical(href, base or self._base)
        if url is None:
            return None
        self._left -= 1
        found = self._find(url)
        if found is None or len(found.content) > min(MOST_PART_BYTES, self._left_bytes):
            return None
        self._left_bytes -= len(found.content)
        return found

    def styles(self, links: list[LexborNode]) -> list[tuple[str, str]]:
        """Return the media and the text of each style sheet among `links`."""
        found = []
        for node in links:
            attributes = node.attributes
            wanted = _REL_STYLE.search(attributes.get("rel") or "")
            part = self._part(attributes.get("href") or "") if wanted else None
            if part is not None and part.charset:
                found.append((attributes.get("media") or "all", self._with_imports(part)))
        return found

    def _with_imports(self, sheet: Page, depth: int = 0) -> str:
        """Return the text of a style sheet, with the sheets it imports in their places."""

        def put(match: re.Match[str]) -> str:
            part = self._part(match[1], sheet.url) if depth < MOST_IMPORTS_DEEP else None
            return self._with_imports(part, depth + 1) if part is not None and part.charset else ""

        return _IMPORT.sub(put, sheet.text)

    def put_images(self, images: list[LexborNode]) -> None:
        """Put the archived content into `images`, if there is any."""
        for node in images:
            part = self._part(node.attributes.get("src") or "")
            if part is not None and part.media_type in IMAGES:
                node.attrs["src"] = _data_url(part.media_type, part.content)
                for name in ("srcset", "loading"):
                    if name in node.attributes:
                        del node.attrs[name]


def _data_url(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{b64encode(content).decode()}"
