"""Pages are objects: one visit, the exchange it leads to, and the page that comes of it.

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
OWN_CODECS = "x-whatwg-"  # how the names begin of those that Python lacks
_UTF_8 = frozenset({"utf-8", "us-ascii", "ascii"})
_WITHOUT_PIECES = frozenset({"", "utf-16", "utf-16-le", "utf-16-be", "iso2022_jp_ext"})  # a `<` may be half a character


class Purpose(IntEnum):
    """Why a visit is made."""

    PAGE = 0
    ROBOTS = 1
    PROBE = 2  # to see whether a server shows something where nothing should be


SAME_TEXT = "its text is as it was"  # the detail of an answer whose bytes alone are others


@dataclass(slots=True)
class Earlier:
    """What earlier visits to a URL brought, as far as the next one needs it.

    `place` is file number, offset and length of the newest record of its content, None without one. What is in that
    record is read when the page is asked for: how to ask whether it changed, and what a revisit record must name
    (URL, WARC-Date and payload digest of the record that holds the body).
    """

    missing: bool = False  # whether the visit before found nothing there: 404 or 410
    place: tuple[int, int, int] | None = None
    fingerprint: int = 0  # of that content
    at: float = 0.0  # unix seconds: when it was brought, or last found to be as it was
    etag: str = ""
    modified: str = ""  # the Last-Modified, as the server wrote it
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
    rest_s: float = -1.0  # how long its host rests after it; below 0: nothing was asked of it
    earlier: Earlier | None = None  # None for a URL that was never visited
    errand: int = 0  # of a ROBOTS visit made for another agent: the number that agent knows it by
    beyond: int = 0  # of requisites that need one another, the how manyth it is beyond the scope; at most 2
    _parts: UrlParts | None = field(default=None, repr=False, compare=False)

    @property
    def led(self) -> bool:
        """Whether a redirect of somebody's robots.txt led here: anybody may lead to any host."""
        return self.depth > 0 and self.purpose is Purpose.ROBOTS

    @property
    def parts(self) -> UrlParts:
        """The URL taken apart; several stages ask."""
        if self._parts is None:
            self._parts = split(self.url)
        return self._parts


def visits_of(batch: pa.RecordBatch) -> list[Visit]:
    """The rows of a `URLS` batch as visits."""
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
    """Visits that the frontier gave as a `URLS` batch, in order."""
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
    """A visit to a canonical URL."""
    at = locate(url)
    return Visit(url, at.key, at.host, at.domain, **facts)


def robots_visit(url: str, origin: str) -> Visit:
    """The visit that fetches `url` to learn the robots rules of `origin`."""
    return visit_to(url, purpose=Purpose.ROBOTS, robots_of=origin)


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as the wire had them.

    `head` is the status line and header lines as the server sent them, with the blank line; `body`
    is what followed, transfer coding and content coding untouched. Protocols without headers leave
    `request` and `head` empty. `truncated` is WARC's word when the body is not all there
    (`length`, `time`, `disconnect`), else empty.
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
    kept_broke: bool = False  # the connection broke, or the server would not answer on it: maybe it does on another

    def headers(self, name: str) -> list[str]:
        """The values of every header field `name` (any case), as Latin-1, in order."""
        return headers_of(self.head, name)

    def header(self, name: str) -> str:
        """The first value of header field `name`, or the empty string."""
        return next(iter(self.headers(name)), "")


def headers_of(head: bytes, name: str) -> list[str]:
    """The values of every field `name` (any case) of a message head, as Latin-1, in order."""
    wanted = name.lower().encode() + b":"
    size = len(wanted)
    return [line[size:].strip().decode("latin-1") for line in head.split(b"\n") if line[:size].lower() == wanted]


@dataclass(slots=True)
class PageLinks:
    """What a page points at, as written in it but for encoded queries; `base` is what they are relative to.

    `pages` are links to follow, `nofollow` links the page asks not to follow, `requisites` what is
    needed to show it, `listings` the sitemaps that a sitemap index names. `dated` is when those of `pages` changed of
    which a sitemap or feed says so: unix seconds.
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

    `content` is the body after transfer and content coding; `findings` is where processing modules
    leave results, by module name.
    """

    exchange: Exchange
    media_type: str
    _content: bytes | Document
    charset: str = ""  # empty for what is not text
    links: PageLinks = field(default_factory=lambda: PageLinks(""))
    title: str = ""
    noindex: bool = False
    nofollow: bool = False
    listing: bool = False  # a sitemap or feed: a list of pages, and none itself
    duplicate: bool = False  # a body met before under another URL: not parsed again
    fingerprint: int = 0  # xxh3-64 of `content`
    findings: dict[str, Any] = field(default_factory=dict)
    cut: bool = False  # its end was not read: reading all of it would have cost too much
    document_text: str = ""  # of what is no text itself, such as a PDF
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
        """The length of `content`, without reading it."""
        return len(self._content) if isinstance(self._content, bytes) else self._content.size

    def _stream(self) -> BinaryIO:
        return BytesIO(self._content) if isinstance(self._content, bytes) else self._content.open()

    def to_disk(self) -> None:
        """Hold `content` there from now on, where the disk is not full."""
        document = self.exchange.body.beside()
        with suppress(OSError):
            document.write(self.content)
            document.to_disk()
            self._content = document

    @property
    def source(self) -> bytes | Document:
        """Where `content` is."""
        return self._content

    def beginning(self, most_bytes: int) -> bytes:
        """So many bytes of `content`, or all."""
        return first(self._content, most_bytes)

    @property
    def status(self) -> int:
        return self.exchange.status

    @property
    def encoding(self) -> str:
        """The name of its charset for who has no codecs of ours."""
        return self.charset.removeprefix(OWN_CODECS)

    @property
    def text(self) -> str:
        """`content` as text by its charset, faults replaced; what a document says; empty for what has no text."""
        return self.content.decode(self.charset, "replace") if self.charset else self.document_text

    def texts(self) -> Iterator[str]:
        """`text`, in pieces: one character may make of all of a text four bytes a character."""
        yield from _decoded(self._stream(), self.charset) if self.charset else (self.document_text,)

    def in_utf8(self) -> Iterator[bytes]:
        """`text` as UTF-8, in pieces; what is said to be that, as it is."""
        if self.charset == "utf-8":
            return read_on(self._stream())
        return (text.encode("utf-8", "replace") for text in self.texts())

    @property
    def tree(self) -> LexborHTMLParser:
        """The HTML tree of as much of the page as is safe to parse, made once however many modules ask."""
        if self._tree is None:
            self._tree = tree_of(next(self.html()))
        return self._tree

    def safe_html(self, most_bytes: int) -> str:
        """As much of the first `most_bytes` of an HTML page as is safe to parse; bytes that are no text are left out
        before that is asked, since they may part what else is a tag."""
        return bounded(next(self.html())[:most_bytes].decode("utf-8", "ignore").encode()).decode()

    def html(self) -> Iterator[bytes]:
        """The text as an HTML parser is to read it: UTF-8, in pieces of `MAX_BYTES` of the content at most."""
        stream = self._stream()
        for piece in pieces(stream) if self.charset not in _WITHOUT_PIECES else [stream.read(MAX_BYTES)]:
            if self.charset not in _UTF_8:
                piece = _in_utf8(piece, self.charset) if self.charset else b""
            if self.media_type != HTML:
                piece = written_out(piece)
            yield piece
            del piece  # before the next is made


def _decoded(stream: BinaryIO, charset: str) -> Iterator[str]:
    """The text that `stream` holds, piece by piece."""
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
