"""A crawl that never opens a socket: the real frontier and workbench, a virtual clock, a virtual web.

        ┌─────────────── frontier: what may be fetched next ────────────────┐
    links ─► filter ─► seen ─► star ─► beast ─► robots gate ─► order ─► ready
        └────────────────────────────────────────────────────────────────────┘
       ▲                                                              │ window
       │                                                              ▼
    web.links_of ◄─ ended, by the slice ◄─ web.answers ◄─ workbench: politeness

`step` is the figure, once a slice of virtual time; where nothing happens, the clock jumps. Requests end at
their own times, and a host's rest counts from there; only that the next one begins is noticed a slice late,
never early. What the web answers costs a host what the table in `fyke.fetch.faults` says.

Used by `fyke simulate` and the benches, through `fyke.simulate.keep`. Invariant: between two steps each visit
taken from the frontier is at the workbench, under way, or its page is in `_fetched` until its links are
handed in.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import concat
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.core.visits import Visit, batch_of
from fyke.disk.store import Store
from fyke.fetch.faults import FAULTS, Wait
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier
from fyke.frontier.robots_gate import Rules
from fyke.hosts.politeness import Host, Workbench
from fyke.simulate import texts
from fyke.simulate.calendar import Calendar, Ending
from fyke.simulate.servers import Reply
from fyke.simulate.tally import Tally, tally_of
from fyke.simulate.texts import Text
from fyke.simulate.web import START, Web
from fyke.simulate.window import Window

SLICE_S = 0.25
BATCH_PAGES = 1024  # pages whose links are made and handed in together
MOST_RULES = 4096  # answers about robots.txt in one slice
PRUNE_S = 60.0
MERGE_S = 1.0  # between merges of less than a full batch while visits run low: in place of their cost by the clock
SEEDS = 100
RULES_END = START + 1e9  # rules do not change here

FAULT_OF = MappingProxyType({Reply.WEARY: FAULTS[Outcome.THROTTLED], Reply.DEAD: FAULTS[Outcome.CONNECT_FAILED]})

Fetched = Callable[[Text], None]


class Simulation:
    """A crawl of `web` under `config`, on the files of `store`; goes on from `saved`."""

    def __init__(
        self, web: Web, config: Config, store: Store, saved: Mapping[str, Any], *, fetched: Fetched | None = None
    ) -> None:
        """`fetched` is told the URLs of each batch of pages, before their links are handed in."""
        self.web = web
        self._config = config
        self._politeness = config.politeness
        self._connections = config.fetch.connections
        self._told = fetched
        started = float(saved.get("now", START))
        self.clock = VirtualClock(started)
        filters = filters_for(config.crawl, [], ("http",), [])
        self.frontier = Frontier(
            store,
            config.frontier,
            filters,
            by_level=False,
            host_delay_s=config.politeness.host_delay_s,
            opened_at=started,
            state=saved.get("frontier"),
        )
        window = config.frontier
        self.bench = Workbench(config.politeness, window.window_visits, window.host_visits, window.default_budget_urls)
        self.window = Window(web, self.frontier, self.bench, config, started if saved else 0.0)
        self._calendar = Calendar(SLICE_S)
        self._fetched: list[Visit] = []
        self._prune_at = self._merge_at = started
        self.tally: Tally = tally_of(web.spec.all_domains, store, saved.get("tally", {}))
        if not saved:
            seeds = web.seeds(SEEDS)
            self.frontier.discover_batch(seeds, sources=np.zeros(seeds.num_rows, np.uint64))

    def __repr__(self) -> str:
        return f"Simulation({self.tally.totals.pages} pages in {self.virtual_s:.0f} s, {self.frontier!r})"

    @property
    def virtual_s(self) -> float:
        """Virtual time since the simulation began."""
        return self.clock.now() - START

    # --- the figure

    def step(self) -> bool:
        """One slice of time; whether there is anything left to do."""
        now = self.clock.now()
        self._end(self._calendar.due(now))
        self._hand_in(all_of_them=self._idle)
        moved = self._turn(now)
        self.window.fill(now)
        self._begin(now)
        if now >= self._prune_at:
            self.bench.prune(now)
            self._prune_at = now + PRUNE_S
        if moved and self._idle:
            return True
        return self._advance(now)

    def _turn(self, now: float) -> bool:
        """Let the frontier move on, and bring the rules of robots.txt that it asks for: all of them open."""
        starving = self.window.low and not self.frontier.ready.waiting
        idle = starving and self._idle
        may_merge = idle or (starving and now >= self._merge_at)
        if may_merge:
            self._merge_at = now + MERGE_S
        dry = starving and len(self._calendar) + self.bench.visits < self._connections
        moved = self.frontier.turn(now, may_merge=may_merge, dry=dry, idle=idle)
        origins = self.frontier.wanted(MOST_RULES)
        for origin in origins:
            self.frontier.known(origin, Rules.OPEN, RULES_END, now)
        self.tally.totals.rules += len(origins)
        self.frontier.refused()
        return moved or bool(origins)

    @property
    def _idle(self) -> bool:
        """Whether too little is under way for want of work."""
        return len(self._calendar) + self.bench.visits < self._connections // 2

    def _advance(self, now: float) -> bool:
        """Move the clock to the next slice in which something may happen."""
        dues = [due for due in (self._calendar.next_due(), self.bench.next_due()) if due is not None]
        if not dues and not self._fetched and self.frontier.empty:
            return False
        number = max(np.floor(now / SLICE_S) + 1, np.ceil(min(dues, default=0.0) / SLICE_S))
        self.clock.advance(max(0.0, float(number) * SLICE_S - now))
        return True

    # --- requests

    def _begin(self, now: float) -> None:
        """Start every request that may start now."""
        hosts: list[Host] = []
        visits: list[Visit] = []
        bench, room = self.bench, self._connections - len(self._calendar)
        while len(visits) < room and (host := bench.next(now)) is not None:
            visit = bench.pop(host, now)
            if visit is None:
                bench.rest(host)
                continue
            bench.start(host)
            hosts.append(host)
            visits.append(visit)
            if host.overflowed:
                self.window.served(host)
        if visits:
            self._note(now, hosts, visits)

    def _note(self, now: float, hosts: Sequence[Host], visits: Sequence[Visit]) -> None:
        answers = self.web.answers(texts.of_strings([visit.url for visit in visits]), now)
        ends = (now + answers.duration_s).tolist()
        replies, durations = answers.reply.tolist(), answers.duration_s.tolist()
        self._calendar.note(list(map(Ending, ends, hosts, visits, replies, durations)))
        self.tally.totals.page_bytes += int(answers.size_bytes.sum())

    def _end(self, endings: Sequence[Ending]) -> None:
        finished, fetched = self.bench.finished, self._fetched.append
        for at, host, visit, reply, duration_s in endings:
            if reply == Reply.PAGE:
                host.failures = 0
                finished(host, at, duration_s)
                fetched(visit)
            else:
                self._fail(at, host, visit, Reply(reply), duration_s)

    def _fail(self, at: float, host: Host, visit: Visit, reply: Reply, duration_s: float) -> None:
        """What the fetcher would do: wait, try again, give a host up that fails too often."""
        politeness, fault = self._politeness, FAULT_OF[reply]
        host.failures += fault.costs_host
        doublings = min(visit.tries if fault.wait is Wait.THROTTLE else host.failures - 1, 20)
        first = politeness.throttle_delay_s if fault.wait is Wait.THROTTLE else politeness.failure_delay_s
        wait_s = min(first * 2**doublings, politeness.max_sleep_s)
        retired = host.failures >= politeness.host_failures
        if fault.retry and visit.tries + 1 < politeness.tries and not retired:
            visit.tries += 1
            visit.not_before = at + wait_s
            self.bench.add(host, visit)
            self.tally.totals.retries += 1
        else:
            self.tally.totals.failures += 1
        if retired:
            self.tally.totals.failures += len(self.bench.drain(host))
        self.bench.finished(host, at, duration_s, wait_s)

    # --- pages

    def _hand_in(self, *, all_of_them: bool) -> None:
        """Give the frontier the links of the pages fetched, when they are enough to be worth it."""
        if len(self._fetched) < (1 if all_of_them else BATCH_PAGES):
            return
        visits, self._fetched = self._fetched, []
        text = texts.of_strings([visit.url for visit in visits])
        if self._told is not None:
            self._told(text)
        domain, _, _ = texts.read(text)
        self.tally.fetched(domain, self.web.domains.is_spam(domain))
        links = self.web.links_of(text, np.fromiter((visit.depth for visit in visits), np.int64, len(visits)))
        self.frontier.discover_batch(links.urls, sources=links.sources)
        for visit in visits:
            self.frontier.fetched(visit.domain)
        self.tally.linked(links.urls.column("key").to_numpy(), links.spam)

    # --- what a checkpoint holds

    def leased(self) -> pa.RecordBatch:
        """Every URL taken from the frontier whose visit has not ended."""
        under_way = batch_of(ending.visit for ending in self._calendar)
        return concat([under_way, batch_of(self.bench.waiting())])

    def state(self, store: Store) -> dict[str, Any]:
        """Everything a restart needs but what is leased."""
        self._hand_in(all_of_them=True)
        return {"now": self.clock.now(), "frontier": self.frontier.state(), "tally": self.tally.save(store)}

    def close(self) -> None:
        self.frontier.close()
