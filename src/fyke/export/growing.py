"""A file that an export extends part by part, and its lines; a resumed export cuts it back to its last whole part.

Used by the formats whose parts can simply follow each other: JSON lines, CSV, TSV, plain or each part a gzip member.
Invariant: after `add` returned, the file up to the length it returned is safe on the disk.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from isal import igzip

from fyke.core.closing import Closing
from fyke.disk.files import sync_open, write_all
from fyke.export.staging import writing

GZIP_LEVEL = 2


class GrowingFile(Closing):
    """The file `path`, of which `length` bytes count; if `packed`, each addition becomes a gzip member."""

    def __init__(self, path: Path, length: int, *, packed: bool) -> None:
        self._path = path
        self._packed = packed
        with writing(path):
            self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
            self._file.truncate(length)
            self._file.seek(length)
        self.length = length

    def __repr__(self) -> str:
        return f"GrowingFile({self._path.name}, {self.length} bytes)"

    def close(self) -> None:
        self._file.close()

    def add(self, data: bytes) -> int:
        """Append `data`; return the file's new length. Raises DiskFull or DirectoryError."""
        if data:
            packed = igzip.compress(data, GZIP_LEVEL, mtime=0) if self._packed else data
            with writing(self._path):
                write_all(self._file.fileno(), packed)
                sync_open(self._file)
            self.length += len(packed)
        return self.length


def json_line(value: dict[str, Any]) -> bytes:
    """Return `value` as a line of JSON."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def utc_text(at: datetime, timespec: str = "auto") -> str:
    """Return the UTC time `at` as JSON, YAML and WACZ have it: 2026-01-31T12:00:00Z; `timespec` as of `isoformat`."""
    return at.isoformat(timespec=timespec).replace("+00:00", "Z")
