"""A visit and its exchange, as objects.

The frontier hands out `Visit`s, and a protocol module turns one into an `Exchange`. Parsing turns an exchange into a
`Page` (`fyke.core.pages`). Each is made by one room and only read by the others.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import pyarrow as pa

from fyke.core.batches import EMPTY, URLS, Kind, numbers, texts, url_batch
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.urls import Locator, UrlParts, locate, split


class Purpose(IntEnum):
    """The reason of a visit."""

    PAGE = 0
    ROBOTS = 1
    PROBE = 2  # to see whether a server shows a page at a URL that cannot be there


_PLACE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//[^/?#\\]*", re.IGNORECASE)  # of a URL: scheme and host
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

    @property
    def location(self) -> str:
        """The Location of a redirect; empty if there is none. Bytes behind its host that are no ASCII are escaped, as
        browsers do: whatever charset they are in, the server knows them again."""
        said = self.header("location")
        place = _PLACE.match(said)
        end = place.end() if place else 0
        host, behind = said[:end], "".join(one if one < "\x80" else f"%{ord(one):02X}" for one in said[end:])
        with suppress(UnicodeError):
            host = host.encode("latin-1").decode()
        return host + behind


def headers_of(head: bytes, name: str) -> list[str]:
    """Return the values of every field `name` (any case) of a message head, as Latin-1, in order."""
    wanted = name.lower().encode() + b":"
    size = len(wanted)
    return [line[size:].strip().decode("latin-1") for line in head.split(b"\n") if line[:size].lower() == wanted]
