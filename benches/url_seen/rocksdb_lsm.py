"""A structure that people use today: RocksDB, an LSM tree, through `rocksdict`.

Tuned as a competent person would: keys of 8 bytes without values; a Bloom filter of 10 bits a key, so that most new
keys cost no read; filters and index in the block cache and so within the memory; `multi_get` of each batch sorted;
writes in one batch each; the log not synced. A batch's repeats are taken out first.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from rocksdict import BlockBasedOptions, Cache, Options, Rdict, WriteBatch

from fyke.core.batches import U64
from url_seen import Texts

BUFFERS, BUFFER_BYTES = 3, 32 << 20


class RocksDb:
    """A column of keys."""

    filled_by = "key"
    persistent = True

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(min(BUFFER_BYTES, memory_bytes // 8))
        options.set_max_write_buffer_number(BUFFERS)
        options.set_max_background_jobs(2)
        options.set_level_compaction_dynamic_level_bytes(True)
        blocks = BlockBasedOptions()
        blocks.set_block_cache(Cache(max(8 << 20, memory_bytes - BUFFERS * BUFFER_BYTES)))
        blocks.set_bloom_filter(10, False)
        blocks.set_cache_index_and_filter_blocks(True)
        options.set_block_based_table_factory(blocks)
        self._db = Rdict(str(directory / "rocks"), options)

    def fill(self, keys: U64, texts: Texts) -> None:
        self._put(_bytes(keys))

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        unique, first = np.unique(keys, return_index=True)
        names = _bytes(unique)
        new = np.array([value is None for value in self._db.get(names)], np.bool_)
        self._put([names[place] for place in np.flatnonzero(new).tolist()])
        yield texts.take(pa.array(np.sort(first[new])))

    def _put(self, names: list[bytes]) -> None:
        batch = WriteBatch(raw_mode=True)
        for name in names:
            batch.put(name, b"")
        self._db.write(batch)

    def finish(self) -> Iterator[pa.BinaryArray]:
        yield from ()

    def close(self) -> None:
        self._db.close()


def _bytes(keys: U64) -> list[bytes]:
    """Return the keys big-endian, so that they sort as the numbers do."""
    whole = keys.astype(">u8").tobytes()
    return [whole[at : at + 8] for at in range(0, len(whole), 8)]
