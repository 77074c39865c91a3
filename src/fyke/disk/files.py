"""File operations for all rooms: write whole, lock, append, cut, sync, read at positions.

Invariant: no `OSError` of a write leaves `writing`; it becomes `DiskFull` if there is no space, `DirectoryError`
otherwise. `written_whole` leaves the new file whole or the old one as it was, also after a power cut.
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
REFUSED = "fix the folder's permissions or disk, then run the same command again"
MOVED_AWAY = "its folder was moved or deleted: put it back, then run the same command again"
READ_BYTES = 1 << 20  # at a time, when a file is read to its end
MOST_BYTES = 1 << 28  # of a file that is read into memory whole
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_libc = ctypes.CDLL(None, use_errno=True)


def explained(error: OSError, path: Path, full: str = FULL, refused: str = REFUSED) -> FykeError:
    """Return the error to raise for `error`, met while writing `path`; `full` and `refused` say what to do."""
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        full = full.replace(ROOM, LIMIT) if error.errno == errno.EFBIG else full
        return (DiskFull if error.errno == errno.ENOSPC else LimitMet)(f"cannot write {path}: {reason}; {full}")
    refused = MOVED_AWAY if error.errno == errno.ENOENT and refused == REFUSED else refused
    return DirectoryError(f"cannot write {path}: {reason}; {refused}")


def no_room(path: Path) -> DiskFull:
    """Return the error to raise if a library that wrote `path` says only that it found no room."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    is_limited = limit != resource.RLIM_INFINITY and shutil.disk_usage(path.parent).free > limit
    kind, remedy = (LimitMet, LIMIT) if is_limited else (DiskFull, ROOM)
    return kind(f"no room to write {path}: {remedy}, and run the command again; what was saved is safe")


def means_no_room(told: str) -> bool:
    """Return whether a library `told` in its words that it found no room."""
    return any(os.strerror(number) in told for number in _NO_SPACE)


class writing:  # noqa: N801 - read as a function is
    """Turn an OSError of the block into the error that `explained` returns.

    A generator would do, but since Python 3.13 the error would hold on to itself by its frame, and so to all that the
    frames around hold, until garbage is collected.
    """

    def __init__(self, path: Path, full: str = FULL, refused: str = REFUSED) -> None:
        self._path, self._full, self._refused = path, full, refused

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise explained(error, self._path, self._full, self._refused) from error


@contextmanager
def allowed(path: Path) -> Iterator[None]:
    """Raise DirectoryError if the block may not read `path`, which is then not damaged. Other errors stay."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
        raise DirectoryError(f"cannot read {path}{whose(path)}: {os.strerror(error.errno)}; {ALLOW}") from error


def require_readable(*places: Path) -> None:
    """Raise DirectoryError if this process may not read one of these files and folders, or one is a pipe or device.

    A file that may not be read is not damaged; reading a pipe may never end.
    """
    for path in chain(places, *(place.rglob("*") for place in places)):
        with suppress(FileNotFoundError), allowed(path):
            if path.is_file() or path.is_dir():
                os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            elif path.is_fifo() or path.is_char_device():
                raise DirectoryError(f"{path} {_what(path.stat().st_mode)}: remove it, then run the command again")


def require_file(path: Path) -> None:
    """Raise OSError if `path` is a pipe, a device or a socket: reading it may never end."""
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not S_ISREG(mode) and not S_ISDIR(mode):
            raise OSError(errno.EINVAL, f"it {_what(mode)}", str(path))


def _what(mode: int) -> str:
    kind = "pipe" if S_ISFIFO(mode) else "device" if S_ISCHR(mode) else "socket"
    return f"is a {kind}, not a file"


def _opened_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe; return its descriptor. Raises OSError, as
    `require_file`."""
    require_file(Path(path))
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)


def open_file(path: Path) -> BufferedReader:
    """Open `path` to read. Raises OSError, also for a pipe or a device."""
    return open(path, "rb", opener=_opened_at_once)


