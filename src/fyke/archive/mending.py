"""The whole rows of a damaged table, and the table made anew from them.

Used by `fyke.crawl.repair`. A segment that cannot be read is examined row group by row group. Lost rows become a hole,
a `RowsPiece` without a file, which the caller fills with rows out of the archive. Rows keep their order.

Invariants: a whole file stays as it is. A damaged one goes to `damaged/`, and the new one takes its name in one step,
so a killed repair is simply begun again. Memory holds one row group.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fyke.archive.checksum import checksum_holds, checksum_path, write_checksum
from fyke.archive.journal import read_journal
from fyke.archive.reading import BATCH_ROWS, reading, segments
from fyke.archive.schemas import SCHEMAS, journalled
from fyke.archive.table_files import as_file, journal_path, parquet_path, parquet_writer, series, write_rows
from fyke.core.errors import StateDamaged
from fyke.core.urls import key_of
from fyke.disk.files import put_in_place, sync_file, verify_file, writing

ASIDE = "damaged"

_KEYS = {"pages": ("key", "url"), "links": ("target", "target_url")}


class DamagedFolder:
    """The folder for damaged files, below the crawl directory `folder`; nothing in it is ever replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __repr__(self) -> str:
        return f"DamagedFolder({str(self._folder)!r})"

    def link_here(self, path: Path) -> None:
        """Keep `path` here as well, so that another file may take its name. A folder, or a file on a disk without
        links, is moved here. Raises DirectoryError."""
        target = self._folder / ASIDE / path.relative_to(self._folder)
        number = 0
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            while os.path.lexists(target):
                if os.path.samestat(os.lstat(target), os.lstat(path)):
                    return
                number += 1
                target = target.with_name(f"{path.name}.{number}")
            try:
                os.link(path, target, follow_symlinks=False)
            except OSError:  # a folder, or a disk without links
                path.rename(target)
            sync_file(target.parent)

    def move_here(self, path: Path) -> None:
        """Move `path` here."""
        self.link_here(path)
        with writing(path):
            if not path.is_dir():
                path.unlink(missing_ok=True)
            sync_file(path.parent)

    def replace(self, new: Path, path: Path) -> None:
        """Put the file `new` at `path`, and keep here the file that was there before."""
        if os.path.lexists(path):
            self.link_here(path)
        with writing(path):
            put_in_place(new, path)


@dataclass(frozen=True, slots=True)
class RowsPiece:
    """The first `rows` rows of the file `path`, or of its row group `group`, in the segment `serial`; a hole without
    `path`."""

    serial: int
    schema: pa.Schema  # of the table
    path: Path | None = None
    group: int | None = None
    rows: int = 0
    whole: bool = False  # the file is as it was finished

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, with the columns of a journal. Raises StateDamaged."""
        left = self.rows
        if self.path is None:
            return
        source = _journal(self.path, self.schema) if self.path.suffix == ".arrows" else self._parquet(self.path)
        for batch in source:
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return

    def _parquet(self, path: Path) -> Iterator[pa.RecordBatch]:
        schema = journalled(self.schema)
        with reading(path), pq.ParquetFile(as_file(path), page_checksum_verification=True) as file:
            groups = None if self.group is None else [self.group]
            for batch in file.iter_batches(BATCH_ROWS, row_groups=groups):
                whole = batch.cast(schema)
                whole.validate(full=True)
                yield whole


def _journal(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with reading(path):
        yield from read_journal(path, journalled(schema))


def pieces(folder: Path, name: str, schema: pa.Schema, state: Mapping[str, Any] | None) -> list[RowsPiece]:
    """Return the pieces of the series of files `name`, in order, as far as its checkpoint `state` counts; None: all."""
    table = name.partition("-")[0]
    there = [segment for segment in segments(folder, table) if series(segment.name, segment.part) == name]
    found: list[RowsPiece] = []
    sealed = len(there) if state is None else state.get("sealed", 0)
    for serial in range(sealed):
        found += _examined(folder, name, schema, serial, None, sealed=True)
    if state is None:
        return found
    for serial, (_, rows) in enumerate(state.get("segments", []), sealed):
        as_written = journal_holds(folder, name, state, serial)
        found += _examined(folder, name, schema, serial, rows, sealed=False, as_written=as_written)
    return found


def journal_holds(folder: Path, name: str, state: Mapping[str, Any], serial: int) -> bool:
    """Return whether the journal `serial` of the table `name` is as it was written, as far as `state` counts it."""
    try:
        verify_file(journal_path(folder, name, serial), state["digests"][serial - state["sealed"]])
    except StateDamaged:
        return False
    return True


def _examined(
    folder: Path, name: str, schema: pa.Schema, serial: int, rows: int | None, *, sealed: bool, as_written: bool = True
) -> list[RowsPiece]:
    """Return the pieces of one segment: of its file or its journal, whichever is whole; the likelier is tried first."""
    file, journal = parquet_path(folder, name, serial), journal_path(folder, name, serial)
    best: list[RowsPiece] = []
    for path in (file, journal) if sealed else (journal, file):
        look = _examined_file if path is file else _examined_journal
        there = os.path.lexists(path) and (path is file or as_written)
        found = look(RowsPiece(serial, schema, path), rows) if there else [RowsPiece(serial, schema)]
        if all(piece.path for piece in found):
            return found
        if sum(piece.rows for piece in found) > sum(piece.rows for piece in best) or not best:
            best = found
    return best


def _examined_journal(piece: RowsPiece, rows: int | None) -> list[RowsPiece]:
    assert piece.path is not None
    count = 0
    with suppress(StateDamaged, pa.ArrowException):
        for batch in _journal(piece.path, piece.schema):
            if not _keys_fit(batch):
                break
            count += batch.num_rows
            if rows is not None and count >= rows:
                return [RowsPiece(piece.serial, piece.schema, piece.path, rows=rows)]
    whole = [RowsPiece(piece.serial, piece.schema, piece.path, rows=count)] if count else []
    return whole if rows is None and count else [*whole, RowsPiece(piece.serial, piece.schema)]


def _examined_file(piece: RowsPiece, rows: int | None) -> list[RowsPiece]:
    path, hole = piece.path, RowsPiece(piece.serial, piece.schema)
    assert path is not None
    try:
        with reading(path):
            sound = bool(checksum_holds(path))
            with pq.ParquetFile(as_file(path)) as file:
                if not file.schema_arrow.equals(piece.schema):
                    return [hole]
                counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    except StateDamaged:
        return [hole]
    if sound:
        count = sum(counts)
        wanted = count if rows is None else min(rows, count)
        return [RowsPiece(piece.serial, piece.schema, path, rows=wanted, whole=wanted == count)]
    left = [count if rows is None else min(count, max(0, rows - sum(counts[:at]))) for at, count in enumerate(counts)]
    groups = (RowsPiece(piece.serial, piece.schema, path, group, count) for group, count in enumerate(left) if count)
    return [one if _readable(one) else hole for one in groups] or [hole]


def _readable(piece: RowsPiece) -> bool:
    with suppress(StateDamaged, pa.ArrowException):
        rows = 0
        for batch in piece.batches():
            if not _keys_fit(batch):
                return False
            rows += batch.num_rows
        return rows == piece.rows
    return False


def _keys_fit(batch: pa.RecordBatch) -> bool:
    """Return whether every URL has its key, in tables with keys: the only check when a file's own checksum is gone."""
    name = next((name for name in _KEYS if SCHEMAS[name].names == batch.schema.names), "")
    if not name:
        return True
    keys, urls = (batch.column(column).to_pylist() for column in _KEYS[name])
    return all(url is not None and key_of(url) == key for key, url in zip(keys, urls, strict=True))


