"""What of a page an HTML parser may be given: a guard before any tree is made.

Used wherever trees are made. In three places n bytes may cost n² work or n² elements: each block looks through all open
elements; open formatting elements are made again in every paragraph (`<font size=1><p><font size=2><p>…`, 190 KB of
which take lexbor a minute and gigabytes); each attribute is compared with all others of its tag. Browsers limit
nesting; lexbor does not; so a page is cut where its parsing would have cost too much. A look at where its tags begin
shows of nearly every page that it is safe, for a tenth of what the parsing costs; the rest are read tag by tag.

A parser of HTML takes `<script/>` for the beginning of a script, and all that follows for the script. In XHTML it is an
empty one, and `written_out` says so in words that both understand.

Invariant: parsing what `bounded` returns makes about `MAX_ELEMENTS` elements at most. The estimate of
work (not of elements) trusts end tags, so a page made with skill can still be slow.
"""

import re
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import numpy.typing as npt

from fyke.core.pace import breathe

MAX_BYTES = 8 << 20
WRITTEN_BYTES = 1 << 18  # that are written out at a time: each tag takes ten times its bytes meanwhile
MAX_TAGS = 200_000  # an element and its text take some 300 bytes
MAX_ELEMENTS = 1_000_000  # of 100 bytes
MAX_STEPS = 50_000_000  # through open elements, some 2 ns each
NULS_BYTES = 1 << 20  # that are looked through for them at a time
MOST_NULS = 1_000  # each costs 17 bytes, though the standard drops those in text
MAX_ATTRIBUTES = 1_000  # of a tag that is long

Int = npt.NDArray[np.int64]

_LESS_THAN, _SLASH = b"</"
_FEW_TAGS = 1_500  # whose nesting costs 3 ms at worst
_MANY_TAGS = 30_000  # pages of today have up to 25,000
_BREATH = 256  # tags
_LONG_TAG = 4_096  # bytes; the attributes of a shorter one cost 2 ms at worst
_FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
_FORMATTING_TAG = re.compile(rb"<(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)([\s/][^>]*)", re.IGNORECASE)
_TAG = re.compile(rb"<(/?)([a-zA-Z][^\s/>]*)([^>]*)")
_ATTRIBUTE = re.compile(rb"[^\s/>=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?")
_EMPTY_TAG = re.compile(  # of few attributes, each read once
    rb"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([a-zA-Z][^\s/<>]*+)"
    rb"((?:\s++[^\s=/<>\"']++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+')){0,64}+)\s*+/>"
)
_OPEN_TAG = re.compile(
    rb"<[a-zA-Z][^\s/>]*+(?:[\s/]++|=|[^\s/>=]++(?:\s*+=\s*+(?:\"[^\"]*+\"?|'[^']*+'?|[^\s>]*+))?)*+"
)
# Elements that never hold others, or end when the next one of their kind begins.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dd dt td th tr option a".split()
)


def _pairs(*texts: bytes) -> npt.NDArray[np.bool_]:
    """Whether two bytes, as a number, are one of `texts` in small letters or capitals."""
    found = np.zeros(1 << 16, np.bool_)
    for text in texts:
        for first in {text[0], text[:1].upper()[0]}:
            found[[first | second << 8 for second in {text[1], text[1:].upper()[0]}]] = True
    return found


_BLANKS = b" \t\n\f\r/"
_BEGINS_FORMATTING = _pairs(
    b"em", b"tt", b"bi", b"co", b"fo", b"no", b"sm", b"st", *(bytes([a, b]) for a in b"bisu" for b in _BLANKS)
)
_EMPTY = _pairs(b"br", b"hr", b"im")
_IS_LETTER = np.zeros(256, np.bool_)
_IS_LETTER[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] = True


def written_out(xhtml: bytes) -> bytes:
    """`xhtml` (UTF-8) with an end tag for each element that is empty and may not be so in HTML."""
    return b"".join(_EMPTY_TAG.sub(rb"<\1\2></\1>", piece) for piece in pieces(xhtml, WRITTEN_BYTES))


def pieces(content: bytes, most_bytes: int = MAX_BYTES) -> Iterator[bytes]:
    """`content`, in pieces of `most_bytes` at most that end before a tag."""
    at = 0
    while len(content) - at > most_bytes:
        end = content.rfind(b"<", at + 1, at + most_bytes)
        end = end if end > 0 else at + most_bytes
        yield content[at:end]
        at = end
    yield content[at:] if at else content


