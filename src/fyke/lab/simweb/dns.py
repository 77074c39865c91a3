"""The DNS server: the names under `.sim`, over UDP.

`web` calls it. It answers A queries from `HostNames`, NXDOMAIN for unknown names, and errs where the spec says so.

Invariant: an answer depends on the name alone; if the name has a passing fault, also on how often it was asked for.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple, cast

from fyke.lab.simweb.hosts import FTP_HOST, GOPHER_HOST, address_text
from fyke.lab.simweb.kinds import NameKind
from fyke.lab.simweb.layout import Layout
from fyke.lab.simweb.ledger import Ledger
from fyke.lab.simweb.weather import NameTrouble, Weather

A, CNAME, SOA, IN = 1, 5, 6, 1
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
NEGATIVE_TTL_S = 30

_HEADER = struct.Struct(">HHHHHH")


class DnsQuestion(NamedTuple):
    """A query: its number, the name in lower case, the type, and the question's bytes as asked."""

    number: int
    name: str
    type: int
    wire: bytes
    recursion: int


def parse(packet: bytes) -> DnsQuestion | None:
    """Return the question in a packet, or None if it is not a query with one question."""
    if len(packet) < 17:
        return None
    number, flags, questions = struct.unpack_from(">HHH", packet)
    if flags & 0xF800 or questions != 1:
        return None
    labels, place = [], 12
    while place < len(packet) and (length := packet[place]):
        if length > 63:
            return None
        labels.append(packet[place + 1 : place + 1 + length])
        place += 1 + length
    if place + 5 > len(packet):
        return None
    name = b".".join(labels).decode("latin-1").lower()
    kind = int.from_bytes(packet[place + 1 : place + 3], "big")
    return DnsQuestion(number, name, kind, packet[12 : place + 5], flags & 0x0100)


def name_wire(name: str) -> bytes:
    """Return a name as length-counted labels."""
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(owner: bytes, kind: int, ttl_s: int, data: bytes) -> bytes:
    """Return one resource record."""
    return owner + struct.pack(">HHIH", kind, IN, ttl_s, len(data)) + data


def answer(question: DnsQuestion, code: int, records: list[bytes], negative: bool = False) -> bytes:
    """Return a response packet; a `negative` one has the zone's SOA, so that it may be cached."""
    flags = 0x8400 | question.recursion | 0x0080 | code
    authority = b""
    if negative:
        numbers = struct.pack(">IIIII", 1, 3600, 600, 86400, NEGATIVE_TTL_S)
        authority = record(name_wire("sim"), SOA, NEGATIVE_TTL_S, name_wire("ns.sim") + name_wire("ann.sim") + numbers)
    head = _HEADER.pack(question.number, flags, 1, len(records), 1 if negative else 0, 0)
    return head + question.wire + b"".join(records) + authority


class Zone:
    """The answers of the DNS, decided without I/O."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._asked: dict[int, int] = {}

    def reply(self, question: DnsQuestion) -> tuple[bytes | None, float]:
        """Return the packet to send, None for no answer, and the delay in seconds."""
        names, spec = self._layout.names, self._layout.spec
        pointer = b"\xc0\x0c"
        if question.name in (GOPHER_HOST, FTP_HOST):
            return self._addresses(question, pointer, (address_text(0),)), 0.0
        if question.name.startswith("edge"):
            host = names.find("h" + question.name[4:])
            if host is not None and self._layout.alias(host) == question.name:
                return self._addresses(question, pointer, names.addresses(host)), 0.0
        host = names.find(question.name)
        kind = names.name_kind(host) if host is not None else NameKind.MISSING
        if host is None or kind is NameKind.MISSING:
            return answer(question, NXDOMAIN, [], negative=True), 0.0
        if kind is NameKind.SILENT:
            return None, 0.0
        if kind is NameKind.SERVFAIL or (kind is NameKind.FLAKY and self._fails(host)):
            return answer(question, SERVFAIL, []), 0.0
        alias = self._layout.alias(host)
        if alias is None:
            delay_s = spec.slow_s if kind is NameKind.SLOW else 0.0
            return self._addresses(question, pointer, names.addresses(host)), delay_s
        target = name_wire(alias)
        first = record(pointer, CNAME, spec.dns_ttl_s, target)
        return self._addresses(question, target, names.addresses(host), first), 0.0

    def _fails(self, host: int) -> bool:
        asked = self._asked[host] = self._asked.get(host, 0) + 1
        return asked <= self._layout.spec.faults_before_success

    def _addresses(self, question: DnsQuestion, owner: bytes, addresses: tuple[str, ...], *first: bytes) -> bytes:
        if question.type != A:
            return answer(question, NOERROR, list(first), negative=True)
        ttl_s = self._layout.spec.dns_ttl_s
        return answer(question, NOERROR, [*first, *(record(owner, A, ttl_s, socket.inet_aton(a)) for a in addresses)])


class NameServer(asyncio.DatagramProtocol):
    """The socket of the DNS server."""

    def __init__(self, zone: Zone, ledger: Ledger, now: Callable[[], float], weather: Weather) -> None:
        self._zone, self._ledger, self._now, self._weather = zone, ledger, now, weather
        self._dice = random.Random(0)
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = parse(data)
        if question is None:
            return
        self._ledger.add_query(self._now(), question.name, question.type)
        packet, delay_s = self._troubled(question, self._weather.strikes_name(self._dice))
        if packet is None:
            return
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self._send, packet, addr)
        else:
            self._send(packet, addr)

    def _troubled(self, question: DnsQuestion, trouble: NameTrouble) -> tuple[bytes | None, float]:
        if trouble is NameTrouble.SILENT:
            return None, 0.0
        if trouble is NameTrouble.SERVFAIL:
            return answer(question, SERVFAIL, []), 0.0
        packet, delay_s = self._zone.reply(question)
        return (packet[:-7] if packet and trouble is NameTrouble.MALFORMED else packet), delay_s

    def _send(self, packet: bytes, addr: tuple[str, int]) -> None:
        if self._transport is not None:
            self._transport.sendto(packet, addr)
