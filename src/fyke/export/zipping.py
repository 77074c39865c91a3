"""A ZIP file that grows member by member, uncompressed, and can be resumed after any of them.

Used by the WACZ export, whose members are mostly gzip already and may be terabytes. `zipfile` keeps the places of the
members in memory and writes them at the end, so a killed export would begin anew. Stored members only, with ZIP64
fields if a number needs them (APPNOTE 6.3.9, 4.3). Invariant: up to `length` the file holds exactly `members`.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fyke.core.closing import Closing
from fyke.disk.files import sync_open
from fyke.export.staging import writing

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END64 = struct.Struct("<IQHHIIQQQQ")
_LOCATOR = struct.Struct("<IIQI")
_END = struct.Struct("<IHHHHIIH")
_MOST32, _MOST16 = 0xFFFFFFFF, 0xFFFF
_UTF8 = 0x800
_UNIX = 3 << 8
_MODE = 0o100644 << 16
_VERSION, _VERSION64 = 20, 45


class ZipMember(NamedTuple):
    """A file in the ZIP: its name, where its local header begins, its size, CRC-32 and SHA-256 (hexadecimal)."""

    name: str
    offset: int
    size: int
    crc: int
    sha256: str


class GrowingZip(Closing):
    """The ZIP file `path` with the first `members`; `at` is the time of all members (year, …, second)."""

    def __init__(
        self, path: Path, members: Iterable[ZipMember], length: int, at: tuple[int, int, int, int, int, int]
    ) -> None:
        self._path = path
        self.members = list(members)
        self.length = length
        self._date = (max(at[0], 1980) - 1980) << 9 | at[1] << 5 | at[2]
        self._time = at[3] << 11 | at[4] << 5 | at[5] // 2
        with writing(path):
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(length)
            self._file.seek(length)

    def __repr__(self) -> str:
        return f"GrowingZip({self._path.name}, {len(self.members)} members, {self.length} bytes)"

    def close(self) -> None:
        with writing(self._path):
            self._file.close()

    def add(self, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Add the file `name` with the `size` bytes of `chunks`. Raises DiskFull or DirectoryError."""
        digest = hashlib.sha256()
        crc = found = 0
        with writing(self._path):
            header = self._local(name, size, 0)
            self._file.write(header)
            for chunk in chunks:
                digest.update(chunk)
                crc = zlib.crc32(chunk, crc)
                found += len(chunk)
                self._file.write(chunk)
            if found != size:
                raise ValueError(f"{name} has {found} bytes, not {size}")
            end = self._file.tell()
            self._file.seek(self.length)
            self._file.write(self._local(name, size, crc))
            self._file.seek(end)
            self._sync()
        self.members.append(ZipMember(name, self.length, size, crc, digest.hexdigest()))
        self.length = end

    def finish(self) -> None:
        """Write the directory of the members; `length` stays as it was."""
        with writing(self._path):
            self._file.seek(self.length)
            self._file.truncate()
            directory = b"".join(map(self._central, self.members))
            self._file.write(directory + self._end(len(directory)))
            self._sync()

    def _sync(self) -> None:
        sync_open(self._file)

    def _local(self, name: str, size: int, crc: int) -> bytes:
        raw = name.encode()
        extra = struct.pack("<HHQQ", 1, 16, size, size) if size >= _MOST32 else b""
        least = min(size, _MOST32) if not extra else _MOST32
        version = _VERSION64 if extra else _VERSION
        header = _LOCAL.pack(
            0x04034B50, version, _UTF8, 0, self._time, self._date, crc, least, least, len(raw), len(extra)
        )
        return header + raw + extra

    def _central(self, member: ZipMember) -> bytes:
        raw = member.name.encode()
        sizes = (member.size, member.size) if member.size >= _MOST32 else ()
        large = (*sizes, member.offset) if member.offset >= _MOST32 else sizes
        extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
        version = _VERSION64 if large else _VERSION
        least = _MOST32 if sizes else member.size
        header = _CENTRAL.pack(
            0x02014B50, _UNIX | version, version, _UTF8, 0, self._time, self._date, member.crc, least, least,
            len(raw), len(extra), 0, 0, 0, _MODE, min(member.offset, _MOST32),
        )  # fmt: skip
        return header + raw + extra

    def _end(self, size: int) -> bytes:
        count, begin = len(self.members), self.length
        large = b""
        if count >= _MOST16 or begin >= _MOST32 or size >= _MOST32:
            large = _END64.pack(
                0x06064B50, _END64.size - 12, _UNIX | _VERSION64, _VERSION64, 0, 0, count, count, size, begin
            ) + _LOCATOR.pack(0x07064B50, 0, begin + size, 1)
        few, near = min(count, _MOST16), min(begin, _MOST32)
        return large + _END.pack(0x06054B50, 0, 0, few, few, min(size, _MOST32), near, 0)
