"""A crawl that never ends: `fyke crawl --revisit` plans the next visits to known pages, again and again.

A plan tells the frontier of the visits since the last plan (`learning`), and queues pages that are due
(`fyke.frontier.revisit.choice`). It is made in slices, between turns of the loop, so that many pages hold nobody up; a
checkpoint may come between two slices. A plan that a restart cut off is made anew; pages that it queued wait on. New
pages are crawled as in any crawl; while they wait, known pages have their share of the visits (`revisit.share`).

Plans are a tenth of `revisit.least_s` apart, or further: they take one part in `PLAN_SHARE` of the time at most.
"""

from collections.abc import Callable, Iterator

from fyke.core.clock import Clock
from fyke.core.config import RevisitSection
from fyke.frontier.frontier import Frontier
from fyke.frontier.revisit.choice import Terms

PLANS = 10  # in the least time between two visits to a page
PLAN_SHARE = 40
SLICE_S = 0.02
FORGIVEN_S = 86400.0


class Revisits:
    """Plans for `frontier`. `learn` tells it of the visits that ended; `forgive` has all hosts asked anew."""

    def __init__(
        self,
        frontier: Frontier,
        learn: Callable[[], Iterator[None]],
        forgive: Callable[[], None],
        clock: Clock,
        asked: RevisitSection,
    ) -> None:
        self._frontier = frontier
        self._learn = learn
        self._forgive = forgive
        self._clock = clock
        self._terms = Terms(asked.least_s, asked.greatest_s)
        self._forgive_at = 0.0
        self._plan: Iterator[None] | None = None
        self._took_s = 0.0
        self.next_at = 0.0  # unix seconds
        frontier.supply.revisit_share = asked.share

    def __repr__(self) -> str:
        return f"Revisits({self._frontier.known_pages!r}, next plan at {self.next_at:.0f})"

    def turn(self, now: float) -> None:
        """Go on with the plan that is being made, or begin the next if it is time."""
        if self._plan is None:
            if now < self.next_at:
                return
            self.next_at = now + self._terms.least_s / PLANS
            self._took_s = 0.0
            self._plan = self._planned(now)
        begun = self._clock.now()
        for _ in self._plan:
            if self._clock.now() >= begun + SLICE_S:
                break
        else:
            self._plan = None
        self._took_s += self._clock.now() - begun
        if self._plan is None:
            self.next_at = max(self.next_at, now + (PLAN_SHARE - 1) * self._took_s)
            known = self._frontier.known_pages
            known.freshness = known.freshness._replace(next_at=self.next_at)

    def _planned(self, now: float) -> Iterator[None]:
        if now >= self._forgive_at:
            self._forgive_at = now + FORGIVEN_S
            self._forgive()
        yield from self._learn()
        yield from self._frontier.plan_revisits(now, self._terms, by_line=True)
