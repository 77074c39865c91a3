"""What a command prints, and what becomes of it where nobody reads on.

Used by all commands: answers go to stdout and end the command when nobody wants them; what tells how the work goes is
on stderr, and is worth less than the work.
"""

import json
import os
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any, TextIO

import typer
from rich.console import Console

EXIT_PIPE_CLOSED = 141


def say(text: str) -> None:
    """`text` on stdout, now; the command ends where nobody reads on."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        let_go(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class Answers(Console):
    """Stdout, for what was asked for: the command ends where nobody reads on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        let_go(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class Reporter(Console):
    """Stderr, for what is worth less than the work: where nobody reads on, it falls silent."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        let_go(sys.stderr)


def say_aside(text: str) -> None:
    """`text` on stderr, as a line beside the answer."""
    Reporter(stderr=True).print(f"fyke: {text}", highlight=False, soft_wrap=True, markup=False)


def print_json(value: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    say(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def let_go(stream: TextIO | None) -> None:
    """Nobody can read `stream` any more: let the interpreter's last flush go nowhere, and say nothing."""
    with suppress(OSError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