def fits(found: list[RowsPiece], state: Mapping[str, Any] | None) -> bool:
    """Return whether the pieces `found` are those that the table's checkpoint `state` counts, so that a crawl can go
    on.

    Whole files are not enough: a killed repair may have made one anew with fewer rows than the state counts.
    """
    sealed = len(found) if state is None else state.get("sealed", 0)
    if state is not None and sum(piece.rows for piece in found if piece.serial < sealed) != state.get("sealed_rows", 0):
        return False
    whole = all(piece.whole if piece.serial < sealed else piece.path and not piece.whole for piece in found)
    return whole and not any(piece.path and piece.path.suffix != ".arrows" for piece in found if piece.serial >= sealed)


Fill = Callable[[int], Iterator[pa.RecordBatch]]


def write_anew(folder: Path, name: str, found: list[RowsPiece], fill: Fill, aside: DamagedFolder) -> dict[str, Any]:
    """Write the series `name` anew from the pieces `found`; `fill` gives the rows of the hole at an index of `found`.

    Returns its state, as of a crawl that has closed. Raises DiskFull, DirectoryError.
    """
    total, places = 0, iter(range(len(found)))
    serials = 0
    for serial, group in groupby(found, key=lambda piece: piece.serial):
        parts = [(next(places), piece) for piece in group]
        target = parquet_path(folder, name, serial)
        if len(parts) == 1 and parts[0][1].whole and parts[0][1].path == target:
            total += parts[0][1].rows
        else:
            total += _write(target, parts, fill, aside)
            journal = journal_path(folder, name, serial)
            if os.path.lexists(journal) and any(piece.path is None for _, piece in parts):
                aside.link_here(journal)
        serials = serial + 1
    return {"sealed": serials, "sealed_rows": total, "segments": []}


def _write(target: Path, parts: list[tuple[int, RowsPiece]], fill: Fill, aside: DamagedFolder) -> int:
    """Write one file of `parts`; return its number of rows."""
    schema = parts[0][1].schema
    part = target.with_name(target.name + ".part")
    batches = (batch for place, piece in parts for batch in (piece.batches() if piece.path else fill(place)))
    with writing(target), parquet_writer(part, schema) as writer:
        count = write_rows(writer, batches, schema)
    with writing(target):
        if os.path.lexists(checksum_path(target)):
            # First, so that a kill never leaves the new file beside the old checksum.
            aside.move_here(checksum_path(target))
        aside.replace(part, target)
        write_checksum(target, target)
        sync_file(checksum_path(target))
        sync_file(target.parent)
    return count
