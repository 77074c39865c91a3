"""A column batch as bytes: a header, then one encapsulated Arrow message.

Used by the queue for its segments and by the drum for its `aux`. The header holds the length of the message, the number
of its rows and its xxh3-64, seeded with that number; the reader knows the schema. A message may be packed, each column
by itself; Arrow notes that in the message.
"""

import struct

import pyarrow as pa
import xxhash

from fyke.core.errors import OtherVersion
from fyke.disk.files import Bytes, Reader, damaged

HEADER = struct.Struct("<QQQ")
PACKED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


def encode(batch: pa.RecordBatch, *, pack: bool = False) -> list[Bytes]:
    """Return the pieces to write, in order; a slice costs only its own rows."""
    body = memoryview(_packed(batch) if pack else batch.serialize())
    digest = xxhash.xxh3_64_intdigest(body, seed=batch.num_rows)
    return [HEADER.pack(len(body), batch.num_rows, digest), body]


def _packed(batch: pa.RecordBatch) -> pa.Buffer:
    """Return the packed message of `batch`, cut out of a stream because Arrow packs only in streams."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema, options=PACKED) as writer:
        writer.write_batch(batch)
    messages = pa.ipc.MessageReader.open_stream(stream.getvalue())
    messages.read_next_message()  # the schema
    return messages.read_next_message().serialize()


def encode_bytes(body: bytes) -> list[Bytes]:
    """Return the pieces to write for any bytes, as a message without rows."""
    return [HEADER.pack(len(body), 0, xxhash.xxh3_64_intdigest(body)), body]


def decode_bytes(reader: Reader, offset: int) -> bytes:
    """Return the bytes whose header is at `offset`. Raises StateDamaged if they are not the bytes that were written."""
    return _message(reader, offset)[0]


def decode(reader: Reader, offset: int, schema: pa.Schema) -> tuple[pa.RecordBatch, int]:
    """Return the batch whose header is at `offset`, and the offset of the next one.

    Raises StateDamaged if the bytes are not those that were written, OtherVersion if they have other columns.
    """
    body, end = _message(reader, offset)
    try:
        return pa.ipc.read_record_batch(pa.py_buffer(body), schema), end
    except pa.ArrowInvalid:
        what = "was written by another version of Fyke, with columns that this one does not know"
        raise OtherVersion(f"{reader.path} {what}: use that version, or begin a new crawl in another folder") from None


def _message(reader: Reader, offset: int) -> tuple[bytes, int]:
    """Return the bytes of the message whose header is at `offset`, and the offset of the next one."""
    size_bytes, rows, digest = HEADER.unpack(reader.read(offset, HEADER.size))
    start = offset + HEADER.size
    body = reader.read(start, size_bytes) if size_bytes <= reader.size() - start else b""
    if len(body) != size_bytes or xxhash.xxh3_64_intdigest(body, seed=rows) != digest:
        raise damaged(reader.path, f"its bytes from {offset:,} on are not those that were written")
    return body, start + size_bytes


def size(pieces: list[Bytes]) -> int:
    """Return how many bytes `pieces` take in a file."""
    return sum(map(len, pieces))
