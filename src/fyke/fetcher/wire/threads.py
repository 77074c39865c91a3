"""Carries out transfers for which libcurl would hold the loop, each in a thread of its own.

In FTP libcurl waits inside a call: for the reply that ends a transfer ("226"), once the data are there, and for the
answer to QUIT, when a connection is closed. A silent server would hold everything that is called from there. So
`CurlClient` brings requests that say `blocks` here, and is told on the loop how each ended.

Nobody waits for a thread. A transfer that is broken off is over at once, and its result is dropped. Its thread ends by
itself, when libcurl next asks whether to go on (each second), or has waited `stall_s` for a reply. These transfers
share nothing that the loop reckons with: each keeps its body by itself, and takes at most `RATE_BYTES_S` of it in a
second.

Invariant: each started transfer is reported once, or given back by `break_off` or `close`. Bounded: at most
`MOST_THREADS` exist, abandoned ones included. While others wait for a thread, a transfer that has had one for `LONG_S`
is cut.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import pycurl

from fyke.core.clock import Clock
from fyke.core.document import SMALL_BYTES, Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.wire.curl_errors import TransferEnd
from fyke.fetcher.wire.request import Done, Option, Request
from fyke.fetcher.wire.transfer import Calls, Slot

MOST_THREADS = 16
LONG_S = 30.0
RATE_BYTES_S = 1 << 20  # of a body: more would hold the interpreter, or the processors, when the loop wants them
PIECE_S = 0.005  # between two pieces, however small, for the same reason

_OVERDUE = TransferEnd(Outcome.STALLED, "cut, because it took long and other requests waited for its thread")


class _BlockingSlot(Slot):
    """A slot for one request, in a thread. Until the request has ended, the loop touches only `unwanted`."""

    __slots__ = ("unwanted",)

    def __init__(self, options: Iterable[Option], limit_bytes: int) -> None:
        super().__init__(options, limit_bytes, deque(), Calls(), alone=True)
        self.unwanted = False  # nobody waits for it any more
        self.curl.setopt(pycurl.FRESH_CONNECT, 1)
        self.curl.setopt(pycurl.NOPROGRESS, 0)

    def step(self, *_: int) -> int:
        """Return 1 to break off, when libcurl went on or waits."""
        return int(self.unwanted)

    def write(self, chunk: bytes) -> int | None:
        """Take a piece of the body and sleep for the time that it is due; return 0 to break off."""
        self.take_turn()
        if self.unwanted or super().write(chunk) == 0:
            return 0
        time.sleep(PIECE_S + len(chunk) / RATE_BYTES_S)
        return None


class TransferThreads:
    """Transfers under way in threads, and those that wait for one."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        options: Sequence[Option],
        limit_bytes: int,
        folder: str | None,
        ended: Callable[[Slot, Exchange], None],
    ) -> None:
        """`options` are those of every handle. Bodies of more than `SMALL_BYTES` go to `folder`, and at most
        `limit_bytes` of each are kept. `ended` is called on `loop`."""
        self._loop = loop
        self._clock = clock
        self._options = options
        self._limit_bytes = limit_bytes
        self._folder = folder
        self._tell = ended
        self._waiting: deque[_BlockingSlot] = deque()
        self._under_way: dict[_BlockingSlot, float] = {}  # since when (unix seconds), in that order
        self._threads = 0
        self._overtime: asyncio.Handle | None = None

    def __repr__(self) -> str:
        return f"TransferThreads({len(self._waiting)} wait, {len(self._under_way)} under way, {self._threads} threads)"

    def __len__(self) -> int:
        """Return how many were started and have not ended."""
        return len(self._waiting) + len(self._under_way)

    def start(self, request: Request, done: Done, now: float) -> None:
        """Carry out `request`, once there is a thread for it. Raises pycurl.error or ValueError for a URL libcurl
        cannot take."""
        slot = _BlockingSlot([*self._options, *request.dialect.options()], self._limit_bytes)
        slot.aim(request, done, now, Document(memory_bytes=SMALL_BYTES, folder=self._folder))
        self._waiting.append(slot)
        self._begin()

    def break_off(self, visit: Visit, how: TransferEnd) -> tuple[Done, Exchange] | None:
        """End the request for `visit` as `how` says, and return its exchange; None if there is no such request."""
        slots = (*self._waiting, *self._under_way)
        slot = next((slot for slot in slots if slot.request.visit is visit), None)
        return None if slot is None else (slot.done, self._without(slot, how))

    def close(self, how: TransferEnd) -> list[tuple[Done, Exchange]]:
        """End all as `how` says. Threads may go on for a while: nobody hears of it."""
        if self._overtime is not None:
            self._overtime.cancel()
        return [(slot.done, self._without(slot, how)) for slot in (*self._waiting, *self._under_way)]

    def _without(self, slot: _BlockingSlot, how: TransferEnd) -> Exchange:
        """End `slot` without its thread."""
        if self._under_way.pop(slot, None) is None:
            self._waiting.remove(slot)
            slot.curl.close()
        slot.unwanted = True
        request, took_s = slot.request, self._clock.now() - slot.started
        return Exchange(request.visit, how.outcome, slot.started, took_s, request.address, how.detail)

    def _begin(self) -> None:
        while self._waiting and self._threads < MOST_THREADS:
            slot = self._waiting.popleft()
            self._under_way[slot] = self._clock.now()
            self._threads += 1
            threading.Thread(target=self._carry_out, args=(slot,), name="fyke-transfer", daemon=True).start()
        if self._waiting and self._overtime is None:
            self._overtime = self._loop.call_later(LONG_S, self._cut_overdue)

    def _cut_overdue(self) -> None:
        """Cut transfers that hold up others."""
        self._overtime = self._loop.call_later(LONG_S, self._cut_overdue) if self._waiting else None
        long_ago = self._clock.now() - LONG_S
        overdue = [slot for slot, since in self._under_way.items() if since <= long_ago]
        for slot in overdue[: len(self._waiting)]:
            self._tell(slot, self._without(slot, _OVERDUE))

    def _carry_out(self, slot: _BlockingSlot) -> None:
        """Run the transfer in its thread, and close its handle there, because libcurl may wait in both."""
        try:
            slot.curl.perform()
        except pycurl.error as error:
            end = slot.end(*error.args)
        else:
            end = slot.end(0, "")
        exchange = slot.concluded(end)
        try:
            self._loop.call_soon_threadsafe(self._ended, slot, exchange)
        except RuntimeError:  # the loop is closed, and with it the client
            exchange.body.close()
        slot.curl.close()

    def _ended(self, slot: _BlockingSlot, exchange: Exchange) -> None:
        self._threads -= 1
        if self._under_way.pop(slot, None) is None:
            exchange.body.close()
        else:
            self._tell(slot, exchange)
        self._begin()
