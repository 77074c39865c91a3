"""Where the CPU time of a crawl goes: runs Fyke, and every 2 ms of it notes which module is at work.

    .venv/bin/python benches/sampling.py OUT.json crawl URL --into DIR ...

Called by `floor`. Time in native code counts for the module that called it. What other threads take is told as one sum.
"""

import atexit
import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import fyke

_INTERVAL_S = 0.002
_HOME = str(Path(fyke.__file__).parent)


def module_at(frame: FrameType | None) -> str:
    """The innermost module of Fyke's that is at work, or "start" while modules are imported."""
    found = ""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_HOME):
            if code.co_name == "<module>":
                return "start"
            found = found or code.co_filename.removeprefix(_HOME)[1:].removesuffix(".py")
        frame = frame.f_back
    return found or "start"


def sample(out: Path) -> None:
    """Note from now on; what was noted is written at the end."""
    spent: Counter[str] = Counter()
    last = time.thread_time()

    def note(_signal: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.thread_time()
        spent[module_at(frame)] += now - last  # as much as this thread ran: the clock runs for all
        last = now

    def write() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        out.write_text(json.dumps({"modules": spent, "threads": time.process_time() - time.thread_time()}))

    atexit.register(write)
    signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL_S, _INTERVAL_S)


def main() -> None:
    from fyke.__main__ import main as crawl  # noqa: PLC0415 - so that its imports are sampled

    out = Path(sys.argv.pop(1))
    sample(out)
    crawl()


if __name__ == "__main__":
    main()
