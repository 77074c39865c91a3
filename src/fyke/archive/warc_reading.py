"""WARC files read record by record, strictly, in bounded memory.

`fyke.archive.check` walks whole files with it. fastwarc and warcio skip bytes that they cannot read; this reader says
what is wrong, and where. It wants one gzip member a record with exactly our header, and checks the member's checksum
and the record's framing, length and digests. A body of any size is hashed as it streams by.

Only padding bits inside a deflate stream are not looked at. They carry no information, and the checksum of a finished
file covers them.
"""

import re
import zlib
from base64 import b32encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import BinaryIO

from fyke.disk.files import open_file

CHUNK_BYTES = 1 << 18
HEAD_BYTES = 1 << 16  # unpacked of a record if only its heads are wanted
HEADER_BYTES = 1 << 20  # a longer start without a blank line is not a header
_BLANK = re.compile(rb"\n\r*\n")  # the end of a head, even if a server mixes line ends
GZIP_START = bytes.fromhex("1f8b080000000000")  # deflate, no flags, no time
GZIP_HEADERS = frozenset(GZIP_START + bytes([level, 255]) for level in (0, 2, 4))  # isal tells the level


class Broken(Exception):
    """A member or record that cannot be read; the message says why."""


@dataclass(slots=True)
class Record:
    """The header of a record, and in `faults` the ways in which its bytes differ from it."""

    offset: int
    length: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    first_line: str = ""  # of the block: the status line of a response
    head: bytes = b""  # of an HTTP message, with its blank line
    faults: list[str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return the header field `name` (small letters), or the empty string."""
        return self.fields.get(name, "")

    @property
    def digest(self) -> str:
        """The digest of its payload; of its block if that is the payload; otherwise empty."""
        return self.get("warc-payload-digest") or self.get("warc-block-digest")


class _RecordCheck:
    """Takes a record's bytes in pieces of any size, and judges them after the last."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._start = bytearray()  # the header, then the block until its head has ended
        self._missing = -1  # bytes of the block still to come; -1 in the header
        self._block, self._payload = sha1(usedforsecurity=False), sha1(usedforsecurity=False)
        self._in_head = False
        self._tail = b""

    def feed(self, piece: bytes) -> None:
        if self._missing < 0:
            self._start += piece
            end = self._start.find(b"\r\n\r\n")
            if end < 0:
                if len(self._start) > HEADER_BYTES:
                    raise Broken("a record header that does not end")
                return
            piece = bytes(self._start[end + 4 :])
            self._read_header(bytes(self._start[:end]))
            self._start.clear()
        part, rest = piece[: self._missing], piece[self._missing :]
        self._missing -= len(part)
        self._block.update(part)
        if self._in_head:
            self._start += part
            self._find_payload(last=self._missing == 0)
        else:
            self._payload.update(part)
        self._tail += rest[: 8 - len(self._tail)]

    def _read_header(self, header: bytes) -> None:
        first, *lines = header.decode("utf-8", "replace").split("\r\n")
        if first != "WARC/1.1":
            raise Broken(f"not a WARC/1.1 record: it begins with {first[:40]!r}")
        fields = self._record.fields
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or name.lower() in fields:
                raise Broken(f"a header line without a colon, or repeated: {line[:80]!r}")
            fields[name.lower()] = value.strip()
        length = fields.get("content-length", "")
        if not length.isdecimal():
            raise Broken(f"Content-Length is {length!r}")
        self._missing = int(length)
        self._in_head = "application/http" in fields.get("content-type", "")

    def _find_payload(self, *, last: bool) -> None:
        """Find the payload, which begins after the first empty line of an HTTP message."""
        blank = _BLANK.search(self._start)
        if blank is None and not last and len(self._start) <= HEADER_BYTES:
            return
        self._in_head = False
        self._record.first_line = bytes(self._start[:200]).split(b"\n")[0].decode("latin-1").strip()
        if blank is not None:
            self._record.head = bytes(self._start[: blank.end()])
            self._payload.update(bytes(self._start[blank.end() :]))
        self._start.clear()

    def judge(self) -> None:
        """Note every mismatch in the record's faults."""
        record = self._record
        if self._missing < 0:
            raise Broken("a record header that does not end")
        if self._missing:
            raise Broken(f"{self._missing} bytes of the block are missing")
        if self._tail != b"\r\n\r\n":
            record.faults.append(f"the block is followed by {self._tail!r} instead of two line ends")
        self._compare("warc-block-digest", self._block.digest())
        if record.get("warc-type") != "revisit":
            self._compare("warc-payload-digest", self._payload.digest())

    def _compare(self, name: str, found: bytes) -> None:
        told = self._record.get(name)
        if told and told != f"sha1:{b32encode(found).decode()}":
            self._record.faults.append(f"{name} is {told}, but the bytes give sha1:{b32encode(found).decode()}")


def read_records(path: Path, length: int | None = None, begin: int = 0) -> Iterator[Record]:
    """Yield every record of the file at `path` up to `length`, in order.

    A member that cannot be read yields a Record with empty `fields`; reading goes on at the next place that looks like
    the beginning of a member.
    """
    with open_file(path) as file:
        size = path.stat().st_size
        end = size if length is None else min(length, size)
        offset = begin
        while offset < end:
            record = Record(offset)
            try:
                record.length = _read_member(file, record, end)
            except (Broken, zlib.error) as error:
                record.fields.clear()
                record.faults.append(str(error))
                record.length = _next_member(file, offset + 1, end) - offset
            yield record
            offset += record.length


def read_block(path: Path, offset: int, length: int, most_bytes: int = 0) -> tuple[dict[str, str], bytes]:
    """Return the header fields and the block of the whole record at `offset`, in memory.

    Raises OSError, zlib.error, Broken; Broken also if the record is longer than `most_bytes` (0: any length).
    """
    with open_file(path) as file:
        file.seek(offset)
        unpacker = zlib.decompressobj(31)
        record = unpacker.decompress(file.read(length), most_bytes)
    if not unpacker.eof:
        raise Broken("a record that is cut, or longer than asked for")
    header, _, rest = record.partition(b"\r\n\r\n")
    fields = _fields_of(header)
    if not fields.get("content-length", "").isdecimal():
        raise Broken("a record without a length")
    return fields, rest[: int(fields["content-length"])]


def metadata_of(path: Path, record: Record) -> dict[str, str]:
    """Return the fields in the block of a metadata record of the file at `path`; a repeated field has a line for each
    value.

    Raises Broken, OSError, zlib.error.
    """
    _, block = read_block(path, record.offset, record.length, HEADER_BYTES)
    facts: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(": ")
        if name:
            facts[name] = f"{facts[name]}\r\n{value}" if name in facts else value
    return facts


def read_head(path: Path, offset: int, length: int) -> tuple[dict[str, str], bytes]:
    """Return the header fields of the record at `offset`, and the head of its HTTP message (empty if it is none),
    without unpacking the body.

    Raises Broken, OSError, zlib.error.
    """
    with open_file(path) as file:
        file.seek(offset)
        start = zlib.decompressobj(31).decompress(file.read(min(length, CHUNK_BYTES)), HEAD_BYTES)
    header, blank, block = start.partition(b"\r\n\r\n")
    if not blank:
        raise Broken("a record header that does not end")
    fields = _fields_of(header)
    return fields, taken_apart(block)[0] if "application/http" in fields.get("content-type", "") else b""


def _fields_of(header: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in header.decode("utf-8", "replace").split("\r\n")[1:])
    return {name.lower(): value.strip() for name, _, value in lines}


def _read_member(file: BinaryIO, record: Record, end: int) -> int:
    """Read the member at `record.offset`; return its length."""
    file.seek(record.offset)
    at = record.offset
    unpacker = zlib.decompressobj(31)
    block = _RecordCheck(record)
    header = b""
    while not unpacker.eof:
        chunk = file.read(min(CHUNK_BYTES, end - at))
        if not chunk:
            raise Broken("a gzip member that does not end")
        at += len(chunk)
        if len(header) < 10:
            header = (header + chunk)[:10]
        while chunk and not unpacker.eof:
            block.feed(unpacker.decompress(chunk, CHUNK_BYTES))
            chunk = unpacker.unconsumed_tail
    if header not in GZIP_HEADERS:
        raise Broken(f"a gzip header that Fyke does not write: {header.hex()}")
    block.judge()
    return at - len(unpacker.unused_data) - record.offset


def taken_apart(block: bytes) -> tuple[bytes, bytes]:
    """Return head and body of an HTTP message; the head ends with its first empty line."""
    blank = _BLANK.search(block, 0, 1 << 20)
    end = blank.end() if blank else len(block)
    return block[:end], block[end:]


def _next_member(file: BinaryIO, at: int, end: int) -> int:
    """Return the next offset from `at` where a member seems to begin, or `end`."""
    overlap = len(GZIP_START) - 1
    while at < end:
        file.seek(at)
        chunk = file.read(min(CHUNK_BYTES, end - at))
        found = chunk.find(GZIP_START)
        if found >= 0:
            return at + found
        if len(chunk) <= overlap:
            break
        at += len(chunk) - overlap
    return end
