"""Tables of facts from archived pages: `fyke extract`, and `fyke.extract` of Python.

Reads the last archived visit to each page, and asks `fyke.harvest.fields` as the crawl did or would have. So a selector
can be changed and tried again without a request. Invariant: a table appears whole, as a file by rename or in a database
by one transaction; memory holds a batch of rows.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
from rich.console import Console

from fyke.archive.directory import CrawlDirectory
from fyke.archive.table_files import parquet_writer
from fyke.archive.tables import rows_batch
from fyke.core.errors import ConfigurationError, MissingExtra
from fyke.core.extraction import ExtractSection
from fyke.core.mixing import mixed
from fyke.core.pages import Page
from fyke.disk.files import lock, writing, written_whole
from fyke.disk.ranges import Buckets, ranges_for
from fyke.disk.scratch import scratch
from fyke.export.growing import json_line
from fyke.export.selection import RANGE_ROWS, Chosen, Selection, select
from fyke.export.source import Source
from fyke.export.staging import column_once
from fyke.harvest.fields import Extractor, Row
from fyke.progress import Progress
from fyke.search.archived import COLUMNS, ArchiveReader

FOLDER = "extracted"
LOCK = ".lock"  # in the folder of the files
DATABASES = ("postgresql://", "postgres://", "duckdb:")
OTHERWISE = "name another folder with --out"
ROWS_AT_ONCE = 10_000
_CONTENT = np.dtype([("content", "<u8"), ("row", "<u8"), ("copy", "?")])  # content: of a page, key and fingerprint


class Extracted(NamedTuple):
    """What was made."""

    files: dict[str, int]  # rows of each table, by its file or place in a database
    unreadable: int = 0  # pages
    cut: int = 0  # pages that have more than is kept


class ArchivedPages:
    """The pages of the crawl in `directory`, in the order of the crawl: the last visit to each URL.

    Exact copies of an earlier page are left out, because the crawl did not read them either. A page that is again as it
    was at an earlier visit is no copy.
    """

    def __init__(self, directory: Path) -> None:
        """Raises NotACrawl, StateDamaged."""
        source = Source(CrawlDirectory(directory))
        self._source = source.upto(source.now())
        self._archive = ArchiveReader(source.path, source.product)

    @property
    def unreadable(self) -> int:
        """Number of records so far that were not there or not whole."""
        return self._archive.unreadable

    def __len__(self) -> int:
        return self._source.until.pages

    def __iter__(self) -> Iterator[Page | None]:
        """Yield each page, and None for each row without one, so that callers can count rows."""
        with closing(self._archive), scratch("fyke-extract-") as below:
            chosen = select(self._source, Selection(with_noindex=True, with_copies=True), below)
            were_read = _were_read(self._source, below)
            place = 0
            for batch in self._source.rows("pages", COLUMNS):
                wanted = chosen[place : place + batch.num_rows] & were_read[place : place + batch.num_rows]
                place += batch.num_rows
                for row, is_wanted in zip(batch.to_pylist(), wanted, strict=True):
                    yield self._archive.read(row) if is_wanted else None


def _were_read(source: Source, scratch: Path) -> Chosen:
    """Return the rows whose page the crawl read with this content, then or at an earlier visit: bool[rows]."""

    def fill(read: Chosen) -> None:
        contents = Buckets(scratch, "contents", _CONTENT, ranges_for(len(read), RANGE_ROWS))
        begin = 0
        for batch in source.rows("pages", ["key", "fingerprint", "duplicate"]):
            rows = np.empty(batch.num_rows, _CONTENT)
            rows["content"] = mixed(batch.column("key").to_numpy() + mixed(batch.column("fingerprint").to_numpy()))
            rows["row"] = np.arange(begin, begin + batch.num_rows)
            rows["copy"] = batch.column("duplicate").to_numpy(zero_copy_only=False)
            contents.add(rows["content"].copy(), rows)
            begin += batch.num_rows
        for rows in contents:
            read[rows["row"][np.isin(rows["content"], rows["content"][~rows["copy"]])].astype(np.int64)] = True
        contents.close()

    rows = source.until.pages
    found: Chosen = column_once(scratch / f"read-{rows}", np.bool_, rows, fill)
    return found


class _RowWriter(Protocol):
    def write(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None: ...


class _ParquetRows:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = parquet_writer(path, schema)
        self._schema = schema

    def write(self, rows: Sequence[Row]) -> None:
        self._writer.write_batch(rows_batch(rows, self._schema))

    def close(self) -> None:
        self._writer.close()


class _JsonRows:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("wb")
        self._names = schema.names

    def write(self, rows: Sequence[Row]) -> None:
        self._file.writelines(json_line(dict(zip(self._names, row, strict=True))) for row in rows)

    def close(self) -> None:
        self._file.close()


FORMATS: dict[str, Callable[[Path, pa.Schema], _RowWriter]] = {"parquet": _ParquetRows, "jsonl": _JsonRows}


class ExtractTarget(AbstractContextManager["ExtractTarget"], Protocol):
    """Target of the tables: after its block all are there; if the block fails, all are as they were."""

    def table(self, name: str, schema: pa.Schema) -> tuple[str, _RowWriter]:
        """Make the new table `name`; return its place, for people, and its writer."""
        ...


class ExtractedFiles:
    """Files below `folder`."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        with writing(self._folder, refused=OTHERWISE):
            self._folder.mkdir(parents=True, exist_ok=True)
        in_use = f"{self._folder} is being written by another fyke extract: wait for it, or {OTHERWISE}"
        self._parts.callback(os.close, lock(self._folder / LOCK, in_use))
        return self

    def __exit__(self, *error: Any) -> None:
        self._parts.__exit__(*error)

    def table(self, name: str, schema: pa.Schema) -> tuple[str, _RowWriter]:
        path = self._folder / f"{name}.{self._kind}"
        part = self._parts.enter_context(written_whole(path, refused=OTHERWISE, synced=False))
        return str(path), FORMATS[self._kind](part, schema)


