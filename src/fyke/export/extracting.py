"""What the pages of an archive say, as tables: `fyke extract`, and `fyke.extract` of Python.

Reads the pages that a crawl archived, the last visit to each, and asks `fyke.harvest.fields` as the crawl did, or would
have. So a selector can be changed and tried again without a request. Invariant: a file appears whole, by rename; memory
holds a batch of rows.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa
from rich.console import Console

from fyke.archive.directory import CrawlDirectory
from fyke.archive.table_files import parquet_writer
from fyke.archive.tables import rows_batch
from fyke.core.config import ExtractSection
from fyke.core.errors import ConfigurationError
from fyke.core.visits import Page
from fyke.disk.files import writing, written_whole
from fyke.export.selection import Selection, select
from fyke.export.source import Source
from fyke.harvest.fields import Extractor, Row
from fyke.progress import Progress
from fyke.search.archived import ArchiveReader

FOLDER = "extracted"
ROWS_AT_ONCE = 10_000
_COLUMNS = ["url", "outcome", "status", "fetched_at", "warc_file", "warc_offset", "warc_length"]


class ArchivedPages:
    """The pages of the crawl in `directory`, the last visit to each URL, in the order of the crawl."""

    def __init__(self, directory: Path) -> None:
        """Raises NotACrawl, StateDamaged."""
        source = Source(CrawlDirectory(directory))
        self._source = source.upto(source.now())
        self._archive = ArchiveReader(source.path, source.product)

    @property
    def unreadable(self) -> int:
        """Records so far that were not there or not whole."""
        return self._archive.unreadable

    def __len__(self) -> int:
        return self._source.until.pages

    def __iter__(self) -> Iterator[Page | None]:
        """Each page, and None for a row that has none: so that it is known how far it is."""
        with closing(self._archive), tempfile.TemporaryDirectory(prefix="fyke-extract-") as scratch:
            chosen = select(self._source, Selection(noindex=True, copies=True), Path(scratch))
            place = 0
            for batch in self._source.rows("pages", _COLUMNS):
                wanted = chosen[place : place + batch.num_rows]
                place += batch.num_rows
                for row, is_wanted in zip(batch.to_pylist(), wanted, strict=True):
                    yield self._archive.read(row) if is_wanted else None


class _Writer(Protocol):
    def write(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None: ...


class _Parquet:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = parquet_writer(path, schema)
        self._schema = schema

    def write(self, rows: Sequence[Row]) -> None:
        self._writer.write_batch(rows_batch(rows, self._schema))

    def close(self) -> None:
        self._writer.close()


class _JsonLines:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._names = schema.names

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            print(json.dumps(dict(zip(self._names, row, strict=True)), ensure_ascii=False), file=self._file)

    def close(self) -> None:
        self._file.close()


FORMATS: dict[str, Callable[[Path, pa.Schema], _Writer]] = {"parquet": _Parquet, "jsonl": _JsonLines}


class _Filling:
    """A table on its way to its file."""

    def __init__(self, extractor: Extractor, writer: _Writer, path: Path) -> None:
        self.extractor, self.path = extractor, path
        self._writer = writer
        self._rows: list[Row] = []
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._flush()
        self._writer.close()

    def add(self, page: Page) -> None:
        self._rows += self.extractor.rows(page)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write(self._rows)
        self.count += len(self._rows)
        self._rows = []


def extract(
    directory: Path, sections: Sequence[ExtractSection], out: Path | None, kind: str, console: Console
) -> tuple[dict[Path, int], int]:
    """Make the tables of `sections` from the archive of the crawl in `directory`, as files below `out`.

    Returns how many rows each file has, and how many pages could not be read. Raises ConfigurationError, NotACrawl,
    StateDamaged, DiskFull, DirectoryError.
    """
    if kind not in FORMATS:
        raise ConfigurationError(f"--to {kind}: say {' or '.join(FORMATS)}")
    if not sections:
        raise ConfigurationError(
            "which fields? write an [[extract]] table with table and fields into a file, and name it with --config"
        )
    extractors = [Extractor(section) for section in sections]
    pages = ArchivedPages(directory)
    folder = out or directory / FOLDER
    otherwise = "name another folder with --out"
    with ExitStack() as stack:
        with writing(folder, otherwise, otherwise):
            folder.mkdir(parents=True, exist_ok=True)
        filling = []
        for extractor in extractors:
            path = folder / f"{extractor.name}.{kind}"
            part = stack.enter_context(written_whole(path, otherwise, otherwise, synced=False))
            filling.append(stack.enter_context(_Filling(extractor, FORMATS[kind](part, extractor.schema), path)))
        progress = stack.enter_context(Progress(console, "extracting"))
        for done, page in enumerate(pages):
            if not done % 100:
                progress.tell("extracting", done, len(pages), "pages")
            for table in filling if page is not None else ():
                assert page is not None
                table.add(page)
    return {table.path: table.count for table in filling}, pages.unreadable


def rows_of(directory: Path, extractor: Extractor) -> Iterator[dict[str, Any]]:
    """The rows of one table, as they are found."""
    for page in ArchivedPages(directory):
        for row in extractor.rows(page) if page is not None else ():
            yield dict(zip(extractor.schema.names, row, strict=True))
