"""Known pages that brought links to new pages: the data of `revisit.finds`.

URL-seen tells which page each new URL was found on (`note`). Once a visit to that page is over, its new links are added
to its history (`learn`). Two Drums by the page's key have the new links and the history, only for pages that brought
any. Links of a first visit do not count. Invariant: each new URL counts once, for the first page that linked to it.
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

NEW = np.dtype([("links", "<u4")])  # since the last `learn` of the page
FIND = np.dtype([("links", "<f4"), ("time", "<f4")])  # new links that a page brought, and seconds
USUAL_S = 300 * 86400.0  # before an unknown page brings a new link


class NewLinks:
    """New links by the page that brought them."""

    def __init__(self, store: Store, memory_bytes: int, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._new = Drum(store, "new", saved.get("new"), value=NEW, combine=Combine.ADD, memory_bytes=memory_bytes)
        self._finds = Drum(store, "finds", saved.get("finds"), value=FIND, memory_bytes=memory_bytes)
        self._first, self._time = saved.get("sums", (0.0, 0.0))  # of pages without new links before: links, seconds

    def __repr__(self) -> str:
        return f"NewLinks({len(self._finds)} pages)"

    def note(self, pages: U64) -> None:
        """Note that a new URL was found on each of `pages` (uint64[n], with repeats)."""
        keys, counts = np.unique(pages, return_counts=True)
        self._new.update(keys, counts.astype(np.uint32).view(NEW))
        if self._new.full:
            self._new.settle()

    def learn(self, keys: U64, again: Mask, since: Column) -> Column:
        """Learn from visits to the pages with `keys` [n]; those visited `again` were visited `since` seconds before.

        Returns the believed rate of new links of each page from now on, in links a second.
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
        self._new.update(keys[new > 0], (np.uint32(0) - new[new > 0]).view(NEW))  # adds up to 0
        return self._rates(finds)

    def rates_of(self, keys: U64) -> Column:
        """Return the believed rates as of the pages' last visits."""
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
