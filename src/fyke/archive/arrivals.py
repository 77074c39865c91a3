"""The rows that came into a crawl's tables since a row, as far as a checkpoint holds them.

The indexer asks for pages that it has not read yet, link analysis for links, each of several agents for visits that
ended since it last planned a pass. A killed crawl goes back to its last checkpoint and fetches again what came after,
so later rows may disappear. The module only reads; the crawl does not notice. Invariant: row `n` of a table is the same
row for ever, in a journal or sealed, so a number of rows is a position.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from fyke.archive.directory import CrawlDirectory, no_crawl, saved_state
from fyke.archive.lost import require_rows, require_turns
from fyke.archive.reading import TableFile, rows_recorded, scan_table, segments
from fyke.archive.schemas import SCHEMAS
from fyke.archive.table_files import TABLES
from fyke.archive.turns import rows_by_part, turns
from fyke.core.errors import StateDamaged


def has_rows(crawl: Path) -> bool:
    """Return whether there are tables, or should be; False for a crawl that has just begun.

    Raises NotACrawl if there is no crawl, or no longer one, StateDamaged.
    """
    if (crawl / TABLES).is_dir() or any(saved_state(part.shard) for part in CrawlDirectory(crawl).parts):
        return True
    if not CrawlDirectory(crawl).holds_crawl:
        raise no_crawl(crawl)
    return False


def safe_rows(crawl: Path, name: str) -> int:
    """Return how many rows of the table `name` count: those of the newest checkpoint, or all if there is no checkpoint.

    Raises NotACrawl if there are no tables, StateDamaged.
    """
    if not (crawl / TABLES).is_dir():
        require_rows(CrawlDirectory(crawl), name)
        raise no_crawl(crawl)
    states = CrawlDirectory(crawl).states
    if not states:
        return sum(batch.num_rows for batch in scan_table(crawl, name, SCHEMAS[name].names[:1]))
    if len(states) == 1:
        return rows_recorded(states[0], name)
    require_turns(CrawlDirectory(crawl))
    return sum(rows_by_part(crawl, name).values())


def arrivals(crawl: Path, name: str, columns: Sequence[str], begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """Return rows `begin` to `end` of the table `name`, in the order of the crawl. Raises StateDamaged if there are
    fewer."""
    return (batch for _, batch in arrivals_by_agent(crawl, name, columns, begin, end))


def arrivals_by_agent(
    crawl: Path, name: str, columns: Sequence[str], begin: int, end: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """As `arrivals`, each batch with the agent that wrote it."""
    require_rows(CrawlDirectory(crawl), name)
    there = segments(crawl, name)
    if all(segment.part == 0 for segment in there):
        yield from ((0, batch) for batch in _rows(crawl, there, columns, begin, end))
        return
    position, passed = 0, Counter[int]()
    taking: dict[int, _AgentRows] = {}
    for part, rows in turns(crawl, name):
        first, last = max(begin, position), min(end, position + rows)
        if first < last:
            at = passed[part] + first - position
            if part not in taking:
                own = [segment for segment in there if segment.part == part]
                taking[part] = _AgentRows(_rows(crawl, own, columns, at, None))
            yield from ((part, batch) for batch in taking[part].take(last - first))
        position += rows
        passed[part] += rows
        if position >= end:
            return
    if position < end:
        raise _fewer(crawl, name, position, end)


class _AgentRows:
    """The rows of one agent, taken lot by lot."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.RecordBatch | None = None

    def take(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the next `rows` rows."""
        while rows:
            batch = self._left if self._left is not None else next(self._batches)
            taken = batch.slice(0, rows)
            self._left = batch.slice(rows) if rows < batch.num_rows else None
            rows -= taken.num_rows
            yield taken


def _rows(
    crawl: Path, there: Sequence[TableFile], columns: Sequence[str], begin: int, end: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield rows `begin` to `end` of the segments `there`. Without an `end`, the caller must not take more than there
    are."""
    position = 0
    for segment in there:
        if end is not None and position >= end:
            return
        rows = segment.rows()
        if rows is not None and position + rows <= begin:
            position += rows
            continue
        for batch in segment.batches(columns):
            skipped = max(0, begin - position)
            most = batch.num_rows if end is None else min(end - position, batch.num_rows)
            wanted = batch.slice(skipped, max(0, most - skipped))
            position += batch.num_rows
            if wanted.num_rows:
                yield wanted
            if end is not None and position >= end:
                return
    if end is None or position < end:
        raise _fewer(crawl, there[0].name if there else "a table", position, end)


def _fewer(crawl: Path, name: str, rows: int, wanted: int | None) -> StateDamaged:
    wanted_text = "more" if wanted is None else str(wanted)
    return StateDamaged(
        f"{crawl / TABLES} holds {rows} rows of {name}, its checkpoint says {wanted_text}: fyke check --repair {crawl}"
        " repairs what it can"
    )
