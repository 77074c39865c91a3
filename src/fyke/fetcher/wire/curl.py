"""Carries out requests: libcurl's multi interface on the event loop.

Protocol modules call `start`; the client calls `done` with an `Exchange`. `sockets` has libcurl called when a socket is
ready, `line` says whose request begins next, `pool` has the handles, `handshakes` knows how many connections fit.
`threads` carries out beside the loop what would hold it.

A handshake costs as much as some ten requests. So the connections used last are kept, and a host whose connection is
gone resumes its last TLS session, whose certificate counts as checked. libcurl reads the file of trusted certificates
once. If a server sends much before it is asked anything, its certificates are long, and its connection is closed before
OpenSSL reads them. The server is asked anew, among few like it, and the new connection is not kept.

Large answers do not hold up small ones. A transfer that brought `TURN_BYTES`, or took `TURN_S`, is paused and takes
turns of that size with others like it. Together they have a share of the time while light requests end
(`fyke.core.pace`). The pause is needed, because libcurl, told of any socket, also reads on from every transfer that it
left off in the middle.

Invariant: `done` is called exactly once for every `start`, never from inside `start`, whatever the server does, also at
`close`. Bounded: idle handles by `connections`, kept connections by `kept`, and those with the ones under way by
`room`.
"""

import asyncio
from collections import deque
from functools import partial
from typing import Any

import pycurl

from fyke.core.clock import Clock
from fyke.core.config import FetchSection
from fyke.core.document import Document, SharedMemory
from fyke.core.errors import DiskFull
from fyke.core.memory import Trimmer
from fyke.core.outcomes import Outcome
from fyke.core.pace import Pace
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.curl_errors import TransferEnd
from fyke.fetcher.wire.handshakes import ANY_ROOM, Handshakes, is_large
from fyke.fetcher.wire.line import ALONE_S, STARTS, WaitingLine
from fyke.fetcher.wire.options import constant_options
from fyke.fetcher.wire.pool import Pool
from fyke.fetcher.wire.request import Done, Request
from fyke.fetcher.wire.sockets import WatchedSockets
from fyke.fetcher.wire.threads import TransferThreads
from fyke.fetcher.wire.transfer import ANY, ENDLESS, NO_CALL, Calls, Slot
from fyke.fetcher.wire.watchdog import Watchdog

MANY_TIMES = 3  # hosts per connection, from which on connections are closed before they are used again
TRIM_EACH = 256  # handshakes
BODIES_BYTES = 32 << 20  # in memory, of all bodies under way or not archived yet; the rest is in files
CLOSED = "the engine was closed"  # the detail of an exchange that `close` broke off

_CLOSED = TransferEnd(Outcome.BROKEN_OFF, CLOSED)


