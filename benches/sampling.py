"""Where does the CPU time of a crawl go? Runs Fyke and notes every 2 ms of CPU which module is at work, and for each
page, how long it held the loop.

    .venv/bin/python benches/sampling.py OUT.json crawl URL --into DIR ...

`floor` calls it. Time in native code counts for the module that called it. The time of other threads is one sum. A
page holds the loop while it is unfolded, parsed there, and stored; its part of work on batches is not counted.
"""

import argparse
import atexit
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import fyke
from fyke.core.memory import give_back

_INTERVAL_S = 0.002
_LONGEST = 100  # pages with the longest holds, whose times are written
_HOME = str(Path(fyke.__file__).parent)


def module_at(frame: FrameType | None) -> str:
    """Return the innermost module of Fyke at work, or "start" while modules are imported."""
    found = ""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_HOME):
            if code.co_name == "<module>":
                return "start"
            found = found or code.co_filename.removeprefix(_HOME)[1:].removesuffix(".py")
        frame = frame.f_back
    return found or "start"


class Holds:
    """How long each page held the loop, in milliseconds of CPU."""

    def __init__(self) -> None:
        self.longest_ms: list[float] = []
        self._of: dict[int, float] = {}  # by the exchange's identity, until it is stored

    def watch(self) -> None:
        """Time the steps from now on, in the loop's thread alone: large pages are read in another."""
        give_back()  # as the command does, before it loads these
        from fyke.crawl.barn import Barn  # noqa: PLC0415 - as above
        from fyke.harvest import Parser  # noqa: PLC0415 - as above
        from fyke.harvest.large_pages import LargePages  # noqa: PLC0415 - as above

        LargePages.open_here = self._timed(LargePages.open_here, lambda _large, exchange: exchange)  # type: ignore
        Parser.process_in_haste = self._timed(Parser.process_in_haste, lambda _parser, page: page.exchange)  # type: ignore
        Barn._store = self._timed(Barn._store, lambda _barn, reaped, _known: reaped.exchange, last=True)  # type: ignore

    def _timed(self, step: Callable[..., Any], exchange_of: Callable[..., Any], *, last: bool = False) -> Any:
        def timed(*arguments: Any) -> Any:
            began = time.thread_time()
            try:
                return step(*arguments)
            finally:
                key = id(exchange_of(*arguments))
                took = self._of.pop(key, 0.0) + time.thread_time() - began
                if not last:
                    self._of[key] = took
                elif len(self.longest_ms) < _LONGEST or took * 1000 > self.longest_ms[0]:
                    self.longest_ms = sorted([*self.longest_ms, took * 1000])[-_LONGEST:]

        return timed


def sample(out: Path, holds: Holds) -> None:
    """Sample from now on, and write the samples at exit."""
    spent: Counter[str] = Counter()
    last = time.thread_time()

    def note(_signal: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.thread_time()
        spent[module_at(frame)] += now - last  # the time this thread ran: the timer runs for all threads
        last = now

    def write() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        threads = time.process_time() - time.thread_time()
        out.write_text(json.dumps({"modules": spent, "threads": threads, "holds_ms": holds.longest_ms}))

    atexit.register(write)
    signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL_S, _INTERVAL_S)


def main() -> None:
    from fyke.__main__ import main as crawl  # noqa: PLC0415 - so that its imports are sampled

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    out, sys.argv[1:] = asked.out, asked.command
    holds = Holds()
    holds.watch()
    sample(out, holds)
    crawl()


if __name__ == "__main__":
    main()
