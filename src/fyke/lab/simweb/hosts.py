"""The hosts of a web: their names, domains, addresses and sizes, and the oddity of each.

The DNS server, `layout` and the judge call it. Hosts form a tree: host `h` leads to hosts `b*h+1 … b*h+b`, so all are
reached from host 0. Only hosts at the rim of that tree may be closed to us.

Bounded: memory is a few small arrays over hosts and never grows with pages.
"""

from array import array
from bisect import bisect_right

import numpy as np

from fyke.lab.simweb.dice import Chooser, bits
from fyke.lab.simweb.kinds import (
    DEAD_NAMES,
    FRIENDLY,
    SHUT,
    WITHOUT_RULES,
    FeedKind,
    NameKind,
    RobotsKind,
    SitemapKind,
)
from fyke.lab.simweb.spec import WebSpec, shares

UNHEARD_ADDRESS = "127.254.254.254"  # of hosts that accept no connection
GOPHER_HOST = "gopher.d0.sim"
FTP_HOST = "ftp.d0.sim"


def address_text(index: int) -> str:
    """Return the address with this index: 127.1.0.1 onwards."""
    return f"127.{1 + index // 62_500}.{index // 250 % 250}.{index % 250 + 1}"


class HostNames:
    """The hosts of a web, by number from 0."""

    def __init__(self, spec: WebSpec) -> None:
        self.spec = spec
        self.hosts = spec.hosts
        self.starts = array("q", _starts(spec).tolist())
        self.domain_of = array("I", _domains(spec).tolist())
        robots = [(RobotsKind(word), share) for word, share in shares(spec.robots_shares)]
        self._robots = Chooser(robots, RobotsKind.NONE)
        names = [(NameKind(word), share) for word, share in shares(spec.name_shares)]
        self._names = Chooser(names, NameKind.PLAIN)

    def name(self, host: int) -> str:
        """Return the name of a host: `h3.d17.sim`."""
        return f"h{host}.d{self.domain_of[host]}.sim"

    def find(self, name: str) -> int | None:
        """Return the host with this name (lower case), or None."""
        first, _, rest = name.partition(".")
        if first[:1] != "h" or not first[1:].isdecimal() or not first.isascii():
            return None
        host = int(first[1:])
        return host if host < self.hosts and self.name(host) == f"{first}.{rest}" else None

    def host_of(self, page: int) -> int:
        """Return the host of a page."""
        return bisect_right(self.starts, page) - 1

    def size(self, host: int) -> int:
        """Return how many pages a host has, without those that only its sitemap or feed names."""
        return self.starts[host + 1] - self.starts[host]

    def children(self, host: int) -> range:
        """Return the hosts to which the front page of `host` is sure to link."""
        first = self.spec.branching * host + 1
        return range(min(first, self.hosts), min(first + self.spec.branching, self.hosts))

    def at_rim(self, host: int) -> bool:
        """Return whether no other host depends on this one to be found."""
        return not self.children(host) and (host > 0 or self.hosts == 1)

    def addresses(self, host: int) -> tuple[str, ...]:
        """Return the addresses at which a host answers; a dead name still has one, which nobody is told."""
        kind = self.name_kind(host)
        if kind is NameKind.REFUSED:
            return (UNHEARD_ADDRESS,)
        count = self.spec.addresses
        first = bits(self.spec.seed, b"address", host) % count
        if kind is NameKind.SEVERAL and count > 1:
            return (address_text(first), address_text((first + 1) % count))
        return (address_text(first),)

    def all_addresses(self) -> list[str]:
        """Return every address on which the web must listen."""
        return [address_text(index) for index in range(self.spec.addresses)]

    def name_kind(self, host: int) -> NameKind:
        """Return what the DNS says of a host."""
        if self._names.constant or host == 0 or not self.at_rim(host):
            return NameKind.PLAIN
        return self._names.pick(bits(self.spec.seed, b"name", host))

    def dead(self, host: int) -> bool:
        """Return whether the host can never be reached."""
        return self.name_kind(host) in DEAD_NAMES

    def robots_kind(self, host: int) -> RobotsKind:
        """Return what the host answers for /robots.txt."""
        if self._robots.constant:
            return RobotsKind.NONE
        kind = self._robots.pick(bits(self.spec.seed, b"robots", host))
        if kind in FRIENDLY or (host > 0 and self.at_rim(host)):
            return kind
        return RobotsKind.ALLOW

    def _has(self, tag: bytes, host: int, share: float) -> int:
        draw = bits(self.spec.seed, tag, host)
        return draw >> 32 if (draw & 0xFFFF) < share * 0x10000 else 0

    def sitemap_kind(self, host: int) -> SitemapKind:
        """Return the sitemap that the host's robots.txt announces; only a robots.txt with rules announces one."""
        if self.robots_kind(host) in WITHOUT_RULES | SHUT:
            return SitemapKind.NONE
        draw = self._has(b"sitemap", host, self.spec.style_shares.sitemap)
        return tuple(SitemapKind)[1 + draw % 4] if draw else SitemapKind.NONE

    def feed_kind(self, host: int) -> FeedKind:
        """Return the feed that the host's front page announces."""
        draw = self._has(b"feed", host, self.spec.style_shares.feed)
        return tuple(FeedKind)[1 + draw % 2] if draw else FeedKind.NONE

    def has_trap(self, host: int) -> bool:
        """Return whether the front page links into the trap, which the host's robots.txt forbids."""
        if self.robots_kind(host) in WITHOUT_RULES:
            return False
        return bool(self._has(b"trap", host, self.spec.style_shares.trap))


def _starts(spec: WebSpec) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the first page of each host: int64[hosts + 1]. Sizes fall as a power of the host's number."""
    weights = np.arange(1, spec.hosts + 1, dtype=np.float64) ** -spec.pages_exponent
    sizes = 1 + np.floor(weights / weights.sum() * (spec.pages - spec.hosts)).astype(np.int64)
    sizes[0] += spec.pages - sizes.sum()
    starts = np.zeros(spec.hosts + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _domains(spec: WebSpec) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the domain of each host: int64[hosts]. Each domain has one host; a power law draws the others."""
    drawn = np.random.default_rng(spec.seed).random(spec.hosts)
    domains = (drawn**2 * spec.domains).astype(np.int64)
    domains[: spec.domains] = np.arange(spec.domains)
    return domains
