"""Connections are a budget, and slow servers share a part of it, so that fast servers never wait for them.

A server that sends a byte now and then holds a connection for minutes. A few hundred of them would hold all connections
(the delay attack; IRLbot, section 1.2). Therefore there are two kinds of places. Most *fast* places are for hosts whose
last page came fast. A request there that takes longer than `SLOW_S` moves to the *other* places. These hold slow
requests, and newcomers that find no fast place. If they are full and a newcomer waits, one request that had its time is
cut: the oldest of the domain that has most of them.

Called by the fetcher. Decides and does nothing: it holds no connection and reads no clock. `Admission` says
which host of the workbench is next to have one.

Invariant: every host that began and did not end is in `_fast`, `_others` or `_cut`, once.
"""

import resource
from collections import Counter, deque

from fyke.core.errors import ConfigurationError
from fyke.fetcher.host import Host
from fyke.fetcher.turns import SLOW_S
from fyke.fetcher.workbench import Workbench

OTHERS_SHARE = 3  # other places for each fast one
NEWCOMERS_SHARE = 0.75  # of the fast places, for hosts that did not prove fast
LEAST_OTHER_FILES = 64
KEPT_SHARE = 4  # kept connections for each fast place
KEPT_OF_ADDRESS = 8  # connections to a port of an address, which is asked one thing at a time
OTHER_FILES = 200  # files open besides connections


def other_connections(connections: int) -> int:
    """Return the number of other places beside `connections` that this process's limit of open files allows.

    Raises ConfigurationError if the limit does not even allow `connections`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = (1 + OTHERS_SHARE + KEPT_SHARE) * connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft != resource.RLIM_INFINITY and soft < connections + LEAST_OTHER_FILES:
        raise ConfigurationError(
            f"fetch.connections = {connections}: this process may have {soft} files open; raise that limit (ulimit -n),"
            " or set fewer connections"
        )
    if soft == resource.RLIM_INFINITY:
        return OTHERS_SHARE * connections
    return max(1, min(OTHERS_SHARE * connections, soft - OTHER_FILES - 2 * connections))


def kept_connections(connections: int, others: int) -> int:
    """Return how many idle connections are kept, beside `connections` and `others` that may be under way."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = KEPT_SHARE * connections
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft - OTHER_FILES - connections - others))


class Connections:
    """`most` fast places, and `others_most` beside them for newcomers and slow servers."""

    def __init__(self, most: int, others_most: int) -> None:
        self._most = most
        self._most_others = self._others_most = others_most
        self._fast: dict[Host, float] = {}  # since when, in that order
        self._others: dict[Host, float] = {}
        self._cut: dict[Host, float] = {}  # whose end is on its way
        self._newcomers = 0  # of the fast
        self._of_domain: Counter[int] = Counter()  # of the others

    def __repr__(self) -> str:
        return f"Connections({len(self._fast)} of {self._most}, and {len(self._others)} others)"

    def fit(self, room: int) -> None:
        """Allow at most `room` connections now; those for fast hosts come first."""
        self._others_most = max(1, min(self._most_others, room - self._most))

    @property
    def free(self) -> bool:
        """True if any request may begin."""
        return len(self._fast) < self._most or len(self._others) < self._others_most

    def free_for(self, host: Host) -> bool:
        """Return whether a request to `host` may begin."""
        return self._fast_for(host) or (not host.quick and len(self._others) < self._others_most)

    def _fast_for(self, host: Host) -> bool:
        return len(self._fast) < self._most and (host.quick or self._newcomers < int(self._most * NEWCOMERS_SHARE))

    def begin(self, host: Host, now: float) -> None:
        """Give a place to `host`, to which a request begins."""
        if self._fast_for(host):
            self._fast[host] = now
            self._newcomers += not host.quick
        else:
            self._join_others(host, now)

    def end(self, host: Host, now: float, *, page: bool = True) -> None:
        """Free the place of `host`. Its request was for a `page`, or for robots.txt, which proves no host fast: it is
        short, and a server that wants to hold us gives it at once."""
        if host in self._fast:
            began = self._leave_fast(host)
        elif host in self._others:
            began = self._leave_others(host)
        else:
            began = self._cut.pop(host)
        host.quick = now - began <= SLOW_S and (page or host.quick)

    def _leave_fast(self, host: Host) -> float:
        self._newcomers -= not host.quick
        return self._fast.pop(host)

    def _join_others(self, host: Host, began: float) -> None:
        self._others[host] = began
        self._of_domain[host.domain_key] += 1

    def _leave_others(self, host: Host) -> float:
        self._of_domain[host.domain_key] -= 1
        if not self._of_domain[host.domain_key]:
            del self._of_domain[host.domain_key]
        return self._others.pop(host)

    def changes_at(self, now: float) -> float | None:
        """Return when the next request will become slow; None if none will."""
        ends = (began + SLOW_S for places in (self._fast, self._others) for began in places.values())
        return next((end for end in ends if end > now), None)

    def doubled(self, before: float, now: float, awake_since: float) -> list[tuple[Host, float]]:
        """Return the hosts of slow requests that have been under way for a further power of two seconds since `before`,
        each with the seconds. The process stood still until `awake_since`."""
        begins = ((host, max(began, awake_since)) for host, began in self._others.items())
        times = ((host, now - began, max(0.0, before - began)) for host, began in begins)
        return [
            (host, held_s)
            for host, held_s, held_before_s in times
            if held_s >= SLOW_S and int(held_s).bit_length() > int(held_before_s).bit_length()
        ]

    def sort_out(self, now: float, waiting: int) -> list[Host]:
        """Move hosts that took too long out of the fast places. Returns those whose requests must be cut, so that there
        is room for the others and for one of `waiting` newcomers."""
        while self._fast and now - next(iter(self._fast.values())) >= SLOW_S:
            host = next(iter(self._fast))
            self._join_others(host, self._leave_fast(host))
        cut: list[Host] = []
        while len(self._others) + (waiting > 0) > self._others_most:
            victim = self._slowest(now)
            if victim is None:
                break
            self._cut[victim] = self._leave_others(victim)
            cut.append(victim)
        return cut

    def _slowest(self, now: float) -> Host | None:
        """Return the oldest host of the domain that has most of the other places, if it had its time."""
        slow = (host for host, began in self._others.items() if now - began >= SLOW_S)
        return max(slow, key=lambda host: self._of_domain[host.domain_key], default=None)


class Admission:
    """Hosts of `bench` whose turn it is, as far as there are `places`; hosts without one wait, parked."""

    def __init__(self, places: Connections, bench: Workbench) -> None:
        self._places = places
        self._bench = bench
        self._held_up: tuple[deque[Host], deque[Host]] = deque(), deque()  # newcomers and slow hosts, then fast ones

    def __repr__(self) -> str:
        return f"Admission({self._places!r}, {self.newcomers} newcomers held up)"

    @property
    def held_up(self) -> bool:
        """True if any host waits for a place."""
        return any(self._held_up)

    @property
    def newcomers(self) -> int:
        """Number of held-up hosts that did not prove fast."""
        return len(self._held_up[False])

    def next(self, now: float) -> Host | None:
        """Return a host that may be asked now and has a place, or None."""
        for held_up in self._held_up:
            if held_up and self._places.free_for(held_up[0]):
                host = held_up.popleft()
                host.parked = False
                return host
        while (found := self._bench.next(now)) is not None and not self._places.free_for(found):
            self._bench.park(found)
            self._held_up[found.quick].append(found)
        return found
