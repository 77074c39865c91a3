"""One part of a Drum's table: an immutable file of sorted keys, and their values after them.

Written by a merge, read whole by the next one and in blocks by a look-up. Keys are uniform hashes, so a
look-up guesses where its key lies (interpolation search) and reads a block or two.

Invariant: keys are strictly increasing.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64
from fyke.core.errors import StateDamaged
from fyke.shelf.answers import Resolved
from fyke.shelf.store import Store

BLOCK_KEYS = 512


@dataclass(frozen=True, slots=True)
class Part:
    """A file with `keys` keys, uint64 little-endian, then as many values of `value`; no file, no keys."""

    file: str
    keys: int
    value: np.dtype[Any] | None

    @property
    def size_bytes(self) -> int:
        return self.keys * (8 + (self.value.itemsize if self.value is not None else 0))

    def read(self, store: Store) -> tuple[U64, npt.NDArray[Any] | None]:
        """Keys and values, uint64[keys] and value[keys]. Raises StateDamaged."""
        if not self.file:
            return np.empty(0, np.uint64), None if self.value is None else np.empty(0, self.value)
        data = store.path(self.file).read_bytes()
        if len(data) != self.size_bytes:
            raise StateDamaged(f"{store.path(self.file)} is {len(data)} bytes long and should be {self.size_bytes}")
        keys = np.frombuffer(data, np.uint64, self.keys)
        return keys, None if self.value is None else np.frombuffer(data, self.value, self.keys, self.keys * 8)

    def get(self, store: Store, key: int) -> tuple[bool, Any]:
        """Whether `key` is there, and its value."""
        if not self.keys:
            return False, None
        fd = os.open(store.path(self.file), os.O_RDONLY | os.O_CLOEXEC)
        try:
            at = self._find(fd, key)
            if at is None or self.value is None:
                return at is not None, None
            data = os.pread(fd, self.value.itemsize, self.keys * 8 + at * self.value.itemsize)
            return True, np.frombuffer(data, self.value)[0]
        finally:
            os.close(fd)

    def _find(self, fd: int, key: int) -> int | None:
        low, high = 0, self.keys  # the key lies in [low, high)
        low_key, high_key = 0, 1 << 64
        while low < high:
            guess = low + (key - low_key) * (high - low) // max(1, high_key - low_key)
            start = min(max(low, guess - BLOCK_KEYS // 2), max(low, high - BLOCK_KEYS))
            block = np.frombuffer(os.pread(fd, 8 * min(BLOCK_KEYS, high - start), 8 * start), np.uint64)
            first, last = int(block[0]), int(block[-1])
            if key < first:
                high, high_key = start, first
            elif key > last:
                low, low_key = start + len(block), last
            else:
                at = int(np.searchsorted(block, np.uint64(key)))
                return start + at if int(block[at]) == key else None
        return None


def merged_pieces(old_keys: U64, old_values: Any, resolved: Resolved) -> tuple[U64, npt.NDArray[Any] | None]:
    """The table after the merge: the old keys with the new ones in their places, values combined."""
    new = ~resolved.on_disk
    places = resolved.places[new]
    keys = np.insert(old_keys, places, resolved.unique[new])
    if old_values is None or resolved.final is None:
        return keys, None
    values = old_values.copy()
    values[resolved.places[resolved.on_disk]] = resolved.final[resolved.on_disk]
    return keys, np.insert(values, places, resolved.final[new])
