"""Large pages are read beside the loop: a thread of its own, so that no page holds up the others.

The harvest puts work in and takes results out when it comes by again. lexbor gives the interpreter back while it makes
a tree, so the loop goes on meanwhile.

Invariant: results come in the order of the work. Its owner brings no more than it `has_room` for: so `MOST_BYTES` of
pages are held at a time, those that nobody took yet among them, or one that is larger, alone.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

LARGE_BYTES = 512 << 10  # of content: more takes longer than the loop should be held up
MOST_BYTES = 32 << 20

Result = TypeVar("Result")


class Aside(Generic[Result]):
    """Work under way beside the loop; `told` is called, in the thread, when some of it is done."""

    def __init__(
        self, told: Callable[[], object], large_bytes: int = LARGE_BYTES, most_bytes: int = MOST_BYTES
    ) -> None:
        self._told = told
        self.large_bytes = large_bytes  # what is smaller is not worth it
        self._most_bytes = most_bytes
        self._thread = ThreadPoolExecutor(1, "fyke-large-pages")
        self._waiting: deque[tuple[Future[Result], int]] = deque()

    def __repr__(self) -> str:
        return f"Aside({len(self)} waiting)"

    def __len__(self) -> int:
        """How many results were not taken yet."""
        return len(self._waiting)

    def put(self, work: Callable[[], Result], size_bytes: int) -> None:
        """Have `work` done, on something of that size."""
        future = self._thread.submit(work)
        self._waiting.append((future, size_bytes))
        future.add_done_callback(lambda _: self._told())

    def has_room(self, size_bytes: int) -> bool:
        """Whether something of that size may be held beside what is, or alone."""
        return not self._waiting or sum(size for _, size in self._waiting) + size_bytes <= self._most_bytes

    def take(self, *, wait: bool = False, most: int | None = None) -> list[Result]:
        """The results there are by now, `most` of them; where it shall `wait`, one at least if there is work. Raises
        what that did."""
        done: list[Result] = []
        if wait and self._waiting:
            self._waiting[0][0].exception()  # returns when it is done
        while self._waiting and self._waiting[0][0].done() and (most is None or len(done) < most):
            done.append(self._waiting.popleft()[0].result())
        return done

    def close(self) -> None:
        """Begin no more, and wait for what was begun."""
        self._thread.shutdown(cancel_futures=True)
        self._waiting.clear()
