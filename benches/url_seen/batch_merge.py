"""Hashes in memory, text on disk, one sorted file: Mercator-B (2001).

IRLbot's section 4.1, after Najork and Heydon, "High-Performance Web Crawling" (2001). The hashes of new links wait in
memory, each with a pointer to its text, which goes to disk. When memory is full, they are sorted and merged with the
whole sorted file of hashes, which is written anew; the pointers fetch the text of the new ones.

- Faithful: every merge reads and writes the whole table (Theorem 1, equation 1); all text is written and read once.
- Simplified: a pointer is the link's place in the order of arrival, so it costs no bytes until the sort, and the text
  is read in that order. The sort is `fyke.disk`'s own and works in copies: a link takes 44 bytes of memory. The paper's
  sort in place takes 12, and its model twice that.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64

from fyke.core.batches import U64
from fyke.core.sorting import stably_sorted
from fyke.disk import frames
from fyke.disk.files import Appender, Reader, raw
from fyke.disk.part import merged
from url_seen import Texts

CHUNK_KEYS = 1 << 17
WORK_BYTES = 44  # of a waiting key: itself, packed with its place, the order, sorted, first of each key
KEY = np.dtype("<u8")
TEXT = pa.schema([("url", pa.binary())])


class BatchMerge:
    """`table` on disk, sorted; waiting links in memory and in `text`."""

    filled_by = "key"
    persistent = True

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        self._directory = directory
        self._table, self._text = directory / "table", directory / "text"
        self._table.touch()
        self._most = max(1, memory_bytes // WORK_BYTES)
        self._waiting: list[U64] = []
        self._rows = 0
        self._writer: Appender | None = None
        self.moved_bytes = 0

    def fill(self, keys: U64, texts: Texts) -> None:
        with self._table.open("ab") as file:
            file.write(raw(keys))

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        if self._writer is None:
            self._writer = _appender(self._text)
        for piece in frames.encode(pa.RecordBatch.from_arrays([texts], schema=TEXT)):
            self._writer.write(piece)
        self._waiting.append(keys)
        self._rows += len(keys)
        if self._rows >= self._most:
            yield from self.finish()

    def finish(self) -> Iterator[pa.BinaryArray]:
        if self._writer is None:
            return
        self._writer.close()
        self.moved_bytes += 2 * self._writer.length
        keys = np.concatenate(self._waiting)
        self._waiting, self._rows, self._writer = [], 0, None
        is_new = np.zeros(len(keys), np.bool_)
        order, keys = stably_sorted(keys)
        first = np.insert(keys[1:] != keys[:-1], 0, True)
        order, keys = order[first], keys[first]
        is_new[order[self._merge(keys)]] = True
        yield from self._texts(is_new)
        self._text.unlink()

    def _merge(self, keys: U64) -> np.ndarray:
        """Write the table anew with `keys` (sorted, without repeats); return which are new: bool[n]."""
        new = np.ones(len(keys), np.bool_)
        count, done = self._table.stat().st_size // KEY.itemsize, 0
        output = _appender(self._table.with_suffix(".new"))
        reader = Reader(self._table)
        for start in range(0, count, CHUNK_KEYS):
            chunk = reader.array(KEY, start, min(CHUNK_KEYS, count - start))
            end = done + int(np.searchsorted(keys[done:], chunk[-1], side="right"))
            there = np.searchsorted(chunk, keys[done:end])
            new[done:end] = chunk[there] != keys[done:end]
            output.write(raw(merged(chunk, None, keys[done:end][new[done:end]], None)[0]))
            done = end
        output.write(raw(keys[done:]))
        self.moved_bytes += count * KEY.itemsize + output.length
        reader.close()
        output.close()
        self._table.with_suffix(".new").rename(self._table)
        return new

    def _texts(self, is_new: np.ndarray) -> Iterator[pa.BinaryArray]:
        reader, offset, start = Reader(self._text), 0, 0
        while start < len(is_new):
            batch, offset = frames.decode(reader, offset, TEXT)
            end = start + batch.num_rows
            yield batch.column(0).filter(pa.array(is_new[start:end]))
            start = end
        reader.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _appender(path: Path) -> Appender:
    return Appender(path, 0, lambda length: None, xxh3_64())
