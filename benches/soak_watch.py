"""Memory and open files of a crawl's process, once a second; `benches/soak.py` prints them."""

import os
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple, Self

EVERY_S = 1.0
GROWN_UP_S = 15.0  # a younger process has not yet opened all its files


class Sample(NamedTuple):
    """One look at the process."""

    at: float
    age_s: float
    resident_mb: float
    files: int


class Watch:
    """A thread that looks at the present `process`."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.samples: list[Sample] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        born, pid = 0.0, 0
        while not self._done.wait(EVERY_S):
            process = self.process
            if process is None or process.returncode is not None:
                continue
            if process.pid != pid:
                born, pid = time.monotonic(), process.pid
            with suppress(OSError, ValueError, IndexError):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
                now = time.monotonic()
                resident = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
                self.samples.append(Sample(now, now - born, resident, files))

    def report(self) -> str:
        """Return the maxima, and the medians of the first third and of the last."""
        grown = [sample for sample in self.samples if sample.age_s > GROWN_UP_S] or self.samples
        if not grown:
            return "nothing was seen of the process"
        third = max(1, len(grown) // 3)
        first, last = grown[:third], grown[-third:]
        lines = []
        for word, unit in (("resident_mb", "MB resident"), ("files", "files open")):
            most = max(getattr(sample, word) for sample in self.samples)
            middles = [median(getattr(sample, word) for sample in part) for part in (first, last)]
            lines.append(
                f"{unit}: at most {most:,.0f}; in the middle of the first third {middles[0]:,.0f},"
                f" of the last {middles[1]:,.0f}"
            )
        oldest = max(sample.age_s for sample in self.samples)
        return "\n".join([*lines, f"{len(self.samples)} samples; the oldest process lived {oldest:.0f} s"])
