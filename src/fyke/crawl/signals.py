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
    """They end the block wherever it is, be it in a read that nothing comes of. Raises Stopped, which says `said`."""

    def end(number: int, _: object) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        raise Stopped(said, terminated=number == signal.SIGTERM)

    before = {number: signal.signal(number, end) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
