"""Rows that are not in a Parquet file yet: an Arrow stream that can be appended to and cut.

`fyke.archive.table_files` writes one segment after the other; `fyke.archive.reading` reads them while the crawl runs or
after it was killed. A segment is the Arrow IPC stream format (`.arrows`) without its end mark, so Arrow can read it.
Every message is complete, so cutting at a recorded length leaves a complete stream.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import xxhash

from fyke.disk.files import damaged, open_append, require_file


class Journal:
    """One segment, open to append, with its `rows` and `length`; `before` are the digests of its earlier stretches."""

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        serial: int,
        length: int = 0,
        rows: int = 0,
        before: Sequence[Sequence[int]] = (),
    ) -> None:
        self.path = path
        self.serial = serial
        self.length = length
        self.rows = rows
        self._before = before
        self._begin = length
        self._digest = xxhash.xxh3_64()
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
        self._digest.update(message)
        self.length += message.size

    @property
    def digests(self) -> list[Sequence[int]]:
        """[begin, end, xxh3-64] of each stretch that one process wrote."""
        grown = self.length > self._begin
        return [*self._before, *([[self._begin, self.length, self._digest.intdigest()]] if grown else [])]

    def close(self) -> None:
        self._file.close()


def read_journal(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a segment, up to the first incomplete one, which a crash or a running crawl leaves.

    Raises StateDamaged for bytes that are not rows, because a reader may die of them.
    """
    require_file(path)
    with pa.OSFile(str(path)) as file:
        try:
            stream = pa.ipc.open_stream(file)
        except pa.ArrowInvalid:
            return
        if stream.schema != schema:
            raise ValueError(f"{path} has other columns than this version of Fyke knows: {stream.schema.names}")
        while True:
            try:
                batch = stream.read_next_batch()
            except (StopIteration, pa.ArrowInvalid, OSError):
                return
            try:
                batch.validate(full=True)
            except pa.ArrowInvalid as error:
                raise damaged(path, next(iter(str(error).splitlines()), "it holds no rows")) from None
            yield batch
