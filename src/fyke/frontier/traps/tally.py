"""For each domain, how many URLs wait as traps, how many pages were read, and how many traps were tried.

Some traps must go out: all if nothing else is left, a share beside sites without an end (`waiting`). The domain with
the smallest *claim*, the number of its URLs that ever waited, goes first: a site wrongly taken for a trap has some
pages that wait; a trap has as many as were found, and finds more as it is read. Let-go pages that bring nothing tell
them apart too: each `VAIN` of them in a row double the claim of their domain.

A trap is tried now and then: it goes out to see what it brings. Pages that were read bound these tries, and not URLs
that were found, because each page of a trap leads to a hundred others. `TRIED` pages of a domain pay for one try, and
twice as many for a try of the same shape; otherwise only the most frequent shape would be tried, which tells nothing of
the others.

Bounded: `PLACES` records. Domains share them if there are more, and then count as larger than they are. Tries by shape
and let-go pages that brought nothing have `PLACES` counts each, lost at a restart.
"""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask
from fyke.disk.store import Store

PLACES = 1 << 16
TRIED = 32
TRIED_ALIKE = 2 * TRIED  # the same for a shape
FREE = 2  # tries that need no pages to pay for them: a site may be misjudged while little of it was read
FEW = 64  # the largest claim that is small in any case
TIMES = 4  # a claim of up to this many times the least one is small, too
VAIN = 8
MOST_DOUBLED = 10  # times, at most
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
        self._few = 0  # the largest claim that is small, until `_left` more rows were looked at
        self._left = 0

    def __repr__(self) -> str:
        return f"TrapTally({int(self._records['waits'].sum())} URLs that wait)"

    def note_waiting(self, domains: U64) -> None:
        """Note that URLs of these domains (uint64[n], with repeats) wait from now on."""
        self._add("waits", domains, 1)
        self._add("waited", domains, 1)

    def note_gone(self, domains: U64) -> None:
        """Note that URLs of these domains wait no more."""
        self._add("waits", domains, -1)

    def note_read(self, domains: U64) -> None:
        """Note that pages of these domains were read."""
        self._add("read", domains, 1)

    def _add(self, name: str, domains: U64, sign: int) -> None:
        places, counts = np.unique(domains % np.uint64(PLACES), return_counts=True)
        now = self._records[name][places].astype(np.int64) + sign * counts
        self._records[name][places] = np.clip(now, 0, 2**32 - 1)
        self._changed |= len(places) > 0

    def may_try(self, domains: U64, owns: U64) -> Mask:
        """Return which traps of these domains and own shapes (uint64[n] each) are tried: bool[n]. Counts them as
        tried."""
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

    def note_let_go(self, domains: U64, fresh: Mask) -> None:
        """Note that let-go pages of these domains (uint64[n]) were read, and were fresh or not (bool[n])."""
        places = domains % np.uint64(PLACES)
        np.add.at(self._vain, places, 1)
        self._vain[places[fresh]] = 0

    @property
    def least(self) -> int:
        """Least claim of a domain with waiting URLs."""
        return int(self._claims_at(np.flatnonzero(self._records["waits"])).min(initial=1 << 30))

    def _claims_at(self, places: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return the claims at these places (integers[n]): how many URLs ever waited, doubled for every `VAIN` let-go
        pages in a row that brought nothing. int64[n]."""
        doubled = np.minimum(self._vain[places] // VAIN, MOST_DOUBLED)
        claims: npt.NDArray[np.int64] = self._records["waited"][places].astype(np.int64) << doubled
        return claims

    def others_waiting(self, domains: Set[int]) -> int:
        """Return how many other domains than these have URLs that wait."""
        waiting = np.flatnonzero(self._records["waits"])
        return len(waiting) - int(np.isin([domain % PLACES for domain in domains], waiting).sum())

    def have_small_claims(self, domains: U64) -> Mask:
        """Return which of these domains (uint64[n], of the rows that a look at the queue took) have a small claim, and
        so likely an end: bool[n]. The limit is computed anew once as many rows were looked at as wait."""
        if self._left <= 0:
            self._left = int(self._records["waits"].sum())
            self._few = max(FEW, TIMES * self.least)
        self._left -= len(domains)
        few: Mask = self.claims(domains) <= self._few
        return few

    def claims(self, domains: U64) -> npt.NDArray[np.int64]:
        """Return the claim of each of these domains (uint64[n]): int64[n]."""
        return self._claims_at(domains % np.uint64(PLACES))

    def have_smallest_claims(self, domains: U64) -> Mask:
        """Return which of these domains (uint64[n > 0]) have a claim of at most `TIMES` the least of them: bool[n]."""
        claims = self.claims(domains)
        fewest: Mask = claims <= TIMES * claims.min()
        return fewest

    def state(self) -> dict[str, Any]:
        known = self._records[(self._records["read"] > 0) | (self._records["waited"] > 0)]
        if self._changed:
            self._file = self._store.write_array("trap-domains", known, self._file)
            self._changed = False
        return {"file": self._file, "records": len(known)}
