"""Which addresses a crawler may speak to, and names that need no DNS.

Called by `fyke.fetcher.names` with every address before it is used, whatever the name was: a public name may point at a
private address, and that is how crawlers are made to read what only they can reach.

Invariant: an address that is not known to be public is not public.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

# Blocks of the IANA IPv4 Special-Purpose Address Registry (2025) that are not for the public, and multicast. It calls
# a few addresses of them global (192.0.0.9, 192.0.0.10), but no web server is among these.
_NOT_PUBLIC_4 = (
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private use
    "100.64.0.0/10",  # shared by customers of a provider
    "127.0.0.0/8",  # this machine
    "169.254.0.0/16",  # this link; clouds tell secrets at 169.254.169.254
    "172.16.0.0/12",  # private use
    "192.0.0.0/24",  # protocols
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays from 6to4, given up
    "192.168.0.0/16",  # private use
    "198.18.0.0/15",  # measurements
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
)
# In IPv6 only global unicast is public, except for blocks of its Special-Purpose Address Registry (2025). Of embedded
# IPv4 addresses only NAT64's count: a public server has another way than mapped addresses and 6to4.
_GLOBAL_UNICAST = "2000::/3"
_NOT_PUBLIC_6 = (
    "2001::/23",  # protocols: Teredo, measurements, ORCHID
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4, an IPv4 address within
    "3fff::/20",  # documentation
)
_NAT64 = "64:ff9b::/96"  # RFC 6052: an IPv4 address in the last four bytes
_LOCAL = ("127.0.0.1", "::1")
_LOCAL_ENDS = (".local", ".home.arpa", ".internal", ".lan", ".localdomain", ".intranet", ".corp", ".home", ".private")

PROXIED = "proxied:"  # before a host's name: stands for an address that only a proxy knows


@lru_cache(maxsize=1 << 14)
def is_public(address: str) -> bool:
    """Return whether `address` is a unicast address of the public Internet, by our own table, not by Python's
    version."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    number = int(ip)
    if isinstance(ip, IPv4Address):
        return not _within(number, _RANGES_4)
    if ip.scope_id:
        return False
    if _within(number, _RANGES_NAT64):
        return not _within(number & 0xFFFFFFFF, _RANGES_4)
    return _within(number, _RANGES_GLOBAL) and not _within(number, _RANGES_6)


def _ranges(*networks: str) -> tuple[tuple[int, int], ...]:
    """Return the first and the last address of each network."""
    return tuple((int(each.network_address), int(each.broadcast_address)) for each in map(ip_network, networks))


def _within(number: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= number <= last for first, last in ranges)


_NAME = re.compile(r"[!-\-/-\[\]-~]{1,63}(?:\.[!-\-/-\[\]-~]{1,63})*")  # visible ASCII, except the backslash
_RANGES_4 = _ranges(*_NOT_PUBLIC_4)
_RANGES_6 = _ranges(*_NOT_PUBLIC_6)
_RANGES_GLOBAL = _ranges(_GLOBAL_UNICAST)
_RANGES_NAT64 = _ranges(_NAT64)


def literal(host: str) -> str | None:
    """Return the address that `host` (`127.0.0.1`, `[::1]`) is, or None for a name."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" not in bare and not bare[-1:].isdigit():  # most are names, and an exception takes longer
        return None
    try:
        return str(ip_address(bare))
    except ValueError:
        return None


def spelled(address: str) -> str:
    """Return `address` in its one spelling, so that its server has one rest: an IPv4 address mapped into IPv6 as
    IPv4."""
    if ":" not in address:
        return address
    ip = IPv6Address(address)
    return str(ip.ipv4_mapped or ip)


def is_name(host: str) -> bool:
    """Return whether the DNS can be asked for `host`: ASCII, labels of 1 to 63 bytes, 253 in all."""
    return len(host) <= 253 and _NAME.fullmatch(host) is not None


def is_local_name(name: str) -> bool:
    """Return whether `name`, if it is no address, can only be a name of a local network: it has no dot, or an ending of
    such names (RFC 6762, RFC 8375, and those that ICANN set aside for private use)."""
    return literal(name) is None and ("." not in name or name.endswith(_LOCAL_ENDS))


def is_in(name: str, domains: Iterable[str]) -> bool:
    """Return whether `name` is one of `domains`, or below one."""
    return any(name == domain or name.endswith(f".{domain}") for domain in domains)


def read_hosts_file(path: Path) -> dict[str, tuple[str, ...]]:
    """Return names and addresses of a file like /etc/hosts, IPv4 first; nothing if there is no such file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        if literal(address) is None:
            continue
        for name in names:
            found.setdefault(name.lower().rstrip("."), []).append(address)
    return {name: tuple(sorted(addresses, key=lambda address: ":" in address)) for name, addresses in found.items()}


def local(host: str, hosts_file: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the addresses of a name that this machine knows itself: those in the hosts file, and for `localhost`
    (RFC 6761) its own too. Many a server in development listens at one of them only."""
    known = hosts_file.get(host)
    if host == "localhost" or host.endswith(".localhost"):
        return tuple(dict.fromkeys((*(known or ()), *_LOCAL)))
    return known
