"""A FIFO of column batches in segment files: what waits.

Used for every queue of the frontier and for the pending entries of a Drum. A batch is appended as one
Arrow IPC message with its length, row count and checksum before it; it is read back in the same order.
Small batches are gathered in memory first, and when the queue is short they go to the reader without
touching the disk; `state` writes them out, so that a checkpoint is exact.

Memory holds one batch at each end. Invariant: rows come out once each, in the order they went in, also
over a restart from `state`.
"""

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from fyke.core.errors import StateDamaged
from fyke.shelf.store import GrowingFile, Store

GATHER_ROWS = 4096
SEGMENT_BYTES = 64 << 20
_FRAME = struct.Struct("<QQII")  # length, xxh3-64 of the message, rows, a mark
_MARK = 0x464B5951


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Rows that wait, and bytes moved since it was opened."""

    rows: int
    bytes_written: int
    bytes_read: int


class DiskQueue:
    """The queue `name` in `store`, of batches with `schema`; begun anew or restored from `state`."""

    def __init__(self, store: Store, name: str, schema: pa.Schema, state: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.schema = schema
        self._store = store
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = 0
        self._head: pa.RecordBatch | None = None  # being read; from disk it lies at `_head_at`
        self._head_row = 0
        self._head_frame = 0
        saved = state or {}
        self._segments: deque[int] = deque(saved.get("segments", []))
        self._offset = int(saved.get("offset", 0))  # of the next frame, in the first segment
        self._skip = int(saved.get("row", 0))
        self._serial = int(saved.get("serial", 0))
        self._disk_rows = int(saved.get("rows", 0))  # on disk and not yet in `_head`
        self._writer: GrowingFile | None = None
        self._bytes_written = self._bytes_read = 0
        self._open_segments()

    def __repr__(self) -> str:
        return f"DiskQueue({self.name!r}, {len(self)} rows, {len(self._segments)} segments)"

    def __len__(self) -> int:
        head = self._head.num_rows - self._head_row if self._head is not None else 0
        return head + self._disk_rows + self._gathered_rows

    def _open_segments(self) -> None:
        if self._store.read_only:
            return
        for serial in list(self._segments)[:-1]:
            self._store.adopt(self._segment(serial))
        if self._segments:
            self._writer = self._store.grow_on(self._segment(self._segments[-1]))

    def _segment(self, serial: int) -> str:
        return f"{self.name}-{serial:08}.queue"

    def put(self, batch: pa.RecordBatch) -> None:
        """Append `batch`. Raises DiskFull."""
        if not batch.num_rows:
            return
        self._gathered.append(batch)
        self._gathered_rows += batch.num_rows
        if self._gathered_rows >= GATHER_ROWS:
            self._flush()

    def get(self, rows: int) -> pa.RecordBatch | None:
        """The first `rows` rows or fewer, at least one; None when the queue is empty."""
        if self._head is None and not self._next_head():
            return None
        assert self._head is not None
        batch = self._head.slice(self._head_row, rows)
        self._head_row += batch.num_rows
        if self._head_row >= self._head.num_rows:
            self._head = None
            self._head_row = 0
        return batch

    def _next_head(self) -> bool:
        if self._disk_rows:
            self._head = self._read()
            self._head_row, self._skip = self._skip, 0
            self._disk_rows -= self._head.num_rows - self._head_row
            return True
        if not self._gathered:
            return False
        self._head = self._gathered[0] if len(self._gathered) == 1 else pa.concat_batches(self._gathered)
        self._head_frame = -1
        self._gathered, self._gathered_rows = [], 0
        return True

    def _read(self) -> pa.RecordBatch:
        """The batch at the read position, which moves on."""
        while True:
            path = self._store.path(self._segment(self._segments[0]))
            self._head_frame = self._offset
            found = read_frame(path, self._offset, self.schema)
            if found is not None:
                break
            self._store.retire(self._segment(self._segments.popleft()))
            self._offset = 0
        batch, self._offset = found
        self._bytes_read += self._offset - self._head_frame
        return batch

    def _flush(self) -> None:
        if self._gathered:
            batch = self._gathered[0] if len(self._gathered) == 1 else pa.concat_batches(self._gathered)
            self._append(batch)
            self._gathered, self._gathered_rows = [], 0

    def _append(self, batch: pa.RecordBatch) -> None:
        if self._writer is None or self._writer.length >= SEGMENT_BYTES:
            self._serial += 1
            self._writer = self._store.grow(self._segment(self._serial))
            self._segments.append(self._serial)
        message = batch.serialize()
        digest = xxhash.xxh3_64_intdigest(message)
        self._writer.write(_FRAME.pack(message.size, digest, batch.num_rows, _MARK) + message.to_pybytes())
        self._bytes_written += _FRAME.size + message.size
        self._disk_rows += batch.num_rows

    def state(self) -> dict[str, Any]:
        """What a manifest keeps; all rows are then in files."""
        if self._head is not None and self._head_frame < 0:
            rest = self._head.slice(self._head_row)
            later, self._gathered = self._gathered, [rest]
            self._gathered += later
            self._gathered_rows += rest.num_rows
            self._head, self._head_row = None, 0
        self._flush()
        offset, row, rows = self._offset, self._skip, self._disk_rows
        if self._head is not None:
            offset, row = self._head_frame, self._head_row
            rows += self._head.num_rows - self._head_row
        if not rows and self._segments:
            self._retire_all()
            offset = row = 0
        return {"segments": list(self._segments), "offset": offset, "row": row, "serial": self._serial, "rows": rows}

    def _retire_all(self) -> None:
        while self._segments:
            self._store.retire(self._segment(self._segments.popleft()))
        self._writer = None
        self._offset = self._skip = 0

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Every row that waits, without taking it out."""
        if self._head is not None:
            yield self._head.slice(self._head_row)
        offset, skip, left = self._offset, self._skip, self._disk_rows
        for serial in list(self._segments):
            while left > 0 and (found := read_frame(self._store.path(self._segment(serial)), offset, self.schema)):
                batch, offset = found
                left -= batch.num_rows - skip
                yield batch.slice(skip)
                skip = 0
            offset = 0
        yield from self._gathered

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(len(self), self._bytes_written, self._bytes_read)

    def destroy(self) -> None:
        """Drop the queue with all its files."""
        self._gathered, self._gathered_rows, self._head, self._head_row, self._disk_rows = [], 0, None, 0, 0
        self._retire_all()

    def close(self) -> None:
        """Let go of the file; what was not in a `state` is lost."""
        if self._writer is not None:
            self._writer.close()


