"""The archive being written: WARC files one after the other, each with its index.

The loop calls `write` once for every exchange with an answer, before the page is parsed. Files are
`warc/fyke-<crawl>-00000.warc.gz` and so on. A file is closed when it is `warc_bytes` long; a thread then sorts its
index and writes its checksum. All records of an exchange (request, response or resource or revisit, metadata) lie side
by side in one file, each a gzip member of its own.

Invariant: `restore(state())` gives back exactly the bytes there were at that `state()`, whatever was written since. To
allow this, the unsorted index of a closed file stays until `durable()` says that a manifest made after the closing is
safe.
"""

import re
import zlib
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fyke.archive import records
from fyke.archive.background import Background
from fyke.archive.cdxj import REVISIT, index_line, index_path, media_type_of, sort_lines
from fyke.archive.checksum import checksum_path, write_checksum
from fyke.archive.records import Original
from fyke.archive.safety import Safety
from fyke.archive.warc_reading import Broken, read_head
from fyke.core.visits import Exchange
from fyke.disk.files import cut, explained, open_append, writing

BUFFER_BYTES = 1 << 18
WHOLE_BYTES = 1 << 20  # longer bodies are streamed
FOLDER = "warc"
MOST_NAME_CHARS = 200  # of the crawl, in the name of a file


class RecordPlace(NamedTuple):
    """Place and name of a response: file below the crawl directory, offset, length, digest, date.

    `digest` is the payload's (`sha1:` and Base32), `date` the WARC-Date: an `Original` needs both.
    """

    file: str
    offset: int
    length: int
    digest: str
    date: str


def finish(warc: Path, unsorted: Path) -> None:
    """Finish a closed file: sort its index, and write the checksums of both."""
    with writing(warc):
        index = unsorted.with_suffix("")
        sort_lines(unsorted, index)
        write_checksum(index, index)
        write_checksum(warc, warc)  # written last: if it exists, so do index and records


