"""One request on its way: the reused handle that carries it.

A `Slot` is one libcurl easy handle. It is kept for many requests of one dialect because most of its options never
change. Only the client touches it.

Invariant: a slot's body never grows beyond the size limit. The limit is kept here because CURLOPT_MAXFILESIZE gives up
before the first byte if the Content-Length is larger, and the beginning of a long body is worth archiving.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pycurl

from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Purpose
from fyke.fetcher.unfolding import WIRE_BYTES
from fyke.fetcher.wire.body_end import BodyEnd
from fyke.fetcher.wire.curl_errors import TransferEnd, transfer_end
from fyke.fetcher.wire.handshakes import LARGE_BYTES, is_large
from fyke.fetcher.wire.received import Ends, KeptConnections, received_bytes
from fyke.fetcher.wire.request import Done, Option, Request

TURN_BYTES = 256 << 10  # of an answer in one turn; few pages have as much
TURN_S = 0.005  # of the loop's time, the same
PIECE_BYTES = 1024  # added for each piece of a body, for the time it takes
MOST_LINES = 10_000  # of a head; libcurl takes half as many fields
MOST_HEADS = 16  # of answers that announce another (RFC 9110, 15.2), and of the last; each is read once it is whole
MOST_HEAD_BYTES = 64 << 10  # of an answer's heads; libcurl takes 300 KB, which a thousand servers may send at once
MOST_STEPS = 200  # behind TLS that brought nothing: each may read 100 KB of frames
STEPS_A_SECOND = 10  # more of them; a silent server takes two
MOST_STEPS_AT_ONCE = 100  # before libcurl returns; an ordinary answer takes some seven
MOST_TUNNEL_STEPS = 24 << 10  # of a proxy's answer to CONNECT, which libcurl takes byte by byte
MOST_DETAIL_CHARS = 300  # servers of FTP and Gopher say what went wrong
PIECE_STEPS = 4  # that brought nothing, cancelled by a piece of a body
_KEPT_BROKE = "the connection broke, or the server did not answer on it"
ENDLESS = "the server keeps sending, but no answer"
_ENDLESS_TUNNEL = "the proxy keeps sending, and its answer to CONNECT does not end"
ANY = pycurl.SOCKET_TIMEOUT  # in place of a descriptor: all that waited
NO_CALL = -2  # in place of a descriptor: no call of libcurl is under way
MOST_NOTED = 10_000  # keys in a set
HTTP_VERSION = pycurl.CURL_HTTP_VERSION_2TLS


@dataclass(slots=True)
class Calls:
    """libcurl's calls: how many, the time of the last (unix seconds), and what libcurl is about."""

    count: int = 0
    at: float = 0.0
    about: int = NO_CALL  # the descriptor that it goes on with, or ANY, or NO_CALL
    slot: "Slot | None" = None  # the last whose answer went on in the call
    heard: int = 0  # callbacks: pieces of bodies, and steps behind TLS
    sockets: set[int] = field(default_factory=set)  # descriptors that libcurl ever named
    kept: KeptConnections = field(default_factory=KeptConnections)  # that speak HTTP/1
    greeted: "dict[int, Slot]" = field(default_factory=dict)  # the slot that shakes hands, by descriptor


def note(key: int, noted: set[int]) -> None:
    """Add `key` to `noted`, which is cleared first if it holds `MOST_NOTED`."""
    if len(noted) >= MOST_NOTED:
        noted.clear()
    noted.add(key)


