"""Which signals ask a crawl to end? Ctrl-C, SIGTERM, and that its terminal is gone, which `nohup` has ignored."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fyke.core.errors import Stopped

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Those that whoever started this process lets through."""
    return tuple(number for number in _ASKING if signal.getsignal(number) is not signal.SIG_IGN)


@contextmanager
def stopped_at_once(said: str) -> Iterator[None]:
    """They end the block wherever it is, be it in a read that nothing comes of, unless it has others obey them.
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
            if signal.getsignal(number) is end:  # else whoever runs the crawl obeys them from now on
                signal.signal(number, handler)
        if stopped:
            raise stopped[0]  # also where a plug-in, or who called it, had caught it


def leave_terminal() -> None:
    """Have what is still said to a terminal that is gone go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            try:
                os.write(stream.fileno(), b"")
            except OSError:
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