class WarcWriter:
    """Appends exchanges to the WARC files of the crawl directory `folder`.

    `crawl` names the crawl in file names; files of a resumed crawl keep their name. `software` is the writer in the
    warcinfo record, to which `info` adds fields (operator, user agent, …). Raises DiskFull or DirectoryError; after
    that only `restore` and `close` make sense.
    """

    def __init__(
        self,
        folder: Path,
        warc_bytes: int,
        software: str,
        *,
        crawl: str = "crawl",
        info: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._warc_bytes = warc_bytes
        self._crawl = re.sub(r"[^A-Za-z0-9_.]+", "-", crawl)[-MOST_NAME_CHARS:]
        self._info = {
            "software": software,
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "isPartOf": crawl,
            **(info or {}),
        }
        self._ids = records.RecordIds()
        self._dates = records.Dates()
        self._serial = 0
        self._file: BinaryIO | None = None
        self._index: BinaryIO | None = None
        self._path = self._index_path = folder
        self._position = self._index_position = 0
        self._closed_bytes = 0
        self._name = ""
        self._closing: list[tuple[int, int, int]] = []  # serial and two lengths of closed files not yet finished
        self._finishing = Background("fyke-finish-warc")
        self._safety = Safety()
        with writing(folder):
            (folder / FOLDER).mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"WarcWriter({self._file_name(self._serial)} at {self._position})"

    def write(
        self,
        exchange: Exchange,
        *,
        via: str = "",
        media_type: str = "",
        charset: str = "",
        duplicate: bool = False,
        refers_to: Original | None = None,
    ) -> RecordPlace:
        """Archive `exchange` and return its response's place; `via` is the URL of the page that linked to it.

        If the answer has the payload of the earlier record `refers_to`, a revisit record points there and the body is
        left out. `media_type` is for an answer without a head, `duplicate` what content-seen said. Raises DiskFull or
        DirectoryError.
        """
        try:
            file = self._file or self._open(exchange.started_at)
            metadata = records.metadata_fields(exchange, via, charset, duplicate)
            place = self._write(file, exchange, (media_type, metadata), refers_to)
            if self._position >= self._warc_bytes:
                self._close_file()
        except OSError as error:
            raise explained(error, self._path) from error
        return place

    def _write(
        self, file: BinaryIO, exchange: Exchange, facts: tuple[str, bytes], refers_to: Original | None
    ) -> RecordPlace:
        media_type, metadata = facts
        date = self._dates.warc(exchange.started_at)
        ids = self._ids.three()
        common = records.common_header(exchange.visit.url, date)
        wire = common + records.wire_header(exchange)
        before = records.request_member(wire, ids, exchange.request) if exchange.request else b""
        after = records.metadata_member(common, ids, metadata)
        offset = self._position + len(before)
        if refers_to is not None and not records.has_payload_of(exchange, refers_to):
            refers_to = None
        header = records.response_header(exchange, ids[1], wire, media_type)
        if refers_to is not None:
            header, digest = records.revisit_header(exchange, ids[1], wire, refers_to), refers_to.digest
            block = records.revisit_block(exchange)
            member = records.small_member(header, block)
            length = len(member)
            file.write(b"".join((before, member, after)))
        elif exchange.body.size <= WHOLE_BYTES:
            member, digest = records.body_member(header, exchange.head, exchange.body.read())
            length = len(member)
            file.write(b"".join((before, member, after)))
        else:
            pieces, digest = records.packed_member(header, exchange)
            file.write(before)
            length = sum(map(file.write, pieces))
            file.write(after)
        self._position = offset + length + len(after)
        said = media_type_of(exchange.head) if exchange.head else media_type or records.OCTETS
        mime = REVISIT if refers_to else said
        status = exchange.status if exchange.head and not (refers_to and records.not_modified(exchange)) else None
        self._note(index_line(exchange.visit.url, date, mime, status, digest, (self._name, offset, length)))
        return RecordPlace(f"{FOLDER}/{self._name}", offset, length, digest, date)

    @property
    def serial(self) -> int:
        """The number of the file that is being written."""
        return self._serial

    def original_at(self, serial: int, offset: int, length: int) -> Original | None:
        """Return the name that revisit records give to the response there; None if there is none. Raises DiskFull,
        DirectoryError."""
        if serial == self._serial:
            self.flush()
        try:
            fields, _ = read_head(self._paths(serial)[0], offset, length)
        except (Broken, OSError, zlib.error):
            return None
        if fields.get("warc-type") != "response":
            return None
        return Original(*(fields.get(f"warc-{name}", "") for name in ("target-uri", "date", "payload-digest")))

    def _note(self, line: bytes) -> None:
        assert self._index is not None
        self._index.write(line)
        self._index_position += len(line)

    def _file_name(self, serial: int) -> str:
        return f"fyke-{self._crawl}-{serial:05d}.warc.gz"

    def _open(self, now: float) -> BinaryIO:
        """Open a new file, which begins with its warcinfo record."""
        self._name_paths()
        self._file = open_append(self._path, BUFFER_BYTES)
        self._index = open_append(self._index_path, BUFFER_BYTES)
        warcinfo = records.warcinfo_member(self._ids.three()[0], self._dates.warc(now), self._name, self._info)
        self._position = self._file.write(warcinfo)
        self._index_position = 0
        return self._file

    def _name_paths(self) -> None:
        self._name = self._file_name(self._serial)
        self._path, self._index_path = self._paths(self._serial)
        self._safety.wrote(self._path, self._index_path, self._path.parent)

    def _paths(self, serial: int) -> tuple[Path, Path]:
        """Return the file with this number, and its unsorted index."""
        path = self._folder / FOLDER / self._file_name(serial)
        return path, index_path(path, closed=False)

    def _close_file(self) -> None:
        """Close the current file and have it finished; the next record opens the next file."""
        assert self._file is not None and self._index is not None
        self._safety.wrote(self._path, self._index_path)
        self._close_files()
        self._closing.append((self._serial, self._position, self._index_position))
        self._closed_bytes += self._position
        self._serial += 1
        self._position = self._index_position = 0
        if len(self._closing) > 1:  # the thread is behind: wait, so that files cannot pile up
            self._settle(wait=True)
        self._finish_next()

    def _close_files(self) -> None:
        with ExitStack() as both:  # closes the second when the first cannot be flushed
            for file in (self._file, self._index):
                if file is not None:
                    both.callback(file.close)
            self._file = self._index = None

    def _finish_next(self) -> None:
        if self._closing and not self._finishing.busy:
            self._finishing.start(finish, *self._paths(self._closing[0][0]))

    def _settle(self, *, wait: bool) -> None:
        """Record the file that the thread has finished, and give the thread the next."""
        while self._finishing.finished(wait=wait):
            path, unsorted = self._paths(self._closing.pop(0)[0])
            index = unsorted.with_suffix("")
            self._safety.wrote(index, checksum_path(index), checksum_path(path), path.parent)
            self._safety.spend(unsorted)
            self._finish_next()

    def flush(self) -> None:
        """Hand all written bytes to the operating system, so that others can read them."""
        with writing(self._path):
            for file in (self._file, self._index):
                if file is not None:
                    file.flush()

    def state(self) -> dict[str, Any]:
        """Return the writer's part of a checkpoint: the current file and its length; all earlier files are closed."""
        self._settle(wait=False)
        self.flush()
        if self._file is not None:
            self._safety.wrote(self._path, self._index_path)
        self._safety.stated()
        return {
            "serial": self._serial,
            "file": f"{FOLDER}/{self._file_name(self._serial)}",
            "length": self._position,
            "index_length": self._index_position,
            "closed_bytes": self._closed_bytes,
            "closing": [list(closing) for closing in self._closing],
        }

    def dirty_files(self) -> list[Path]:
        """Return what must be fsynced for the last `state` to hold: files that grew, and folders with new names."""
        return self._safety.dirty_files()

    def durable(self) -> None:
        """Note that the manifest with the last `state` is safe; delete files that only older ones need."""
        self._safety.durable()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Cut and delete until the files are those of `state`; an empty mapping is a crawl not begun.

        Raises StateDamaged if a file is shorter than it was then.
        """
        self.abandon()
        self._path = self._index_path = self._folder
        self._position = self._index_position = 0
        self._safety = Safety()
        self._name = ""
        self._serial = state.get("serial", 0)
        if state:  # the folder may have another name than when the crawl began
            self._crawl = state["file"].removeprefix(f"{FOLDER}/fyke-").rpartition("-")[0]
        self._closed_bytes = state.get("closed_bytes", 0)
        length = state.get("length", 0)
        self._closing = [(serial, size, index) for serial, size, index in state.get("closing", [])]
        with writing(self._folder / FOLDER):
            self._delete_others(self._serial if length else self._serial - 1)
            for serial, size, index in self._closing:
                path, unsorted = self._paths(serial)
                cut(path, size)
                cut(unsorted, index)
            if length:
                self._reopen(length, state["index_length"])
        self._finish_next()

    def _reopen(self, length: int, index_length: int) -> None:
        self._name_paths()
        cut(self._path, length)
        cut(self._index_path, index_length)
        self._file = open_append(self._path, BUFFER_BYTES)
        self._index = open_append(self._index_path, BUFFER_BYTES)
        self._position, self._index_position = length, index_length

    def _delete_others(self, newest: int) -> None:
        """Delete files of this crawl with a serial above `newest`, and leftovers of finishing a file."""
        unfinished = {self._serial, *(serial for serial, _, _ in self._closing)}
        ours = re.compile(
            rf"fyke-{re.escape(self._crawl)}-(\d{{5,}})\.(warc\.gz|warc\.gz\.xxh3|cdxj|cdxj\.xxh3|cdxj\.open|cdxj\.part)"
        )
        for path in (self._folder / FOLDER).iterdir():
            found = ours.fullmatch(path.name)
            if found is None:
                continue
            serial, kind = int(found[1]), found[2]
            finished = {"warc.gz", "warc.gz.xxh3", "cdxj", "cdxj.xxh3"}
            wanted = {"warc.gz", "cdxj.open"} if serial in unfinished else finished
            if serial > newest or kind not in wanted:
                path.unlink()

    def abandon(self) -> None:
        """Let go of the files, as they are, after waiting for the thread that finishes one."""
        self._finishing.close()
        with suppress(OSError):  # bytes that cannot be flushed are not wanted either
            self._close_files()

    def close(self) -> None:
        """Close the last file and finish it; take a last `state` after it. A resumed crawl begins a new file."""
        with writing(self._path):
            if self._file is not None:
                self._close_file()
            self._settle(wait=True)
        self._finishing.close()

    @property
    def size_bytes(self) -> int:
        """Size of the archive, over the whole crawl."""
        return self._closed_bytes + self._position
