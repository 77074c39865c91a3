"""How much memory does this process have, and how is what it freed given back?

A crawl's memory is flat, but what allocators keep of it is not. glibc raises the size from which it maps blocks by
themselves whenever a larger one is freed, up to 32 MiB, and the columns of a merge then leave holes in its heap;
Arrow's own allocator keeps what it once had. With both told to give large blocks back, a crawl of three million URLs
holds 220 MB and not 270, at the same speed.

What a large page took is many small blocks, and between them lie those that outlive it. So the heap does not shrink by
itself, and a crawl that met several such pages held twice what it needed. `Trimmer` has the system take it back. What
grows piece by piece would go from one such gap to the next, and is given its room at once (`roomy`).

Loading libraries reads 110 MB of their files, of which a crawl needs half: `let_go_of_libraries`.
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
MAPPED_BYTES = 512 << 10  # blocks from this size on are mapped by themselves; what compresses a record wants 350 KB
TRIM_BYTES = 16 << 20  # of the heap's end, more than this goes back; the tree of the next large page wants as much
GROWN_BYTES = 16 << 20
GAUGE_S = 3.0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)


def give_back() -> None:
    """Have large blocks returned when they are freed. To be called before Arrow is loaded; elsewhere than with glibc
    there is no mallopt(3), and it is asked for Arrow's alone.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        tune(_M_TRIM_THRESHOLD, TRIM_BYTES)


def let_go_of_libraries() -> None:
    """Have the files of libraries leave memory: what is used of them comes back by itself. To be called when all are
    loaded; elsewhere than with Linux nothing happens."""
    smaps = Path("/proc/self/smaps")
    advise = getattr(ctypes.CDLL(None), "madvise", None)
    if advise is not None and smaps.exists():
        for begin, end in _of_files(smaps.read_text()):
            advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)


def _of_files(smaps: str) -> Iterator[tuple[int, int]]:
    """Where files lie that cannot be written there, and were not when they were loaded: see smaps in proc(5)."""
    place, is_of_file = "", False
    for first, *rest in map(str.split, smaps.splitlines()):
        if not first.endswith(":"):
            place, is_of_file = first, rest[0].startswith("r-") and rest[0].endswith("p") and rest[3] != "0"
        elif first == "Anonymous:" and rest[0] == "0" and is_of_file:
            begin, _, end = place.partition("-")
            yield int(begin, 16), int(end, 16)


def roomy(most_bytes: int) -> BytesIO:
    """A buffer for about so many bytes, to be `taken`: what is large is mapped, and memory has what was written.
    Without room it would grow into what lies free in the heap, from place to place, and leave as much behind: 80 MB of
    64."""
    return BytesIO(bytes(most_bytes) if most_bytes > MAPPED_BYTES else b"")


def taken(buffer: BytesIO) -> bytes:
    """What was written into a `roomy` buffer."""
    buffer.truncate()
    return buffer.getvalue()


class Trimmer:
    """Gives back what lies free in the heaps, when that has grown: some 10 ms for 100 MB."""

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        self._least_bytes = _loose_bytes()  # after it was trimmed, or since

    def __repr__(self) -> str:
        return f"Trimmer({self._least_bytes})"

    def trim(self) -> None:
        """To be called when much may have been freed. Other threads may go on meanwhile."""
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
    """What was asked of malloc and not freed, in bytes: it takes up to a millisecond. 0 elsewhere than with glibc."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return 0
    ask.restype = _Allocated
    found = ask()
    return int(found.used + found.mapped)


def _loose_bytes() -> int:
    """Resident memory beside what was asked of malloc: of it, what lies free in the heaps comes and goes."""
    return _resident_bytes() - allocated_bytes()


def memory_bytes(process: int | str = "self") -> int:
    """Resident memory of this process, or of another by its number (0 where it is gone), in bytes. Of what several
    processes share, such as libraries, its part counts ("proportional set size", proc_pid_smaps(5)): so the memory of
    several may be added up."""
    try:
        return _kilobytes(f"/proc/{process}/smaps_rollup", "Pss:") * 1024
    except (OSError, StopIteration):  # not every kernel has it, nor every container shows it
        return _resident_bytes(process)


def _resident_bytes(process: int | str = "self") -> int:
    """The same, but what is shared counts whole, and it is read in microseconds. 0 where there is no /proc as well."""
    statm = Path(f"/proc/{process}/statm")
    return int(statm.read_text().split()[1]) * PAGE_BYTES if statm.exists() else 0


class MemoryGauge:
    """`memory_bytes` for who asks often: the system walks through all pages for it, which takes it milliseconds."""

    def __init__(self, process: int | str = "self") -> None:
        self._process = process
        self._read_at = -inf
        self._bytes = 0

    def __repr__(self) -> str:
        return f"MemoryGauge({self._bytes})"

    def read(self, now: float) -> int:
        """Memory at `now` (seconds of any clock), or up to `GAUGE_S` before."""
        if not self._read_at <= now < self._read_at + GAUGE_S:
            self._read_at, self._bytes = now, memory_bytes(self._process)
        return self._bytes


def peak_memory_bytes() -> int:
    """The most resident memory this process had, in bytes, what it shares among it.

    From /proc, since getrusage also counts what the process was before it became this program: its parent.
    """
    return _kilobytes("/proc/self/status", "VmHWM:") * 1024


def _kilobytes(path: str, name: str) -> int:
    return next(int(line.split()[1]) for line in Path(path).read_text().splitlines() if line.startswith(name))
