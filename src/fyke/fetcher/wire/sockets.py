"""Waits for libcurl on the event loop: for its sockets, and for the moment at which it wants to be called.

The sockets are in an epoll set of our own, and the event loop watches that one descriptor. libcurl adds and removes a
socket for every request on a kept connection, which then costs one system call instead of a new watcher of the loop.

Called by `CurlClient`, which has libcurl go on. Invariant: a turn of the loop goes on with at most `HANDSHAKES`
handshakes, and with nothing more once `TURN_S` is over. The rest comes first of its kind in the next turn.
"""

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress

import pycurl

from fyke.core.clock import Clock
from fyke.fetcher.wire.transfer import Calls

READY = 64  # sockets that are looked at in a turn
HANDSHAKES = 8  # that go on before others have their turn: each takes milliseconds
TURN_S = 0.02

_IN, _OUT, _BROKEN = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR | select.EPOLLHUP
_EVENTS = {pycurl.POLL_IN: _IN, pycurl.POLL_OUT: _OUT, pycurl.POLL_INOUT: _IN | _OUT, pycurl.POLL_NONE: 0}
_SELECTS = {
    events: (pycurl.CSELECT_IN if events & (_IN | _BROKEN) else 0)
    | (pycurl.CSELECT_OUT if events & _OUT else 0)
    | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0)
    for events in range(32)
}


class WatchedSockets:
    """Calls `go_on` with a descriptor that is ready, and for what; and `run` when the moment has come."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        calls: Calls,
        go_on: Callable[[int, int], None],
        run: Callable[[], None],
    ) -> None:
        """`calls` is told of each descriptor."""
        self._loop = loop
        self._clock = clock
        self._calls = calls
        self._go_on = go_on
        self._to_run = run
        self._kicked = False
        self._stopped = False
        self._deadline: float | None = None
        self._timer: asyncio.Handle | None = None
        self._timer_due = 0.0
        self._watched: set[int] = set()
        self._left: dict[int, int] = {}  # sockets left ready when the last turn ended, and for what
        self._epoll = select.epoll()
        loop.add_reader(self._epoll.fileno(), self._ready)

    def __repr__(self) -> str:
        return f"WatchedSockets({len(self)} watched)"

    def __len__(self) -> int:
        return len(self._watched)

    def stop(self) -> None:
        """Call nobody any more, but go on taking libcurl's wishes."""
        self._stopped = True
        self._loop.remove_reader(self._epoll.fileno())
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Close the set, once libcurl says nothing more."""
        self._watched.clear()
        self._epoll.close()

    # libcurl's callbacks: they note what it wants and call nothing of it

    def watch(self, what: int, fd: int, _multi: object, _data: object) -> None:
        """Note that libcurl waits for `what` at `fd`."""
        if what == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.discard(fd)
                self._left.pop(fd, None)
                with suppress(OSError):  # closed already, and so gone from the set
                    self._epoll.unregister(fd)
        elif fd in self._watched:
            self._epoll.modify(fd, _EVENTS[what])
        else:
            self._epoll.register(fd, _EVENTS[what])
            self._watched.add(fd)
            self._calls.sockets.add(fd)

    def set_timer(self, timeout_ms: int) -> None:
        """Note that libcurl wants to run after `timeout_ms`; below 0: never."""
        if timeout_ms <= 0:
            self._deadline = None
            if timeout_ms == 0:
                self.kick()
            return
        self._deadline = deadline = self._loop.time() + timeout_ms / 1000
        if self._timer is None:
            self._arm(deadline)
        elif self._timer_due > deadline:
            self._timer.cancel()
            self._arm(deadline)

    def _arm(self, deadline: float) -> None:
        # Not asked of the timer itself: uvloop gives a plain Handle for a moment that rounds to now.
        self._timer, self._timer_due = self._loop.call_at(deadline, self._alarm), deadline

    # the event loop's callbacks

    def _alarm(self) -> None:
        self._timer = None
        if self._deadline is None or self._stopped:
            return
        if self._deadline - self._loop.time() > 0.001:  # moved since: libcurl moves it with every step
            self._arm(self._deadline)
            return
        self._deadline = None
        self._to_run()

    def kick(self) -> None:
        """Call `run` at the loop's next turn, once for all callers of this one."""
        if not self._kicked:
            self._kicked = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._kicked = False
        self._to_run()

    def _ready(self) -> None:
        """Go on with the ready sockets. Handshakes and the others have half of the time each, so that neither waits
        long."""
        ready, self._left = {**self._left, **dict(self._epoll.poll(0, READY))}, {}
        greeted = self._calls.greeted
        quick, shaking = [fd for fd in ready if fd not in greeted], [fd for fd in ready if fd in greeted]
        for fds, most in ((quick, READY), (shaking, HANDSHAKES)):
            end = self._clock.now() + TURN_S / 2
            for at, fd in enumerate(fds):
                if self._stopped:
                    return
                if at >= most or (at and self._clock.now() > end):
                    self._left.update((left, ready[left]) for left in fds[at:] if left in self._watched)
                    break
                self._go_on(fd, _SELECTS[ready[fd] & 31])
