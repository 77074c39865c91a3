"""Who may be asked though their address is private? Those that a person chose, and no more.

Made by the agent. The resolver asks whether a host may be private at all; the last door before the wire asks whether it
may be at this port. A seed means its host at its own port, spoken to as the seed speaks to it; http and https count as
one, and their ports too. Nobody chose another port of that host, a router's or a database's, or another protocol at
that port, that a stranger's link names. A domain of `dns.private` means all its hosts and ports.
"""

from collections.abc import Sequence

from fyke.core.urls import Locator, UrlParts, split
from fyke.fetcher.addresses import is_in

_WEB = frozenset({80, 443})  # a person who types one is often redirected to the other
_WEB_SCHEMES = frozenset({"http", "https"})


class Chosen:
    """The hosts and ports of `seeds`, a list that may grow, and the domains of `private`."""

    def __init__(self, seeds: Sequence[Locator], private: Sequence[str]) -> None:
        self._seeds = seeds
        self._read = 0
        self._private = tuple(private)
        self._ports: dict[str, set[tuple[str, int]]] = {}

    def __repr__(self) -> str:
        return f"Chosen({len(self._ports)} hosts, {len(self._private)} domains)"

    def host(self, name: str) -> bool:
        """Return whether the host may be private at one port at least."""
        return bool(self._ports_of(name)) or is_in(name.rstrip("."), self._private)

    def port(self, parts: UrlParts) -> bool:
        """Return whether the host of a URL may be private at the URL's port, spoken to by its scheme."""
        asked = _protocol(parts), parts.port
        return asked in self._ports_of(parts.host) or is_in(parts.host.rstrip("."), self._private)

    def _ports_of(self, name: str) -> set[tuple[str, int]]:
        for seed in self._seeds[self._read :]:
            parts = split(seed.url.decode())
            ports = _WEB if parts.port in _WEB else {parts.port}
            self._ports.setdefault(parts.host, set()).update((_protocol(parts), port) for port in ports)
        self._read = len(self._seeds)
        return self._ports.get(name.rstrip("."), set())


def _protocol(parts: UrlParts) -> str:
    return "web" if parts.scheme in _WEB_SCHEMES else parts.scheme
