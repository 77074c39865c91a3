"""What merges wrote lately: one small sorted run in memory, above all parts of a drum's table.

A merge writes here, so that a small one need not write a large part anew; the drum folds a range of it into
its part when it has grown to a share of it, or when memory is short. A checkpoint writes the run to a file.

Invariant: keys are strictly increasing; the value of a key here is newer than the one in its part.
"""

from typing import Any

import numpy as np

from fyke.core.batches import U64, Mask
from fyke.disk.files import raw
from fyke.disk.operations import Values
from fyke.disk.part import KEY
from fyke.disk.store import State, Store


class Young:
    """Keys uint64[n] and values [n] that are in no part yet."""

    def __init__(self, store: Store, name: str, dtype: np.dtype[Any] | None, saved: State) -> None:
        self._store = store
        self._name = name
        self._dtype = dtype
        self._files: list[str] = list(saved.get("files", []))
        self._changed = False
        self.bytes_written = 0
        self.keys: U64 = np.empty(0, np.uint64)
        self.values: Values | None = None if dtype is None else np.empty(0, dtype)
        if self._files:
            self._load(int(saved["count"]))

    def _load(self, count: int) -> None:
        with self._store.read(self._files[0]) as reader:
            self.keys = reader.array(KEY, 0, count)
        if self._dtype is not None:
            with self._store.read(self._files[1]) as reader:
                self.values = reader.array(self._dtype, 0, count).copy()

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + (0 if self.values is None else self.values.nbytes)

    def lookup(self, keys: U64) -> tuple[Mask, Values | None]:
        """Which of `keys` are here: bool[n]; and their values [n], zero where not."""
        values = None if self._dtype is None else np.zeros(len(keys), self._dtype)
        if not len(self.keys):
            return np.zeros(len(keys), np.bool_), values
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        found = self.keys[places] == keys
        if values is not None and self.values is not None:
            values[found] = self.values[places[found]]
        return found, values

    def put(self, keys: U64, values: Values | None) -> None:
        """Write `keys` (sorted, without repeats) over those that are here."""
        if not len(keys):
            return
        self._changed = True
        places = np.searchsorted(self.keys, keys)
        new = np.ones(len(keys), np.bool_)
        if len(self.keys):
            new = self.keys[np.minimum(places, len(self.keys) - 1)] != keys
        if values is not None and self.values is not None:
            self.values[places[~new]] = values[~new]
            self.values = np.insert(self.values, places[new], values[new])
        self.keys = np.insert(self.keys, places[new], keys[new])

    def take(self, start: int, end: int) -> tuple[U64, Values | None]:
        """Remove the run's rows `start` to `end`, and give them."""
        self._changed = True
        keys = self.keys[start:end]
        self.keys = np.delete(self.keys, slice(start, end))
        if self.values is None:
            return keys, None
        values = self.values[start:end]
        self.values = np.delete(self.values, slice(start, end))
        return keys, values

    def state(self) -> State:
        """The run's files; written anew when the run changed since."""
        if self._changed:
            for name in self._files:
                self._store.retire(name)
            self._files = []
            if len(self.keys):
                self._files.append(self._store.write(self._name, "keys", [raw(self.keys)]))
                if self.values is not None:
                    self._files.append(self._store.write(self._name, "vals", [raw(self.values)]))
                self.bytes_written += self.nbytes
            self._changed = False
        return {"files": self._files[:], "count": len(self.keys)}
