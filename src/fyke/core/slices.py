"""Long work on the event loop, in slices: what a server sent may make work, but not hold the loop.

Work is a generator that returns its result, and yields between units how many steps it took since; a step is about
a microsecond, and a unit a few hundred at most, whatever the input. Who may wait runs it `whole`; the loop gives it
to a `Slicer`, which does `SLICE_STEPS` of it and then lets everybody else go on. Steps are counted, not timed, so that
the same work is cut at the same places on every machine.

Invariant: between two rests, all work of one Slicer together takes `SLICE_STEPS` and the rest of one unit at most.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Slices = Generator[int, None, T]

SLICE_STEPS = 800
TURN_STEPS = 200  # then the next in line
REST_S = 0.001


def whole(work: Slices[T]) -> T:
    """The result of `work`, done at once."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        result: T = end.value
        return result


class Slicer:
    """Does works beside each other; `resumed` is called after each slice in which a work that had waited ended."""

    def __init__(self, resumed: Callable[[], None]) -> None:
        self._resumed = resumed
        self._line: deque[tuple[Slices[Any], Callable[[Any], None]]] = deque()
        self._left = SLICE_STEPS  # of this slice
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._line)

    def run(self, work: Slices[T], then: Callable[[T], None]) -> None:
        """Give the result of `work` to `then`: before this returns, if what is left of the slice suffices."""
        if not self._go_on(work, then, self._left):
            self._line.append((work, then))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None and (self._line or self._left < SLICE_STEPS):
            self._timer = asyncio.get_running_loop().call_later(REST_S, self._slice)

    def _slice(self) -> None:
        self._timer = None
        self._left = SLICE_STEPS
        ended = False
        while self._line and self._left > 0:
            work, then = self._line.popleft()
            if self._go_on(work, then, min(TURN_STEPS, self._left)):
                ended = True
            else:
                self._line.append((work, then))
        self._set_timer()
        if ended:
            self._resumed()

    def _go_on(self, work: Slices[Any], then: Callable[[Any], None], steps: int) -> bool:
        """Let `work` take `steps`; whether it ended."""
        until = self._left - steps
        try:
            while self._left > until:
                self._left -= next(work)
        except StopIteration as end:
            self._left -= 1
            then(end.value)
            return True
        return False

    def stop(self) -> None:
        """Let go of all that is not done."""
        self._line.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
