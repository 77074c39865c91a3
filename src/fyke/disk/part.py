"""One part of a drum's table: immutable files of sorted keys and of their values, a range of keys each.

Read by merges and look-ups, replaced by `fold`. A part is read in chunks and never mapped, so that memory
does not grow with the table. Keys are uniform hashes, so when few are asked for, each is found by
interpolation with a read or two, and the rest of the part is left alone.

Invariant: keys are strictly increasing; every key lies in the part's range, from `low` to the next part's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask
from fyke.disk.files import Appender, Reader, raw
from fyke.disk.operations import Values
from fyke.disk.store import State, Store

KEY = np.dtype("<u8")
CHUNK_KEYS = 1 << 17  # 1 MiB of keys, about what a processor's cache holds
PROBE_KEYS = 512  # read at a time when looking for one key
PROBE_SHARE = 2000  # a probe costs about as much as this many keys of a scan

Chunk = tuple[U64, Values | None]


@dataclass(frozen=True, slots=True)
class Part:
    """A range of the table, from the key `low` on. Without a file while it holds nothing."""

    low: int
    count: int = 0
    keys_file: str = ""
    values_file: str = ""

    def files(self) -> list[str]:
        return [name for name in (self.keys_file, self.values_file) if name]

    def state(self) -> list[Any]:
        return [self.low, self.count, self.keys_file, self.values_file]


class Parts:
    """Reads and writes the parts of one drum, and counts the bytes."""

    def __init__(self, store: Store, name: str, dtype: np.dtype[Any] | None, keep_bytes: int = 0) -> None:
        self._store = store
        self._name = name
        self._dtype = dtype
        self._keep_bytes = keep_bytes
        self._kept: tuple[Part | None, list[Chunk]] = None, []
        self.bytes_read = 0
        self.bytes_written = 0

    def zeros(self, count: int) -> Values | None:
        """Values of keys that are not there, [count]."""
        return None if self._dtype is None else np.zeros(count, self._dtype)

    def lookup(self, part: Part, keys: U64) -> tuple[Mask, Values | None]:
        """Which of `keys` (sorted, without repeats) the part holds: bool[n]; and values [n], zero if not."""
        found, values = np.zeros(len(keys), np.bool_), self.zeros(len(keys))
        if not part.count or not len(keys):
            return found, values
        look = self._probe if len(keys) * PROBE_SHARE < part.count else self._scan
        look(part, keys, found, values)
        return found, values

    def _scan(self, part: Part, keys: U64, found: Mask, values: Values | None) -> None:
        done = 0
        for chunk, chunk_values in self.chunks(part):
            end = done + int(np.searchsorted(keys[done:], chunk[-1], side="right"))
            places = np.searchsorted(chunk, keys[done:end])
            hits = chunk[places] == keys[done:end]
            found[done:end] = hits
            if values is not None and chunk_values is not None:
                values[done:end][hits] = chunk_values[places[hits]]
            done = end
            if done == len(keys):
                return

    def chunks(self, part: Part) -> Iterator[Chunk]:
        """The part from its first key to its last, `CHUNK_KEYS` at a time.

        A part of at most `keep_bytes` is kept while it is the last one read, as a fold often follows a look-up.
        """
        if not part.count:
            return
        if self._kept[0] is not part:
            self._kept = part, []
        kept = self._kept[1]
        yield from kept[:]
        keep = sum(self._store.size(name) for name in part.files()) <= self._keep_bytes
        for chunk in self._chunks_from(part, len(kept) * CHUNK_KEYS):
            if keep:
                kept.append(chunk)
            yield chunk

    def forget(self) -> None:
        """Let go of the part that is kept."""
        self._kept = None, []

    def _chunks_from(self, part: Part, first: int) -> Iterator[Chunk]:
        if first >= part.count:
            return
        with self._store.read(part.keys_file) as keys:
            values = self._store.read(part.values_file) if part.values_file else None
            try:
                for start in range(first, part.count, CHUNK_KEYS):
                    count = min(CHUNK_KEYS, part.count - start)
                    yield self._read(keys, KEY, start, count), self._read_values(values, start, count)
            finally:
                if values is not None:
                    values.close()

    def _read(self, reader: Reader, dtype: np.dtype[Any], start: int, count: int) -> npt.NDArray[Any]:
        self.bytes_read += count * dtype.itemsize
        return reader.array(dtype, start, count)

    def _read_values(self, reader: Reader | None, start: int, count: int) -> Values | None:
        if reader is None or self._dtype is None:
            return None
        return self._read(reader, self._dtype, start, count)

    def _probe(self, part: Part, keys: U64, found: Mask, values: Values | None) -> None:
        with self._store.read(part.keys_file) as reader:
            ends = [int(self._read(reader, KEY, at, 1)[0]) for at in (0, part.count - 1)]
            places = [self._find(reader, part.count, ends, key) for key in keys.tolist()]
        found[:] = [place >= 0 for place in places]
        if values is None or not found.any():
            return
        with self._store.read(part.values_file) as reader:
            for at, place in enumerate(places):
                if place >= 0:
                    values[at] = self._read(reader, values.dtype, place, 1)[0]

    def _find(self, reader: Reader, count: int, ends: list[int], key: int) -> int:
        """Where `key` is, or -1: interpolation search, with a bisection in between lest keys are not uniform."""
        low, high = 0, count  # the key lies in [low, high), between these two keys
        low_key, high_key = ends
        guesses = 0
        while low < high and low_key <= key <= high_key:
            guess = low + (key - low_key) * (high - low) // (high_key - low_key + 1)
            guesses += 1
            if guesses % 3 == 0:
                guess = (low + high) // 2
            start = max(low, min(guess - PROBE_KEYS // 2, high - PROBE_KEYS))
            block = self._read(reader, KEY, start, min(PROBE_KEYS, high - start))
            first, last = int(block[0]), int(block[-1])
            if key < first:
                high, high_key = start, first - 1
            elif key > last:
                low, low_key = start + len(block), last + 1
            else:
                place = int(np.searchsorted(block, np.uint64(key)))
                return start + place if int(block[place]) == key else -1
        return -1

    def fold(self, part: Part, keys: U64, values: Values | None, limit: int) -> list[Part]:
        """`part` with `keys` (sorted, without repeats) put in, as new files: one part, or more of half `limit`.

        A key that is there gets the new value. Retires the old files.
        """
        most = part.count + len(keys)
        rows = most if most <= limit else -(-most // -(-most // max(1, limit // 2)))
        output = _Output(self._store, self._name, part.low, max(1, rows), self._dtype is not None)
        done = 0
        for chunk, chunk_values in self.chunks(part):
            end = done + int(np.searchsorted(keys[done:], chunk[-1], side="right"))
            output.add(*merged(chunk, chunk_values, keys[done:end], _cut(values, done, end)))
            done = end
        output.add(keys[done:], _cut(values, done, len(keys)))
        parts = output.close()
        self.forget()
        self.bytes_written += sum(self._store.size(name) for new in parts for name in new.files())
        for name in part.files():
            self._store.retire(name)
        return parts


class _Output:
    """Sorted keys on their way into parts of `rows` each."""

    def __init__(self, store: Store, name: str, low: int, rows: int, has_values: bool) -> None:
        self._store = store
        self._name = name
        self._rows = rows
        self._has_values = has_values
        self._low = low
        self._count = 0
        self._files: list[tuple[str, Appender]] = []
        self._parts: list[Part] = []

    def add(self, keys: U64, values: Values | None) -> None:
        start = 0
        while start < len(keys):
            if self._count == self._rows:
                self._finish()
                self._low = int(keys[start])
            if not self._files:
                suffixes = ["keys", "vals"] if self._has_values else ["keys"]
                self._files = [self._store.create(self._name, suffix) for suffix in suffixes]
            end = min(len(keys), start + self._rows - self._count)
            self._files[0][1].write(raw(keys[start:end]))
            if values is not None:
                self._files[1][1].write(raw(values[start:end]))
            self._count += end - start
            start = end

    def _finish(self) -> None:
        names = [name for name, _ in self._files]
        for _, file in self._files:
            file.close()
        self._parts.append(Part(self._low, self._count, *names))
        self._files, self._count = [], 0

    def close(self) -> list[Part]:
        self._finish()
        return self._parts


def _cut(values: Values | None, start: int, end: int) -> Values | None:
    return None if values is None else values[start:end]


def merged(old: U64, old_values: Values | None, keys: U64, values: Values | None) -> tuple[U64, Values | None]:
    """Two sorted runs as one; where both hold a key, the second one's value counts."""
    if not len(keys):
        return old, old_values
    if not len(old):
        return keys, values
    places = np.searchsorted(old, keys)
    there = old[np.minimum(places, len(old) - 1)] == keys
    new = ~there
    merged = np.insert(old, places[new], keys[new])
    if old_values is None or values is None:
        return merged, None
    kept = old_values.copy()
    kept[places[there]] = values[there]
    return merged, np.insert(kept, places[new], values[new])


def restored(saved: State) -> list[Part]:
    """The parts of a drum's state; one that holds nothing for a new drum."""
    return [Part(*fields) for fields in saved.get("parts", [])] or [Part(0)]
