"""Of each domain, how many URLs wait as traps, how many of its pages were read, and how many traps were tried.

What waits has to go out some time: all of it when nothing else is left, a share of it beside sites that grow without
end. Then the domains with the least go first. A site that was wrongly taken for a trap has some pages that wait, a trap
has as many as were found, and finds more as it is read. What went on *in vain* tells them apart as well: with every
`VAIN` pages in a row that brought nothing, a domain counts as if twice as many had waited.

A trap is tried again now and then, which is bounded by what was read and not by what was found: each page of a trap
leads to a hundred others. `TRIED` pages that were read pay for one, and twice as many for one of the same shape: else
what is most would be all that is tried, and it tells nothing of what is beside it.

Bounded: `PLACES` records, which domains share when there are more; who shares one is taken for larger than it is. Of
shapes, and of what went on in vain, a count for each of `PLACES`, lost at a restart.
"""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask
from fyke.disk.store import Store

PLACES = 1 << 16
TRIED = 32
TRIED_ALIKE = 2 * TRIED  # the same, for one of a shape that was tried
FREE = 2  # are tried before it is: a site of which little was read may have been misjudged
FEW = 64  # that wait of a domain are few in any case
TIMES = 4  # and so many times the least
VAIN = 8
MOST_DOUBLED = 10  # times
_RECORD = np.dtype([("place", "<u4"), ("waits", "<u4"), ("waited", "<u4"), ("read", "<u4"), ("tried", "<u4")])


class TrapTally:
    """The records, on a file of `store`."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._store = store
        self._file = str(saved.get("file", ""))
        self._records = np.zeros(PLACES, _RECORD)
        known = store.array(self._file, _RECORD, int(saved.get("records", 0)))
        self._records[known["place"]] = known
        self._records["place"] = np.arange(PLACES)
        self._tried = np.zeros(PLACES, np.uint32)  # by shape
        self._vain = np.zeros(PLACES, np.uint32)  # by domain
        self._changed = False
        self._few = 0  # that wait of a domain are few, as long as `_left` rows were not looked at
        self._left = 0

    def __repr__(self) -> str:
        return f"TrapTally({int(self._records['waits'].sum())} URLs that wait)"

    def wait(self, domains: U64) -> None:
        """URLs of these domains (uint64[n], with repeats) wait from now on."""
        self._add("waits", domains, 1)
        self._add("waited", domains, 1)

    def go_on(self, domains: U64) -> None:
        """URLs of these domains wait no more."""
        self._add("waits", domains, -1)

    def read(self, domains: U64) -> None:
        """Pages of these domains were read."""
        self._add("read", domains, 1)

    def _add(self, name: str, domains: U64, sign: int) -> None:
        places, counts = np.unique(domains % np.uint64(PLACES), return_counts=True)
        now = self._records[name][places].astype(np.int64) + sign * counts
        self._records[name][places] = np.clip(now, 0, 2**32 - 1)
        self._changed |= len(places) > 0

    def may_try(self, domains: U64, owns: U64) -> Mask:
        """Which of URLs of these domains and own shapes (uint64[n] each) are tried, though they are traps: bool[n].
        They count as that."""
        tried = np.zeros(len(domains), np.bool_)
        rows = zip((domains % np.uint64(PLACES)).tolist(), (owns % np.uint64(PLACES)).tolist(), strict=True)
        for row, (place, own) in enumerate(rows):
            record = self._records[place]
            paid = int(record["read"]) + FREE * TRIED
            if record["tried"] * TRIED <= paid and self._tried[own] * TRIED_ALIKE < paid:
                record["tried"] += 1
                self._tried[own] += 1
                tried[row] = True
        return tried

    def went_on(self, domains: U64, fresh: Mask) -> None:
        """Pages of these domains (uint64[n]), which had waited, were read, and were fresh or not (bool[n])."""
        places = domains % np.uint64(PLACES)
        np.add.at(self._vain, places, 1)
        self._vain[places[fresh]] = 0

    @property
    def least(self) -> int:
        """Of the domains of which any waits, the least that ever did of one."""
        return int(self._claims(np.flatnonzero(self._records["waits"])).min(initial=1 << 30))

    def _claims(self, places: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """How many ever waited in these places (integers[n]), and how many more it counts for: int64[n]."""
        doubled = np.minimum(self._vain[places] // VAIN, MOST_DOUBLED)
        claims: npt.NDArray[np.int64] = self._records["waited"][places].astype(np.int64) << doubled
        return claims

    def idle(self, domains: Set[int]) -> int:
        """Of how many domains URLs wait that are not among these."""
        waiting = np.flatnonzero(self._records["waits"])
        return len(waiting) - int(np.isin([domain % PLACES for domain in domains], waiting).sum())

    def are_few(self, domains: U64) -> Mask:
        """Of which of these domains (uint64[n], of what is looked at of all that waits) little waits: bool[n]."""
        if self._left <= 0:
            self._left = int(self._records["waits"].sum())
            self._few = max(FEW, TIMES * self.least)
        self._left -= len(domains)
        few: Mask = self.waited(domains) <= self._few
        return few

    def waited(self, domains: U64) -> npt.NDArray[np.int64]:
        """Of each of these domains (uint64[n]), how many ever waited, with what it counts for: int64[n]."""
        return self._claims(domains % np.uint64(PLACES))

    def are_fewest(self, domains: U64) -> Mask:
        """Of which of these domains (uint64[n > 0]) no more than `TIMES` the least of them waits: bool[n]."""
        waited = self.waited(domains)
        fewest: Mask = waited <= TIMES * waited.min()
        return fewest

    def state(self) -> dict[str, Any]:
        known = self._records[(self._records["read"] > 0) | (self._records["waited"] > 0)]
        if self._changed:
            self._file = self._store.write_array("trap-domains", known, self._file)
            self._changed = False
        return {"file": self._file, "records": len(known)}
