"""XHTML, written so that an HTML parser reads in it what a parser of XML does.

Called for pages of XHTML before they are parsed. An HTML parser takes `<script/>` for the beginning of a script that
has all that follows, a CDATA section for a comment, and `<h:p>` for an element that it does not know. It knows no
entities but its own. So elements without content get end tags, which both understand, sections become text, prefixes
that the outermost element declares for XHTML go, and entities that the document declares stand for their text.

Only entities of plain text count: none that has markup, another entity, or a file. Invariant: time is linear. The
result is at most twice as long and `GROWTH_BYTES`, besides end tags; a section or entity beyond that stays as it is.
"""

import re
from io import BytesIO

from fyke.core.markup import pieces

WRITTEN_BYTES = 1 << 18  # written out at a time: each tag takes ten times its bytes meanwhile
HEAD_BYTES = 1 << 16  # in which entities and prefixes are declared
MOST_SECTIONS = 10_000
GROWTH_BYTES = 1 << 16  # beside the length of the document

_QUOTED = rb"\"[^\"]*+\"|'[^']*+'"
_SUBSET = (
    rb"(?P<subset>\[(?:<!--.*?-->|<\?.*?\?>|" + _QUOTED + rb"|[^\]\"'<]|<(?!!--|\?))*+\]\s*+)?+"  # declares entities
)
_BEFORE = rb"(?:[^<]++|<\?.*?\?>|<!--.*?-->)*+"
DOCTYPE = re.compile(
    _BEFORE + rb"<!DOCTYPE(?:[^\[<>\"']|" + _QUOTED + rb")*+" + _SUBSET + rb">",
    re.DOTALL | re.IGNORECASE,
)
_DECLARED = re.compile(rb"<!--.*?(?:-->|\Z)|<!ENTITY\s++([\w:.-]{1,64}+)\s++(" + _QUOTED + rb")\s*+>", re.DOTALL)
_NUMBER = re.compile(rb"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_PLAIN = re.compile(rb"(?:[^<&\"'%]|&#[0-9a-fA-Fx]{1,7};)*+")
_ROOT = re.compile(_BEFORE + rb"(<[\w.:-][^<>]*+>)", re.DOTALL)
_PREFIX = re.compile(rb"\sxmlns:([\w.-]{1,32}+)\s*+=\s*+[\"']http://www\.w3\.org/1999/xhtml[\"']")
_SECTION = re.compile(
    rb"<(script|style)(?=[\s/>])[^<>]*+(?<!/)>(?:.*?</\1(?=[\s/>])|.*)"
    rb"|<!--(?:.*?-->|.*)|<!\[CDATA\[(?P<text>.*?)(?:\]\]>|\Z)",
    re.DOTALL,
)
_PREFIXED = re.compile(rb"<(/?)([\w.-]{1,32}+):(?=[a-zA-Z])")
_REFERENCE = re.compile(rb"&([\w:.-]{1,64}+);")
_EMPTY_TAG = re.compile(  # of few attributes, each read once
    rb"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([a-zA-Z][^\s/<>]*+)"
    rb"((?:\s++[^\s=/<>\"']++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+')){0,64}+)\s*+/>"
)


def written_out(xhtml: bytes) -> bytes:
    """Return `xhtml` (UTF-8) as HTML."""
    return _Xhtml(xhtml).written()


class _Xhtml:
    """One document, and what it declares."""

    def __init__(self, xhtml: bytes) -> None:
        self._xhtml = xhtml
        self._room_bytes = len(xhtml) + GROWTH_BYTES  # by which it may grow
        doctype = DOCTYPE.match(xhtml, 0, HEAD_BYTES)
        root = _ROOT.match(xhtml, doctype.end() if doctype else 0, HEAD_BYTES)
        self._prefixes = frozenset(_PREFIX.findall(root[1]) if root else ())
        self._subset = doctype.span("subset") if doctype and doctype["subset"] else (0, 0)
        self._entities = _entities(xhtml[slice(*self._subset)])

    def written(self) -> bytes:
        begin, end = self._subset
        stream = BytesIO(self._without_sections(self._xhtml[:begin] + self._xhtml[end:]))
        return b"".join(map(self._piece, pieces(stream, WRITTEN_BYTES)))

    def _piece(self, piece: bytes) -> bytes:
        if self._entities:
            piece = _REFERENCE.sub(self._value, piece)
        if self._prefixes:
            piece = _PREFIXED.sub(self._bare, piece)
        return _EMPTY_TAG.sub(rb"<\1\2></\1>", piece)

    def _without_sections(self, xhtml: bytes) -> bytes:
        """Return `xhtml` with CDATA sections as text, except for those in scripts and styles, whose readers know
        them."""
        if b"<![CDATA[" not in xhtml:
            return xhtml
        out: list[bytes] = []
        done = 0
        for found in _SECTION.finditer(xhtml):
            if found["text"] is None:
                continue
            text = found["text"].replace(b"&", b"&amp;").replace(b"<", b"&lt;")
            if len(out) == 2 * MOST_SECTIONS or not self._takes(found[0], text):
                break
            out += xhtml[done : found.start()], text
            done = found.end()
        return b"".join((*out, xhtml[done:]))

    def _value(self, reference: re.Match[bytes]) -> bytes:
        value = self._entities.get(reference[1])
        return reference[0] if value is None or not self._takes(reference[0], value) else value

    def _bare(self, tag: re.Match[bytes]) -> bytes:
        return b"<" + tag[1] if tag[2] in self._prefixes else tag[0]

    def _takes(self, old: bytes, new: bytes) -> bool:
        """Return whether `new` may stand in place of `old`; then note what it takes."""
        more = max(0, len(new) - len(old))
        if more > self._room_bytes:
            return False
        self._room_bytes -= more
        return True


def _entities(subset: bytes) -> dict[bytes, bytes]:
    """Return the entities of plain text that a document declares; the first of a name counts."""
    entities: dict[bytes, bytes] = {}
    for name, quoted in _DECLARED.findall(subset):
        value = _NUMBER.sub(_character, quoted[1:-1])
        if name and name not in entities and _PLAIN.fullmatch(value):
            entities[name] = value
    return entities


def _character(number: re.Match[bytes]) -> bytes:
    code = int(number[1], 16) if number[1] else int(number[2])
    is_one = code <= 0x10FFFF and not 0xD800 <= code < 0xE000
    return chr(code).encode() if is_one else b""
