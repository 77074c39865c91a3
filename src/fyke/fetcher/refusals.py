"""Visits that the rules of their hosts forbid, until they are ended: a portion in each turn.

One sitemap may name a hundred thousand pages of a host that forbids all, and to end a visit takes as long as to read a
short page. Filled by the loop, emptied by the fetcher. Each visit is a few numbers, as the frontier sent it. Bounded:
by the frontier's window. Invariant: each visit that was put in comes out once, in order, unless it is taken back.
"""

from collections import deque
from collections.abc import Callable

import pyarrow as pa

from fyke.core.batches import EMPTY, U64, Mask, concat, keep, u64

PORTION = 256


class Refusals:
    """Visits (schema `URLS`) to be ended."""

    def __init__(self) -> None:
        self._batches: deque[pa.RecordBatch] = deque()

    def __repr__(self) -> str:
        return f"Refusals({len(self)} visits)"

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._batches)

    def put(self, visits: pa.RecordBatch) -> None:
        """Let `visits` wait to be ended."""
        if visits.num_rows:
            self._batches.append(visits)

    def next(self) -> pa.RecordBatch:
        """Take out the next `PORTION`."""
        portion, room = [EMPTY], PORTION
        while self._batches and room:
            batch = self._batches.popleft()
            portion.append(batch[:room])
            if batch.num_rows > room:
                self._batches.appendleft(batch[room:])
            room -= portion[-1].num_rows
        return concat(portion)

    def take_back(self, column: str, wanted: Callable[[U64], Mask]) -> pa.RecordBatch:
        """Take out the visits whose `column` is `wanted`: they are not ended."""
        batches = [*self._batches]
        masks = [wanted(u64(batch, column)) for batch in batches]
        self._batches.clear()
        for batch, mask in zip(batches, masks, strict=True):
            self.put(keep(batch, ~mask))
        return concat([EMPTY, *(keep(batch, mask) for batch, mask in zip(batches, masks, strict=True))])
