"""A fetcher that opens no socket: the real workbench and the real fault policy, over a virtual web in virtual time.

The loop puts `Visits` in, as into `fyke.fetcher.fetcher`, and takes out the visits that have ended. Requests end at
their own times, and a host's rest counts from there. The next request of a host may begin a slice late, never early.
Every robots.txt arrives at once and allows everything. The other half, `VirtualHarvest`, makes the links.

Invariant: every visit that was put in is at the workbench, under way, or was taken out, once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, Kind, keep, numbers
from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.hours import HostHours
from fyke.core.messages import Links, Rules
from fyke.core.outcomes import Outcome
from fyke.core.rests import SOON_S
from fyke.core.slices import Steps
from fyke.core.urls import split
from fyke.core.visits import Visit, visits_of
from fyke.crawl.outbox import Outbox
from fyke.fetcher.faults import FaultPolicy
from fyke.fetcher.host import Host
from fyke.fetcher.workbench import Workbench
from fyke.lab.simulate import texts
from fyke.lab.simulate.calendar import Calendar, PendingRequest
from fyke.lab.simulate.changing import Copies
from fyke.lab.simulate.servers import VisitEnd
from fyke.lab.simulate.tally import Tally
from fyke.lab.simulate.texts import Text
from fyke.lab.simulate.web import START, VirtualWeb

BATCH_PAGES = 1024  # pages whose links are made together
MOST_RULES = 4096  # answers about robots.txt in one turn
PRUNE_S = 60.0
RULES_END = START + 1e9  # the epoch second at which rules expire: beyond any simulation

OUTCOMES: Mapping[int, Outcome] = MappingProxyType(
    {VisitEnd.PAGE: Outcome.OK, VisitEnd.WEARY: Outcome.THROTTLED, VisitEnd.DEAD: Outcome.CONNECT_FAILED}
)


@dataclass(frozen=True, slots=True)
class VirtuallyFetched:
    """The results of visits since the last `take`."""

    ended: list[tuple[Visit, Outcome]]
    put_off: list[tuple[Visit, float]]  # visits that come back, with the end of their hosts' rests
    origins: list[str]  # origins whose robots.txt came


class VirtualFetcher:
    """A fetcher from `web` that counts into `tally`."""

    def __init__(
        self,
        web: VirtualWeb,
        config: Config,
        clock: Clock,
        tally: Tally,
        *,
        slice_s: float,
        rested_since: float,
        copies: Copies | None,
    ) -> None:
        """`rested_since` is when a resumed simulation was opened, else 0: its hosts may have just been asked."""
        self._web = web
        self._copies = copies
        self._clock = clock
        self._tally = tally
        self._connections = config.fetch.connections
        self._faults = FaultPolicy(config.politeness)
        self._may_ask_at = rested_since + config.politeness.host_delay_s if rested_since else 0.0
        hours = HostHours(config.politeness.hours, config.site)
        self.bench = Workbench(config.politeness, config.frontier.default_budget_urls, hours=hours)
        self._calendar = Calendar(slice_s)
        self._resting: dict[int, Host] = {}  # hosts that left the workbench for a long rest
        self._retired: set[int] = set()  # hosts that were given up
        self._ended: list[tuple[Visit, Outcome]] = []
        self._put_off: list[tuple[Visit, float]] = []
        self._origins: list[str] = []
        self._prune_at = clock.now()

    def __repr__(self) -> str:
        return f"VirtualFetcher({self.bench!r})"

    # --- what the loop asks

    @property
    def rules_room(self) -> int:
        return MOST_RULES

    @property
    def in_flight(self) -> int:
        return len(self._calendar)

    @property
    def ended(self) -> int:
        return len(self._ended) + len(self._put_off)

    @property
    def idle(self) -> bool:
        return not (self.bench.visits or self._calendar or self.ended)

    @property
    def has_its_pages(self) -> bool:
        return False  # the caller of `simulate` counts pages

    @property
    def unreached(self) -> bool:
        return False

    def recall(self, host: int) -> pa.RecordBatch:
        """Return no visits: pages without text make no host a trap."""
        return EMPTY

    def give_back(self, pages: int) -> None:
        """Do nothing: pages are not counted here."""

    def stop(self) -> None:
        """Do nothing: nothing moves between turns."""

    def abort(self) -> None:
        """Do nothing: the frontier still counts visits under way as handed out."""

    def refuse(self, visits: pa.RecordBatch) -> None:
        """Assert that `visits` is empty: no host forbids everything here."""
        assert not visits.num_rows

    # --- visits

    def put(self, visits: pa.RecordBatch) -> None:
        """Queue `visits` (schema `URLS`) at their hosts; visits of kind `RULES` are answered at once."""
        rules = numbers(visits, "kind") == Kind.RULES
        if rules.any():
            self._origins += [split(visit.url).origin for visit in visits_of(keep(visits, rules))]
            visits = keep(visits, ~rules)
        if not visits.num_rows:
            return
        now = self._clock.now()
        addresses = self._web.addresses(texts.of_column(visits.column("url"))).tolist()
        rows = visits_of(visits)
        if self._copies is not None:
            self._copies.note_known(rows)
        for visit, address in zip(rows, addresses, strict=True):
            host = self.bench.get(visit.host)
            if visit.host in self._retired:
                self._lose([visit], Outcome.HOST_RETIRED)
            elif host is None:
                host = self._resting.pop(visit.host, None)
                host = host or Host(visit.host, visit.url[texts.HOST], due=self._may_ask_at)
                self.bench.apply_hours(host, now)
                if host.rests_until - now > SOON_S:
                    self._resting[visit.host] = host
                    self._put_off.append((visit, host.rests_until))
                    continue
                self.bench.enter(host)
                self.bench.add(host, visit)
                self.bench.settle(host, str(address))
            else:
                self.bench.add(host, visit)

    def take(self, *, exchanges: bool = True) -> VirtuallyFetched:
        """Return the results since the last call."""
        self._end(self._calendar.due(self._clock.now()))
        fetched = VirtuallyFetched(self._ended, self._put_off, self._origins)
        self._ended, self._put_off, self._origins = [], [], []
        return fetched

    def pump(self) -> None:
        """Start every request that may start now."""
        now = self._clock.now()
        hosts: list[Host] = []
        visits: list[Visit] = []
        bench, room = self.bench, self._connections - len(self._calendar)
        while len(visits) < room and (host := bench.next(now)) is not None:
            if bench.apply_hours(host, now):
                bench.enqueue(host)
                self._give_back(host, now)
                continue
            visit = bench.pop(host, now)
            if visit is None:
                bench.enqueue(host)
                continue
            bench.start(host)
            hosts.append(host)
            visits.append(visit)
        while bench.crowded:
            self._give_back(bench.crowded.pop(), now)
        if visits:
            self._begin(now, hosts, visits)
        if now >= self._prune_at:
            bench.prune(now)
            self._prune_at = now + PRUNE_S

    def next_due(self) -> float | None:
        """Return when something may happen here, or None if nothing waits for a time."""
        dues = [due for due in (self._calendar.next_due(), self.bench.next_due()) if due is not None]
        return min(dues, default=None)

    def _begin(self, now: float, hosts: Sequence[Host], visits: Sequence[Visit]) -> None:
        answers = self._web.answers(texts.of_strings([visit.url for visit in visits]), now)
        times = (now + answers.duration_s).tolist()
        ends, durations = answers.end.tolist(), answers.duration_s.tolist()
        self._calendar.note(list(map(PendingRequest, times, hosts, visits, ends, durations)))
        self._tally.totals.page_bytes += int(answers.size_bytes.sum())

    def _end(self, endings: Sequence[PendingRequest]) -> None:
        finished, ended = self.bench.finished, self._ended.append
        for at, host, visit, end, duration_s in endings:
            if end == VisitEnd.PAGE:
                host.failures = host.faults = 0
                finished(host, at, duration_s)
                visit.rest_s = host.due - at
                ended((visit, Outcome.OK))
                self._give_back(host, at)
            else:
                self._fail(at, host, visit, OUTCOMES[end], duration_s)

    def _fail(self, at: float, host: Host, visit: Visit, outcome: Outcome, duration_s: float) -> None:
        host.failures = self._faults.failures(outcome, host.failures, visit.tries)
        host.faults = self._faults.faults(outcome, host.faults, visit.tries)
        wait_s = self._faults.wait_s(outcome, host.faults, visit.tries, None)
        retired = self._faults.retires(host.failures)
        if self._faults.again(outcome, visit.tries) and not retired:
            visit.not_before = at + max(wait_s, self._faults.retry_s(outcome, visit.tries))
            visit.tries += 1
            self.bench.add(host, visit)
            self._tally.totals.retries += 1
        else:
            self._lose([visit], outcome)
        if retired:
            self._retired.add(host.key)
            self._lose(self.bench.drain(host), Outcome.HOST_RETIRED)
        self.bench.finished(host, at, duration_s, wait_s)
        if not retired:
            self._give_back(host, at)
            self.bench.leave(host, at)
            if self.bench.get(host.key) is not host:
                self._resting[host.key] = host

    def _give_back(self, host: Host, at: float) -> None:
        """Give the frontier back the visits that `host` will not come to soon."""
        self._put_off += [(visit, host.rests_until) for visit in self.bench.take_late(host, at)]
        if not host.visits and host.rests_until > host.due:
            self._resting[host.key] = host
            self.bench.leave(host, at)

    def _lose(self, visits: Sequence[Visit], outcome: Outcome) -> None:
        self._ended += [(visit, outcome) for visit in visits]
        self._tally.totals.failures += len(visits)


class VirtualHarvest:
    """A harvest that makes links for `BATCH_PAGES` pages at a time."""

    answered = True
    body_bytes = 0
    waiting = 0  # pages that are being read
    behind = crowded = False

    def __init__(
        self, web: VirtualWeb, tally: Tally, told: Callable[[Text], None] | None, clock: Clock, copies: Copies | None
    ) -> None:
        """`told` is called with the URLs of each batch of pages, before their links are handed on.

        Pages change if there are `copies`.
        """
        self._clock = clock
        self._copies = copies
        self._web = web
        self._tally = tally
        self._told = told
        self._waiting: list[Visit] = []
        self._failed: list[tuple[Visit, Outcome]] = []

    def gather(self, fetched: Any, outbox: Outbox) -> Steps[int]:
        """Put outcomes and rules into `outbox`; a page ends together with its links."""
        for visit, outcome in fetched.ended:
            if outcome is Outcome.OK:
                self._waiting.append(visit)
            else:
                if self._copies is not None:
                    self._failed.append((visit, outcome))
                outbox.put_ended(visit, outcome)
        outbox.put_off(fetched.put_off)
        for origin in fetched.origins:
            outbox.put_learned(origin, Rules.OPEN, RULES_END)
        self._tally.totals.rules += len(fetched.origins)
        if len(self._waiting) >= BATCH_PAGES or not fetched.ended:
            self.hand_on(outbox)
        yield
        return 0

    def hand_on(self, outbox: Outbox) -> None:
        """Make the links of all waiting pages and put them into `outbox`."""
        visits, self._waiting = self._without_news(outbox), []
        if not visits:
            return
        text = texts.of_strings([visit.url for visit in visits])
        if self._told is not None:
            self._told(text)
        domain, _, _ = texts.read(text)
        self._tally.fetched(domain, self._web.domains.is_spam(domain))
        links = self._web.links_of(text, np.fromiter((visit.depth for visit in visits), np.int64, len(visits)))
        outbox.put_links(Links(links.urls, links.sources))
        for visit in visits:
            outbox.put_ended(visit, Outcome.OK)
        self._tally.linked(links.urls.column("key").to_numpy(), links.spam)

    def _without_news(self, outbox: Outbox) -> list[Visit]:
        """Return the waiting visits that brought a page or a change; end the unchanged ones here."""
        if self._copies is None:
            return self._waiting
        failed, self._failed = self._failed, []
        visits = [*self._waiting, *(visit for visit, _ in failed)]
        outcomes = [*(Outcome.OK for _ in self._waiting), *(outcome for _, outcome in failed)]
        became = self._copies.ended(visits, outcomes, self._clock.now())[: len(self._waiting)]
        for visit, outcome in zip(self._waiting, became, strict=True):
            if outcome is Outcome.UNCHANGED:
                outbox.put_ended(visit, outcome)
                self._tally.totals.pages += 1
        return [visit for visit, outcome in zip(self._waiting, became, strict=True) if outcome is Outcome.OK]
