"""Which addresses a crawler may speak to, and names that need no DNS.

Called by `fyke.fetcher.names` with every address before it is used, whatever the name was: a public name
may point at a private address, and that is how crawlers are made to read what only they can reach.

Invariant: an address that is not known to be public is not public.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last four bytes
_LOCAL = ("127.0.0.1",)


def is_public(address: str) -> bool:
    """Whether `address` is a unicast address of the public Internet.

    Private, loopback, link-local, multicast, unspecified, shared (CGNAT), reserved and documentation
    ranges are not, and neither is an IPv6 address that leads to such an IPv4 address.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    inner = _inner(ip)
    return _is_global(ip if inner is None else inner)


def _inner(ip: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to an IPv6 address end up at: mapped, 6to4, NAT64."""
    if isinstance(ip, IPv4Address):
        return None
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


def _is_global(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv6Address) and ip.is_site_local:
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def literal(host: str) -> str | None:
    """The address that `host` (`127.0.0.1`, `[::1]`) is, or None for a name."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(ip_address(bare))
    except ValueError:
        return None


def is_name(host: str) -> bool:
    """Whether the DNS can be asked for `host`: ASCII, labels of 1 to 63 bytes, 253 in all."""
    return (
        host.isascii()
        and 0 < len(host) <= 253
        and all(0 < len(label) < 64 for label in host.split("."))
        and not any(character <= " " or character == "\x7f" or character == "\\" for character in host)
    )


def read_hosts_file(path: Path) -> dict[str, tuple[str, ...]]:
    """Names and addresses of a file like /etc/hosts, IPv4 first; nothing when there is no such file."""
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
    return {name: _preferred(addresses) for name, addresses in found.items()}


def _preferred(addresses: list[str]) -> tuple[str, ...]:
    fours = tuple(address for address in addresses if ":" not in address)
    return fours or tuple(addresses)


def local(host: str, hosts_file: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The addresses of a name this machine knows itself: the hosts file, then `localhost` (RFC 6761)."""
    known = hosts_file.get(host)
    if known is None and (host == "localhost" or host.endswith(".localhost")):
        return _LOCAL
    return known
