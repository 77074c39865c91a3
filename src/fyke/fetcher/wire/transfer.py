"""One request on its way: what a protocol module asks of the engine, and the reused handle that carries it.

A `Request` is made by a protocol module, which is its `Dialect`: it sets what libcurl must know once
for each handle, and concludes what the answer means. A `Slot` is one libcurl easy handle, kept for
many requests of one dialect because most of its options never change; only the engine touches it.

Invariant: a slot's body never grows beyond the size limit. The limit is kept here and not by
CURLOPT_MAXFILESIZE, which gives up before the first byte when the Content-Length is larger: the
beginning of a long body is worth archiving.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import pycurl

from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.curl_errors import TransferEnd, transfer_end
from fyke.fetcher.wire.handshakes import LARGE_BYTES, is_large
from fyke.fetcher.wire.received import received_bytes

TURN_BYTES = 256 << 10  # that an answer brings at a time; few pages have as much
TURN_S = 0.005  # that it takes, the same
PIECE_BYTES = 1024  # that a piece of a body counts for beside its own: it takes as long
MOST_LINES = 10_000  # of a head; libcurl takes half as many fields
MOST_HEAD_BYTES = 64 << 10  # of an answer's heads, where libcurl takes 300 KB: a thousand servers may send them at once
MOST_STEPS = 200  # behind TLS, that brought nothing: each may read a hundred kilobytes of frames
STEPS_A_SECOND = 10  # more of them; who is silent takes two
MOST_STEPS_AT_ONCE = 100  # the same, before libcurl returns; an ordinary answer takes some seven
MOST_TUNNEL_STEPS = 24 << 10  # of a proxy that is asked for a way: libcurl takes what it says byte by byte
MOST_DETAIL_CHARS = 300  # servers of FTP and Gopher say what went wrong
PIECE_STEPS = 4  # that a piece of a body makes up for
_KEPT_BROKE = "the connection broke, or the server would not answer on it"
ENDLESS = "it sends and sends, and nothing of an answer"
_ENDLESS_TUNNEL = "the proxy sends and sends, and its answer to CONNECT does not end"
ANY = pycurl.SOCKET_TIMEOUT  # in place of a descriptor: whatever has waited
IDLE = -2  # in place of a descriptor: libcurl is about nothing
MOST_NOTED = 10_000  # keys of a kind
HTTP_VERSION = pycurl.CURL_HTTP_VERSION_2TLS
Option = tuple[int, Any]
Done = Callable[[Exchange], None]


@dataclass(slots=True)
class Calls:
    """How often libcurl was told to go on, when last (unix seconds), and what it is about."""

    count: int = 0
    at: float = 0.0
    about: int = IDLE  # the descriptor that it goes on with, or ANY, or IDLE
    slot: "Slot | None" = None  # whose answer went on in it, the last
    heard: int = 0  # pieces of bodies that it brought, and steps behind TLS
    sockets: set[int] = field(default_factory=set)  # descriptors that it ever named
    greeted: "dict[int, Slot]" = field(default_factory=dict)  # by descriptor: which shakes hands there


class Dialect(Protocol):
    """What one protocol adds to the engine."""

    def options(self) -> Iterable[Option]:
        """libcurl options for its handles, set once for each handle."""
        ...

    def conclude(self, exchange: Exchange, lines: list[bytes], curl: Any) -> None:
        """Fill in what the answer means.

        `exchange.outcome` is OK when libcurl saw no fault, else the fault; `lines` are the header or
        control lines received, `curl` is the handle, to be asked with `getinfo` and nothing else.
        """
        ...


Longest = Callable[[Sequence[bytes]], tuple[int, str] | None]  # by a head: most bytes, below 0 for none of it, and why


@dataclass(slots=True)
class Request:
    """One URL to fetch from the server at `address`, in the words of `dialect`."""

    visit: Visit
    address: str  # empty for one that only a proxy knows
    dialect: Dialect
    head: bytes = b""  # the request as it will be on the wire, for the archive
    fields: Sequence[bytes] = ()  # header fields beside those that libcurl writes
    longest: Longest | None = None
    http_1: bool = False  # in HTTP/1.1, whatever else the server speaks
    to_the_end: bool = False  # whatever Content-Length says, the body ends with the connection
    blocks: bool = False  # libcurl waits inside of a call for what its server says


def note(key: int, noted: set[int]) -> None:
    """Remember `key` among those `noted`, which are all forgotten once there are `MOST_NOTED`."""
    if len(noted) >= MOST_NOTED:
        noted.clear()
    noted.add(key)


class Slot:
    """One easy handle with the receiving end of its present transfer."""

    __slots__ = (
        "_address",
        "_asked_in",
        "_call",
        "_calls",
        "_came_bytes",
        "_counts",
        "_fields",
        "_head_bytes",
        "_http_1",
        "_limit_bytes",
        "_paused",
        "_room_bytes",
        "_sessions",
        "_steps",
        "_steps_at_once",
        "_to_the_end",
        "_turn_bytes",
        "_waits",
        "_why",
        "alone",
        "asked",
        "body",
        "curl",
        "cut",
        "disk_error",
        "done",
        "fd",
        "idle",
        "large",
        "lines",
        "refused",
        "request",
        "started",
        "turns",
    )

    def __init__(
        self, options: Iterable[Option], limit_bytes: int, paused: "deque[Slot]", calls: Calls, *, alone: bool = False
    ) -> None:
        """In `paused` it puts itself when it wants another turn. `alone`: for one request, whose connection and
        session are not kept."""
        self.curl = curl = pycurl.Curl()
        self._paused = paused
        self._limit_bytes = limit_bytes
        self._address = ""
        self._fields: Sequence[bytes] = ()
        self._http_1 = self._to_the_end = False
        self._sessions: Any = None
        self._counts = False  # its steps
        self._calls, self._call = calls, 0
        self.lines: list[bytes] = []
        self.body: Document
        self.request: Request
        self.done: Done
        self.started = 0.0
        self.alone = alone
        self._clear()
        for option, value in options:
            curl.setopt(option, value)
        curl.setopt(pycurl.HEADERFUNCTION, self.head)
        curl.setopt(pycurl.WRITEFUNCTION, self.write)
        if alone:
            curl.setopt(pycurl.FORBID_REUSE, 1)
        curl.setopt(pycurl.SOCKOPTFUNCTION, self.connect)
        curl.setopt(pycurl.PREREQFUNCTION, self.ask)
        curl.setopt(pycurl.XFERINFOFUNCTION, self.step)

    def _clear(self) -> None:
        """As it is before a transfer."""
        self._turn_bytes = 0  # that this turn brought
        self._waits = False  # for the next
        self.turns = 0  # beyond the first
        self._steps = self._steps_at_once = 0  # that brought nothing: in all, and since the last of `calls`
        self._came_bytes = 0
        self._asked_in = 0  # the call in which the request was sent, after what was said before
        self.idle = ""  # what there was in place of an answer, in too many steps that brought nothing
        self.lines.clear()
        self._head_bytes = 0
        self.cut = False
        self.fd = -1  # of the connection that was made for this transfer; below 0: none was
        self.large = False  # its server said too much before it was asked anything
        self.asked = 0  # how often the request was to be sent
        self.refused = ""  # why the body is not wanted, or its rest
        self._room_bytes = self._limit_bytes
        self._why = ""
        self.disk_error: OSError | None = None

    def __repr__(self) -> str:
        return f"Slot({self._address or 'unused'})"

    def aim(self, request: Request, done: Done, now: float, body: Document) -> None:
        """Make ready for `request`. Raises pycurl.error or ValueError for a URL libcurl cannot take."""
        self.request, self.done, self.started, self.body = request, done, now, body
        self.curl.setopt(pycurl.URL, request.visit.url)
        address = request.address
        if address != self._address:
            self.curl.setopt(pycurl.CONNECT_TO, [f"::[{address}]:" if ":" in address else f"::{address}:"])
            self._address = address
        if request.fields is not self._fields:
            self.curl.setopt(pycurl.HTTPHEADER, request.fields)
            self._fields = request.fields
        if request.to_the_end is not self._to_the_end:
            self.curl.setopt(pycurl.IGNORE_CONTENT_LENGTH, int(request.to_the_end))
            self._to_the_end = request.to_the_end
        if request.http_1 is not self._http_1:
            self.curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1 if request.http_1 else HTTP_VERSION)
            self._http_1 = request.http_1
        behind_tls = request.visit.url.startswith("https:")
        if behind_tls is not self._counts:
            self.curl.setopt(pycurl.NOPROGRESS, int(not behind_tls))
            self._counts = behind_tls

    def share(self, sessions: Any) -> None:
        """Use the TLS sessions in `sessions`, and leave new ones there."""
        if sessions is not self._sessions and self.request.visit.url.startswith("https:"):
            self.keep_to(None)
            self.curl.setopt(pycurl.SHARE, sessions)
            self._sessions = sessions

    def keep_to(self, sessions: Any) -> None:
        """Let go of all other TLS sessions than `sessions`."""
        if self._sessions not in (None, sessions):
            self.curl.unsetopt(pycurl.SHARE)
            self._sessions = None

    def connect(self, fd: int, _purpose: int) -> int:
        """libcurl is about to make a connection, by the socket `fd`."""
        if self._counts or not self.request.address:  # a proxy may be behind TLS too
            self.fd = fd
            self._calls.greeted[fd] = self
        return int(pycurl.SOCKOPT_OK)

    def ask(self, *_: object) -> int:
        """A request is about to be sent. Not twice: libcurl asks again at once where a kept connection breaks, and a
        host rests after each request. Nor where what the server sent so far is `large`."""
        if self._calls.greeted.pop(self.fd, None) is self and not self.alone and is_large(self.fd):
            self.large = True
            return int(pycurl.PREREQFUNC_ABORT)
        self.asked += 1
        self._asked_in = self._calls.count
        self._steps = self._steps_at_once = 0  # what a proxy said is over
        return int(pycurl.PREREQFUNC_OK if self.asked == 1 else pycurl.PREREQFUNC_ABORT)

    def step(self, _total: int, came_bytes: int, *_: int) -> int:
        """libcurl went on with the transfer; 1: break off. While a server sends frames of HTTP/2 that hold nothing
        (GOAWAY), libcurl may not return: all others would wait until that one counts as stalled."""
        self._calls.heard += 1
        self._calls.slot = self
        if self._call != self._calls.count:
            self._call, self._steps_at_once = self._calls.count, 0
        came_bytes += self._head_bytes
        step = 1 if came_bytes == self._came_bytes else -PIECE_STEPS
        self._came_bytes = came_bytes
        self._steps, self._steps_at_once = max(0, self._steps + step), max(0, self._steps_at_once + step)
        if not self.asked and not self.request.address:
            self.idle = _ENDLESS_TUNNEL if self._steps > MOST_TUNNEL_STEPS else ""
        else:
            most_steps = MOST_STEPS + STEPS_A_SECOND * (self._calls.at - self.started)
            too_many = self._steps > most_steps or self._steps_at_once > MOST_STEPS_AT_ONCE
            self.idle = ENDLESS if too_many else ""
        return int(bool(self.idle))

    def head(self, line: bytes) -> int | None:
        """Take a line of the head, or a reply on a control connection, which libcurl does not count; 0: break off."""
        self._calls.slot = self
        self.lines.append(line)
        self._head_bytes += len(line)
        if self.request.longest is not None and not line.strip():
            self._limit(self.request.longest(self.lines))
        return 0 if self.endless_head or self.refused else None

    @property
    def in_head(self) -> bool:
        """Whether an answer ended before its head did. Of a field that may be folded libcurl keeps that for the next
        answer it reads with this handle, whose first line then is none: a server could spoil those of others."""
        return not (self.lines and self.lines[-1].isspace())

    @property
    def said_more(self) -> bool:
        """Whether, on a new connection, much came that is no part of the answer: tickets, which sessions keep."""
        return self.fd >= 0 and received_bytes(self.fd) > LARGE_BYTES + 1.25 * (self._head_bytes + self.body.size)

    @property
    def broken_off(self) -> TransferEnd | None:
        """How the transfer ended where we would not have more of it; None where we would."""
        ends = (
            (self.asked > 1, Outcome.BROKEN_OFF, _KEPT_BROKE),
            (self.refused, Outcome.MEDIA_REFUSED, self.refused),
            (self.cut, Outcome.TOO_LARGE, f"cut at {self._room_bytes} bytes"),
            (self.endless_head, Outcome.BAD_ANSWER, self.endless_head),
            (self.idle, Outcome.BAD_ANSWER, self.idle),
        )
        return next((TransferEnd(outcome, why) for so, outcome, why in ends if so), None)

    @property
    def endless_head(self) -> str:
        """What the head, or the conversation on a control connection, has too much of; empty while it has not."""
        if len(self.lines) > MOST_LINES:
            return f"more than {MOST_LINES} lines, and no answer in them"
        return f"more than {MOST_HEAD_BYTES >> 10} KB before its body" if self._head_bytes > MOST_HEAD_BYTES else ""

    def _limit(self, longest: tuple[int, str] | None) -> None:
        """The head is there; the body may have so many bytes."""
        self._room_bytes = self._limit_bytes
        if longest is not None and longest[0] < self._limit_bytes:
            self._room_bytes, self._why = longest
            if self._room_bytes < 0:
                self.refused = self._why

    def write(self, chunk: bytes) -> int | None:
        """Take a piece of the body; 0 tells libcurl to break off. Once the turn is over it is told to bring this piece
        again in the next."""
        self._calls.slot = self
        if self.wants_turn:
            self._wait()
            return pycurl.WRITEFUNC_PAUSE  # type: ignore[no-any-return]
        self._turn_bytes += len(chunk) + PIECE_BYTES
        try:
            room = self._room_bytes - self.body.size
            if len(chunk) > room:
                self.cut = True
                self.refused = self._why
                self.body.write(chunk[:room])
                return 0
            self.body.write(chunk)
        except OSError as error:
            self.disk_error = error
            return 0
        return None

    @property
    def wants_turn(self) -> bool:
        """Whether this turn brought as much as one may."""
        return self._turn_bytes >= TURN_BYTES

    def took(self, loop_s: float) -> None:
        """What was sent took so long. Frames and fields are no bytes of a body, but who sends them takes turns too."""
        if self.asked and self._asked_in != self._calls.count:  # handshakes have turns of another kind
            self._turn_bytes += int(loop_s / TURN_S * TURN_BYTES)
        if self.wants_turn and not self._waits:
            with suppress(pycurl.error):  # it ended
                self.curl.pause(pycurl.PAUSE_RECV)
                self._wait()

    def _wait(self) -> None:
        self._waits = True
        self._paused.append(self)

    def take_turn(self) -> bool:
        """Begin another turn; whether there is a transfer that wants one."""
        if not self.wants_turn:
            return False
        self._turn_bytes = 0
        self._waits = False
        self.turns += 1
        return True

    def end(self, code: int, message: str) -> TransferEnd:
        """How the transfer ended, of which libcurl says this."""
        if code == 0:
            return TransferEnd(Outcome.OK, "")
        if broken_off := self.broken_off:
            return broken_off
        if self.disk_error is not None:
            return TransferEnd(Outcome.BROKEN_OFF, f"our disk: {self.disk_error}")
        # On a kept connection there is no time of connecting, but something was sent.
        curl = self.curl
        connected = bool(self.lines or curl.getinfo(pycurl.CONNECT_TIME) or curl.getinfo(pycurl.REQUEST_SIZE))
        return transfer_end(code, message, connected=connected)

    def concluded(self, how: TransferEnd) -> Exchange:
        """What came of the request, which ended so."""
        request, body = self.request, self.body
        exchange = Exchange(
            request.visit, how.outcome, self.started, self.curl.getinfo(pycurl.TOTAL_TIME), request.address, how.detail,
            request=request.head, body=body, truncated=how.truncated(body.size), kept_broke=self.asked > 1,
        )  # fmt: skip
        request.dialect.conclude(exchange, self.lines, self.curl)
        exchange.detail = exchange.detail[:MOST_DETAIL_CHARS]
        return exchange

    def forget(self) -> None:
        """Drop what the finished transfer left, so that an idle slot holds no page in memory."""
        if self._calls.greeted.get(self.fd) is self:
            del self._calls.greeted[self.fd]
        self._clear()
        del self.body, self.request, self.done
