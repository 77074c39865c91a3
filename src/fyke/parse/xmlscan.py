"""XML read safely, as a stream of elements: what sitemaps and feeds are read through.

Called by `fyke.parse.sitemap` and `fyke.parse.feed`. Expat parses; entity declarations are refused,
nothing external is loaded, nothing is kept but the path to the current element. Broken XML is common:
what Expat refuses is read once more by the HTML parser, which takes anything and expands nothing.

Invariant: never raises, whatever the bytes; memory is bounded by the document and its depth.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from xml.parsers import expat

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fyke.parse.markup import bounded

Attributes = dict[str, str]
See = Callable[[str, str, Attributes, str], None]
"""Called at the end of each element with its name, its parent's, its attributes and its own text."""

_CLOSED = re.compile(rb"<([\w:.-]++)([^<>]*)/>")
_HEAD_BYTES = 1 << 16  # the root element stands in them
_TEXT_CHARS = 1 << 14  # more is no URL and no title


class _Refused(Exception):
    """The document declares entities: only a bomb needs them."""


def root_of(content: bytes) -> str:
    """The local name of the outermost element, lower case; empty when there is none."""
    found: list[str] = []

    def start(name: str, _: object) -> None:
        found.append(_local(name))
        raise _Refused

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EntityDeclHandler = _refuse
    with suppress(_Refused, expat.ExpatError, ValueError):
        parser.Parse(content[:_HEAD_BYTES], False)
    return found[0] if found else _root_by_force(content[:_HEAD_BYTES])


def scan(content: bytes, see: See) -> None:
    """Show `see` every element of `content` (UTF-8, no byte order mark needed).

    After a fault all elements are shown again, from the beginning, by the HTML parser.
    """
    if not _scan_strictly(content, see):
        _scan_by_force(content, see)


def _scan_strictly(content: bytes, see: See) -> bool:
    path: list[tuple[str, Attributes]] = [("", {})]
    text: list[str] = []

    def start(name: str, attributes: Attributes) -> None:
        path.append((_local(name), attributes))
        text.clear()

    def end(_: str) -> None:
        name, attributes = path.pop()
        see(name, path[-1][0], attributes, "".join(text).strip()[:_TEXT_CHARS])
        text.clear()

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text.append
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(content, True)
    except (_Refused, expat.ExpatError, ValueError):
        return False
    return True


def _refuse(*_: object) -> None:
    raise _Refused


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _plain(content: bytes) -> bytes:
    """`content` without what HTML has another word for: CDATA, and elements closed as they open."""
    return _CLOSED.sub(rb"<\1\2></\1>", content.replace(b"<![CDATA[", b"").replace(b"]]>", b""))


def _root_by_force(content: bytes) -> str:
    body = LexborHTMLParser(bounded(_plain(content))).body
    node = body.first_child if body is not None else None
    while node is not None and not node.is_element_node:
        node = node.next
    return _local(node.tag or "") if node is not None else ""


def _scan_by_force(content: bytes, see: See) -> None:
    root = LexborHTMLParser(bounded(_plain(content))).root
    if root is None:
        return
    for node in root.traverse():
        if not node.is_element_node:
            continue
        parent = node.parent
        attributes = {name: value or "" for name, value in node.attributes.items()}
        see(
            _local(node.tag or ""),
            _local(parent.tag or "") if parent else "",
            attributes,
            _own_text(node)[:_TEXT_CHARS],
        )


def _own_text(node: LexborNode) -> str:
    text = node.text(deep=False).strip()
    if text:
        return text
    after = node.next
    if after is not None and after.is_text_node:  # <link> is empty in HTML: what it held now follows it
        return after.text().strip()
    return ""
