"""Asking name servers: one name, one answer or failure as a value. A stub resolver over UDP, over TCP where it must.

Called by `fyke.fetcher.names.Resolver` only, which caches; nothing here remembers. Written here, because a crawler
asks for thousands of names at once, and how long it waits and what fails with what are its own affair: a library
that closes a connection for one bad answer fails all others on it.

Each server has up to `SOCKETS` sockets, connected, so that only its own answers come in, from ports the kernel draws.
A question takes one of them and a number at random; a socket that was asked `QUESTIONS` is replaced. What comes in
is an answer when its number is awaited and it repeats the question; all else is counted and passed over, and the
question goes on waiting. Of answers that cannot be read the `MOST_UNREADABLE`th fails this try: whoever sends what is
counted here knows number and question, and could as well have answered. Who guesses at them fails nothing.

A server takes questions out of its buffer one after the other: so an answer says that all before it were taken, also
those to which nothing is answered. Where as many as may be are not known to be, something is asked that every server
answers: names without an answer keep no others waiting.

Invariants: `ask` returns a `DnsReply`; what the DNS does wrong is an outcome, not an exception. A name is asked for
`dns.tries` times over all servers, the last that answered first, and waits `dns.timeout_s` for each answer; a server
that answers that it failed is not asked again. No more than `IN_FLIGHT` questions are in flight.
"""

import asyncio
import os
import re
import socket
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from math import inf
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from fyke.core.config import DnsSection
from fyke.core.errors import ConfigurationError
from fyke.core.outcomes import Outcome
from fyke.fetcher import dns_message as dns
from fyke.fetcher.addresses import literal

SOCKETS = 16  # open for each server, besides those that still wait for an answer
QUESTIONS = 1000  # that a socket is asked
IN_FLIGHT = 4000  # 250 a socket, whose buffer holds as many answers
BURST = 128  # questions that may wait in a server's buffer, which holds two or three hundred
TAKEN_S = 0.05  # after which a server that runs has taken a question out of it
MOST_UNREADABLE = 4  # answers to one question
TCP_CONNECTIONS = 64
ALIASES_ASKED = 4  # names that are asked for because an answer gave only an alias
RESOLV_CONF = Path("/etc/resolv.conf")

_PORT = 53
_PROBE = dns.question_of("localhost", dns.A)  # every server answers it by itself (RFC 6761, 6.3)
_DATAGRAM_BYTES = 4096  # more than was asked for; what is longer is cut, and malformed
_AT_ONCE = 16  # datagrams that are read before others have their turn: the worst take a millisecond each
_SERVER = re.compile(r"\[([^\]]+)\](?::(\d{1,5}))?|([^:]+|[^.]*)(?::(\d{1,5}))?")
_TIMED_OUT = "no name server answered in time"
_UNREACHED = "no name server could be reached"
_UNREADABLE = "the name server's answers are malformed"
_WORDS = {
    dns.FORMAT_ERROR: "the name server did not understand the question",
    dns.SERVER_FAILURE: "the name server failed (SERVFAIL)",
    dns.REFUSED: "the name server refused to answer",
}
_random = SystemRandom()


