"""Folders for temporary files, each locked by the run that made it.

Invariant: no folder is left for ever. The next run that needs one in the same place removes those of killed runs, and
no run removes the folder of a live one.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fyke.core.errors import FykeError
from fyke.disk.files import lock, remove_locked

HELD = "held-by-fyke"  # in each of these folders: locked while it is used


@contextmanager
def scratch(prefix: str, folder: Path | None = None) -> Iterator[Path]:
    """Make a folder in `folder`, or among the temporary ones, whose name begins with `prefix`; remove it when the block
    ends. Raises OSError."""
    beside = Path(tempfile.gettempdir()) if folder is None else folder
    for left in beside.glob(f"{prefix}*/{HELD}"):
        _remove_if_left(left)
    with ExitStack() as held:
        place = _held(prefix, beside, held)
        while not (place / HELD).exists():  # another run removed it as left behind, before it was locked
            place = _held(prefix, beside, held)
        yield place


def _held(prefix: str, folder: Path, held: ExitStack) -> Path:
    place = Path(tempfile.mkdtemp(dir=folder, prefix=prefix))
    with suppress(FileNotFoundError):
        descriptor = os.open(place / HELD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        held.callback(_remove, place, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return place


def _remove_if_left(held: Path) -> None:
    """Remove the folder of the file `held` if no process has that locked."""
    if held.parent.is_symlink() or held.parent.lstat().st_uid != os.geteuid():
        return
    with suppress(FykeError, OSError):
        _remove(held.parent, lock(held, ""))


def _remove(place: Path, descriptor: int) -> None:
    """Remove a folder that `descriptor` holds; the file that marks it as removable goes last."""
    for path in place.iterdir() if place.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != HELD:
            with suppress(OSError):
                path.unlink()
    remove_locked(place, descriptor)