class Slot:
    """One easy handle with the receiving end of its present transfer."""

    __slots__ = (
        "_address", "_answer_at", "_asked_in", "_call", "_calls", "_came_bytes", "_counts", "_ending", "_ends",
        "_fields", "_head_bytes", "_heads", "_limit_bytes", "_manner", "_new_fd", "_paused", "_room_bytes",
        "_sessions", "_steps", "_steps_at_once", "_turn_bytes", "_waits", "_why", "alone", "asked", "body", "curl",
        "cut", "disk_error", "done", "fd", "fruitless", "large", "lines", "refused", "request", "started", "talked",
        "turns", "whole",
    )  # fmt: skip

    def __init__(
        self, options: Iterable[Option], limit_bytes: int, paused: "deque[Slot]", calls: Calls, *, alone: bool = False
    ) -> None:
        """The slot puts itself into `paused` when it wants another turn. `alone` is for one request, whose connection
        and session are not kept."""
        self.curl = curl = pycurl.Curl()
        self._paused = paused
        self._limit_bytes = limit_bytes
        self._address = ""
        self._fields: Sequence[bytes] = ()
        self._manner = False, False, False  # of asking, as in `Request`
        self._sessions: Any = None
        self._counts = False  # whether its steps are counted
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
        """Reset the slot to its state before a transfer."""
        self._turn_bytes = 0  # of this turn
        self._waits = False  # for the next turn
        self.turns = 0  # beyond the first
        self._steps = self._steps_at_once = 0  # that brought nothing: in all, and in the latest of `calls`
        self._came_bytes = 0
        self._asked_in = 0  # the call in which the request was sent
        self.fruitless = ""  # the fault, after too many steps that brought nothing
        self.lines.clear()
        self._head_bytes = 0
        self.cut = False
        self._answer_at = 0  # the line with the status of the latest answer
        self._heads = 0  # blank lines so far
        self._ending: BodyEnd | None = None  # if libcurl does not find the end of the body
        self.whole = False  # the body was broken off at its end
        self.fd = -1  # of the connection made for this transfer; below 0: none
        self._new_fd = -1  # the same, also without TLS
        self._ends: Ends | None = None  # of its connection
        self.talked = False  # the server went on talking after its last answer
        self.large = False  # its server sent too much before it was asked anything
        self.asked = 0  # how often libcurl was about to send the request
        self.refused = ""  # why the body is not wanted, or its rest
        self._why = ""
        self.disk_error: OSError | None = None

    def __repr__(self) -> str:
        return f"Slot({self._address or 'unused'})"

    def aim(self, request: Request, done: Done, now: float, body: Document) -> None:
        """Prepare for `request`. Raises pycurl.error or ValueError for a URL libcurl cannot take."""
        self.request, self.done, self.started, self.body = request, done, now, body
        self._room_bytes = WIRE_BYTES if request.visit.purpose is Purpose.ROBOTS else self._limit_bytes
        self.curl.setopt(pycurl.URL, request.visit.url)
        address = request.address
        if address != self._address:
            self.curl.setopt(pycurl.CONNECT_TO, [f"::[{address}]:" if ":" in address else f"::{address}:"])
            self._address = address
        if request.fields is not self._fields:
            self.curl.setopt(pycurl.HTTPHEADER, request.fields)
            self._fields = request.fields
        if (manner := (request.to_the_end, request.anew, request.http_1)) != self._manner:
            self.curl.setopt(pycurl.IGNORE_CONTENT_LENGTH, int(request.to_the_end))
            self.curl.setopt(pycurl.FRESH_CONNECT, int(request.anew))
            self.curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1 if request.http_1 else HTTP_VERSION)
            self._manner = manner
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
        """Let go of all TLS sessions except `sessions`."""
        if self._sessions not in (None, sessions):
            self.curl.unsetopt(pycurl.SHARE)
            self._sessions = None

    def connect(self, fd: int, _purpose: int) -> int:
        """Note the socket `fd`, by which libcurl is about to make a connection."""
        self._new_fd = fd
        if self._counts or not self.request.address:  # a proxy may be behind TLS too
            self.fd = fd
            self._calls.greeted[fd] = self
        return int(pycurl.SOCKOPT_OK)

    def ask(self, *ends: Any) -> int:
        """Allow a request to be sent once. libcurl asks again at once if a kept connection breaks, but a host rests
        after each request. A request is also refused if the server's data so far are `large`, or if data wait on a kept
        connection: they would become the answer to this request."""
        self._ends = ends
        self.talked = self._new_fd < 0 and not self.asked and self._calls.kept.unread_bytes(ends) > 0
        self.large = self._calls.greeted.pop(self.fd, None) is self and not self.alone and is_large(self.fd)
        if self.talked or self.large:
            return int(pycurl.PREREQFUNC_ABORT)
        self.asked += 1
        self._asked_in = self._calls.count
        self._steps = self._steps_at_once = 0  # the proxy's part is over
        return int(pycurl.PREREQFUNC_OK if self.asked == 1 else pycurl.PREREQFUNC_ABORT)

    def step(self, _total: int, came_bytes: int, *_: int) -> int:
        """Count that libcurl went on with the transfer; return 1 to break off. While a server sends frames of HTTP/2
        that hold nothing (GOAWAY), libcurl may not return: all others would wait until that one counts as stalled."""
        self._calls.heard += 1
        self._calls.slot = self
        if self._call != self._calls.count:
            self._call, self._steps_at_once = self._calls.count, 0
        came_bytes += self._head_bytes
        step = 1 if came_bytes == self._came_bytes else -PIECE_STEPS
        self._came_bytes = came_bytes
        self._steps, self._steps_at_once = max(0, self._steps + step), max(0, self._steps_at_once + step)
        if not self.asked and not self.request.address:
            self.fruitless = _ENDLESS_TUNNEL if self._steps > MOST_TUNNEL_STEPS else ""
        else:
            most_steps = MOST_STEPS + STEPS_A_SECOND * (self._calls.at - self.started)
            too_many = self._steps > most_steps or self._steps_at_once > MOST_STEPS_AT_ONCE
            self.fruitless = ENDLESS if too_many else ""
        return int(bool(self.fruitless))

    def head(self, line: bytes) -> int | None:
        """Take a line of the head, or a reply on a control connection, which libcurl does not count; return 0 to break
        off."""
        self._calls.slot = self
        if line.startswith(b"HTTP/"):
            self._answer_at = len(self.lines)
            if self._ends and self._new_fd >= 0 and line.startswith(b"HTTP/1"):
                self._calls.kept.note(self._ends, self._new_fd)
        self.lines.append(line)
        self._head_bytes += len(line)
        if not line.strip() and (self.request.ending or self.request.longest):
            self._heads += 1
            if not self.endless_head:
                self._read_head(self.lines[self._answer_at :])
        return 0 if self.endless_head or self.refused or self.whole else None

    def _read_head(self, answer: Sequence[bytes]) -> None:
        """Learn from the head of the latest `answer` how long its body may be, and where it ends."""
        if self.request.longest is not None:
            self._limit(self.request.longest(answer))
        if self.request.ending is not None:
            self._ending = self.request.ending(answer)
            self.whole = self._ending is not None and self._ending.within(b"") is not None

    @property
    def in_head(self) -> bool:
        """True if an answer ended before its head did. libcurl keeps the last field, which may be folded, for the next
        answer that this handle reads. That answer's first line is then lost: a server could spoil the answers of
        others."""
        return not (self.lines and self.lines[-1].isspace())

    @property
    def said_more(self) -> bool:
        """True if a new connection brought much beside the answer: tickets, which sessions keep."""
        return self.fd >= 0 and received_bytes(self.fd) > LARGE_BYTES + 1.25 * (self._head_bytes + self.body.size)

    @property
    def broken_off(self) -> TransferEnd | None:
        """End of a transfer that we broke off; None if we did not."""
        ends = (
            (self.asked > 1, Outcome.BROKEN_OFF, _KEPT_BROKE),
            (self.refused, Outcome.MEDIA_REFUSED, self.refused),
            (self.cut, Outcome.TOO_LARGE, f"cut at {self._room_bytes} bytes"),
            (self.endless_head, Outcome.BAD_ANSWER, self.endless_head),
            (self.fruitless, Outcome.BAD_ANSWER, self.fruitless),
        )
        return next((TransferEnd(outcome, why) for so, outcome, why in ends if so), None)

    @property
    def endless_head(self) -> str:
        """The excess of the head, or of the conversation on a control connection; empty if there is none."""
        if self._heads > MOST_HEADS:
            return f"more than {MOST_HEADS} heads without an answer"
        if len(self.lines) > MOST_LINES:
            return f"more than {MOST_LINES} header lines without an answer"
        return f"more than {MOST_HEAD_BYTES >> 10} KB before its body" if self._head_bytes > MOST_HEAD_BYTES else ""

    def _limit(self, longest: tuple[int, str] | None) -> None:
        """Set the body's limit, once its head is there."""
        self._room_bytes = self._limit_bytes
        if longest is not None and longest[0] < self._limit_bytes:
            self._room_bytes, self._why = longest
            if self._room_bytes < 0:
                self.refused = self._why

    def write(self, chunk: bytes) -> int | None:
        """Take a piece of the body; return 0 to break off, also at the body's end. Once the turn is over, libcurl must
        bring the piece again in the next."""
        self._calls.slot = self
        if self.wants_turn:
            self._wait()
            return pycurl.WRITEFUNC_PAUSE  # type: ignore[no-any-return]
        self._turn_bytes += len(chunk) + PIECE_BYTES
        if self._ending is not None and (ends_at := self._ending.within(chunk)) is not None:
            self.whole, chunk = True, chunk[:ends_at]
        try:
            room = self._room_bytes - self.body.size
            if len(chunk) > room:
                self.cut, self.whole = True, False
                self.refused = self._why
                self.body.write(chunk[:room])
                return 0
            self.body.write(chunk)
        except OSError as error:
            self.disk_error = error
            return 0
        return 0 if self.whole else None

    @property
    def wants_turn(self) -> bool:
        """True if this turn brought as much as one may."""
        return self._turn_bytes >= TURN_BYTES

    def took(self, loop_s: float) -> None:
        """Note that the loop spent `loop_s` on the transfer. Frames and fields are no bytes of a body, but they cost
        turns too."""
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
        """Begin another turn. Returns whether there is a transfer that wants one."""
        if not self.wants_turn:
            return False
        self._turn_bytes = 0
        self._waits = False
        self.turns += 1
        return True

    def end(self, code: int, message: str) -> TransferEnd:
        """Return how the transfer ended, given libcurl's `code` and `message`."""
        if code == 0 or (self.whole and self.disk_error is None):
            return TransferEnd(Outcome.OK, "")
        if broken_off := self.broken_off:
            return broken_off
        if self.disk_error is not None:
            return TransferEnd(Outcome.BROKEN_OFF, f"our disk: {self.disk_error}")
        # A kept connection has no time of connecting, but something was sent.
        curl = self.curl
        connected = bool(self.lines or curl.getinfo(pycurl.CONNECT_TIME) or curl.getinfo(pycurl.REQUEST_SIZE))
        return transfer_end(code, message, connected=connected)

    def concluded(self, how: TransferEnd) -> Exchange:
        """Return the exchange of the request, which ended as `how` says."""
        request, body = self.request, self.body
        truncated = "unspecified" if self.disk_error and body.size else how.truncated(body.size)
        exchange = Exchange(
            request.visit, how.outcome, self.started, self.curl.getinfo(pycurl.TOTAL_TIME), request.address, how.detail,
            request=request.head, body=body, truncated=truncated, kept_broke=self.asked > 1,
        )  # fmt: skip
        request.dialect.conclude(exchange, self.lines, self.curl)
        exchange.detail = exchange.detail[:MOST_DETAIL_CHARS]
        return exchange

    def forget(self) -> None:
        """Drop all that the finished transfer left, so that an idle slot holds no page in memory."""
        if self._calls.greeted.get(self.fd) is self:
            del self._calls.greeted[self.fd]
        self._clear()
        del self.body, self.request, self.done
