"""What the supervisor knows of the agents of a crawl: how they stood at their last answer, and what they may begin.

An agent answers with a `Stand`. Decides what follows from all stands; the supervisor acts on it. Invariant: the pages
that agents may have never add up to more than the limit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.figures import Figures
from fyke.archive.statistics import CrawlStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """How an agent stands."""

    idle: bool  # nothing is on its way outside its frontier
    level_done: bool  # nothing of its shard waits or is out, except for `later` URLs
    rests_until: float  # unix seconds when the first URL may go on, if all wait for resting hosts; otherwise 0
    activity: int  # grows with everything that it sends to others, hears from them or tells
    unsafe_letters: int  # number of letters with outcomes that are not safe yet
    later: int  # URLs that wait for a deeper level, or for their next visit
    level: int
    blocked: int  # URLs whose host a person blocked
    checkpoints: int  # taken in its present life
    answered: bool  # whether any server ever answered it
    hosts: int  # at its workbench
    unreached: bool  # whether none of its hosts can be reached
    pages: int  # that count towards the limit
    pages_left: int  # that it may still begin; below zero: no limit
    waiting: int  # visits at its workbench
    resting: bool  # nothing is being fetched, nor waits to be taken from the fetcher


@dataclass(eq=False)
class KnownAgent:
    """What is known of one agent."""

    stand: Stand | None = None  # its answer to the question `round`
    round: int = 0
    figures: Figures | None = None
    statistics: CrawlStatistics = field(default_factory=CrawlStatistics)
    allowed_pages: int = -1  # pages it may have in all; -1: not known, it has not answered yet
    checkpoints: int = 0

    def note(self, figures: Figures) -> None:
        """Take `figures` as the agent's newest."""
        self.figures, self.statistics = figures, figures.statistics


def standing_before(directory: CrawlDirectory, agent: int) -> CrawlStatistics:
    """Return how the agent stood at its last checkpoint, to be shown until it answers."""
    totals = saved_state(CrawlDirectory(directory.path, agent).shard).get("totals", {})
    return replace(CrawlStatistics.read(totals), elapsed_s=0.0, memory_bytes=0, in_flight=0)


def nobody_reached(stands: Sequence[Stand]) -> bool:
    """Return whether there are hosts, no agent reaches any of its own, and none ever did."""
    working = [stand for stand in stands if stand.hosts]
    return bool(working) and all(stand.unreached for stand in working) and not any(stand.answered for stand in stands)


def have_their_pages(stands: Sequence[Stand], limit: int) -> bool:
    """Return whether agents have `limit` pages together, and fetch no more."""
    return sum(stand.pages for stand in stands) >= limit and all(stand.resting for stand in stands)


def allotted(known: Sequence[KnownAgent], limit: int, first: int) -> Iterator[tuple[int, int]]:
    """Yield agents with the number of pages more that each may begin, up to `limit` in all: those that have visits,
    from the agent `first` on. If nothing is left to allot, an agent that fetches nothing gives back what it has: its
    number is 0."""
    pool = limit - sum(one.allowed_pages for one in known)
    most = max(1, limit // (4 * len(known)))
    for agent in (*range(first, len(known)), *range(first)):
        stand = known[agent].stand
        assert stand is not None
        if pool > 0 and stand.pages_left < most and stand.waiting:
            pages = min(pool, most)
            known[agent].allowed_pages += pages
            pool -= pages
            yield agent, pages
        elif pool <= 0 and stand.pages_left and stand.resting:
            yield agent, 0
