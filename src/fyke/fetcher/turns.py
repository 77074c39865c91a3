"""Whose turn is it at an address? Its domains share it, and not its hosts.

Many sites may have one address, and a stranger may give any name the address of somebody's site. So the domains whose
hosts wait at an address take turns, however many hosts each has there. And a domain whose request was slow leaves the
address to the others afterwards: for as long as it held it, once for each domain that waits by then.

Called by the workbench. Invariant: a host that was put is taken once.
"""

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fyke.fetcher.host import Host

SLOW_S = 1.0  # a request that takes longer is slow
MOST_LEFT_S = 3600.0  # for which a domain leaves an address to others


class AddressTurns:
    """The hosts that wait at an address. Times are unix seconds."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[Host]] = {}  # by domain, that whose turn it is first
        self._leaves_until: dict[int, float] = {}  # by domain
        self._hosts = 0

    def __repr__(self) -> str:
        return f"AddressTurns({self._hosts} hosts of {len(self._waiting)} domains)"

    def __len__(self) -> int:
        """Return the number of hosts that wait."""
        return self._hosts

    def __iter__(self) -> Iterator["Host"]:
        return chain.from_iterable(self._waiting.values())

    def put(self, host: "Host") -> None:
        """Let `host` wait, behind the hosts of its domain."""
        self._waiting.setdefault(host.domain_key, deque()).append(host)
        self._hosts += 1

    def take(self) -> "Host":
        """Take out the host whose turn it is. Its domain's next turn comes after those of the others."""
        domain = next(iter(self._waiting))
        hosts = self._waiting.pop(domain)
        host = hosts.popleft()
        self._hosts -= 1
        if hosts:
            self._waiting[domain] = hosts
        return host

    def before(self, domain: int) -> int:
        """Return how many turns may come before that of another host of `domain`, at most."""
        own = len(self._waiting.get(domain, ()))
        return min(self._hosts, (own + 1) * len(self._waiting))

    def held(self, domain: int, now: float, duration_s: float) -> None:
        """Note that a request of `domain`, which took `duration_s`, ended `now`."""
        others = len(self._waiting) - (domain in self._waiting)
        if others and duration_s > SLOW_S:
            self._leaves_until[domain] = now + min(others * duration_s, MOST_LEFT_S)

    def leaves_until(self, domain: int) -> float:
        """Return until when `domain` leaves the address to others; a time that is over if it does not."""
        return self._leaves_until.get(domain, 0.0)

    def prune(self, now: float) -> None:
        """Forget domains that may come again."""
        self._leaves_until = {domain: until for domain, until in self._leaves_until.items() if until > now}
