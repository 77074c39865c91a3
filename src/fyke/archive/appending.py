"""Files that only grow, and are cut back to a recorded length after a crash.

Used by the WARC writer and the tables' journals. Invariant: `cut` never lengthens a file.
"""

from pathlib import Path
from typing import BinaryIO

from fyke.disk.files import damaged


def open_append(path: Path, buffer_bytes: int) -> BinaryIO:
    """`path` opened to append, made if it is not there; writes are gathered to `buffer_bytes`."""
    return path.open("ab", buffering=buffer_bytes)


def cut(path: Path, length: int) -> None:
    """Shorten `path` to `length` bytes. Raises StateDamaged when it is shorter already, or gone."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = -1
    if size < length:
        was = f"{size:,} bytes long" if size >= 0 else "gone"
        raise damaged(path, f"it is {was}, but the checkpoint recorded {length:,}")
    if size > length:
        with path.open("r+b") as file:
            file.truncate(length)
