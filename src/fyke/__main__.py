"""The command `fyke`, also as `python -m fyke`: a process of our own, that gives freed memory back.

A crawl's memory is flat, but what allocators keep of it is not. glibc raises the size from which it maps blocks by
themselves whenever a larger one is freed, up to 32 MiB, and the columns of a merge then leave holes in its heap;
Arrow's own allocator keeps what it once had. With both told to give large blocks back, a crawl of three million URLs
holds 220 MB and not 270, at the same speed. The Python interface leaves the process it is used in as it is.
"""

import ctypes
import os

MAPPED_BYTES = 256 << 10  # blocks from this size on are mapped by themselves, and unmapped when freed
TRIM_BYTES = 1 << 20  # of the heap's end, more than this goes back
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


def main() -> None:
    """The entry point: `fyke.cli` does the rest."""
    give_back()
    from fyke import cli  # noqa: PLC0415 - it loads Arrow

    cli.main()


if __name__ == "__main__":
    main()
