"""Asking name servers: one question to c-ares, one answer or failure as a value.

Called by `fyke.fetcher.names.Resolver` only, which caches; nothing here remembers, except c-ares itself:
it keeps every answer for its TTL (an hour at most) in a cache that has no bound and no switch in
pycares. So a channel is thrown away after `channel_lookups` questions, when its last is answered: that
bounds the memory, and changes the source port now and then.

Invariants: `ask` returns a `Reply`; what the DNS does wrong is an outcome, not an exception. No channel is asked the
same twice, so every reply comes from a name server, and a name that is looked up again has its whole TTL again.
"""

import asyncio
import re
from dataclasses import dataclass
from math import ceil

import aiodns
import aiodns.error as ares
import pycares

from fyke.core.config import DnsSection
from fyke.core.errors import ConfigurationError
from fyke.core.outcomes import Outcome
from fyke.fetcher.addresses import literal

CHANNEL_LOOKUPS = 10_000

_SERVER = re.compile(r"\[([^\]]+)\](?::(\d{1,5}))?|([^:]+|[^.]*)(?::(\d{1,5}))?")
_AddressData = pycares.ARecordData | pycares.AAAARecordData
_KINDS: dict[str, type[_AddressData]] = {"A": pycares.ARecordData, "AAAA": pycares.AAAARecordData}
_NO_SUCH_NAME = frozenset({ares.ARES_ENOTFOUND, ares.ARES_EBADNAME})
_NO_RECORDS = frozenset({ares.ARES_ENODATA})
_WORDS = {
    ares.ARES_ETIMEOUT: "no name server answered in time",
    ares.ARES_ESERVFAIL: "the name server failed (SERVFAIL)",
    ares.ARES_EREFUSED: "the name server refused to answer",
    ares.ARES_ECONNREFUSED: "no name server could be reached",
    ares.ARES_EBADRESP: "the name server's answer is malformed",
    ares.ARES_EFORMERR: "the name server did not understand the question",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the DNS said of a name: addresses and their TTL, or an outcome other than OK."""

    outcome: Outcome
    addresses: tuple[str, ...] = ()
    ttl_s: float = 0.0
    detail: str = ""


class _Channel:
    """One c-ares channel, the questions it was asked, and how many of them it has not answered."""

    def __init__(self, resolver: aiodns.DNSResolver) -> None:
        self.resolver = resolver
        self.asked: set[tuple[str, str]] = set()
        self.waiting = 0


class NameServers:
    """The configured servers, or the system's; belongs to the event loop it is first asked on."""

    def __init__(self, config: DnsSection, channel_lookups: int = CHANNEL_LOOKUPS) -> None:
        self._servers = [server_of(text) for text in config.servers]
        self._timeout_s = config.timeout_s
        self._tries = max(1, ceil(config.tries / max(1, len(self._servers))))  # c-ares counts for each server
        self._limit_s = config.timeout_s * config.tries
        self._channel_lookups = channel_lookups
        self._current: _Channel | None = None
        self._open: set[_Channel] = set()

    async def ask(self, name: str) -> Reply:
        """The addresses of `name`: of its A records, or of AAAA when there is no A."""
        reply = await self._ask(name, "A")
        if reply.outcome is Outcome.OK and not reply.addresses:
            reply = await self._ask(name, "AAAA")
        if reply.outcome is Outcome.OK and not reply.addresses:
            return Reply(Outcome.NO_SUCH_NAME, detail=f"{name} has no address")
        return reply

    async def _ask(self, name: str, record: str) -> Reply:
        channel = self._channel((name, record))
        channel.waiting += 1
        try:
            async with asyncio.timeout(self._limit_s):  # c-ares doubles its timeout from round to round
                result = await channel.resolver.query_dns(name, record)
        except TimeoutError:
            return Reply(Outcome.DNS_FAILED, detail=f"{name}: {_WORDS[ares.ARES_ETIMEOUT]}")
        except ares.DNSError as error:
            return _failure(name, error)
        finally:
            channel.waiting -= 1
            await self._retire()
        return _success(result, _KINDS[record])

    def _channel(self, question: tuple[str, str]) -> _Channel:
        """A channel that was not asked `question`, and counts as asked now."""
        if self._current is None or self._full(self._current) or question in self._current.asked:
            resolver = aiodns.DNSResolver(
                self._servers or None,
                loop=asyncio.get_running_loop(),
                timeout=self._timeout_s,
                tries=self._tries,
                flags=pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS,
            )
            self._current = _Channel(resolver)
            self._open.add(self._current)
        self._current.asked.add(question)
        return self._current

    def _full(self, channel: _Channel) -> bool:
        return len(channel.asked) >= self._channel_lookups

    async def _retire(self) -> None:
        """Close the channels that are asked nothing more and have answered all."""
        done = [one for one in self._open if not one.waiting and (one is not self._current or self._full(one))]
        self._open.difference_update(done)
        if self._current in done:
            self._current = None
        for channel in done:
            await channel.resolver.close()

    async def close(self) -> None:
        """Break off what is being asked."""
        channels, self._open, self._current = self._open, set(), None
        for channel in channels:
            await channel.resolver.close()


def server_of(text: str) -> str:
    """`address` or `address:port` (IPv6 with a port in brackets) as c-ares reads it.

    Raises ConfigurationError for anything else, also for a name: who would resolve it?
    """
    match = _SERVER.fullmatch(text.strip())
    address, port = (match[1] or match[3], int(match[2] or match[4] or 53)) if match else (text, 53)
    known = literal(address)
    if known is None or not 0 < port < 65536:
        raise ConfigurationError(f"dns.servers: {text!r} is not an address or address:port, as 9.9.9.9 or [::1]:5353")
    return f"[{known}]:{port}" if ":" in known else f"{known}:{port}"


def _failure(name: str, error: ares.DNSError) -> Reply:
    code = error.args[0] if error.args else 0
    if code in _NO_RECORDS:
        return Reply(Outcome.OK)
    if code in _NO_SUCH_NAME:
        return Reply(Outcome.NO_SUCH_NAME, detail=f"{name} does not exist")
    return Reply(Outcome.DNS_FAILED, detail=f"{name}: {_WORDS.get(code, str(error))}")


def _success(result: pycares.DNSResult, kind: type[_AddressData]) -> Reply:
    """Addresses in the order given; the TTL is the least of the whole chain of aliases."""
    data = [answer.data for answer in result.answer]
    addresses = tuple(item.addr for item in data if isinstance(item, kind))
    ttl = min((answer.ttl for answer in result.answer), default=0)
    return Reply(Outcome.OK, addresses, float(ttl))
