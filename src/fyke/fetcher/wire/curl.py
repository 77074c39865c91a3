"""Carries out requests: libcurl's multi interface on the event loop.

Protocol modules call `start`; the engine calls `done` with an `Exchange`. libcurl tells which sockets
it waits for (its socket API), we keep those in an epoll set of our own, and the event loop watches
that one descriptor: adding and removing a socket, which libcurl does for every request on a kept
connection, is then one system call instead of a new watcher of the loop.

A handshake costs as much as some ten requests: so connections are kept, the latest used of them, and a host whose
connection is gone takes up its last TLS session, whose certificate counts as checked. libcurl reads the file of
certificates to trust once for all.

Who sends much does not hold up who sends little: a transfer that brought `TURN_BYTES` is paused and takes turns with
those like it, one after the other, each of so many bytes; all of them together have a share of the time while light
requests end (`fyke.core.pace`). It must be paused: whatever socket libcurl is told of, it also reads of every transfer
that it left off in the middle.

Invariant: `done` is called exactly once for every `start`, never from inside `start`, whatever the
server does, also at `close`. Idle handles are bounded by `connections`, kept connections by `kept`.
"""

import asyncio
import select
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pycurl

from fyke.core.clock import Clock
from fyke.core.config import FetchSection
from fyke.core.document import Document, SharedMemory
from fyke.core.errors import DiskFull
from fyke.core.outcomes import Outcome
from fyke.core.pace import Pace
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.curl_errors import TransferEnd, transfer_end
from fyke.fetcher.wire.options import constant_options, session_cache
from fyke.fetcher.wire.transfer import ANY, ENDLESS, IDLE, Calls, Dialect, Done, Request, Slot
from fyke.fetcher.wire.watchdog import Watchdog

READY = 8  # connections of which libcurl reads or writes before others have their turn: a handshake takes milliseconds
SESSION_CACHES = 64  # each of them holds 25 hosts' TLS sessions: libcurl's bound
BODIES_BYTES = 48 << 20  # in memory of all that are under way, or not archived yet; the rest is in files
MOST_DETAIL_CHARS = 300  # servers of FTP and Gopher say what went wrong
CLOSED = "the engine was closed"  # the detail of an exchange that `close` broke off

_FINE = TransferEnd(Outcome.OK, "")
_IN, _OUT, _BROKEN = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR | select.EPOLLHUP
_EVENTS = {pycurl.POLL_IN: _IN, pycurl.POLL_OUT: _OUT, pycurl.POLL_INOUT: _IN | _OUT, pycurl.POLL_NONE: 0}
_SELECTS = {
    events: (pycurl.CSELECT_IN if events & (_IN | _BROKEN) else 0)
    | (pycurl.CSELECT_OUT if events & _OUT else 0)
    | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0)
    for events in range(32)
}


@dataclass(frozen=True, slots=True)
class EngineStatistics:
    """Counters since the start, and the present state."""

    started: int
    finished: int
    body_bytes: int
    in_flight: int
    idle_handles: int
    watched_sockets: int


