"""How many hosts of a domain may begin before visits there end?

The robots gate asks before it has the rules of an origin brought. A domain may have a host for every name. Each host
costs its rules and a page before it is known what it brings, and all would begin long before the first was read. So a
domain begins slowly, as a sender does on an unknown network (RFC 5681, section 3.1): `FIRST` hosts, and one more for
each visit there that is over, up to `AT_ONCE` begun and not visited. So their number doubles with each round of visits.
Hosts that bring pages make room by themselves, because each is visited again. A domain in doubt, whose hosts lately
brought little new, begins no more than `FIRST` at a time.

Some hosts begin and no visit of them ends: a person blocks them, or they turn out to be traps. So every `HALVED_S`
seconds half of the begun hosts are forgotten.

Bounded: `PLACES` counters, which domains share when there are more. Lost at a restart, when nothing is on its way.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, Mask, u64

FIRST = 8
AT_ONCE = 64
HALVED_S = 60.0
PLACES = 1 << 16


class Newcomers:
    """For each domain, the number of hosts begun without a visit that ended since."""

    def __init__(self) -> None:
        self._begun = np.zeros(PLACES, np.int64)
        self._most = np.full(PLACES, FIRST, np.int64)  # begun hosts, at most
        self._refused = np.zeros(PLACES, np.bool_)  # whether a host had to wait since the last visit there ended
        self._halved_at = 0.0

    def __repr__(self) -> str:
        return f"Newcomers({int(self._begun.sum())} hosts)"

    def forget(self, now: float) -> bool:
        """Forget half of the begun hosts, if that is due at `now` (unix seconds). Returns whether it was."""
        if now < self._halved_at + HALVED_S:
            return False
        self._begun //= 2
        self._halved_at = now
        return True

    def begin(self, hosts: pa.RecordBatch, are_in_doubt: Callable[[pa.RecordBatch], Mask]) -> Mask:
        """Return which of `hosts` (n URLs, one of each host) begin now: bool[n]. For domains with many hosts, asks
        which `are_in_doubt`."""
        begun = np.zeros(hosts.num_rows, np.bool_)
        places = u64(hosts, "domain") % np.uint64(PLACES)
        unique, which, counts = np.unique(places, return_inverse=True, return_counts=True)
        many = np.flatnonzero((self._begun[unique] + counts > FIRST)[which])
        limits = self._most[places]
        if len(many):
            limits[many[are_in_doubt(hosts.take(pa.array(many)))]] = FIRST
        for row, (place, limit) in enumerate(zip(places.tolist(), limits.tolist(), strict=True)):
            begun[row] = self._begun[place] < limit
            self._begun[place] += begun[row]
            self._refused[place] |= not begun[row]
        return begun

    def over(self, domains: U64, *, asked: bool = True) -> bool:
        """Note that visits to these domains (uint64[n], with repeats) are over, or, if not `asked`, that their hosts
        could not be asked. Returns whether a host of one of the domains had to wait."""
        places, counts = np.unique(domains % np.uint64(PLACES), return_counts=True)
        if asked:
            self._most[places] = np.minimum(self._most[places] + counts, AT_ONCE)
        self._begun[places] = np.maximum(self._begun[places] - counts, 0)
        waited = bool(self._refused[places].any())
        self._refused[places] = False
        return waited
