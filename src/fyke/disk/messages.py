"""A column batch as bytes: a header, then one encapsulated Arrow message.

Used by the queue for its segments and by the drum for its `aux`. The header holds the length of the message,
its rows and its xxh3-64, seeded with the rows; the schema is known to the reader and not repeated.
"""

import struct

import pyarrow as pa
import xxhash

from fyke.core.errors import StateDamaged
from fyke.disk.files import Bytes, Reader

HEADER = struct.Struct("<QQQ")


def encode(batch: pa.RecordBatch) -> list[Bytes]:
    """The pieces to write, in order; a slice costs only its own rows."""
    body = memoryview(batch.serialize())
    digest = xxhash.xxh3_64_intdigest(body, seed=batch.num_rows)
    return [HEADER.pack(len(body), batch.num_rows, digest), body]


def decode(reader: Reader, offset: int, schema: pa.Schema) -> tuple[pa.RecordBatch, int]:
    """The batch whose header is at `offset`, and where the next one begins.

    Raises StateDamaged when the bytes are not those that were written.
    """
    length, rows, digest = HEADER.unpack(reader.read(offset, HEADER.size))
    start = offset + HEADER.size
    body = reader.read(start, length) if length <= reader.size() - start else b""
    if len(body) != length or xxhash.xxh3_64_intdigest(body, seed=rows) != digest:
        raise StateDamaged(f"{reader!r} is damaged at byte {offset}: restore it from a copy, or crawl anew")
    return pa.ipc.read_record_batch(pa.py_buffer(body), schema), start + length


def size(pieces: list[Bytes]) -> int:
    """Bytes that `pieces` take in a file."""
    return sum(map(len, pieces))