def read_whole(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a small file. Raises OSError, as `open_file`, and for a file of more than `most_bytes`."""
    with open_file(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, "it is longer than what was written", str(path))
    return data


@contextmanager
def written_whole(path: Path, full: str = FULL, refused: str = REFUSED, *, synced: bool = True) -> Iterator[Path]:
    """Yield a path for the block to write a file to, then put that in place of `path` in one step.

    Pass `synced=False` if the file is synced later, as by a checkpoint, or need not be. Raises DiskFull,
    DirectoryError.
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
    """Write `data` as the file `path`, and sync it. Raises DiskFull, DirectoryError."""
    with written_whole(path) as part, part.open("wb", buffering=0) as file:
        write_all(file.fileno(), data)


def lock(path: Path, in_use: str) -> int:
    """Lock `path`; return a descriptor that holds the lock until it is closed. Raises DirectoryInUse(`in_use`)."""
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
    """Return `path` without links. A link to itself stays, whereas `Path.resolve` raises RuntimeError."""
    return Path(os.path.realpath(path))


def remove_locked(folder: Path, descriptor: int) -> None:
    """Remove `folder` with all that is in it, and let go of its lock, which `descriptor` holds. On NFS and FUSE a file
    that is open when it is deleted stays under another name until it is closed, and its folder with it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
    with suppress(OSError):
        folder.rmdir()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock `path`."""
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
    """Open `path` to append, made if missing; writes are gathered to `buffer_bytes`. Raises OSError."""
    return open(path, "ab", buffering=buffer_bytes, opener=_opened_at_once)


def cut(path: Path, length: int) -> None:
    """Shorten `path` to `length` bytes. Raises StateDamaged if it is shorter already, or gone."""
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
    """Return the error for the damaged file `path` of a crawl, which says what to do."""
    folder = path.parent.parent if path.parent.name.startswith("shard-") else path.parent  # in state/, tables/ or warc/
    return StateDamaged(f"{path} is damaged: {what}; fyke check --repair {folder.parent} repairs what it can")


def raw(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array of any dtype, [n], without a copy if it is contiguous."""
    return np.ascontiguousarray(array).view(np.uint8).data if len(array) else memoryview(b"")


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write `array`, [n], as the .npy file `path`. Raises OSError with the reason, which `np.save` leaves out."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(raw(array))


def mapped_zeros(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Make a file of zeros, [shape], at `path`, and map it to be written. Raises DiskFull, DirectoryError.

    The disk space is taken at once: a process that writes to a mapped file without space is killed (SIGBUS).
    """
    with writing(path), path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, math.prod(shape) * np.dtype(dtype).itemsize)
    return np.memmap(path, dtype, "r+", shape=shape)


def write_all(descriptor: int, data: Bytes) -> None:
    """Write all of `data`, even if the system takes only a part at a time."""
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
    """Wait until the whole file system that holds `path` is on the disk: for files too many to sync one by one."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _libc.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def verify_file(path: Path, stretches: Iterable[Sequence[int]]) -> None:
    """Read the stretches of `path`, each given as begin, end and xxh3-64. Raises StateDamaged if a byte changed."""
    with Reader(path) as reader:
        for begin, end, recorded in stretches:
            digest = xxhash.xxh3_64()
            for at in range(begin, end, READ_BYTES):
                digest.update(reader.read(at, min(READ_BYTES, end - at)))
            if digest.intdigest() != recorded:
                raise damaged(path, f"its bytes from {begin:,} to {end:,} are not those that were written")


class Opened(Closing):
    """An owner of a descriptor."""

    _descriptor = -1

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Appender(Opened):
    """A file that grows. The next checkpoint records its length and the digest of the bytes written."""

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
        """Append `data`. Raises DiskFull or DirectoryError; the file may then end in a part of `data`."""
        with writing(self._path):
            write_all(self._descriptor, data)
        self._digest.update(data)
        self.length += len(data)
        self._on_growth(self.length)


class Reader(Opened):
    """A file read at positions, never mapped, so that its pages do not count as our memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # does not wait for a pipe
        except FileNotFoundError:
            raise damaged(path, "it is gone") from None
        mode = os.fstat(self._descriptor).st_mode
        if not S_ISREG(mode):
            self.close()
            raise damaged(path, "it is a folder" if S_ISDIR(mode) else "it is not a file")

    def __repr__(self) -> str:
        return f"Reader({str(self.path)!r})"

    def size(self) -> int:
        """Return how many bytes the file has now."""
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Return exactly `size` bytes from `offset`. Raises StateDamaged if the file ends before."""
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
        """Return items `start` to `start + count` of a file of nothing but `dtype`; read-only, [count]."""
        return np.frombuffer(self.read(start * dtype.itemsize, count * dtype.itemsize), dtype)
