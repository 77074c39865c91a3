"""What a command prints, and what becomes of it where nobody reads on.

Used by all commands, and the one place where what strangers wrote is made safe for a terminal: a line of robots.txt,
the name of a server, a URL may hold escape sequences. Answers go to stdout and end the command when nobody wants them;
what tells how the work goes is on stderr, and is worth less than the work.
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
    """`text` on stdout, now; the command ends where nobody reads on."""
    try:
        print(clean(text), flush=True)
    except BrokenPipeError:
        let_go(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class _Cleaned(Console):
    """Steers the terminal itself, but lets no text do so, nor draws the `:man:` that a URL may have."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=clean(segment.text))


class AnswerOutput(_Cleaned):
    """Stdout, for what was asked for: the command ends where nobody reads on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        let_go(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class Reporter(_Cleaned):
    """Stderr, for what is worth less than the work: where nobody reads on, or its disk is full, it falls silent."""

    def print(self, *told: Any, **how: Any) -> None:
        try:
            super().print(*told, **how)
        except OSError:
            self.on_broken_pipe()

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


@contextmanager
def kept_back() -> Iterator[None]:
    """What libraries write to stderr themselves comes when the block ends, or never where a person is told in a line of
    what went wrong: the engine of searches writes a trace before anybody can say what it is of."""
    sys.stderr.flush()
    kept, real = os.memfd_create("stderr"), os.dup(2)
    os.dup2(kept, 2)
    said = True
    try:
        yield
    except FykeError:
        said = False
        raise
    finally:
        sys.stderr.flush()
        os.dup2(real, 2)
        os.close(real)
        with os.fdopen(kept, "rb") as file, suppress(OSError):
            file.seek(0)
            if said:
                os.write(2, file.read())
