"""Which part of a page may an HTML parser be given? A guard before any tree is made.

Used wherever trees are made. A page is parsed up to the cost that `fyke.core.walk` allows, and the rest by itself. In
haste, while others wait, a page that takes long is not parsed.

An HTML parser puts every `<template>` aside, while a browser shows those with `shadowrootmode` where they stand;
`_with_shadows` writes them as other elements.

Invariant: parsing the result of `bounded` takes at most some 150 MB; misleading end tags cost only time.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import BinaryIO

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from fyke.core.pace import breathe, in_haste
from fyke.core.walk import walk

MAX_BYTES = 8 << 20
COUNTED_BYTES = 1 << 18  # in which tags are counted at a time: there may be too many long before the end
LONG_BYTES = 1 << 16  # a text without a tag of this length may be split
NULS_BYTES = 1 << 20  # from which NULs are removed at a time
MOST_NULS = 1_000  # each costs 17 bytes, though the standard drops those in text
LONG_US = 30_000  # that parsing in haste may take more than an ordinary page

_LESS_THAN = b"<"[0]
_MANY_TAGS = 30_000  # pages of today have up to 25,000
_SHADOW = b"shadowrootmode"
_MOST_TEMPLATES = 10_000  # with scripts and comments, in which there are none
_TEMPLATE = re.compile(
    rb"<(?:script(?=[\s/>])(?:.*?</script|.*)|!--(?:.*?-->|.*)"
    rb"|(?P<tag>/?template)(?=[\s/>])(?P<shadow>[^<>]*?\sshadowrootmode\s*+=)?+)",
    re.IGNORECASE | re.DOTALL,
)

TREE_OPTIONS = LexborDocumentOptions.WO_EVENTS  # events of changing trees cost a tenth, and for <option> all


class TakesLong(Exception):
    """Parsing a page would hold up others."""


def pieces(stream: BinaryIO, most_bytes: int = MAX_BYTES) -> Iterator[bytes]:
    """Yield `stream` in pieces of at most `most_bytes` that end before a tag, or behind a line of long text."""
    at, is_last = 0, False
    while not is_last:
        stream.seek(at)  # others may read it meanwhile
        piece = stream.read(most_bytes + 1)
        is_last = len(piece) <= most_bytes
        if not is_last:
            piece = piece[: _end_of_piece(piece, most_bytes)]
        at += len(piece)
        yield piece
        del piece  # before the next is read


def _end_of_piece(piece: bytes, most_bytes: int) -> int:
    tag = piece.rfind(b"<", 1, most_bytes)
    if tag > 0 and (most_bytes - tag <= LONG_BYTES or piece.find(b">", tag, most_bytes) < 0):
        return tag
    return piece.rfind(b"\n", most_bytes - LONG_BYTES, most_bytes) + 1 or most_bytes


def parts(content: bytes) -> Iterator[bytes]:
    """Yield `content` (UTF-8) in parts that are safe to parse. A tag that is not safe in any part is left out. Raises
    TakesLong."""
    content = _with_shadows(_without_many_nuls(content))
    at = 0
    while 0 <= at < len(content):
        part, size = _safe(content[at : at + MAX_BYTES])
        breathe()
        yield part
        at = at + size if size else content.find(b"<", at + 1)


def bounded(content: bytes) -> bytes:
    """Return the beginning of `content` (UTF-8) that may be parsed, or all. Raises TakesLong."""
    return _safe(_with_shadows(_without_many_nuls(content[:MAX_BYTES])))[0]


def tree_of(content: bytes) -> LexborHTMLParser:
    """Return the tree of as much of `content` (UTF-8) as is safe to parse. Raises TakesLong."""
    return LexborHTMLParser(bounded(content), options=TREE_OPTIONS)


def _safe(content: bytes) -> tuple[bytes, int]:
    part, size, us = walk(content)
    if in_haste() and (us > LONG_US or size < len(content)):
        raise TakesLong
    return part, size


def _with_shadows(content: bytes) -> bytes:
    """Return `content`, as long as before, with a `<span>` in place of each template that is a shadow tree (HTML,
    4.12.3)."""
    if _SHADOW not in content.lower():
        return content
    out: list[bytes] = []
    shadows: list[bool] = []  # of the templates that are open
    done = 0
    for found in islice(_TEMPLATE.finditer(content), _MOST_TEMPLATES):
        tag = found["tag"]
        if not tag:
            continue
        begins = tag[:1] != b"/"
        if begins:
            shadows.append(found["shadow"] is not None)
        if shadows and (shadows[-1] if begins else shadows.pop()):
            out += content[done : found.start()], b"<span    " if begins else b"</span    "
            done = found.end("tag")
    return b"".join((*out, content[done:]))


def _without_many_nuls(content: bytes) -> bytes:
    if b"\0" not in content:
        return content
    plain = BytesIO()
    for at in range(0, len(content), NULS_BYTES):
        plain.write(content[at : at + NULS_BYTES].translate(None, b"\0"))
        breathe()
    return plain.getvalue() if len(content) - plain.tell() > MOST_NULS else content


def has_many_tags(content: bytes) -> bool:
    """Return whether `content`, as it came, has so many tags that reading it may take a tenth of a second."""
    tags = at = 0
    while tags <= _MANY_TAGS < len(content) - at + tags:
        piece = np.frombuffer(content, np.uint8, min(COUNTED_BYTES, len(content) - at), at)
        tags += int(np.count_nonzero(piece == _LESS_THAN))
        at += COUNTED_BYTES
    return tags > _MANY_TAGS
