"""Questions to one name server and its answers, as datagrams.

Called by `fyke.fetcher.dns_query` only, which decides who is asked what. A broad crawl asks for thousands of names at
once, so a question is a future and two notes, and one alarm ends all questions that wait too long.

Up to `SOCKETS` sockets are open, on ports that the kernel draws. They are connected, so that only the server's own
answers come in. A question takes one of them and a number at random; a socket that was asked `QUESTIONS` is replaced. A
datagram is an answer if its number is awaited and it repeats the question. Others are passed over, and the question
goes on waiting. The `MOST_UNREADABLE`th answer that cannot be read fails the question: its sender knows number and
question, and could as well have answered. A sender who guesses them fails nothing.

A server takes questions out of its buffer one after the other, so an answer says that all before it were taken, even
those that get no answer. If the buffer may be full, a question is sent that every server answers. In this way names
without an answer keep no others waiting.

Invariants: each question gets an answer, or the reason why there is none, once, at most `timeout_s` after it was sent.
Bounded: at most `BURST` may wait in the server's buffer, and at most `IN_FLIGHT` for their answers.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from fyke.fetcher import dns_message as dns

SOCKETS = 16  # open, besides those that still wait for an answer
QUESTIONS = 1000  # asked on one socket
IN_FLIGHT = 4000  # 250 a socket, whose buffer holds as many answers
BURST = 128  # questions that may wait in a server's buffer, which holds two or three hundred
TAKEN_S = 0.05  # after which a running server has taken a question out of it
MOST_UNREADABLE = 4  # answers to one question

TIMED_OUT = "no name server answered in time"
UNREACHED = "no name server could be reached"
_UNREADABLE = "the name server's answers are malformed"
_PROBE = dns.question_of("localhost", dns.A)  # every server answers it by itself (RFC 6761, 6.3)
_DATAGRAM_BYTES = 4096  # more than was asked for; longer ones are cut, and malformed
_AT_ONCE = 16  # datagrams read before others have their turn: the worst take a millisecond each

Said = dns.DnsAnswer | str  # or why there is no answer: an exception would form a cycle with the future


class ServerAddress(NamedTuple):
    """Where a name server listens."""

    host: str
    port: int


class _Asked:
    """A question that waits for its answer."""

    __slots__ = ("answer", "channel", "late_at", "number", "place", "question", "unreadable")

    def __init__(self, question: bytes, answer: asyncio.Future[Said]) -> None:
        self.question = question
        self.answer = answer
        self.unreadable = 0  # answers

    def sent(self, channel: "_Socket", number: int, place: int, late_at: float) -> None:
        """Note that the question was sent, as the `place`th of all, and is waited for until `late_at` (loop clock)."""
        self.channel, self.number, self.place, self.late_at = channel, number, place, late_at

    @property
    def is_over(self) -> bool:
        """True if the question is waited for no longer."""
        return self.channel.waiting.get(self.number) is not self


class _Socket:
    """A UDP socket to the server, and the questions that wait for an answer on it, by their numbers."""

    __slots__ = ("asked", "end", "waiting")

    def __init__(self, server: ServerAddress) -> None:
        """Open and connect the socket. Raises OSError."""
        self.asked = 0
        self.waiting: dict[int, _Asked] = {}
        family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
        self.end = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            where = socket.getaddrinfo(*server, family, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)
            self.end.connect(where[0][4])
        except OSError:
            self.end.close()
            raise


class Datagrams:
    """The questions to `server`. They belong to the event loop they are first used on."""

    def __init__(self, server: ServerAddress, sockets: int, timeout_s: float, *, alone: bool) -> None:
        """`alone`: there is no other server, so this one is waited for even if nobody listens: it may come back."""
        self._server = server
        self._sockets = sockets
        self._timeout_s = timeout_s
        self._alone = alone
        self._open: list[_Socket] = []
        self._retired: set[_Socket] = set()
        self._unsent: deque[_Asked] = deque()
        self._sent: deque[_Asked] = deque()  # in order; some were answered since
        self._count = 0  # of all that were sent
        self._waiting = 0  # for their answers
        self._untaken: dict[int, float] = {}  # by place: until when a question may still be in its buffer
        self._probed_until = 0.0
        self._alarms: dict[Callable[[], None], asyncio.TimerHandle] = {}

    @property
    def open_sockets(self) -> int:
        return len(self._open) + len(self._retired)

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def ask(self, question: bytes) -> asyncio.Future[Said]:
        """Send `question`, and return a future of its answer."""
        asked = _Asked(question, self._loop.create_future())
        self._unsent.append(asked)
        self._go_on()
        return asked.answer

    def close(self) -> None:
        """Break off the questions under way."""
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        for asked in self._unsent:
            asked.answer.cancel()
        self._unsent.clear()
        self._retired.update(self._open)
        self._open.clear()
        for channel in list(self._retired):
            self._end(channel, "the resolver was closed")
            self._close_if_done(channel)

    # -- questions

    def _go_on(self) -> None:
        """Send the questions that may be sent now."""
        while self._unsent and len(self._untaken) < BURST and self._waiting < IN_FLIGHT:
            asked = self._unsent.popleft()
            if not asked.answer.done() and self._send(asked):
                self._untaken[asked.place] = self._loop.time() + TAKEN_S
                self._arm(self._take_old, TAKEN_S)
        if len(self._untaken) >= BURST:
            self._probe()

    def _send(self, asked: _Asked) -> bool:
        """Send `asked`, or end it. Returns whether it was sent."""
        drawn = os.urandom(4)
        number = int.from_bytes(drawn[:2], "big")
        try:
            channel = self._socket(int.from_bytes(drawn[2:], "big"))
            while number in channel.waiting:
                number = (number + 1) & 0xFFFF
            with suppress(BlockingIOError):  # lost, as datagrams are
                channel.end.send(dns.query(number, asked.question))
        except OSError:
            asked.answer.set_result(UNREACHED)
            return False
        self._count += 1
        self._waiting += 1
        channel.asked += 1
        channel.waiting[number] = asked
        asked.sent(channel, number, self._count, self._loop.time() + self._timeout_s)
        self._sent.append(asked)
        if len(self._sent) > 2 * IN_FLIGHT:
            self._sent = deque(one for one in self._sent if not one.is_over)
        self._arm(self._end_late, self._timeout_s)
        return True

    def _probe(self) -> None:
        """Find out whether the server took all questions, unless that is under way."""
        now = self._loop.time()
        if now >= self._probed_until:
            self._probed_until = now + TAKEN_S  # by then all are taken
            self._send(_Asked(_PROBE, self._loop.create_future()))

    def _socket(self, drawn: int) -> _Socket:
        """Return one of the sockets, as `drawn`. Raises OSError if none can be opened."""
        if len(self._open) >= self._sockets:
            channel = self._open[drawn % len(self._open)]
            if channel.asked < QUESTIONS:
                return channel
            self._open.remove(channel)  # it is closed when its last question is answered
            self._retired.add(channel)
            self._close_if_done(channel)
        channel = _Socket(self._server)
        self._loop.add_reader(channel.end.fileno(), self._read, channel)
        self._open.append(channel)
        return channel

    # -- answers

    def _read(self, channel: _Socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                self._take(channel, channel.end.recv(_DATAGRAM_BYTES))
            except BlockingIOError:
                break
            except OSError:  # nobody listens there
                if not self._alone:
                    self._end(channel, UNREACHED)
                break
        self._go_on()

    def _take(self, channel: _Socket, message: bytes) -> None:
        number = int.from_bytes(message[:2], "big")
        asked = channel.waiting.get(number)
        if asked is None:
            return  # too late
        try:
            said: Said = dns.read(message, number, asked.question)
        except dns.Malformed as error:
            asked.unreadable += isinstance(error, dns.Unreadable)
            if asked.unreadable < MOST_UNREADABLE:
                return
            said = _UNREADABLE
        self._settle(asked, said)
        if asked.question is _PROBE:
            self._probed_until = 0.0
        while self._untaken and (first := next(iter(self._untaken))) <= asked.place:
            del self._untaken[first]

    def _settle(self, asked: _Asked, said: Said) -> None:
        channel = asked.channel
        del channel.waiting[asked.number]
        self._waiting -= 1
        if not asked.answer.done():
            asked.answer.set_result(said)
        self._close_if_done(channel)

    def _end(self, channel: _Socket, why: str) -> None:
        for asked in list(channel.waiting.values()):
            self._settle(asked, why)

    def _close_if_done(self, channel: _Socket) -> None:
        if channel in self._retired and not channel.waiting:
            self._retired.discard(channel)
            self._loop.remove_reader(channel.end.fileno())
            channel.end.close()

    # -- what comes late, or never

    def _arm(self, what: Callable[[], None], in_s: float) -> None:
        """Have `what` called in `in_s` seconds, unless it will be called anyway."""
        if what not in self._alarms:
            self._alarms[what] = self._loop.call_later(in_s, what)

    def _take_old(self) -> None:
        """Count old questions as taken, because the server had time, and send others."""
        del self._alarms[self._take_old]
        now = self._loop.time()
        while self._untaken and (first := next(iter(self._untaken.items())))[1] <= now:
            del self._untaken[first[0]]
        if self._untaken:
            self._arm(self._take_old, first[1] - now)
        self._go_on()

    def _end_late(self) -> None:
        """End questions that were waited for long enough."""
        del self._alarms[self._end_late]
        now = self._loop.time()
        while self._sent and ((first := self._sent[0]).is_over or first.late_at <= now):
            self._sent.popleft()
            if not first.is_over:
                self._untaken.pop(first.place, None)
                self._settle(first, _UNREADABLE if first.unreadable else TIMED_OUT)
        if self._sent:
            self._arm(self._end_late, self._sent[0].late_at - now)
        self._go_on()
