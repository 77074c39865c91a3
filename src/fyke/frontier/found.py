"""Which known pages brought links to pages that nobody had met: what `revisit.finds` is made of.

URL-seen tells of the new URLs it lets pass, by the page each was found on (`note`); once that page's visit is over, it
is added up (`learn`). Both are Drums by the page's key, of pages alone that brought any. Links of a first visit do not
count. Invariant: each new URL counts once, for the page that was first to link to it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fyke.core.batches import U64, Mask
from fyke.disk.drum import Drum
from fyke.disk.operations import Combine
from fyke.disk.store import Store
from fyke.frontier.revisit.belief import Column
from fyke.frontier.revisit.finds import brought, rates

NEW = np.dtype([("links", "<u4")])  # since the page's visits were last learned from
FIND = np.dtype([("links", "<f4"), ("time", "<f4")])  # new links that a page brought, in so many seconds
USUAL_S = 300 * 86400.0  # before a page brings a new link of which nothing is known


class NewLinks:
    """New links by the page that brought them."""

    def __init__(self, store: Store, memory_bytes: int, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._new = Drum(store, "new", saved.get("new"), value=NEW, combine=Combine.ADD, memory_bytes=memory_bytes)
        self._finds = Drum(store, "finds", saved.get("finds"), value=FIND, memory_bytes=memory_bytes)
        self._first, self._time = saved.get("sums", (0.0, 0.0))  # of pages that had brought none: links, seconds

    def __repr__(self) -> str:
        return f"NewLinks({len(self._finds)} pages)"

    def note(self, pages: U64) -> None:
        """A URL that nobody had met was found on each of `pages` (uint64[n], with repeats)."""
        keys, counts = np.unique(pages, return_counts=True)
        self._new.update(keys, counts.astype(np.uint32).view(NEW))
        if self._new.full:
            self._new.settle()

    def learn(self, keys: U64, again: Mask, since: Column) -> Column:
        """Learn from visits to the pages with `keys` [n]; those visited `again` were visited `since` seconds before.

        Returns the rate, in links a second, at which each page is believed to bring new links from now on.
        """
        if not self._new.pending and not len(self._new):
            self._time += float(since[again].sum())
            return np.zeros(len(keys))
        new = self._new.values_of(keys)["links"]
        before = self._finds.values_of(keys)
        counted = np.where(again, new, 0).astype(np.float64)
        links, time = brought(before["links"].astype(np.float64), before["time"].astype(np.float64), counted, since)
        first = again & (before["links"] == 0)
        self._first += float(counted[first].sum())
        self._time += float(since[first].sum())
        finds = np.zeros(len(keys), FIND)
        finds["links"], finds["time"] = np.where(again, links, before["links"]), np.where(again, time, before["time"])
        kept = finds["links"] > 0
        self._finds.update(keys[kept], finds[kept])
        self._new.update(keys[new > 0], (np.uint32(0) - new[new > 0]).view(NEW))  # what adds up to nothing
        return self._rates(finds)

    def rates_of(self, keys: U64) -> Column:
        """The same, as of their last visits."""
        return self._rates(self._finds.values_of(keys))

    def _rates(self, finds: np.ndarray[Any, Any]) -> Column:
        common = (self._first + 1.0) / (self._time + USUAL_S)
        return rates(finds["links"].astype(np.float64), finds["time"].astype(np.float64), common)

    def settle(self) -> None:
        """Write down what waits."""
        self._new.settle()
        self._finds.settle()

    def state(self) -> dict[str, Any]:
        return {"new": self._new.state(), "finds": self._finds.state(), "sums": [self._first, self._time]}

    def close(self) -> None:
        self._new.close()
        self._finds.close()
