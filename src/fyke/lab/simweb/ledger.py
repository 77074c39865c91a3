"""The ledger of the servers: every request and every DNS query, as columns.

The servers write it; the judge and tests read it. A row is appended when a reply has ended. Without a file, rows stay
in memory as Arrow batches. With one, they go to it as an Arrow stream, a batch at a time, and memory holds only the
rows since. A reader of a file whose last batch is torn gets all batches before it. DNS queries go to a file beside it
with `.dns` added.

Invariant: a written row never changes. `ended` is taken before the last bytes are handed to the kernel, so no client
can have seen the end earlier than the ledger says.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

ROWS_PER_BATCH = 8192

REQUESTS = pa.schema(
    [
        ("arrived", pa.float64()),  # unix seconds, when the request's head was whole
        ("ended", pa.float64()),  # unix seconds, when the last bytes were written or the connection ended
        ("scheme", pa.string()),
        ("server", pa.string()),  # the address asked
        ("client_port", pa.uint16()),
        ("host", pa.string()),
        ("path", pa.string()),  # as received
        ("agent", pa.string()),
        ("status", pa.int16()),  # 0: nothing was sent
        ("size_bytes", pa.int64()),  # sent, heads included
        ("retry_after_s", pa.float32()),  # as the reply asked; 0: it did not
    ]
)
QUERIES = pa.schema([("at", pa.float64()), ("name", pa.string()), ("type", pa.uint16())])


class LedgerRow(NamedTuple):
    """One row of the ledger; columns as in `REQUESTS`."""

    arrived: float
    ended: float
    scheme: str
    server: str
    client_port: int
    host: str
    path: str
    agent: str
    status: int
    size_bytes: int
    retry_after_s: float = 0.0


class LedgerStatistics(NamedTuple):
    """Counts since the start."""

    requests: int
    queries: int
    size_bytes: int


class _Columns:
    """One growing table: waiting rows, then batches in memory or in a file."""

    def __init__(self, schema: Any, path: Path | None) -> None:
        self._schema = schema
        self._path = path
        self._rows: list[tuple[Any, ...]] = []
        self._batches: list[Any] = []
        self._sink: IO[bytes] | None = path.open("wb") if path else None
        self._writer = pa.ipc.new_stream(self._sink, schema) if self._sink else None
        self.count = 0

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        self.count += 1
        if len(self._rows) >= ROWS_PER_BATCH:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            columns = [
                pa.array(column, field.type)
                for column, field in zip(zip(*rows, strict=True), self._schema, strict=True)
            ]
            batch = pa.record_batch(columns, schema=self._schema)
            if self._writer is None:
                self._batches.append(batch)
            else:
                self._writer.write_batch(batch)
        if self._sink is not None:
            self._sink.flush()

    def table(self) -> Any:
        self.flush()
        if self._path is not None:
            return _read(self._path, self._schema)
        return pa.Table.from_batches(self._batches, self._schema)

    def close(self) -> None:
        self.flush()
        if self._writer is not None and self._sink is not None:
            self._writer.close()
            self._sink.close()
            self._writer = self._sink = None


class Ledger:
    """The ledger of one web. An existing file at `path` is overwritten."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._requests = _Columns(REQUESTS, path)
        self._queries = _Columns(QUERIES, path and queries_path(path))
        self._size_bytes = 0

    def __repr__(self) -> str:
        return f"<Ledger of {self._requests.count} requests, {self._queries.count} queries, in {self.path}>"

    def add(self, row: LedgerRow) -> None:
        """Note a request that has ended."""
        self._size_bytes += row.size_bytes
        self._requests.add(row)

    def add_query(self, at: float, name: str, kind: int) -> None:
        """Note a DNS query of type `kind` (1 is A)."""
        self._queries.add((at, name, kind))

    def flush(self) -> None:
        """Write the waiting rows."""
        self._requests.flush()
        self._queries.flush()

    def requests(self) -> Any:
        """Return all requests so far: a pyarrow Table with schema `REQUESTS`."""
        return self._requests.table()

    def queries(self) -> Any:
        """Return all DNS queries so far: a pyarrow Table with schema `QUERIES`."""
        return self._queries.table()

    def statistics(self) -> LedgerStatistics:
        """Return the counts since the start."""
        return LedgerStatistics(self._requests.count, self._queries.count, self._size_bytes)

    def close(self) -> None:
        """Write the waiting rows and close the files."""
        self._requests.close()
        self._queries.close()


def queries_path(path: Path) -> Path:
    """Return the path of the DNS queries of the ledger at `path`."""
    return path.with_name(path.name + ".dns")


def _read(path: Path, schema: Any) -> Any:
    batches = []
    with path.open("rb") as source:
        try:
            reader = pa.ipc.open_stream(source)
            batches.extend(reader)
        except (pa.ArrowInvalid, OSError):
            reader = None  # torn or unfinished: all batches before are whole
    return pa.Table.from_batches(batches, schema)


def read_requests(path: Path) -> Any:
    """Read the requests in a ledger's file: a pyarrow Table with schema `REQUESTS`."""
    return _read(path, REQUESTS)


def read_queries(path: Path) -> Any:
    """Read the DNS queries of the ledger at `path`: a pyarrow Table with schema `QUERIES`."""
    return _read(queries_path(path), QUERIES)


def table_of(rows: Sequence[LedgerRow]) -> Any:
    """Return a table of hand-made rows, for tests."""
    return pa.Table.from_pylist([row._asdict() for row in rows], REQUESTS)
