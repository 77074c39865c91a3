"""Files as this room uses them: one that only grows, one that is read at positions.

Made by `Store`; used by the drum and the queue. Nothing is kept in user-space buffers: what `write` took
is with the operating system when it returns, so a length is exact at any time. Invariant: no `OSError` of a
write leaves the room; it becomes `DiskFull` when there is no space, `DirectoryError` otherwise.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fyke.core.errors import DirectoryError, DiskFull, StateDamaged

Bytes = bytes | memoryview
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an OSError of the block into the error a person can act on."""
    try:
        yield
    except FileExistsError:
        raise  # a name used twice is our bug, not the disk's
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _NO_SPACE:
            raise DiskFull(f"cannot write {path}: {reason}; free some space, then resume the crawl") from error
        raise DirectoryError(
            f"cannot write {path}: {reason}; mend the folder's permissions or disk, then resume"
        ) from error


def damaged(path: Path, what: str) -> StateDamaged:
    """The error for the file `path` of a crawl, in a line that says what to do."""
    folder = path.parent.parent if path.parent.name.startswith("shard-") else path.parent  # in state/, tables/ or warc/
    return StateDamaged(f"{path} is damaged: {what}; fyke check --repair {folder.parent} mends what can be mended")


def raw(array: npt.NDArray[Any]) -> memoryview:
    """The bytes of an array of any dtype, [n], without a copy when it is contiguous."""
    return np.ascontiguousarray(array).view(np.uint8).data if len(array) else memoryview(b"")


def write_all(descriptor: int, data: Bytes) -> None:
    """All of `data`, however often the system takes only a part."""
    view = memoryview(data).cast("B")
    while len(view):
        view = view[os.write(descriptor, view) :]


def sync_file(path: Path) -> None:
    """Wait until the bytes of a file, or the entries of a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Appender:
    """A file that grows. Its length so far is what the next checkpoint records."""

    def __init__(self, path: Path, length: int, on_growth: Callable[[int], None]) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        with writing(path):
            self._descriptor = os.open(path, flags if length else flags | os.O_CREAT, 0o644)
        self._path = path
        self._on_growth = on_growth
        self.length = length

    def __repr__(self) -> str:
        return f"Appender({self._path.name}, {self.length} bytes)"

    def write(self, data: Bytes) -> None:
        """Append `data`. Raises DiskFull or DirectoryError; then the file may end in a torn piece."""
        with writing(self._path):
            write_all(self._descriptor, data)
        self.length += len(data)
        self._on_growth(self.length)

    def close(self) -> None:
        """Give the descriptor back; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Reader:
    """A file read at positions, never mapped, so that what was read does not count as our memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise damaged(path, "it is gone") from None

    def __repr__(self) -> str:
        return f"Reader({str(self.path)!r})"

    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes from `offset`. Raises StateDamaged when the file ends before."""
        data = os.pread(self._descriptor, size, offset)
        if len(data) < size:  # rare: a signal, or more than the system reads at a time
            pieces = [data]
            while pieces[-1] and sum(map(len, pieces)) < size:
                done = sum(map(len, pieces))
                pieces.append(os.pread(self._descriptor, size - done, offset + done))
            data = b"".join(pieces)
        if len(data) < size:
            raise damaged(self.path, f"it ends at byte {offset + len(data):,}")
        return data

    def array(self, dtype: np.dtype[Any], start: int, count: int) -> npt.NDArray[Any]:
        """Items `start` to `start + count` of a file of nothing but `dtype`; read-only, [count]."""
        return np.frombuffer(self.read(start * dtype.itemsize, count * dtype.itemsize), dtype)

    def close(self) -> None:
        """Give the descriptor back; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
