"""What a failed write means: one line for a person, made where the store touches the disk.

Called by every writer of this room. Invariant: no `OSError` of a write leaves the room; it becomes
`DiskFull` when there is no space, `DirectoryError` otherwise.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fyke.core.errors import DirectoryError, DiskFull, FykeError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def explained(error: OSError, path: Path) -> FykeError:
    """The error to raise in place of `error`, met while writing `path`."""
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        return DiskFull(f"cannot write {path}: {reason}; free some space, then resume the crawl")
    return DirectoryError(f"cannot write {path}: {reason}; mend the folder's permissions or disk, then resume")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an OSError of the block into the error a person can act on."""
    try:
        yield
    except OSError as error:
        raise explained(error, path) from error
