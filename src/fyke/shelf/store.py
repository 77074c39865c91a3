"""A shard's directory: files that are written once or only grow.

Drums and queues create their files here; `Checkpoint` records names and lengths. A file that is no
longer needed is *retired*: it is deleted when a manifest that does not name it is safe.

Invariant: a name is never used twice, and a file named by the newest manifest is never shortened below
its recorded length.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fyke.core.errors import DirectoryError, DirectoryInUse, DiskFull


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Foreign errors of writing below `path`, mapped once."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left writing {path}: free some, then run the same command again") from error
        raise DirectoryError(f"cannot write {path}: {error.strerror}") from error


class GrowingFile:
    """A file that is appended to; `length` is what the operating system has been given."""

    __slots__ = ("_fd", "length", "name", "path")

    def __init__(self, path: Path, *, new: bool) -> None:
        self.path = path
        self.name = path.name
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0)
        with writing(path):
            self._fd = os.open(path, flags, 0o644)
        self.length = os.fstat(self._fd).st_size

    def write(self, data: Any) -> None:
        """Append `data` (bytes-like) whole. Raises DiskFull; the file is then cut back."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            with writing(self.path):
                while done < len(view):
                    done += os.write(self._fd, view[done:])
        except BaseException:
            os.ftruncate(self._fd, self.length)
            raise
        self.length += done

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Store:
    """The files of one shard, in `folder`.

    Raises DirectoryInUse when another process holds it, unless `read_only`.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder = folder
        self.read_only = read_only
        self.retired: list[str] = []
        self.dirty: set[str] = set()
        self._live: dict[str, GrowingFile | int] = {}
        self._lock = -1 if read_only else self._locked()

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r}, {len(self._live)} files)"

    def _locked(self) -> int:
        path = self.folder / "lock"
        with writing(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise DirectoryInUse(
                f"{self.folder.parent} is in use: another fyke is crawling into it; wait for it or stop it"
            ) from None
        return lock

    def path(self, name: str) -> Path:
        return self.folder / name

    def create(self, name: str, *pieces: Any) -> None:
        """A new file `name` that holds `pieces` (bytes-like) and never changes."""
        file = GrowingFile(self.path(name), new=True)
        try:
            for piece in pieces:
                file.write(piece)
            self._live[name] = file.length
            self.dirty.add(name)
        finally:
            file.close()

    def grow(self, name: str) -> GrowingFile:
        """A new file `name` to append to."""
        file = GrowingFile(self.path(name), new=True)
        self._live[name] = file
        self.dirty.add(name)
        return file

    def grow_on(self, name: str) -> GrowingFile:
        """The file `name`, which exists, to append to."""
        file = GrowingFile(self.path(name), new=False)
        self._live[name] = file
        return file

    def adopt(self, name: str) -> None:
        """The manifest names `name`, a file that is not written to any more."""
        self._live[name] = self.path(name).stat().st_size

    def retire(self, name: str) -> None:
        """`name` is no longer needed; it goes when no manifest needs it."""
        file = self._live.pop(name, None)
        if isinstance(file, GrowingFile):
            file.close()
        self.dirty.discard(name)
        self.retired.append(name)

    def lengths(self) -> dict[str, int]:
        """Every live file with the length that counts, in bytes."""
        return {
            name: file.length if isinstance(file, GrowingFile) else file for name, file in sorted(self._live.items())
        }

    def growing(self) -> list[str]:
        """Files that are open to grow, and so may have changed since they were last safe."""
        return [name for name, file in self._live.items() if isinstance(file, GrowingFile)]

    def close(self) -> None:
        """Let go of files and lock."""
        for file in self._live.values():
            if isinstance(file, GrowingFile):
                file.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
