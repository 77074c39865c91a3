"""How far is a long command? One line: written over on a terminal, otherwise now and then or not at all.

Used by long commands; their work calls `Progress.tell`. Invariant: calls cost nothing, and no caller needs the line.
"""

import time
from typing import Self

from rich.console import Console

from fyke.quantities import time_text

TERMINAL_S = 0.1  # between two lines
SURE_S = 3.0  # before it is said how long the rest takes


class Progress:
    """Says on `console` how far `what` is; every `pipe_s` seconds if that is no terminal, never if `pipe_s` is 0."""

    def __init__(self, console: Console, what: str, *, pipe_s: float = 0.0) -> None:
        self._console = console
        self._status = console.status(what)
        self._every_s = TERMINAL_S if console.is_terminal else pipe_s
        self._said_at = time.monotonic()
        self._begun = ("", 0, 0.0)  # what is under way, how far it was when it began, and when
        self.steps = 0  # how often it was told

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def tell(self, what: str, done: int, of: int, unit: str = "") -> None:
        """Say that `done` of `of` is done of `what`."""
        self.steps += 1
        now = time.monotonic()
        if what != self._begun[0]:
            self._begun = (what, done, now)
        if not self._due(now):
            return
        text = f"{what}: {done:,} of {of:,} {unit}".rstrip() if of else what
        _, before, begun_at = self._begun
        if done > before and now - begun_at > SURE_S:
            text += f", {time_text((now - begun_at) / (done - before) * (of - done))} left"
        self._say(text)

    def say(self, text: str) -> None:
        """Say how far it is, in words."""
        if self._due(time.monotonic()):
            self._say(text)

    def _due(self, now: float) -> bool:
        if not self._every_s or now - self._said_at < self._every_s:
            return False
        self._said_at = now
        return True

    def _say(self, text: str) -> None:
        if self._console.is_terminal:
            self._status.update(text)
        else:
            print_line(self._console, text)


def print_line(console: Console, text: str) -> None:
    """Print `text` as it is on `console`, as one line however long."""
    console.print(text, highlight=False, soft_wrap=True, markup=False)
