"""Pages as lines: JSON (the main text and the facts of the page) and CSV (the pages table).

Made by `fyke.export.job`. A part is `PART_ROWS` rows of the pages table; parts follow each other in one file. Of a part
with long texts, `TOGETHER_BYTES` are in memory.
Invariant: a line of JSON is one object, whatever the page; a cell of CSV never begins as a formula would, so a
spreadsheet shows a stranger's text and does not run it. This also holds where a spreadsheet takes semicolons or tabs
for separators, as in countries that write commas in numbers: there a semicolon in a title begins a cell.
"""

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from fyke.archive.schemas import PAGES, journalled
from fyke.core.hidden import HIDDEN
from fyke.export import page_text, selection
from fyke.export.changes import Change, Changes, changes_since
from fyke.export.growing import GrowingFile, json_line, utc_text
from fyke.export.near_column import near_column
from fyke.export.prose import plain
from fyke.export.source import RowRange, Source
from fyke.export.staging import Mark, Staging
from fyke.search.archived import COLUMNS

PART_ROWS = 2_000
TOGETHER_BYTES = 4 << 20  # of lines
EVER = datetime(1970, 1, 1, tzinfo=UTC)  # since then all pages are new

_FACTS = ("host", "domain", "depth", "media_type", "content_bytes", "digest", "duplicate")
_COLUMNS = [*COLUMNS, "key", "fingerprint", *_FACTS]
# A sign that begins a formula, also in full width, after invisible characters.
_UNSEEN = re.sub(r"\\[uU]0*([0-9a-f]+)", r"\\x{\1}", HIDDEN)
_SIGN = r"=+\-@＝＋－＠"
_FORMULA = rf"^([\x{{ad}}{_UNSEEN}]*[{_SIGN}\t\r])"
_FORMULA_WITHIN = rf'([;\t\r\n]"*)([\x{{ad}}{_UNSEEN}]*[{_SIGN}])'
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"


class _TextExport(ABC):
    """A file of lines, in parts of `PART_ROWS` rows."""

    unit = "pages"
    columns: Sequence[str]  # that are read

    def __init__(
        self, source: Source, staging: Staging, rule: selection.Selection, *, packed: bool, changes: bool
    ) -> None:
        self._source = source
        self._staging = staging
        self._rule = rule
        self._packed = packed
        self._changes = changes
        self.unreadable = 0
        self.total = source.until.pages

    def parts(self, mark: Mark) -> Iterator[Mark]:
        entries = mark.entries
        with GrowingFile(self._staging.out, mark.state.get("length", 0), packed=self._packed) as file:
            for part in self._source.parts("pages", self.columns, mark, PART_ROWS):
                for lines, count in self._lines(part):
                    entries += count
                    file.add(lines)
                yield Mark(part.end, entries, {"length": file.length})

    def _find_changes(self, content: selection.Selection | None) -> Changes:
        """Return the change of each row since the rule's date; `content` as for `changes_since`."""
        return changes_since(
            self._source,
            self._rule.since or EVER,
            self._staging.scratch,
            content,
            with_noindex=self._rule.with_noindex,
        )

    @abstractmethod
    def _lines(self, part: RowRange) -> Iterator[tuple[bytes, int]]:
        """Yield the lines of the rows of `part`, and their number of entries, as much at a time as may be in memory."""

    def finish(self, mark: Mark) -> None:
        """The file is whole when its last part is."""
        assert mark.done == self.total


class JsonLines(_TextExport):
    """One object a page with a text, as `rule` takes them; or one for each change since the rule's date."""

    columns = _COLUMNS

    def parts(self, mark: Mark) -> Iterator[Mark]:
        if self._changes:
            self._changed = self._find_changes(self._rule)
            self._chosen = self._changed > 0
        else:
            self._chosen = selection.select(self._source, self._rule, self._staging.scratch)
        self._near = near_column(self._source, self._staging.scratch)
        with page_text.Reading(self._source, plain, with_noindex=self._rule.with_noindex) as self._reading:
            yield from super().parts(mark)

    def _lines(self, part: RowRange) -> Iterator[tuple[bytes, int]]:
        chosen = self._chosen[part.begin : part.end]
        words = map(change_in_words, self._changed[part.begin : part.end][chosen]) if self._changes else repeat("")
        near = self._near[part.begin : part.end][chosen].tolist()
        lines: list[bytes] = []
        size = 0
        for line in filter(None, map(self._line, chosen_rows(part, self._chosen), words, near)):
            lines.append(line)
            size += len(line)
            if size >= TOGETHER_BYTES:
                yield b"".join(lines), len(lines)
                lines, size = [], 0
        self.unreadable = self._reading.unreadable
        yield b"".join(lines), len(lines)

    def _line(self, row: dict[str, Any], change: str, near_of: int) -> bytes:
        fetched_at = utc_text(row["fetched_at"])
        told: dict[str, Any] = {"change": change} if change else {}
        if change == "gone":
            return json_line({**told, "url": row["url"], "fetched_at": fetched_at, "status": row["status"]})
        content = self._reading.content_of(row)
        if content is None:
            return b""
        entry = {
            **told, "url": row["url"], "title": content.title, "text": content.text,
            "language": content.language, "fetched_at": fetched_at,
            "status": row["status"], **{name: row[name] for name in _FACTS},
            "charset": content.charset, "noindex": content.noindex,
            "key": f"{row['key']:016x}", "fingerprint": f"{row['fingerprint']:016x}",
            "near_of": f"{near_of:016x}" if near_of else None,
        }  # fmt: skip
        return json_line(entry)


def change_in_words(change: int) -> str:
    return Change(change).name.lower()


def chosen_rows(part: RowRange, chosen: selection.Chosen) -> Iterator[dict[str, Any]]:
    """Yield the chosen rows of `part`, one at a time."""
    at = part.begin
    for batch in part.batches:
        yield from batch.filter(pa.array(chosen[at : at + batch.num_rows])).to_pylist()
        at += batch.num_rows


class Csv(_TextExport):
    """The pages table: rows of visits since the date of `rule`, or of the changes since then."""

    columns = PAGES.names

    def parts(self, mark: Mark) -> Iterator[Mark]:
        if self._changes:
            self._changed = self._find_changes(None)
        return super().parts(mark)

    def _lines(self, part: RowRange) -> Iterator[tuple[bytes, int]]:
        out = io.BytesIO()
        options = pv.WriteOptions(include_header=part.begin == 0)
        schema = journalled(PAGES)
        schema = pa.schema([pa.field("change", pa.string()), *schema]) if self._changes else schema
        at, count = part.begin, 0
        with pv.CSVWriter(out, schema, write_options=options) as writer:
            for batch in part.batches:
                columns = [_cell(column) for column in batch.columns]
                wanted = np.ones(batch.num_rows, np.bool_)
                if self._changes:
                    changed = self._changed[at : at + batch.num_rows]
                    columns.insert(0, pa.array(list(map(change_in_words, changed)), pa.string()))
                    wanted = changed > 0
                elif self._rule.since is not None:
                    wanted = selection.fetched_since(batch.column("fetched_at"), self._rule.since)
                at += batch.num_rows
                count += int(wanted.sum())
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema).filter(pa.array(wanted)))
        yield out.getvalue(), count


def _cell(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_string(column.type):
        return column
    for found, instead in ((_CONTROL, ""), (_FORMULA, r"'\1"), (_FORMULA_WITHIN, r"\1'\2")):
        column = pc.replace_substring_regex(column, found, instead)
    return column
