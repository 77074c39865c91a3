"""Time, passed in.

Nobody in Fyke asks the operating system for the time but `SystemClock`; every decision takes `now`
or a `Clock`. So the frontier also runs against a virtual web, faster than life.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time in seconds since the epoch."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's time, made monotonic: it never runs backwards when the wall clock is set, and begins no sooner
    than `not_before` (unix seconds): what an earlier process wrote down was not in the future."""

    def __init__(self, not_before: float = 0.0) -> None:
        # The largest of a few: whatever comes between the two readings makes it smaller, and the clock late. Rests
        # that an earlier process wrote down must not seem over sooner by that.
        offset = max(time.time() - time.monotonic() for _ in range(8))
        self.set_back_s = max(0.0, not_before - time.monotonic() - offset)  # by so much the wall clock is behind
        self._offset = offset + self.set_back_s

    def now(self) -> float:
        return time.monotonic() + self._offset


class VirtualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on by `seconds` (not negative)."""
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds}")
        self._now += seconds
