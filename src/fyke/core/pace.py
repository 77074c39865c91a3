"""Light work goes first: while it is going on, each kind of heavy work takes only a share of the time.

Light work is a page of some kilobytes. Heavy work grows with the bytes that a server sends: bodies without end, pages
of many megabytes, rules by the ten thousand. A room that does heavy work takes a `Share` of the crawl's `Pace`, works
in pieces, and begins no piece before `wait_s` is over. The fetcher calls `note_light` when light work ended.

Invariant: while light work is going on, a share of one in n takes one part in n of the time. If a piece takes longer
than expected, the share waits for that after it. Without light work, heavy work waits for nothing.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf

from fyke.core.clock import Clock

LIGHT_S = 0.05
MANY = 4  # pieces of light work that end within that time: fewer leave time enough
PARTS = 40
PIECE_S = 0.005  # of work in a thread of its own, which has the interpreter meanwhile
GLANCE_S = 0.0005  # for a look whether the loop is busy

_own = threading.local()  # `share`: counts the time of this thread; `hasty`: whether others wait for its work


class Pace:
    """The pace of a crawl: whether light work is going on, by `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ended = deque([-inf], MANY)
        self.loop_cpu_s = _own_cpu()  # CPU seconds of the thread that made this: the loop's

    def __repr__(self) -> str:
        return f"Pace({'busy' if self.busy else 'idle'})"

    def note_light(self) -> None:
        """Note that light work ended."""
        self._ended.append(self._clock.now())

    def now(self) -> float:
        """Return the time by its clock, unix seconds."""
        return self._clock.now()

    @property
    def busy(self) -> bool:
        """True if light work is going on."""
        return self._clock.now() - self._ended[0] < LIGHT_S

    def held_up(self, held_s: float) -> None:
        """Leave out the last `held_s`, in which light work could not end, from the judgement whether it is going on."""
        self._ended = deque((at + held_s for at in self._ended), MANY)

    def share(self, parts: int = PARTS) -> "Share":
        """Return a share of one part in `parts` of the time."""
        return Share(self, self._clock, parts)


def _own_cpu() -> Callable[[], float]:
    """Return a function that tells other threads the CPU seconds of this one; always 0 if the system cannot say."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return lambda: 0.0
    return partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))


class GivenUp(Exception):
    """Nobody waits for this work any more."""


class Share:
    """The time that one kind of heavy work may take."""

    def __init__(self, pace: Pace, clock: Clock, parts: int) -> None:
        self._pace = pace
        self._clock = clock
        self._parts = parts
        self._free_at = clock.now()  # a piece of which nothing is expected may begin from then on
        self._begun_at = 0.0
        self._expected_s = 0.0
        self.hurried = False  # pieces begin without waiting
        self.given_up = False  # nobody waits for the work beside the loop: it ends at its next `breathe`

    def __repr__(self) -> str:
        return f"Share(1 in {self._parts}, waits {self.wait_s():.3f} s)"

    @property
    def busy(self) -> bool:
        """True if light work is going on."""
        return self._pace.busy

    def wait_s(self, expected_s: float = 0.0) -> float:
        """Return 0 if a piece that is expected to take `expected_s` may begin now, or the seconds after which to ask
        again, at most `LIGHT_S`."""
        left_s = self._free_at + expected_s * (self._parts - 1) - self._clock.now()
        return min(left_s, LIGHT_S) if left_s > 0 and self._pace.busy and not self.hurried else 0.0

    @contextmanager
    def taken(self, expected_s: float = 0.0) -> Iterator[None]:
        """Count the time of the block as a piece that was expected to take `expected_s`."""
        self._begin(expected_s)
        try:
            yield
        finally:
            self._end()
            self._pace.held_up(self._clock.now() - self._begun_at)

    @contextmanager
    def taken_beside(self, expected_s: float = 0.0) -> Iterator[None]:
        """Count the time of the block, which runs in a thread beside the loop. Each `breathe` in it may end a piece."""
        self._begin(expected_s)
        _own.share = self
        try:
            yield
        finally:
            _own.share = None
            self._end()

    def count_unexpected(self, piece_s: float) -> None:
        """Count `piece_s` of an unexpected piece that is over. While light work is going on, its wait is added to the
        wait for earlier pieces."""
        now = self._clock.now()
        before = max(self._free_at, now) if self._pace.busy else now
        self._free_at = before + piece_s * (self._parts - 1)
        self._pace.held_up(piece_s)

    def _begin(self, expected_s: float) -> None:
        self._begun_at, self._expected_s = self._clock.now(), expected_s

    def _end(self) -> None:
        now = self._clock.now()
        self._free_at = now + max(0.0, now - self._begun_at - self._expected_s) * (self._parts - 1)

    def breathe(self) -> None:
        """Wait until another piece may begin, if this one took `PIECE_S`. Raises GivenUp."""
        if self.given_up:
            raise GivenUp
        if self._clock.now() - self._begun_at < PIECE_S:
            return
        self._end()
        while wait_s := self.wait_s():
            time.sleep(wait_s)
        self.give_way()
        self._begin(0.0)

    def give_way(self) -> None:
        """Wait while the loop is busy, for its part of the time at most.

        The loop gives up the interpreter at each system call. A thread that took it each time would hold up the light
        work, and the pace would take the crawl for idle.
        """
        ran_s = self._pace.loop_cpu_s()
        while not self.hurried and self._clock.now() < self._free_at:
            time.sleep(GLANCE_S)
            before_s, ran_s = ran_s, self._pace.loop_cpu_s()
            if ran_s - before_s < GLANCE_S / 2:
                break


def breathe() -> None:
    """Wait, if a share counts the time of this thread and is used up. Called between steps of work that may be long."""
    share: Share | None = getattr(_own, "share", None)
    if share is not None:
        share.breathe()


@contextmanager
def haste() -> Iterator[None]:
    """Mark the block as work of this thread for which others wait."""
    before, _own.hasty = in_haste(), True
    try:
        yield
    finally:
        _own.hasty = before


def in_haste() -> bool:
    """Return whether others wait for this thread's work."""
    return getattr(_own, "hasty", False)
