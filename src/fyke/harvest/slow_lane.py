"""Large pages are read beside the loop, in threads, so that no page holds up the others.

The harvest puts work in, and takes results out in a later turn. lexbor releases the interpreter while it makes a tree,
so the loop goes on meanwhile. Other work on a page holds the interpreter. So while light work is going on, pages are
read one by one, each no sooner than its share of the time allows for its expected cost. Work of many steps waits
between them (`fyke.core.pace`).

A thread ends with its page. glibc keeps small blocks for each living thread, wherever they lie. If threads lived on,
the memory of a tree of 150 MB would stay in their heaps; later large blocks would land there, move as they grow, and
leave as much behind.

Invariant: results come in the order of the work.

Bounded: the owner brings no more than it `has_room` for. So `MOST_BYTES` of pages and links are held, untaken results
included, or one larger page alone. While untaken results are that large, no more are made, because results may be
larger than the work that was brought.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fyke.core.memory import Trimmer
from fyke.core.pace import GivenUp, Pace

LARGE_BYTES = 512 << 10  # of content: more would hold up the loop too long
MOST_BYTES = 16 << 20
BYTE_S = 2e-8  # expected for a byte
FIRST_EVERY = 4  # takes, of which one gets the oldest entry
OWNERS = 10_000  # whose turns are counted

Result = TypeVar("Result")
Waiting = TypeVar("Waiting")


class FairLine(Generic[Waiting]):
    """A line for room, whose entries have a size in bytes and an owner. Owners take turns, so that an owner with
    hundreds of slow entries keeps the others waiting for one or two. One in `FIRST_EVERY` taken is the oldest, so that
    none waits for ever."""

    def __init__(self) -> None:
        self._line: deque[tuple[Waiting, int, int]] = deque()
        self._turns: Counter[int] = Counter()  # that each owner had
        self._left = 0

    def __repr__(self) -> str:
        return f"FairLine({len(self)} waiting)"

    def __len__(self) -> int:
        return len(self._line)

    def put(self, one: Waiting, size_bytes: int, owner: int) -> None:
        self._line.append((one, size_bytes, owner))

    @property
    def next_bytes(self) -> int:
        """Size of the next entry. The line must not be empty."""
        return self._line[self._next][1]

    def take(self) -> tuple[Waiting, int]:
        """Take the next entry, and return it with its size. The line must not be empty."""
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
    """A piece of work, with the bytes that it may hold and those that it reads, which say how long it takes."""

    do: Callable[[], Result]
    held_bytes: int
    read_bytes: int
    result: "Future[Result]" = field(default_factory=Future)


class SlowLane(Generic[Result]):
    """Work under way beside the loop. Whenever a piece of it is done, `told` is called in the thread of that piece."""

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
        self.handing_on = pace.share()  # for handing on results, on the loop
        self.large_bytes = large_bytes  # smaller work is not worth it
        self._most_bytes = most_bytes
        self._thread: threading.Thread | None = None  # the latest
        self._not_begun: deque[_Work[Result]] = deque()
        self._untaken: deque[_Work[Result]] = deque()  # begun or not
        self._under_way = False  # the thread begins the next by itself
        self._made_bytes = 0  # of results not taken yet
        self._lock = threading.Lock()
        self.trimmer = Trimmer()

    def __repr__(self) -> str:
        return f"SlowLane({len(self)} waiting)"

    def __len__(self) -> int:
        """Return the number of results not taken yet."""
        return len(self._untaken)

    @property
    def next_bytes(self) -> int:
        """Bytes read for the next result to take; 0 if there is none."""
        return self._untaken[0].read_bytes if self._untaken else 0

    def put(self, do: Callable[[], Result], held_bytes: int, read_bytes: int | None = None) -> None:
        """Have `do` run. It holds at most `held_bytes` and reads `read_bytes` (None: the same)."""
        work = _Work(do, held_bytes, held_bytes if read_bytes is None else read_bytes)
        work.result.add_done_callback(lambda _: self._told())
        self._not_begun.append(work)
        self._untaken.append(work)

    def go_on(self, *, hurry: bool = False) -> None:
        """Begin the next work if it may begin now, and in a `hurry` without waiting for its share."""
        with self._lock:
            self._share.hurried = hurry
            if not self._under_way:
                self._begin()

    def _begin(self) -> None:
        """Begin the next work, if it may; the caller holds the lock."""
        self._under_way = self._may_begin
        if self._under_way:
            work = self._not_begun.popleft()
            thread = threading.Thread(target=self._run, args=(work,), name="fyke-large-page")
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more threads
                self._under_way = False
                work.result.set_exception(error)
            else:
                self._thread = thread

    @property
    def _may_begin(self) -> bool:
        is_due = bool(self._not_begun) and not self._share.wait_s(self._not_begun[0].read_bytes * BYTE_S)
        return is_due and self._made_bytes < self._most_bytes

    def _run(self, work: "_Work[Result]") -> None:
        self._do(work)
        self._share.give_way()
        with self._lock:
            self._begin()

    def _do(self, work: "_Work[Result]") -> None:
        with self._share.taken_beside(work.read_bytes * BYTE_S):
            self.trimmer.trim()  # what earlier results left, until they were stored
            try:
                result = work.do()
            except GivenUp:
                return  # nobody takes it, and a kept error would keep what was read
            except BaseException as error:  # noqa: BLE001 - raised again where the result is taken
                work.result.set_exception(error)
                return
            self.trimmer.trim()
        with self._lock:
            self._made_bytes += work.held_bytes
        work.result.set_result(result)

    def has_room(self, size_bytes: int) -> bool:
        """Return whether work of that size may be held beside the rest, or alone."""
        return not self._untaken or sum(work.held_bytes for work in self._untaken) + size_bytes <= self._most_bytes

    def take(self, most: int | None = None) -> list[Result]:
        """Return the results that are ready, at most `most`. Raises what their work raised."""
        done: list[Result] = []
        while self._untaken and self._untaken[0].result.done() and (most is None or len(done) < most):
            work = self._untaken.popleft()
            done.append(work.result.result())
            with self._lock:
                self._made_bytes -= work.held_bytes
        return done

    def close(self) -> None:
        """Begin no more work, and have work under way end as soon as it may."""
        with self._lock:
            self._share.hurried = self._share.given_up = True
            self._not_begun.clear()
        if self._thread is not None:
            self._thread.join()
        self._untaken.clear()
