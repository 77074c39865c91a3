"""Large pages are read beside the loop: each in a thread of its own, so that no page holds up the others.

The harvest puts work in and takes results out when it comes by again. lexbor gives the interpreter back while it makes
a tree, so the loop goes on meanwhile, but not for all that is done to a page. So while light work is going on, pages
are read one by one, each no sooner than its share of the time allows what is expected of it, and what has many steps
waits between them (`fyke.core.pace`).

A thread ends with its page. glibc keeps some small blocks for each thread, wherever they lie, and as long as it does,
what a tree of 150 MB took stays in the thread's heap: what is large later is put there, moved as it grows, and leaves
as much behind.

Invariants: results come in the order of the work. Its owner brings no more than it `has_room` for: so `MOST_BYTES` of
pages and their links are held at a time, those that nobody took yet among them, or one that is larger, alone. Where
results that nobody took are so many bytes by themselves, no more are made: they may be larger than what was brought.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fyke.core.memory import Trimmer
from fyke.core.pace import GivenUp, Pace

LARGE_BYTES = 512 << 10  # of content: more takes longer than the loop should be held up
MOST_BYTES = 16 << 20
BYTE_S = 2e-8  # that a byte is expected to take
FIRST_EVERY = 4  # one in so many that leave the line is who came first
OWNERS = 10_000  # whose turns are remembered

Result = TypeVar("Result")
Waiting = TypeVar("Waiting")


class FairLine(Generic[Waiting]):
    """Who waits for room, each of so many bytes and of an owner. Owners take turns: who has hundreds that take long
    keeps others waiting for one of them or two. And one in `FIRST_EVERY` is who came first, so nobody waits for ever.
    """

    def __init__(self) -> None:
        self._line: deque[tuple[Waiting, int, int]] = deque()
        self._turns: Counter[int] = Counter()  # that owners had
        self._left = 0

    def __repr__(self) -> str:
        return f"FairLine({len(self)} waiting)"

    def __len__(self) -> int:
        return len(self._line)

    def put(self, one: Waiting, size_bytes: int, owner: int) -> None:
        self._line.append((one, size_bytes, owner))

    @property
    def next_bytes(self) -> int:
        """The size of who is next, of those there are."""
        return self._line[self._next][1]

    def take(self) -> tuple[Waiting, int]:
        """Who is next, with its size, of those there are."""
        at = self._next
        one, size_bytes, owner = self._line[at]
        del self._line[at]
        self._left += 1
        if not self._line or len(self._turns) >= OWNERS:
            self._turns.clear()
        self._turns[owner] += 1
        return one, size_bytes

    @property
    def _next(self) -> int:
        if self._left % FIRST_EVERY == 0:
            return 0
        return min(range(len(self._line)), key=lambda at: self._turns[self._line[at][2]])


@dataclass(eq=False, slots=True)
class _Work(Generic[Result]):
    """Something to be done, what it may hold, and what is read for it: it takes as long as that takes."""

    do: Callable[[], Result]
    held_bytes: int
    read_bytes: int
    result: "Future[Result]" = field(default_factory=Future)


class Aside(Generic[Result]):
    """Work under way beside the loop; `told` is called, in the thread, when some of it is done."""

    def __init__(
        self,
        told: Callable[[], object],
        pace: Pace,
        large_bytes: int = LARGE_BYTES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._told = told
        self.pace = pace
        self._share = pace.share()
        self.handing_on = pace.share()  # what becomes of results on the loop
        self.large_bytes = large_bytes  # what is smaller is not worth it
        self._most_bytes = most_bytes
        self._thread: threading.Thread | None = None  # the latest
        self._works: deque[_Work[Result]] = deque()  # not begun
        self._waiting: deque[_Work[Result]] = deque()  # begun or not
        self._under_way = False  # the thread begins the next by itself
        self._made_bytes = 0  # of results that nobody took
        self._lock = threading.Lock()
        self.trimmer = Trimmer()

    def __repr__(self) -> str:
        return f"Aside({len(self)} waiting)"

    def __len__(self) -> int:
        """How many results were not taken yet."""
        return len(self._waiting)

    @property
    def next_bytes(self) -> int:
        """The bytes that were read for what is taken next; 0 where there is nothing."""
        return self._waiting[0].read_bytes if self._waiting else 0

    def put(self, do: Callable[[], Result], held_bytes: int, read_bytes: int | None = None) -> None:
        """Have something done that holds so many bytes at most, and reads so many (None: the same)."""
        work = _Work(do, held_bytes, held_bytes if read_bytes is None else read_bytes)
        work.result.add_done_callback(lambda _: self._told())
        self._works.append(work)
        self._waiting.append(work)

    def go_on(self, *, hurry: bool = False) -> None:
        """Begin what may begin now; all if it is in a `hurry`."""
        with self._lock:
            self._share.hurried = hurry
            if not self._under_way:
                self._begin()

    def _begin(self) -> None:
        """Begin the next, if it may; to be called with the lock."""
        self._under_way = self._may_begin
        if self._under_way:
            work = self._works.popleft()
            thread = threading.Thread(target=self._run, args=(work,), name="fyke-large-page")
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more of them
                self._under_way = False
                work.result.set_exception(error)
            else:
                self._thread = thread

    @property
    def _may_begin(self) -> bool:
        is_due = bool(self._works) and not self._share.wait_s(self._works[0].read_bytes * BYTE_S)
        return is_due and self._made_bytes < self._most_bytes

    def _run(self, work: "_Work[Result]") -> None:
        self._do(work)
        self._share.give_way()
        with self._lock:
            self._begin()

    def _do(self, work: "_Work[Result]") -> None:
        with self._share.taken_beside(work.read_bytes * BYTE_S):
            self.trimmer.trim()  # what results before it left, until they were stored
            try:
                result = work.do()
            except GivenUp:
                return  # nobody takes it; kept, the error would keep what was read
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is taken
                work.result.set_exception(error)
                return
            self.trimmer.trim()
        with self._lock:
            self._made_bytes += work.held_bytes
        work.result.set_result(result)

    def has_room(self, size_bytes: int) -> bool:
        """Whether something of that size may be held beside what is, or alone."""
        return not self._waiting or sum(work.held_bytes for work in self._waiting) + size_bytes <= self._most_bytes

    def take(self, most: int | None = None) -> list[Result]:
        """The results there are by now, `most` of them. Raises what their work did."""
        done: list[Result] = []
        while self._waiting and self._waiting[0].result.done() and (most is None or len(done) < most):
            work = self._waiting.popleft()
            done.append(work.result.result())
            with self._lock:
                self._made_bytes -= work.held_bytes
        return done

    def close(self) -> None:
        """Begin no more, and have what was begun end as soon as it may."""
        with self._lock:
            self._share.hurried = self._share.given_up = True
            self._works.clear()
        if self._thread is not None:
            self._thread.join()
        self._waiting.clear()
