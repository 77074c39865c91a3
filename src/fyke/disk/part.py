"""One part of a drum's table, a range of keys: immutable files of sorted keys and of their values.

Read by merges and look-ups, replaced by `fold`. A part is read in blocks and never mapped, so that memory
does not grow with the table. Each block is checked against its digest (`fyke.disk.column`). Keys are uniform
hashes, so a few keys are found by interpolation with a read or two each. A key takes all its 8 bytes. Differences to
the first of a few thousand keys would take 6, but adding up a MiB of them takes 130 us. Reading the full keys from the
page cache takes 53.

Invariant: keys are strictly increasing; every key lies in the part's range, from `low` to the next part's.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fyke.core.batches import U64, Mask
from fyke.disk.column import ColumnReader, ColumnWriter
from fyke.disk.operations import Values
from fyke.disk.store import State, Store

KEY = np.dtype("<u8")

Chunk = tuple[U64, Values | None]
Block = tuple[U64, Callable[[], Values | None]]  # keys, and how to read their values


@dataclass(frozen=True, slots=True)
class TableSizes:
    """How a table is cut and read, in keys. Not settings: tests set them so that a few keys take every path."""

    part: int = 0  # a part with more is split; 0: chosen by memory
    fold: int = 4096  # a part with at most so many young keys is not rewritten, unless memory is short
    block: int = 1 << 17  # keys that share a digest: 1 MiB, about the size of a processor's cache
    probe: int = 512  # read at a time when looking for one key
    probe_share: int = 2000  # a probe costs about as much as this many keys of a scan


TABLE_SIZES = TableSizes()


@dataclass(frozen=True, slots=True)
class Part:
    """A range of the table, from the key `low` on. Has no file while it is empty."""

    low: int
    count: int = 0
    keys_file: str = ""
    values_file: str = ""
    block: int = 0  # keys that share a digest

    def files(self) -> list[str]:
        return [name for name in (self.keys_file, self.values_file) if name]

    def state(self) -> list[Any]:
        return [self.low, self.count, self.keys_file, self.values_file, self.block]


class Parts:
    """Reads and writes the parts of one drum, and counts the bytes."""

    def __init__(
        self, store: Store, name: str, dtype: np.dtype[Any] | None, sizes: TableSizes, keep_bytes: int
    ) -> None:
        self._store = store
        self._name = name
        self._dtype = dtype
        self._sizes = sizes
        self._keep_bytes = keep_bytes
        self._kept: tuple[Part | None, list[Chunk]] = None, []
        self.bytes_read = 0
        self.bytes_written = 0

    def zeros(self, count: int) -> Values | None:
        """Return the values of missing keys, [count]."""
        return None if self._dtype is None else np.zeros(count, self._dtype)

    def lookup(self, part: Part, keys: U64, *, keep: bool = True) -> tuple[Mask, Values | None]:
        """Return which `keys` (sorted, without repeats) the part holds, bool[n], and values [n], zero if not found.
        Without `keep`, nothing that is read is kept for a fold."""
        found, values = np.zeros(len(keys), np.bool_), self.zeros(len(keys))
        if not part.count or not len(keys):
            return found, values
        if len(keys) * self._sizes.probe_share < part.count:
            self._probe(part, keys, found, values)
        else:
            self._scan(self._kept_blocks(part) if keep else self._blocks(part), keys, found, values)
        return found, values

    def _scan(self, blocks: Iterable[Block], keys: U64, found: Mask, values: Values | None) -> None:
        done = 0
        for chunk, values_of in blocks:
            end = done + int(np.searchsorted(keys[done:], chunk[-1], side="right"))
            places = np.searchsorted(chunk, keys[done:end])
            hits = chunk[places] == keys[done:end]
            found[done:end] = hits
            if values is not None and hits.any() and (chunk_values := values_of()) is not None:
                np.put(values, done + np.flatnonzero(hits), chunk_values.take(places[hits]))
            done = end
            if done == len(keys):
                return

    def _kept_blocks(self, part: Part) -> Iterator[Block]:
        for chunk, chunk_values in self.chunks(part):
            yield chunk, partial(_same, chunk_values)

    def _blocks(self, part: Part) -> Iterator[Block]:
        """Yield the blocks of the part. Values are read if they are asked for: few blocks have one that is wanted."""
        with ExitStack() as stack:
            keys, *values = (stack.enter_context(column) for column in self._columns(part))
            stack.callback(self._count_reads, [keys, *values])
            for place in range(keys.blocks):
                yield keys.block(place), partial(values[0].block, place) if values else partial(_same, None)

    def chunks(self, part: Part) -> Iterator[Chunk]:
        """Yield the part from its first key to its last, by blocks. Raises StateDamaged at a damaged block.

        A part of at most `keep_bytes` is kept while it is the last one read, because a fold often follows a look-up.
        """
        if not part.count:
            return
        if self._kept[0] is not part:
            self._kept = part, []
        kept = self._kept[1]
        yield from kept[:]
        keep = sum(self._store.size(name) for name in part.files()) <= self._keep_bytes
        for chunk in self._chunks_from(part, len(kept)):
            if keep:
                kept.append(chunk)
            yield chunk

    def forget(self) -> None:
        """Drop the kept part."""
        self._kept = None, []

    def _chunks_from(self, part: Part, first: int) -> Iterator[Chunk]:
        with ExitStack() as stack:
            columns = [stack.enter_context(column) for column in self._columns(part)]
            stack.callback(self._count_reads, columns)
            for place in range(first, columns[0].blocks):
                blocks = [column.block(place) for column in columns]
                yield blocks[0], blocks[1] if len(blocks) > 1 else None

    def _count_reads(self, columns: list[ColumnReader]) -> None:
        self.bytes_read += sum(column.bytes_read for column in columns)

    def _new_columns(self) -> list[ColumnWriter]:
        suffixes = ["keys"] if self._dtype is None else ["keys", "vals"]
        return [ColumnWriter(self._store, self._name, suffix, self._sizes.block) for suffix in suffixes]

    def _columns(self, part: Part) -> list[ColumnReader]:
        dtypes = [KEY] if self._dtype is None else [KEY, self._dtype]
        return [
            ColumnReader(self._store, name, dtype, part.count, part.block)
            for name, dtype in zip(part.files(), dtypes, strict=True)
        ]

    def _probe(self, part: Part, keys: U64, found: Mask, values: Values | None) -> None:
        with ExitStack() as stack:
            columns = [stack.enter_context(column) for column in self._columns(part)]
            stack.callback(self._count_reads, columns)
            ends = [int(columns[0].items(at, 1)[0]) for at in (0, part.count - 1)]
            for at, key in enumerate(keys.tolist()):
                place = _find(columns[0], part.count, ends, key, self._sizes.probe)
                found[at] = place >= 0
                if values is not None and place >= 0:
                    values[at] = columns[1].items(place, 1)[0]

    def fold(self, part: Part, keys: U64, values: Values | None, limit: int) -> list[Part]:
        """Write `part` with `keys` (sorted, without repeats) put in to new files; return one part, or if it has more
        than `limit` keys, several of about half `limit`.

        A key that is there gets the new value. Retires the old files.
        """
        most = part.count + len(keys)
        rows = most if most <= limit else -(-most // -(-most // max(1, limit // 2)))
        output = _Output(self._new_columns, part.low, max(1, rows))
        done = 0
        for chunk, chunk_values in self.chunks(part):
            end = done + int(np.searchsorted(keys[done:], chunk[-1], side="right"))
            output.add(*merged(chunk, chunk_values, keys[done:end], _cut(values, done, end)))
            done = end
        output.add(keys[done:], _cut(values, done, len(keys)))
        parts = output.close()
        self.forget()
        self.bytes_written += output.bytes_written
        for name in part.files():
            self._store.retire(name)
        return parts


def _find(column: ColumnReader, count: int, ends: list[int], key: int, probe: int) -> int:
    """Return the place of `key`, or -1, by interpolation search, reading `probe` keys at a time.

    Each third guess bisects, in case keys are not uniform.
    """
    low, high = 0, count  # the key lies in [low, high), between these two keys
    low_key, high_key = ends
    guesses = 0
    while low < high and low_key <= key <= high_key:
        guess = low + (key - low_key) * (high - low) // (high_key - low_key + 1)
        guesses += 1
        if guesses % 3 == 0:
            guess = (low + high) // 2
        start = max(low, min(guess - probe // 2, high - probe))
        block = column.items(start, min(probe, high - start))
        first, last = int(block[0]), int(block[-1])
        if key < first:
            high, high_key = start, first - 1
        elif key > last:
            low, low_key = start + len(block), last + 1
        else:
            place = int(np.searchsorted(block, np.uint64(key)))
            return start + place if int(block[place]) == key else -1
    return -1


class _Output:
    """Writes sorted keys to parts of `rows` each, from the key `low` on."""

    def __init__(self, new_columns: Callable[[], list[ColumnWriter]], low: int, rows: int) -> None:
        self._new_columns = new_columns
        self._rows = rows
        self._low = low
        self._count = 0
        self._columns: list[ColumnWriter] = []
        self._parts: list[Part] = []
        self.bytes_written = 0

    def add(self, keys: U64, values: Values | None) -> None:
        start = 0
        while start < len(keys):
            if self._count == self._rows:
                self._finish()
                self._low = int(keys[start])
            if not self._columns:
                self._columns = self._new_columns()
            end = min(len(keys), start + self._rows - self._count)
            self._columns[0].write(keys[start:end])
            if values is not None:
                self._columns[1].write(values[start:end])
            self._count += end - start
            start = end

    def _finish(self) -> None:
        self.bytes_written += sum(column.close() for column in self._columns)
        keys_file, values_file, *_ = [*(column.name for column in self._columns), "", ""]
        block = self._columns[0].block if self._columns else 0
        self._parts.append(Part(self._low, self._count, keys_file, values_file, block))
        self._columns, self._count = [], 0

    def close(self) -> list[Part]:
        self._finish()
        return self._parts


def _same(values: Values | None) -> Values | None:
    return values


def _cut(values: Values | None, start: int, end: int) -> Values | None:
    return None if values is None else values[start:end]


def merged(old: U64, old_values: Values | None, keys: U64, values: Values | None) -> tuple[U64, Values | None]:
    """Merge two sorted runs; for a key in both, the second one's value counts."""
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
    np.put(kept, places[there], values.compress(there))
    return merged, np.insert(kept, places[new], values.compress(new))


def restored(saved: State) -> list[Part]:
    """Return the parts in a drum's state, one empty part for a new drum."""
    return [Part(*fields) for fields in saved.get("parts", [])] or [Part(0)]