def parts(content: bytes) -> Iterator[bytes]:
    """`content` (UTF-8), in as many parts as it takes for each to be safe. A tag that no part may have is left out."""
    content = _without_many_nuls(content)
    at = 0
    while 0 <= at < len(content):
        part = bounded(content[at : at + MAX_BYTES])
        breathe()
        yield part
        at = at + len(part) if part else content.find(b"<", at + 1)


def bounded(content: bytes) -> bytes:
    """`content` (UTF-8), or as much from its beginning as may be parsed."""
    content = _without_many_nuls(content[:MAX_BYTES])
    content = content[: _end_before_long_tags(content)]
    begins = np.frombuffer(content, np.uint8) == _LESS_THAN
    if np.count_nonzero(begins) > MAX_TAGS:
        content = content[: int(np.flatnonzero(begins)[MAX_TAGS])]
        begins = begins[: len(content)]
    if np.count_nonzero(begins) < _FEW_TAGS or _is_safe(content, np.flatnonzero(begins)):
        return content
    return content[: _affordable(content)]


def _without_many_nuls(content: bytes) -> bytes:
    if b"\0" not in content:
        return content
    plain = BytesIO()
    for at in range(0, len(content), NULS_BYTES):
        plain.write(content[at : at + NULS_BYTES].translate(None, b"\0"))
        breathe()
    return plain.getvalue() if len(content) - plain.tell() > MOST_NULS else content


def _end_before_long_tags(content: bytes) -> int:
    """Where the first tag begins that has too many attributes."""
    begin = content.find(b"<")
    while begin >= 0 and begin + _LONG_TAG < len(content):
        further = content.rfind(b"<", begin + 1, begin + _LONG_TAG)
        if further < 0:
            further = content.find(b"<", begin + _LONG_TAG)
            tag = _OPEN_TAG.match(content, begin, further if further >= 0 else len(content))
            if tag and len(tag[0]) > _LONG_TAG and len(_ATTRIBUTE.findall(tag[0])) > MAX_ATTRIBUTES:
                return begin
        begin = further
    return len(content)


def takes_long(content: bytes) -> bool:
    """Whether reading `content`, as it came, may take a tenth of a second, since it has so many tags."""
    if len(content) <= _MANY_TAGS:
        return False
    return bool(np.count_nonzero(np.frombuffer(content, np.uint8) == _LESS_THAN) > _MANY_TAGS)


def _is_safe(content: bytes, at: Int) -> bool:
    """Whether the tags that begin `at` these places cost no more than a page may."""
    data = np.frombuffer(content + b"\0\0", np.uint8)
    first = data[at + 1]
    name = data[at + 2].astype(np.uint16) << 8 | first
    if len(at) ** 2 > 2 * MAX_STEPS:
        depth = np.cumsum((_IS_LETTER[first] & ~_EMPTY[name]).astype(np.int64) - (first == _SLASH))
        depth -= np.minimum(np.minimum.accumulate(depth), 0)
        if depth.sum() > MAX_STEPS:
            return False
    formatting = at[_BEGINS_FORMATTING[name]]
    most = MAX_ELEMENTS // len(at) - len(_FORMATTING)  # that may differ
    if len(formatting) <= most:
        return True
    tags = (_FORMATTING_TAG.match(content, begin) for begin in formatting.tolist())
    return len({tag.groups() for tag in tags if tag}) <= most


def _affordable(content: bytes) -> int:
    """The first offset where the limits are passed, tag by tag."""
    formatting: set[bytes] = set()
    unclosed: dict[bytes, int] = {}
    depth = elements = steps = 0
    for number, match in enumerate(_TAG.finditer(content), 1):
        if number % _BREATH == 0:
            breathe()
        end, name, attributes = match.groups()
        name = name.lower()
        if end:
            if unclosed.get(name, 0):
                unclosed[name] -= 1
                depth -= 1
            continue
        if name in _FORMATTING:
            formatting.add(name + attributes)
        if name not in _FLAT:
            unclosed[name] = unclosed.get(name, 0) + 1
            depth += 1
        elements += 1 + len(formatting)
        steps += depth
        if elements > MAX_ELEMENTS or steps > MAX_STEPS:
            return match.start()
    return len(content)
