"""Which URL was archived twice, found in bounded memory.

Used by `fyke.archive.check`. Keys go to unnamed files by their first bits; at the end each file is sorted
by itself, so memory holds one part in 64 of the keys at a time.
"""

from collections.abc import Iterator
from tempfile import TemporaryFile
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from fyke.core.urls import key_of

PARTS = 64
BUFFER_ROWS = 1 << 16

_ROW = np.dtype([("key", np.uint64), ("file", np.uint32), ("offset", np.uint64)])


class Repeats:
    """Collects (URL, file number, offset), `buffer_rows` of them in memory, then tells which URLs came again."""

    def __init__(self, buffer_rows: int = BUFFER_ROWS) -> None:
        self._buffer_rows = buffer_rows
        self._files: list[BinaryIO] = []
        self._rows: list[tuple[int, int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self._files:
            file.close()

    def add(self, url: str, file: int, offset: int) -> None:
        self._rows.append((key_of(url.encode()), file, offset))
        if len(self._rows) >= self._buffer_rows:
            self._spill()

    def _spill(self) -> None:
        self._files = self._files or [TemporaryFile() for _ in range(PARTS)]  # noqa: SIM115 - closed on exit
        rows = np.array(self._rows, _ROW)
        parts = rows["key"] // np.uint64((1 << 64) // PARTS)
        for part in np.unique(parts).tolist():
            self._files[part].write(rows[parts == part].tobytes())
        self._rows = []

    def found(self) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """File and offset of each repeat, with file and offset of the first."""
        if not self._files:
            yield from _repeats(np.array(self._rows, _ROW))
            return
        self._spill()
        for file in self._files:
            file.seek(0)
            yield from _repeats(np.frombuffer(file.read(), _ROW))


def _repeats(rows: np.ndarray) -> Iterator[tuple[int, int, tuple[int, int]]]:
    rows = np.sort(rows, order=["key", "file", "offset"], kind="stable")
    first = 0
    for at in (np.flatnonzero(rows["key"][1:] == rows["key"][:-1]) + 1).tolist():
        if rows["key"][first] != rows["key"][at]:
            first = at - 1
        yield int(rows["file"][at]), int(rows["offset"][at]), (int(rows["file"][first]), int(rows["offset"][first]))
