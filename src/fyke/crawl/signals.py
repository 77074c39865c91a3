"""Which signals ask a crawl to end? Ctrl-C, SIGTERM, and SIGHUP when its terminal is gone, which `nohup` has
ignored."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fyke.core.errors import Stopped

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the stop signals that the starter of this process did not ignore."""
    return tuple(number for number in _ASKING if signal.getsignal(number) is not signal.SIG_IGN)


@contextmanager
def stopped_at_once(said: str) -> Iterator[None]:
    """Have stop signals end the block anywhere, even in a read that never returns, unless it sets other handlers.
    Raises Stopped, which says `said`."""

    stopped: list[Stopped] = []

    def end(number: int, _: object) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        stopped.append(Stopped(said, terminated=number == signal.SIGTERM))
        raise stopped[0]

    before = {number: signal.signal(number, end) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is end:  # otherwise the crawl obeys them from now on
                signal.signal(number, handler)
        if stopped:
            raise stopped[0]  # even if a plug-in, or its caller, had caught it


def leave_terminal() -> None:
    """Discard further output to a terminal that is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            try:
                os.write(stream.fileno(), b"")
            except OSError:
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
