"""How many hosts of a domain are begun at a time, until visits there end.

A domain may have a host for every name. Each costs its rules and a page before it is known what it brings, and all that
are found would begin at once, long before the first of them was read: so a domain has `AT_ONCE` of them, and each visit
there that is over lets another one begin. Where hosts bring pages that grows by itself, for each that was begun is
visited again. Of a domain in doubt, whose hosts lately brought little that was new, `FEW` are begun at a time.

Some begin and no visit of them ends: a person blocks them, or they turn out to be traps. So every `HALVED_S` seconds
half of what was begun is forgotten.

Asked by the robots gate, for each origin whose rules are wanted. Bounded: `PLACES` counters, which domains share when
there are more. Lost at a restart, when nothing is on its way.
"""

import numpy as np

from fyke.core.batches import U64, Mask

AT_ONCE = 64
FEW = 8
HALVED_S = 60.0
PLACES = 1 << 16


class Newcomers:
    """Of each domain, how many hosts were begun and no visit ended since."""

    def __init__(self) -> None:
        self._begun = np.zeros(PLACES, np.int64)
        self._refused = np.zeros(PLACES, np.bool_)  # whether one had to wait, since a visit there was over
        self._halved_at = 0.0

    def __repr__(self) -> str:
        return f"Newcomers({int(self._begun.sum())} hosts)"

    def forget(self, now: float) -> bool:
        """Forget half of what was begun, if that is due at `now` (unix seconds); whether it was."""
        if now < self._halved_at + HALVED_S:
            return False
        self._begun //= 2
        self._halved_at = now
        return True

    def begin(self, domains: U64, in_doubt: Mask) -> Mask:
        """Of hosts of these domains (uint64[n], with repeats), some `in_doubt` (bool[n]), those that may begin, and do:
        bool[n]."""
        begun = np.zeros(len(domains), np.bool_)
        for row, place in enumerate((domains % np.uint64(PLACES)).tolist()):
            begun[row] = self._begun[place] < (FEW if in_doubt[row] else AT_ONCE)
            self._begun[place] += begun[row]
            self._refused[place] |= not begun[row]
        return begun

    def over(self, domains: U64) -> bool:
        """Visits to these domains (uint64[n], with repeats) are over, or come to nothing for now. Returns whether a
        host of one of them had to wait."""
        places, counts = np.unique(domains % np.uint64(PLACES), return_counts=True)
        self._begun[places] = np.maximum(self._begun[places] - counts, 0)
        waited = bool(self._refused[places].any())
        self._refused[places] = False
        return waited
