"""Results of visits, until the loop takes them.

Invariant: each result that was put in is taken out once.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from fyke.core.batches import Kind, url_batch
from fyke.core.clock import Clock
from fyke.core.messages import Rules
from fyke.core.outcomes import Outcome
from fyke.core.urls import Locator
from fyke.core.visits import Exchange, Purpose, Visit, batch_of
from fyke.fetcher.beginnings import Beginnings

MOST_UNTAKEN = 512  # exchanges at which no more requests begin
MOST_UNREAD = 64  # pages among them, the same: until they are read nobody knows which are of traps


@dataclass(frozen=True, slots=True)
class Fetched:
    """The results of visits since the last call."""

    exchanges: list[Exchange]
    learned: list[tuple[str, Rules, float]]  # origins, what their robots.txt says, and until when (unix seconds)
    sitemaps: list[str]  # named by those robots.txt
    put_off: list[tuple[Visit, float]]  # visits that come back, and until when their hosts rest (unix seconds)


class Returns:
    """Sets `news` if there is something to take."""

    def __init__(self, news: asyncio.Event, clock: Clock) -> None:
        self._news = news
        self._clock = clock
        self._exchanges: list[Exchange] = []
        self._unread = 0  # pages among them that were asked for
        self._put_off: list[tuple[Visit, float]] = []
        self._strayed: list[pa.RecordBatch] = []
        self._beginnings = Beginnings()

    def __len__(self) -> int:
        """Return how many visits wait to be taken, without strayed ones."""
        return len(self._exchanges) + len(self._put_off)

    @property
    def exchanges(self) -> int:
        """Number of exchanges that wait to be taken."""
        return len(self._exchanges)

    @property
    def full(self) -> bool:
        """True if so many exchanges wait to be taken that no more requests should begin."""
        return len(self._exchanges) >= MOST_UNTAKEN or self._unread >= MOST_UNREAD

    @property
    def empty(self) -> bool:
        return not (self._exchanges or self._put_off or self._strayed)

    def hold(self, exchange: Exchange) -> None:
        """Take what came of a page that is visited again: its beginning, in case that no later try brings anything."""
        self._beginnings.hold(exchange)

    def put(self, exchange: Exchange) -> None:
        """Put in what came of a request."""
        self._exchanges.append(self._beginnings.instead_of(exchange))
        self._unread += exchange.visit.purpose is Purpose.PAGE
        self._news.set()

    def end(self, visit: Visit, outcome: Outcome, detail: str) -> None:
        """End `visit` without a request."""
        ended = Exchange(visit, outcome, self._clock.now(), 0.0, detail=detail)
        self._exchanges.append(self._beginnings.instead_of(ended))
        self._news.set()

    def put_off(self, visit: Visit, until: float) -> None:
        """Give `visit` back, whose host rests until `until` (unix seconds)."""
        self._put_off.append((visit, until))
        self.tell()

    def tell(self) -> None:
        """Wake the taker, also for rules that were learned."""
        self._news.set()

    def stray(self, pages: Iterable[Visit], errands: Iterable[Visit]) -> None:
        """Give back visits that are not made here because their hosts moved."""
        self._strayed += (batch_of(pages), errands_of(errands))
        self._news.set()

    def take(self, *, exchanges: bool = True) -> tuple[list[Exchange], list[tuple[Visit, float]]]:
        """Take the visits that come back, and, if asked for, the exchanges; otherwise these wait."""
        put_off, self._put_off = self._put_off, []
        taken: list[Exchange] = []
        if exchanges:
            taken, self._exchanges = self._exchanges, taken
            self._unread = 0
        return taken, put_off

    def take_strayed(self) -> list[pa.RecordBatch]:
        """Take the visits (schema `URLS`) that are not made here."""
        strayed, self._strayed = self._strayed, []
        return strayed


def errands_of(visits: Iterable[Visit]) -> pa.RecordBatch:
    """Return errands as a `URLS` batch, by the keys that their agents know them by."""
    errands = [visit for visit in visits if visit.errand]
    return url_batch(
        [Locator(visit.url.encode(), visit.errand, visit.host, visit.domain) for visit in errands], kind=Kind.RULES
    )