class ServerAddress(NamedTuple):
    """Where a name server listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class DnsReply:
    """What the DNS said of a name: addresses and their TTL, or an outcome other than OK.

    Of what does not exist the TTL is its zone's, infinite where that does not say.
    """

    outcome: Outcome
    addresses: tuple[str, ...] = ()
    ttl_s: float = inf
    detail: str = ""


class _Failed(Exception):
    """One server did not answer one question; the text says why."""


@dataclass(slots=True)
class _Asked:
    """A question that waits for its answer, or why there is none: an exception would be in a ring with the future."""

    question: bytes
    answer: "asyncio.Future[dns.DnsAnswer | str]"
    unreadable: int = 0  # answers that came


class _Socket:
    """A UDP socket that speaks to one server, and the questions it waits for an answer to."""

    def __init__(self, server: ServerAddress, refused: Callable[["_Socket"], None]) -> None:
        self.server = server
        self.asked = 0
        self.waiting: dict[int, _Asked] = {}
        self._refused = refused
        self._loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            where = socket.getaddrinfo(*server, family, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)
            self._socket.connect(where[0][4])
        except OSError:
            self._socket.close()
            raise
        self._loop.add_reader(self._socket.fileno(), self._readable)

    async def ask(self, question: bytes, timeout_s: float) -> dns.DnsAnswer:
        """The first answer to `question`. Raises _Failed, or OSError where it cannot be sent."""
        number = int.from_bytes(os.urandom(2), "big")
        while number in self.waiting:
            number = (number + 1) & 0xFFFF
        future: asyncio.Future[dns.DnsAnswer | str] = self._loop.create_future()
        self.waiting[number] = _Asked(question, future)
        self.asked += 1
        timer = self._loop.call_later(timeout_s, _fail, future, _TIMED_OUT)
        try:
            with suppress(BlockingIOError):  # lost, as datagrams are
                self._socket.send(dns.query(number, question))
            said = await future
        finally:
            timer.cancel()
            del self.waiting[number]
        if isinstance(said, str):
            raise _Failed(said)
        return said

    def _readable(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                message = self._socket.recv(_DATAGRAM_BYTES)
            except BlockingIOError:
                return
            except OSError:  # nobody listens there
                self._refused(self)
                return
            self._take(message)

    def _take(self, message: bytes) -> None:
        number = int.from_bytes(message[:2], "big")
        asked = self.waiting.get(number)
        if asked is None or asked.answer.done():
            return  # too late
        try:
            asked.answer.set_result(dns.read(message, number, asked.question))
        except dns.Malformed as error:
            asked.unreadable += isinstance(error, dns.Unreadable)
            if asked.unreadable >= MOST_UNREADABLE:
                _fail(asked.answer, _UNREADABLE)

    def fail(self, why: str) -> None:
        """End all waiting."""
        for asked in self.waiting.values():
            _fail(asked.answer, why)

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()


class NameServers:
    """The configured servers, or the system's; belongs to the event loop it is first asked on."""

    def __init__(self, config: DnsSection, sockets: int = SOCKETS) -> None:
        self._servers = [server_of(text) for text in config.servers] or system_servers(RESOLV_CONF)
        self._timeout_s = config.timeout_s
        self._tries = config.tries
        self._sockets = sockets
        self._open: dict[ServerAddress, list[_Socket]] = {server: [] for server in self._servers}
        self._retired: set[_Socket] = set()
        self._first = 0  # the server that answered last
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._tcp_room = asyncio.Semaphore(TCP_CONNECTIONS)
        self._buffer = asyncio.Semaphore(BURST)
        # Questions, numbered in the order in which they were sent, that may still be in the buffer of a server.
        self._untaken: defaultdict[ServerAddress, dict[int, None]] = defaultdict(dict)
        self._sent = count()
        self._probing: dict[ServerAddress, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"NameServers({len(self._servers)} servers, {self.open_sockets} sockets)"

    @property
    def open_sockets(self) -> int:
        return sum(map(len, self._open.values())) + len(self._retired)

    async def ask(self, name: str) -> DnsReply:
        """The addresses of `name`: of its A records, or of AAAA when there is no A."""
        async with self._room:
            reply = await self._follow(name, dns.A)
            if reply.outcome is Outcome.OK and not reply.addresses:
                reply = await self._follow(name, dns.AAAA)
        if reply.outcome is Outcome.OK and not reply.addresses:
            return DnsReply(Outcome.NO_SUCH_NAME, ttl_s=reply.ttl_s, detail=f"{name} has no address")
        return reply

    async def _follow(self, name: str, kind: int) -> DnsReply:
        """The records of `name`; where an answer has an alias and nothing of it, the alias is asked for."""
        asked, least_s = name, inf
        for _ in range(1 + ALIASES_ASKED):
            try:
                said = await self._try(dns.question_of(asked, kind))
            except _Failed as failed:
                return DnsReply(Outcome.DNS_FAILED, detail=f"{name}: {failed}")
            if said.code == dns.NO_SUCH_NAME:
                return DnsReply(Outcome.NO_SUCH_NAME, ttl_s=said.ttl_s, detail=f"{name} does not exist")
            if said.addresses or not said.alias or said.ttl_s < inf or not is_askable(said.alias):
                return DnsReply(Outcome.OK, said.addresses, min(least_s, said.ttl_s))
            asked, least_s = said.alias, min(least_s, said.alias_ttl_s)
        return DnsReply(Outcome.DNS_FAILED, detail=f"{name}: its aliases do not end")

    async def _try(self, question: bytes) -> dns.DnsAnswer:
        """An answer to `question` that says something of the name. Raises _Failed."""
        first, why = self._first, _TIMED_OUT
        failed: set[int] = set()  # servers that said so; to ask them once more at once is in vain (RFC 9520, 3.1)
        for at in range(first, first + self._tries):
            index = at % len(self._servers)
            if index in failed:
                continue
            try:
                said = await self._ask(self._servers[index], question)
            except _Failed as error:
                why = str(error)
                continue
            if said.code in (dns.NO_ERROR, dns.NO_SUCH_NAME):
                self._first = index
                return said
            failed.add(index)
            why = _WORDS.get(said.code, f"the name server failed with code {said.code}")
        raise _Failed(why)

    async def _ask(self, server: ServerAddress, question: bytes) -> dns.DnsAnswer:
        """What one server answers. Raises _Failed."""
        await self._buffer.acquire()
        number = next(self._sent)
        self._untaken[server][number] = None
        if self._buffer.locked():
            self._probe(server)
        timer = asyncio.get_running_loop().call_later(TAKEN_S, self._take, server, number)
        try:
            said = await self._by_socket(server, question, self._timeout_s)
        except OSError as error:
            raise _Failed(_UNREACHED) from error
        finally:
            timer.cancel()
            self._take(server, number)
        self._take_until(server, number)
        return await self._ask_tcp(server, question) if said.cut else said

    async def _by_socket(self, server: ServerAddress, question: bytes, timeout_s: float) -> dns.DnsAnswer:
        """What it answers in a datagram. Raises _Failed, or OSError where it cannot be asked."""
        channel = self._socket(server)
        try:
            return await channel.ask(question, timeout_s)
        finally:
            if channel in self._retired and not channel.waiting:
                self._retired.discard(channel)
                channel.close()

    def _probe(self, server: ServerAddress) -> None:
        """Find out whether `server` took all that it was asked, if that is not under way."""
        if server not in self._probing:
            self._probing[server] = asyncio.get_running_loop().create_task(self._probed(server))

    async def _probed(self, server: ServerAddress) -> None:
        number = next(self._sent)
        try:
            await self._by_socket(server, _PROBE, TAKEN_S)
        except (OSError, _Failed):
            return  # time will tell
        finally:
            del self._probing[server]
        self._take_until(server, number)

    def _take(self, server: ServerAddress, number: int) -> None:
        """Let another question go: the server had time to take this one."""
        if number in self._untaken[server]:
            del self._untaken[server][number]
            self._buffer.release()

    def _take_until(self, server: ServerAddress, number: int) -> None:
        """The server answered this question, and so took all that it was asked before."""
        untaken = self._untaken[server]
        while untaken and (first := next(iter(untaken))) <= number:
            self._take(server, first)

    async def _ask_tcp(self, server: ServerAddress, question: bytes) -> dns.DnsAnswer:
        """What a server answers where the answer is too long for a datagram (RFC 7766). To wait for a
        connection is part of its time, else silent ones would keep names for hours. Raises _Failed."""
        number = int.from_bytes(os.urandom(2), "big")
        message = dns.query(number, question)
        try:
            async with asyncio.timeout(self._timeout_s), self._tcp_room:
                reader, writer = await asyncio.open_connection(*server)
                try:
                    writer.write(len(message).to_bytes(2, "big") + message)
                    answer = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
                    said = dns.read(answer, number, question)
                finally:
                    writer.close()
        except TimeoutError as error:
            raise _Failed(_TIMED_OUT) from error
        except (OSError, EOFError) as error:
            raise _Failed(_UNREACHED) from error
        except dns.Malformed as error:
            raise _Failed(f"the name server's answer is malformed: {error}") from error
        if said.cut:
            raise _Failed("the name server cut its answer also over TCP")
        return said

    def _socket(self, server: ServerAddress) -> _Socket:
        """One of the sockets of `server`, drawn. Raises OSError where none can be opened."""
        channels = self._open[server]
        if len(channels) < self._sockets:
            channels.append(_Socket(server, self._refused))
        at = _random.randrange(len(channels))
        channel = channels[at]
        if channel.asked >= QUESTIONS:
            self._retire(channel)
            channel = _Socket(server, self._refused)
            channels.append(channel)
        return channel

    def _retire(self, channel: _Socket) -> None:
        """Ask `channel` nothing more; it is closed when its last question is answered."""
        self._open[channel.server].remove(channel)
        if channel.waiting:
            self._retired.add(channel)
        else:
            channel.close()

    def _refused(self, channel: _Socket) -> None:
        """Nobody listens there: other servers are asked at once. A single one is waited for: it may come back."""
        if len(self._servers) > 1:
            channel.fail(_UNREACHED)

    async def close(self) -> None:
        """Break off what is being asked."""
        for probe in self._probing.values():
            probe.cancel()
        channels = [*self._retired, *(channel for channels in self._open.values() for channel in channels)]
        self._retired.clear()
        for each in self._open.values():
            each.clear()
        for channel in channels:
            channel.fail("the resolver was closed")
            channel.close()


def _fail(future: "asyncio.Future[dns.DnsAnswer | str]", why: str) -> None:
    if not future.done():
        future.set_result(why)


def is_askable(name: str) -> bool:
    """Whether an alias can be asked for as it stands: its labels may hold any byte, also a dot."""
    return name.isascii() and 0 < len(name) <= 253 and all(0 < len(label) < 64 for label in name.split("."))


def system_servers(resolv_conf: Path) -> list[ServerAddress]:
    """The name servers of this machine; its own port 53 where it names none, as resolv.conf(5) has it."""
    try:
        lines = resolv_conf.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines]
    named = [literal(word[1]) for word in words if len(word) > 1 and word[0] == "nameserver"]
    return [ServerAddress(host, _PORT) for host in named if host] or [ServerAddress("127.0.0.1", _PORT)]


def server_of(text: str) -> ServerAddress:
    """`address` or `address:port` (IPv6 with a port in brackets).

    Raises ConfigurationError for anything else, also for a name: who would resolve it?
    """
    match = _SERVER.fullmatch(text.strip())
    address, port = (match[1] or match[3], int(match[2] or match[4] or _PORT)) if match else (text, _PORT)
    known = literal(address)
    if known is None or not 0 < port < 65536:
        raise ConfigurationError(f"dns.servers: {text!r} is not an address or address:port, as 9.9.9.9 or [::1]:5353")
    return ServerAddress(known, port)
