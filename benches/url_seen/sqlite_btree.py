"""A structure that people use today: SQLite, a B-tree, from the standard library.

Tuned as a competent person would: the key is the row's number, so the table is its own index; a write-ahead log, no
sync, the memory as page cache. A batch is one transaction with one statement, which inserts the sorted keys and
returns the new ones.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64
from url_seen import Texts

PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-{}"
SCHEMA = "CREATE TABLE IF NOT EXISTS seen(key INTEGER PRIMARY KEY); CREATE TEMP TABLE batch(key INTEGER PRIMARY KEY)"
PUT = "INSERT INTO seen SELECT key FROM batch WHERE true ON CONFLICT DO NOTHING RETURNING key"


class Sqlite:
    """A table of keys."""

    filled_by = "key"
    persistent = True

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        self._db = sqlite3.connect(directory / "seen.sqlite", isolation_level=None)
        self._db.executescript(PRAGMAS.format(memory_bytes >> 10))
        self._db.executescript(SCHEMA)

    def fill(self, keys: U64, texts: Texts) -> None:
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO seen VALUES (?)", zip(_signed(keys).tolist()))
        self._db.execute("COMMIT")

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        unique, first = np.unique(_signed(keys), return_index=True)
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO batch VALUES (?)", zip(unique.tolist()))
        new = np.array(self._db.execute(PUT).fetchall(), np.int64).ravel()
        self._db.execute("DELETE FROM batch")
        self._db.execute("COMMIT")
        yield texts.take(pa.array(np.sort(first[np.searchsorted(unique, new)])))

    def finish(self) -> Iterator[pa.BinaryArray]:
        yield from ()

    def close(self) -> None:
        self._db.close()


def _signed(keys: U64) -> np.ndarray:
    """Return the keys as SQLite's 64-bit numbers, in the order of the keys."""
    return (keys ^ np.uint64(1 << 63)).view(np.int64)
