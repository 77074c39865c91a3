"""Fyke's own: `fyke.disk.Drum`, merged whenever it says that it is full. IRLbot's section 4.3."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from fyke.core.batches import U64
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.drum import Drum
from url_seen import Texts

AUX = pa.schema([("url", pa.binary())])


class DrumSeen:
    """A drum in its own directory."""

    filled_by = "key"
    persistent = True

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        self._checkpoint = Checkpoint(directory)
        store = self._checkpoint.store
        self.drum = Drum(store, "seen", store.participant("seen"), aux=AUX, memory_bytes=memory_bytes)
        self.waited_bytes: list[int] = []  # at each merge

    def fill(self, keys: U64, texts: Texts) -> None:
        self.drum.update(keys)
        self.drum.settle()

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        self.drum.check_update(keys, aux=pa.RecordBatch.from_arrays([texts], schema=AUX))
        if self.drum.full:
            yield from self.finish()

    def finish(self) -> Iterator[pa.BinaryArray]:
        self.waited_bytes.append(self.drum.pending_bytes)
        for batch in self.drum.merge_unique():
            yield batch.column(0)

    @property
    def moved_bytes(self) -> int:
        statistics = self.drum.statistics()
        return statistics.bytes_read + statistics.bytes_written

    def close(self) -> None:
        snapshot = self._checkpoint.take({"seen": self.drum.state()})
        snapshot.make_durable()
        self._checkpoint.committed(snapshot)
        self.drum.close()
        self._checkpoint.close()
