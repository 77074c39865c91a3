"""The tables that a crawl extracts, filled into a database while it runs: `fyke extract --to DATABASE --follow`.

The crawl's own tables are files whose rows never change once a checkpoint has them, in one order. So for each agent the
database's progress is a position: a file's number and a row in it. It is kept in the table `fyke_followed`, and moved
in the transaction that adds the rows. Rows younger than the newest checkpoint are not taken, because a crawl that dies
makes them anew. The module only reads the crawl, and needs no lock: it may lag, be down, or be killed, and so may the
crawl.

Invariant: at any instant the database has the rows up to its position, each once. Memory holds a batch of rows.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.inspect import in_use
from fyke.archive.journal import read_journal
from fyke.archive.reading import generation, read_file, reading
from fyke.archive.schemas import journalled
from fyke.archive.table_files import journal_path, parquet_path, series
from fyke.core.errors import ConfigurationError
from fyke.export.databases import PlacedDatabase, TablePosition
from fyke.harvest.fields import Extractor

LOOK_S = 1.0  # between looks for a newer checkpoint


def follow(directory: CrawlDirectory, address: str) -> dict[str, int]:
    """Copy the crawl's tables into the database at `address` until the crawl has ended and all rows are there.

    Returns the number of rows added to each table. Raises ConfigurationError, also if the database refuses, NotACrawl,
    StateDamaged.
    """
    extractors = [Extractor(section) for section in directory.config().extract]
    if not extractors:
        raise ConfigurationError(f"{directory.path} extracts nothing while it crawls: leave out --follow")
    positions: dict[str, TablePosition] = {}
    added: Counter[str] = Counter({one.name: 0 for one in extractors})
    while True:
        running = in_use(directory)
        before = added.total()
        for extractor in extractors:
            for part in directory.parts:
                table = _CrawledTable(directory, extractor, part.part, saved_state(part.shard))
                added[extractor.name] += table.fill(address, positions)
        if added.total() == before:
            if not running:
                return dict(added)
            time.sleep(LOOK_S)


@dataclass(frozen=True)
class _CrawledTable:
    """The rows of a table that one agent writes, as far as its checkpoint `state` has them."""

    directory: CrawlDirectory
    extractor: Extractor
    part: int
    state: dict[str, Any]

    @property
    def _name(self) -> str:
        return series(self.extractor.name, self.part)

    @property
    def _crawl(self) -> str:
        """Identity of the crawl; it changes when its tables are mended, because rows may have moved."""
        return f"{self.directory.settings_digests()['crawl']:016x}-{generation(self.directory.path)}"

    def fill(self, address: str, positions: dict[str, TablePosition]) -> int:
        """Add the rows that the database at `address` lacks, a transaction a file; return how many.

        `positions` remembers the database's position, so that it is not asked if there is nothing new.
        """
        added = 0
        while self._name not in positions or (self._rows_by_file and self._is_before_end(positions[self._name])):
            with PlacedDatabase(address) as database:
                position = database.position(self.extractor.name, self.extractor.schema, self._name, self._crawl)
                self._check(position)
                if self._is_before_end(position):
                    position = self._next(position)
                    for batch in self._batches(position):
                        database.add(self.extractor.name, batch)
                        position = TablePosition(position.file, position.rows + batch.num_rows)
                        added += batch.num_rows
                    database.move(self._name, position)
            positions[self._name] = position
        return added

    @property
    def _rows_by_file(self) -> list[int | None]:
        """The number of rows of each file; None for all rows of a Parquet file."""
        state = self.state.get(f"extract {self.extractor.name}", {})
        return [*[None] * state.get("sealed", 0), *(rows for _, rows in state.get("segments", []))]

    def _next(self, position: TablePosition) -> TablePosition:
        """Return the beginning of the next file if this one is done and there is a next; otherwise `position`."""
        file, rows = position
        has_next = file + 1 < len(self._rows_by_file)
        return TablePosition(file + 1, 0) if has_next and rows >= self._rows_of(file) else position

    def _is_before_end(self, position: TablePosition) -> bool:
        """Return whether the crawl has more rows than `position` says."""
        return position.file < len(self._rows_by_file) - 1 or position.rows < self._rows_of(position.file)

    def _check(self, position: TablePosition) -> None:
        if position.rows > self._rows_of(position.file) or position.file > len(self._rows_by_file):
            raise ConfigurationError(
                f"the database has more rows of {self.extractor.name} than the crawl: drop that table, and delete"
                " its rows in fyke_followed"
            )

    def _rows_of(self, file: int) -> int:
        """Return how many rows of a file the checkpoint has; 0 for a later file."""
        if file >= len(self._rows_by_file):
            return 0
        rows = self._rows_by_file[file]
        if rows is not None:
            return rows
        path = parquet_path(self.directory.path, self._name, file)
        with reading(path):
            return int(pq.read_metadata(path).num_rows)

    def _batches(self, position: TablePosition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the file of `position` from there on, as far as the checkpoint has them."""
        left, skip = self._rows_of(position.file), position.rows
        for batch in self._read(position.file):
            batch = batch.slice(0, left)
            left -= batch.num_rows
            batch, skip = batch.slice(min(skip, batch.num_rows)), max(0, skip - batch.num_rows)
            if batch.num_rows:
                yield batch

    def _read(self, file: int) -> Iterator[pa.RecordBatch]:
        folder, schema = self.directory.path, self.extractor.schema
        journal = journal_path(folder, self._name, file)
        if self._rows_by_file[file] is None or not journal.exists():  # a missing journal was sealed since
            yield from read_file(parquet_path(folder, self._name, file), schema.names, schema)
            return
        with reading(journal):
            for batch in read_journal(journal, journalled(schema)):
                yield batch.cast(schema)
