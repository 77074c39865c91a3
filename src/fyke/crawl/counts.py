"""How the crawl stands: figures of all rooms, added up over this run and those before it.

Asked by the panel, the control socket and the checkpoint, which keeps them as `totals`; made by `opening`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fyke.archive.statistics import CrawlStatistics
from fyke.archive.warc import WarcWriter
from fyke.core.clock import Clock
from fyke.core.freshness import Freshness
from fyke.core.memory import MemoryGauge
from fyke.core.outcomes import Outcome
from fyke.crawl.barn import Barn
from fyke.crawl.outbox import Outbox
from fyke.crawl.passes import Passes
from fyke.crawl.rewriting import Rewriting
from fyke.fetcher.fetcher import Fetcher
from fyke.fetcher.wire.registry import Registry
from fyke.frontier import left_out, quota
from fyke.frontier.filters import Filters
from fyke.frontier.frontier import Frontier
from fyke.frontier.stages import FrontierStatistics
from fyke.harvest import Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The rooms that count, the `totals` of earlier runs, and when this run began."""

    frontier: Frontier
    fetcher: Fetcher
    barn: Barn
    outbox: Outbox
    filters: Filters
    parser: Parser
    registry: Registry
    archive: WarcWriter
    passes: Passes
    clock: Clock
    totals: Mapping[str, Any]
    started_at: float  # unix seconds
    rewriting: Rewriting | None = None
    deaths: Mapping[str, int] = field(default_factory=dict)  # of the process, in this run of the crawl and before
    memory: MemoryGauge = field(default_factory=MemoryGauge)

    def statistics(self) -> CrawlStatistics:
        """Return how the crawl stands now."""
        now = self.clock.now()
        frontier, bench = self.frontier.statistics(), self.fetcher.bench.statistics(now)
        elapsed = now - self.started_at
        outcomes = self.barn.outcomes
        return CrawlStatistics(
            pages=outcomes[Outcome.OK],
            visits=outcomes.total(),
            cut=self.barn.cut,
            listings=self.barn.listings,
            outcomes=dict(outcomes),
            bytes=self.barn.body_bytes,
            elapsed_s=elapsed,
            total_s=float(self.totals.get("total_s", 0.0)) + elapsed,
            in_flight=self.fetcher.in_flight,
            hosts=bench.hosts,
            hosts_asleep=bench.asleep,
            rest_until=self._rest_until(bench.rest_until, now),
            links=int(self.totals.get("links", 0)) + self.outbox.links,
            urls=frontier.unique,
            waiting=frontier.rows,
            unchecked=frontier.unchecked + self.outbox.waiting,
            domains=frontier.domains,
            over_budget=frontier.over_budget,
            blocked=frontier.blocked,
            without_rules=frontier.without_rules,
            queues=_queues(frontier, bench.visits),
            rounds=frontier.rounds,
            edges=frontier.edges,
            left_out=self._left_out(frontier.over_quota),
            rewritten={} if self.rewriting is None else dict(self.rewriting.used),
            revoked={} if self.rewriting is None else self.rewriting.contradictions,
            rewrite_exceptions=0 if self.rewriting is None else self.rewriting.exceptions,
            archive_bytes=self.archive.size_bytes,
            memory_bytes=self.memory.read(now),
            plugin_failures=dict(self._plugin_failures()),
            deaths=dict(self.deaths),
            again=self.passes.statistics(),
            freshness=self._freshness(),
        )

    def _freshness(self) -> Freshness | None:
        """Return how fresh copies were at the last plan; the next is told by the clock on the wall."""
        told = self.frontier.known_pages.freshness
        return told._replace(next_at=told.next_at + self.clock.wall_ahead_s) if told.at else None

    def _plugin_failures(self) -> Counter[str]:
        """Return how often each plug-in raised or gave nonsense."""
        rooms = (self.filters.failures, self.barn.sink_failures, self.parser.failures)
        return sum((*rooms, self.registry.plugin_failures, self.frontier.plugin_failures), Counter())

    def _left_out(self, over_quota: int) -> dict[str, int]:
        """Return the number of links not followed, by rule; for the quota and for later rules, those left out now."""
        now = {quota.NAME: over_quota, left_out.NAME: len(self.frontier.left_out)}
        before = Counter(self.totals.get("left_out", {}))
        for rule in (*now, *self.frontier.left_out.recounted):
            before.pop(rule, None)
        return dict(before + self.filters.left_out + Counter(now))

    def _rest_until(self, bench: float, now: float) -> float:
        """Return when the first waiting URL may go on, by the clock on the wall; 0 if some may now. `bench` is the
        workbench's answer; 0 if no host there has work."""
        until = bench or (self.frontier.rests_until(now) if self.fetcher.idle else 0.0)
        return round(until + self.clock.wall_ahead_s, 3) if until else 0.0  # sums of floats are not exact

    def state(self) -> dict[str, Any]:
        """Return the totals that a checkpoint keeps."""
        return self.statistics().as_dict()


def _queues(frontier: FrontierStatistics, in_memory: int) -> dict[str, int]:
    """Return the number of URLs that wait, by where; `in_memory` at the workbench."""
    return {
        "unchecked": frontier.unchecked,
        "later": frontier.later,
        "again": frontier.again,
        "unweighed": frontier.unweighed,
        "round": frontier.waiting,
        "over_budget": frontier.over_budget,
        "without_rules": frontier.without_rules,
        "ready": frontier.ready,
        "spilled": frontier.spilled,
        "memory": in_memory,
        "blocked": frontier.blocked,
        "asleep": frontier.asleep,
        "traps": frontier.trapped,
    }
