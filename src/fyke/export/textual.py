"""Pages as lines: JSON (the main text and what is known of the page) and CSV (the pages table).

Made by `fyke.export.run`. A part is so many rows of the pages table; parts follow each other in one file. Invariant: a
line of JSON is one object, whatever the page; a cell of CSV never begins as a formula would, so that a spreadsheet
shows what a stranger wrote and does not run it.
"""

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from fyke.export import reading, selection
from fyke.export.growing import GrowingFile
from fyke.export.prose import plain
from fyke.export.source import Source
from fyke.export.staging import Mark, Staging
from fyke.search.extract import TITLE_CHARS, one_line
from fyke.store.schemas import PAGES, journalled

PART_ROWS = 2_000

_FACTS = ("host", "domain", "depth", "media_type", "charset", "content_bytes", "digest", "noindex", "duplicate")
_COLUMNS = [*reading.COLUMNS, "key", "title", "fingerprint", *_FACTS]
_FORMULA = r"^([=+\-@\t\r])"
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"


class _Lines(ABC):
    """A file of lines, a part of it for so many rows."""

    unit = "pages"

    def __init__(self, source: Source, staging: Staging, *, packed: bool) -> None:
        self._source = source
        self._staging = staging
        self._packed = packed
        self.total = source.until.pages

    def parts(self, mark: Mark) -> Iterator[Mark]:
        with GrowingFile(self._staging.out, mark.state.get("length", 0), packed=self._packed) as file:
            begin, entries = mark.done, mark.entries
            while begin < self.total or not self.total:
                end = min(begin + PART_ROWS, self.total)
                lines, count = self._part(begin, end)
                entries += count
                yield Mark(end, entries, {"length": file.add(lines)})
                if end == self.total:
                    return
                begin = end

    @abstractmethod
    def _part(self, begin: int, end: int) -> tuple[bytes, int]:
        """The lines of the rows from `begin` to `end`, and how many entries they are."""

    def finish(self, mark: Mark) -> None:
        """The file is whole when its last part is."""
        assert mark.done == self.total


class JsonLines(_Lines):
    """One object a page that has a text, as `rule` takes them."""

    def __init__(self, source: Source, staging: Staging, rule: selection.Rule, *, packed: bool) -> None:
        super().__init__(source, staging, packed=packed)
        self._rule = rule

    def parts(self, mark: Mark) -> Iterator[Mark]:
        self._chosen = selection.select(self._source, self._rule, self._staging.scratch)
        with reading.Reading(self._source, plain) as self._reading:
            yield from super().parts(mark)

    def _part(self, begin: int, end: int) -> tuple[bytes, int]:
        rows = chosen_rows(self._source, self._chosen, _COLUMNS, begin, end)
        lines = [line for line in map(self._line, rows) if line]
        return b"".join(lines), len(lines)

    def _line(self, row: dict[str, Any]) -> bytes:
        said = self._reading.said(row)
        if said is None:
            return b""
        entry = {
            "url": row["url"], "title": one_line(row["title"], TITLE_CHARS), "text": said.text,
            "language": said.language, "fetched_at": row["fetched_at"].isoformat().replace("+00:00", "Z"),
            "status": row["status"], **{name: row[name] for name in _FACTS},
            "key": f"{row['key']:016x}", "fingerprint": f"{row['fingerprint']:016x}",
        }  # fmt: skip
        return json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def chosen_rows(
    source: Source, chosen: selection.Chosen, columns: list[str], begin: int, end: int
) -> Iterator[dict[str, Any]]:
    """The chosen rows of the pages table from `begin` to `end`, one at a time."""
    at = begin
    for batch in source.rows("pages", columns, begin, end):
        yield from batch.filter(pa.array(chosen[at : at + batch.num_rows])).to_pylist()
        at += batch.num_rows


class Csv(_Lines):
    """The pages table, every row."""

    def _part(self, begin: int, end: int) -> tuple[bytes, int]:
        out = io.BytesIO()
        options = pv.WriteOptions(include_header=begin == 0)
        with pv.CSVWriter(out, journalled(PAGES), write_options=options) as writer:
            for batch in self._source.rows("pages", PAGES.names, begin, end):
                columns = [_cell(column) for column in batch.columns]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=journalled(PAGES)))
        return out.getvalue(), end - begin


def _cell(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_string(column.type):
        return column
    return pc.replace_substring_regex(pc.replace_substring_regex(column, _CONTROL, ""), _FORMULA, r"'\1")
