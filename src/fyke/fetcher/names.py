"""How names become addresses: our own caching resolver (Mercator, section 3.7, found the system's too slow).

`NameDesk` asks for the `cached` answer of a host with work, and waits for `asking` if there is none. `HostDesk` calls
`refresh` for such hosts shortly before their answers expire. A literal address, `localhost` and the names of /etc/hosts
need no DNS. An answer is kept for its TTL, within bounds. Failures are kept too, for a shorter time if they say nothing
about the name (a dead name server).

Answers outlive a restart in the `HostBook`: `HostDesk` keeps the addresses with the `Host`, and gives them back with
`load` when the host is read again. So a restart asks for nothing that is still valid, and reads nothing at once. The
book learns of a host later, so that a chosen name was public is noted in the journal of rests at once (`remember`).

Invariants: one question in flight for each name, however many callers wait. Every address handed out, also one from
`load`, is public, or belongs to a name that the person who started the crawl chose (`trusted`, or a domain of
`dns.private`). A chosen name that was public is not private later, because its owner could turn it on this network (DNS
rebinding). Bounded: at most `most_names` names are held.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Protocol

from fyke.core.clock import Clock
from fyke.core.config import DnsSection
from fyke.core.outcomes import Outcome
from fyke.fetcher.addresses import (
    PROXIED,
    is_in,
    is_local_name,
    is_name,
    is_public,
    literal,
    local,
    read_hosts_file,
    spelled,
)
from fyke.fetcher.dns_datagrams import SOCKETS
from fyke.fetcher.dns_query import DnsReply, NameServers

LEAST_TTL_S, MOST_TTL_S = 60.0, 86400.0  # bounds of the time that an answer is believed
MOST_NAMES = 50_000  # with answers in memory
REFRESH_SHARE = 0.1  # an answer that is used in this last part of its time is refreshed
FAILURE_TTL_S = 30.0  # how long "no name server answered" is believed, unless negative_ttl_s is shorter


@dataclass(frozen=True, slots=True)
class Resolution:
    """The addresses of a host (outcome OK), or why there are none; believed until `expires_at` (unix s)."""

    host: str
    outcome: Outcome
    addresses: tuple[str, ...]
    expires_at: float
    detail: str = ""
    refresh_at: float = inf  # when a refresh is worth it, though the answer is still valid

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK


class PublicNotes(Protocol):
    """Remembers for later processes which names of seeds were found at a public address."""

    @property
    def public(self) -> Collection[str]: ...

    def note_public(self, names: Iterable[str], now: float) -> None: ...


class Resolver:
    """Addresses of hosts, cached. It belongs to the event loop it is first used on.

    `trusted(host)` says whether a seed named the host, so that a private address is meant.
    """

    def __init__(
        self,
        config: DnsSection,
        clock: Clock,
        trusted: Callable[[str], bool],
        *,
        by_proxy: Callable[[str], bool] = lambda _: False,
        hosts_file: Path = Path("/etc/hosts"),
        sockets: int = SOCKETS,
        most_names: int = MOST_NAMES,
    ) -> None:
        """`by_proxy(host)` says whether a proxy asks it for us and so looks up its name."""
        self._by_proxy = by_proxy
        self._most_names = most_names
        self._config = config
        self._clock = clock
        self._trusted = trusted
        self._hosts_file = read_hosts_file(hosts_file)
        self._servers = NameServers(config, sockets)
        self._answers: OrderedDict[str, Resolution] = OrderedDict()
        self._both: OrderedDict[str, None] = OrderedDict()  # names of which AAAA records are asked for beside A
        self._were_public: set[str] = set()  # names that seeds gave
        self._notes: PublicNotes | None = None
        self._in_flight: dict[str, asyncio.Task[Resolution]] = {}
        self._fault: BaseException | None = None

    def __repr__(self) -> str:
        return f"Resolver({len(self._answers)} names, {self.in_flight} in flight)"

    def remember(self, notes: PublicNotes) -> None:
        """Believe what an earlier process noted in `notes`, and note there what is found, before it is used."""
        self._notes = notes
        self._were_public.update(notes.public)

    async def resolve(self, host: str) -> Resolution:
        """Return the answer for `host` (a name, an IPv4 address or an IPv6 address in brackets)."""
        answer = self.cached(host)
        if answer is not None:
            return answer
        return await asyncio.shield(self.asking(host))  # others may wait for the same

    def cached(self, host: str) -> Resolution | None:
        """Return the answer that needs no waiting, or None. An answer near its end is refreshed meanwhile."""
        if self._fault is not None:
            raise self._fault
        name = _plain(host)
        answer = self._without_dns(name) if self._by_proxy(name) else self._answers.get(name) or self._without_dns(name)
        if answer is None:
            return None
        now = self._clock.now()
        if now >= answer.expires_at:
            self._answers.pop(name, None)
            return None
        if name in self._answers:
            self._answers.move_to_end(name)
            if now >= answer.refresh_at:
                self.asking(name)
        return answer

    def refresh(self, hosts: Iterable[str]) -> None:
        """Start asking for those of `hosts` whose answer is missing or near its end."""
        now = self._clock.now()
        for name in map(_plain, hosts):
            answer = self._answers.get(name)
            if answer is None:
                answer = self._without_dns(name)
            if name not in self._in_flight and (answer is None or now >= min(answer.refresh_at, answer.expires_at)):
                self.asking(name)

    def widen(self, host: str) -> bool:
        """Ask for `host` anew, and for its addresses of version 6 too: nobody answers at those of version 4 (RFC 6724,
        section 2: each should be tried). Returns whether that is new, and may bring more."""
        name = _plain(host)
        if name in self._both or self._without_dns(name) is not None:
            return False
        self._both[name] = None
        if len(self._both) > self._most_names:
            self._both.popitem(last=False)
        self._answers.pop(name, None)
        return True

    def load(self, saved: Iterable[tuple[str, tuple[str, ...], float]]) -> None:
        """Believe (host, addresses, expires_at) triples from an earlier run, unless something newer is known.

        Addresses are checked as if they had just come. No saved answer is believed longer than `MOST_TTL_S` from now.
        """
        now = self._clock.now()
        for host, addresses, expires_at in saved:
            name = _plain(host)
            self._public(name, addresses)
            until = min(expires_at, now + MOST_TTL_S)
            if until > now and addresses and name not in self._answers and not addresses[0].startswith(PROXIED):
                answer = self._judged(name, addresses, until - now)
                if answer.ok:
                    self._keep(answer)

    @property
    def in_flight(self) -> int:
        """Number of names that are being asked for."""
        return len(self._in_flight)

    async def close(self) -> None:
        """Break off the questions in flight and close the sockets; twice does no harm."""
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._in_flight.clear()
        await self._servers.close()

    def _without_dns(self, name: str) -> Resolution | None:
        """Return the answer for a literal address, a local name, no possible name, or a name that a proxy looks up."""
        answer = self._known_without_dns(name)
        if not self._by_proxy(name) or not (answer is None or answer.ok):
            return answer
        if is_local_name(name) and not (self._trusted(name) or self._in_private_domain(name)):
            why = "is a name in the proxy's own network, and no seed names it: --private allows a domain"
            return Resolution(name, Outcome.ADDRESS_REFUSED, (), inf, f"{name} {why}")
        return Resolution(name, Outcome.OK, (f"{PROXIED}{name}",), inf)

    def _known_without_dns(self, name: str) -> Resolution | None:
        address = literal(name)
        if address is not None:
            return self._judged(name, (address,), inf)
        addresses = local(name, self._hosts_file)
        if addresses is not None:
            return self._judged(name, addresses, inf)
        if not is_name(name):
            return Resolution(name, Outcome.NO_SUCH_NAME, (), inf, f"{name[:80]!r} is not a host name")
        return None

    def asking(self, host: str) -> asyncio.Task[Resolution]:
        """Return the task that asks for `host`, whose answer is not `cached`: the one under way, or a new one."""
        name = _plain(host)
        task = self._in_flight.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(name))
            task.add_done_callback(self._settled)
            self._in_flight[name] = task
        return task

    def _settled(self, task: asyncio.Task[Resolution]) -> None:
        """Keep a task's exception, to be raised at the next use. A refresh that nobody waits for must not fail
        unseen."""
        if not task.cancelled() and task.exception() is not None:
            self._fault = task.exception()

    async def _ask(self, name: str) -> Resolution:
        try:
            answer = self._answer_of(name, await self._servers.ask(name, both=name in self._both))
            self._keep(answer)
            return answer
        finally:
            self._in_flight.pop(name, None)

    def _answer_of(self, name: str, reply: DnsReply) -> Resolution:
        config = self._config
        if reply.outcome is Outcome.OK:
            return self._judged(name, reply.addresses, min(max(reply.ttl_s, LEAST_TTL_S), MOST_TTL_S))
        if reply.outcome is Outcome.NO_SUCH_NAME:
            ttl = min(max(reply.ttl_s, LEAST_TTL_S), config.negative_ttl_s)
        else:
            ttl = min(FAILURE_TTL_S, config.negative_ttl_s)
        return Resolution(name, reply.outcome, (), self._clock.now() + ttl, reply.detail)

    def _judged(self, name: str, addresses: tuple[str, ...], ttl_s: float) -> Resolution:
        """Return the answer with those of `addresses` that may be spoken to. No other place lets addresses in."""
        now = self._clock.now()
        if not self._in_private_domain(name):
            public = self._public(name, addresses)
            if not public and (name in self._were_public or not self._trusted(name)):
                ttl = min(ttl_s, self._config.negative_ttl_s)
                what = f"{name} is" if literal(name) else f"{name} is at {addresses[0]},"
                unnamed = "no seed names it: --private allows a domain"
                why = "it was public before" if name in self._were_public else unnamed
                detail = f"{what} not a public address, and {why}"
                return Resolution(name, Outcome.ADDRESS_REFUSED, (), now + ttl, detail)
            addresses = public or addresses
        addresses = tuple(dict.fromkeys(map(spelled, addresses)))
        return Resolution(name, Outcome.OK, addresses, now + ttl_s, refresh_at=now + ttl_s * (1 - REFRESH_SHARE))

    def _public(self, name: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
        """Return the public ones of `addresses`. A name that a seed gave and that has one will never be private
        again."""
        public = tuple(address for address in addresses if is_public(address))
        if public and name not in self._were_public and self._trusted(name):
            self._were_public.add(name)
            if self._notes:
                self._notes.note_public([name], self._clock.now())
        return public

    def _in_private_domain(self, name: str) -> bool:
        return is_in(name, self._config.private)

    def _keep(self, answer: Resolution) -> None:
        """Remember `answer`. A dead name server is no reason to forget an address that is still valid."""
        name = answer.host
        known = self._answers.get(name)
        if answer.outcome is Outcome.DNS_FAILED and known and known.ok and known.expires_at > self._clock.now():
            answer = Resolution(name, known.outcome, known.addresses, known.expires_at)
        self._answers[name] = answer
        self._answers.move_to_end(name)
        if len(self._answers) > self._most_names:
            self._answers.popitem(last=False)


def _plain(host: str) -> str:
    """Return `host` in the one spelling under which it is remembered."""
    return host.lower().rstrip(".")
