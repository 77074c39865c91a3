"""The HTTP/1.1 server: bytes in, replies out, one row in the ledger for each request.

`web` calls it, with one listener for each address. `Responder` makes all decisions. Requests on a connection are
answered in order, however they are cut or pipelined.

Invariant: each request whose head arrived whole gets exactly one row, even if the client leaves before the reply
ends.
"""

import asyncio
import email.utils
import random
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple, cast

from fyke.lab.simweb.answers import Manner, Reply, Responder, refusal
from fyke.lab.simweb.ledger import Ledger, LedgerRow
from fyke.lab.simweb.weather import ServerTrouble, Weather

MAX_HEAD_BYTES = 64 * 1024
TROUBLED = {ServerTrouble.RESET: Manner.RESET, ServerTrouble.STALL: Manner.NEVER}
DRIPS = 10  # pieces of a slow reply

_END = b"\r\n\r\n"


class Head(NamedTuple):
    """The parts of a request's head that matter."""

    method: bytes
    target: str
    host: str
    agent: str
    accept: bytes
    closing: bool


def parse_head(head: bytes) -> Head | None:
    """Parse a request's head, given without its blank line; return None if it is malformed."""
    first, *lines = head.split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return None
    host, agent, accept, connection = b"", b"", b"", b""
    for line in lines:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name == b"host":
            host = value.strip()
        elif name == b"user-agent":
            agent = value.strip()
        elif name == b"accept-encoding":
            accept = value.strip()
        elif name == b"connection":
            connection = value.strip().lower()
    closing = connection == b"close" or (words[2] == b"HTTP/1.0" and connection != b"keep-alive")
    name_only = host.partition(b":")[0].decode("latin-1").lower()
    return Head(words[0], words[1].decode("latin-1"), name_only, agent.decode("latin-1"), accept, closing)


class WebState:
    """The state that all connections of one web share."""

    def __init__(self, answers: Responder, ledger: Ledger, now: Callable[[], float], weather: Weather) -> None:
        self.answers, self.ledger, self.now, self.weather = answers, ledger, now, weather
        self.dice = random.Random(answers.layout.spec.seed)
        self.names = answers.layout.names
        self.scheme = answers.layout.scheme
        self._at: dict[str, tuple[int, frozenset[str]]] = {}
        self.connections: set[Connection] = set()

    def host_at(self, name: str, address: str) -> int | None:
        """Return the host with this name if it answers at this address, else None."""
        known = self._at.get(name)
        if known is None:
            host = self.names.find(name)
            if host is None:
                return None
            if len(self._at) > 1 << 16:
                self._at.clear()
            known = self._at[name] = (host, frozenset(self.names.addresses(host)))
        return known[0] if address in known[1] else None

    def reply(self, head: Head | None, address: str) -> Reply:
        """Return the reply to a request that came to `address`."""
        if head is None:
            return refusal(400, "Connection: close")
        if head.method != b"GET":
            return refusal(405, "Connection: close", "Allow: GET")
        host = self.host_at(head.host, address)
        if host is None:
            return refusal(421)
        wait = self.answers.layout.spec.retry_after_s
        # The header has whole seconds: rounded up, so that a client that obeys the date waits long enough.
        date = email.utils.formatdate(int(self.now()) + 1 + wait, usegmt=True) if wait else ""
        return self.answers.reply(host, head.target, head.accept, date)


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, site: WebState) -> None:
        self._site = site
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._address, self._client_port = "", 0
        # The request whose reply has not ended: (head, arrived, reply, bytes sent).
        self._open: tuple[Head | None, float, Reply, int] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._address = transport.get_extra_info("sockname")[0]
        self._client_port = transport.get_extra_info("peername")[1]
        self._site.connections.add(self)
        if self._site.weather.server is ServerTrouble.REFUSE and self._site.weather.strikes_server(self._site.dice):
            self._reset(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._site.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._open is not None:
            self._note(*self._open)
        self._transport = self._open = None

    def close(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if self._open is None:
            self._answer()

    def _answer(self) -> None:
        """Answer requests in the buffer until it holds no whole head or a reply takes time."""
        site = self._site
        while self._transport is not None and self._open is None:
            end = self._buffer.find(_END)
            if end < 0:
                if len(self._buffer) > MAX_HEAD_BYTES:
                    self._transport.write(refusal(431, "Connection: close").data)
                    self._transport.close()
                    self._transport = None
                return
            raw, self._buffer = self._buffer[:end], self._buffer[end + len(_END) :]
            arrived = site.now()
            head = parse_head(raw)
            trouble = site.weather.strikes_server(site.dice)
            if trouble in (ServerTrouble.RESET, ServerTrouble.STALL):
                self._send_oddly(head, arrived, Reply(0, b"", TROUBLED[trouble]))
                return
            reply = site.reply(head, self._address)
            if reply.manner is Manner.WHOLE:
                self._note(head, arrived, reply, len(reply.data))
                self._transport.write(reply.data)
                if reply.closing or head is None or head.closing:
                    self._transport.close()
                    self._transport = None
            else:
                self._send_oddly(head, arrived, reply)

    def _note(self, head: Head | None, arrived: float, reply: Reply, size: int) -> None:
        site = self._site
        host, path, agent = (head.host, head.target, head.agent) if head else ("", "", "")
        status = reply.status if size else 0
        site.ledger.add(
            LedgerRow(
                arrived, site.now(), site.scheme, self._address, self._client_port, host, path, agent,
                status, size, reply.retry_after_s,
            )
        )  # fmt: skip

    def _send_oddly(self, head: Head | None, arrived: float, reply: Reply) -> None:
        transport = self._transport
        if transport is None:
            return
        half = reply.data[: len(reply.data) // 2]
        if reply.manner is Manner.SLOWLY:
            self._drip(head, arrived, reply, 0)
        elif reply.manner is Manner.RESET:
            self._note(head, arrived, reply, 0)
            self._reset(transport)
        elif reply.manner is Manner.CUT:
            self._note(head, arrived, reply, len(half))
            transport.write(half)
            transport.close()
            self._transport = None
        else:
            sent = half if reply.manner is Manner.HALF else b""
            self._open = (head, arrived, reply, len(sent))
            transport.write(sent)

    def _reset(self, transport: asyncio.Transport) -> None:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no linger time: a reset
        transport.abort()
        self._transport = None

    def _drip(self, head: Head | None, arrived: float, reply: Reply, sent: int) -> None:
        if self._transport is None:
            return
        size = len(reply.data)
        upto = min(size, sent + size // DRIPS + 1)
        if upto == size:
            self._open = None
            self._note(head, arrived, reply, size)
            self._transport.write(reply.data[sent:])
            self._answer()
            return
        self._open = (head, arrived, reply, upto)
        self._transport.write(reply.data[sent:upto])
        pause = self._site.answers.layout.spec.slow_s / DRIPS
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(pause, self._drip, head, arrived, reply, upto)
