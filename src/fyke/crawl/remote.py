"""The loop's other half in a crawl with several agents: moves what came from other agents to the rooms it is for.

The loop calls `receive` once a turn, and `run_errands` before it gathers what was fetched. Invariant: events are moved
in their order, before anything else of that turn. Links, whose order means nothing, go into the outbox, because one
message with this agent's costs less than a message each.
"""

from fyke.core.batches import concat
from fyke.core.clock import Clock
from fyke.core.messages import Outcomes
from fyke.core.slices import whole
from fyke.crawl.outbox import Outbox
from fyke.crawl.past import Past
from fyke.crawl.post.events import (
    Done,
    Elsewhere,
    Ended,
    Errand,
    ErrandAnswer,
    Event,
    Heard,
    LinksCame,
    Met,
    VisitsCame,
    WaitAgain,
)
from fyke.crawl.post.office import Office
from fyke.crawl.rewriting import Rewriting
from fyke.fetcher.fetcher import Fetcher
from fyke.frontier.frontier import Frontier


class Remote:
    """Moves what `post` has for the rooms of this agent."""

    def __init__(
        self,
        frontier: Frontier,
        fetcher: Fetcher,
        outbox: Outbox,
        post: Office,
        past: Past,
        clock: Clock,
        rewriting: Rewriting | None = None,
    ) -> None:
        self._frontier = frontier
        self._fetcher = fetcher
        self._outbox = outbox
        self._past = past
        self._clock = clock
        self._rewriting = rewriting
        self.post = post

    def __repr__(self) -> str:
        return f"Remote({self.post!r})"

    def receive(self, now: float) -> None:
        """Move what came from other agents, and send back visits that may not be made here."""
        for urls in self._fetcher.take_strayed():
            self.post.stray(urls, now)
        for event in self.post.receive(now):
            if not self._to_frontier(event, now):
                self._to_fetcher(event, now)

    def _to_frontier(self, event: Event, now: float) -> bool:
        """Move `event` if it is for the frontier; return whether it is."""
        frontier = self._frontier
        match event:
            case LinksCame(links, landed):
                if landed.num_rows:
                    frontier.extend_scope(landed)
                    self._outbox.forget_links()
                self._outbox.pass_on(links)
            case Ended(keys, ended, told):
                urls = frontier.take_out(keys)
                frontier.note_ended(ended)
                if told is None:
                    frontier.put_done(ended)
                else:
                    frontier.hold(ended)
                    self.post.keep(told, urls, ended)
            case Done(ended):
                frontier.put_done(ended)
            case Heard(outcomes):
                self._hear(outcomes, now)
            case Elsewhere(visits):
                frontier.hold_visits(visits)
            case WaitAgain(urls, keys):
                frontier.take_back(concat([urls, frontier.take_out(keys)]))
            case _:
                return False
        return True

    def _hear(self, outcomes: Outcomes, now: float) -> None:
        self._frontier.put_outcomes(outcomes, now)
        whole(self._frontier.learn(outcomes.judged))
        if self._rewriting is not None:
            self._rewriting.note_prints(outcomes.printed)

    def _to_fetcher(self, event: Event, now: float) -> None:
        fetcher = self._fetcher
        match event:
            case VisitsCame(urls, known):
                if known is not None:
                    self._past.lend(known)
                fetcher.put(urls)
            case Errand(visit):
                fetcher.put_errand(visit)
            case ErrandAnswer(exchange):
                fetcher.put_answer(exchange)
            case Met(agent):
                self.post.hold(agent, fetcher.recall_all(self.post.of_shard(agent)), now)

    def run_errands(self) -> None:
        """Send out errands, robots.txt files that lead to hosts of other agents, and the answers to errands of
        others."""
        for visit in self._fetcher.take_errands():
            self.post.errand(visit)
        for exchange in self._fetcher.take_answers():
            self.post.answer(exchange, self._clock.now())
