"""The tables being read: by the command line, the search index, the dashboard, and people's scripts.

Reads only, and needs no lock: sealed files do not change, and of a crawl that runs or was killed the
rows still in its journals come too. A segment whose Parquet file is there is left out, so no row comes
twice. Invariant: memory holds a few batches, whatever the size of the table.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from fyke.core.errors import NotACrawl
from fyke.store.journal import read_journal
from fyke.store.schemas import SCHEMAS, journalled
from fyke.store.table_files import TABLES

BATCH_ROWS = 1 << 14


def sealed_table(folder: Path, name: str) -> ds.Dataset:
    """The Parquet files of the table `name` (pages, links or hosts) in the crawl directory `folder`."""
    files = sorted(str(path) for path in (folder / TABLES).glob(f"{name}-*.parquet"))
    return ds.dataset(files, schema=SCHEMAS[name], format="parquet")


def scan_table(
    folder: Path,
    name: str,
    columns: Sequence[str] | None = None,
    where: ds.Expression | None = None,
    *,
    unsealed: bool = True,
) -> pa.RecordBatchReader:
    """The rows of a table in batches: those in files, then (if `unsealed`) those still in journals.

    `where` is a `pyarrow.dataset` expression over any columns. DuckDB queries the answer as it is.
    Raises NotACrawl when `folder` holds no tables.
    """
    if not (folder / TABLES).is_dir():
        raise NotACrawl(f"{folder} holds no tables: is it a crawl directory?")
    names = list(columns) if columns is not None else SCHEMAS[name].names
    schema = pa.schema([SCHEMAS[name].field(column) for column in names], SCHEMAS[name].metadata)
    journals = _journals(folder, name) if unsealed else []  # before the files: what is sealed meanwhile comes once
    sealed = sealed_table(folder, name)
    done = {Path(file).stem for file in sealed.files}

    def batches() -> Iterator[pa.RecordBatch]:
        yield from sealed.to_batches(columns=names, filter=where, batch_size=BATCH_ROWS)
        for path in journals:
            if path.stem not in done:
                yield from _unsealed(path, name, names, where)

    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches()))


def read_table(
    folder: Path,
    name: str,
    columns: Sequence[str] | None = None,
    where: ds.Expression | None = None,
    *,
    unsealed: bool = True,
) -> pa.Table:
    """As `scan_table`, all rows in memory: for tables known to be small."""
    return scan_table(folder, name, columns, where, unsealed=unsealed).read_all()


def _journals(folder: Path, name: str) -> list[Path]:
    return sorted((folder / TABLES).glob(f"{name}-*.arrows"))


def _unsealed(path: Path, name: str, columns: list[str], where: ds.Expression | None) -> Iterator[pa.RecordBatch]:
    schema = journalled(SCHEMAS[name])
    if not path.exists():  # sealed and deleted since we looked
        late = path.with_suffix(".parquet")
        yield from ds.dataset(late, schema=SCHEMAS[name]).to_batches(columns=columns, filter=where)
        return
    scanner = ds.Scanner.from_batches(read_journal(path, schema), schema=schema, columns=columns, filter=where)
    yield from scanner.to_batches()
