"""Tables that are written whole: `hosts` and `domains` when a crawl closes, `near` by the indexer.

The agent calls the first two with rows out of the host book and the frontier. Each call replaces the earlier file.
Invariant: the file there is whole at any time.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from fyke.archive.checksum import write_checksum
from fyke.archive.schemas import DOMAINS, HOSTS, NEAR, journalled
from fyke.archive.table_files import TABLES, parquet_writer, series
from fyke.archive.tables import rows_batch
from fyke.disk.files import writing, written_whole

CLOSING = ["hosts", "domains"]  # written by an agent as it closes
ROWS_IN_MEMORY = 10_000
_HOST_ROWS = journalled(HOSTS)


class HostRow(NamedTuple):
    """A row of `hosts`; times in unix seconds, None for unknown values."""

    host: str
    domain: str
    address: str
    robots: str
    crawl_delay_s: float | None
    pages: int
    failures: int
    retired: str
    first_seen: float | None
    last_seen: float | None


def write_hosts(folder: Path, rows: Iterable[HostRow], part: int = 0) -> int:
    """Write the table `hosts` of the agent `part` as a whole new file; return its rows. Raises DiskFull or
    DirectoryError."""
    return _write(folder, series("hosts", part), HOSTS, _host_batches(iter(rows)))


def write_domains(folder: Path, batches: Iterable[pa.RecordBatch], part: int = 0) -> int:
    """Write the table `domains` (schema `DOMAINS`), in the same way."""
    return _write(folder, series("domains", part), DOMAINS, batches)


def write_near(folder: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write the table `near` (schema `NEAR`), in the same way."""
    return _write(folder, "near", NEAR, batches)


def _host_batches(rows: Iterator[HostRow]) -> Iterator[pa.RecordBatch]:
    while some := list(islice(rows, ROWS_IN_MEMORY)):
        timed = [(*row[:8], _micros(row.first_seen), _micros(row.last_seen)) for row in some]
        yield rows_batch(timed, _HOST_ROWS)


def _write(folder: Path, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    target = folder / TABLES / f"{name}-00000.parquet"
    count = 0
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(target) as part:
        with parquet_writer(part, schema) as writer:
            for batch in batches:
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
                count += batch.num_rows
        target.unlink(missing_ok=True)  # with the new checksum the old file would look damaged
        write_checksum(part, target)
    return count


def _micros(at: float | None) -> int | None:
    return None if at is None else round(at * 1e6)
