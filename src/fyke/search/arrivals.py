"""What has come into a crawl's tables since a row: only what a checkpoint holds.

The indexer asks for the pages it has not read yet, link analysis for the links. A crawl that is killed goes
back to its last checkpoint and fetches again what came after, so rows beyond it may never have been.
Reads only; the crawl notices nothing. Invariant: row `n` of a table is the same row for ever, whether it
is still in a journal or sealed, so a number of rows is a position.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from fyke.archive import SCHEMAS, rows_recorded, scan_table, segments
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.table_files import TABLES
from fyke.core.errors import NotACrawl, StateDamaged


def safe_rows(crawl: Path, name: str) -> int:
    """How many rows of the table `name` count: those of the newest checkpoint, or all where there is none.

    Raises NotACrawl when there are no tables, StateDamaged.
    """
    if not (crawl / TABLES).is_dir():
        raise NotACrawl(f"{crawl} holds no crawl: begin one with fyke crawl URL --into {crawl}")
    state = saved_state(CrawlDirectory(crawl).shard)
    if not state:
        return sum(batch.num_rows for batch in scan_table(crawl, name, SCHEMAS[name].names[:1]))
    return rows_recorded(state, name)


def arrivals(crawl: Path, name: str, columns: Sequence[str], begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """Rows `begin` to `end` of the table `name`, in the order of the crawl. Raises StateDamaged if there are fewer."""
    position = 0
    for segment in segments(crawl, name):
        if position >= end:
            return
        rows = segment.rows()
        if rows is not None and position + rows <= begin:
            position += rows
            continue
        for batch in segment.batches(columns):
            skipped = max(0, begin - position)
            wanted = batch.slice(skipped, max(0, min(end - position, batch.num_rows) - skipped))
            position += batch.num_rows
            if wanted.num_rows:
                yield wanted
            if position >= end:
                return
    if position < end:
        raise StateDamaged(
            f"{crawl / TABLES} holds {position} rows of {name}, and its checkpoint {end}: fyke check --repair {crawl}"
            " mends what can be mended"
        )
