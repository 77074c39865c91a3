"""One sorted column as a file: items of one dtype, and behind them a digest of every block.

Written once by a part or a young run. Scans read it block by block and check the digests; probes read single items
and do not. The owner records the number of items in a block beside the file's name.

Invariant: a file holds `count` items and one xxh3-64 for each block of them (the last may be short), and nothing else.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.closing import Closing
from fyke.disk.files import damaged, raw
from fyke.disk.store import Store

DIGEST = np.dtype("<u8")


class ColumnWriter:
    """A new file `<stem>-<serial>.<suffix>` with a digest for each `block` of items, complete once it is closed."""

    def __init__(self, store: Store, stem: str, suffix: str, block: int) -> None:
        self.name, self._file = store.create(stem, suffix)
        self.block = block
        self._digests: list[int] = []
        self._digest = xxhash.xxh3_64()
        self._in_block = 0  # items in the digest

    def write(self, items: npt.NDArray[Any]) -> None:
        """Append `items` [n]."""
        self._file.write(raw(items))
        start = 0
        while start < len(items):
            end = min(len(items), start + self.block - self._in_block)
            self._digest.update(raw(items[start:end]))
            self._in_block += end - start
            if self._in_block == self.block:
                self._finish_block()
            start = end

    def _finish_block(self) -> None:
        self._digests.append(self._digest.intdigest())
        self._digest.reset()
        self._in_block = 0

    def close(self) -> int:
        """Write the digests, close the file, and return its length in bytes."""
        if self._in_block:
            self._finish_block()
        self._file.write(raw(np.array(self._digests, DIGEST)))
        self._file.close()
        return self._file.length


class ColumnReader(Closing):
    """A file of `count` items of `dtype` with a digest for each `block` of them."""

    def __init__(self, store: Store, name: str, dtype: np.dtype[Any], count: int, block: int) -> None:
        self._reader = store.read(name)
        self._dtype = dtype
        self._count = count
        self._block = block
        self._digests: list[int] = []
        self.bytes_read = 0

    @property
    def blocks(self) -> int:
        return -(-self._count // self._block)

    def items(self, start: int, count: int) -> npt.NDArray[Any]:
        """Return items `start` to `start + count` unchecked, [count]; read-only."""
        self.bytes_read += count * self._dtype.itemsize
        return self._reader.array(self._dtype, start, count)

    def block(self, place: int) -> npt.NDArray[Any]:
        """Return all items of a block. Raises StateDamaged if they are not as written."""
        start = place * self._block
        items = self.items(start, min(self._block, self._count - start))
        if xxhash.xxh3_64_intdigest(raw(items)) != self._digest(place):
            raise damaged(self._reader.path, f"block {place} differs from what was written")
        return items

    def _digest(self, place: int) -> int:
        if not self._digests:
            after = self._reader.read(self._count * self._dtype.itemsize, self.blocks * DIGEST.itemsize)
            self._digests = np.frombuffer(after, DIGEST).tolist()
            self.bytes_read += len(after)
        return self._digests[place]

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


def read_whole(store: Store, name: str, dtype: np.dtype[Any], count: int, block: int) -> npt.NDArray[Any]:
    """Return all items of a file, at least one: [count]."""
    with ColumnReader(store, name, dtype, count, block) as reader:
        return np.concatenate([reader.block(place) for place in range(reader.blocks)])
