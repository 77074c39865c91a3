"""Files as all rooms use them: written whole, locked, appended to, cut, synced, read at positions, in this one place.

Invariant: no `OSError` of a write leaves `writing`; it becomes `DiskFull` when there is no space, `DirectoryError`
otherwise. A file that appears by `written_whole` is there whole or as it was, also after the plug was pulled.
"""

import ctypes
import errno
import fcntl
import math
import os
import resource
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import chain
from pathlib import Path
from stat import S_ISCHR, S_ISDIR, S_ISFIFO, S_ISREG
from typing import IO, Any, BinaryIO

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.closing import Closing
from fyke.core.errors import (
    ALLOW,
    LIMIT,
    ROOM,
    DirectoryError,
    DirectoryInUse,
    DiskFull,
    FykeError,
    LimitMet,
    StateDamaged,
    whose,
)

Bytes = bytes | memoryview
FULL = f"{ROOM}, then run the same command again"
REFUSED = "mend the folder's permissions or disk, then run the same command again"
MOVED_AWAY = "its folder was moved or deleted: put it back, then run the same command again"
READ_BYTES = 1 << 20  # at a time, by who reads a file to its end
MOST_BYTES = 1 << 28  # of a file that is read into memory whole
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_libc = ctypes.CDLL(None, use_errno=True)


def explained(error: OSError, path: Path, full: str = FULL, refused: str = REFUSED) -> FykeError:
    """The error to raise in place of `error`, met while writing `path`; `full` and `refused` say what to do then."""
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        full = full.replace(ROOM, LIMIT) if error.errno == errno.EFBIG else full
        return (DiskFull if error.errno == errno.ENOSPC else LimitMet)(f"cannot write {path}: {reason}; {full}")
    refused = MOVED_AWAY if error.errno == errno.ENOENT and refused == REFUSED else refused
    return DirectoryError(f"cannot write {path}: {reason}; {refused}")


def no_room(path: Path) -> DiskFull:
    """The error to raise where whoever wrote `path` says no more than that it found no room."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    is_limited = limit != resource.RLIM_INFINITY and shutil.disk_usage(path.parent).free > limit
    kind, remedy = (LimitMet, LIMIT) if is_limited else (DiskFull, ROOM)
    return kind(f"no room to write {path}: {remedy}, and begin again; what was saved is safe")


@contextmanager
def writing(path: Path, full: str = FULL, refused: str = REFUSED) -> Iterator[None]:
    """Turns an OSError of the block into the error a person can act on, as `explained` words it."""
    try:
        yield
    except OSError as error:
        raise explained(error, path, full, refused) from error


@contextmanager
def allowed(path: Path) -> Iterator[None]:
    """Who may not read `path` is told so, by a DirectoryError: it is not damaged. Other errors stay."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
        raise DirectoryError(f"cannot read {path}{whose(path)}: {os.strerror(error.errno)}; {ALLOW}") from error


def require_readable(*places: Path) -> None:
    """Raises DirectoryError for what of these files and folders this process may not read, which is not damaged, and
    for what holds up for ever whoever reads it."""
    for path in chain(places, *(place.rglob("*") for place in places)):
        with suppress(FileNotFoundError), allowed(path):
            if path.is_file() or path.is_dir():
                os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            elif path.is_fifo() or path.is_char_device():
                raise DirectoryError(f"{path} {_what(path.stat().st_mode)}: remove it, then run the command again")


def require_file(path: Path) -> None:
    """Raises OSError for what is at `path` and is no file, but a pipe or a device: reading that may never end."""
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not S_ISREG(mode) and not S_ISDIR(mode):
            raise OSError(errno.EINVAL, f"it {_what(mode)}", str(path))


def _what(mode: int) -> str:
    kind = "pipe" if S_ISFIFO(mode) else "device" if S_ISCHR(mode) else "socket"
    return f"is a {kind}, and no file"


def _opened_at_once(path: str, flags: int) -> int:
    """A descriptor of a file; nobody waits for the other end of a pipe. Raises OSError, as `require_file`."""
    require_file(Path(path))
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)


def open_file(path: Path) -> BufferedReader:
    """`path` opened to read. Raises OSError, also for what is no file: a pipe, a device."""
    return open(path, "rb", opener=_opened_at_once)


