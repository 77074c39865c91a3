"""Is the archive whole? Every record, every index line, every table row, against each other.

`fyke check` and the tests call `check_archive`. It reads everything once, rows of pages twice, however many WARC files
there are. Memory holds the index of one WARC file, and which WARC files each table file names. A fault names its file
and offset. A running crawl is checked up to the lengths that its manifest records.
"""

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from xxhash import xxh3_64_intdigest

from fyke.archive.cdxj import fields_of, index_path, raw_lines
from fyke.archive.checksum import OTHER_BYTES, checksum_holds
from fyke.archive.passes import Begun
from fyke.archive.reading import TableFile, segments, table_of
from fyke.archive.reindexing import REPLAYABLE, line_of, part_of, serial_of
from fyke.archive.schemas import SCHEMAS
from fyke.archive.table_files import TABLES, as_file
from fyke.archive.warc import FOLDER
from fyke.archive.warc_reading import Record, read_records
from fyke.core.errors import StateDamaged
from fyke.core.telling import Tell
from fyke.core.urls import key_of
from fyke.disk.files import real_path
from fyke.disk.ranges import Array, Buckets
from fyke.disk.scratch import scratch

_STATUS_LINE = re.compile(r"HTTP/\d(\.\d)? \d{3}( |$)", re.ASCII)
_STATUS = re.compile(rb', "status": "\d+"')
FETCH = np.dtype([("key", np.uint64), ("file", np.uint32), ("offset", np.uint64)])
PARTS = 64  # memory holds one at a time
_ROW = ["url", "digest", "warc_offset", "warc_length"]


class Fault(NamedTuple):
    """One thing that is wrong: `place` is a file below the crawl directory, mostly with an offset."""

    place: str
    what: str


class _Entry(NamedTuple):
    """Facts of a record that its line in the index and its row in the tables must repeat."""

    url: str
    digest: str
    length: int
    line: int  # the xxh3-64 of its line in the index; if `odd`, of that without its status
    odd: bool  # its status line is malformed, so readers differ about the status


class _Fetches(NamedTuple):
    """A file's number, the number of passes begun before it, and the fetches of all files."""

    file: int
    passed: int
    all: Buckets | None


def check_archive(
    folder: Path,
    lengths: Mapping[str, int] | None = None,
    *,
    once: bool = True,
    passes: Sequence[Sequence[Begun]] = (),
    progress: Tell | None = None,
) -> Iterator[Fault]:
    """Yield the faults of the crawl directory `folder`.

    `lengths` gives, by name below `folder`, how much of a file counts; other files count whole. If `once`, a second
    successful answer for a URL (except robots.txt) is a fault, unless a pass began between them; `passes` are those of
    each agent. `progress` is called with a file's name, the bytes read of it and its length.
    """
    names, own = sorted(path.name for path in (folder / FOLDER).glob("*.warc.gz")), real_path(folder).name
    naming = _Naming(folder)
    with scratch("fyke-check-") as below:
        fetched = Buckets(below, "fetched", FETCH, PARTS)
        for number, name in enumerate(names):
            begun = passes[part_of(name, own, len(passes))] if passes else ()
            passed = bisect_right(begun, serial_of(name)[0], key=lambda one: one.file)
            once_here = once and not (passed and begun[passed - 1].forever)
            fetches = _Fetches(number, passed, fetched if once_here else None)
            try:
                yield from _check_file(naming, name, (lengths or {}), fetches, progress)
            except OSError as error:
                yield Fault(f"{FOLDER}/{name}", _unreadable(error))
        for first, again in chain.from_iterable(map(repeated_fetches, fetched)):
            place = f"{FOLDER}/{names[again['file']]}:{again['offset']}"
            before = f"{names[first['file']]}:{first['offset']}"
            yield Fault(place, f"the URL of this record was archived before, at {before}")
    yield from _check_tables(folder)


