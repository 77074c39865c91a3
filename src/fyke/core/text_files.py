"""Files that a person wrote, or pipes in place of them: settings, rules, cookies, secrets, lists of seeds.

Invariant: no read waits for ever for a writer, and a file without an end is read up to a limit.
"""

import errno
import os
from pathlib import Path

MOST_TEXT = 64 << 20  # characters


def require_writer(path: Path) -> None:
    """Raise OSError if `path` is a named pipe: opening it waits for a writer, maybe for ever. The pipe of a shell's
    `<(command)` or of stdin has a writer and no name of its own."""
    if path.is_fifo() and os.path.lexists(os.path.realpath(path)):
        raise OSError(errno.EINVAL, "it is a named pipe, which may never end: name a file", str(path))


def text_of(path: Path, most: int = MOST_TEXT) -> str:
    """Return the text of a file or pipe. Raises OSError, also as `require_writer` does. Raises ValueError for more than
    `most` characters and for text that is not UTF-8."""
    require_writer(path)
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it has more than {most >> 20} MB")
    return text
