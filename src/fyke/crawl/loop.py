"""How a crawl runs: the loop that moves messages between two engines and a worker, top to bottom.

        ┌────────────── frontier: what may be fetched next ─────────────────────────────┐
    Links ─► filter ─► seen ─► star ─► beast ─► robots gate ─► order ─► ready ─► Visits
        └───────────────────────────────────────────────────────────────────────────────┘
       ▲        ▲ Outcomes                                                          │
       │        │                                                                   ▼
        ┌────────────── fetcher: what the servers say ──────────────────────────────────┐
        names ─► host's rest ─► robots ─► protocol module ─► exchange
        └───────────────────────────────────────────────────────────────────────────────┘
                                   │
                                   ▼
        harvest: decode ─► content-seen ─► parse ─► links, outcome ─► barn: records, rows, sinks

`turn` is the figure. It runs when visits have ended and on a slow beat; between turns the fetcher moves on its
own. Everything is on one thread. What comes of a visit is kept (`Barn`) before its outcome is put into the
outbox, and the outbox is emptied into the frontier before a checkpoint: so a checkpoint between turns finds each
visit either done or handed out, which is to say waiting.

Invariant: a visit leaves the frontier's window only when record and links are in files that the next
checkpoint names.
"""

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from fyke.core.batches import Kind
from fyke.core.clock import Clock
from fyke.core.config import CrawlSection
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Purpose
from fyke.crawl.barn import Barn
from fyke.crawl.fetcher import Fetched, Fetcher
from fyke.crawl.harvest import Harvest, Reaped
from fyke.crawl.keeper import Keeper
from fyke.crawl.mail import Outbox
from fyke.frontier.frontier import Frontier, Need

BEAT_S = 0.05
GRACE_S = 2.0
MERGE_SHARE = 4  # merges while visits run low may take one part in this many of the time


class Ending(StrEnum):
    """Why a crawl ended, or paused."""

    FINISHED = "finished"  # nothing is left to fetch
    BLOCKED = "blocked"  # nothing is left but what waits for hosts that a person blocked
    PAGES = "pages"  # as many pages as were asked for
    TIME = "time"  # as long as was asked for
    STOPPED = "stopped"  # by the person
    UNREACHED = "unreached"  # no server answers


@dataclass(frozen=True, slots=True)
class Engines:
    """What the loop moves messages between."""

    frontier: Frontier
    fetcher: Fetcher
    harvest: Harvest
    barn: Barn
    outbox: Outbox


class Loop:
    """Runs the engines until nothing is left, a limit is reached, or `stop` is called."""

    def __init__(self, engines: Engines, asked: CrawlSection, clock: Clock, news: asyncio.Event) -> None:
        """`news` is set by the fetcher when something ended."""
        self._frontier = engines.frontier
        self._fetcher = engines.fetcher
        self._harvest = engines.harvest
        self._barn = engines.barn
        self._outbox = engines.outbox
        self._asked = asked
        self._clock = clock
        self._news = news
        self._merge_at = 0.0  # when the frontier may merge less than a full batch again
        self._moved = False
        self._stop: Ending | None = None
        self.failure: BaseException | None = None

    def stop(self) -> None:
        """End the crawl at the next turn; it can be resumed."""
        self._stop = Ending.STOPPED
        self._news.set()

    async def run(self, keeper: Keeper) -> Ending:
        """Turn until the end, with checkpoints in between; then let what is under way end, for `GRACE_S` at most."""
        started = self._clock.now()
        while (ending := self._ending(started)) is None:
            self.turn()
            if keeper.due():
                self.deliver()
                await keeper.take()
            await self._rest()
        await self._wind_down()
        return ending

    def turn(self) -> None:
        """The figure, once around."""
        begun = self._clock.now()
        self._gather(self._fetcher.take())
        hungry = self._hungry(begun)
        if hungry or self._outbox.full:
            self.deliver()
        self._moved = self._frontier.turn(begun, hungry=hungry)
        if hungry:
            ended = self._clock.now()
            self._merge_at = ended + (ended - begun) * (MERGE_SHARE - 1)
        self._fetcher.refuse(self._frontier.refused())
        self._fetcher.put(self._frontier.visits(begun, self._fetcher.rules_room))
        self._fetcher.pump()

    def _gather(self, fetched: Fetched) -> None:
        """Keep what came of visits, and put what the frontier is to know into the outbox."""
        for reaped in self._harvest.reap(fetched.exchanges):
            self._barn.store(reaped)
            self._send(reaped)
        for origin, rules, until in fetched.learned:
            self._outbox.put_learned(origin, rules, until)
        if fetched.sitemaps:  # links from nowhere, as near as a seed
            sitemaps = [locate(url) for url in fetched.sitemaps]
            self._outbox.put_links(sitemaps, via=0, domain=0, depth=0, kind=Kind.LISTING)

    def _send(self, reaped: Reaped) -> None:
        visit = reaped.exchange.visit
        for links in reaped.pointers:
            if links.kind is not None:
                self._outbox.put_links(
                    links.found, via=visit.key, domain=visit.domain, depth=links.depth, kind=links.kind
                )
        if visit.purpose is Purpose.PAGE:
            self._outbox.put_ended(visit, reaped.exchange.outcome)
            if reaped.exchange.outcome is Outcome.OK and not reaped.is_page:
                self._fetcher.give_back()

    def deliver(self) -> None:
        """Give the frontier all that waits for it."""
        self._frontier.put_links(self._outbox.take_links())
        self._frontier.put_outcomes(self._outbox.take_outcomes(), self._clock.now())

    def _hungry(self, now: float) -> bool:
        """Whether the frontier may merge what is less than a full batch: always when nothing is left to fetch, else as
        far as that takes one part in `MERGE_SHARE` of the time."""
        need = self._frontier.need
        return self._fetcher.idle or need is Need.IDLE or (need is Need.LOW and now >= self._merge_at)

    @property
    def _idle(self) -> bool:
        return self._fetcher.idle and not self._outbox

    def _ending(self, started: float) -> Ending | None:
        if self.failure is not None:
            raise self.failure
        if self._stop is not None:
            return self._stop
        if self._asked.for_s and self._clock.now() - started >= self._asked.for_s:
            return Ending.TIME
        if self._fetcher.has_its_pages:
            return Ending.PAGES
        if not self._barn.answered and self._fetcher.unreached:  # the fault is likely on our side
            return Ending.UNREACHED
        if self._idle and self._frontier.empty:
            return Ending.BLOCKED if self._frontier.statistics().blocked else Ending.FINISHED
        return None

    async def _rest(self) -> None:
        """Until something ends, or the next beat; work that can go on gets no rest."""
        self._news.clear()
        if self._fetcher.ended or (self._idle and self._moved):
            await asyncio.sleep(0)
            return
        timer = asyncio.get_running_loop().call_later(BEAT_S, self._news.set)
        await self._news.wait()
        timer.cancel()

    async def _wind_down(self) -> None:
        await self._fetcher.stop()
        deadline = self._clock.now() + GRACE_S
        while self._fetcher.in_flight and self._clock.now() < deadline:
            await self._rest()
        self._fetcher.abort()
        await asyncio.sleep(0)
        self._gather(self._fetcher.take())
        self.deliver()
