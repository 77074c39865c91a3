"""A column batch packed with LZ4: a header, then one compressed Arrow message.

For the aux of a drum's runs: it is written once and read once, then nine of ten rows are dropped. URLs pack to half or
less, so packing takes less time than copying the saved bytes to the system would, and less still than waiting for the
disk. The header holds the length of the packed message, its length unpacked, the number of its rows and its xxh3-64,
seeded with that number; the reader knows the schema.
"""

import struct

import pyarrow as pa
import xxhash

from fyke.disk.files import Bytes, Reader, damaged

HEADER = struct.Struct("<QQQQ")
CODEC = "lz4_raw"


def encode(batch: pa.RecordBatch) -> list[Bytes]:
    """Return the pieces to write, in order; a slice costs only its own rows."""
    message = batch.serialize()
    body = memoryview(pa.compress(message, CODEC, asbytes=True))
    digest = xxhash.xxh3_64_intdigest(body, seed=batch.num_rows)
    return [HEADER.pack(len(body), message.size, batch.num_rows, digest), body]


def decode(reader: Reader, offset: int, size_bytes: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in the `size_bytes` from `offset` on. Raises StateDamaged if they are not as written."""
    data = reader.read(offset, size_bytes)
    length, unpacked_bytes, rows, digest = HEADER.unpack_from(data)
    body = memoryview(data)[HEADER.size :]
    if len(body) != length or xxhash.xxh3_64_intdigest(body, seed=rows) != digest:
        raise damaged(reader.path, f"its bytes from {offset:,} on are not those that were written")
    return pa.ipc.read_record_batch(pa.decompress(body, unpacked_bytes, CODEC), schema)
