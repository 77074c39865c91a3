"""Of pages whose URLs have a shape in common, how many brought something new? A column for each shape.

The latest pages count most. A shape begins as if all were fresh; it is barren once less than one in `BARREN` was, and
no more so with one in `FERTILE`. Bounded: of more shapes than `most` half are kept, those with the most pages.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64

MOST_SHAPES = 1 << 17
BARREN = 8  # of a barren shape less than one page in so many is fresh
FERTILE = 4  # one is barren no more with so many
COUNT = np.dtype([("key", "<u8"), ("owner", "<u8"), ("pages", "<u4"), ("fresh", "<f4"), ("barren", "?")])

Counts = npt.NDArray[Any]


class Yields:
    """Of each shape, what share of its pages was fresh, the latest counting most: columns, sorted by key."""

    def __init__(self, after: int, counts: Counts, most: int = MOST_SHAPES) -> None:
        """A shape begins as if all were fresh, and falls to one in `BARREN` by `after` that are not."""
        self._after = max(after, 1)
        self._most = most
        self.counts = counts

    def add(self, seen: Counts, patience: int = 1) -> None:
        """Count pages (dtype `COUNT`, [n]), in order; the `fresh` of each is 1 or 0. Shapes take `patience` times as
        many to fall as others."""
        kept = BARREN ** (-1 / (self._after * patience))
        keys, first, now = np.unique(seen["key"], return_index=True, return_inverse=True)
        counts = self._with(keys, seen["owner"][first])
        places = np.searchsorted(counts["key"], keys)
        pages = np.bincount(now, minlength=len(keys))
        order = np.argsort(now[::-1], kind="stable")
        later = np.empty(len(now), np.int64)  # pages of the same shape that come after each
        later[len(now) - 1 - order] = np.arange(len(now)) - np.repeat(np.cumsum(pages) - pages, pages)
        added = np.bincount(now, seen["fresh"] * (1 - kept) * kept**later, len(keys))
        touched = counts[places]
        touched["fresh"] = touched["fresh"] * kept**pages + added
        touched["pages"] += pages.astype(np.uint32)
        touched["barren"] |= touched["fresh"] * BARREN <= 1.0001
        touched["barren"] &= touched["fresh"] * FERTILE < 1
        counts[places] = touched
        if len(counts) > self._most:
            most = np.argpartition(counts["pages"], len(counts) - self._most // 2)[-self._most // 2 :]
            counts = counts[np.sort(most)]
        self.counts = counts

    def _with(self, keys: U64, owners: U64) -> Counts:
        """The counts, and one for each of `keys` (uint64[n], in order) that is not among them."""
        new = self.of(keys)["key"] != keys
        begun = np.zeros(int(new.sum()), COUNT)
        begun["key"], begun["owner"], begun["fresh"] = keys[new], owners[new], 1
        return (
            np.insert(self.counts, np.searchsorted(self.counts["key"], begun["key"]), begun)
            if len(begun)
            else self.counts
        )

    def of(self, keys: U64) -> Counts:
        """The counts of shapes (dtype `COUNT`, [n]), zeros for those that are not known."""
        found = np.zeros(len(keys), COUNT)
        if len(self.counts):
            places = np.minimum(np.searchsorted(self.counts["key"], keys), len(self.counts) - 1)
            known = self.counts["key"][places] == keys
            found[known] = self.counts[places[known]]
        return found

    def are_promising(self, counts: Counts) -> npt.NDArray[np.bool_]:
        """Of which shapes with these `counts` the latest pages were fresh, however few were read: bool, as `counts`."""
        once_stale = BARREN ** (-1 / self._after)
        promising: npt.NDArray[np.bool_] = (counts["pages"] > 0) & (counts["fresh"] > 1.01 * once_stale)
        return promising

    def pages(self, key: int) -> int:
        """How many pages of the shape were counted."""
        place = int(np.searchsorted(self.counts["key"], np.uint64(key)))
        known = place < len(self.counts) and int(self.counts["key"][place]) == key
        return int(self.counts["pages"][place]) if known else 0

    @property
    def barren(self) -> Counts:
        """Those that are barren."""
        barren: Counts = self.counts[self.counts["barren"]]
        return barren
