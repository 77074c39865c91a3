"""When requests under way end: the future of a simulation, in slices of virtual time.

`VirtualFetcher` notes each request that begins and asks, slice by slice, for the requests that have ended. A list per
slice costs one append a request. A heap would also sort within a slice, which nobody needs.

Invariant: `due(now)` gives each noted request once, when `now` is not before its end.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from fyke.core.visits import Visit
from fyke.fetcher.host import Host


class PendingRequest(NamedTuple):
    """A request under way, and how it will end."""

    at: float
    host: Host
    visit: Visit
    end: int  # a `VisitEnd`
    duration_s: float


class Calendar:
    """The requests under way, by the slice of `slice_s` seconds in which they end."""

    def __init__(self, slice_s: float) -> None:
        self.slice_s = slice_s
        self._slices: dict[int, list[PendingRequest]] = {}
        self._count = 0

    def __repr__(self) -> str:
        return f"Calendar({self._count} under way)"

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[PendingRequest]:
        """Yield all requests under way."""
        for endings in self._slices.values():
            yield from endings

    def note(self, endings: list[PendingRequest]) -> None:
        """Note requests that began."""
        slices = self._slices
        for ending in endings:
            slices.setdefault(math.ceil(ending.at / self.slice_s), []).append(ending)
        self._count += len(endings)

    def due(self, now: float) -> list[PendingRequest]:
        """Remove and return the requests that have ended by `now`."""
        last = math.floor(now / self.slice_s)
        ended = [
            ending for number in sorted(n for n in self._slices if n <= last) for ending in self._slices.pop(number)
        ]
        self._count -= len(ended)
        return ended

    def next_due(self) -> float | None:
        """Return when `due` will next have a request, or None if nothing is under way."""
        return min(self._slices) * self.slice_s if self._slices else None
