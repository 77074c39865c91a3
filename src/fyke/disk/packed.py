"""A column batch packed with LZ4: a header, then one compressed Arrow message.

For what waits in a drum's runs: it is written once and read once, nine of ten of its rows are then dropped, and
URLs pack to half or less, so that packing takes less time than copying what it saves to the system would, and
less still than waiting for the disk. The header holds the length of the packed message, its length unpacked, its
rows and its xxh3-64, seeded with the rows; the schema is known to the reader and not repeated.
"""

import struct

import pyarrow as pa
import xxhash

from fyke.disk.files import Bytes, Reader, damaged

HEADER = struct.Struct("<QQQQ")
CODEC = "lz4_raw"


def encode(batch: pa.RecordBatch) -> list[Bytes]:
    """The pieces to write, in order; a slice costs only its own rows."""
    message = batch.serialize()
    body = memoryview(pa.compress(message, CODEC, asbytes=True))
    digest = xxhash.xxh3_64_intdigest(body, seed=batch.num_rows)
    return [HEADER.pack(len(body), message.size, batch.num_rows, digest), body]


def decode(reader: Reader, offset: int, size_bytes: int, schema: pa.Schema) -> pa.RecordBatch:
    """The batch that takes `size_bytes` from `offset` on. Raises StateDamaged when they are not those written."""
    data = reader.read(offset, size_bytes)
    length, unpacked_bytes, rows, digest = HEADER.unpack_from(data)
    body = memoryview(data)[HEADER.size :]
    if len(body) != length or xxhash.xxh3_64_intdigest(body, seed=rows) != digest:
        raise damaged(reader.path, f"its bytes from {offset:,} on are not those that were written")
    return pa.ipc.read_record_batch(pa.decompress(body, unpacked_bytes, CODEC), schema)
