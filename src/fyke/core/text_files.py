"""Files that a person wrote, and pipes in place of them: settings, rules, cookies, secrets, lists of seeds.

Invariant: nobody waits for ever for what nobody writes, and what has no end is read as far as it may be.
"""

import errno
import os
from pathlib import Path

MOST_TEXT = 64 << 20  # characters


def require_writer(path: Path) -> None:
    """Raises OSError for a pipe that has a name of its own: who opens it waits until somebody writes into it, maybe for
    ever. That of a shell's `<(command)` or of stdin has its writer, and no such name."""
    if path.is_fifo() and os.path.lexists(os.path.realpath(path)):
        raise OSError(errno.EINVAL, "it is a named pipe, into which nobody may ever write: name a file", str(path))


def text_of(path: Path, most: int = MOST_TEXT) -> str:
    """The text of a file or pipe. Raises OSError, as `require_writer` does, ValueError for more than `most` characters
    and for what is no UTF-8."""
    require_writer(path)
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it has more than {most >> 20} MB")
    return text
