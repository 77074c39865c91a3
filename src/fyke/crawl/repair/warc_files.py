"""Mends the archive of a crawl: reads every record, makes indexes anew, closes files that the crawl cannot append to.

Called by `fyke.crawl.repair`. Invariant: records stay at their places, because rows name these.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.dataset as ds

from fyke.archive.cdxj import index_path, read_lines, sort_lines
from fyke.archive.checksum import checksum_holds, checksum_path, file_hash, write_checksum
from fyke.archive.inspect import archive_lengths
from fyke.archive.reading import segments
from fyke.archive.reindexing import archive_files, part_of, reindex, serial_of
from fyke.archive.warc import FOLDER
from fyke.core.errors import NotACrawl, StateDamaged
from fyke.crawl.repair.case import Case, Note
from fyke.disk.files import allowed, real_path, writing

COPY_BYTES = 1 << 20


@dataclass(slots=True)
class WarcFile:
    """A file of the archive: how many bytes count, the lines of its index, and whether it was closed."""

    path: Path
    end: int
    closed: bool
    lines: Path
    sound: bool = True


class ArchiveRepair:
    """Mends the WARC files and indexes of a case."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def run(self) -> Generator[Note, None, list[WarcFile]]:
        """Read every record, mend indexes, and close files that cannot be appended to. Returns the files."""
        state = self._case.state.get("archive", {})
        lengths = archive_lengths(self._case.directory, self._case.state)
        unfinished = {state["serial"]} if state.get("length") else set()
        unfinished |= {serial for serial, _, _ in state.get("closing", [])}
        recorded = {serial: (size, index) for serial, size, index in state.get("closing", [])}
        if state.get("length"):
            recorded[state["serial"]] = state["length"], state["index_length"]
        warcs, fit = [], not self._case.fell_back
        for path in self._files():
            serial = serial_of(path.name)[0]
            place = self._case.place(path)
            if not path.is_file():
                self._case.aside.move_here(path)
                yield Note(place, "this is not a file; it is put aside, and its records are lost", lost=True)
                continue
            size = path.stat().st_size
            end = min(size, recorded[serial][0] if serial in recorded else lengths.get(place, size))
            warc = WarcFile(path, end, serial not in unfinished, self._case.scratch / f"{path.name}.lines")
            yield from self._read_warc(warc)
            if serial in recorded:
                if size < recorded[serial][0]:
                    missing = recorded[serial][0] - size
                    yield Note(place, f"its last {missing:,} bytes and the records in them are gone", lost=True)
                fit = fit and size >= recorded[serial][0] and self._index_fits(warc, recorded[serial][1])
            warcs.append(warc)
        there = {serial_of(warc.path.name)[0] for warc in warcs}
        last = state.get("serial", 0) - (0 if state.get("length") else 1) if state else max(there, default=-1)
        for serial in sorted(set(range(last + 1)) - there):
            yield Note(FOLDER, f"file {serial:05} and its records are gone", lost=True)
            fit = fit and serial not in unfinished
        if state and not fit:
            yield from self._close(warcs, state)
        for warc in warcs:
            emptied = warc.closed and warc.path.is_file() and not warc.path.stat().st_size
            if emptied or (warc.end and (warc.closed or not fit)):
                yield from self._finish(warc)
        return [warc for warc in warcs if warc.end]

    def _files(self) -> list[Path]:
        """Return the files of this agent."""
        case = self._case
        own, agents = real_path(case.folder).name, len(case.directory.parts)
        return [path for path in archive_files(case.folder) if part_of(path.name, own, agents) == case.directory.part]

    def _read_warc(self, warc: WarcFile) -> Iterator[Note]:
        place = self._case.place(warc.path)
        with writing(warc.lines), warc.lines.open("wb") as lines:
            try:
                yield from self._reindexed(warc, place, lines)
            except OSError as error:  # of reading the archive: failed writes are FykeErrors
                warc.end = 0
                yield Note(place, f"it cannot be read: {error.strerror}", lost=True)

    def _reindexed(self, warc: WarcFile, place: str, lines: BinaryIO) -> Iterator[Note]:
        """Write the index lines of a file, and yield its damaged records. Raises OSError if it cannot be read,
        DiskFull, DirectoryError."""
        with allowed(warc.path):
            for damage in reindex(warc.path, warc.end, lines, lambda at: self._case.progress(place, at, warc.end)):
                warc.sound = False
                page = f" ({damage.url})" if damage.url else ""
                yield Note(damage.place, f"this record{page} cannot be read: {damage.what}", lost=True)

    def _index_fits(self, warc: WarcFile, length: int) -> bool:
        """Return whether the index of a file that still grows is as it was written."""
        path = index_path(warc.path, closed=False)
        with suppress(OSError), path.open("rb") as there, warc.lines.open("rb") as lines:
            left = length
            while chunk := there.read(min(COPY_BYTES, left)):
                if lines.read(len(chunk)) != chunk:
                    return False
                left -= len(chunk)
            return not left and not lines.read(1)
        return False

    def _close(self, warcs: list[WarcFile], state: dict[str, Any]) -> Iterator[Note]:
        """Append nothing to the files that are there: the crawl goes on with the next one."""
        for warc in warcs:
            if not warc.end and self._case.fell_back:
                indexes = [index_path(warc.path, closed=closed) for closed in (True, False)]
                besides = [checksum_path(path) for path in (warc.path, *indexes)]
                for path in (*besides, *indexes, warc.path):  # last, so that a repair begun again finds the others
                    if os.path.lexists(path):
                        self._case.aside.move_here(path)
                what = "it is younger than the checkpoint, and put aside"
                yield Note(self._case.place(warc.path), what, again=True)
            elif 0 < warc.end < warc.path.stat().st_size:
                part = self._case.scratch / warc.path.name
                _copy(warc.path, part, warc.end)
                self._case.aside.replace(part, warc.path)
                what = f"what came after the checkpoint, from byte {warc.end:,} on, is put aside"
                yield Note(self._case.place(warc.path), what, again=True)
        serial = state["serial"] + bool(state["length"])
        name = state["file"].replace(f"-{state['serial']:05d}.warc.gz", f"-{serial:05d}.warc.gz")
        sizes = sum(warc.end for warc in warcs)
        closed = {"serial": serial, "file": name, "length": 0, "index_length": 0, "closed_bytes": sizes, "closing": []}
        self._case.changed["archive"] = {**state, **closed}

    def _finish(self, warc: WarcFile) -> Iterator[Note]:
        """Make the sorted index and the checksums of a closed file anew, if they do not fit."""
        path, part = index_path(warc.path, closed=True), self._case.scratch / "sorted.cdxj"
        before = index_path(warc.path, closed=False)
        if before.is_dir():  # whoever goes on deletes it as a file
            self._case.aside.move_here(before)
        with writing(path):
            sort_lines(warc.lines, part)
            if warc.closed and self._is_cut(warc):
                warc.sound = False
                yield Note(self._case.place(warc.path), "its last records are gone", lost=True)
            if not path.is_file() or file_hash(path) != file_hash(part):
                self._case.aside.replace(part, path)
                self._case.mended = True
                yield Note(self._case.place(path), "the index is rebuilt")
            if not checksum_holds(path):
                self._case.drop_checksum(path)
                write_checksum(path, path)
                yield Note(self._case.place(path), "its checksum is rebuilt")
            if warc.sound and not checksum_holds(warc.path):
                self._case.drop_checksum(warc.path)
                write_checksum(warc.path, warc.path)
                yield Note(self._case.place(warc.path), "its checksum is rebuilt; every record is whole")

    def _is_cut(self, warc: WarcFile) -> bool:
        """Return whether the index, or a row of the pages, names a record behind the end of a finished file."""
        if checksum_holds(warc.path) is not False:
            return False
        with suppress(OSError, ValueError, KeyError, TypeError):
            lines = read_lines(index_path(warc.path, closed=True))
            if any(int(fields["offset"]) >= warc.end for _, _, fields in lines):
                return True
        behind = (ds.field("warc_file") == self._case.place(warc.path)) & (ds.field("warc_offset") >= warc.end)
        with suppress(StateDamaged, NotACrawl):
            for segment in segments(self._case.folder, "pages"):
                with suppress(StateDamaged):
                    if any(batch.num_rows for batch in segment.batches(["warc_offset"], behind)):
                        return True
        return False


def _copy(source: Path, target: Path, length: int) -> None:
    """Copy the first `length` bytes of `source` into a new file."""
    with writing(target), source.open("rb") as old, target.open("wb") as new:
        while length and (chunk := old.read(min(COPY_BYTES, length))):
            length -= new.write(chunk)
