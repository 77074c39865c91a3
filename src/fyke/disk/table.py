"""The sorted table of a drum: parts on disk, and above each part a young run in memory.

The drum looks keys up here, puts in the results of its operations, and folds after a merge. A table is cut into parts
by key. A part that grows over `part` keys is split, so that a small table is one small file and a huge one many. A part
is rewritten only when the run above it is large enough, or when memory is short.

Invariant: parts are in order of their keys and cover all keys. In a part's range, the young run counts before it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fyke.core.batches import U64, Mask
from fyke.disk.operations import Resolved, Values
from fyke.disk.part import Parts, TableSizes, restored
from fyke.disk.store import State, Store
from fyke.disk.young import Young

FOLD_SHARE = 8  # a part is rewritten when its young keys are more than an eighth of its keys
MOST_PART_KEYS = 4 << 20
LEAST_PART_KEYS = 4 << 10


class Table:
    """Keys uint64 and values of one dtype. Young runs take a quarter of `memory_bytes`, a kept part an eighth."""

    def __init__(
        self,
        store: Store,
        name: str,
        dtype: np.dtype[Any] | None,
        saved: State,
        *,
        memory_bytes: int,
        sizes: TableSizes,
    ) -> None:
        self._young_bytes = memory_bytes // 4
        self._sizes = sizes
        self._part_keys = sizes.part or min(MOST_PART_KEYS, max(LEAST_PART_KEYS, memory_bytes // 16))
        self._key_bytes = 8 + (0 if dtype is None else dtype.itemsize)
        self._keys = int(saved.get("keys", 0))
        self._parts = restored(saved)
        self.lows = self._part_lows()
        self._files = Parts(store, name, dtype, sizes, keep_bytes=memory_bytes // 8)
        self._young = Young(store, name, dtype, saved.get("young", {}), self.lows, sizes.block)
        self.folds = 0

    def __repr__(self) -> str:
        return f"Table({self._keys} keys in {len(self._parts)} parts, {len(self._young)} of them young)"

    def __len__(self) -> int:
        return self._keys

    @property
    def size_bytes(self) -> int:
        """Bytes of all keys and values, without digests."""
        return self._keys * self._key_bytes

    @property
    def parts(self) -> int:
        return len(self._parts)

    @property
    def young_keys(self) -> int:
        return len(self._young)

    @property
    def bytes_read(self) -> int:
        return self._files.bytes_read

    @property
    def bytes_written(self) -> int:
        return self._files.bytes_written + self._young.bytes_written

    # --- reading

    def lookup(self, keys: U64, *, keep: bool = True) -> tuple[Mask, Values | None]:
        """Return which `keys` (sorted, without repeats) the table holds, bool[n], and values [n], zero if not found.
        Without `keep`, the part that was read is not kept for a fold."""
        found, values = np.zeros(len(keys), np.bool_), self._files.zeros(len(keys))
        for place, start, end in self._by_part(keys):
            found[start:end], young_values = self._young.lookup(place, keys[start:end])
            if values is not None and young_values is not None:
                values[start:end] = young_values
            rest = start + np.flatnonzero(~found[start:end])
            found[rest], part_values = self._files.lookup(self._parts[place], keys[rest], keep=keep)
            if values is not None and part_values is not None:
                np.put(values, rest, part_values)
        return found, values

    def _by_part(self, keys: U64) -> Iterator[tuple[int, int, int]]:
        """Yield the parts to which `keys` (sorted) belong: place of the part, start and end of its keys."""
        edges = np.append(np.searchsorted(keys, self.lows), len(keys))
        for place in np.flatnonzero(np.diff(edges)).tolist():
            yield place, int(edges[place]), int(edges[place + 1])

    def places(self, keys: U64) -> list[int]:
        """Return the places of the parts to which `keys` belong, sorted."""
        return np.unique(np.searchsorted(self.lows, keys, side="right") - 1).tolist()  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Drop the part that was kept after it was read."""
        self._files.forget()

    # --- writing

    def put(self, resolved: Resolved) -> None:
        """Put the results of operations into the young runs."""
        keys, values = resolved.written, resolved.written_values
        for place, start, end in self._by_part(keys):
            self._young.put(place, keys[start:end], None if values is None else values[start:end])
        self._keys += resolved.new

    def fold(self, low: int | None = None) -> None:
        """Fold the young runs that are large enough, and more while memory is short, into their parts: of all parts, or
        of the one that begins at `low`.

        A merge bucket by bucket gives `low`, because the parts of later buckets will be written soon.
        """
        place = 0 if low is None else int(np.searchsorted(self.lows, np.uint64(low)))
        places = range(len(self._parts)) if low is None else range(place, place + 1)
        counts = self._young.counts()
        for place in reversed(places):  # a split moves only the parts after
            if counts[place] > max(self._sizes.fold, self._parts[place].count // FOLD_SHARE):
                self._fold_part(place)
        while self._young.nbytes > self._young_bytes:
            counts = self._young.counts()
            fullest = int(np.argmax(counts)) if low is None else places[0]
            if not counts[fullest]:
                return
            self._fold_part(fullest)

    def _fold_part(self, place: int) -> None:
        keys, values = self._young.take(place)
        parts = self._files.fold(self._parts[place], keys, values, self._part_keys)
        self._parts[place : place + 1] = parts
        self._young.split(place, len(parts))
        self.lows = self._part_lows()
        self.folds += 1

    def _part_lows(self) -> U64:
        return np.array([part.low for part in self._parts], np.uint64)

    def state(self) -> State:
        """Save all that a restart needs in files and return their names."""
        return {
            "keys": self._keys,
            "parts": [part.state() for part in self._parts],
            "young": self._young.state(),
        }
