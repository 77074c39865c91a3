"""Asks name servers: one name, and one answer or failure as a value. A stub resolver over UDP, and over TCP if it must.

Called by `fyke.fetcher.names.Resolver` only, which caches; nothing here remembers. This is our own because a crawler
asks for thousands of names at once, and must decide how long it waits and what fails with what: a library that closes a
connection for one bad answer fails all others on it.

Invariants: `ask` returns a `DnsReply`; faults of the DNS are outcomes, not exceptions. A name is asked for `dns.tries`
times over all servers, the last that answered first, and waits `dns.timeout_s` for each answer. A server that answers
that it failed is not asked again.
"""

import asyncio
import os
import re
from dataclasses import dataclass
from math import inf
from pathlib import Path

from fyke.core.config import DnsSection
from fyke.core.errors import ConfigurationError
from fyke.core.outcomes import Outcome
from fyke.fetcher import dns_message as dns
from fyke.fetcher.addresses import literal
from fyke.fetcher.dns_datagrams import SOCKETS, TIMED_OUT, UNREACHED, Datagrams, Said, ServerAddress

TCP_CONNECTIONS = 64
ALIASES_ASKED = 4  # names that are asked for because an answer gave only an alias
RESOLV_CONF = Path("/etc/resolv.conf")

_PORT = 53
_SERVER = re.compile(r"\[([^\]]+)\](?::(\d{1,5}))?|([^:]+|[^.]*)(?::(\d{1,5}))?")
_WORDS = {
    dns.FORMAT_ERROR: "the name server did not understand the question",
    dns.SERVER_FAILURE: "the name server failed (SERVFAIL)",
    dns.REFUSED: "the name server refused to answer",
}


@dataclass(frozen=True, slots=True)
class DnsReply:
    """The DNS's reply for a name: addresses and their TTL, or an outcome other than OK.

    If the name or its records do not exist, the TTL is the zone's, infinite if the zone does not say.
    """

    outcome: Outcome
    addresses: tuple[str, ...] = ()
    ttl_s: float = inf
    detail: str = ""


class NameServers:
    """The configured servers, or the system's. They belong to the event loop they are first asked on."""

    def __init__(self, config: DnsSection, sockets: int = SOCKETS) -> None:
        servers = [server_of(text) for text in config.servers] or system_servers(RESOLV_CONF)
        alone = len(servers) == 1
        self._timeout_s = config.timeout_s
        self._tries = config.tries
        self._servers = [(server, Datagrams(server, sockets, config.timeout_s, alone=alone)) for server in servers]
        self._first = 0  # the server that answered last
        self._tcp_room = asyncio.Semaphore(TCP_CONNECTIONS)

    def __repr__(self) -> str:
        return f"NameServers({len(self._servers)} servers, {self.open_sockets} sockets)"

    @property
    def open_sockets(self) -> int:
        return sum(datagrams.open_sockets for _, datagrams in self._servers)

    async def ask(self, name: str, *, both: bool = False) -> DnsReply:
        """Return the addresses of `name`: of its A records, or of AAAA if there is no A. If `both`, those of AAAA, and
        then those of A."""
        reply = await self._follow(name, dns.A)
        if both or (reply.outcome is Outcome.OK and not reply.addresses):
            fours, reply = reply, await self._follow(name, dns.AAAA)
            if fours.addresses:
                reply = DnsReply(Outcome.OK, reply.addresses + fours.addresses, min(reply.ttl_s, fours.ttl_s))
            elif fours.outcome is Outcome.DNS_FAILED and not reply.addresses:
                reply = fours
        if reply.outcome is Outcome.OK and not reply.addresses:
            return DnsReply(Outcome.NO_SUCH_NAME, ttl_s=reply.ttl_s, detail=f"{name} has no address")
        return reply

    async def _follow(self, name: str, kind: int) -> DnsReply:
        """Return the records of `name`. If an answer has only an alias, the alias is asked for."""
        asked, least_s = name, inf
        for _ in range(1 + ALIASES_ASKED):
            said = await self._try(dns.question_of(asked, kind))
            if isinstance(said, str):
                return DnsReply(Outcome.DNS_FAILED, detail=f"{name}: {said}")
            if said.code == dns.NO_SUCH_NAME:
                return DnsReply(Outcome.NO_SUCH_NAME, ttl_s=said.ttl_s, detail=f"{name} does not exist")
            if said.addresses or not said.alias or said.ttl_s < inf or not is_askable(said.alias):
                return DnsReply(Outcome.OK, said.addresses, min(least_s, said.ttl_s))
            asked, least_s = said.alias, min(least_s, said.alias_ttl_s)
        return DnsReply(Outcome.DNS_FAILED, detail=f"{name}: its aliases do not end")

    async def _try(self, question: bytes) -> Said:
        """Return an answer to `question` that says something of the name, or why there is none."""
        first, why = self._first, TIMED_OUT
        failed: set[int] = set()  # servers that said so; asking again at once is useless (RFC 9520, 3.1)
        for at in range(first, first + self._tries):
            index = at % len(self._servers)
            if index in failed:
                continue
            server, datagrams = self._servers[index]
            said = await datagrams.ask(question)
            if isinstance(said, dns.DnsAnswer) and said.cut:
                said = await self._ask_tcp(server, question)
            if isinstance(said, str):
                why = said
            elif said.code in (dns.NO_ERROR, dns.NO_SUCH_NAME):
                self._first = index
                return said
            else:
                failed.add(index)
                why = _WORDS.get(said.code, f"the name server failed with code {said.code}")
        return why

    async def _ask_tcp(self, server: ServerAddress, question: bytes) -> Said:
        """Return a server's answer over TCP, if it is too long for a datagram (RFC 7766). The wait for a connection
        counts, because otherwise silent servers would keep names for hours."""
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
        except TimeoutError:
            return TIMED_OUT
        except (OSError, EOFError):
            return UNREACHED
        except dns.Malformed as error:
            return f"the name server's answer is malformed: {error}"
        return "the name server cut its answer over TCP too" if said.cut else said

    async def close(self) -> None:
        """Break off the questions under way."""
        for _, datagrams in self._servers:
            datagrams.close()


def is_askable(name: str) -> bool:
    """Return whether an alias can be asked for as it stands. Its labels may hold any byte, even a dot."""
    return name.isascii() and 0 < len(name) <= 253 and all(0 < len(label) < 64 for label in name.split("."))


def system_servers(resolv_conf: Path) -> list[ServerAddress]:
    """Return the name servers of this machine, or its own port 53 if it names none, as in resolv.conf(5)."""
    try:
        lines = resolv_conf.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines]
    named = [literal(word[1]) for word in words if len(word) > 1 and word[0] == "nameserver"]
    return [ServerAddress(host, _PORT) for host in named if host] or [ServerAddress("127.0.0.1", _PORT)]


def server_of(text: str) -> ServerAddress:
    """Return the server named by `address` or `address:port` (IPv6 with a port in brackets).

    Raises ConfigurationError for anything else, also for a name: who would resolve it?
    """
    match = _SERVER.fullmatch(text.strip())
    address, port = (match[1] or match[3], int(match[2] or match[4] or _PORT)) if match else (text, _PORT)
    known = literal(address)
    if known is None or not 0 < port < 65536:
        raise ConfigurationError(f"dns.servers: {text!r} is not an address or address:port like 9.9.9.9 or [::1]:5353")
    return ServerAddress(known, port)
