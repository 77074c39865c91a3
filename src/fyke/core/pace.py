"""Light work goes first: what is heavy takes one part in so many of the time, for as long as light work is going on.

A page of some kilobytes is light. What is heavy grows with what a server chose to send: bodies without end, pages of
many megabytes, rules by the ten thousand. Each room that does such work takes a `Share` of the crawl's `Pace`, does it
in pieces, and begins none before `wait_s` is over. `light` is told by who sees that light work ended.

Invariant: while light work is going on, a share of one in n takes one part in n of the time, but for what a piece takes
beyond what was expected of it: that is made up for after it. While none is, nothing is waited for.
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
MANY = 4  # pieces of light work that end within that time: less leaves time enough
PARTS = 40
PIECE_S = 0.005  # of work in a thread of its own, which has the interpreter meanwhile
GLANCE_S = 0.0005  # at whether the loop has something to do

_own = threading.local()  # `share`: whose time the work of this thread takes; `hasty`: whether others wait for it


class Pace:
    """Whether light work is going on, by `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ended = deque([-inf], MANY)
        self.loop_cpu_s = _own_cpu()  # CPU seconds of the thread that made this, which is the loop's

    def __repr__(self) -> str:
        return f"Pace({'busy' if self.busy else 'idle'})"

    def light(self) -> None:
        """Something light ended."""
        self._ended.append(self._clock.now())

    def now(self) -> float:
        """The time by its clock, unix seconds."""
        return self._clock.now()

    @property
    def busy(self) -> bool:
        """Whether light work is going on."""
        return self._clock.now() - self._ended[0] < LIGHT_S

    def go_on(self) -> None:
        """Light work is going on."""
        self._ended.extend([self._clock.now()] * MANY)

    def held_up(self, held_s: float) -> None:
        """Nothing light could end for so long: that says nothing of whether it is going on."""
        self._ended = deque((at + held_s for at in self._ended), MANY)

    def share(self, parts: int = PARTS) -> "Share":
        """One part in `parts` of the time."""
        return Share(self, self._clock, parts)


def _own_cpu() -> Callable[[], float]:
    """What CPU this thread took, to be asked by others; always 0 where the system does not say."""
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
        self._free_at = clock.now()  # all that was taken until then has been made up for
        self._begun_at = 0.0
        self._expected_s = 0.0
        self.hurried = False  # nothing is waited for
        self.given_up = False  # nobody waits for what is done beside the loop: it ends where it would breathe

    def __repr__(self) -> str:
        return f"Share(1 in {self._parts}, waits {self.wait_s():.3f} s)"

    @property
    def busy(self) -> bool:
        """Whether light work is going on."""
        return self._pace.busy

    def wait_s(self, expected_s: float = 0.0) -> float:
        """Seconds after which it is to be asked again, at most `LIGHT_S`; 0: a piece of which so much is expected may
        begin now."""
        left_s = self._free_at + expected_s * (self._parts - 1) - self._clock.now()
        return min(left_s, LIGHT_S) if left_s > 0 and self._pace.busy and not self.hurried else 0.0

    @contextmanager
    def taken(self, expected_s: float = 0.0) -> Iterator[None]:
        """Count the time that passes within: it is that of a piece, of which so much had been expected."""
        self._begin(expected_s)
        try:
            yield
        finally:
            self._end()
            self._pace.held_up(self._clock.now() - self._begun_at)

    @contextmanager
    def taken_beside(self, expected_s: float = 0.0) -> Iterator[None]:
        """The same beside the loop, in a thread of its own: where work says `breathe`, a piece may end."""
        self._begin(expected_s)
        _own.share = self
        try:
            yield
        finally:
            _own.share = None
            self._end()

    def took(self, piece_s: float) -> None:
        """A piece that nobody had expected took so long, and is over. What was taken before is made up for as well,
        while light work is going on."""
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
        """Wait until another piece may begin, if this one took long enough. Raises GivenUp."""
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
        """Let the loop do what it has to, for its part of the time at most. It gives up the interpreter at each system
        call; a thread that took it each time would hold up the very work by which light work is seen to go on."""
        ran_s = self._pace.loop_cpu_s()
        while not self.hurried and self._clock.now() < self._free_at:
            time.sleep(GLANCE_S)
            before_s, ran_s = ran_s, self._pace.loop_cpu_s()
            if ran_s - before_s < GLANCE_S / 2:
                break


def breathe() -> None:
    """Between two steps of work that may be long: where a share counts its time in this thread, it may be made to wait
    there."""
    share: Share | None = getattr(_own, "share", None)
    if share is not None:
        share.breathe()


@contextmanager
def haste() -> Iterator[None]:
    """Others wait for what this thread does meanwhile."""
    before, _own.hasty = in_haste(), True
    try:
        yield
    finally:
        _own.hasty = before


def in_haste() -> bool:
    """Whether this thread is."""
    return getattr(_own, "hasty", False)
