"""Young keys, written by recent merges: a small sorted run in memory above each part of a drum's table.

A merge writes here, so that a small merge need not rewrite a large part. The table folds a run into its part
when the run has grown to a share of it, or when memory is short. With one run a part, a merge by buckets moves
each run once, and not all runs for every bucket. A checkpoint writes the runs one after the other to one file of keys
and one of values.

Invariant: every part of the table has a run, in the same order. Its keys lie in the part's range and are strictly
increasing; its value of a key is newer than the part's.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from fyke.core.batches import NO_KEYS, U64, Mask
from fyke.disk.column import ColumnWriter, read_whole
from fyke.disk.operations import Values
from fyke.disk.part import KEY, merged
from fyke.disk.store import State, Store


class Young:
    """Keys uint64[n] and values [n] not yet written to the parts, which begin at `lows` (uint64[k])."""

    def __init__(
        self, store: Store, name: str, dtype: np.dtype[Any] | None, saved: State, lows: U64, block: int
    ) -> None:
        self._store = store
        self._name = name
        self._dtype = dtype
        self._files: list[str] = list(saved.get("files", []))
        self._changed = False
        self._count = 0
        self._block = 0  # of the files
        self._new_block = block  # of the next files
        self.bytes_written = 0
        empty = NO_KEYS, None if dtype is None else np.empty(0, dtype)
        self._empty: tuple[U64, Values | None] = empty
        self._runs = [empty] * len(lows)
        if self._files:
            self._load(int(saved["count"]), int(saved["block"]), lows)

    def _load(self, count: int, block: int, lows: U64) -> None:
        keys = read_whole(self._store, self._files[0], KEY, count, block)
        values = None
        if self._dtype is not None:
            values = read_whole(self._store, self._files[1], self._dtype, count, block)
        edges = [*np.searchsorted(keys, lows).tolist(), count]
        for place, (start, end) in enumerate(pairwise(edges)):
            self._runs[place] = keys[start:end].copy(), None if values is None else values[start:end].copy()
        self._count, self._block = count, block

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._count * (8 + (0 if self._dtype is None else self._dtype.itemsize))

    def counts(self) -> list[int]:
        """Return the number of keys above each part."""
        return [len(keys) for keys, _ in self._runs]

    def lookup(self, place: int, keys: U64) -> tuple[Mask, Values | None]:
        """Return which `keys` are above the part at `place`, bool[n], and their values [n], zero if not found."""
        own, own_values = self._runs[place]
        values = None if self._dtype is None else np.zeros(len(keys), self._dtype)
        if not len(own):
            return np.zeros(len(keys), np.bool_), values
        places = np.minimum(np.searchsorted(own, keys), len(own) - 1)
        found = own[places] == keys
        if values is not None and own_values is not None:
            np.put(values, np.flatnonzero(found), own_values.take(places[found]))
        return found, values

    def put(self, place: int, keys: U64, values: Values | None) -> None:
        """Put `keys` (sorted, without repeats, of the part at `place`) in; their values replace older ones."""
        own, own_values = self._runs[place]
        run = merged(own, own_values, keys, values)
        self._runs[place] = run
        self._count += len(run[0]) - len(own)
        self._changed = True

    def take(self, place: int) -> tuple[U64, Values | None]:
        """Remove and return the run above the part at `place`."""
        run = self._runs[place]
        self._runs[place] = self._empty
        self._count -= len(run[0])
        self._changed = True
        return run

    def split(self, place: int, parts: int) -> None:
        """Note that the part at `place`, with nothing above it, became `parts` parts."""
        assert not len(self._runs[place][0])
        self._runs[place : place + 1] = [self._empty] * parts

    def state(self) -> State:
        """Write the runs to new files if one changed; return the files."""
        if self._changed:
            for name in self._files:
                self._store.retire(name)
            self._files = self._written() if self._count else []
            self._changed = False
        return {"files": self._files[:], "count": self._count, "block": self._block}

    def _written(self) -> list[str]:
        """Write all runs to new files, one after the other; return their names."""
        columns = [ColumnWriter(self._store, self._name, "keys", self._new_block)]
        if self._dtype is not None:
            columns.append(ColumnWriter(self._store, self._name, "vals", self._new_block))
        for keys, values in self._runs:
            columns[0].write(keys)
            if values is not None:
                columns[1].write(values)
        self.bytes_written += sum(column.close() for column in columns)
        self._block = columns[0].block
        return [column.name for column in columns]