class CurlEngine:
    """Transfers over one libcurl multi handle, on one event loop.

    `document_folder` is where bodies too large for memory go, `kept` how many connections are kept for the next
    visit to their hosts (twice as many as there are at once).
    Raises ConfigurationError when `config.ca_file` cannot be used.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: FetchSection,
        clock: Clock,
        document_folder: str | None = None,
        pace: Pace | None = None,
        *,
        kept: int | None = None,
    ) -> None:
        """`pace` is told of light requests that ended."""
        self._loop = loop
        self._clock = clock
        self._folder = document_folder
        self._limit_bytes = config.max_body_bytes
        self._max_idle = config.connections
        self._options = constant_options(config)
        self._sessions = [session_cache() for _ in range(SESSION_CACHES)]
        self._active: dict[Any, Slot] = {}
        self._idle: dict[Dialect, list[Slot]] = {}
        self._idle_count = 0
        self._refused: list[tuple[Done, Exchange]] = []
        self._started = self._finished = self._body_bytes = 0
        self._kicked = False
        self._closed = False
        self._failure: DiskFull | None = None
        self._deadline: float | None = None
        self._timer: asyncio.Handle | None = None
        self._timer_due = 0.0
        self._watched: set[int] = set()
        self._bodies = SharedMemory(BODIES_BYTES)
        self._pace = pace or Pace(clock)
        self._share = self._pace.share()  # of the time, for those that take turns
        self._paused: deque[Slot] = deque()  # they wait for their turn
        self._calls = Calls()
        self._watchdog = Watchdog(self._calls)
        loop.call_soon(self._watchdog.start)
        self._turns: asyncio.Handle | None = None  # when the next of them has it
        self._epoll = select.epoll()
        self._multi = self._new_multi(2 * config.connections if kept is None else kept)
        loop.add_reader(self._epoll.fileno(), self._ready)

    def _new_multi(self, kept: int) -> Any:
        multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        multi.setopt(pycurl.M_MAXCONNECTS, kept)
        multi.setopt(pycurl.M_PIPELINING, 0)
        return multi

    def __repr__(self) -> str:
        return f"CurlEngine({self.in_flight} in flight{', closed' if self._closed else ''})"

    @property
    def in_flight(self) -> int:
        """Requests started whose `done` has not been called."""
        return len(self._active) + len(self._refused)

    def statistics(self) -> EngineStatistics:
        """What has been done so far."""
        return EngineStatistics(
            self._started, self._finished, self._body_bytes, self.in_flight, self._idle_count, len(self._watched)
        )

    def start(self, request: Request, done: Done) -> None:
        """Carry out `request` and call `done` once, later, on the loop.

        Raises DiskFull once a body could not be written: nothing can be kept from then on.
        """
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise RuntimeError("start() after close()")
        self._started += 1
        slot = self._slot(request.dialect)
        try:
            slot.aim(request, done, self._clock.now(), self._document())
            slot.share(self._sessions[request.visit.host % SESSION_CACHES])
            self._multi.add_handle(slot.curl)
        except (pycurl.error, ValueError) as error:
            exchange = Exchange(
                request.visit, Outcome.UNSUPPORTED, slot.started, 0.0, request.address, f"cannot be asked for: {error}"
            )
            self._rest(slot)
            self._refused.append((done, exchange))
            self._kick()
            return
        self._active[slot.curl] = slot

    def cut(self, visit: Visit, why: str) -> None:
        """Break off the request for `visit`, if it is under way; `done` is called later, as for one that stalled."""
        for curl, slot in self._active.items():
            if slot.request.visit is visit:
                del self._active[curl]
                self._multi.remove_handle(curl)
                self._refused.append((slot.done, self._concluded(slot, TransferEnd(Outcome.STALLED, why))))
                self._rest(slot)
                self._kick()
                return

    def close(self) -> None:
        """Break off what is in flight, each with `BROKEN_OFF` and detail `CLOSED`, and let go of everything."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._epoll.fileno())
        for timer in (self._timer, self._turns):
            if timer is not None:
                timer.cancel()
        self._paused.clear()
        unfinished, self._active = list(self._active.values()), {}
        for slot in unfinished:
            self._multi.remove_handle(slot.curl)
            self._deliver(slot, TransferEnd(Outcome.BROKEN_OFF, CLOSED))
        self._deliver_refused()
        for slots in self._idle.values():
            for slot in slots:
                slot.curl.close()
        self._idle.clear()
        self._idle_count = 0
        self._calls.count, self._calls.about = self._calls.count + 1, ANY
        self._multi.close()
        for cache in self._sessions:
            cache.close()
        self._watchdog.close()
        self._watched.clear()
        self._epoll.close()

    # libcurl's callbacks: they note what it wants and call nothing of it

    def _watch(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.discard(fd)
                try:
                    self._epoll.unregister(fd)
                except OSError:  # closed already, and so gone from the set
                    return
        elif fd in self._watched:
            self._epoll.modify(fd, _EVENTS[what])
        else:
            self._epoll.register(fd, _EVENTS[what])
            self._watched.add(fd)
            self._calls.sockets.add(fd)

    def _set_timer(self, timeout_ms: int) -> None:
        if timeout_ms <= 0:
            self._deadline = None
            if timeout_ms == 0:
                self._kick()
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
        if self._deadline is None or self._closed:
            return
        if self._deadline - self._loop.time() > 0.001:  # moved since: libcurl moves it with every step
            self._arm(self._deadline)
            return
        self._deadline = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _kick(self) -> None:
        """Let libcurl run at the loop's next turn, once for all that is started in this one."""
        if not self._kicked:
            self._kicked = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._kicked = False
        self._deliver_refused()
        if not self._closed:
            self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _ready(self) -> None:
        for fd, events in self._epoll.poll(0, READY):  # those beyond are ready still at the loop's next turn
            if self._closed:
                return
            self._act(fd, _SELECTS[events & 31])

    def _act(self, fd: int, selected: int) -> None:
        self._calls.count, self._calls.at = self._calls.count + 1, self._clock.now()
        self._calls.about = fd
        _, running = self._multi.socket_action(fd, selected)
        self._calls.about = IDLE
        if running < len(self._active):
            self._drain()
        if self._paused and self._turns is None and not self._closed:
            self._turns = self._loop.call_later(self._share.wait_s(), self._take_turn)

    def _take_turn(self) -> None:
        """Let the next that is paused go on, if there is time for it."""
        self._turns = None
        if wait_s := self._share.wait_s():
            self._turns = self._loop.call_later(wait_s, self._take_turn)
            return
        with self._share.taken():
            self._go_on(self._paused.popleft())
            self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _go_on(self, slot: Slot) -> None:
        if not slot.take_turn():
            return  # it ended meanwhile
        try:
            slot.curl.pause(pycurl.PAUSE_CONT)
        except pycurl.error as error:  # what was kept from it was not wanted
            self._finish(slot.curl, *error.args)

    # endings

    def _drain(self) -> None:
        queued = 1
        while queued and not self._closed:
            queued, fine, failed = self._multi.info_read()
            for curl in fine:
                self._finish(curl, 0, "")
            for curl, code, message in failed:
                self._finish(curl, code, message)

    def _finish(self, curl: Any, code: int, message: str) -> None:
        slot = self._active.pop(curl, None)
        if slot is None:  # `close`, called by an owner's `done` in this same turn, has seen to it
            return
        self._multi.remove_handle(curl)
        if code == 0:
            if slot.turns == 0:
                self._pace.light()
            self._deliver(slot, _FINE)
        elif broken_off := slot.broken_off:
            self._deliver(slot, broken_off)
        elif self._watchdog.ended(curl.getinfo(pycurl.LOCAL_PORT)):
            self._deliver(slot, TransferEnd(Outcome.BAD_ANSWER, ENDLESS))
        elif slot.disk_error is not None:
            self._failure = DiskFull(f"cannot write a body to {self._folder or 'the temporary folder'}: free some room")
            self._failure.__cause__ = slot.disk_error
            self._deliver(slot, TransferEnd(Outcome.BROKEN_OFF, f"our disk: {slot.disk_error}"))
        else:
            # On a kept connection there is no time of connecting, but something was sent.
            connected = bool(slot.lines or curl.getinfo(pycurl.CONNECT_TIME) or curl.getinfo(pycurl.REQUEST_SIZE))
            self._deliver(slot, transfer_end(code, message, connected=connected))

    def _deliver(self, slot: Slot, how: TransferEnd) -> None:
        exchange, done = self._concluded(slot, how), slot.done
        self._rest(slot)
        self._call(done, exchange)

    def _concluded(self, slot: Slot, how: TransferEnd) -> Exchange:
        request, body, curl = slot.request, slot.body, slot.curl
        size = body.size
        self._body_bytes += size
        exchange = Exchange(
            request.visit,
            how.outcome,
            slot.started,
            curl.getinfo(pycurl.TOTAL_TIME),
            request.address,
            how.detail,
            0,
            request.head,
            b"",
            body,
            how.truncated(size),
        )
        request.dialect.conclude(exchange, slot.lines, curl)
        exchange.detail = exchange.detail[:MOST_DETAIL_CHARS]
        return exchange

    def _deliver_refused(self) -> None:
        refused, self._refused = self._refused, []
        for done, exchange in refused:
            self._call(done, exchange)

    def _call(self, done: Done, exchange: Exchange) -> None:
        self._finished += 1
        try:
            done(exchange)
        except Exception as error:  # noqa: BLE001 - an owner's bug is the loop's to report; other transfers go on
            self._loop.call_exception_handler(
                {"message": f"done() failed for {exchange.visit.url}", "exception": error}
            )

    # the pool

    def _document(self) -> Document:
        """An empty body; once all together hold too much, it is a file."""
        return Document(folder=self._folder, shared=self._bodies)

    def _slot(self, dialect: Dialect) -> Slot:
        idle = self._idle.get(dialect)
        if idle:
            self._idle_count -= 1
            return idle.pop()
        return Slot(self._all_options(dialect), self._limit_bytes, self._paused, self._calls)

    def _all_options(self, dialect: Dialect) -> Iterable[tuple[int, Any]]:
        yield from self._options
        yield from dialect.options()

    def _rest(self, slot: Slot) -> None:
        dialect = slot.request.dialect
        slot.forget()
        if self._idle_count < self._max_idle and not self._closed:
            self._idle.setdefault(dialect, []).append(slot)
            self._idle_count += 1
        else:
            slot.curl.close()
