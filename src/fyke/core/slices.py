"""Long work on the event loop, in slices, so that no input from a server holds the loop.

Work is a generator that returns its result. Between units it yields the number of steps since the last yield. A step
is about a microsecond, and a unit at most a few hundred, whatever the input. A caller that may wait runs work `whole`.
The loop gives it to a `Slicer`, which takes `FIRST_STEPS` at once; ordinary work is then done. The rest waits in
line. `SLICE_STEPS` of the line are done at a time, as often as its share of the time allows (`fyke.core.pace`), and
other tasks run in between. Steps are counted, not timed, so that work is cut at the same places on every machine.

Invariant: each work takes `FIRST_STEPS` and the rest of one unit before it waits. Between two rests, the line takes
`SLICE_STEPS` and the rest of one unit.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from fyke.core.pace import Share

T = TypeVar("T")
Slices = Generator[int, None, T]
Steps = Generator[None, None, T]  # a turn of the crawl's loop, which yields where other tasks may run

FIRST_STEPS = 400
SLICE_STEPS = 800
TURN_STEPS = 200  # of one work, before the next in line
REST_S = 0.001


def whole(work: Slices[T] | Steps[T]) -> T:
    """Do `work` at once and return its result."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        result: T = end.value
        return result


class Slicer:
    """Does works by turns; calls `resumed` after each slice in which a waiting work ended."""

    def __init__(self, resumed: Callable[[], None], share: Share) -> None:
        self._resumed = resumed
        self._share = share
        self._line: deque[tuple[Slices[Any], Callable[[Any], None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._line)

    def run(self, work: Slices[T], then: Callable[[T], None]) -> None:
        """Call `then` with the result of `work`: before this returns, if `work` is short."""
        ended, _ = _go_on(work, then, FIRST_STEPS)
        if not ended:
            self.line_up(work, then)

    def line_up(self, work: Slices[T], then: Callable[[T], None]) -> None:
        """Call `then` with the result of `work` in a later slice, however short it is: for callers within a slice."""
        self._line.append((work, then))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None and self._line:
            rest_s = max(REST_S, self._share.wait_s())
            self._timer = asyncio.get_running_loop().call_later(rest_s, self._slice)

    def _slice(self) -> None:
        self._timer = None
        ended = False
        if not self._share.wait_s():
            with self._share.taken():
                ended = self._work()
        self._set_timer()
        if ended:
            self._resumed()

    def _work(self) -> bool:
        """Do a slice; return whether some work ended."""
        left, any_ended = SLICE_STEPS, False
        while self._line and left > 0:
            work, then = self._line.popleft()
            ended, taken = _go_on(work, then, min(TURN_STEPS, left))
            left -= taken
            any_ended |= ended
            if not ended:
                self._line.append((work, then))
        return any_ended

    def stop(self) -> None:
        """Drop all unfinished work."""
        self._line.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _go_on(work: Slices[Any], then: Callable[[Any], None], steps: int) -> tuple[bool, int]:
    """Run `work` for `steps`; return whether it ended, and how many steps it took."""
    taken = 0
    try:
        while taken < steps:
            taken += next(work)
    except StopIteration as end:
        then(end.value)
        return True, taken + 1
    return False, taken
