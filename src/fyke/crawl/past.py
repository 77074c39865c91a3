"""What earlier visits to a page brought, for the next visit: the head of that answer, which record to name.

What is known of a page goes with the visit to the agent that makes it (`Past.known`, `Past.lend`). Its newest record in
the archive is read when it is asked for.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from fyke.archive.captures import Captures, original_of
from fyke.archive.directory import CrawlDirectory
from fyke.archive.reindexing import archive_files, part_of, serial_of
from fyke.archive.warc_reading import Broken, read_block, read_head, taken_apart
from fyke.core.batches import U64
from fyke.core.visits import Earlier, Visit
from fyke.disk.files import real_path
from fyke.frontier.known_pages import KnownPages
from fyke.frontier.page_history import Visited

_OF_COPY = ("file", "offset", "length", "fingerprint")
_SERIALS = 22  # bits of the number of an archive file that count the files of one agent
EARLIER = pa.schema(
    [
        ("key", pa.uint64()),
        ("missing", pa.bool_()),  # as in `Earlier`
        ("file", pa.uint32()),
        ("offset", pa.uint64()),
        ("length", pa.uint32()),  # 0: there is no record
        ("fingerprint", pa.uint64()),
        ("at", pa.float64()),
    ]
)


def file_number(part: int, serial: int) -> int:
    """Return the crawl's number of the archive file that the agent `part` numbered `serial`."""
    return part << _SERIALS | serial


class Past:
    """What earlier visits brought: the records of `known`, in the archive of `folder`."""

    def __init__(self, known: KnownPages, folder: Path) -> None:
        self._known = known
        self._folder = folder
        self._captures = Captures(folder)
        self._files: dict[int, Path] = {}  # by agent and number
        self._lent: dict[int, Earlier] = {}  # by key: for visits that are about to come

    def __repr__(self) -> str:
        return f"Past({self._known!r})"

    def note_known(self, visits: Sequence[Visit]) -> None:
        """Note with each of `visits` what is known of it, without a look at the archive."""
        for visit in visits if self._lent else ():
            visit.earlier = self._lent.get(visit.key)
        self._lent.clear()
        keys = np.fromiter((visit.key for visit in visits), np.uint64, len(visits))
        before = self._known.before(keys) if len(keys) else None
        if before is None:
            return
        rows = zip(visits, before.visited.tolist(), before.copies, before.at.tolist(), strict=True)
        for visit, visited, copy, at in rows:
            if visited != Visited.NEVER:
                place = (int(copy["file"]), int(copy["offset"]), int(copy["length"])) if copy["length"] else None
                visit.earlier = Earlier(visited >= Visited.MISSING, place, int(copy["fingerprint"]), at)

    def known(self, keys: U64) -> pa.RecordBatch | None:
        """Return what is known of the pages with `keys` (uint64[n]) that were visited (schema `EARLIER`), if of any."""
        before = self._known.before(keys) if len(keys) else None
        met = np.zeros(0, np.bool_) if before is None else before.visited != Visited.NEVER
        if before is None or not met.any():
            return None
        columns = [keys, before.visited >= Visited.MISSING, *(before.copies[name] for name in _OF_COPY), before.at]
        return pa.RecordBatch.from_arrays([pa.array(np.ascontiguousarray(one[met])) for one in columns], schema=EARLIER)

    def lend(self, known: pa.RecordBatch) -> None:
        """Keep what is `known` (schema `EARLIER`) of pages of other shards, about to be visited here."""
        for key, missing, *place, fingerprint, at in zip(*(c.to_pylist() for c in known.columns), strict=True):
            self._lent[key] = Earlier(missing, tuple(place) if place[2] else None, fingerprint, at)

    def read(self, earlier: Earlier) -> None:
        """Note what the record of the newest copy says; a page whose record cannot be read is asked for as new."""
        if earlier.place is None or earlier.original is not None:
            return
        number, offset, length = earlier.place
        try:
            fields, earlier.head = read_head(self._path(number), offset, length)
        except (Broken, OSError, zlib.error, KeyError):
            return
        earlier.original = original_of(fields)

    def content(self, earlier: Earlier, most_bytes: int) -> tuple[bytes, bytes] | None:
        """Return head and body of the newest copy as they came; None if its record has none, is longer than
        `most_bytes`, or cannot be read."""
        if earlier.place is None:
            return None
        number, offset, length = earlier.place
        try:
            fields, block = read_block(self._path(number), offset, length, most_bytes)
            if fields.get("warc-type") == "revisit" and (copied := self._captures.original(original_of(fields))):
                fields, block = read_block(self._folder / copied.file, copied.offset, copied.length, most_bytes)
        except (Broken, OSError, zlib.error, KeyError, ValueError):
            return None
        return taken_apart(block) if fields.get("warc-type") == "response" else None

    def _path(self, number: int) -> Path:
        """Return the archive file with this number. Raises KeyError."""
        if number not in self._files:
            own, agents = real_path(self._folder).name, len(CrawlDirectory(self._folder).parts)
            self._files = {
                file_number(part_of(path.name, own, agents), serial_of(path.name)[0]): path
                for path in archive_files(self._folder)
            }
        return self._files[number]