def read_whole(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a small file. Raises OSError, as `open_file`, and for one of more than `most_bytes`."""
    with open_file(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, "it is longer than what was written", str(path))
    return data


@contextmanager
def written_whole(path: Path, full: str = FULL, refused: str = REFUSED, *, synced: bool = True) -> Iterator[Path]:
    """A file in place of `path`, in one step, once the block has written it to the path it is given.

    Not `synced` is for who syncs it later, as a checkpoint does, or need not. Raises DiskFull, DirectoryError.
    """
    part = path.with_name(path.name + ".part")
    try:
        with writing(path, full, refused):
            yield part
            put_in_place(part, path, synced=synced)
    except Exception:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def put_in_place(new: Path, path: Path, *, synced: bool = True) -> None:
    """Give the file `new` the name `path`, in one step. Raises OSError."""
    if synced:
        sync_file(new)
    new.replace(path)
    if synced:
        sync_file(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """`data` as the file `path`, safe on the disk. Raises DiskFull, DirectoryError."""
    with written_whole(path) as part, part.open("wb", buffering=0) as file:
        write_all(file.fileno(), data)


def lock(path: Path, in_use: str) -> int:
    """A descriptor that holds the lock `path` until it is closed. Raises DirectoryInUse, which says `in_use`."""
    with writing(path):
        descriptor = _opened_at_once(str(path), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise DirectoryInUse(in_use) from None
        except OSError:
            os.close(descriptor)
            raise
    return descriptor


def real_path(path: Path) -> Path:
    """Where `path` leads, without links. One that leads to itself stays, while `Path.resolve` raises RuntimeError."""
    return Path(os.path.realpath(path))


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock `path`."""
    try:
        descriptor = _opened_at_once(str(path), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def open_append(path: Path, buffer_bytes: int) -> BinaryIO:
    """`path` opened to append, made if it is not there; writes are gathered to `buffer_bytes`. Raises OSError."""
    return open(path, "ab", buffering=buffer_bytes, opener=_opened_at_once)


def cut(path: Path, length: int) -> None:
    """Shorten `path` to `length` bytes, never lengthen it. Raises StateDamaged when it is shorter already, or gone."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = -1
    if size < length:
        was = f"{size:,} bytes long" if size >= 0 else "gone"
        raise damaged(path, f"it is {was}, but the checkpoint recorded {length:,}")
    if size > length:
        with writing(path):
            os.truncate(path, length)


def damaged(path: Path, what: str) -> StateDamaged:
    """The error for the file `path` of a crawl, in a line that says what to do."""
    folder = path.parent.parent if path.parent.name.startswith("shard-") else path.parent  # in state/, tables/ or warc/
    return StateDamaged(f"{path} is damaged: {what}; fyke check --repair {folder.parent} mends what can be mended")


def raw(array: npt.NDArray[Any]) -> memoryview:
    """The bytes of an array of any dtype, [n], without a copy when it is contiguous."""
    return np.ascontiguousarray(array).view(np.uint8).data if len(array) else memoryview(b"")


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write `array`, [n], as the .npy file `path`. Raises OSError, which says why; that of `np.save` does not."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(raw(array))


def mapped_zeros(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Zeros, [shape], in a new file at `path`, mapped to be written. Raises DiskFull, DirectoryError.

    Their room is taken at once: a process that writes where a mapped file has none is killed (SIGBUS).
    """
    with writing(path), path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, math.prod(shape) * np.dtype(dtype).itemsize)
    return np.memmap(path, dtype, "r+", shape=shape)


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


def sync_open(file: IO[Any]) -> None:
    """Wait until all that was written to `file` is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_all(path: Path) -> None:
    """Wait until all of the file system that holds `path` is on the disk: for files too many to wait for each."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _libc.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def verify_file(path: Path, stretches: Iterable[Sequence[int]]) -> None:
    """Read the stretches of `path`, each given by its begin, its end and its xxh3-64. Raises StateDamaged when a byte
    is another."""
    with Reader(path) as reader:
        for begin, end, recorded in stretches:
            digest = xxhash.xxh3_64()
            for at in range(begin, end, READ_BYTES):
                digest.update(reader.read(at, min(READ_BYTES, end - at)))
            if digest.intdigest() != recorded:
                raise damaged(path, f"its bytes from {begin:,} to {end:,} are not those that were written")


class Opened(Closing):
    """Who has a descriptor, until it is closed."""

    _descriptor = -1

    def close(self) -> None:
        """Give the descriptor back; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Appender(Opened):
    """A file that grows. Its length so far, and the digest of what was written to it, are what the next checkpoint
    records."""

    def __init__(self, path: Path, length: int, on_growth: Callable[[int], None], digest: xxhash.xxh3_64) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        with writing(path):
            self._descriptor = os.open(path, flags if length else flags | os.O_CREAT, 0o644)
        self._path = path
        self._on_growth = on_growth
        self._digest = digest
        self.length = length

    def __repr__(self) -> str:
        return f"Appender({self._path.name}, {self.length} bytes)"

    def write(self, data: Bytes) -> None:
        """Append `data`. Raises DiskFull or DirectoryError; then the file may end in a torn piece."""
        with writing(self._path):
            write_all(self._descriptor, data)
        self._digest.update(data)
        self.length += len(data)
        self._on_growth(self.length)


class Reader(Opened):
    """A file read at positions, never mapped, so that what was read does not count as our memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # nobody waits for a pipe
        except FileNotFoundError:
            raise damaged(path, "it is gone") from None
        mode = os.fstat(self._descriptor).st_mode
        if not S_ISREG(mode):
            self.close()
            raise damaged(path, "it is a folder" if S_ISDIR(mode) else "it is no file")

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
