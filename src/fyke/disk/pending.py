"""Operations that wait for a drum's next merge, with their `aux`, in order of arrival.

They are gathered in memory, and spilled to `fyke.disk.runs` when memory is full. A checkpoint does not spill; it
appends new entries to a *log*, so that the next merge still works from memory.

Invariant: the runs in their order, then memory, are the entries that were added and not taken.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64
from fyke.disk import frames
from fyke.disk.files import Appender, Bytes, raw
from fyke.disk.operations import LOT_ROWS, Entries, joined_entries
from fyke.disk.runs import Batch, EntryFormat, Runs
from fyke.disk.store import State, Store

LOT_BYTES = 2 << 20  # answered at once, about


class Pending:
    """The waiting entries of a drum whose aux has the schema `aux` (None for a drum without aux)."""

    def __init__(
        self, store: Store, name: str, dtype: np.dtype[Any] | None, aux: pa.Schema | None, saved: State
    ) -> None:
        self._store = store
        self._name = name
        self._aux_schema = aux
        self._format = EntryFormat(dtype)
        self.runs = Runs(store, name, self._format, aux, saved.get("runs", []))
        self._log: list[str] = list(saved.get("log", []))
        self._log_files: list[Appender] = []
        self._memory: list[Batch] = []
        self._logged = 0  # batches in memory that are in the log
        self.memory_rows = 0
        self.memory_bytes = 0
        self._log_bytes = 0  # written to it
        if self._log:
            self._load_log()

    def __len__(self) -> int:
        return self.memory_rows + self.runs.rows

    @property
    def size_bytes(self) -> int:
        """Bytes of the waiting entries, in memory and in runs."""
        return self.memory_bytes + self.runs.size_bytes

    @property
    def bytes_read(self) -> int:
        return self.runs.bytes_read

    @property
    def bytes_written(self) -> int:
        return self.runs.bytes_written + self._log_bytes

    def add(self, batch: Batch) -> None:
        """Add `batch` to memory. Its arrays must not change afterwards."""
        self._memory.append(batch)
        self.memory_rows += len(batch.entries)
        self.memory_bytes += batch.nbytes

    def take_memory(self) -> list[Batch]:
        """Remove and return all batches in memory."""
        batches = self._memory
        self._clear_memory()
        return batches

    def _clear_memory(self) -> None:
        self._memory, self._logged = [], 0
        self.memory_rows = self.memory_bytes = 0
        self._close_log()
        for name in self._log:
            self._store.retire(name)
        self._log = []

    def spill(self, lows: U64, *, pack: bool = True) -> None:
        """Move memory to a run, by the buckets that begin at the keys `lows`; `pack` as in `Runs.add`."""
        if self._memory:
            self.runs.add(self._memory, lows, pack=pack)
            self._clear_memory()

    def scan(self) -> Iterator[Batch]:
        """Yield all entries, those of each key in order of arrival."""
        yield from self.runs.scan()
        yield from self._memory

    def of_keys(self, keys: U64, buckets: list[int]) -> list[Entries]:
        """Return the entries of `keys` (sorted), which belong to `buckets`, in order of arrival."""
        waiting = [*self.runs.of_buckets(buckets), *(batch.entries for batch in self._memory)]
        return [picked for entries in waiting if len(picked := entries.of_keys(keys))]

    # --- checkpoints

    def state(self) -> State:
        """Append new entries to the log; return the files that hold all entries."""
        fresh = self._memory[self._logged :]
        if fresh:
            self._append_to_log(_joined(fresh))
            self._logged = len(self._memory)
        return {"runs": self.runs.state(), "log": self._log[:]}

    def _append_to_log(self, batch: Batch) -> None:
        if not self._log_files:
            self._open_log()
        pieces: list[list[Bytes]] = [[raw(self._format.records(batch.entries))]]
        if self._aux_schema is not None:
            aux = self._aux_schema.empty_table().to_batches() if batch.aux is None else [batch.aux]
            pieces.append([piece for part in aux for piece in frames.encode(part)])
        for file, data in zip(self._log_files, pieces, strict=True):
            for piece in data:
                file.write(piece)
                self._log_bytes += len(piece)

    def _open_log(self) -> None:
        if self._log:
            self._log_files = [self._store.append(name) for name in self._log]
            return
        suffixes = ["ops"] if self._aux_schema is None else ["ops", "aux"]
        created = [self._store.create(self._name, suffix) for suffix in suffixes]
        self._log = [name for name, _ in created]
        self._log_files = [file for _, file in created]

    def _load_log(self) -> None:
        with self._store.read(self._log[0]) as reader:
            count = self._store.size(self._log[0]) // self._format.record.itemsize
            entries = self._format.entries(reader.array(self._format.record, 0, count))
        aux = None
        if self._aux_schema is not None:
            batches, offset = [], 0
            with self._store.read(self._log[1]) as reader:
                while offset < self._store.size(self._log[1]):
                    batch, offset = frames.decode(reader, offset, self._aux_schema)
                    batches.append(batch)
            aux = pa.concat_batches(batches) if batches else None
        self.add(Batch(entries, aux))
        self._logged = 1

    def _close_log(self) -> None:
        for file in self._log_files:
            file.close()
        self._log_files = []

    def close(self) -> None:
        """Close the files."""
        self._close_log()


def in_lots(batches: list[Batch]) -> Iterator[Batch]:
    """Join small batches, in order: handling a batch takes as long for one row as for a hundred."""
    lot: list[Batch] = []
    rows = size_bytes = 0
    for batch in batches:
        rows, size_bytes = rows + len(batch.entries), size_bytes + batch.nbytes
        if lot and (rows > LOT_ROWS or size_bytes > LOT_BYTES):
            yield _joined(lot)
            lot, rows, size_bytes = [], len(batch.entries), batch.nbytes
        lot.append(batch)
    if lot:
        yield _joined(lot)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    aux = [batch.aux for batch in batches if batch.aux is not None]
    return Batch(joined_entries([batch.entries for batch in batches]), pa.concat_batches(aux) if aux else None)
