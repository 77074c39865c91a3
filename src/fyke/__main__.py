"""The command `fyke`, also as `python -m fyke`: a process of our own.

It gives freed memory back. A crawl's memory is flat, but what allocators keep of it is not. glibc raises the size from
which it maps blocks by themselves whenever a larger one is freed, up to 32 MiB, and the columns of a merge then leave
holes in its heap; Arrow's own allocator keeps what it once had. With both told to give large blocks back, a crawl of
three million URLs holds 220 MB and not 270, at the same speed. The Python interface leaves the process it is used in
as it is.

It ends quietly. Python makes of Ctrl-C an exception, wherever it is: while the program is loaded and when it ends,
that is a traceback. So both are done with the system's own way, the end of the process; `fyke.cli.rooms` sets
the exception again for the time between. For that, this module imports next to nothing.
"""

import _signal as signal  # type: ignore[import-not-found]  # `signal` loads modules, and Ctrl-C in them is a traceback
import os
import sys

MAPPED_BYTES = 256 << 10  # blocks from this size on are mapped by themselves, and unmapped when freed
TRIM_BYTES = 16 << 20  # of the heap's end, more than this goes back; the tree of the next large page wants as much
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)


def give_back() -> None:
    """Have large blocks returned when they are freed. To be called before Arrow is loaded; elsewhere than with glibc
    there is no mallopt(3), and it is asked for Arrow's alone.
    """
    import ctypes  # noqa: PLC0415 - Ctrl-C comes first

    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        tune(_M_TRIM_THRESHOLD, TRIM_BYTES)


def end_quietly() -> None:
    """Ctrl-C ends the process from now on, unless whoever started it has it ignore that."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """The entry point: `fyke.cli` does the rest."""
    end_quietly()
    give_back()
    try:
        from fyke import cli  # noqa: PLC0415 - Ctrl-C comes first, and mallopt before Arrow

        cli.main()
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "fyke"):
            raise  # our own mistake
        again = "" if isinstance(error, ModuleNotFoundError) else "--force-reinstall "
        sys.exit(
            f"fyke: the Python package {package} cannot be loaded ({error}); install it:"
            f" {sys.executable} -m pip install {again}{package}"
        )
    finally:
        end_quietly()


if __name__ == "__main__":
    main()
