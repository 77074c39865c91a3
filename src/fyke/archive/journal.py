"""Rows that are not in a Parquet file yet: an Arrow stream that can be appended to and cut.

`fyke.archive.table_files` writes one segment after the other; `fyke.archive.reading` reads them while the
crawl runs or after it was killed. A segment is the Arrow IPC stream format (`.arrows`) without its
end mark, so any Arrow reads it; since every message is whole, cutting at a recorded length leaves a
whole stream.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from fyke.disk.files import open_append


class Journal:
    """One segment, open to append. `rows` and `length` say what it holds."""

    def __init__(self, path: Path, schema: pa.Schema, serial: int, length: int = 0, rows: int = 0) -> None:
        self.path = path
        self.serial = serial
        self.length = length
        self.rows = rows
        self._file = open_append(path, 0)  # a batch is long: a buffer would only copy it
        if not length:
            self._write(schema.serialize())

    def __repr__(self) -> str:
        return f"Journal({self.path.name}, {self.rows} rows, {self.length} bytes)"

    def append(self, batch: pa.RecordBatch) -> None:
        self._write(batch.serialize())
        self.rows += batch.num_rows

    def _write(self, message: pa.Buffer) -> None:
        view = memoryview(message)
        while view:
            view = view[self._file.write(view) :]
        self.length += message.size

    def close(self) -> None:
        self._file.close()


def read_journal(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of a segment, up to the first that is not whole: a crash or a running crawl leaves such."""
    with pa.OSFile(str(path)) as file:
        try:
            stream = pa.ipc.open_stream(file)
        except pa.ArrowInvalid:
            return
        if stream.schema != schema:
            raise ValueError(f"{path} has other columns than this version of Fyke: {stream.schema.names}")
        while True:
            try:
                batch = stream.read_next_batch()
            except (StopIteration, pa.ArrowInvalid, OSError):
                return
            yield batch