def _check_file(
    naming: "_Naming", name: str, lengths: Mapping[str, int], fetches: "_Fetches", progress: Tell | None
) -> Iterator[Fault]:
    place = f"{FOLDER}/{name}"
    path = naming.folder / place
    end = lengths.get(place, path.stat().st_size)
    if path.stat().st_size < end:
        yield Fault(place, f"it is {path.stat().st_size} bytes long and should be {end}")
    if place not in lengths and checksum_holds(path) is False:
        yield Fault(place, OTHER_BYTES)
    entries: dict[int, _Entry] = {}
    fetched: list[int] = []
    for record in read_records(path, end):
        yield from (Fault(f"{place}:{record.offset}", what) for what in record.faults)
        if record.get("warc-type") in REPLAYABLE:
            entries[record.offset] = _entry_of(record, name)
            if _is_fetch(record):
                fetched.append(record.offset)
        if progress is not None:
            progress(place, record.offset + record.length, end)
    if lengths.get(place) != 0:
        yield from _check_index(path, entries, growing=place in lengths)
    counting = _in_file(place) & (ds.field("warc_offset") < end) if place in lengths else _in_file(place)
    pages = yield from _check_rows(naming, place, counting, entries)
    if fetches.all is not None:
        counted = [offset for offset in fetched if pages is None or offset in pages]
        keys = [key_of(f"{fetches.passed} {entries[offset].url}".encode()) for offset in counted]
        rows = np.array([(key, fetches.file, offset) for key, offset in zip(keys, counted, strict=True)], FETCH)
        fetches.all.add(rows["key"], rows)


