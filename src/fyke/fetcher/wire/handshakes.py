"""What connections over TLS take, and how many there may be.

OpenSSL keeps the certificates of a server as long as the connection to it, with each name in them as objects of its
own: a server chooses up to 100 KB, which become 4 MB. How much came in before anything was asked tells how large they
are, and that is known before OpenSSL reads them (`is_large`): such a connection is made alone with few like it, and
not kept. What the others take is not seen by their length, names being forty times as dear as numbers. So it is
measured at some of them, and `room` is how many fit.

Called by `CurlEngine`. Invariant: by what was measured, `room` connections take what there is for them, at most.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fyke.core.memory import allocated_bytes
from fyke.fetcher.wire.received import received_bytes

LARGE_BYTES = 12 << 10  # of a server's part of a handshake; four certificates have 3 to 6 KB
SHARE_BYTES = 624 << 10  # for each of `fetch.connections`: by default 156 MB in all
EACH_BYTES = 144 << 10  # of a connection, beside its certificates: it has a context of OpenSSL of its own
MOST_TIMES = 48  # as much as came, certificates may take: names of no letter
LEAST_BYTES = 1 << 10  # with less no certificate came: the session is an earlier one's
SAMPLES = 32  # that are remembered, more or less
EACH = 8  # handshakes, of which one is measured
ANY_ROOM = 1 << 20  # more connections than there ever are
LEAST_BESIDE = 64  # connections, beside those for fast hosts


def is_large(fd: int) -> bool:
    """Whether a server said too much at the connection `fd`, which was asked nothing yet."""
    return received_bytes(fd) > LARGE_BYTES


class Handshakes:
    """What certificates take, on the average of late handshakes."""

    def __init__(self, connections: int, measure: Callable[[], int] = allocated_bytes) -> None:
        """`connections`: as the settings say; `measure` says what the process has in use, in bytes."""
        self._connections = connections
        self._measure = measure
        self.seen = 0  # in which certificates came
        self._samples = 0
        self._mean_bytes = 0.0

    def __repr__(self) -> str:
        return f"Handshakes({self._mean_bytes / 1024:.0f} KB of certificates each)"

    @property
    def room(self) -> int:
        """How many connections fit."""
        fit = self._connections * SHARE_BYTES / (EACH_BYTES + self._mean_bytes)
        return max(int(fit), self._connections + LEAST_BESIDE)

    @contextmanager
    def going_on(self, fd: int) -> Iterator[None]:
        """libcurl goes on with the one at `fd`."""
        came_bytes = received_bytes(fd)
        if came_bytes < LEAST_BYTES:
            yield
            return
        self.seen += 1
        if self.seen % EACH and self._samples >= SAMPLES:
            yield
            return
        before_bytes = self._measure()
        yield
        taken_bytes = self._measure() - before_bytes  # and what other threads took meanwhile
        self._note(min(max(taken_bytes, came_bytes), MOST_TIMES * came_bytes))

    def _note(self, taken_bytes: int) -> None:
        self._samples += 1
        self._mean_bytes += (taken_bytes - self._mean_bytes) / min(self._samples, SAMPLES)
