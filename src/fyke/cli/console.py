"""The output of a command, also if nobody reads it to the end.

Used by all commands. It is the one place that makes strangers' text safe for a terminal: a line of robots.txt, the name
of a server, a URL may hold escape sequences. Answers go to stdout and end the command when nobody reads them; progress
goes to stderr, and never ends the work.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fyke.core.errors import FykeError
from fyke.core.terminal import clean

EXIT_PIPE_CLOSED = 141


def say(text: str) -> None:
    """Print `text` on stdout, now; end the command if nobody reads on."""
    try:
        print(clean(text), flush=True)
    except BrokenPipeError:
        discard_last_flush(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class _Cleaned(Console):
    """A console that steers the terminal itself, but lets no text do so, and draws no `:man:` that a URL may have."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=clean(segment.text))


class AnswerOutput(_Cleaned):
    """Stdout, for answers: the command ends if nobody reads on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard_last_flush(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class Reporter(_Cleaned):
    """Stderr, for progress: it falls silent if nobody reads on, or its disk is full."""

    def print(self, *told: Any, **how: Any) -> None:
        try:
            super().print(*told, **how)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard_last_flush(sys.stderr)


def say_aside(text: str) -> None:
    """Print `text` on stderr, as a line beside the answer."""
    Reporter(stderr=True).print(f"fyke: {text}", highlight=False, soft_wrap=True, markup=False)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON document on stdout."""
    say(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def discard_last_flush(stream: TextIO | None) -> None:
    """Send the interpreter's last flush of `stream` nowhere, because nobody can read the stream any more."""
    with suppress(OSError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _flush_errors() -> None:
    if sys.stderr is not None:  # as it is if it was closed before the command began
        sys.stderr.flush()


@contextmanager
def kept_back() -> Iterator[None]:
    """Hold back what libraries write to stderr until the block ends; drop it if the block raises a FykeError.

    The search engine writes a trace before anybody can say what it is about, and the error's one line says that.
    """
    _flush_errors()
    kept, real = os.memfd_create("stderr"), os.dup(2)
    os.dup2(kept, 2)
    said = True
    try:
        yield
    except FykeError:
        said = False
        raise
    finally:
        _flush_errors()
        os.dup2(real, 2)
        os.close(real)
        with os.fdopen(kept, "rb") as file, suppress(OSError):
            file.seek(0)
            if said:
                os.write(2, file.read())
