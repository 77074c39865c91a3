"""Tables bigger than memory, a range of keys at a time.

Used by merges of the index, link analysis, exports and checks. Keys are hashes, so equal ranges of them hold about
equal numbers of rows, and each of enough ranges fits into memory. `sliced` takes a range out of a sorted table;
`Buckets` sorts rows that come in any order into ranges. Invariant: range `i` holds the keys whose first bits are `i`.
"""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64
from fyke.disk.files import raw, writing

Array = npt.NDArray[Any]

RANGE_ROWS = 1 << 16
WAITING_ROWS = 1 << 18


def ranges_for(rows: int, range_rows: int = RANGE_ROWS) -> int:
    """Return a number of ranges, a power of two, of which each has at most about `range_rows` of `rows` rows."""
    return 1 << max(0, (max(0, rows - 1) // range_rows).bit_length())


def sliced(table: Array, field: str, at: int, ranges: int) -> Array:
    """Return the rows of `table`, sorted by `field`, in range `at` of `ranges`. Reads little of the rest."""
    width = (1 << 64) // ranges
    column = table[field]
    begin = bisect_left(column, at * width) if at else 0
    end = len(table) if at == ranges - 1 else bisect_left(column, (at + 1) * width)
    return table[begin:end]


def append(path: Path, rows: Array) -> None:
    """Append `rows` to a file of nothing but rows of their dtype. Raises DiskFull or DirectoryError."""
    with writing(path), path.open("ab") as file:
        file.write(raw(rows))


def mapped(path: Path, dtype: Any) -> Array:
    """Map a file made by `append`; return no rows if there is no file."""
    if not path.exists() or not path.stat().st_size:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, "r")


class Buckets:
    """Rows of `dtype` that come in any order, by the range of a key; on disk in `folder` if there are many.

    Rows wait in memory until there are `waiting_rows`, so that files are opened seldom and appended to in long pieces.
    """

    def __init__(self, folder: Path, name: str, dtype: Any, ranges: int, waiting_rows: int = WAITING_ROWS) -> None:
        self._folder = folder
        self._name = name
        self._dtype = np.dtype(dtype)
        self.ranges = ranges
        self._most_waiting = waiting_rows
        self._waiting: list[tuple[U64, Array]] = []
        self._waiting_rows = 0
        self.rows = 0
        with writing(folder):
            folder.mkdir(exist_ok=True)
        self.close()

    def __repr__(self) -> str:
        return f"Buckets({self._name}, {self.rows} rows in {self.ranges} ranges)"

    def add(self, keys: U64, rows: Array) -> None:
        """Add each of `rows` to the range of its key. Raises DiskFull or DirectoryError."""
        self.rows += len(rows)
        self._waiting_rows += len(rows)
        self._waiting.append((keys, rows))
        if self.ranges > 1 and self._waiting_rows >= self._most_waiting:
            self._spill()

    def _spill(self) -> None:
        keys = np.concatenate([keys for keys, _ in self._waiting])
        rows = np.concatenate([rows for _, rows in self._waiting])
        self._waiting, self._waiting_rows = [], 0
        places = keys >> np.uint64(65 - self.ranges.bit_length())
        order = np.argsort(places, kind="stable")
        bounds = np.searchsorted(places[order], np.arange(self.ranges + 1))
        for at in np.flatnonzero(np.diff(bounds)).tolist():
            append(self._path(at), rows[order[bounds[at] : bounds[at + 1]]])

    def read(self, at: int) -> Array:
        """Return the rows of range `at`, in the order they came."""
        if self.ranges == 1:
            return np.concatenate([np.zeros(0, self._dtype), *(rows for _, rows in self._waiting)])
        if self._waiting:
            self._spill()
        path = self._path(at)
        return np.fromfile(path, self._dtype) if path.exists() else np.zeros(0, self._dtype)

    def __iter__(self) -> Iterator[Array]:
        return map(self.read, range(self.ranges))

    def _path(self, at: int) -> Path:
        return self._folder / f"{self._name}-{at:05}"

    def close(self) -> None:
        """Drop the rows and delete the files."""
        self._waiting, self._waiting_rows = [], 0
        for at in range(self.ranges if self.ranges > 1 else 0):
            self._path(at).unlink(missing_ok=True)
