"""`fyke check --repair`: a crawl's directory made whole again, as far as the archive goes.

The archive is the truth: tables and indexes come anew out of it, the state from the newest checkpoint that is whole.
What is damaged goes to `damaged/`, never away; records of the archive stay where they are, whatever became of them,
since rows name their places. Last comes a manifest that fits what is there, so a repair that is killed anywhere is
begun again. Invariant: what was whole before is so after, and what cannot be saved is said.
"""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from fyke.archive import SCHEMAS, generation, read_file, rows_recorded, segments
from fyke.archive.cdxj import sort_lines
from fyke.archive.checksum import checksum_holds, checksum_path, file_hash, write_checksum
from fyke.archive.directory import CrawlDirectory
from fyke.archive.inspect import archive_lengths, book_fault, file_faults
from fyke.archive.mending import Aside, Piece, fits, pieces, write_anew
from fyke.archive.reading import GENERATION
from fyke.archive.reindexing import archive_files, index_path, reindex, serial_of
from fyke.archive.table_files import TABLES
from fyke.archive.warc import FOLDER
from fyke.core.batches import u64
from fyke.core.config import Config
from fyke.core.errors import ConfigurationError, StateDamaged
from fyke.crawl.reread import Place, Rereader, place_of
from fyke.disk import manifest as manifests
from fyke.disk.checkpoint import Snapshot, held
from fyke.disk.files import write_whole, writing
from fyke.disk.manifest import Manifest

COPY_BYTES = 1 << 20

Progress = Callable[[str, int, int], None]


class Note(NamedTuple):
    """What was done about a file, or (`lost`) what cannot be."""

    place: str
    what: str
    lost: bool = False


@dataclass(slots=True)
class _Warc:
    """A file of the archive: how many bytes count, the lines of its index, and whether it was closed."""

    path: Path
    end: int
    closed: bool
    lines: Path
    sound: bool = True


@dataclass(slots=True)
class _Spans:
    """Where the rows of a table's pieces come from, each piece looked at once."""

    found: list[Piece]
    known: dict[int, Any] = field(default_factory=dict)


def repair(directory: CrawlDirectory, progress: Progress) -> Iterator[Note]:
    """Mend the crawl in `directory`, and say what was done. Raises NotACrawl, DirectoryInUse, DiskFull."""
    config = directory.config()
    if len(directory.parts) > 1:
        raise ConfigurationError(
            f"{directory.path} was crawled by several agents, which --repair cannot mend yet: fyke check names what is"
            " damaged; put it back from a copy"
        )
    with held(directory.shard):
        scratch = directory.state / "mending"
        shutil.rmtree(scratch, ignore_errors=True)
        with writing(scratch):
            scratch.mkdir()
        try:
            yield from _Repair(directory, scratch, progress).run(config)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


