"""A FIFO of column batches, in segment files that only grow.

Every queue of the frontier is one of these: ready, spills, BEAST's queues, the robots-check queue. Stages
put batches in and get batches out, on the event loop. Rows pass a write buffer, so a put of three rows costs
no write, and a queue that stays short never touches the disk between checkpoints.

    put -> tail (memory) -> segments on disk -> head (memory) -> get

Invariant: head, segments, tail, in this order, are the rows that were put and not yet got. `state` writes
the tail, and the head if it never was on disk, so that names, lengths and one position describe the queue.
Bounded: the tail has at most `buffer_rows` rows or `BUFFER_BYTES` and one put more; the head is one message.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fyke.core.closing import Closing
from fyke.disk import frames
from fyke.disk.files import Appender, Reader
from fyke.disk.store import State, Store

BUFFER_BYTES = 1 << 20  # twice the size of 4,096 ordinary URLs
DRAINED_BYTES = 1 << 20  # from this length on, the only segment is retired once it was read to its end


@dataclass(slots=True)
class Segment:
    """A file of messages; the rows before `offset` were got."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Rows and bytes that passed since the queue was opened."""

    put_rows: int
    got_rows: int
    written_bytes: int
    read_bytes: int


class DiskQueue(Closing):
    """FIFO of rows of one `schema`, on the files `<name>-*.seg` of a store.

    `state` is the result of `state()` at the checkpoint from which the store was opened, None for a new queue.
    `pack` compresses written rows: for a queue whose rows are read and written many times.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        schema: pa.Schema,
        state: State | None = None,
        *,
        segment_bytes: int = 64 << 20,
        buffer_rows: int = 4096,
        pack: bool = False,
    ) -> None:
        self.name = name
        self.schema = schema
        self._store = store
        self._segment_bytes = segment_bytes
        self._buffer_rows = buffer_rows
        self._pack = pack
        saved: dict[str, Any] = state or {}
        self._segments = deque(Segment(*segment) for segment in saved.get("segments", ()))
        self._skip = int(saved.get("row", 0))  # rows already got from the message at the first segment's offset
        self._disk_rows = int(saved.get("rows", 0))  # rows on disk that are not in the head
        self._head: pa.RecordBatch | None = None
        self._head_end = 0  # begin of the message after the head, if the head is on disk
        self._head_on_disk = False
        self._tail: list[pa.RecordBatch] = []
        self._tail_rows = self._tail_bytes = 0
        self._reader: Reader | None = None
        self._writer: Appender | None = None
        self._put = self._got = self._written = self._read = 0

    def __repr__(self) -> str:
        return f"DiskQueue({self.name!r}, {len(self)} rows, {len(self._segments)} segments)"

    def __len__(self) -> int:
        head = self._head.num_rows if self._head is not None else 0
        return head + self._disk_rows + self._tail_rows

    @property
    def size_bytes(self) -> int:
        """Bytes of the waiting rows, in files and in memory."""
        files = sum(self._store.size(segment.name) - segment.offset for segment in self._segments)
        memory = sum(batch.nbytes for batch in self._tail)
        if self._head is not None and not self._head_on_disk:
            memory += self._head.nbytes
        return int(files + memory)

    def put(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch` at the end. Raises TypeError for another schema."""
        if batch.schema != self.schema:
            raise TypeError(f"{self!r} holds {self.schema}, not {batch.schema}")
        if not batch.num_rows:
            return
        self._tail.append(batch)
        self._tail_rows += batch.num_rows
        self._tail_bytes += batch.nbytes
        self._put += batch.num_rows
        if self._tail_rows >= self._buffer_rows or self._tail_bytes >= BUFFER_BYTES:
            self._flush()

    def get(self, max_rows: int) -> pa.RecordBatch | None:
        """Remove and return the next `max_rows` rows, or all if fewer wait; None if no row waits."""
        pieces: list[pa.RecordBatch] = []
        wanted = max_rows
        while wanted > 0 and self._fill_head():
            assert self._head is not None
            piece = self._head.slice(0, wanted)
            self._drop_from_head(piece.num_rows)
            pieces.append(piece)
            wanted -= piece.num_rows
        if not pieces:
            return None
        self._got += max_rows - wanted
        return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)

    def drain(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Get all rows that wait now, `rows` at a time. Rows put meanwhile stay."""
        left = len(self)
        while left > 0 and (batch := self.get(min(rows, left))) is not None:
            left -= batch.num_rows
            yield batch

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield all waiting rows in order, and leave them. Must not be mixed with `put` or `get`."""
        if self._head is not None:
            yield self._head
        skip = 0 if self._head is not None else self._skip
        for place, segment in enumerate(self._segments):
            offset = self._head_end if place == 0 and self._head_on_disk else segment.offset
            with self._store.read(segment.name) as reader:
                while offset < self._store.size(segment.name):
                    batch, offset = frames.decode(reader, offset, self.schema)
                    yield batch.slice(skip)
                    skip = 0
        yield from self._tail

    def state(self) -> State:
        """Write rows that are only in memory, and return where all rows are, for the constructor."""
        if self._head is not None and not self._head_on_disk:
            self._save_head()
        self._flush()
        segments = [[segment.name, segment.offset] for segment in self._segments]
        return {"segments": segments, "row": self._skip, "rows": len(self)}

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(self._put, self._got, self._written, self._read)

    def destroy(self) -> None:
        """Drop all rows and files."""
        self.close()
        for segment in self._segments:
            self._store.retire(segment.name)
        self._segments.clear()
        self._tail, self._tail_rows, self._tail_bytes, self._disk_rows, self._skip = [], 0, 0, 0, 0
        self._head, self._head_on_disk = None, False

    def close(self) -> None:
        """Close the files. Changes after the last `state` are lost with the process."""
        self._close_reader()
        self._close_writer()

    # --- writing

    def _flush(self) -> None:
        """Write the tail as one message at the end of the last segment."""
        if not self._tail:
            return
        batch = _joined(self._tail)
        if self._writer is None:
            self._writer = self._open_writer()
        for piece in frames.encode(batch, pack=self._pack):
            self._writer.write(piece)
            self._written += len(piece)
        self._disk_rows += batch.num_rows
        self._tail, self._tail_rows, self._tail_bytes = [], 0, 0
        if self._writer.length >= self._segment_bytes:
            self._close_writer()

    def _open_writer(self) -> Appender:
        if self._segments and self._store.size(self._segments[-1].name) < self._segment_bytes:
            return self._store.append(self._segments[-1].name)
        name, writer = self._store.create(self.name, "seg")
        self._segments.append(Segment(name, 0))
        return writer

    def _save_head(self) -> None:
        """Write a head that came straight from the tail as the first segment, before rows written after it."""
        assert self._head is not None
        self._close_reader()
        pieces = frames.encode(self._head, pack=self._pack)
        name = self._store.write(self.name, "seg", pieces)
        self._written += frames.size(pieces)
        self._segments.appendleft(Segment(name, 0))
        self._head_end = self._store.size(name)
        self._head_on_disk = True

    # --- reading

    def _fill_head(self) -> bool:
        """Make the next message, or the tail, the head if there is none; return whether there is a head."""
        if self._head is not None:
            return True
        if self._disk_rows:
            self._read_message()
            return True
        if self._tail:
            self._head = _joined(self._tail)
            self._tail, self._tail_rows, self._tail_bytes = [], 0, 0
            return True
        return False

    def _read_message(self) -> None:
        segment = self._segments[0]
        if self._reader is None:
            self._reader = self._store.read(segment.name)
        batch, self._head_end = frames.decode(self._reader, segment.offset, self.schema)
        self._read += self._head_end - segment.offset
        self._head = batch.slice(self._skip)
        self._head_on_disk = True
        self._disk_rows -= self._head.num_rows

    def _drop_from_head(self, rows: int) -> None:
        assert self._head is not None
        if rows < self._head.num_rows:
            self._head = self._head.slice(rows)
            self._skip += rows if self._head_on_disk else 0
            return
        self._head = None
        if self._head_on_disk:
            self._segments[0].offset, self._skip = self._head_end, 0
            self._head_on_disk = False
            self._leave_drained()

    def _leave_drained(self) -> None:
        """Retire the first segment if it was read to its end, unless it is short and still grows."""
        segment = self._segments[0]
        length = self._store.size(segment.name)
        if segment.offset < length or (len(self._segments) == 1 and length < min(DRAINED_BYTES, self._segment_bytes)):
            return
        if len(self._segments) == 1:
            self._close_writer()
        self._close_reader()
        self._segments.popleft()
        self._store.retire(segment.name)

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
