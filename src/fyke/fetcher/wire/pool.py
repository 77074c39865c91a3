"""Handles of libcurl that wait for their next request, and the TLS sessions that they share.

Called by `CurlClient`. Invariant: at most `most` handles are idle, and none holds anything of the last answer: no body,
no long head, and no head that broke off. Bounded: sessions of `SESSION_CACHES` times 25 hosts, libcurl's bound.
"""

from collections.abc import Iterable
from typing import Any

from fyke.fetcher.wire.options import session_cache
from fyke.fetcher.wire.request import Dialect, Option
from fyke.fetcher.wire.transfer import Slot

SESSION_CACHES = 64
MOST_LINES = 500  # of its last head, which libcurl keeps in an idle handle until the next


class Pool:
    """Slots by dialect."""

    def __init__(self, options: Iterable[Option], most: int, **shared: Any) -> None:
        """`shared` is given to every `Slot`."""
        self._options = list(options)
        self._most = most
        self._shared = shared
        self._idle: dict[Dialect, list[Slot]] = {}
        self.idle_count = 0
        self._sessions = [session_cache() for _ in range(SESSION_CACHES)]

    def __repr__(self) -> str:
        return f"Pool({self.idle_count} idle)"

    def slot(self, dialect: Dialect, *, alone: bool) -> Slot:
        """Return a slot for a request in `dialect`."""
        idle = self._idle.get(dialect)
        if idle and not alone:
            self.idle_count -= 1
            return idle.pop()
        return Slot([*self._options, *dialect.options()], **self._shared, alone=alone)

    def sessions(self, host: int) -> Any:
        """Return the cache with the session of the host with this key."""
        return self._sessions[host % SESSION_CACHES]

    def forget_session(self, host: int) -> None:
        """Drop the session of this host, which takes too much, and all others in its cache."""
        self._sessions[host % SESSION_CACHES] = session_cache()

    def put_back(self, slot: Slot) -> None:
        """Put back `slot`, whose request has ended."""
        dialect, host = slot.request.dialect, slot.request.visit.host
        unfit = slot.alone or slot.in_head or len(slot.lines) > MOST_LINES
        slot.forget()
        if unfit or self.idle_count >= self._most:
            slot.curl.close()
            return
        slot.keep_to(self.sessions(host))
        self._idle.setdefault(dialect, []).append(slot)
        self.idle_count += 1

    def close(self) -> None:
        """Close all handles; none rests here from now on."""
        self._most = 0
        for slots in self._idle.values():
            for slot in slots:
                slot.curl.close()
        self._idle.clear()
        self.idle_count = 0

    def close_sessions(self) -> None:
        """Close the sessions, once no handle uses them any more."""
        for cache in self._sessions:
            cache.close()
