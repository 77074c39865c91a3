"""What do connections over TLS take, and how many may there be?

OpenSSL keeps a server's certificates as long as the connection, each name in them as objects of its own. A server may
choose up to 100 KB of them, which become 4 MB. The bytes that came before anything was asked show how large the
certificates are, before OpenSSL reads them (`is_large`). A connection with large ones is made alone with few like it,
and not kept. The cost of the others cannot be seen by their length, because names are forty times as dear as numbers.
So it is measured at some of them, and `room` is how many connections fit.

Called by `CurlClient`. Bounded: by what was measured, `room` connections take at most the memory for them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fyke.core.memory import allocated_bytes
from fyke.fetcher.wire.received import received_bytes

LARGE_BYTES = 12 << 10  # of a server's part of a handshake; four certificates have 3 to 6 KB
SHARE_BYTES = 624 << 10  # for each of `fetch.connections`: by default 156 MB in all
EACH_BYTES = 144 << 10  # of a connection beside its certificates, for its own OpenSSL context
MOST_TIMES = 48  # the most that certificates take per byte that came: names of no letter
LEAST_BYTES = 1 << 10  # with less no certificate came: an earlier session is resumed
SAMPLES = 32  # over which the mean runs, more or less
EACH = 8  # one in this many handshakes is measured
ANY_ROOM = 1 << 20  # more connections than there ever are
LEAST_BESIDE = 64  # connections beside those for fast hosts


def is_large(fd: int) -> bool:
    """Return whether the server at connection `fd`, which was asked nothing yet, sent too much."""
    return received_bytes(fd) > LARGE_BYTES


class Handshakes:
    """The memory that certificates take, on the average of recent handshakes."""

    def __init__(self, connections: int, measure: Callable[[], int] = allocated_bytes) -> None:
        """`connections` is the setting; `measure` returns the bytes that the process has in use."""
        self._connections = connections
        self._measure = measure
        self.seen = 0  # handshakes in which certificates came
        self._samples = 0
        self._mean_bytes = 0.0

    def __repr__(self) -> str:
        return f"Handshakes({self._mean_bytes / 1024:.0f} KB of certificates each)"

    @property
    def room(self) -> int:
        """Number of connections that fit."""
        fit = self._connections * SHARE_BYTES / (EACH_BYTES + self._mean_bytes)
        return max(int(fit), self._connections + LEAST_BESIDE)

    @contextmanager
    def going_on(self, fd: int) -> Iterator[None]:
        """Measure what libcurl takes while it goes on with the handshake at `fd`."""
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
        taken_bytes = self._measure() - before_bytes  # includes what other threads took
        self._note(min(max(taken_bytes, came_bytes), MOST_TIMES * came_bytes))

    def _note(self, taken_bytes: int) -> None:
        self._samples += 1
        self._mean_bytes += (taken_bytes - self._mean_bytes) / min(self._samples, SAMPLES)
