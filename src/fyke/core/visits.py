"""Pages are objects: a visit, the exchange it leads to, and the page of that exchange.

The frontier hands out `Visit`s; a protocol module turns one into an `Exchange`; parsing turns an
exchange into a `Page`, which processing modules, sinks and the store read. Each is made by one room
and only read by the others.
"""

import codecs
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from io import BytesIO
from typing import Any, BinaryIO

import pyarrow as pa
from selectolax.lexbor import LexborHTMLParser

from fyke.core.batches import EMPTY, URLS, Kind, numbers, texts, url_batch
from fyke.core.document import Document, first, read_on
from fyke.core.markup import MAX_BYTES, bounded, pieces, tree_of, written_out
from fyke.core.memory import roomy, taken
from fyke.core.outcomes import Outcome
from fyke.core.urls import Locator, UrlParts, locate, split

HTML = "text/html"
HTML_TYPES = frozenset({HTML, "application/xhtml+xml"})
HELD_BYTES = 16 << 20  # of content that may be in memory beside the tree of a part of it
OWN_CODECS = "x-whatwg-"  # prefix of the names of codecs that Python lacks
_UTF_8 = frozenset({"utf-8", "us-ascii", "ascii"})
ISO_2022_JP = f"{OWN_CODECS}iso-2022-jp"
_WITHOUT_PIECES = frozenset({"", "utf-16", "utf-16-le", "utf-16-be", ISO_2022_JP})  # a `<` may be half a character


class Purpose(IntEnum):
    """The reason of a visit."""

    PAGE = 0
    ROBOTS = 1
    PROBE = 2  # to see whether a server shows a page at a URL that cannot be there


SAME_TEXT = "its text is as it was"  # the detail of an answer with other bytes and the same text


@dataclass(slots=True)
class Earlier:
    """Results of earlier visits to a URL that the next visit needs.

    `place` is file number, offset and length of the newest record of its content, None without a record. That record is
    read when the page is asked for. It has the `head` of that answer, and the `original` that a revisit record must
    name: URL, WARC-Date and payload digest of the record that holds the body.
    """

    missing: bool = False  # whether the visit before was answered with 404 or 410
    place: tuple[int, int, int] | None = None
    fingerprint: int = 0  # of that content
    at: float = 0.0  # unix seconds: when it was fetched, or last found unchanged
    head: bytes = b""
    original: tuple[str, str, str] | None = None


_BEYOND = {Kind.BEYOND: 1, Kind.SECOND: 2, Kind.THIRD: 2}


@dataclass(slots=True)
class Visit:
    """One URL about to be fetched: a row of `fyke.core.batches.URLS` as an object."""

    url: str
    key: int
    host: int
    domain: int
    via: int = 0
    depth: int = 0
    kind: Kind = Kind.PAGE
    tries: int = 0
    budget: int = 0  # of its domain, as STAR gave it
    in_degree: int = 0
    purpose: Purpose = Purpose.PAGE
    robots_of: str = ""  # the origin whose rules a ROBOTS visit is to bring
    not_before: float = 0.0  # unix seconds; a retry may not come sooner
    rest_s: float = -1.0  # how long the host rests after the visit; below 0: the host was not asked
    earlier: Earlier | None = None  # None for a URL that was never visited
    errand: int = 0  # of a ROBOTS visit made for another agent: the number by which that agent knows it
    beyond: int = 0  # hops of a requisite beyond the scope: 0 to 2
    _parts: UrlParts | None = field(default=None, repr=False, compare=False)

    @property
    def led(self) -> bool:
        """True if the redirect of a robots.txt led here; that may be of any site and lead to any host."""
        return self.depth > 0 and self.purpose is Purpose.ROBOTS

    @property
    def parts(self) -> UrlParts:
        """The URL taken apart, once for all stages that ask."""
        if self._parts is None:
            self._parts = split(self.url)
        return self._parts