def repeated_fetches(rows: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the first row and another of the same URL, for each row that came again."""
    rows = np.sort(rows, order=["key", "file", "offset"], kind="stable")
    first = 0
    for at in (np.flatnonzero(rows["key"][1:] == rows["key"][:-1]) + 1).tolist():
        if rows["key"][first] != rows["key"][at]:
            first = at - 1
        yield rows[first], rows[at]


def _in_file(place: str) -> ds.Expression:
    return ds.field("warc_file") == place


def _entry_of(record: Record, name: str) -> _Entry:
    odd = bool(record.head) and not _STATUS_LINE.match(record.first_line)
    digest = _digest(line_of(record, name), odd)
    return _Entry(record.get("warc-target-uri"), record.digest, record.length, digest, odd)


def _digest(line: bytes, odd: bool) -> int:
    return xxh3_64_intdigest(_STATUS.sub(b"", line, count=1) if odd else line)


def _is_fetch(record: Record) -> bool:
    """Return whether the record is a page's successful fetch, which may be there only once."""
    if record.get("warc-target-uri").endswith("/robots.txt"):
        return False
    kind, words = record.get("warc-type"), record.first_line.split()
    return kind == "resource" or (kind == "response" and len(words) > 1 and words[1].startswith("2"))


def _check_index(path: Path, entries: Mapping[int, _Entry], *, growing: bool) -> Iterator[Fault]:
    """Check that records and index lines match, up to a length if `growing`; a closed index must be sorted.

    A file that was finished after the last checkpoint counts as `growing`: a resumed crawl finishes it anew, out of the
    unsorted index.
    """
    closed = index_path(path, closed=True).exists() and not (growing and index_path(path, closed=False).exists())
    index = index_path(path, closed=closed)
    if not index.exists():
        yield Fault(f"{FOLDER}/{index_path(path, closed=not growing).name}", "the index is missing")
        return
    place = f"{FOLDER}/{index.name}"
    if closed and checksum_holds(index) is False:
        yield Fault(place, OTHER_BYTES)
    seen, before, count = set(), ("", ""), 0
    try:
        parsed = ((line, *fields_of(line)) for line in raw_lines(index))
        for count, (line, key, stamp, fields) in enumerate(parsed, 1):
            if closed and (key, stamp) < before:
                yield Fault(f"{place}, line {count}", "it is out of order")
            before = (key, stamp)
            entry = entries.get(int(fields["offset"]))
            if entry is None and (growing or not closed):
                continue  # written since the length was recorded
            if entry is None or entry.line != _digest(line, entry.odd):
                yield Fault(f"{place}, line {count}", f"no such record at {path.name}:{fields['offset']}")
            seen.add(int(fields["offset"]))
    except (ValueError, KeyError, TypeError, OSError) as error:
        yield Fault(f"{place}, line {count + 1}", _unreadable(error))
        return
    yield from (Fault(f"{FOLDER}/{path.name}:{at}", "the index has no line for it") for at in entries.keys() - seen)


def _check_rows(
    naming: "_Naming", place: str, counting: ds.Expression, entries: Mapping[int, _Entry]
) -> Generator[Fault, None, set[int] | None]:
    """Check that each row of `pages` that names this file, and is `counting`, names a record of its URL in it.

    Returns the offsets of the pages, by the table; None without a readable table. The target of a robots.txt redirect
    is not a page, whatever its name.
    """
    if not (naming.folder / TABLES).is_dir():
        return None
    pages, readable = set(), True
    for segment in naming.segments(place):
        try:
            for batch in segment.batches(_ROW, counting):
                yield from _check_batch(batch, place, entries)
                pages.update(batch.column("warc_offset").to_pylist())
        except StateDamaged:
            readable = False  # reported once, by _check_tables
    return pages if readable else None


def _check_batch(batch: pa.RecordBatch, place: str, entries: Mapping[int, _Entry]) -> Iterator[Fault]:
    for url, digest, offset, length in zip(*(batch.column(name).to_pylist() for name in _ROW), strict=True):
        entry = entries.get(offset)
        if entry is None or entry[:3] != (url, digest, length):
            yield Fault(f"{place}:{offset}", f"the pages table says that {url} is here, {length} bytes; it is not")


class _Naming:
    """The archive files that the rows of each file of `pages` name, so that each file is read for those alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._named: dict[Path, set[str] | None] = {}

    def segments(self, place: str) -> Iterator[TableFile]:
        """Yield the segments that may have rows of the file `place`: also journals, which grow, and unreadable ones."""
        for segment in segments(self.folder, "pages"):
            named = None if segment.journal else self._names(segment)
            if named is None or place in named:
                yield segment

    def _names(self, segment: TableFile) -> set[str] | None:
        if segment.path not in self._named:
            try:
                batches = segment.batches(["warc_file"])
                named = {name for batch in batches for name in pc.unique(batch.column(0).cast(pa.string())).to_pylist()}
            except StateDamaged:
                named = None
            self._named[segment.path] = named
        return self._named[segment.path]


def _check_tables(folder: Path) -> Iterator[Fault]:
    """Check that each file is there, readable to the last page, as it was sealed, and names files that are there."""
    for segment in (one for name in SCHEMAS if (folder / TABLES).is_dir() for one in segments(folder, name)):
        if not segment.path.exists():
            yield Fault(f"{TABLES}/{segment.path.name}", "it is gone")
    for path in sorted((folder / TABLES).glob("*.parquet")):
        place = f"{TABLES}/{path.name}"
        schema = SCHEMAS.get(table_of(path))
        try:
            holds = checksum_holds(path)
            if holds is False:  # not opened: readers of Parquet may die of damage
                yield Fault(place, OTHER_BYTES)
                continue
            if holds is None:
                yield Fault(place, "its checksum is missing")
            yield from (Fault(place, what) for what in _parquet_faults(path, schema, folder))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            yield Fault(place, _unreadable(error))


def _unreadable(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return f"it cannot be read: {reason or next(iter(str(error).splitlines()), type(error).__name__)}"


def _parquet_faults(path: Path, schema: pa.Schema | None, folder: Path) -> Iterator[str]:
    with pq.ParquetFile(as_file(path), page_checksum_verification=True) as file:
        if schema is not None and file.schema_arrow.names != schema.names:
            yield f"its columns are {', '.join(file.schema_arrow.names)}"
            return
        rows, named = 0, set()
        for batch in file.iter_batches(1 << 14):
            rows += batch.num_rows
            if "warc_file" in batch.schema.names:
                named |= set(pc.unique(batch.column("warc_file").cast(pa.string())).to_pylist()) - {None}
        if rows != file.metadata.num_rows:
            yield f"it holds {rows} rows, but its footer says {file.metadata.num_rows}"
        gone = (name for name in sorted(named) if not (folder / name).exists())
        yield from (f"its rows name the file {name}, which is missing" for name in gone)
