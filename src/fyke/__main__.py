"""The command `fyke`, also as `python -m fyke`: a process of our own.

It gives freed memory back (`fyke.core.memory.give_back`); the Python interface leaves its process as it is.

It ends quietly. Python makes an exception of Ctrl-C, and so a traceback while the program is loaded and when it ends.
At both times Ctrl-C thus ends the process; `fyke.cli.rooms` sets the exception again for the time between. For that,
this module imports next to nothing.
"""

import _signal as signal  # type: ignore[import-not-found]  # `signal` loads modules, and Ctrl-C in them is a traceback
import os
import sys

_STACK_BYTES = 512 << 10  # a quarter of this reads pages of the greatest depth; with a tenth, one kills the process
# Libraries take far more addresses than memory, for each thread; with too few they end the process, or hang.
_ADDRESSES, _MORE_ADDRESSES = 1 << 30, 2 << 30
_OF_WHOLE_ARCHIVES = {"copy", "export", "extract", "index", "links", "report"}  # commands that need more addresses
_NO_MEMORY = ("failed to map segment", "Cannot allocate memory", "cannot allocate memory")  # as the loader says it


def end_quietly() -> None:
    """Have Ctrl-C end the process from now on, unless whoever started the process has it ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _take_closed_streams() -> None:
    """Open the null device in place of closed standard streams: the next file opened would take their place, and libuv
    ends a process that closes it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number is this one


def _too_little() -> str:
    """Say if the null device is missing, or stack or addresses are too few for Fyke and its threads; empty if not."""
    import resource  # noqa: PLC0415 - Ctrl-C comes first

    if not os.access(os.devnull, os.R_OK | os.W_OK):
        return f"there is no {os.devnull} to be written: mount /dev in this container or chroot, then run it again"

    def allowed(limit: int, needed: int) -> int:
        """Return what is allowed if it is less than `needed`; otherwise 0."""
        soft, _ = resource.getrlimit(limit)
        return soft if soft != resource.RLIM_INFINITY and soft < needed else 0

    if stack := allowed(resource.RLIMIT_STACK, _STACK_BYTES):
        needed_kb = _STACK_BYTES >> 10
        return f"this process may have {stack >> 10} kB of stack, and needs {needed_kb}: raise the limit (ulimit -s)"
    command = sys.argv[1] if len(sys.argv) > 1 else "--help"
    needed = _MORE_ADDRESSES if command in _OF_WHOLE_ARCHIVES else _ADDRESSES
    if not command.startswith("-") and (addresses := allowed(resource.RLIMIT_AS, needed)):
        return (
            f"this process may have {addresses >> 20} MB of address space, and needs {needed >> 20}:"
            " raise the limit (ulimit -v)"
        )
    return ""


def _what_to_do(error: ImportError) -> str:
    """Say what is missing, and how to get it; empty if that is our own mistake."""
    if any(words in str(error) for words in _NO_MEMORY):
        return "this process may not have as much memory as it needs: raise the limit (ulimit -v)"
    file = (error.path or "").rpartition("site-packages/")[2]  # a library's name lacks that of its package
    package = (file.partition("/")[0] if "/" in file else error.name or "").partition(".")[0]
    if package in ("", "fyke"):
        return ""
    package = "backports.zstd" if package == "backports" else package
    again = "" if isinstance(error, ModuleNotFoundError) else "--force-reinstall "
    return (
        f"the Python package {package} cannot be loaded ({error}); install it:"
        f" {sys.executable} -m pip install {again}{package}"
    )


def _complain(said: str) -> None:
    print(f"fyke: {said}", file=sys.stderr)
    sys.exit(2)  # 1 is an answer of some commands: nothing was found, links are broken


def main() -> None:
    """Run the command: `fyke.cli` does the rest."""
    end_quietly()
    if said := _too_little():
        _complain(said)
    _take_closed_streams()
    try:
        from fyke.core.memory import give_back  # noqa: PLC0415 - Ctrl-C comes first

        give_back()
        from fyke import cli  # noqa: PLC0415 - Arrow is loaded with it

        cli.main()
    except ImportError as error:
        said = _what_to_do(error)
        if not said:
            raise
        _complain(said)
    finally:
        end_quietly()


if __name__ == "__main__":
    main()
