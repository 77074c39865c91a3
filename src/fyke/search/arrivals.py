"""What has come into a crawl's tables since a row: only what a checkpoint holds.

The indexer asks for the pages it has not read yet, link analysis for the links. A crawl that is killed goes
back to its last checkpoint and fetches again what came after, so rows beyond it may never have been.
Reads only; the crawl notices nothing. Invariant: row `n` of a table is the same row for ever, whether it
is still in a journal or sealed, so a number of rows is a position.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fyke.core.errors import NotACrawl
from fyke.crawl.directory import CrawlDirectory
from fyke.crawl.keeper import saved_state
from fyke.store import SCHEMAS, scan_table, sealed_table
from fyke.store.journal import read_journal
from fyke.store.schemas import journalled
from fyke.store.table_files import TABLES

BATCH_ROWS = 1 << 14


def safe_rows(crawl: Path, name: str) -> int:
    """How many rows of the table `name` count: those of the newest checkpoint, or all of an archive without one.

    Raises NotACrawl when there are no tables, StateDamaged.
    """
    if not (crawl / TABLES).is_dir():
        raise NotACrawl(f"{crawl} holds no crawl: begin one with fyke crawl URL --into {crawl}")
    shard = CrawlDirectory(crawl).shard
    if not shard.is_dir():
        rows = sum(batch.num_rows for batch in scan_table(crawl, name, SCHEMAS[name].names[:1]))
        return int(rows)
    state: dict[str, Any] = saved_state(shard).get(name, {})
    return int(state.get("sealed_rows", 0) + sum(rows for _, rows in state.get("segments", [])))


def arrivals(crawl: Path, name: str, columns: Sequence[str], begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """Rows `begin` to `end` of the table `name`, in the order of the crawl."""
    position = 0
    for batches, rows in _segments(crawl, name, list(columns)):
        if rows is not None and position + rows <= begin:
            position += rows
            continue
        for batch in batches:
            skipped = max(0, begin - position)
            wanted = batch.slice(skipped, max(0, min(end - position, batch.num_rows) - skipped))
            position += batch.num_rows
            if wanted.num_rows:
                yield wanted
            if position >= end:
                return


def _segments(crawl: Path, name: str, columns: list[str]) -> Iterator[tuple[Iterator[pa.RecordBatch], int | None]]:
    """The batches of each segment and how many rows it has; None when that is not known beforehand."""
    journals = sorted((crawl / TABLES).glob(f"{name}-*.arrows"))  # before the files: none is missed, none comes twice
    sealed = sealed_table(crawl, name)
    for fragment in sealed.get_fragments():
        yield fragment.to_batches(columns=columns, batch_size=BATCH_ROWS), fragment.count_rows()
    done = {Path(file).stem for file in sealed.files}
    for path in journals:
        if path.stem not in done:
            yield _unsealed(path, name, columns), None


def _unsealed(path: Path, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    if not path.exists():  # sealed and deleted since we looked
        yield from ds.dataset(path.with_suffix(".parquet"), schema=SCHEMAS[name]).to_batches(columns=columns)
        return
    schema = pa.schema([SCHEMAS[name].field(column) for column in columns])
    for batch in read_journal(path, journalled(SCHEMAS[name])):
        yield batch.select(columns).cast(schema)
