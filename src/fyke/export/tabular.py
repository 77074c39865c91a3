"""Tables as Parquet: a folder of files with a fixed number of rows each, or one file made of them.

`PageExport` (the pages table with text and language) and the links in `fyke.export.edges` are such jobs. Invariant: a
file is written whole before a mark counts it; the folder of files and the one file hold the same rows in the same
order.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from fyke.archive.schemas import PAGES
from fyke.archive.table_files import as_file, parquet_writer
from fyke.disk.files import sync_file
from fyke.export import page_text, selection
from fyke.export.near_column import near_column
from fyke.export.prose import plain
from fyke.export.source import RowRange, Source
from fyke.export.staging import Mark, Staging, writing
from fyke.search.archived import COLUMNS

FILE_PAGES = 20_000
GROUP_BYTES = 16 << 20  # of text
MERGE_ROWS = 8_192

_TEXT = pa.field("text", pa.string(), metadata={"description": "The main content; null if the page has none."})
_LANGUAGE = pa.field(
    "language", pa.string(), metadata={"description": "Language of the text, ISO 639-1; null if it has none."}
)
_SAID = "Key of the page that had this text, or nearly this, first; null if no page had, or without an index."
_NEAR_OF = pa.field("near_of", pa.uint64(), metadata={"description": _SAID})
SCHEMA = (
    PAGES.append(_TEXT)
    .append(_LANGUAGE)
    .append(_NEAR_OF)
    .with_metadata({"description": "One row for each visit, with the text of the page."})
)


class Sheets(ABC):
    """Rows as Parquet files of `file_rows` rows, called `<table>-00000.parquet`; if `single`, merged into one file."""

    columns: Sequence[str]  # that are read
    file_rows: int

    def __init__(self, source: Source, staging: Staging, table: str, schema: pa.Schema, *, single: bool) -> None:
        self._source = source
        self._staging = staging
        self._table = table
        self._schema = schema
        self._single = single
        self.unreadable = 0
        self.total: int = getattr(source.until, table)
        self._folder = staging.folder / "pieces" if single else staging.out

    @abstractmethod
    def _tables(self, part: RowRange) -> Iterator[pa.Table]:
        """Yield the rows of `part`, as row groups."""

    def parts(self, mark: Mark) -> Iterator[Mark]:
        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
        number = mark.state.get("files", 0)
        for part in self._source.parts(self._table, self.columns, mark, self.file_rows):
            path = self._file(number)
            with writing(path):
                with parquet_writer(path, self._schema) as writer:
                    for table in self._tables(part):
                        writer.write_table(table)
                sync_file(path)
                sync_file(self._folder)
            number += 1
            yield Mark(part.end, part.end, {"files": number})

    def _file(self, number: int) -> Path:
        return self._folder / f"{self._table}-{number:05d}.parquet"

    def finish(self, mark: Mark) -> None:
        """Merge the files into one, if one was asked for."""
        if not self._single:
            return
        with writing(self._staging.out):
            with parquet_writer(self._staging.out, self._schema) as writer:
                for number in range(mark.state["files"]):
                    with pq.ParquetFile(as_file(self._file(number))) as file:
                        for batch in file.iter_batches(MERGE_ROWS):
                            writer.write_table(pa.Table.from_batches([batch]).cast(self._schema))
            sync_file(self._staging.out)


class PageExport(Sheets):
    """The pages table, every row, with text and language for those that `rule` takes."""

    unit = "pages"
    columns = PAGES.names
    file_rows = FILE_PAGES

    def __init__(self, source: Source, staging: Staging, rule: selection.Selection, *, single: bool) -> None:
        super().__init__(source, staging, "pages", SCHEMA, single=single)
        self._rule = rule

    def parts(self, mark: Mark) -> Iterator[Mark]:
        self._chosen = selection.select(self._source, self._rule, self._staging.scratch)
        self._near = near_column(self._source, self._staging.scratch)
        with page_text.Reading(self._source, plain, with_noindex=self._rule.with_noindex) as self._reading:
            yield from super().parts(mark)

    def _tables(self, part: RowRange) -> Iterator[pa.Table]:
        at = part.begin
        for batch in part.batches:
            for table in self._with_text(batch, at):
                since = self._rule.since
                times = table.column("fetched_at").combine_chunks()
                yield table if since is None else table.filter(pa.array(selection.fetched_since(times, since)))
            at += batch.num_rows
        self.unreadable = self._reading.unreadable

    def _with_text(self, batch: pa.RecordBatch, first: int) -> Iterator[pa.Table]:
        """Yield the rows of `batch`, which begins at row `first`, in pieces of about `GROUP_BYTES` of text."""
        texts: list[str | None] = []
        languages: list[str | None] = []
        size = begin = 0
        wanted = self._chosen[first : first + batch.num_rows].tolist()
        columns = batch.select(COLUMNS)
        for at, chosen in enumerate(wanted):
            content = self._reading.content_of(_row(columns, at)) if chosen else None
            texts.append(content.text if content else None)
            languages.append(content.language if content else None)
            size += len(content.text) if content else 0
            if size >= GROUP_BYTES or at == len(wanted) - 1:
                near = self._near[first + begin : first + begin + len(texts)]
                yield _joined(batch.slice(begin, len(texts)), texts, languages, near)
                texts, languages, size, begin = [], [], 0, at + 1


def _row(columns: pa.RecordBatch, at: int) -> dict[str, Any]:
    return {name: column[at].as_py() for name, column in zip(columns.schema.names, columns.columns, strict=True)}


def _joined(
    batch: pa.RecordBatch, texts: list[str | None], languages: list[str | None], near: npt.NDArray[np.uint64]
) -> pa.Table:
    own = [pa.array(texts, pa.string()), pa.array(languages, pa.string()), pa.array(near, mask=near == 0)]
    arrays = [*batch.columns, *own]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)
