"""A page: an exchange that was understood.

Made by the parser of the harvest. Processing modules, sinks and the archive read it.
"""

import codecs
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, BinaryIO

from selectolax.lexbor import LexborHTMLParser

from fyke.core.document import Document, first, read_on
from fyke.core.markup import MAX_BYTES, bounded, pieces, tree_of
from fyke.core.memory import roomy, taken
from fyke.core.visits import Exchange
from fyke.core.xhtml import written_out

HTML = "text/html"
HTML_TYPES = frozenset({HTML, "application/xhtml+xml"})
HELD_BYTES = 16 << 20  # of content that may be in memory beside the tree of a part of it
OWN_CODECS = "x-whatwg-"  # prefix of the names of codecs that Python lacks
_UTF_8 = frozenset({"utf-8", "us-ascii", "ascii"})
ISO_2022_JP = f"{OWN_CODECS}iso-2022-jp"
_WITHOUT_PIECES = frozenset({"", "utf-16", "utf-16-le", "utf-16-be", ISO_2022_JP})  # a `<` may be half a character


@dataclass(slots=True)
class PageLinks:
    """The links of a page as written in it (except that queries are encoded), relative to `base`.

    `pages` are links to follow, `nofollow` links that the page asks not to follow, `requisites` links to files needed
    to show it, `listings` the sitemaps that a sitemap index names. `dated` is when `pages` changed (unix seconds), by
    the sitemap or feed.
    """

    base: str
    pages: list[str] = field(default_factory=list)
    nofollow: list[str] = field(default_factory=list)
    requisites: list[str] = field(default_factory=list)
    listings: list[str] = field(default_factory=list)
    dated: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pages) + len(self.nofollow) + len(self.requisites) + len(self.listings)


@dataclass(slots=True)
class Page:
    """An answer understood: content decoded, media type and charset known, links found.

    `content` is the body after transfer and content coding; `findings` has the results of processing modules, by
    module name.
    """

    exchange: Exchange
    media_type: str
    _content: bytes | Document
    charset: str = ""  # empty if the content is not text
    links: PageLinks = field(default_factory=lambda: PageLinks(""))
    title: str = ""
    noindex: bool = False
    nofollow: bool = False
    listing: bool = False  # a sitemap or feed: a list of pages, and not a page
    duplicate: bool = False  # a body met before under another URL: not parsed again
    fingerprint: int = 0  # the key of `content`
    findings: dict[str, Any] = field(default_factory=dict)
    cut: bool = False  # its end was not read: reading all of it would have cost too much
    document_text: str = ""  # the text of a document that is not text itself, such as a PDF
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)  # of `[[extract]]` tables, by their names
    _tree: LexborHTMLParser | None = None

    @property
    def url(self) -> str:
        return self.exchange.visit.url

    @property
    def content(self) -> bytes:
        return first(self._content)

    @property
    def size_bytes(self) -> int:
        """The length of `content`, found without reading it."""
        return len(self._content) if isinstance(self._content, bytes) else self._content.size

    def _stream(self) -> BinaryIO:
        return BytesIO(self._content) if isinstance(self._content, bytes) else self._content.open()

    def to_disk(self) -> None:
        """Hold `content` on disk from now on, unless the disk is full."""
        document = self.exchange.body.beside()
        with suppress(OSError):
            document.write(self.content)
            document.to_disk()
            self._content = document

    @property
    def source(self) -> bytes | Document:
        """The `content` as it is held."""
        return self._content

    def beginning(self, most_bytes: int) -> bytes:
        """Return the first `most_bytes` of `content`."""
        return first(self._content, most_bytes)

    @property
    def status(self) -> int:
        return self.exchange.status

    @property
    def encoding(self) -> str:
        """The name of its charset, for readers without our codecs."""
        return self.charset.removeprefix(OWN_CODECS)

    @property
    def text(self) -> str:
        """`content` as text by its charset, faults replaced; or the text of a document; or empty."""
        return self.content.decode(self.charset, "replace") if self.charset else self.document_text

    def first_text(self, most_chars: int) -> str:
        """Return the first `most_chars` characters of `text`; no more of it is made."""
        found: list[str] = []
        for text in self.texts():
            found.append(text[:most_chars])
            most_chars -= len(found[-1])
            if not most_chars:
                break
        return "".join(found)

    def texts(self) -> Iterator[str]:
        """Yield `text` in pieces, because one character may make Python hold a whole text at four bytes a character."""
        yield from decoded(self._stream(), self.charset) if self.charset else (self.document_text,)

    def in_utf8(self) -> Iterator[bytes]:
        """Yield `text` as UTF-8 in pieces; content that says it is UTF-8 stays as it is."""
        if self.charset == "utf-8":
            return read_on(self._stream())
        return (text.encode("utf-8", "replace") for text in self.texts())

    @property
    def tree(self) -> LexborHTMLParser:
        """The HTML tree of as much of the page as is safe to parse, made once for all modules unless it was dropped."""
        if self._tree is None:
            self._tree = tree_of(next(self.html()))
        return self._tree

    def drop_tree(self) -> None:
        """Free the memory of the tree; it is made anew if it is asked for again."""
        self._tree = None

    def safe_html(self, most_bytes: int) -> str:
        """Return as much of the first `most_bytes` of an HTML page as is safe to parse. Bytes that are not UTF-8 are
        left out first, because a tag may only appear without them."""
        return bounded(next(self.html())[:most_bytes].decode("utf-8", "ignore").encode()).decode()

    def html(self) -> Iterator[bytes]:
        """Yield the text for an HTML parser: UTF-8, in pieces of at most `MAX_BYTES` of the content."""
        stream = self._stream()
        for piece in pieces(stream) if self.charset not in _WITHOUT_PIECES else [stream.read(MAX_BYTES)]:
            if self.charset not in _UTF_8:
                piece = _in_utf8(piece, self.charset) if self.charset else b""
            if self.media_type != HTML:
                piece = written_out(piece)
            yield piece
            del piece  # before the next is made


def decoded(stream: BinaryIO, charset: str) -> Iterator[str]:
    """Yield the text that `stream` holds, in pieces."""
    of_codec = codecs.lookup(charset).incrementaldecoder
    decode = (lambda piece, _: piece.decode(charset, "replace")) if of_codec is None else of_codec("replace").decode
    for piece in read_on(stream):
        yield decode(piece, False)
    yield decode(b"", True)


def _in_utf8(content: bytes, charset: str) -> bytes:
    whole = roomy(2 * len(content))
    for text in decoded(BytesIO(content), charset):
        whole.write(text.encode("utf-8", "replace"))
    return taken(whole)
