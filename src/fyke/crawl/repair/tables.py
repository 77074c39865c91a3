"""Mends the tables of a crawl: makes lost rows anew out of the archive.

Called by `fyke.crawl.repair`, after the archive is mended. Invariant: a row that was whole before is so after.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.checksum import checksum_holds, write_checksum
from fyke.archive.lost import INDEX_COUNTERS, is_gone_of_index
from fyke.archive.mending import RowsPiece, fits, journal_holds, pieces, write_anew
from fyke.archive.reading import GENERATION, TableFile, generation, read_file, rows_recorded, segments
from fyke.archive.schemas import SCHEMAS
from fyke.archive.table_files import TABLES, series
from fyke.core.batches import NO_KEYS, u64
from fyke.core.errors import StateDamaged
from fyke.crawl.repair.case import Case, Note
from fyke.crawl.repair.reread import RecordPosition, Rereader, position_of
from fyke.disk.files import write_whole, writing


@dataclass(slots=True)
class _Spans:
    """The pieces of a table, and the archive places that their rows name; each piece is looked at once."""

    found: list[RowsPiece]
    known: dict[int, Any] = field(default_factory=dict)


_Fill = Callable[[_Spans, int], Iterator[pa.RecordBatch]]


class TableRepair:
    """Mends the tables of a case, with rows that `reader` finds in its archive. Lost rows of the tables `extracted`
    (schemas by name) do not come anew."""

    def __init__(self, case: Case, reader: Rereader, extracted: Mapping[str, pa.Schema]) -> None:
        self._case = case
        self._reader = reader
        self._extracted = extracted

    def run(self) -> Iterator[Note]:
        with writing(self._case.folder):
            (self._case.folder / TABLES).mkdir(exist_ok=True)
        yield from self._table("pages", "pages", SCHEMAS["pages"], self._pages_of)
        yield from self._table("links", "links", SCHEMAS["links"], self._links_of)
        for name, schema in self._extracted.items():
            yield from self._table(name, f"extract {name}", schema, lambda spans, hole: iter(()))
        yield from self._summaries()

    def _segments(self, name: str) -> list[TableFile]:
        """Return the segments of a table that this agent wrote."""
        part = self._case.directory.part
        return [segment for segment in segments(self._case.folder, name) if segment.part == part]

    def _table(self, name: str, word: str, schema: pa.Schema, fill: _Fill) -> Iterator[Note]:
        """Mend the table `name`, whose state is called `word`; `fill` gives the rows of a hole."""
        state = self._case.state.get(word, {}) if self._case.manifest is not None else None
        if state is not None:
            yield from self._put_aside_what_came_after(name, state)
            if self._case.fell_back:
                yield from self._cut_journals(name, state)
        own = series(name, self._case.directory.part)
        found = pieces(self._case.folder, own, schema, state)
        spans = _Spans(found)
        if state is None:
            hole = RowsPiece(found[-1].serial + 1 if found else 0, schema)
            spans.found = [*found, hole]
            if any(batch.num_rows for batch in fill(spans, len(found))):
                found = spans.found
            spans.found = found
        if fits(found, state):
            return
        self._new_generation()
        anew = "; it is rebuilt from the archive" if name in SCHEMAS else ""
        for serial in sorted({piece.serial for piece in found if not piece.whole and piece.path is None}):
            yield Note(f"{TABLES}/{own}-{serial:05d}", f"it is damaged or gone{anew}")
        after = write_anew(self._case.folder, own, found, lambda at: fill(spans, at), self._case.aside)
        self._case.changed[word] = after
        self._case.mended = True
        if state is not None and (lost := rows_recorded(self._case.state, word) - after["sealed_rows"]) > 0:
            yield Note(f"{TABLES}/{own}", f"{lost:,} rows {self._lost_rows(name)}", lost=True)
        if name == "links" and self._reader.other_links:
            what = f"{self._reader.other_links:,} pages have other links now than when they were crawled"
            yield Note(f"{TABLES}/{name}", what)

    def _lost_rows(self, name: str) -> str:
        """Say which rows of the table `name` do not come back."""
        if name == "pages":
            return "of visits without an answer, or with lost records, cannot be restored"
        if name == "links":
            return "of pages with lost records cannot be restored"
        return f"are lost here; fyke extract {self._case.folder} makes the whole table again from the archive"

    def _put_aside_what_came_after(self, name: str, state: dict[str, Any]) -> Iterator[Note]:
        """Put aside Parquet files younger than the checkpoint, which are read before their journals: damaged ones, and
        all if a checkpoint is gone, because they have rows of lost records. A file whose rows the checkpoint counts
        stays if its journal is not whole, even without a checksum: it alone has them."""
        own, sealed = series(name, self._case.directory.part), state.get("sealed", 0)
        counted = sealed + len(state.get("segments", []))
        for serial, segment in enumerate(self._segments(name)[sealed:], sealed):
            path = segment.path.with_suffix(".parquet")
            needed = serial < counted and not journal_holds(self._case.folder, own, state, serial)
            if needed or not os.path.lexists(path):
                continue
            damaged = not (path.is_file() and checksum_holds(path))
            if damaged or self._case.fell_back:
                self._case.drop_checksum(path)
                self._case.aside.move_here(path)
                self._case.mended = True
                what = "damaged, " if damaged else ""
                yield Note(self._case.place(path), f"it is {what}younger than the checkpoint, and put aside")

    def _cut_journals(self, name: str, state: dict[str, Any]) -> Iterator[Note]:
        """Cut rows younger than the checkpoint off: their records were put aside."""
        sealed = state.get("sealed", 0)
        lengths = dict(enumerate((length for length, _ in state.get("segments", [])), sealed))
        for serial, segment in enumerate(self._segments(name)[sealed:], sealed):
            path, length = segment.path.with_suffix(".arrows"), lengths.get(serial, 0)
            if not path.is_file() or path.stat().st_size <= length:
                continue
            if length:
                part = self._case.scratch / path.name
                with writing(part), path.open("rb") as file:
                    part.write_bytes(file.read(length))
                self._case.aside.replace(part, path)
            else:
                self._case.aside.move_here(path)
            self._case.mended = True
            what = f"what came after the checkpoint, from byte {length:,} on, is put aside"
            yield Note(self._case.place(path), what)

    def _new_generation(self) -> None:
        """Begin a new generation before a row changes its number, so that nobody counts on from the old ones."""
        write_whole(self._case.folder / TABLES / GENERATION, f"{generation(self._case.folder) + 1}\n".encode())

    def _pages_of(self, spans: _Spans, hole: int) -> Iterator[Any]:
        """Yield the rows between the last page before the hole and the first after it."""
        if hole and spans.found[hole - 1].path is None:
            return
        before = (self._places(spans, at) for at in range(hole - 1, -1, -1))
        after = (self._places(spans, at) for at in range(hole + 1, len(spans.found)))
        low = next((places[1] for places in before if places), None)
        high = next((places[0] for places in after if places), None)
        yield from self._reader.pages(low, high)

    def _places(self, spans: _Spans, at: int) -> tuple[RecordPosition, RecordPosition] | None:
        """Return the first and the last place in the archive that rows of a piece name."""
        if at not in spans.known:
            first = last = None
            for batch in spans.found[at].batches():
                named = batch.filter(pc.is_valid(batch.column("warc_file"))).select(["warc_file", "warc_offset"])
                if named.num_rows:
                    ends = [position_of(*row.values()) for row in named.take([0, named.num_rows - 1]).to_pylist()]
                    first, last = first or ends[0], ends[1]
            spans.known[at] = (first, last) if first else None
        found: tuple[RecordPosition, RecordPosition] | None = spans.known[at]
        return found

    def _links_of(self, spans: _Spans, hole: int) -> Iterator[Any]:
        """Yield the missing links of pages from the last with links before the hole to the first after it. The first of
        holes side by side gets them all."""
        source, skip = self._neighbour(spans, range(hole - 1, -1, -1), last=True)
        if source is None and any(piece.path is None for piece in spans.found[:hole]):
            return
        target, leave = self._neighbour(spans, range(hole + 1, len(spans.found)), last=False)
        begin, end = self._rows_between(source, target)
        wanted = ["key", "url", "outcome", "links", "warc_file", "warc_offset", "warc_length"]
        rows = (row for row in self._page_rows(wanted, begin, end) if row["links"] and row["warc_file"])
        yield from self._reader.links(rows, skip, leave)

    def _neighbour(self, spans: _Spans, order: range, *, last: bool) -> tuple[int | None, int]:
        """Return the page whose links are nearest in the pieces `order`, and how many of its rows are there."""
        page, count = None, 0
        for at in order:
            if spans.found[at].path is None:
                if last or page is not None:
                    break
                continue
            runs = np.concatenate([NO_KEYS, *(u64(batch, "source") for batch in spans.found[at].batches())])
            runs = runs[::-1] if last else runs
            page = int(runs[0]) if page is None and len(runs) else page
            other = np.flatnonzero(runs != page)
            count += int(other[0]) if len(other) else len(runs)
            if len(other):
                break
        return page, count

    def _rows_between(self, source: int | None, target: int | None) -> tuple[int, int]:
        """Return the row numbers, first and past the last, of the pages from `source` to `target`."""
        begin, end, position = 0, None, 0
        for keys, links in self._key_columns():
            counted = links > 0
            if end is None and source is not None and len(hits := np.flatnonzero((keys == source) & counted)):
                begin = position + int(hits[-1])
            if end is None and target is not None:
                hits = np.flatnonzero((keys == target) & counted)
                hits = hits[hits + position >= begin]
                end = position + int(hits[0]) + 1 if len(hits) else None
            position += len(keys)
        return begin, position if end is None else end

    def _key_columns(self) -> Iterator[tuple[Any, Any]]:
        for batch in self._page_batches(["key", "links"]):
            yield u64(batch, "key"), batch.column("links").to_numpy()

    def _page_rows(self, columns: list[str], begin: int, end: int) -> Iterator[dict[str, Any]]:
        position = 0
        for batch in self._page_batches(columns):
            first = max(0, begin - position)
            yield from batch.slice(first, max(0, end - position - first)).to_pylist()
            position += batch.num_rows

    def _page_batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield the rows of pages that count, which are whole by now."""
        case = self._case
        left = None if case.manifest is None else rows_recorded({**case.state, **case.changed}, "pages")
        for segment in self._segments("pages"):
            for batch in segment.batches(columns):
                yield batch if left is None else batch.slice(0, left)
                left = None if left is None else left - min(left, batch.num_rows)

    def _summaries(self) -> Iterator[Note]:
        """Put damaged tables that are written whole aside, until they are written again."""
        part = self._case.directory.part
        again = {f"{series(name, part)}-00000": "when the crawl stops" for name in ("hosts", "domains")}
        for name in (*again, *(() if part else INDEX_COUNTERS)):
            path = self._case.folder / TABLES / f"{name}.parquet"
            schema = SCHEMAS.get(name.partition("-")[0])
            columns = schema.names if schema is not None else ["key", "pagerank"]
            gone = is_gone_of_index(path) or (name in again and self._case.state.get("summaries"))
            if not (os.path.lexists(path) or gone):
                continue
            try:
                for _ in read_file(path, columns, schema):
                    pass
                if checksum_holds(path) is None:
                    write_checksum(path, path)
                    self._case.mended = True
                    yield Note(self._case.place(path), "its checksum is rebuilt; every row is whole")
            except StateDamaged:
                if name in again:
                    self._case.changed["summaries"] = []
                else:
                    self._new_generation()
                if os.path.lexists(path):
                    self._case.aside.move_here(path)
                self._case.drop_checksum(path)
                self._case.mended = True
                what = f"it is damaged or gone; it is written again {again.get(name, 'by fyke index')}"
                yield Note(self._case.place(path), what)
