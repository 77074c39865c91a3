"""Which signals ask a crawl to end? Ctrl-C, SIGTERM, and SIGHUP when its terminal is gone, which `nohup` has ignored.
Before it runs, SIGALRM too, which says that its time is over."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

from fyke.core.errors import Stopped

LEAST_S = 0.001  # a timer of 0 never ends

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the stop signals that the starter of this process did not ignore."""
    return tuple(number for number in _ASKING if signal.getsignal(number) is not signal.SIG_IGN)


@contextmanager
def stopped_at_once(said: Callable[[], str], left_s: float = inf) -> Iterator[None]:
    """Have stop signals, and the end of `left_s`, end the block anywhere, even in a read that never returns, unless it
    sets other handlers. Such blocks may be nested; the end of any ends the time of all. Raises Stopped: what
    ended the block, and then what `said` returns."""

    stopped: list[Stopped] = []
    numbers = stop_signals()

    def end(number: int, _: object) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        asked, time_is_up = number in (signal.SIGTERM, signal.SIGALRM), number == signal.SIGALRM
        words = f"its time was over {said()}; give it more" if time_is_up else f"stopped {said()}"
        stopped.append(Stopped(words, asked=asked, time_is_up=time_is_up))
        raise stopped[0]

    if left_s < inf:
        numbers = (*numbers, signal.SIGALRM)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        if left_s < inf:
            signal.setitimer(signal.ITIMER_REAL, max(left_s, LEAST_S))
        yield
    finally:
        if left_s < inf:
            signal.setitimer(signal.ITIMER_REAL, 0)
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
