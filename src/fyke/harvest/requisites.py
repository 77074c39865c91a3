"""The parts a page needs to be shown: images, styles, scripts, fonts, media.

Called by the HTML module for the elements of a page, and run by `fyke.harvest.parser` for CSS documents, both only if a
crawl asks for requisites.

Invariant: references are given as written, each once, without those that fetch nothing (`data:`, `#…`). CSS is read by
its tokens (comments, strings, escapes), never evaluated.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

from fyke.core.document import PIECE_BYTES
from fyke.core.pages import Page

Find = Callable[[str, LexborNode], list[LexborNode]]

_ELEMENTS = (
    "img,source,script[src],video,audio,track[src],embed[src],object[data],input[src],"
    "link[imagesrcset],[background],[style],style,image,use,feImage"
)
# Attributes that hold one URL, by element; `background` and `style` are read on any element.
_SOURCES = {
    "img": ("src",),
    "source": ("src",),
    "script": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "feimage": ("href", "xlink:href"),
}
_SETS = ("srcset", "imagesrcset")
_EMPTY = ("#", "data:", "javascript:", "about:", "blob:")

_BLANKS = " \t\n\f\r"  # HTML's; other blanks belong to the address
# Possessive throughout, here and below: no attribute or style sheet may make reading it slow.
_CANDIDATE = re.compile(r"[\s,]*+([^\s,]\S*+)((?<!,)\s++(?:[^,(]|\([^)]*+\)?)*+)?,?", re.ASCII)
_STRING = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_WORD = r"(?>[^\s\"'()\\]|\\[0-9a-f]{1,6}\s?|\\.)*+"
_UNCLOSED = r"\"(?:[^\"\\\n]|\\.)*+|'(?:[^'\\\n]|\\.)*+"
_CSS = re.compile(
    rf"/\*.*?(?:\*/|\Z)|url\(\s*+({_STRING}|{_WORD})\s*+\)|@import\s*+({_STRING})|({_STRING})|{_UNCLOSED}"
    r"|(image-set\(|\(++)|(\)++)",  # -webkit-image-set too
    re.IGNORECASE | re.DOTALL,
)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|\s)?|(\r\n|.))", re.DOTALL)


MOST_PIECES = 8  # of `PIECE_BYTES`, read of a style sheet


class CssLinks:
    """Finds what a style sheet imports and refers to."""

    media_types = ("text/css",)

    def process(self, page: Page) -> None:
        """Add the references of a style sheet to the requisites of `page`."""
        page.links.requisites += _needed(css_references("".join(islice(page.texts(), MOST_PIECES))))
        page.cut |= page.size_bytes > MOST_PIECES * PIECE_BYTES


def html_requisites(find: Find, root: LexborNode) -> list[str]:
    """Return the references of the elements below `root` that are needed to show them."""
    found: list[str] = []
    for node in find(_ELEMENTS, root):
        attributes = node.attributes
        tag = (node.tag or "").lower()
        found += [attributes.get(name) or "" for name in _SOURCES.get(tag, ())]
        if tag == "input" and (attributes.get("type") or "").lower() == "image":
            found.append(attributes["src"] or "")
        elif tag == "style":
            found += css_references(node.text())
        for name in _SETS:
            if name in attributes:
                found += srcset(attributes[name] or "")
        if "background" in attributes:
            found.append(attributes["background"] or "")
        if "style" in attributes:
            found += css_references(attributes["style"] or "")
    return _needed(found)


def srcset(value: str) -> Iterator[str]:
    """Yield the URLs of a `srcset` attribute (HTML, 4.8.4.3.10)."""
    at = 0
    while match := _CANDIDATE.match(value, at):  # without a match the rest is blank
        yield match[1].rstrip(",")
        at = match.end()


def css_references(text: str) -> Iterator[str]:
    """Yield the URLs in CSS: `url(…)`, `@import "…"`, and the strings of an `image-set(…)`."""
    if "(" not in text and "@import" not in text:
        return
    for raw in _as_written(text):
        raw = raw[1:-1] if raw[0] in "'\"" else raw
        if raw:
            yield _CSS_ESCAPE.sub(_unescaped, raw)


def _as_written(text: str) -> Iterator[str]:
    open_brackets = set_at = 0  # the number of the bracket with which an image set began
    for match in _CSS.finditer(text):
        url, imported, string, opens, closes = match.groups("")
        if opens:
            open_brackets += opens.count("(")
            if opens[0] != "(" and not set_at:
                set_at = open_brackets
        elif closes:
            open_brackets = max(0, open_brackets - len(closes))
            if open_brackets < set_at:
                set_at = 0
        elif string and 0 < set_at == open_brackets:
            yield string
        elif url or imported:
            yield url or imported


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return "\ufffd" if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)
    return "" if match[2] in "\r\n\f" else match[2]


def _needed(references: list[str] | Iterator[str]) -> list[str]:
    stripped = (reference.strip(_BLANKS) for reference in references)
    return list(dict.fromkeys(each for each in stripped if each and not each[:16].lower().startswith(_EMPTY)))
