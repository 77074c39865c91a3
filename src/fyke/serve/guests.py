"""Connections to the server: anybody may open any number of them and say nothing, or one letter a second.

So a client has `PATIENCE_S` for its next request, head and body, and connections are `MOST_GUESTS` at most, or half of
the files that the process may open. If there are more, the one that has waited longest for its client goes: whoever
comes gets an answer. `Serving` has uvicorn make each connection of this class.
"""

import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_S = 10.0
LOOK_S = 1.0  # between two looks at a connection
MOST_GUESTS = 256


def most_guests() -> int:
    """Return how many connections may be open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_GUESTS if files == resource.RLIM_INFINITY else min(MOST_GUESTS, files // 2)


class Guest(H11Protocol):
    """One connection."""

    def connection_made(self, transport: Any) -> None:
        """Begin. If there are too many, another one ends."""
        super().connection_made(transport)
        self._asked: object = None  # the latest request
        self._waits_since = self.loop.time()  # for its client
        self._timer = self.loop.call_later(LOOK_S, self._look)
        if len(self.connections) > most_guests():
            guests = [guest for guest in self.connections if isinstance(guest, Guest)]
            min(guests, key=lambda guest: guest._waits_since).leave()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def leave(self) -> None:
        """End, without waiting for a client that does not read."""
        self.connections.discard(self)
        self.transport.abort()

    @property
    def _waits(self) -> bool:
        """True if it is the client's turn: to send a request, or the rest of one."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

    def _look(self) -> None:
        now = self.loop.time()
        if self.cycle is not self._asked or not self._waits:
            self._asked, self._waits_since = self.cycle, now
        if now - self._waits_since >= PATIENCE_S:
            self.leave()
        else:
            self._timer = self.loop.call_later(LOOK_S, self._look)
