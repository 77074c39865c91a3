"""Which hosts go slowly? Those without an end in sight, while others have one.

A site that makes up its pages looks like a large one: each page brings new text, and leads to several more
(`fyke.frontier.traps.probes`). A small site is read before either is known. So the few hosts that go on like that while
others have an end get every `RESTS`-th visit that they could have. A large site loses no more than small ones take: if
hosts without an end make more than a share `FEW` of all visits, they are not slow.

A visit to a slow host stands for `RESTS`. Bounded: `MOST` hosts; those that were slow first are forgotten. Lost at a
restart.
"""

from collections.abc import Iterable
from math import inf

import numpy as np

from fyke.core.batches import U64, Mask

RESTS = 8
LEAST_REST_S = 0.05  # that counts: a host that need not rest has its turn about as often, beside many others
FEW = 0.3  # of all visits
LATELY = 256  # visits, of which `FEW` is a share
MOST = 1 << 14


class Slow:
    """The slow hosts, and when each is due."""

    def __init__(self) -> None:
        self._due: dict[int, float] = {}  # unix seconds
        self._endless_hosts: dict[int, None] = {}
        self._endless = FEW  # share of the latest visits to hosts without an end in sight
        self._now = 0.0
        self._alone = True
        self._new: set[int] = set()  # since they were last taken

    def __repr__(self) -> str:
        return f"Slow({len(self._due)} hosts)"

    def __contains__(self, host: int) -> bool:
        return host in self._due

    def is_endless(self, host: int) -> bool:
        """Return whether `host` has no end in sight, slow or not."""
        return host in self._endless_hosts

    def are_endless(self, hosts: U64) -> Mask:
        """Return which of `hosts` (uint64[n]) have no end in sight: bool[n]."""
        if not self._endless_hosts:
            return np.zeros(len(hosts), np.bool_)
        return np.fromiter((host in self._endless_hosts for host in hosts.tolist()), np.bool_, len(hosts))

    def is_due(self, host: int) -> bool:
        """Return whether the slow `host` may be visited again: it had its rests, or nothing else could be visited."""
        return self._alone or self._due[host] <= self._now

    def at(self, now: float, *, alone: bool) -> None:
        """Set the time to `now` (unix seconds), and whether slow hosts are `alone`, so that nothing else could be
        visited."""
        self._now, self._alone = now, alone

    def ended(self, hosts: U64, rests_s: Iterable[float], endless: Mask) -> None:
        """Note that visits to `hosts` ended, which rest for `rests_s` now and are `endless` or not ([n] each)."""
        for host, rest_s, is_endless in zip(hosts.tolist(), rests_s, endless.tolist(), strict=True):
            stands_for = RESTS if self._due.get(host, inf) <= self._now else 1  # others began before it was slow
            if is_endless:
                self._endless_hosts[host] = None
            else:
                self._endless_hosts.pop(host, None)
            self._endless += (is_endless - self._endless) * stands_for / LATELY
            if is_endless and self._endless < FEW:
                if host not in self._due:
                    self._new.add(host)
                self._due[host] = self._now + RESTS * max(LEAST_REST_S, rest_s)
            else:
                self._due.pop(host, None)
        if len(self._due) > MOST:
            self._due = dict(list(self._due.items())[MOST // 2 :])
        if len(self._endless_hosts) > MOST:
            self._endless_hosts = dict.fromkeys(list(self._endless_hosts)[MOST // 2 :])

    def take_new(self) -> set[int]:
        """Return hosts that became slow since the last call: their visits that are out come too soon."""
        new, self._new = self._new, set()
        return new
