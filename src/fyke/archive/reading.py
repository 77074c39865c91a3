"""The one door to the tables of a crawl: search, reports, exports, explanations and servers read them here.

A table is a row of segments, `pages-00000`, `pages-00001`, …, and of the second agent `pages-1-00000`, …. Each is a
Parquet file or, while it is still written, a journal. Files do not change, so readers need no lock. Rows still in the
journals of a running or killed crawl are included; a journal whose file exists is left out, so no row comes twice.

Invariants: memory holds a few batches, whatever the size of the table. A file that is not as it was written raises
`StateDamaged`, which names it, and never another exception, nor does it give other rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fyke.archive.checksum import OTHER_BYTES, checksum_holds, is_gone
from fyke.archive.journal import read_journal
from fyke.archive.schemas import SCHEMAS, journalled
from fyke.archive.table_files import TABLES, as_file, journal_path, parquet_path, series
from fyke.core.errors import NotACrawl
from fyke.disk.files import allowed, damaged, read_whole

BATCH_ROWS = 1 << 14
GENERATION = "mended"
MENDED = " mended "  # in an index's `beginning`, before `generation`

_FILE = re.compile(r"([a-z]+)(?:-(\d{1,3}))?-(\d{5,})\.(arrows|parquet)")
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the errors that Arrow and the disk raise for the file `path` into one that a person can act on."""
    try:
        with allowed(path):
            yield
    except FileNotFoundError:
        raise damaged(path, "it is gone") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        strerror = error.strerror if isinstance(error, OSError) else None
        raise damaged(path, strerror or next(iter(str(error).splitlines()), "it cannot be read")) from None


def read_file(
    path: Path, columns: Sequence[str], schema: pa.Schema | None = None, where: ds.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one Parquet file, after checking its bytes. Raises StateDamaged."""
    with reading(path):
        if not _as_written(path, path.stat().st_ctime_ns):
            raise ValueError(OTHER_BYTES)
        dataset = ds.dataset(as_file(path), schema=schema, format=_FORMAT)
        for fragment in dataset.get_fragments():
            if schema is not None and not fragment.physical_schema.equals(schema):
                raise ValueError(f"its columns are {', '.join(fragment.physical_schema.names)}")
        yield from dataset.to_batches(columns=list(columns), filter=where, batch_size=BATCH_ROWS)


@lru_cache(maxsize=1 << 16)
def _as_written(path: Path, changed_ns: int) -> bool:
    """Return whether the file is as it was finished; Parquet's own checksums leave out headers and footer."""
    return checksum_holds(path) is not False


@dataclass(frozen=True, slots=True)
class TableFile:
    """A segment of a table: the Parquet file `path`, or its journal while there is no file."""

    path: Path
    name: str  # of the table
    journal: bool
    part: int = 0  # the agent that wrote it

    def rows(self) -> int | None:
        """Return the number of rows; None for a journal, which may grow. Raises StateDamaged."""
        if self.journal:
            return None
        with reading(self.path):
            return int(ds.dataset(as_file(self.path), schema=SCHEMAS[self.name], format=_FORMAT).count_rows())

    def batches(self, columns: Sequence[str], where: ds.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows that match `where`, with these `columns`. Raises StateDamaged."""
        schema = _schema(self.name, columns)
        source = self._journal(columns, where) if self.journal and self.path.exists() else None
        if source is None:  # a missing journal was sealed since it was listed
            source = read_file(self.path.with_suffix(".parquet"), columns, SCHEMAS[self.name], where)
        for batch in source:
            yield batch.cast(schema)

    def _journal(self, columns: Sequence[str], where: ds.Expression | None) -> Iterator[pa.RecordBatch]:
        schema = journalled(SCHEMAS[self.name])
        with reading(self.path):
            for batch in read_journal(self.path, schema):
                rows = pa.Table.from_batches([batch])
                wanted = rows if where is None else rows.filter(where)
                yield from wanted.select(list(columns)).to_batches()


def segments(folder: Path, name: str) -> list[TableFile]:
    """Return the segments of the table `name` in the crawl directory `folder`, in the order of the crawl.

    A segment that is missing between two others, or left only a checksum, is included and cannot be read. Raises
    NotACrawl if there are no tables.
    """
    journals = _serials(folder, name, "arrows")  # listed before the files, so that no segment is missed
    files = _serials(folder, name, "parquet")
    left = _serials(folder, name, "parquet.xxh3")
    if not (folder / TABLES).is_dir():  # asked last: a crawl moved away meanwhile must not look empty
        raise NotACrawl(f"{folder} holds no tables: is it a crawl directory?")
    found = []
    for part in sorted(journals.keys() | files.keys() | left.keys()):
        writing, sealed = journals.get(part, set()), files.get(part, set())
        gone = left.get(part, set()) - sealed - writing
        gone = {serial for serial in gone if is_gone(parquet_path(folder, series(name, part), serial))}
        for serial in range(max(writing | sealed | gone, default=-1) + 1):
            journal = serial in writing - sealed
            path = (journal_path if journal else parquet_path)(folder, series(name, part), serial)
            found.append(TableFile(path, name, journal, part))
    return found


def table_of(path: Path) -> str:
    """Return the table that the file at `path` belongs to, by its name; empty if to none."""
    match = _FILE.fullmatch(path.name)
    return match[1] if match else ""


def _serials(folder: Path, name: str, suffix: str) -> dict[int, set[int]]:
    """Return the serials of the files of a table with this suffix, by the agent that wrote them."""
    found: dict[int, set[int]] = {}
    for path in (folder / TABLES).glob(f"{name}-*.{suffix}"):
        match = _FILE.fullmatch(path.name.removesuffix(".xxh3"))
        if match and match[1] == name:
            found.setdefault(int(match[2] or 0), set()).add(int(match[3]))
    return found


def generation(folder: Path) -> int:
    """Return how often the crawl's tables were mended. That may change row numbers, so callers that count rows begin
    anew."""
    try:
        return int(read_whole(folder / TABLES / GENERATION, 64))
    except (OSError, ValueError):
        return 0


def rows_recorded(state: Mapping[str, Any], name: str) -> int:
    """Return how many rows of the table `name` the checkpoint with `state` holds."""
    table = state.get(name, {})
    return int(table.get("sealed_rows", 0) + sum(rows for _, rows in table.get("segments", [])))


def scan_table(
    folder: Path, name: str, columns: Sequence[str] | None = None, where: ds.Expression | None = None
) -> pa.RecordBatchReader:
    """Return the rows of a table in batches, segment by segment, also those still in journals.

    `where` is a `pyarrow.dataset` expression over any columns. DuckDB can query the returned reader directly. Raises
    NotACrawl if `folder` holds no tables; reading raises StateDamaged.
    """
    names = list(columns) if columns is not None else SCHEMAS[name].names
    batches = (batch for segment in segments(folder, name) for batch in segment.batches(names, where))
    return pa.RecordBatchReader.from_batches(_schema(name, names), batches)


def _schema(name: str, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of the table `name`, with these `columns` alone."""
    return pa.schema([SCHEMAS[name].field(column) for column in columns], SCHEMAS[name].metadata)


def read_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """As `scan_table`, all rows in memory: for tables known to be small."""
    return scan_table(folder, name, columns).read_all()
