"""Whole URLs in memory, a compressed file of URLs: Polybot (2001).

IRLbot's section 4.1, after Shkapenyuk and Suel (2002): new links wait in memory as text, in a balanced tree. When it
is full, it is merged with the file of all URLs met, sorted and compressed, which is written anew.

- Faithful: no text goes to disk before it is known to be new, memory holds `b + 4P` bytes a link, every merge unpacks
  and packs the whole file (Theorem 1, equation 2), and links come out sorted instead of in order of arrival.
- Simplified: an array that is sorted when full stands for the tree; it does the same comparisons, in C. URLs have one
  length, the stream's; others would be padded to the longest.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import zstandard

from fyke.core.batches import U64
from url_seen import Texts
from url_seen.stream import URL_BYTES

POINTERS_BYTES = 16  # 4P: the size of a tree's node; sorting an array needs no more
BLOCK_URLS = 1 << 14
LENGTH = struct.Struct("<I")
URL = np.dtype(f"S{URL_BYTES}")


class TreeBatch:
    """`urls` on disk, sorted, in compressed blocks; waiting links in an array of text."""

    filled_by = "text"
    persistent = True

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        self._file = directory / "urls"
        self._file.touch()
        self._waiting = np.empty(max(1, memory_bytes // (URL_BYTES + POINTERS_BYTES)), URL)
        self._rows = 0
        self._pack = zstandard.ZstdCompressor(level=1).compress
        self._unpack = zstandard.ZstdDecompressor().decompress
        self.moved_bytes = 0

    def fill(self, keys: U64, texts: Texts) -> None:
        urls = _array(texts())
        with self._file.open("ab") as file:
            for start in range(0, len(urls), BLOCK_URLS):
                self._write(file, urls[start : start + BLOCK_URLS])

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        urls = _array(texts)
        while len(urls):
            fit = urls[: len(self._waiting) - self._rows]
            self._waiting[self._rows : self._rows + len(fit)] = fit
            self._rows += len(fit)
            urls = urls[len(fit) :]
            if self._rows == len(self._waiting):
                yield from self.finish()

    def finish(self) -> Iterator[pa.BinaryArray]:
        urls = self._waiting[: self._rows]
        urls.sort()
        done, fresh = 0, self._file.with_suffix(".new")
        with fresh.open("wb") as output:
            for block in self._blocks():
                end = done + int(np.searchsorted(urls[done:], block[-1], side="right"))
                new = _unique(urls[done:end])
                places = np.searchsorted(block, new)
                absent = block[places] != new
                self._write(output, np.insert(block, places[absent], new[absent]))
                yield _texts(new[absent])
                done = end
            new = _unique(urls[done:])
            for start in range(0, len(new), BLOCK_URLS):
                self._write(output, new[start : start + BLOCK_URLS])
            yield _texts(new)
        fresh.rename(self._file)
        self._rows = 0

    def _blocks(self) -> Iterator[np.ndarray]:
        with self._file.open("rb") as file:
            while header := file.read(LENGTH.size):
                packed = file.read(*LENGTH.unpack(header))
                self.moved_bytes += len(packed)
                yield np.frombuffer(self._unpack(packed), URL)

    def _write(self, file, urls: np.ndarray) -> None:
        """Write sorted URLs as blocks; cut a block that merges have grown to twice its size."""
        if not len(urls):
            return
        if len(urls) >= 2 * BLOCK_URLS:
            self._write(file, urls[: len(urls) // 2])
            urls = urls[len(urls) // 2 :]
        packed = self._pack(np.ascontiguousarray(urls).view(np.uint8).data)
        self.moved_bytes += len(packed)
        file.write(LENGTH.pack(len(packed)))
        file.write(packed)

    def close(self) -> None:
        self._waiting = self._waiting[:0]


def _array(texts: pa.BinaryArray) -> np.ndarray:
    """Return URLs as a NumPy array of fixed width, without a copy."""
    start = texts.offset * URL_BYTES
    return np.frombuffer(texts.buffers()[2], np.uint8)[start : start + len(texts) * URL_BYTES].view(URL)


def _texts(urls: np.ndarray) -> pa.BinaryArray:
    offsets = np.arange(0, (len(urls) + 1) * URL_BYTES, URL_BYTES, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(urls))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(urls), buffers)


def _unique(urls: np.ndarray) -> np.ndarray:
    return urls[np.insert(urls[1:] != urls[:-1], 0, True)] if len(urls) else urls
