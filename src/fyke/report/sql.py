"""Questions in SQL to the tables of a crawl, of any size, in bounded memory.

`fyke.report.survey` and its neighbours use it. DuckDB reads the rows that a checkpoint holds as they stream by. It puts
what does not fit into `MEMORY` into temporary files. Invariant: nothing outside of the crawl is read, and no file of
the crawl is written.
"""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.arrivals import arrivals, has_rows, safe_rows
from fyke.archive.reading import scan_table, segments
from fyke.archive.schemas import SCHEMAS
from fyke.core.batches import Kind
from fyke.core.errors import DirectoryError, DiskFull
from fyke.disk.scratch import scratch

_LISTING = Kind.LISTING.name.lower()
_ARRIVAL = pa.field("arrival", pa.int64())
MEMORY = "128MB"
THREADS = 2

Rows = list[tuple[Any, ...]]


class Questions:
    """The tables of the crawl directory `crawl`, as they are now. Raises DirectoryError."""

    def __init__(self, crawl: Path) -> None:
        self.crawl = crawl
        self._begun = has_rows(crawl)
        self._rows = {name: safe_rows(crawl, name) if self._begun else 0 for name in ("links", "pages")}
        self._open = ExitStack()

    def __repr__(self) -> str:
        return f"Questions({str(self.crawl)!r}, {self._rows['pages']} pages)"

    def __enter__(self) -> Self:
        place = self._open.enter_context(scratch("fyke-report-"))
        self._engine = self._open.enter_context(duckdb.connect(":memory:"))
        for setting in (f"memory_limit = '{MEMORY}'", f"threads = {THREADS}", f"temp_directory = '{place}'"):
            self._engine.execute(f"set {setting}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def has(self, name: str) -> bool:
        """Return whether the table `name` has rows; hosts and domains have some only once the crawl has closed."""
        return self._rows[name] > 0 if name in self._rows else self._begun and bool(segments(self.crawl, name))

    def ask(self, sql: str, *values: object, **tables: Sequence[str]) -> Rows:
        """Return the answer to `sql` over `tables`, each with the columns it needs.

        The table `visits` is `pages` with sitemaps and feeds. The column `arrival` is the number of a row in order of
        arrival. Raises DiskFull, DirectoryError, OSError, and KeyboardInterrupt on Ctrl-C.
        """
        self._fault: DirectoryError | OSError | None = None
        for name, columns in tables.items():
            self._engine.register(name, self._reader(name, columns))
        try:
            return self._answer(sql, values)
        except duckdb.Error as error:
            if self._fault is not None:
                raise self._fault from None
            if not isinstance(error, duckdb.IOException):
                raise
            if "space" in str(error):
                raise DiskFull(
                    f"no room in {tempfile.gettempdir()}: free some space, or set TMPDIR to another folder"
                ) from None
            raise DirectoryError(f"{self.crawl}: {error}") from None
        finally:
            for name in tables:
                self._engine.unregister(name)

    def _answer(self, sql: str, values: Sequence[object]) -> Rows:
        """Ask DuckDB in a thread of its own. If DuckDB itself got Ctrl-C, it would wait for ever for those of its
        threads that did not; `interrupt` reaches all of them."""
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(lambda: self._engine.execute(sql, values).fetchall())
            try:
                return asked.result()
            except KeyboardInterrupt:
                while not asked.done():  # it may be about to begin
                    self._engine.interrupt()
                    wait([asked], 0.1)
                raise

    def _read(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        name = "pages" if name == "visits" else name
        if name not in self._rows:
            yield from scan_table(self.crawl, name, columns)
        elif self._rows[name]:
            yield from arrivals(self.crawl, name, columns, 0, self._rows[name])

    def _reader(self, name: str, columns: Sequence[str]) -> pa.RecordBatchReader:
        kept = SCHEMAS["pages" if name == "visits" else name]
        schema = pa.schema([_ARRIVAL if column == _ARRIVAL.name else kept.field(column) for column in columns])

        def batches() -> Iterator[pa.RecordBatch]:
            wanted = [*{*columns, *(["kind"] if name == "pages" else [])} - {_ARRIVAL.name}]
            came = 0
            try:
                for batch in self._read(name, wanted):
                    numbers = np.arange(came, came + batch.num_rows)
                    came += batch.num_rows
                    batch = batch.append_column(_ARRIVAL, pa.array(numbers))
                    if name == "pages":  # without sitemaps and feeds, as the crawl counts
                        batch = batch.filter(pc.not_equal(batch.column("kind").cast(pa.string()), _LISTING))
                    yield batch.select(columns).cast(schema)
            except (DirectoryError, OSError) as error:  # DuckDB would keep only its text
                self._fault = error
                raise

        return pa.RecordBatchReader.from_batches(schema, batches())
