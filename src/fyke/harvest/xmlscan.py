"""XML read safely, as a stream of elements: sitemaps and feeds are read through it.

Called by `fyke.harvest.sitemap` and `fyke.harvest.feed`. Expat parses. Entity declarations are refused, nothing
external is loaded, and only the path to the current element is kept. Broken XML is common: if Expat refuses it, the
HTML parser reads it again, which takes anything and expands nothing. Blanks, byte order marks and a warning of PHP
before the document are skipped.

Invariant: never raises, whatever the bytes; memory is bounded by the document and its depth. Text and attributes that
break off, or refer to an unknown entity, are empty or missing: otherwise only a part of a URL would be left.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from html.entities import html5
from itertools import count
from xml.parsers import expat

from selectolax.lexbor import LexborNode

from fyke.core.markup import MAX_BYTES, tree_of
from fyke.core.memory import roomy, taken
from fyke.core.pace import breathe
from fyke.core.urls import canonical
from fyke.core.xhtml import DOCTYPE

Attributes = dict[str, str]
Read = Callable[[], Iterator[bytes]]
"""Gives a document piece by piece, as often as it is asked."""
See = Callable[[str, str, Attributes, str, str], None]
"""Called at the end of each element with its name, its parent's, its attributes, its own text and its base URL."""

_CLOSED = re.compile(rb"<([\w:.-]++)([^<>]*)/>")
_LITERAL = re.compile(rb"<!\[CDATA\[(.*?)(?:\]\]>|\Z)|&([A-Za-z_:][\w:.-]*+);", re.DOTALL)
_FOREIGN = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z_:]")  # an entity that is not XML's own
_REFERENCE_BYTES = len(b"&quot;")  # the longest of these
_UNKNOWN = "\uffff"  # stands for the text of an unknown entity: XML cannot hold it, because it is no character
_BLANK = b" \t\r\n\xef\xbb\xbf"  # with the bytes of byte order marks
_BEGIN = re.compile(rb"<(?:\?xml\s|(?:[\w.-]{1,64}:)?(?:urlset|sitemapindex)[\s>])", re.IGNORECASE)
# Elements that a server's warning begins with.
_WARNINGS = frozenset({"b", "br", "div", "font", "p", "pre", "span", "strong", "table"})
MOST_BEFORE_BYTES = 4 << 10  # before the document: a few warnings
_HEAD_BYTES = 1 << 16  # in which the root element stands
_TEXT_CHARS = 1 << 14  # longer text is no URL and no title
_BASE_CHARS = 1 << 8  # each link below would be as long in memory, though written with a few bytes

_MOST_DEPTH = 1_000  # of nested elements: each open one takes 300 bytes
_BREATH = 256  # elements


class Enough(Exception):
    """Raised by a `See` to stop: the rest is not read."""


class _Refused(Exception):
    """The document declares entities or attributes, or is nested deeper than any list: only a bomb needs that."""


def root_of(content: bytes) -> str:
    """Return the local name of the outermost element, lower case; empty if there is none."""
    head = content[: MOST_BEFORE_BYTES + _HEAD_BYTES]
    return _root(head[begin_of(head) :][:_HEAD_BYTES])


def begin_of(content: bytes) -> int:
    """Return where the document begins in `content`: behind blanks and byte order marks, and behind other text or a
    warning in HTML, if `<?xml` or the root of a sitemap follows soon."""
    head = content[:MOST_BEFORE_BYTES]
    at = len(head) - len(head.lstrip(_BLANK))
    if head.startswith((b"<?", b"<!"), at) or (head.startswith(b"<", at) and _root(head[at:]) not in _WARNINGS):
        return at
    found = _BEGIN.search(head, at)
    return at if found is None else found.start()


def _from_begin(read: Read) -> Iterator[bytes]:
    pieces = read()
    first = next(pieces, b"")
    yield first[begin_of(first) :]
    del first
    yield from pieces


def _root(head: bytes) -> str:
    found: list[str] = []

    def start(name: str, _: object) -> None:
        found.append(_local(name))
        raise _Refused

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EntityDeclHandler = _refuse
    with suppress(_Refused, expat.ExpatError, ValueError):
        parser.Parse(head, False)
    return found[0] if found else _root_by_force(head)


def scan(read: Read, url: str, see: See) -> None:
    """Show `see` every element of the document that `read` gives (UTF-8, no byte order mark needed), which came from
    `url`, until it raises `Enough`.

    After a fault the HTML parser shows all elements again, from the beginning. For that the document is read anew, so
    that it is not held beside the tree.
    """
    read = partial(_from_begin, read)
    with suppress(Enough):
        if not _scan_strictly(read, url, see):
            _scan_by_force(_plain(_beginning(read())), url, see)


def seen_from(base: str, href: str, url: str) -> str:
    """Return `href` as the document at `url` has it, or absolute if its element has another `base`. Empty if it is no
    URL."""
    return href if base == url or not href else canonical(href, base) or ""


