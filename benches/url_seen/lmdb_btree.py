"""A structure that people use today: LMDB, a B+tree in a mapped file.

Tuned as a competent person would: one write transaction a batch, its keys sorted so that neighbours share a page, no
sync, the map written in place. Its memory is the system's page cache, which has no budget: its mapped pages count as
its own in a peak of resident memory.
"""

from collections.abc import Iterator
from pathlib import Path

import lmdb
import numpy as np
import pyarrow as pa

from fyke.core.batches import U64
from url_seen import Texts

MAP_BYTES = 200 << 30  # address space, not disk


class Lmdb:
    """A tree of keys without values."""

    filled_by = "key"
    persistent = True

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        self._env = lmdb.open(str(directory), map_size=MAP_BYTES, sync=False, metasync=False, writemap=True)

    def fill(self, keys: U64, texts: Texts) -> None:
        with self._env.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti([(name, b"") for name in _bytes(keys)], append=True)

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        unique, first = np.unique(keys, return_index=True)
        with self._env.begin(write=True) as transaction:
            put = transaction.put
            new = [put(name, b"", overwrite=False) for name in _bytes(unique)]
        yield texts.take(pa.array(np.sort(first[np.array(new, np.bool_)])))

    def finish(self) -> Iterator[pa.BinaryArray]:
        yield from ()

    def close(self) -> None:
        self._env.close()


def _bytes(keys: U64) -> list[bytes]:
    """Return the keys big-endian, so that they sort as the numbers do."""
    whole = keys.astype(">u8").tobytes()
    return [whole[at : at + 8] for at in range(0, len(whole), 8)]