class CurlClient:
    """Transfers over one libcurl multi handle, on one event loop.

    Bodies too large for memory go to `document_folder`. `kept` connections are kept for the next visit to their hosts
    (by default twice `connections`). Raises ConfigurationError if `config.ca_file` cannot be used.
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
        of_address: int = 0,
    ) -> None:
        """`pace` is told of light requests that ended. At most `of_address` connections are open to a port of an
        address or proxy, idle ones included; 0: no bound."""
        self._loop = loop
        self._clock = clock
        self._folder = document_folder
        self._room = self._most = ANY_ROOM  # connections that fit, and that libcurl may have, kept ones included
        self._hosts = 0  # visited by turns
        self._active: dict[Any, Slot] = {}
        self._line = WaitingLine()
        self._handshakes = Handshakes(config.connections)
        self._trimmer, self._trim_at = Trimmer(), TRIM_EACH  # count of handshakes with certificates
        self._refused: list[tuple[Done, Exchange]] = []
        self._closed = False
        self._failure: DiskFull | None = None
        self._document = partial(Document, folder=document_folder, shared=SharedMemory(BODIES_BYTES))
        self._pace = pace or Pace(clock)
        self._share = self._pace.share()  # of the time, for transfers that take turns
        self._paused: deque[Slot] = deque()  # transfers that wait for their turn
        self._calls = Calls()
        options = constant_options(config)
        self._threads = TransferThreads(loop, clock, options, config.max_body_bytes, self._folder, self._ended_beside)
        self._pool = Pool(
            options, config.connections, limit_bytes=config.max_body_bytes, paused=self._paused, calls=self._calls
        )
        self._watchdog = Watchdog(self._calls)
        self._turns: asyncio.Handle | None = None  # the next turn
        self._overtime: asyncio.Handle | None = None
        self._sockets = WatchedSockets(loop, clock, self._calls, self._go_on_at, self._run)
        self._multi = self._new_multi(2 * config.connections if kept is None else kept, of_address)
        loop.call_soon(self._watchdog.start)

    def _new_multi(self, kept: int, of_address: int) -> Any:
        multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._sockets.set_timer)
        multi.setopt(pycurl.M_MAXCONNECTS, kept)
        multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, of_address)  # their "host" is the address that we give
        multi.setopt(pycurl.M_PIPELINING, 0)
        return multi

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"CurlClient({self.in_flight} in flight, {self._pool.idle_count} idle{state})"

    @property
    def in_flight(self) -> int:
        """Number of requests started whose `done` has not been called."""
        return len(self._active) + len(self._line) + len(self._threads) + len(self._refused)

    def room(self, hosts: int) -> int:
        """Return how many connections there may be, kept ones included, while this many `hosts` are visited."""
        self._hosts = hosts
        return self._room

    def start(self, request: Request, done: Done) -> None:
        """Carry out `request` and call `done` once, later, on the loop.

        Raises DiskFull once a body could not be written, because nothing can be kept from then on.
        """
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise RuntimeError("start() after close()")
        self._begin(request, done, self._clock.now())

    def _begin(self, request: Request, done: Done, started: float) -> None:
        self._sockets.kick()
        try:
            if request.blocks:
                self._threads.start(request, done, started)
            else:
                self._line.join(self._aimed(request, done, started))
        except (pycurl.error, ValueError) as error:
            why = f"cannot be requested: {error}"
            refused = Exchange(request.visit, Outcome.UNSUPPORTED, started, 0.0, request.address, why)
            self._refused.append((done, refused))

    def _aimed(self, request: Request, done: Done, started: float) -> Slot:
        host = request.visit.host
        slot = self._pool.slot(request.dialect, alone=self._line.is_large(host))
        try:
            slot.aim(request, done, started, self._document())
            if slot.alone:
                self._overtime = self._overtime or self._loop.call_later(ALONE_S, self._cut_overdue)
            else:
                slot.share(self._pool.sessions(host))
        except (pycurl.error, ValueError):
            self._pool.put_back(slot)
            raise
        return slot

    def cut(self, visit: Visit, why: str) -> None:
        """Break off the request for `visit`, if it is under way. `done` is called later, as for one that stalled."""
        how = TransferEnd(Outcome.STALLED, why)
        if broken_off := self._threads.break_off(visit, how):
            self._refused.append(broken_off)
        else:
            slot = self._line.leave(visit)
            if slot is None:
                slot = next((slot for slot in self._active.values() if slot.request.visit is visit), None)
                if slot is None:
                    return
                self._take_back(slot)
            self._refused.append((slot.done, slot.concluded(how)))
            self._pool.put_back(slot)
        self._sockets.kick()

    def _cut_overdue(self) -> None:
        """Cut slots that hold up others whose certificates are as large."""
        self._overtime = self._loop.call_later(ALONE_S, self._cut_overdue) if len(self._line) else None
        for slot in self._line.overdue(self._clock.now()):
            self.cut(slot.request.visit, "cut, because its certificates are large and other such servers waited")

    def _take_back(self, slot: Slot) -> None:
        """Remove `slot` from libcurl."""
        del self._active[slot.curl]
        self._line.ended(slot)
        self._multi.remove_handle(slot.curl)
        if self._line.may_begin:
            self._sockets.kick()

    def close(self) -> None:
        """Break off the requests in flight, each with `BROKEN_OFF` and detail `CLOSED`, and let go of everything."""
        if self._closed:
            return
        self._closed = True
        self._sockets.stop()
        for timer in (self._turns, self._overtime):
            if timer is not None:
                timer.cancel()
        self._paused.clear()
        for slot in list(self._active.values()):
            self._take_back(slot)
            self._deliver(slot, _CLOSED)
        while (waiting := self._line.next(0.0)) is not None:
            self._line.ended(waiting)
            self._deliver(waiting, _CLOSED)
        self._refused += self._threads.close(_CLOSED)
        self._deliver_refused()
        self._pool.close()
        self._calls.count, self._calls.about = self._calls.count + 1, ANY
        self._multi.close()
        self._pool.close_sessions()
        self._watchdog.close()
        self._sockets.close()

    # the event loop's callbacks

    def _run(self) -> None:
        self._deliver_refused()
        if self._closed:
            return
        for slot in self._line.turn(self._clock.now()):
            self._active[slot.curl] = slot
            self._multi.add_handle(slot.curl)
        self._act(pycurl.SOCKET_TIMEOUT, 0)
        if self._line.may_begin:
            self._sockets.kick()

    def _go_on_at(self, fd: int, selected: int) -> None:
        slot = self._calls.greeted.get(fd)
        if slot is None or slot.alone:
            self._act(fd, selected)
        elif is_large(fd):
            self._take_back(slot)
            self._set_apart(slot)
        else:
            with self._handshakes.going_on(fd):
                self._act(fd, selected)
            self._make_room()

    def _set_apart(self, slot: Slot) -> None:
        """Ask the server of `slot` anew on another connection. If its certificates are long, that waits for room among
        those like it."""
        if not slot.talked:
            self._line.note_large(slot.request.visit.host)
        request, done, started = slot.request, slot.done, slot.started
        slot.body.close()
        self._pool.put_back(slot)
        self._begin(request, done, started)

    def _make_room(self) -> None:
        """Let libcurl have as many connections as fit: it closes those idle longest. The memory that certificates leave
        lies between used memory, so it is trimmed."""
        if self._handshakes.seen >= self._trim_at:
            self._trim_at = self._handshakes.seen + TRIM_EACH
            self._trimmer.trim()
        self._room = most = self._handshakes.room
        if self._hosts > MANY_TIMES * most:  # no connection lasts until its host's next visit
            most = min(most, max(most // 2, len(self._active) + STARTS))
        if not 0.9 * self._most < most < 1.1 * self._most:
            self._most = most
            self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, most)

    def _act(self, fd: int, selected: int, *, in_turn: bool = False) -> None:
        self._calls.count, self._calls.at = self._calls.count + 1, self._clock.now()
        self._calls.about, self._calls.slot = fd, None
        _, running = self._multi.socket_action(fd, selected)
        self._calls.about = NO_CALL
        if (slot := self._calls.slot) is not None:
            took_s = self._clock.now() - self._calls.at
            if slot.turns and not in_turn:
                self._share.count_unexpected(took_s)
            slot.took(took_s)
        if running < len(self._active):
            self._drain()
        if self._paused and self._turns is None and not self._closed:
            self._turns = self._loop.call_later(self._share.wait_s(), self._take_turn)

    def _take_turn(self) -> None:
        """Let the next paused transfer go on, if there is time for it."""
        self._turns = None
        if wait_s := self._share.wait_s():
            self._turns = self._loop.call_later(wait_s, self._take_turn)
            return
        with self._share.taken():
            self._go_on(self._paused.popleft())
            self._act(pycurl.SOCKET_TIMEOUT, 0, in_turn=True)

    def _go_on(self, slot: Slot) -> None:
        if not slot.take_turn():
            return  # it ended meanwhile
        try:
            slot.curl.pause(pycurl.PAUSE_CONT)
        except pycurl.error as error:  # the piece that waited was refused
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
        slot = self._active.get(curl)
        if slot is None:  # `close`, called by an owner's `done` in this turn, ended it
            return
        self._take_back(slot)
        if slot.large or slot.said_more:
            self._pool.forget_session(slot.request.visit.host)
        if slot.large or slot.talked:
            self._set_apart(slot)
            return
        if code == 0:
            self._line.note_answered(slot.request.visit.host)
            if slot.turns == 0:
                self._pace.note_light()
        if code and not slot.broken_off and self._watchdog.ended(curl.getinfo(pycurl.LOCAL_PORT)):
            self._deliver(slot, TransferEnd(Outcome.BAD_ANSWER, ENDLESS))
        else:
            self._note_disk(slot)
            self._deliver(slot, slot.end(code, message))

    def _note_disk(self, slot: Slot) -> None:
        if slot.disk_error is not None:
            self._failure = DiskFull(
                f"cannot write a body to {self._folder or 'the temporary folder'}: free some space"
            )
            self._failure.__cause__ = slot.disk_error

    def _ended_beside(self, slot: Slot, exchange: Exchange) -> None:
        self._note_disk(slot)
        self._call(slot.done, exchange)

    def _deliver(self, slot: Slot, how: TransferEnd) -> None:
        exchange, done = slot.concluded(how), slot.done
        self._pool.put_back(slot)
        self._call(done, exchange)

    def _deliver_refused(self) -> None:
        refused, self._refused = self._refused, []
        for done, exchange in refused:
            self._call(done, exchange)

    def _call(self, done: Done, exchange: Exchange) -> None:
        try:
            done(exchange)
        except Exception as error:  # noqa: BLE001 - the loop reports an owner's bug; other transfers go on
            self._loop.call_exception_handler(
                {"message": f"done() failed for {exchange.visit.url}", "exception": error}
            )
