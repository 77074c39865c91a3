"""A small real name server on 127.0.0.1, for the resolver's tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, A, DNSRecord


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Answers from `zone` (name -> addresses), or as `says` (an RCODE, or "nothing") tells; counts questions."""

    zone: dict[str, tuple[str, ...]] = field(default_factory=dict)
    aliases: dict[str, tuple[str, int]] = field(default_factory=dict)  # name -> (target, TTL)
    ttl: int = 300
    says: str = ""
    questions: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    _transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def asked(self, name: str, record: str = "A") -> int:
        return self.questions.count((name, record))

    def datagram_received(self, data: bytes, addr: Any) -> None:
        question = DNSRecord.parse(data)
        name, record = str(question.q.qname).rstrip(".").lower(), QTYPE[question.q.qtype]
        self.questions.append((name, record))
        if self.says == "nothing":
            return
        reply = question.reply()
        if self.says:
            reply.header.rcode = getattr(RCODE, self.says)
        else:
            self._fill(reply, name, record)
        self._transport.sendto(reply.pack(), addr)

    def _fill(self, reply: DNSRecord, name: str, record: str) -> None:
        if name in self.aliases:
            target, ttl = self.aliases[name]
            reply.add_answer(RR(name, QTYPE.CNAME, rdata=CNAME(target), ttl=ttl))
            name = target
        if name not in self.zone:
            reply.header.rcode = RCODE.NXDOMAIN
        for address in self.zone.get(name, ()):
            six = ":" in address
            if six == (record == "AAAA"):
                data = AAAA(tuple(ip_address(address).packed)) if six else A(address)
                reply.add_answer(RR(name, QTYPE.AAAA if six else QTYPE.A, rdata=data, ttl=self.ttl))


@asynccontextmanager
async def name_servers(*servers: dict[str, Any]) -> AsyncIterator[list[NameServer]]:
    """Name servers, made of these keywords, that really listen."""
    loop = asyncio.get_running_loop()
    endpoints = [
        await loop.create_datagram_endpoint(lambda given=given: NameServer(**given), ("127.0.0.1", 0))
        for given in servers
    ]
    try:
        yield [server for _, server in endpoints]
    finally:
        for transport, _ in endpoints:
            transport.close()
        await asyncio.sleep(0)
