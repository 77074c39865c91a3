"""The tables that a crawl extracts, filled into a database while it runs: `fyke extract --to DATABASE --follow`.

The crawl's own tables are files whose rows never change once a checkpoint has them, in one order. So where a database
stands is a position in them, a file's number and a row in it, for each agent: kept in the table `fyke_followed`, and
moved in the transaction that adds the rows. What is younger than the newest checkpoint is not taken, since a crawl that
dies makes it anew. Reads only, and needs no lock: whoever follows may lag, be down, or be killed, and the crawl as
well.

Invariant: at any instant the database has the rows up to its position, each once. Memory holds a batch of rows.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

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
    """Fill the crawl's tables into the database at `address` until it does not run and all is there; how many rows were
    added to each. Raises ConfigurationError, also where the database refuses, NotACrawl, StateDamaged."""
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
    """What the checkpoint with `state` has of a table that an agent writes."""

    directory: CrawlDirectory
    extractor: Extractor
    part: int
    state: dict[str, Any]

    @property
    def _name(self) -> str:
        return series(self.extractor.name, self.part)

    @property
    def _crawl(self) -> str:
        """Which crawl it is of; another one once its tables were mended, since rows may have moved."""
        return f"{self.directory.settings_digests()['crawl']:016x}-{generation(self.directory.path)}"

    def fill(self, address: str, positions: dict[str, TablePosition]) -> int:
        """Add what the database at `address` lacks, a transaction a file; how many rows. `positions` remembers where it
        stands, so that it is not asked where there is nothing new."""
        added = 0
        while self._name not in positions or (self._files and self._is_before_end(positions[self._name])):
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
    def _files(self) -> list[int | None]:
        """How many rows each file has; None for all of a Parquet file."""
        state = self.state.get(f"extract {self.extractor.name}", {})
        return [*[None] * state.get("sealed", 0), *(rows for _, rows in state.get("segments", []))]

    def _next(self, position: TablePosition) -> TablePosition:
        """Where to go on from `position`: in the next file, if this one is done and there is a next."""
        file, rows = position
        return TablePosition(file + 1, 0) if file + 1 < len(self._files) and rows >= self._rows_of(file) else position

    def _is_before_end(self, position: TablePosition) -> bool:
        """Whether the crawl has more rows than `position` says."""
        return position.file < len(self._files) - 1 or position.rows < self._rows_of(position.file)

    def _check(self, position: TablePosition) -> None:
        if position.rows > self._rows_of(position.file) or position.file > len(self._files):
            raise ConfigurationError(
                f"the database has more rows of {self.extractor.name} than the crawl: drop that table, and what"
                " fyke_followed has of it"
            )

    def _rows_of(self, file: int) -> int:
        """How many rows the checkpoint has of a file; 0 for one to come."""
        if file >= len(self._files):
            return 0
        rows = self._files[file]
        if rows is not None:
            return rows
        path = parquet_path(self.directory.path, self._name, file)
        with reading(path):
            return int(pa.parquet.read_metadata(path).num_rows)

    def _batches(self, position: TablePosition) -> Iterator[pa.RecordBatch]:
        """The rows of the file of `position` from there on, as far as the checkpoint has them."""
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
        if self._files[file] is None or not journal.exists():  # one that is gone was sealed since
            yield from read_file(parquet_path(folder, self._name, file), schema.names, schema)
            return
        with reading(journal):
            for batch in read_journal(journal, journalled(schema)):
                yield batch.cast(schema)