class _Filling:
    """A table on its way to its target."""

    def __init__(self, extractor: Extractor, target: ExtractTarget) -> None:
        self.extractor = extractor
        self.place, self._writer = target.table(extractor.name, extractor.schema)
        self._rows: list[Row] = []
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with closing(self._writer):
            if kind is None:
                self._flush()

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
    directory: Path, sections: Sequence[ExtractSection], out: Path | None, to: str, console: Console
) -> Extracted:
    """Make the tables of `sections` from the archive of the crawl in `directory`.

    `to` is one of `FORMATS`, for files below `out`, or a database as in `databases`. Raises ConfigurationError,
    MissingExtra, NotACrawl, StateDamaged, DiskFull, DirectoryError.
    """
    where = _target(directory, out, to)
    if not sections:
        raise ConfigurationError(
            "no fields given: write an [[extract]] table with table and fields into a file, name it with --config"
        )
    extractors = [Extractor(section) for section in sections]
    pages = ArchivedPages(directory)
    cut = 0
    with ExitStack() as stack:
        target = stack.enter_context(where)
        filling = [stack.enter_context(_Filling(extractor, target)) for extractor in extractors]
        progress = stack.enter_context(Progress(console, "extracting"))
        for done, page in enumerate(pages):
            if not done % 100:
                progress.tell("extracting", done, len(pages), "pages")
            if page is None:
                continue
            page.cut = False  # for its links it may be
            for table in filling:
                table.add(page)
            cut += page.cut
    return Extracted({table.place: table.count for table in filling}, pages.unreadable, cut)


def _target(directory: Path, out: Path | None, to: str) -> ExtractTarget:
    if to in FORMATS:
        return ExtractedFiles(out or directory / FOLDER, to)
    if not to.startswith(DATABASES):
        raise ConfigurationError(f"--to {to}: write {', '.join(FORMATS)}, postgresql://HOST/NAME or duckdb:FILE")
    if out is not None:
        raise ConfigurationError("--out is for files: name a database with --to alone")
    try:
        from fyke.export.databases import Database  # noqa: PLC0415 - nothing else needs the extra
    except ModuleNotFoundError as error:
        raise MissingExtra(error, "database") from None
    return Database(to)


def rows_of(directory: Path, extractor: Extractor) -> Iterator[dict[str, Any]]:
    """Yield the rows of one table, as they are found."""
    for page in ArchivedPages(directory):
        for row in extractor.rows(page) if page is not None else ():
            yield dict(zip(extractor.schema.names, row, strict=True))
