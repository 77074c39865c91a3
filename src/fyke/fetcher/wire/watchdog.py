"""Ends connections that libcurl reads without an end while no part of an answer comes.

In TLS 1.3 a server may send data for the protocol alone (session tickets, new keys), and OpenSSL takes all that come
inside one call. Then libcurl does not return, the loop stands still, and no bound of ours is asked. The call gives up
the interpreter's lock, so a thread can look at it each `LOOK_S`. If it must, the thread shuts the connection down and
drops the data that wait in it. `CurlClient` says in `Calls` what libcurl is about.

Invariant: a connection is ended only if three things hold in one call. Look after look found more of it read, the
loop's thread had `MOST_BUSY_S` of a processor between them, and hardly a callback of ours was called. A busy machine, a
stopped process, a slow disk and a long callback end nothing.
"""

import os
import socket
import threading
import time
from contextlib import suppress

from fyke.fetcher.wire.received import read_bytes
from fyke.fetcher.wire.transfer import NO_CALL, Calls

LOOK_S = 0.02
MOST_BUSY_S = 0.08  # of processor time; an honest server's data take a hundredth of it in one call
NEXT_BUSY_S = 0.04  # the same, once a connection was ended in the call
CALLBACK_S = 0.005  # of processor time that one callback excuses
_PIECE_BYTES = 1 << 20


class Watchdog:
    """Looks at `calls` from a thread of its own, from `start` to `close`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._clock = 0  # for the processor time of the loop's thread
        self._count = -1  # number of the call that was looked at last, and its state then:
        self._busy_s = 0.0
        self._heard = 0  # at the first look
        self._read_bytes: dict[int, int] = {}  # by descriptor
        self._reading_s: dict[int, float] = {}  # processor seconds between looks that found more read, by descriptor
        self._ports: dict[int, int] = {}  # our ends of the connections ended in this call, and its number
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"Watchdog({'looking' if self._thread else 'not looking'})"

    def start(self) -> None:
        """Begin to look. To be called in the loop's thread, whose time counts."""
        if not self._over.is_set():
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
            self._thread = threading.Thread(target=self._look_on, name="fyke-watchdog", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def ended(self, port: int) -> bool:
        """Return whether the last call's connection with our end at `port` was ended here."""
        return self._ports.pop(port, -1) == self._calls.count

    def _look_on(self) -> None:
        while not self._over.wait(LOOK_S):
            self.look(time.clock_gettime(self._clock))

    def look(self, busy_s: float) -> None:
        """Look once, after `busy_s` processor seconds of the loop's thread."""
        calls = self._calls
        count, fd = calls.count, calls.about
        if fd == NO_CALL:
            return
        if count != self._count:
            self._count, self._busy_s, self._heard = count, busy_s, calls.heard
            self._read_bytes, self._reading_s = read_bytes((fd,)), {}
            self._ports.clear()
            return
        before, self._read_bytes = self._read_bytes, read_bytes(calls.sockets)  # libcurl goes on with others as well
        took_s, self._busy_s = min(LOOK_S, busy_s - self._busy_s), busy_s
        most_s = NEXT_BUSY_S if self._ports else MOST_BUSY_S
        most_s = max(most_s, (calls.heard - self._heard) * CALLBACK_S)
        for one, read in self._read_bytes.items():
            if read > before.get(one, read):
                self._reading_s[one] = self._reading_s.get(one, 0.0) + took_s
                if self._reading_s[one] >= most_s:
                    self._end(one)

    def _end(self, fd: int) -> None:
        """Shut down the connection at `fd` by a descriptor of our own, which nobody else closes."""
        with suppress(OSError), socket.socket(fileno=os.dup(fd)) as connection:
            if self._calls.about == NO_CALL or self._calls.count != self._count:
                return
            self._ports[connection.getsockname()[1]] = self._count
            connection.shutdown(socket.SHUT_RDWR)
            piece = bytearray(_PIECE_BYTES)
            while connection.recv_into(piece, 0, socket.MSG_DONTWAIT | socket.MSG_TRUNC):
                pass
