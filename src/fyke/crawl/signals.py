"""Which signals ask a crawl to end? Ctrl-C, SIGTERM, and that its terminal is gone, which `nohup` has ignored."""

import os
import signal
import sys

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Those that whoever started this process lets through."""
    return tuple(number for number in _ASKING if signal.getsignal(number) is not signal.SIG_IGN)


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
