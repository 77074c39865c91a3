"""Time, passed in.

Only `SystemClock` asks the operating system for the time; every decision takes `now` or a `Clock`. So the
frontier also runs against a virtual web, faster than real time.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from fyke.core.errors import ConfigurationError

EARLIEST_S, LATEST_S = 1_577_836_800, 4_102_444_800  # 2020 and 2100: a clock outside was never set
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """Tells the time in seconds since the epoch."""

    wall_ahead_s: float  # seconds by which the wall clock was ahead of this one at the start; negative: behind

    def now(self) -> float: ...

    def noted(self) -> dict[str, Any]:
        """Return what a later process needs to continue this clock, with the time as `taken_at`."""
        ...


class SystemClock:
    """The time of a crawl. It runs with the time since boot, also while the machine sleeps, and begins by the wall
    clock.

    A later process continues it from `noted`, as if it had run all the while. After a reboot it follows the wall clock
    again, but never goes back. So setting the wall clock makes no rest longer or shorter, and no copy older than it is.
    """

    def __init__(self, noted: Mapping[str, Any] | None = None) -> None:
        # The largest of a few: a delay between the two readings makes the offset smaller, and the clock late. If the
        # clock of an earlier process was late, rests that it wrote down seem over too soon.
        self._offset = wall = max(time.time() - _since_boot() for _ in range(8))
        self._boot_id = BOOT_ID.read_text().strip()
        if noted:
            then = float(noted["taken_at"])
            here = noted.get("boot_id") == self._boot_id and noted["since_boot_s"] <= _since_boot()
            self._offset = then - float(noted["since_boot_s"]) if here else max(wall, then - _since_boot())
        self.wall_ahead_s = wall - self._offset

    def now(self) -> float:
        return _since_boot() + self._offset

    def require_sane(self) -> None:
        """Raise ConfigurationError for an impossible time: all dates would be wrong, and stay wrong."""
        now = self.now()
        if not EARLIEST_S <= now < LATEST_S:
            what = "this crawl began with a wrong clock: begin another crawl" if self.wall_ahead_s else "set it"
            raise ConfigurationError(f"the clock says it is the year {time.gmtime(now).tm_year}: {what}")

    def noted(self) -> dict[str, Any]:
        since_boot_s = _since_boot()
        return {"taken_at": since_boot_s + self._offset, "boot_id": self._boot_id, "since_boot_s": since_boot_s}


def _since_boot() -> float:
    """Return the seconds since boot, with those for which the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class VirtualClock:
    """A clock that stands still until it is told to move."""

    wall_ahead_s = 0.0

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def noted(self) -> dict[str, Any]:
        return {"taken_at": self._now}

    def advance(self, seconds: float) -> None:
        """Move on by `seconds` (not negative)."""
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds}")
        self._now += seconds
