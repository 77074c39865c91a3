"""A simulation run from the command line: its progress line, Ctrl-C, and the report at the end.

`fyke simulate` calls `run`. The first Ctrl-C (or SIGTERM, or SIGHUP) stops at the end of the current step and writes
checkpoint and report. The second of a kind kills; work after the newest checkpoint is then simulated again. As with a
crawl, SIGTERM asks for an end, so the command ends with 0.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console

from fyke.crawl.signals import leave_terminal, stop_signals
from fyke.lab.simulate.keep import SimulationSettings, opened, simulate
from fyke.lab.simulate.report import SimulationSummary, write
from fyke.lab.simulate.tally import Sample
from fyke.progress import Progress
from fyke.quantities import bytes_text, count_mark, duration, number, share_text

LINE_S = 5.0  # seconds between two progress lines without a terminal


class StopAsked:
    """A callable that says whether the person asked to stop."""

    def __init__(self) -> None:
        self._came: list[int] = []

    def __call__(self) -> bool:
        return bool(self._came)

    @property
    def interrupted(self) -> bool:
        """True if a signal asked, and SIGTERM did not."""
        return self() and signal.SIGTERM not in self._came

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Note the wish to stop; the next signal of this kind has its usual effect."""
        self._came.append(number)
        signal.signal(number, signal.SIG_DFL)
        if number == signal.SIGHUP:
            leave_terminal()


@contextmanager
def stopping() -> Iterator[StopAsked]:
    """Let the signals that stop a crawl ask to stop."""
    stopped = StopAsked()
    before = {number: signal.signal(number, stopped.ask) for number in stop_signals()}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class SimulationMonitor:
    """The progress line of a simulation."""

    def __init__(self, progress: Progress, pages: int) -> None:
        self._progress = progress
        self._pages = pages
        self._first: Sample | None = None

    def show(self, now: Sample) -> None:
        """Show the state `now`."""
        self._first = self._first or now
        self._progress.say(self._line(self._first, now))

    def _line(self, first: Sample, now: Sample) -> str:
        pages_s = (now.pages - first.pages) / max(1e-9, now.wall_s - first.wall_s)
        left = f", about {duration((self._pages - now.pages) / pages_s)} left" if pages_s > 0 else ""
        return (
            f"{count_mark(now.pages)} of {count_mark(self._pages)} pages  {number(pages_s)} pages/s{left}"
            f"  virtual {duration(now.virtual_s)}  spam {share_text(now.spam_pages / max(1, now.pages))} of fetches,"
            f" {share_text(now.spam_share)} of URLs  {bytes_text(now.memory_bytes)}"
        )


def run(
    directory: Path, settings: SimulationSettings, pages: int, console: Console
) -> tuple[SimulationSummary, StopAsked]:
    """Simulate up to `pages` pages in `directory` and write the report; return it and who asked to stop.

    Raises FykeError.
    """
    with opened(directory, settings) as simulation:
        with stopping() as stopped, Progress(console, "simulating", pipe_s=LINE_S) as progress:
            simulate(simulation, pages, watch=SimulationMonitor(progress, pages).show, stopped=stopped)
        return write(simulation, settings, directory), stopped