def read_segment(path: Path, length: int) -> Iterator[bytes]:
    """The message of every frame in the first `length` bytes of a segment. Raises StateDamaged."""
    offset = 0
    while offset < length:
        found = read_message(path, offset)
        if found is None:
            raise StateDamaged(f"{path} ends at byte {offset} and should have {length}: the crawl's state is damaged")
        message, _, offset = found
        yield message


def read_message(path: Path, offset: int) -> tuple[bytes, int, int] | None:
    """The message at `offset` of the segment `path`, its rows, and the offset after it; None at the end.

    Raises StateDamaged when the bytes are not what was written.
    """
    with path.open("rb") as file:
        file.seek(offset)
        head = file.read(_FRAME.size)
        if not head:
            return None
        if len(head) < _FRAME.size:
            raise StateDamaged(f"{path} is torn at byte {offset}: the crawl's state is damaged")
        size, digest, rows, mark = _FRAME.unpack(head)
        message = file.read(size) if mark == _MARK else b""
    if len(message) != size or xxhash.xxh3_64_intdigest(message) != digest:
        raise StateDamaged(f"{path} does not hold what was written at byte {offset}: the crawl's state is damaged")
    return message, rows, offset + _FRAME.size + size


def read_frame(path: Path, offset: int, schema: pa.Schema) -> tuple[pa.RecordBatch, int] | None:
    """The batch at `offset` of the segment `path` and the offset after it; None at the end."""
    found = read_message(path, offset)
    if found is None:
        return None
    message, rows, end = found
    batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
    if batch.num_rows != rows:
        raise StateDamaged(f"{path} has {batch.num_rows} rows for {rows} at byte {offset}")
    return batch, end
