"""What does a person type? The command line.

Each command gathers what was asked, calls one room, and prints. A `FykeError` becomes one line on stderr and its exit
status; any other exception is our own bug and shows its trace. The commands in the other modules belong to `app`; they
find the rooms they call in `rooms`, so that each loads only what it needs.
"""

import errno
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import typer

from fyke.cli import crawling, owners, readers, trying  # noqa: F401 - they add their commands, in this order
from fyke.cli.app import app
from fyke.cli.console import EXIT_PIPE_CLOSED, discard_last_flush
from fyke.core.errors import (
    EXIT_INTERRUPTED,
    EXIT_UNABLE,
    LIMIT,
    ROOM,
    ConfigurationError,
    DirectoryError,
    DiskFull,
    FykeError,
    whose,
)
from fyke.core.terminal import clean

MOST_LETTERS = 4000  # of a complaint

# Since 0.20-odd typer carries click inside under a private name; its public class leads to the one we need.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def main() -> None:
    """Run the `fyke` command: every mistake is one line on stderr and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # letters that a terminal lacks must not end the command
            stream.reconfigure(errors="backslashreplace")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns of a home that it cannot write and does not need
    try:
        _check_letters(sys.argv[1:])
        sys.exit(_status())
    except FykeError as error:
        _complain(str(error), error.exit_status)
    except _UsageError as error:
        _complain_of_usage(error)
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted", EXIT_INTERRUPTED)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            raise
        _complain(
            "this process may not have as much memory as it needs: raise the limit (ulimit -v, ulimit -u)", EXIT_UNABLE
        )
    except OSError as error:  # of a file that only this command reads or writes, such as stdout
        discard_last_flush(sys.stdout)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            _complain(
                "this process may not have as many files open as it needs: raise the limit (ulimit -n)", EXIT_UNABLE
            )
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = LIMIT if error.errno == errno.EFBIG else ROOM if full else "fix the file or its path"
        what = f"{error.filename}{whose(Path(str(error.filename)))}" if error.filename else "cannot print"
        _complain(
            f"{what}: {error.strerror or error}; {remedy}, and run the command again",
            (DiskFull if full else DirectoryError).exit_status,
        )


def _status() -> int:
    """Return the exit status of the command.

    If nobody reads its help to the end, Typer ends the process itself, with 1.
    """
    try:
        return app(prog_name="fyke", standalone_mode=False) or 0
    except SystemExit as end:
        unread = end.code == 1 and isinstance(end.__context__, BrokenPipeError)
        raise SystemExit(EXIT_PIPE_CLOSED if unread else end.code) from None


def _check_letters(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not UTF-8, because Arrow, SQLite, TOML and JSON take no other folder's name, URL or
    word."""
    for argument in arguments:
        try:
            os.fsencode(argument).decode()
        except UnicodeDecodeError:
            shown = os.fsencode(argument).decode(errors="backslashreplace")
            raise ConfigurationError(f"{shown} is not UTF-8: rename the file or folder, or choose another") from None


def _complain(text: str, status: int) -> NoReturn:
    line = " ".join(text.split())
    if len(line) > MOST_LETTERS:  # it repeats a value as long
        line = f"{line[: MOST_LETTERS // 2]}…{line[-MOST_LETTERS // 2 :]}"
    with suppress(OSError):
        print(clean(f"fyke: {line}"), file=sys.stderr)
    sys.exit(status)


def _complain_of_usage(error: Any) -> NoReturn:
    command = error.ctx.command_path if error.ctx else "fyke"
    if error.__class__.__name__ == "NoArgsIsHelpError":  # a look around, not a mistake
        print(error.ctx.get_help(), file=sys.stderr)
        sys.exit(error.exit_code)
    text = error.format_message().rstrip(".").replace("Value error, ", "")
    _complain(f"{text[:1].lower()}{text[1:]}; {command} --help says more", error.exit_code)
