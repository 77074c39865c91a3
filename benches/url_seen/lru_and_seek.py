"""A cache of popular URLs, and a seek for the rest: Mercator-A (1999).

IRLbot's Table 1; Heydon and Najork, "Mercator" (1999): fingerprints in a file on disk, behind a cache of popular ones
in memory. A miss costs a seek and a read, and a write if the key is new.

- Faithful: the answer comes at once, each miss is one `pread` of a page of the file, a new key one `pwrite`.
- Simplified: the file is a hash table of pages by the key's leading bits, not the papers' ordered table. The cache is
  LRU, which theirs approximated by a clock, and takes all the memory. Their two smaller caches (of recent URLs, and of
  file blocks) are this one and the system's page cache. A seek costs a call if the page cache holds the table,
  otherwise a seek of the disk.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64
from url_seen import Texts

SLOTS = 512  # keys in a page of 4 KiB; 0 is an empty slot
LOAD = 0.7
CACHED_BYTES = 200  # of a key in an OrderedDict


class LruAndSeek:
    """An LRU cache of keys over a file of pages."""

    filled_by = "key"
    persistent = True

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        self._pages = int(capacity / (SLOTS * LOAD)) + 2
        self._file = os.open(directory / "pages", os.O_RDWR | os.O_CREAT)
        os.ftruncate(self._file, self._pages * SLOTS * 8)
        self._cache: OrderedDict[int, None] = OrderedDict()
        self._cached = memory_bytes // CACHED_BYTES

    def fill(self, keys: U64, texts: Texts) -> None:
        first, last = (int(key) * self._pages >> 64 for key in (keys[0], keys[-1]))
        starts = [-(-(page << 64) // self._pages) for page in range(first + 1, last + 1)]
        edges = [0, *np.searchsorted(keys, np.array(starts, np.uint64)).tolist(), len(keys)]
        for page, (start, end) in enumerate(pairwise(edges), first):
            used = np.count_nonzero(self._read(page))
            os.pwrite(self._file, keys[start:end].tobytes(), (page * SLOTS + used) * 8)

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        cache, new = self._cache, []
        for place, key in enumerate(keys.tolist()):
            if key in cache:
                cache.move_to_end(key)
                continue
            if self._seek(key):
                new.append(place)
            cache[key] = None
            if len(cache) > self._cached:
                cache.popitem(last=False)
        yield texts.take(pa.array(new, pa.int64()))

    def _seek(self, key: int) -> bool:
        """Look `key` up in its page, or the next ones while full; add it and return True if it is new."""
        at = key * self._pages >> 64
        while True:
            page = self._read(at)
            if (page == key).any():
                return False
            used = int(np.count_nonzero(page))
            if used < SLOTS:
                os.pwrite(self._file, key.to_bytes(8, "little"), (at * SLOTS + used) * 8)
                return True
            at = (at + 1) % self._pages

    def _read(self, page: int) -> U64:
        return np.frombuffer(os.pread(self._file, SLOTS * 8, page * SLOTS * 8), np.uint64)

    def finish(self) -> Iterator[pa.BinaryArray]:
        yield from ()

    def close(self) -> None:
        os.close(self._file)
