"""Connections are a budget, and slow servers share a part of it: who answers fast never waits for them.

A server that sends a byte now and then holds a connection for minutes; a few hundred of them would hold all there are
(the delay attack; IRLbot, section 1.2). So there are two kinds of places. Most of the first are for hosts whose last
page came fast; a request there that takes longer than `slow_s` leaves its place, and goes on among the others. These
have places beside, for slow requests and for newcomers that find no place among the fast. Where they are full and a
newcomer waits, one is cut that had its time: the oldest of the domain that has most of them.

Called by the fetcher's engine; decides and does nothing: it holds no connection and reads no clock. `Admission` says
which host of the workbench is next to have one.

Invariant: every host that began and did not end is in `_fast`, `_others` or `_cut`, once.
"""

import resource
from collections import Counter, deque

from fyke.core.errors import ConfigurationError
from fyke.fetcher.host import Host
from fyke.fetcher.workbench import Workbench

SLOW_S = 1.0
OTHERS_SHARE = 3  # places for newcomers and slow ones, for each of a fast one
NEWCOMERS_SHARE = 0.75  # of the fast places, for hosts that did not prove fast
LEAST_OTHER_FILES = 64
KEPT_SHARE = 4  # connections kept for the next visit to their hosts, the same
OTHER_FILES = 200  # that are open besides connections


def other_connections(connections: int) -> int:
    """Places for newcomers and slow ones beside so many, as far as this process may have files open.

    Raises ConfigurationError where it may not even have as many as `connections` take.
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
    """How many connections nobody uses are kept, beside so many and the `others` that may be under way."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = KEPT_SHARE * connections
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft - OTHER_FILES - connections - others))


class Connections:
    """`most` places for those who answer fast, `others_most` beside for newcomers and slow ones."""

    def __init__(self, most: int, others_most: int | None = None, slow_s: float = SLOW_S) -> None:
        self._most = most
        self._most_others = OTHERS_SHARE * most if others_most is None else others_most
        self._others_most = self._most_others
        self._slow_s = slow_s
        self._fast: dict[Host, float] = {}  # since when, in that order
        self._others: dict[Host, float] = {}
        self._cut: dict[Host, float] = {}  # whose end is on its way
        self._newcomers = 0  # of the fast
        self._of_domain: Counter[int] = Counter()  # of the others

    def __repr__(self) -> str:
        return f"Connections({len(self._fast)} of {self._most}, and {len(self._others)} others)"

    def fit(self, room: int) -> None:
        """There may be no more than `room` connections now: those for fast hosts come first."""
        self._others_most = max(1, min(self._most_others, room - self._most))

    @property
    def free(self) -> bool:
        """Whether any request may begin."""
        return len(self._fast) < self._most or len(self._others) < self._others_most

    def free_for(self, host: Host) -> bool:
        """Whether a request to `host` may begin."""
        return self._fast_for(host) or (not host.quick and len(self._others) < self._others_most)

    def _fast_for(self, host: Host) -> bool:
        return len(self._fast) < self._most and (host.quick or self._newcomers < int(self._most * NEWCOMERS_SHARE))

    def begin(self, host: Host, now: float) -> None:
        """A request to `host` begins."""
        if self._fast_for(host):
            self._fast[host] = now
            self._newcomers += not host.quick
        else:
            self._join_others(host, now)

    def end(self, host: Host, now: float, *, page: bool = True) -> None:
        """The request to `host` has ended, for a `page` or for its robots.txt, by which none proves fast: it is short,
        and a server that would hold us gives it at once."""
        if host in self._fast:
            began = self._leave_fast(host)
        elif host in self._others:
            began = self._leave_others(host)
        else:
            began = self._cut.pop(host)
        host.quick = now - began <= self._slow_s and (page or host.quick)

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
        """When a request will have been slow that is not yet, None while there is none."""
        ends = (began + self._slow_s for places in (self._fast, self._others) for began in places.values())
        return next((end for end in ends if end > now), None)

    def sort_out(self, now: float, waiting: int) -> list[Host]:
        """Move hosts that took too long out of the fast places. Returns those whose requests must be cut, so that there
        is room for them and for one of `waiting` newcomers."""
        while self._fast and now - next(iter(self._fast.values())) >= self._slow_s:
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
        """The oldest host of the domain that has most of the other places, if it had its time."""
        slow = (host for host, began in self._others.items() if now - began >= self._slow_s)
        return max(slow, key=lambda host: self._of_domain[host.domain_key], default=None)


class Admission:
    """The hosts of `bench` whose turn it is, as there are `places` for them; those without one wait, parked."""

    def __init__(self, places: Connections, bench: Workbench) -> None:
        self._places = places
        self._bench = bench
        self._held_up: tuple[deque[Host], deque[Host]] = deque(), deque()  # newcomers and slow ones, and others

    def __repr__(self) -> str:
        return f"Admission({self._places!r}, {self.newcomers} newcomers held up)"

    @property
    def held_up(self) -> bool:
        """Whether any host waits for a place."""
        return any(self._held_up)

    @property
    def newcomers(self) -> int:
        """How many of these did not prove fast."""
        return len(self._held_up[False])

    def next(self, now: float) -> Host | None:
        """A host that may be asked now and has a place."""
        for held_up in self._held_up:
            if held_up and self._places.free_for(held_up[0]):
                host = held_up.popleft()
                host.parked = False
                return host
        while (found := self._bench.next(now)) is not None and not self._places.free_for(found):
            self._bench.park(found)
            self._held_up[found.quick].append(found)
        return found
