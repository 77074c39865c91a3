"""How many pages with a shape in common brought something new? A row for each shape.

The latest pages count most. A shape begins as if all its pages were fresh. It is barren once less than one in `BARREN`
is, and barren no longer with one in `FERTILE`. If every page was fresh, a few stale ones in a row show that there are
no more. If one in three was, as in a forum that shows each thread under several addresses, a few in a row show nothing:
a *steady* shape falls slower by the ratio of its pages to its fresh ones, but no slower than `STEADY` and the number of
its fresh pages allow. Bounded: of more than `most` shapes, the half of `most` with the most pages is kept.
"""

from collections import Counter
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64

MOST_SHAPES = 1 << 17
BARREN = 8  # pages for a fresh one, from which on a shape is barren
FERTILE = 4  # pages for a fresh one, below which it is barren no longer
STEADY = 4  # times as long as others a steady shape takes to fall, at most
COUNT = np.dtype(
    [("key", "<u8"), ("owner", "<u8"), ("pages", "<u4"), ("brought", "<u4"), ("fresh", "<f4"), ("barren", "?")]
)  # `brought`: number of fresh pages; `fresh`: their share, the latest counting most

Counts = npt.NDArray[Any]


class Yields:
    """The share of fresh pages of each shape, the latest counting most: rows found by the shape's key.

    The cost of a page does not grow with the number of shapes. `owners` counts the barren shapes of each owner.
    """

    def __init__(self, after: int, counts: Counts, most: int = MOST_SHAPES) -> None:
        """A shape begins as if all its pages were fresh, and falls to one in `BARREN` by `after` stale ones."""
        self._after = max(after, 1)
        self._most = most
        self._take_in(counts)

    def _take_in(self, counts: Counts) -> None:
        self._rows = np.concatenate([np.zeros(1, COUNT), counts])  # the first stands for unknown shapes
        self._places = {key: place for place, key in enumerate(counts["key"].tolist(), 1)}
        self.owners = Counter(counts["owner"][counts["barren"]].tolist())  # with the number of their barren shapes
        self.barren = self.owners.total()

    @property
    def counts(self) -> Counts:
        """The row of each shape (dtype `COUNT`)."""
        return self._rows[1 : 1 + len(self._places)]

    def add(self, seen: Counts, patience: int = 1, *, steady: bool = False) -> tuple[list[int], bool]:
        """Count pages (dtype `COUNT`, [n]) in order; `fresh` of each is 1 or 0. Shapes take `patience` times `after`
        pages to fall, or as many as their steadiness says if they are `steady`. Returns the owners of shapes that
        became barren, and whether a shape is barren no longer."""
        keys, first, now = np.unique(seen["key"], return_index=True, return_inverse=True)
        places = self._entered(keys, seen["owner"][first])
        pages = np.bincount(now, minlength=len(keys))
        order = np.argsort(now[::-1], kind="stable")
        later = np.empty(len(now), np.int64)  # pages of the same shape after each
        later[len(now) - 1 - order] = np.arange(len(now)) - np.repeat(np.cumsum(pages) - pages, pages)
        touched = self._rows[places]
        kept = BARREN ** (-1 / (self._after * (self._steadiness(touched) if steady else np.full(len(keys), patience))))
        added = np.bincount(now, seen["fresh"] * (1 - kept[now]) * kept[now] ** later, len(keys))
        was_barren = touched["barren"].copy()
        touched["fresh"] = touched["fresh"] * kept**pages + added
        touched["pages"] += pages.astype(np.uint32)
        touched["brought"] += np.bincount(now, seen["fresh"], len(keys)).astype(np.uint32)
        touched["barren"] |= touched["fresh"] * BARREN <= 1.0001
        touched["barren"] &= touched["fresh"] * FERTILE < 1
        self._rows[places] = touched
        fell: list[int] = touched["owner"][touched["barren"] & ~was_barren].tolist()
        rose: list[int] = touched["owner"][was_barren & ~touched["barren"]].tolist()
        self._note_barren(fell, rose)
        before = self.barren
        if len(self._places) > self._most:
            self._forget()
        return fell, bool(rose) or self.barren < before

    def _steadiness(self, counts: Counts) -> npt.NDArray[np.float64]:
        """Return how many times longer shapes with these `counts` take to fall than one with fresh pages only: float,
        as `counts`."""
        paid = 1 + 2 * counts["brought"] / self._after
        rare: npt.NDArray[np.float64] = counts["pages"] / np.maximum(counts["brought"], 1)
        return np.minimum(rare, np.minimum(paid, STEADY)).clip(1)

    def _note_barren(self, fell: list[int], rose: list[int]) -> None:
        self.barren += len(fell) - len(rose)
        self.owners.update(fell)
        for owner in rose:
            self.owners[owner] -= 1
            if not self.owners[owner]:
                del self.owners[owner]

    def _entered(self, keys: U64, owners: U64) -> npt.NDArray[np.int64]:
        """Return the rows of the shapes with these `keys` (uint64[n], distinct). Begins a row for an unknown shape."""
        places = self._places_of(keys)
        new = np.flatnonzero(places == 0)
        known = 1 + len(self._places)
        places[new] = np.arange(known, known + len(new))
        if known + len(new) > len(self._rows):
            self._rows = np.concatenate([self._rows[:known], np.zeros(known + len(new), COUNT)])
        begun = np.zeros(len(new), COUNT)
        begun["key"], begun["owner"], begun["fresh"] = keys[new], owners[new], 1
        self._rows[places[new]] = begun
        self._places.update(zip(begun["key"].tolist(), places[new].tolist(), strict=True))
        return places

    def _places_of(self, keys: U64) -> npt.NDArray[np.int64]:
        return np.fromiter(map(self._places.get, keys.tolist(), repeat(0)), np.int64, len(keys))

    def _forget(self) -> None:
        """Keep the half of `most` shapes that have the most pages."""
        half, counts = self._most // 2, self.counts
        self._take_in(counts[np.argpartition(counts["pages"], len(counts) - half)[-half:]])

    def of(self, keys: U64) -> Counts:
        """Return the counts of shapes (dtype `COUNT`, [n]), zeros for unknown ones."""
        found: Counts = self._rows[self._places_of(keys)]
        return found

    def pages(self, key: int) -> int:
        """Return how many pages of the shape were counted."""
        return int(self._rows["pages"][self._places.get(key, 0)])

    def never_brought(self, counts: Counts, patience: int) -> npt.NDArray[np.bool_]:
        """Return which shapes with these `counts` hardly ever had a fresh page, among at least `patience` times `after`
        pages: bool, as `counts`."""
        never: npt.NDArray[np.bool_] = counts["brought"] * BARREN <= counts["pages"]
        return never & (counts["pages"] >= patience * self._after)

    def are_promising(self, counts: Counts) -> npt.NDArray[np.bool_]:
        """Return which shapes with these `counts` had fresh pages alone lately, however few: bool, as `counts`."""
        once_stale = BARREN ** (-1 / self._after)
        promising: npt.NDArray[np.bool_] = (counts["pages"] > 0) & (counts["fresh"] > 1.01 * once_stale)
        return promising
