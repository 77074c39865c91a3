"""The beginnings of pages that broke off and are asked for again, in case no later try brings anything.

`Returns` holds the newest of each page, and hands it out in place of a last try that brought nothing. Bounded: few are
held, and short ones; the oldest goes first. They are in memory only, so a page whose tries a kill parts has none.
"""

from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange
from fyke.fetcher.wire.http import last_outcome

MOST_HELD = 64  # each may be a file
HELD_BYTES = 4 << 20  # of them all
_BROUGHT_NOTHING = frozenset(
    {
        Outcome.NO_SUCH_NAME,
        Outcome.DNS_FAILED,
        Outcome.CONNECT_FAILED,
        Outcome.TLS_FAILED,
        Outcome.TIMED_OUT,
        Outcome.STALLED,
        Outcome.BROKEN_OFF,
        Outcome.BAD_ANSWER,
        Outcome.HOST_RETIRED,
    }
)


class Beginnings:
    """Exchanges that brought a part of a page, by its key, with how often it was tried by then."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Exchange, int]] = {}
        self._size_bytes = 0

    def __repr__(self) -> str:
        return f"Beginnings({len(self._held)} held, {self._size_bytes} bytes)"

    def hold(self, exchange: Exchange) -> None:
        """Hold what `exchange` brought of a page that is visited again, if it is a beginning; otherwise close it."""
        key, size_bytes = exchange.visit.key, exchange.body.size
        if last_outcome(exchange) is not Outcome.INCOMPLETE or size_bytes > HELD_BYTES:
            exchange.body.close()
            return
        self._drop(key)
        while self._held and (len(self._held) == MOST_HELD or self._size_bytes + size_bytes > HELD_BYTES):
            self._drop(next(iter(self._held)))
        self._held[key] = exchange, exchange.visit.tries
        self._size_bytes += size_bytes

    def instead_of(self, last: Exchange) -> Exchange:
        """Return `last`, the last try of its page, or the beginning that an earlier try of the same visit brought if
        this one brought nothing."""
        held, tries = self._held.get(last.visit.key, (last, 0))
        if held is last:
            return last
        if last.outcome not in _BROUGHT_NOTHING or last.visit.tries < tries:
            self._drop(last.visit.key)
            return last
        del self._held[last.visit.key]
        self._size_bytes -= held.body.size
        last.body.close()
        held.visit, held.outcome = last.visit, Outcome.INCOMPLETE
        held.detail = f"{held.detail}; the last try brought nothing: {last.outcome}"
        return held

    def _drop(self, key: int) -> None:
        held, _ = self._held.pop(key, (None, 0))
        if held is not None:
            self._size_bytes -= held.body.size
            held.body.close()