def visits_of(batch: pa.RecordBatch) -> list[Visit]:
    """Return the rows of a `URLS` batch as visits."""
    columns = (numbers(batch, name).tolist() for name in URLS.names[:-1])
    visits = [
        Visit(url, key, host, domain, via, depth, Kind(kind), *rest)
        for url, key, host, domain, via, depth, kind, *rest in zip(texts(batch), *columns, strict=True)
    ]
    for visit in visits:
        if visit.kind is Kind.PROBE:
            visit.purpose = Purpose.PROBE
        elif visit.kind in _BEYOND:
            visit.kind, visit.beyond = Kind.REQUISITE, _BEYOND[visit.kind]
    return visits


def batch_of(visits: Iterable[Visit]) -> pa.RecordBatch:
    """Return visits that the frontier handed out as a `URLS` batch, in order."""
    rows = list(visits)
    if not rows:
        return EMPTY
    batch = url_batch(
        [Locator(v.url.encode(), v.key, v.host, v.domain) for v in rows],
        via=(v.via for v in rows),
        depth=(v.depth for v in rows),
        kind=((v.kind, Kind.BEYOND, Kind.SECOND)[v.beyond] for v in rows),
        tries=(v.tries for v in rows),
        budget=(v.budget for v in rows),
        in_degree=(v.in_degree for v in rows),
    )
    assert batch.schema == URLS
    return batch


def visit_to(url: str, **facts: Any) -> Visit:
    """Return a visit to a canonical URL."""
    at = locate(url)
    return Visit(url, at.key, at.host, at.domain, **facts)


def robots_visit(url: str, origin: str, redirects: int = 0) -> Visit:
    """Return the visit that fetches `url`, to which as many `redirects` led, to learn the robots rules of `origin`."""
    return visit_to(url, purpose=Purpose.ROBOTS, robots_of=origin, depth=redirects)


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as they were on the wire.

    `head` is the status line and header lines as the server sent them, with the blank line. `body` has the bytes
    behind it, with transfer coding and content coding. Protocols without headers leave `request` and `head` empty.
    `truncated` is WARC's word for the reason if the body is incomplete (`length`, `time`, `disconnect`), or empty.
    """

    visit: Visit
    outcome: Outcome
    started_at: float  # unix seconds
    duration_s: float
    address: str = ""
    detail: str = ""  # for people: what exactly went wrong
    status: int = 0
    request: bytes = b""
    head: bytes = b""
    body: Document = field(default_factory=Document)
    truncated: str = ""
    effective_protocol: str = ""  # as WARC-Protocol has it: "http/1.1", "h2", "ftp", "gopher"
    kept_broke: bool = False  # the connection broke, or the server did not answer on it: it may on another

    def headers(self, name: str) -> list[str]:
        """Return the values of every header field `name` (any case), as Latin-1, in order."""
        return headers_of(self.head, name)

    def header(self, name: str) -> str:
        """Return the first value of header field `name`, or the empty string."""
        return next(iter(self.headers(name)), "")


def headers_of(head: bytes, name: str) -> list[str]:
    """Return the values of every field `name` (any case) of a message head, as Latin-1, in order."""
    wanted = name.lower().encode() + b":"
    size = len(wanted)
    return [line[size:].strip().decode("latin-1") for line in head.split(b"\n") if line[:size].lower() == wanted]


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
        yield from _decoded(self._stream(), self.charset) if self.charset else (self.document_text,)

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


def _decoded(stream: BinaryIO, charset: str) -> Iterator[str]:
    """Yield the text that `stream` holds, in pieces."""
    of_codec = codecs.lookup(charset).incrementaldecoder
    decode = (lambda piece, _: piece.decode(charset, "replace")) if of_codec is None else of_codec("replace").decode
    for piece in read_on(stream):
        yield decode(piece, False)
    yield decode(b"", True)


def _in_utf8(content: bytes, charset: str) -> bytes:
    whole = roomy(2 * len(content))
    for text in _decoded(BytesIO(content), charset):
        whole.write(text.encode("utf-8", "replace"))
    return taken(whole)
