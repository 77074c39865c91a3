"""The stages of a shard of the frontier, opened, counted, saved and closed together.

Invariant: `state` names every stage that has files, and `Stages` with that state holds the same rows again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fyke.core.batches import URLS, keep, numbers
from fyke.core.choices import Enforcement
from fyke.core.config import FrontierSection
from fyke.core.plugins import CrawlOrder
from fyke.core.site import SiteSection
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.asleep import Asleep
from fyke.frontier.beast import Backlog, Beast, Enforcer, NaiveEnforcer
from fyke.frontier.blocked import Blocked
from fyke.frontier.budgets import budget_function
from fyke.frontier.domains import Domains
from fyke.frontier.filters import Filters
from fyke.frontier.known_pages import KnownPages
from fyke.frontier.left_out import LeftOut
from fyke.frontier.quota import Quota
from fyke.frontier.ready import Ready
from fyke.frontier.robots_gate import RobotsGate
from fyke.frontier.seen import UrlSeen
from fyke.frontier.sizes import Sizes
from fyke.frontier.star import Star
from fyke.frontier.traps.waiting import Traps
from fyke.frontier.window import Window

# The stages with files by their names in a checkpoint, where two have another name than here.
_KEPT = {name: name for name in (
    "left_out", "seen", "later", "star", "domains", "backlog", "gate", "ready", "blocked", "asleep", "traps", "quota",
)} | {"again": "known_pages", "beast": "rounds"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FrontierStatistics:
    """Counts since the crawl began, and rows that wait."""

    unique: int
    unchecked: int  # for their check against the URLs seen
    later: int  # for pages nearer to the seeds
    again: int  # for their next visit
    unweighed: int  # for the budget of their domain
    rounds: int  # that BEAST spreads URLs over
    waiting: int  # for their round
    over_budget: int
    without_rules: int  # for their host's robots.txt
    ready: int
    spilled: int  # for room at their host
    out: int  # handed out
    blocked: int  # for a person to take the block of their host back
    asleep: int  # for their host, which rests for long, or as a redirect asked
    over_quota: int  # beyond the pages that their hosts may have: they do not wait to be fetched
    trapped: int  # behind everything else, because similar pages brought no new text
    barren: int  # barren shapes of URLs
    domains: int
    edges: int  # pairs of a domain and one that it links to

    @property
    def rows(self) -> int:
        """Number of URLs that wait to be fetched, wherever."""
        rows = self.later + self.again + self.unweighed + self.waiting + self.over_budget
        rows += self.without_rules + self.ready + self.spilled + self.out
        return rows + self.blocked + self.asleep + self.trapped


class Stages:
    """The stages on the files of one `Store`, as `saved` has them, in the order in which a URL goes through them."""

    def __init__(  # noqa: PLR0913 - most are facts of other rooms, each by its name
        self,
        store: Store,
        config: FrontierSection,
        order: CrawlOrder,
        filters: Filters,
        *,
        sites: Sequence[SiteSection],
        host_delay_s: float,
        opened_at: float,
        saved: Mapping[str, Any],
        sizes: Sizes,
    ) -> None:
        memory, kind = config.table_memory_bytes, config.enforcement
        self.left_out = LeftOut(store, filters, saved.get("left_out"))
        self.seen = UrlSeen(store, 4 * memory, saved.get("seen"))
        self.later = DiskQueue(store, "later", URLS, saved.get("later"))
        self.domains = Domains(store, memory, saved.get("domains"))
        function, budget = budget_function(config), config.default_budget_urls
        self.star = Star(store, self.domains, function, budget, memory, saved.get("star"), sizes)
        self.backlog = Backlog(store, saved.get("backlog"))
        enforcer = NaiveEnforcer if kind == Enforcement.NAIVE else Beast
        self.rounds = enforcer(store, saved.get("beast"), sizes)  # also of `none`: plans of domains name its rounds
        if kind == Enforcement.NONE:
            self.backlog.take_over(self.rounds)
        self.beast: Enforcer = self.backlog if kind == Enforcement.NONE else self.rounds
        self.known_pages = KnownPages(store, memory, saved.get("again"), self.domains)
        self.traps = Traps(store, config.trap_pages, saved.get("traps"), probes=config.probes)
        self.gate = RobotsGate(store, memory, opened_at, saved.get("gate"), sizes)
        self.ready = Ready(store, order, saved.get("ready"))
        self.blocked = Blocked(store, saved.get("blocked"))
        self.asleep = Asleep(store, saved.get("asleep"))
        self.quota = Quota(store, sites, memory, saved.get("quota"), new=not saved)
        self.window = Window(config.window_visits, config.host_visits, host_delay_s)

    def __repr__(self) -> str:
        return f"Stages({len(self.seen)} seen, {self.seen.pending} unchecked, {self.beast!r}, {self.ready!r})"

    def put_off_deeper(self, urls: pa.RecordBatch, level: int) -> pa.RecordBatch:
        """Let those of `urls` that are deeper than `level` wait in `later`. Returns the others."""
        near = numbers(urls, "depth") <= level
        self.later.put(keep(urls, ~near))
        return keep(urls, near)

    @property
    def nothing_waits_at_level(self) -> bool:
        """True if no URL waits, except deeper than the present level, for a budget, for a blocked host, or beyond a
        limit of pages. URLs that are out do not wait."""
        asleep = len(self.gate) or len(self.asleep) or len(self.traps)
        return self.known_pages.spent and not (self._on_its_way or asleep)

    @property
    def others_wait(self) -> bool:
        """True if a URL is out or waits, except for traps, and URLs that wait for a host that rests, for an answer
        about robots.txt, for other hosts of their domain, or as in `nothing_waits_at_level`."""
        near = self._on_its_way or len(self.window)
        return bool(near or not self.known_pages.spent or self.gate.rests_until == 0)

    @property
    def _on_its_way(self) -> bool:
        """True if a URL of this level is between being found and being ready, the robots gate aside."""
        unplaced = (
            self.quota.freed or self.left_out.freed or self.seen.pending or self.star.pending or self.domains.pending
        )
        planned = len(self.backlog) or (len(self.beast) and not self.beast.stuck)
        return bool(unplaced or planned or len(self.ready))

    def rests_until(self, now: float) -> float:
        """Return when the first waiting URL may go on (unix seconds), if all wait for hosts that rest; 0 if some do
        not, or if no URL waits."""
        until = min(self.asleep.wakes_at, self.gate.rests_until)
        more = self.others_wait or self.gate.asks.held or len(self.traps)
        return 0.0 if more or until == math.inf else max(now, until)

    def statistics(self) -> FrontierStatistics:
        enforced = self.beast.statistics()
        backlog = len(self.backlog) if self.beast is not self.backlog else 0
        return FrontierStatistics(
            unique=len(self.seen),
            unchecked=self.seen.pending,
            later=len(self.later),
            again=len(self.known_pages),
            unweighed=self.domains.unchecked_urls,
            rounds=enforced.rounds,
            waiting=enforced.waiting + backlog,
            over_budget=enforced.over_budget,
            without_rules=self.gate.waiting,
            ready=self.ready.waiting,
            spilled=self.ready.spilled,
            out=len(self.window),
            blocked=len(self.blocked),
            asleep=len(self.asleep),
            over_quota=len(self.quota),
            trapped=len(self.traps),
            barren=self.traps.barren,
            domains=len(self.domains),
            edges=self.star.edges,
        )

    def state(self) -> dict[str, Any]:
        """Return everything that a restart needs; nothing found stays in memory only."""
        return {saved: getattr(self, name).state() for saved, name in _KEPT.items()}

    def close(self) -> None:
        for name in _KEPT.values():
            getattr(self, name).close()
