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

If a crawl has several agents, the arrows between frontier and fetcher may lead to another agent: `post` takes out the
rows for other agents, and `remote` moves the rows that came from them.

`steps` is the figure, once around. It runs when visits have ended and on a slow beat. Between its steps, and between
turns, the fetcher moves on its own. Everything is on one thread. The barn keeps what a visit brought before the outbox
gets its outcome, and the outbox is emptied into the frontier before a checkpoint. A checkpoint between turns thus finds
each visit done or handed out, and a visit handed out counts as waiting.

Invariant: a visit leaves the frontier's window only when record and links are in files that the next checkpoint names.
"""

import asyncio
from enum import StrEnum
from typing import TypeVar

from fyke.core.batches import EMPTY
from fyke.core.clock import Clock
from fyke.core.config import CrawlSection
from fyke.core.hours import HostHours
from fyke.core.messages import Links, Outcomes, links_of
from fyke.core.pace import Pace
from fyke.core.slices import Steps, whole
from fyke.crawl.engines import Engines
from fyke.crawl.keeper import Keeper
from fyke.crawl.post.alone import Alone, Post
from fyke.frontier.frontier import Need

T = TypeVar("T")

BEAT_S = 0.05
LINGER_S = 0.01  # that ended visits wait for more, while more are under way
ENDED_FOR_A_TURN = 32  # ended visits that start a turn at once
GRACE_S = 2.0
LINK_BYTES = 1 << 20  # of URLs that the frontier is given in a turn
REWRITTEN_BYTES = 1 << 17  # the same if rules rewrite URLs: one of 2 KB may take 0.4 ms
RULES_A_STEP, RULES_STEPS = 256, 8  # origins asked for robots.txt, each a look at the host book; steps in a turn
MERGE_SHARE = 4  # while visits run low, merges may take one part in this many of the time


class Ending(StrEnum):
    """Why a crawl ended, or paused."""

    FINISHED = "finished"  # nothing is left to fetch
    BLOCKED = "blocked"  # only URLs of hosts that a person blocked are left
    RESTING = "resting"  # only URLs of hosts that rest for longer than `wait_s` are left
    BYTES = "bytes"  # the bytes asked for were received
    PAGES = "pages"  # the pages asked for were fetched
    TIME = "time"  # the time asked for is over
    STOPPED = "stopped"  # a person stopped it
    UNREACHED = "unreached"  # no server answers


class Loop:
    """Runs the engines until nothing is left, a limit is reached, or `stop` is called."""

    def __init__(
        self,
        engines: Engines,
        asked: CrawlSection,
        clock: Clock,
        news: asyncio.Event,
        *,
        least_merge_s: float = 0.0,
        link_bytes: int = LINK_BYTES,
        hours: HostHours | None = None,
    ) -> None:
        """`news` is set by the fetcher when something ended. `least_merge_s`: least time between merges granted because
        visits run low, for a clock that stands still meanwhile. `link_bytes`: about how many bytes of URLs the frontier
        is given in a turn; fewer if rules rewrite them. The crawl waits for the `hours` in which hosts are asked,
        however long."""
        self._frontier = engines.frontier
        self._fetcher = engines.fetcher
        self._gathering = engines.gathering
        self._outbox = engines.outbox
        self._remote = engines.remote
        self._revisits = engines.revisits
        self._rewriting = engines.rewriting
        self._link_bytes = link_bytes if engines.rewriting is None else min(link_bytes, REWRITTEN_BYTES)
        self._post: Post = Alone() if engines.remote is None else engines.remote.post
        self._asked = asked
        self._clock = clock
        self._news = news
        self._least_merge_s = least_merge_s
        self._hours = hours or HostHours()
        self._pace = engines.pace or Pace(clock)
        self._merge_at = 0.0  # when the frontier may merge less than a full batch again
        self.moved = False  # whether anything in the frontier moved in the last turn
        self._is_turning = False
        self.next_level = 0  # to which the frontier may descend: all shards are done with those before
        self._stop: Ending | None = None
        self.wants_checkpoint = False  # before the next one is due
        self.failure: BaseException | None = None

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """End the crawl at the next turn; it can be resumed."""
        self._stop = ending
        self._news.set()

    async def run(self, keeper: Keeper) -> Ending:
        """Turn until the end, with checkpoints in between; then let visits under way end, for `GRACE_S` at most."""
        started = self._clock.now()
        while (ending := self._ending(started)) is None:
            await self._take(self.steps())
            if keeper.due() or self.wants_checkpoint:
                self.wants_checkpoint = False
                await self._take(self._empty_outbox())
                self.settle()
                await keeper.take()
            await self._rest()
        await self._wind_down()
        return ending

    async def _take(self, steps: Steps[None]) -> None:
        """Take all `steps`, with turns of others in between; also if cancelled, because a checkpoint in the midst of a
        turn would not be whole. Nothing light ends during a step, so its time is left out of `pace`."""
        self._is_turning = True
        try:
            begun = self._clock.now()
            for _ in steps:
                self._pace.held_up(self._clock.now() - begun)
                await asyncio.sleep(0)
                begun = self._clock.now()
        finally:
            whole(steps)
            self._pace.held_up(self._clock.now() - begun)
            self._is_turning = False

    def turn(self) -> None:
        """Take all `steps` at once."""
        whole(self.steps())

    def steps(self) -> Steps[None]:
        """Go around the figure once, in steps of a bounded number of rows. Visits leave the frontier and reach the
        fetcher in one step, so that a person who blocks a host between two steps finds its visits there."""
        begun = self._clock.now()
        came = self._fetcher.ended
        level, self.next_level = self.next_level, 0
        if level > self._frontier.level:
            yield from self._frontier.descend(level)
        if not self._outbox.crowded:
            yield from self._gather()
            yield
        if self._remote is not None:
            self._remote.receive(begun)
        if self._revisits is not None:
            self._revisits.turn(begun)
        if self._rewriting is not None:
            if self._rewriting.full:
                yield from self._rewriting.merge_aside_steps()
            links, made = self._rewriting.review(idle=not came)
            self._put_links(links_of([links, self._ours(made, begun)]), begun)
        may_merge = self._may_merge(begun)
        if may_merge or self._outbox.full:
            yield from self._deliver()
        yield from self._move_on(begun, may_merge=may_merge)
        self._recall()
        self._fetcher.refuse(self._post.refuse(self._frontier.refused()))
        yield from self._hand_out(begun)
        self._post.send(begun, idle=self._fetcher.idle)

    def _hand_out(self, now: float) -> Steps[None]:
        """Give the fetcher the visits that it has room for, in a few steps: hosts begin before pages are read."""
        for _ in range(RULES_STEPS):
            rules_room = min(RULES_A_STEP, self._post.rules_room(self._fetcher.rules_room))
            visits = self._frontier.visits(now, rules_room) if self._post.ready else EMPTY
            self._fetcher.put(self._post.route(visits, now))
            self._fetcher.pump()
            if visits.num_rows < RULES_A_STEP:
                break
            yield

    def _move_on(self, now: float, *, may_merge: bool) -> Steps[None]:
        """Let the frontier take its steps, which may include an early merge. An early merge reads known URLs again. The
        larger their share, the longer the pause before the next early merge."""
        waste = self._frontier.known_share
        self.moved, spent_s = yield from self._timed(self._frontier.steps(now, may_merge=may_merge, quiet=self._quiet))
        if may_merge:
            self._merge_at = self._clock.now() + max(spent_s * waste * (MERGE_SHARE - 1), self._least_merge_s)

    def _timed(self, steps: Steps[T]) -> Steps[tuple[T, float]]:
        """Take `steps`; return their result, and the seconds that they took without the turns of others."""
        spent_s = 0.0
        while True:
            begun = self._clock.now()
            try:
                next(steps)
            except StopIteration as end:
                return end.value, spent_s + self._clock.now() - begun
            spent_s += self._clock.now() - begun
            yield

    def _recall(self) -> None:
        """Take back visits that wait at hosts newly found to have traps or to be slow; the frontier decides anew."""
        for host in self._frontier.accused():
            self._frontier.take_back(self._post.give_back(self._fetcher.recall(host), self._clock.now()))

    def _gather(self) -> Steps[None]:
        if self._remote is not None:
            self._remote.run_errands()
        fetched = self._fetcher.take(exchanges=not self._gathering.crowded)
        self._fetcher.give_back((yield from self._gathering.gather(fetched, self._outbox)))
        if self._outbox.has_stale:  # others like these pages are to wait
            _, ours = self._post.post(links_of([]), Outcomes(judged=self._outbox.take_judged()), self._clock.now())
            yield from self._frontier.learn(ours.judged)

    def _empty_outbox(self) -> Steps[None]:
        """Deliver the whole outbox."""
        yield from self._deliver()
        while self._outbox.waiting:
            yield from self._deliver()
        if self._rewriting is not None:
            yield from self._rewriting.merge_aside_steps()

    def settle(self) -> None:
        """Leave nothing on its way within this agent, so that a checkpoint has everything."""
        whole(self._empty_outbox())
        if self._remote is not None:
            self._remote.receive(self._clock.now())
            whole(self._empty_outbox())
        self._post.flush()

    def _deliver(self) -> Steps[None]:
        """Give the frontier all outcomes and a portion of the waiting links, and the post the rows of other shards."""
        now = self._clock.now()
        links, outcomes = self._post.post(self._outbox.take_links(self._link_bytes), self._outbox.take_outcomes(), now)
        if self._rewriting is not None:
            self._rewriting.note_prints(outcomes.printed)
        self._put_links(links, now)
        self._frontier.put_outcomes(outcomes, now)
        yield
        yield from self._frontier.learn(outcomes.judged)

    def _put_links(self, links: Links, now: float) -> None:
        """Give the frontier `links` to URLs of its shard, as the rules rewrite them; post rewritten links of other
        shards."""
        if self._rewriting is not None:
            links, made = self._rewriting.apply(links)
            links = links_of([links, self._ours(made, now)])
        if links.urls.num_rows:
            self._frontier.put_links(links)

    def _ours(self, made: Links, now: float) -> Links:
        """Return those of the links `made` by rules that are of this shard; post the others."""
        return self._post.post(made, Outcomes(), now)[0] if made.urls.num_rows else made

    def _may_merge(self, now: float) -> bool:
        """Return whether the frontier may merge less than a full batch: always if nothing is left to fetch, here or by
        others; otherwise for one part in `MERGE_SHARE` of the time."""
        need = self._frontier.need
        idle = self._fetcher.idle and not self._post.lent
        return idle or (need > Need.NONE and now >= self._merge_at)

    @property
    def idle(self) -> bool:
        """True if nothing is on its way outside the frontier, and no turn is under way."""
        aside = self._rewriting is not None and self._rewriting.needs_review
        return self._quiet and not aside and self._post.quiet and not self._is_turning

    @property
    def _quiet(self) -> bool:
        """True if nothing is being fetched here, and the frontier knows of everything that was."""
        return self._fetcher.idle and not self._outbox and not self._gathering.waiting

    def _ending(self, started: float) -> Ending | None:
        if self.failure is not None:
            raise self.failure
        if self._stop is not None:
            return self._stop
        now = self._clock.now()
        if self._asked.for_s and now - started >= self._asked.for_s:
            return Ending.TIME
        if self._remote is not None:
            return None  # the supervisor says when
        if self._fetcher.has_its_pages and not self._gathering.waiting:
            return Ending.PAGES
        if 0 < self._asked.bytes <= self._gathering.body_bytes:
            return Ending.BYTES
        if not self._gathering.answered and self._fetcher.unreached:  # the fault is likely on our side
            return Ending.UNREACHED
        return self._nothing_left(now) if self._revisits is None else None

    def _nothing_left(self, now: float) -> Ending | None:
        if self.idle and self._frontier.empty:
            return Ending.BLOCKED if self._frontier.blocked_urls else Ending.FINISHED
        until = self._frontier.rests_until(now) if self.idle else 0.0
        too_long = until - now > self._asked.wait_s and not self._hours.is_opening(until)
        return Ending.RESTING if too_long else None

    async def _rest(self) -> None:
        """Wait until a visit ends, or for the next beat; if work can go on, only give others a turn. Ended visits wait
        while more are under way, because a turn costs as much for one page as for ten."""
        self._news.clear()
        if self._gathering.behind or self._outbox.full or (self.idle and self.moved):
            await asyncio.sleep(0)
            return
        ended = 0 if self._gathering.crowded else self._fetcher.ended
        if not ended:
            timer = asyncio.get_running_loop().call_later(BEAT_S, self._news.set)
            await self._news.wait()
            timer.cancel()
        # Visits that end by themselves, as refusals do, must leave others their turn.
        await asyncio.sleep(LINGER_S if self._fetcher.in_flight and ended < ENDED_FOR_A_TURN else 0)

    async def _wind_down(self) -> None:
        self._fetcher.stop()
        deadline = self._clock.now() + GRACE_S
        while (self._fetcher.in_flight or self._gathering.waiting) and self._clock.now() < deadline:
            await self._rest()
            await self._take(self._gather())
            if self._outbox.full:
                await self._take(self._deliver())
        self._fetcher.abort()
        await asyncio.sleep(0)
        await self._take(self._gather())
        self.settle()
