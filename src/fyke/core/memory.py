"""How much memory does this process have, and how does it give freed memory back?

A crawl's memory is flat, but allocators keep freed memory.

- Large blocks (`give_back`): glibc maps blocks from some size on by themselves, and raises that size, up to 32 MiB,
  whenever a larger one is freed. The columns of a merge then leave holes in its heap. Arrow's allocator keeps
  all memory it ever had. With both told to give large blocks back, a crawl of three million URLs holds 220 MB and
  not 270, at the same speed.
- Small blocks (`Trimmer`): a large page takes many, with longer-lived ones between them. So the heap does not shrink
  by itself, and a crawl that met several large pages held twice the memory it needed.
- Growing buffers (`roomy`) would move from gap to gap, and get their room at once.
- Libraries (`let_go_of_libraries`): loading them reads 110 MB of their files, of which a crawl needs half.
"""

import ctypes
import mmap
import os
import resource
from collections.abc import Iterator
from io import BytesIO
from math import inf
from pathlib import Path

PAGE_BYTES = resource.getpagesize()
MAPPED_BYTES = 512 << 10  # blocks from this size on are mapped by themselves; compressing a record takes 350 KB
TRIM_BYTES = 16 << 20  # more free bytes than this at the heap's end go back; the tree of a large page takes as much
GROWN_BYTES = 16 << 20
GAUGE_S = 3.0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)


def give_back() -> None:
    """Have large blocks returned when they are freed. Call it before Arrow is loaded. Without glibc there is no
    mallopt(3), and only Arrow's allocator is set.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        tune(_M_TRIM_THRESHOLD, TRIM_BYTES)


def let_go_of_libraries() -> None:
    """Have the files of libraries leave memory; used pages come back by themselves. Call it when all are loaded. Does
    nothing without Linux."""
    smaps = Path("/proc/self/smaps")
    advise = getattr(ctypes.CDLL(None), "madvise", None)
    if advise is not None and smaps.exists():
        for begin, end in _of_files(smaps.read_text()):
            advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)


def _of_files(smaps: str) -> Iterator[tuple[int, int]]:
    """Yield the addresses of mapped files that are read-only and were not changed by loading (smaps in proc(5))."""
    place, is_of_file = "", False
    for first, *rest in map(str.split, smaps.splitlines()):
        if not first.endswith(":"):
            place, is_of_file = first, rest[0].startswith("r-") and rest[0].endswith("p") and rest[3] != "0"
        elif first == "Anonymous:" and rest[0] == "0" and is_of_file:
            begin, _, end = place.partition("-")
            yield int(begin, 16), int(end, 16)


def roomy(most_bytes: int) -> BytesIO:
    """Return a buffer for about `most_bytes`, to be `taken`. A large one is mapped, and takes memory only for bytes
    written. Without room it would grow from gap to gap in the heap and leave as much behind: 80 MB for 64."""
    return BytesIO(bytes(most_bytes) if most_bytes > MAPPED_BYTES else b"")


def taken(buffer: BytesIO) -> bytes:
    """Return the bytes written into a `roomy` buffer."""
    buffer.truncate()
    return buffer.getvalue()


class Trimmer:
    """Gives back free memory in the heaps when it has grown: some 10 ms for 100 MB."""

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        self._least_bytes = _loose_bytes()  # since the last trim

    def __repr__(self) -> str:
        return f"Trimmer({self._least_bytes})"

    def trim(self) -> None:
        """Trim the heaps if their free memory has grown by `GROWN_BYTES`. Other threads may go on meanwhile."""
        now_bytes = _loose_bytes()
        if self._trim is not None and now_bytes - self._least_bytes > GROWN_BYTES:
            self._trim(0)
            now_bytes = self._least_bytes = _loose_bytes()
        self._least_bytes = min(self._least_bytes, now_bytes)


class _Allocated(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "free", "small", "maps", "mapped", "_a", "_b", "used", "left", "_c")
    )


def allocated_bytes() -> int:
    """Return the bytes allocated by malloc and not freed, 0 without glibc. Takes up to a millisecond."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return 0
    ask.restype = _Allocated
    found = ask()
    return int(found.used + found.mapped)


def _loose_bytes() -> int:
    """Return resident memory without allocated bytes. Of it, only free memory in the heaps comes and goes."""
    return _resident_bytes() - allocated_bytes()


def memory_bytes(process: int | str = "self") -> int:
    """Return the resident memory of this process, or of another by its number (0 if it is gone), in bytes.

    Memory that processes share, such as libraries, counts in part ("proportional set size", proc_pid_smaps(5)), so
    that the memory of several may be added up.
    """
    try:
        return _kilobytes(f"/proc/{process}/smaps_rollup", "Pss:") * 1024
    except (OSError, StopIteration):  # not every kernel has it, nor every container shows it
        return _resident_bytes(process)


def _resident_bytes(process: int | str = "self") -> int:
    """Return resident memory with shared memory in full, 0 without /proc. Takes microseconds."""
    statm = Path(f"/proc/{process}/statm")
    return int(statm.read_text().split()[1]) * PAGE_BYTES if statm.exists() else 0


class MemoryGauge:
    """`memory_bytes` for frequent calls, because the system takes milliseconds to walk through all pages."""

    def __init__(self, process: int | str = "self") -> None:
        self._process = process
        self._read_at = -inf
        self._bytes = 0

    def __repr__(self) -> str:
        return f"MemoryGauge({self._bytes})"

    def read(self, now: float) -> int:
        """Return the memory at `now` (seconds of any clock), or up to `GAUGE_S` before."""
        if not self._read_at <= now < self._read_at + GAUGE_S:
            self._read_at, self._bytes = now, memory_bytes(self._process)
        return self._bytes


def peak_memory_bytes() -> int:
    """Return the most resident memory this process had, in bytes, with shared memory in full.

    Read from /proc, because getrusage also counts the process before it became this program: its parent.
    """
    return _kilobytes("/proc/self/status", "VmHWM:") * 1024


def _kilobytes(path: str, name: str) -> int:
    return next(int(line.split()[1]) for line in Path(path).read_text().splitlines() if line.startswith(name))
