"""The parts a page needs to be shown: images, styles, scripts, fonts, media.

Called by the HTML module for the elements of a page, and run by `fyke.harvest.parser` for CSS documents, both only if a
crawl asks for requisites.

Invariant: references are given as written, each once, without those that fetch nothing (`data:`, `#…`).
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

from fyke.core.document import PIECE_BYTES
from fyke.core.pace import breathe
from fyke.core.pages import Page
from fyke.harvest.css import css_references

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
# Possessive throughout: no attribute may make reading it slow.
_SOME = r"(?:[^,(]++|\([^)]*+\)?){0,1024}+"  # of the descriptors: no match may take long
_CANDIDATE = re.compile(rf"[\s,]*+([^\s,]\S*+)((?<!,)\s++{_SOME})?", re.ASCII)
_DESCRIPTORS = re.compile(_SOME)


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
        breathe()
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
        breathe()
        yield match[1].rstrip(",")
        at = match.end()
        while match[2] and value[at : at + 1] not in ("", ",") and (some := _DESCRIPTORS.match(value, at)):
            breathe()
            at = some.end()


def _needed(references: list[str] | Iterator[str]) -> list[str]:
    stripped = (reference.strip(_BLANKS) for reference in references)
    return list(dict.fromkeys(each for each in stripped if each and not each[:16].lower().startswith(_EMPTY)))