class _Text:
    """The text of an element, as far as it is shown."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, some: str) -> None:
        if not self._text:
            self._text = some.lstrip()
        elif len(self._text) < _TEXT_CHARS:
            self._text += some

    def take(self) -> str:
        """Return what was added since the last call."""
        text, self._text = self._text[:_TEXT_CHARS].rstrip(), ""
        return text


def _scan_strictly(read: Read, url: str, see: See) -> bool:
    path: list[tuple[str, Attributes, str]] = [("", {}, url)]
    text = _Text()
    elements = count(1)

    def start(name: str, attributes: Attributes) -> None:
        if next(elements) % _BREATH == 0:
            breathe()
        base = path[-1][2]
        if len(path) > _MOST_DEPTH:
            raise _Refused
        if "xml:base" in attributes:
            base = _base(attributes["xml:base"], base)
        path.append((_local(name), attributes, base))
        text.take()

    def end(_: str) -> None:
        name, attributes, base = path.pop()
        see(name, path[-1][0], attributes, text.take(), base)

    def doctype(_: str, system: str | None, public: str | None, subset: int) -> None:
        # Expat silently leaves out entities that are declared elsewhere.
        if (system or public or subset) and _has_foreign(read()):
            raise _Refused

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text.add
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = _refuse
    parser.AttlistDeclHandler = _refuse  # default attributes
    try:
        for piece in read():
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except (_Refused, expat.ExpatError, ValueError):
        return False
    return True


def _has_foreign(pieces: Iterator[bytes]) -> bool:
    """Return whether the document refers to an entity that is not XML's own."""
    some = b""
    for piece in pieces:
        some = some[-_REFERENCE_BYTES:] + piece
        found = _FOREIGN.search(some)
        if found is not None and found.start() < len(some) - _REFERENCE_BYTES:
            return True
    return _FOREIGN.search(some) is not None


def _beginning(pieces: Iterator[bytes]) -> bytes:
    """Return as much as is parsed by force, and as many bytes of declarations before it."""
    whole = roomy(2 * MAX_BYTES)
    for piece in pieces:
        whole.write(piece)
        if whole.tell() >= 2 * MAX_BYTES:
            break
    return taken(whole)


def _base(own: str, above: str) -> str:
    """Return the base (XML Base) of an element that names its `own`, below one whose base is `above`."""
    base = canonical(own, above)
    return base if base is not None and len(base) <= _BASE_CHARS else above


def _refuse(*_: object) -> None:
    raise _Refused


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _plain(content: bytes) -> bytes:
    """Return as much of `content` as is parsed by force, without what HTML lacks or writes otherwise: declarations,
    CDATA, self-closed elements. Text that breaks off is left out."""
    doctype = DOCTYPE.match(content)
    if doctype is None and b"<!ENTITY" in content:
        return b""  # nobody knows where the declarations end
    begin = doctype.end() if doctype is not None else 0
    del doctype  # the match holds all of the content
    end = begin + MAX_BYTES
    content = content[begin : max(content.rfind(b"<", begin, end), content.rfind(b">", begin, end) + 1)]
    return _replaced(_CLOSED, _opened_and_closed, _replaced(_LITERAL, _in_html, content))


def _replaced(pattern: re.Pattern[bytes], by: Callable[[re.Match[bytes]], bytes], content: bytes) -> bytes:
    """Return the same as `pattern.sub`, which would hold all pieces until the end: small ones take twenty times their
    length."""
    whole, at = roomy(2 * len(content)), 0
    for match in pattern.finditer(content):
        whole.write(content[at : match.start()])
        whole.write(by(match))
        at = match.end()
    whole.write(content[at:])
    return taken(whole)


def _opened_and_closed(match: re.Match[bytes]) -> bytes:
    return b"<%b%b></%b>" % (match[1], match[2], match[1])


def _in_html(match: re.Match[bytes]) -> bytes:
    literal, entity = match.groups()
    if literal is not None:
        return bytes(literal).replace(b"&", b"&amp;").replace(b"<", b"&lt;")
    return match[0] if f"{entity.decode()};" in html5 else _UNKNOWN.encode()


def _root_by_force(content: bytes) -> str:
    body = tree_of(_plain(content)).body
    node = body.first_child if body is not None else None
    while node is not None and not node.is_element_node:
        node = node.next
    return _local(node.tag or "") if node is not None else ""


def _scan_by_force(plain: bytes, url: str, see: See) -> None:
    root = tree_of(plain).root
    if root is None:
        return
    bases = [(-1, url)]  # of the elements around the current one
    for number, node in enumerate(root.traverse(), 1):
        if number % _BREATH == 0:
            breathe()
        if not node.is_element_node:
            continue
        parent = node.parent
        while len(bases) > 1 and (parent is None or bases[-1][0] != parent.mem_id):
            bases.pop()
        every = node.attributes.items()
        attributes = {name: value or "" for name, value in every if not value or _UNKNOWN not in value}
        base = bases[-1][1]
        if "xml:base" in attributes:
            base = _base(attributes["xml:base"], base)
        bases.append((node.mem_id, base))
        text = _own_text(node)[:_TEXT_CHARS]
        see(
            _local(node.tag or ""),
            _local(parent.tag or "") if parent else "",
            attributes,
            "" if _UNKNOWN in text else text,
            base,
        )


def _own_text(node: LexborNode) -> str:
    text = node.text(deep=False).strip()
    if text:
        return text
    after = node.next
    if after is not None and after.is_text_node:  # <link> is empty in HTML: what it held now follows it
        return after.text().strip()
    return ""