class _Repair:
    def __init__(self, directory: CrawlDirectory, scratch: Path, progress: Progress) -> None:
        self._directory = directory
        self._folder = directory.path
        self._scratch = scratch
        self._progress = progress
        self._aside = Aside(directory.path)
        self._manifest: Manifest | None = None
        self._changed: dict[str, Any] = {}  # states of the tables and the archive
        self._mended = False

    def run(self, config: Config) -> Iterator[Note]:
        bad = yield from self._find_manifest()
        warcs = yield from self._read_archive()
        reader = Rereader(self._folder, config, {warc.path: warc.end for warc in warcs if warc.end})
        for name in ("pages", "links"):
            yield from self._table(name, reader)
        yield from self._summaries()
        yield from self._hosts()
        yield from self._commit(bad)

    # --- state

    def _find_manifest(self) -> Generator[Note, None, list[Path]]:
        """Choose the newest whole checkpoint; returns the files of those that are not."""
        shard, bad = self._directory.shard, []
        numbers = manifests.numbers(shard)
        for number in numbers:
            path = shard / Manifest(number).name
            manifest = manifests.load(shard, number)
            faults = [] if manifest is None else [Path(fault.place) for fault in file_faults(self._directory, manifest)]
            if manifest is None or faults:
                bad += [path, *faults]
                yield Note(self._place(path), "this checkpoint is damaged; it is put aside")
            elif self._manifest is None:
                self._manifest = manifest
        if self._manifest is None:
            what = "no checkpoint is whole: the crawl cannot go on; what it brought can be read, searched and exported"
            yield Note(self._place(shard), what, lost=True)
        elif self._manifest.number != numbers[0]:
            what = f"checkpoint {self._manifest.number} is the newest whole one; what came after it is fetched again"
            yield Note(self._place(shard), what)
        return bad

    @property
    def _state(self) -> dict[str, Any]:
        return {} if self._manifest is None else self._manifest.participants

    @property
    def _fell_back(self) -> bool:
        numbers = manifests.numbers(self._directory.shard)
        return self._manifest is not None and self._manifest.number != numbers[0]

    def _commit(self, bad: list[Path]) -> Iterator[Note]:
        """The manifest that fits what is there now; then what was damaged of the state goes aside."""
        shard = self._directory.shard
        if self._manifest is not None and (self._changed or self._fell_back):
            number = manifests.numbers(shard)[0] + 1
            states = {**self._state, **self._changed}
            Snapshot(
                shard,
                Manifest(number, self._manifest.files, states, self._manifest.counters, self._manifest.digests),
                (),
            ).make_durable()
            self._mended = True
        for path in dict.fromkeys(bad):
            if path.suffix == ".json":
                self._aside.take(path)
            elif os.path.lexists(path):
                self._aside.keep(path)
        if bad or self._mended:
            yield Note("damaged", "what was damaged is here now")

    # --- archive

    def _read_archive(self) -> Generator[Note, None, list[_Warc]]:
        """Read every record; mend indexes, and close what cannot be gone on with. Returns the files."""
        state = self._state.get("archive", {})
        lengths = archive_lengths(self._directory, self._state)
        unfinished = {state["serial"]} if state.get("length") else set()
        unfinished |= {serial for serial, _, _ in state.get("closing", [])}
        recorded = {serial: (size, index) for serial, size, index in state.get("closing", [])}
        if state.get("length"):
            recorded[state["serial"]] = state["length"], state["index_length"]
        warcs, fit = [], not self._fell_back
        for path in archive_files(self._folder):
            serial = serial_of(path.name)[0]
            place = self._place(path)
            if not path.is_file():
                self._aside.take(path)
                yield Note(place, "this is no file; it is put aside, and its records are lost", lost=True)
                continue
            size = path.stat().st_size
            end = min(size, recorded[serial][0] if serial in recorded else lengths.get(place, size))
            warc = _Warc(path, end, serial not in unfinished, self._scratch / f"{path.name}.lines")
            yield from self._read_warc(warc)
            if serial in recorded:
                if size < recorded[serial][0]:
                    missing = recorded[serial][0] - size
                    yield Note(place, f"its last {missing:,} bytes are gone, and the records in them", lost=True)
                fit = fit and size >= recorded[serial][0] and self._index_fits(warc, recorded[serial][1])
            warcs.append(warc)
        there = {serial_of(warc.path.name)[0] for warc in warcs}
        last = state.get("serial", 0) - (0 if state.get("length") else 1) if state else max(there, default=-1)
        for serial in sorted(set(range(last + 1)) - there):
            yield Note(FOLDER, f"file {serial:05} is gone, and its records", lost=True)
            fit = fit and serial not in unfinished
        if state and not fit:
            yield from self._close(warcs, state)
        for warc in warcs:
            if warc.end and (warc.closed or not fit):
                yield from self._finish(warc)
        return [warc for warc in warcs if warc.end]

    def _read_warc(self, warc: _Warc) -> Iterator[Note]:
        place = self._place(warc.path)
        try:
            with warc.lines.open("wb") as lines:
                for damage in reindex(warc.path, warc.end, lines, lambda at: self._progress(place, at, warc.end)):
                    warc.sound = False
                    page = f" ({damage.url})" if damage.url else ""
                    yield Note(damage.place, f"this record{page} cannot be read: {damage.what}", lost=True)
        except OSError as error:
            warc.end = 0
            yield Note(place, f"it cannot be read: {error.strerror}", lost=True)

    def _index_fits(self, warc: _Warc, length: int) -> bool:
        """Whether the index of a file that still grows is as it was written."""
        path = index_path(warc.path, closed=False)
        with suppress(OSError), path.open("rb") as there, warc.lines.open("rb") as lines:
            left = length
            while chunk := there.read(min(COPY_BYTES, left)):
                if lines.read(len(chunk)) != chunk:
                    return False
                left -= len(chunk)
            return not left and not lines.read(1)
        return False

    def _close(self, warcs: list[_Warc], state: dict[str, Any]) -> Iterator[Note]:
        """Nothing is appended to the files there are: the crawl goes on with the next one."""
        for warc in warcs:
            if not warc.end and self._fell_back:
                for path in (
                    warc.path,
                    checksum_path(warc.path),
                    *(index_path(warc.path, closed=c) for c in (True, False)),
                ):
                    if os.path.lexists(path):
                        self._aside.take(path)
                yield Note(self._place(warc.path), "it is younger than the checkpoint, and put aside")
            elif 0 < warc.end < warc.path.stat().st_size:
                part = self._scratch / warc.path.name
                _copy(warc.path, part, warc.end)
                self._aside.replace(part, warc.path)
                yield Note(
                    self._place(warc.path), f"what came after the checkpoint, from byte {warc.end:,} on, is put aside"
                )
        serial = state["serial"] + bool(state["length"])
        name = state["file"].replace(f"-{state['serial']:05d}.warc.gz", f"-{serial:05d}.warc.gz")
        sizes = sum(warc.end for warc in warcs)
        closed = {"serial": serial, "file": name, "length": 0, "index_length": 0, "closed_bytes": sizes, "closing": []}
        self._changed["archive"] = {**state, **closed}

    def _finish(self, warc: _Warc) -> Iterator[Note]:
        """The sorted index and the checksum of a closed file."""
        path, part = index_path(warc.path, closed=True), self._scratch / "sorted.cdxj"
        with writing(path):
            sort_lines(warc.lines, part)
            if not path.is_file() or file_hash(path) != file_hash(part):
                self._aside.replace(part, path)
                self._mended = True
                yield Note(self._place(path), "the index is made anew")
            if warc.sound and not checksum_holds(warc.path):
                self._drop_checksum(warc.path)
                write_checksum(warc.path, warc.path)
                yield Note(self._place(warc.path), "its checksum is made anew; every record is whole")

    def _drop_checksum(self, path: Path) -> None:
        if os.path.lexists(checksum_path(path)):
            self._aside.take(checksum_path(path))

    # --- tables

    def _table(self, name: str, reader: Rereader) -> Iterator[Note]:
        if not (self._folder / TABLES).is_dir():
            with writing(self._folder):
                (self._folder / TABLES).mkdir()
        state = self._state.get(name, {}) if self._manifest is not None else None
        if state is not None:
            yield from self._put_aside_what_came_after(name, state)
        found = pieces(self._folder, name, state)
        fill = self._pages_of if name == "pages" else self._links_of
        spans = _Spans(found)
        if state is None and reader is not None:
            hole = Piece(found[-1].serial + 1 if found else 0, name)
            spans.found = [*found, hole]
            if any(batch.num_rows for batch in fill(spans, len(found), reader)):
                found = spans.found
            spans.found = found
        if fits(found, state):
            return
        self._new_generation()
        for serial in sorted({piece.serial for piece in found if not piece.whole and piece.path is None}):
            yield Note(f"{TABLES}/{name}-{serial:05d}", "it is damaged or gone, and made anew out of the archive")
        after = write_anew(self._folder, name, found, lambda at: fill(spans, at, reader), self._aside)
        self._changed[name] = after
        self._mended = True
        if state is not None and (lost := rows_recorded(self._state, name) - after["sealed_rows"]) > 0:
            which = "of visits that no server answered, or whose" if name == "pages" else "of pages whose"
            yield Note(f"{TABLES}/{name}", f"{lost:,} rows {which} records are lost cannot come back", lost=True)
        if name == "links" and reader.other_links:
            what = f"{reader.other_links:,} pages have other links now than when they were crawled"
            yield Note(f"{TABLES}/{name}", what)

    def _put_aside_what_came_after(self, name: str, state: dict[str, Any]) -> Iterator[Note]:
        """Files younger than the checkpoint, which are read before their journals: those that are damaged."""
        sealed = state.get("sealed", 0)
        for segment in segments(self._folder, name)[sealed:]:
            path = segment.path.with_suffix(".parquet")
            if os.path.lexists(path) and not (path.is_file() and checksum_holds(path)):
                self._aside.take(path)
                self._drop_checksum(path)
                self._mended = True
                yield Note(self._place(path), "it is damaged, younger than the checkpoint, and put aside")

    def _new_generation(self) -> None:
        """Before a row changes its number, so that nobody goes on counting from the old ones."""
        write_whole(self._folder / TABLES / GENERATION, f"{generation(self._folder) + 1}\n".encode())

    def _pages_of(self, spans: _Spans, hole: int, reader: Rereader) -> Iterator[Any]:
        """The rows between the last page before the hole and the first after it."""
        if hole and spans.found[hole - 1].path is None:
            return
        before = (self._places(spans, at) for at in range(hole - 1, -1, -1))
        after = (self._places(spans, at) for at in range(hole + 1, len(spans.found)))
        low = next((places[1] for places in before if places), None)
        high = next((places[0] for places in after if places), None)
        yield from reader.pages(low, high)

    def _places(self, spans: _Spans, at: int) -> tuple[Place, Place] | None:
        """The first and the last place in the archive that rows of a piece name."""
        if at not in spans.known:
            first = last = None
            for batch in spans.found[at].batches():
                named = batch.filter(pc.is_valid(batch.column("warc_file"))).select(["warc_file", "warc_offset"])
                if named.num_rows:
                    ends = [place_of(*named.slice(row, 1).to_pylist()[0].values()) for row in (0, named.num_rows - 1)]
                    first, last = first or ends[0], ends[1]
            spans.known[at] = (first, last) if first else None
        found: tuple[Place, Place] | None = spans.known[at]
        return found

    def _links_of(self, spans: _Spans, hole: int, reader: Rereader) -> Iterator[Any]:
        """The links of the pages between those with links before the hole and after it, and of these what lacks."""
        if hole and spans.found[hole - 1].path is None:
            return
        source, skip = self._neighbour(spans, range(hole - 1, -1, -1), last=True)
        target, leave = self._neighbour(spans, range(hole + 1, len(spans.found)), last=False)
        begin, end = self._rows_between(source, target)
        wanted = ["key", "url", "outcome", "links", "warc_file", "warc_offset", "warc_length"]
        rows = (row for row in self._page_rows(wanted, begin, end) if row["links"] and row["warc_file"])
        yield from reader.links(rows, skip, leave)

    def _neighbour(self, spans: _Spans, order: range, *, last: bool) -> tuple[int | None, int]:
        """The page whose links are nearest in the pieces `order`, and how many of its rows are there."""
        page, count = None, 0
        for at in order:
            if spans.found[at].path is None:
                break
            runs = np.concatenate([u64(batch, "source") for batch in spans.found[at].batches()])
            runs = runs[::-1] if last else runs
            page = int(runs[0]) if page is None and len(runs) else page
            other = np.flatnonzero(runs != page)
            count += int(other[0]) if len(other) else len(runs)
            if len(other):
                break
        return page, count

    def _rows_between(self, source: int | None, target: int | None) -> tuple[int, int]:
        """The first and the last row (and one) of the pages from `source` to `target`."""
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
        """The rows of pages that count, which are whole by now."""
        left = rows_recorded({**self._state, **self._changed}, "pages") if self._manifest is not None else None
        for segment in segments(self._folder, "pages"):
            for batch in segment.batches(columns):
                yield batch if left is None else batch.slice(0, left)
                left = None if left is None else left - min(left, batch.num_rows)

    # --- what else there is

    def _summaries(self) -> Iterator[Note]:
        """Tables that are written whole: one that is damaged goes aside until it is written again."""
        again = {"hosts-00000": "when the crawl stops", "domains-00000": "when the crawl stops"}
        for name in (*again, "pagerank", "domainrank"):
            path = self._folder / TABLES / f"{name}.parquet"
            schema = SCHEMAS.get(name.partition("-")[0])
            columns = schema.names if schema is not None else ["key", "pagerank"]
            if not os.path.lexists(path):
                continue
            try:
                for _ in read_file(path, columns, schema):
                    pass
            except StateDamaged:
                if schema is None:
                    self._new_generation()
                self._aside.take(path)
                self._drop_checksum(path)
                self._mended = True
                yield Note(self._place(path), f"it is damaged, and written again {again.get(name, 'by fyke index')}")

    def _hosts(self) -> Iterator[Note]:
        path = self._directory.hosts
        if not path.exists():
            return
        if book_fault(path):
            for one in path.parent.glob(f"{path.name}*"):
                self._aside.take(one)
            self._mended = True
            what = "what was known of hosts is lost: their robots.txt is fetched again, how long they rest is not known"
            yield Note(self._place(path), what, lost=True)

    def _place(self, path: Path) -> str:
        return str(path.relative_to(self._folder))


def _copy(source: Path, target: Path, length: int) -> None:
    """The first `length` bytes of `source` as a new file."""
    with writing(target), source.open("rb") as old, target.open("wb") as new:
        while length and (chunk := old.read(min(COPY_BYTES, length))):
            length -= new.write(chunk)
