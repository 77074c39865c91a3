"""The half of the loop that acts: from a visit to an exchange, politely.

An engine: the loop puts `Visits` in and takes what has come of them out; in between it moves on its own, and
sets `news` when there is something to take. It knows from the workbench which host may be asked, resolves names,
brings the rules of robots.txt as visits of their own (so they are as polite as any), drops what the rules forbid,
and sends the rest to the protocol modules. Nothing it holds must last: the frontier knows what it handed out, and
what was learned of a host is in the host book.

Invariant: every visit that was put in is in the workbench, under way, or was taken out, once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from fyke.core.batches import EMPTY, Kind, url_batch
from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.messages import SOON_S, Rules
from fyke.core.outcomes import Outcome
from fyke.core.slices import Slicer
from fyke.core.urls import Locator
from fyke.core.visits import Earlier, Exchange, Purpose, Visit, batch_of, visits_of
from fyke.fetcher.book import HostBook
from fyke.fetcher.connections import Connections
from fyke.fetcher.faults import FAULTS, FaultPolicy, Wait, retry_after
from fyke.fetcher.host import Host
from fyke.fetcher.host_desk import HostDesk
from fyke.fetcher.names import Resolution, Resolver
from fyke.fetcher.rests import Rests
from fyke.fetcher.robots import RobotsRecord, RobotsState
from fyke.fetcher.rules_desk import RulesDesk
from fyke.fetcher.wire.registry import Registry
from fyke.fetcher.workbench import Workbench

MOST_RULES = 4096  # origins that wait for their rules at a time
UNREACHED_TRIES = 2  # failures of each host after which a crawl without any answer gives up
LOOK_AHEAD_S = 1.0  # between looks for names to look up again; each finds as many at most as there are connections


class Past(Protocol):
    """What earlier visits brought."""

    def recall(self, visits: Sequence[Visit]) -> None:
        """Note with each of `visits` whether there were any; called for many at a time."""
        ...

    def read(self, earlier: Earlier) -> None:
        """Note what is needed to ask for the page again; called when it is."""
        ...


@dataclass(frozen=True, slots=True)
class Wiring:
    """The rooms the fetcher acts through."""

    bench: Workbench
    resolver: Resolver
    book: HostBook
    rests: Rests
    protocols: Registry
    abort: Callable[[], None]  # breaks off every request under way
    clock: Clock
    past: Past | None = None  # None: all visits are first ones
    cut: Callable[[Visit, str], None] = lambda visit, why: None  # breaks off the request for a visit, saying why
    ours: Callable[[str], bool] = bool  # whether an address may be asked from here
    shared: bool = False  # whether other agents ask other hosts of the same crawl


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of visits since it was last asked for."""

    exchanges: list[Exchange]
    learned: list[tuple[str, Rules, float]]  # origins, what their robots.txt says, and until when (unix seconds)
    sitemaps: list[str]  # that those robots.txt name
    put_off: list[tuple[Visit, float]]  # visits that come back, and until when their hosts rest (unix seconds)


class Fetcher:
    """Drives the workbench: call `put` with visits and `pump` whenever something may be due."""

    def __init__(
        self, rooms: Wiring, config: Config, news: asyncio.Event, other_connections: int | None = None
    ) -> None:
        """`news` is set when something ended. `other_connections`: for newcomers and slow servers."""
        self._rooms = rooms
        self.bench = rooms.bench
        self._clock = rooms.clock
        self._politeness = config.politeness
        self._faults = FaultPolicy(config.politeness)
        self._connections = config.fetch.connections
        self._places = Connections(config.fetch.connections, other_connections)
        # Hosts whose turn it is, and for whom there is no connection, parked: newcomers and slow ones, and others.
        self._held_up: tuple[deque[Host], deque[Host]] = deque(), deque()
        self._news = news
        self._exchanges: list[Exchange] = []
        self._given_back: list[tuple[Visit, float]] = []
        self._strayed: list[pa.RecordBatch] = []
        self._hosts = HostDesk(rooms.bench, rooms.resolver, rooms.book, rooms.rests, rooms.clock, rooms.ours)
        self._slicer = Slicer(self.pump)
        self._rules = RulesDesk(
            rooms.bench, self._hosts, rooms.book, config, rooms.clock, self._slicer, shared=rooms.shared
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._pumps_soon = False
        self._aborted = False
        self._look_ahead_at = 0.0
        self.in_flight = 0
        self.stopping = False
        self.held = False  # start nothing, but go on with what is under way
        self.pages_left = -1  # how many more pages may be begun; below zero: any number

    def put(self, visits: pa.RecordBatch) -> None:
        """Let `visits` (schema `URLS`) wait at their hosts; those of kind `RULES` have their origins' rules brought."""
        now = self._clock.now()
        for visit in self._recalled(visits):
            if visit.kind is Kind.RULES:
                self._rules.bring(visit.parts.origin, now)
            else:
                self._add(self._host_of(visit, now), visit, now)

    def _add(self, host: Host, visit: Visit, now: float) -> None:
        """Let `visit` wait at `host`, unless that was given up, or sleeps."""
        if host.retired:
            self._end(visit, Outcome.HOST_RETIRED, host.retired)
        elif host.due - now > SOON_S:
            self._given_back.append((visit, host.due))
        else:
            self.bench.add(host, visit)
            return
        self.bench.leave(host, now)

    def _put_off(self, host: Host, chosen: Callable[[Host, float], Sequence[Visit]], now: float) -> None:
        """Give back the visits that `host` does not come to soon, as `chosen` by the workbench."""
        visits = chosen(host, now)
        for visit in visits:
            if visit.purpose is Purpose.ROBOTS:
                self._rules.rest_until(visit, max(host.due, visit.not_before), now)
            else:
                self._given_back.append((visit, host.due))
        if visits:
            self._news.set()
            self.bench.leave(host, now)

    def _recalled(self, visits: pa.RecordBatch) -> list[Visit]:
        rows = visits_of(visits)
        if self._rooms.past is not None:
            self._rooms.past.recall(rows)
        return rows

    def take(self) -> Fetched:
        """What came of visits since this was last asked."""
        fetched = Fetched(self._exchanges, self._rules.learned, self._rules.sitemaps, self._given_back)
        self._exchanges, self._rules.learned, self._rules.sitemaps, self._given_back = [], [], [], []
        return fetched

    def take_strayed(self) -> list[pa.RecordBatch]:
        """Visits (schema `URLS`) that are not made here, since their hosts moved, since this was last asked."""
        strayed, self._strayed = self._strayed, []
        return strayed

    def recall(self, host: int) -> pa.RecordBatch:
        """The visits that wait at the host with this key, taken out (schema `URLS`): they are not made."""
        found = self.bench.get(host)
        return EMPTY if found is None else batch_of(self._pages_of(self.bench.drain(found)))

    def _pages_of(self, visits: Iterable[Visit]) -> Iterator[Visit]:
        """Those of `visits`, which are not made, that are to pages; the others are put off."""
        for visit in visits:
            if visit.purpose is Purpose.PAGE:
                yield visit
            else:
                self._rules.put_off(visit, self._clock.now())

    def recall_all(self, domains: Callable[[int], bool]) -> list[pa.RecordBatch]:
        """The same of every host in one of `domains` (by their keys); errands of others are forgotten."""
        recalled = []
        for host in [host for host in self.bench if domains(host.domain_key)]:
            visits = [visit for visit in self.bench.drain(host) if not visit.errand]
            recalled.append(batch_of(self._pages_of(visits)))
        return recalled

    # -- errands: a robots.txt that redirects to a host of another agent ----------------------------

    def take_errands(self) -> list[Visit]:
        """Visits that others are to make, to bring rules of hosts that are asked from here."""
        errands, self._rules.errands = self._rules.errands, []
        return errands

    def put_errand(self, visit: Visit) -> None:
        """Make `visit` for another agent, with its `errand`."""
        self.bench.add(self._host_of(visit, self._clock.now()), visit, first=True)

    def take_answers(self) -> list[Exchange]:
        """What came of errands of others."""
        answers, self._rules.answers = self._rules.answers, []
        return answers

    def put_answer(self, exchange: Exchange) -> None:
        """What came of a visit that `take_errands` gave."""
        self._rules.fetched(exchange, self._clock.now())
        self.pump()

    def _host_of(self, visit: Visit, now: float) -> Host:
        return self.bench.get(visit.host) or self._hosts.host(visit.parts.host, now)

    @property
    def ended(self) -> int:
        """What waits to be taken: exchanges, and visits that come back."""
        return len(self._exchanges) + len(self._given_back)

    @property
    def idle(self) -> bool:
        """Whether nothing waits here, is under way, or waits to be taken."""
        return not (self.bench.visits or self.in_flight or self.ended or self._strayed)

    @property
    def has_its_pages(self) -> bool:
        """Whether as many pages were begun as there may be, and all have been taken."""
        return self.pages_left == 0 and not self.in_flight and not self._exchanges

    @property
    def unreached(self) -> bool:
        """Whether there are hosts, and all of them failed `UNREACHED_TRIES` times and none is being asked."""
        hosts = list(self.bench)
        return bool(hosts) and not self.in_flight and all(host.failures >= UNREACHED_TRIES for host in hosts)

    @property
    def rules_room(self) -> int:
        """How many more origins may be asked for their rules now: each is a name to look up, which may be long in
        coming, and holds no connection until then."""
        return max(0, MOST_RULES - self._rules.under_way)

    def refuse(self, visits: pa.RecordBatch) -> None:
        """End `visits` (schema `URLS`), whose hosts forbid everything."""
        now = self._clock.now()
        for visit in self._recalled(visits):
            host = self._host_of(visit, now)
            robots = self._rules.of(host, visit.parts.origin)
            line = self._rules.refusal(host, robots, visit) if robots is not None else ""
            if line and robots is not None:
                self._rules.take_sitemaps(host, robots)
                self._end(visit, Outcome.ROBOTS_FORBADE, line)
            else:  # robots.txt itself, rules that changed since, or that take longer to ask
                self._add(host, visit, now)

    def pump(self) -> None:
        """Start every request that may start now, and come back when the next one may."""
        self._pumps_soon = False
        if self._aborted:
            return
        now = self._clock.now()
        if now >= self._look_ahead_at and not (self.stopping or self.held):
            self._look_ahead_at = now + LOOK_AHEAD_S
            self._hosts.look_ahead(now, self._connections)
        for slow in self._places.sort_out(now, len(self._held_up[False])):
            if slow.request is not None:
                self._rooms.cut(slow.request, "cut, since it was slow and others waited")
        while self._may_start:
            host = self._next(now)
            if host is None:
                break
            self._serve(host, now)
        for hosts in (self.bench.crowded, self._rules.slowed):
            while hosts:
                host = hosts.pop()
                self._put_off(host, self.bench.put_off, now)
        self._set_alarm(now)

    def _next(self, now: float) -> Host | None:
        """A host whose turn it is and for whom there is a connection."""
        for held_up in self._held_up:
            if held_up and self._places.free_for(held_up[0]):
                host = held_up.popleft()
                host.parked = False
                return host
        while (found := self.bench.next(now)) is not None and not self._places.free_for(found):
            self.bench.park(found)
            self._held_up[found.quick].append(found)
        return found

    @property
    def _may_start(self) -> bool:
        return self._places.free and self.pages_left != 0 and not (self.stopping or self.held)

    @property
    def quiet(self) -> bool:
        """Whether nothing is on its way: no answer, no name."""
        return not (self.in_flight or self._tasks or self._slicer)

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        dues = [self.bench.next_due() if self._may_start else None]
        if any(self._held_up) or not self._may_start:
            dues.append(self._places.changes_at(now))
        due = min((due for due in dues if due is not None), default=None)
        if due is not None and not (self.stopping or self.held):
            self._alarm = asyncio.get_running_loop().call_later(max(0.0, due - now), self.pump)

    # -- one host's turn -------------------------------------------------------------------------

    def _serve(self, host: Host, now: float) -> None:
        if host.retired:
            self._abandon(host, Outcome.HOST_RETIRED, host.retired)
        elif self._has_address(host, now):
            self._request(host, now)

    def _request(self, host: Host, now: float) -> None:
        while (visit := self.bench.pop(host, now)) is not None:
            if visit.purpose is Purpose.ROBOTS:
                self._start(host, visit)
                return
            origin = visit.parts.origin
            robots = self._rules.of(host, origin)
            known = host.rules_of(origin)
            if robots is None or not (robots.fresh(now) or known.unused):
                self.bench.add(host, visit, first=True)
                if not self._rules.fetch(host, origin):
                    return
                continue
            if visit.kind is not Kind.LISTING:
                self._rules.take_sitemaps(host, robots)
            if robots.state is RobotsState.DISALLOW_ALL:
                known.unused = False
                self._wait_for_rules(host, visit, robots)
                continue
            line = self._rules.refusal(host, robots, visit)
            if line is None:
                self.bench.add(host, visit, first=True)
                self.bench.park(host)
                return
            known.unused = False
            if not line:
                self._start(host, visit)
                return
            self._end(visit, Outcome.ROBOTS_FORBADE, line)
        self._put_off(host, self.bench.put_off_retries, now)
        self.bench.rest(host)

    def _wait_for_rules(self, host: Host, visit: Visit, robots: RobotsRecord) -> None:
        """Put `visit` off until its origin's robots.txt is asked for again, or end it when that was in vain
        too often; other origins of the host (https beside a closed port 80) go on."""
        if robots.failures >= self._politeness.host_failures:
            self._end(visit, Outcome.ROBOTS_UNREACHABLE, robots.reason)
        else:
            visit.not_before = robots.expires_at
            self.bench.add(host, visit)

    def _start(self, host: Host, visit: Visit) -> None:
        assert host.address is not None
        self.bench.start(host)
        self._places.begin(host, self._clock.now())
        host.request = visit
        self._hosts.note_request(host, self._clock.now())
        self.in_flight += 1
        if visit.purpose is Purpose.PAGE:
            self._count_started()
            if visit.earlier is not None and self._rooms.past is not None:
                self._rooms.past.read(visit.earlier)
        self._rooms.protocols.fetch(visit, host.address.text, lambda exchange: self._done(host, exchange))

    def _count_started(self) -> None:
        if self.pages_left > 0:
            self.pages_left -= 1

    def give_back(self, pages: int) -> None:
        """So many of what was begun as pages did not become any: others may be begun instead."""
        if self.pages_left >= 0:
            self.pages_left += pages

    def _done(self, host: Host, exchange: Exchange) -> None:
        self.in_flight -= 1
        if exchange.visit.purpose is Purpose.PAGE and exchange.outcome is not Outcome.OK:
            self.give_back(1)
        now, address = self._clock.now(), host.address
        self._places.end(host, now)
        host.request = None
        if self.stopping and not exchange.outcome.answered:  # broken off by us: it is still a waiting visit
            self.bench.finished(host, now, now - exchange.started_at)
            self._hosts.note_rest(host, now, address)
            return
        wait_s = self._account(host, exchange, now)
        visit = exchange.visit
        again = self._faults.again(exchange.outcome, visit.tries) and not host.retired
        again = again and visit.purpose is Purpose.PAGE
        if again:
            visit.tries += 1
            visit.not_before = now + wait_s
            self.bench.add(host, visit)
        self.bench.finished(host, now, exchange.duration_s, wait_s)
        if visit.purpose is Purpose.ROBOTS:
            self._rules.fetched(exchange, now)  # it may ask for a longer rest
        self._hosts.note_rest(host, now, address)
        visit.rest_s = max(0.0, host.due - now)
        if again:
            exchange.body.close()
        else:
            self._hand_out(exchange)
        if host.retired:
            self._abandon(host, Outcome.HOST_RETIRED, host.retired)
        else:
            self._put_off(host, self.bench.put_off, now)
        self._pump_soon()

    def _pump_soon(self) -> None:
        """Pump at the loop's next turn, once for all that ended in this one."""
        if not self._pumps_soon:
            self._pumps_soon = True
            asyncio.get_running_loop().call_soon(self.pump)

    # -- what an answer costs the host -----------------------------------------------------------

    def _account(self, host: Host, exchange: Exchange, now: float) -> float:
        """Seconds that `host` must rest beyond its usual delay because of this answer."""
        outcome, tries = exchange.outcome, exchange.visit.tries
        host.failures = self._faults.failures(outcome, host.failures, tries)
        self._retire_if_hopeless(host, outcome, exchange.detail)
        host.last_seen = now
        host.pages += outcome is Outcome.OK and exchange.visit.purpose is Purpose.PAGE
        self._hosts.changed(host)
        asked_s = retry_after(exchange, now) if FAULTS[outcome].wait is Wait.THROTTLE else None
        return self._faults.wait_s(outcome, host.failures, tries, asked_s)

    def _retire_if_hopeless(self, host: Host, outcome: Outcome, detail: str) -> None:
        if self._faults.gives_up(host.failures):
            why = f" ({detail})" if detail else ""
            host.retired = f"{host.failures} failures in a row, the last: {outcome}{why}"

    # -- names -----------------------------------------------------------------------------------

    def _has_address(self, host: Host, now: float) -> bool:
        """Whether the address of `host` is known; if not, the host is parked until it is."""
        if host.address is not None and host.addresses_until > now:
            return True
        answer = self._rooms.resolver.cached(host.name)
        if answer is not None and answer.addresses:
            self._settle(host, answer)
            self.bench.rest(host)  # the address has its own order
            return False
        self.bench.park(host)
        task = asyncio.get_running_loop().create_task(self._name(host))
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)
        return False

    def _settle(self, host: Host, answer: Resolution) -> None:
        """`host` is asked at an address of `answer`, or what waits for it goes back."""
        if not self._hosts.learn_addresses(host, answer):
            visits = self.bench.drain(host)
            self._strayed.append(batch_of(self._pages_of(visit for visit in visits if not visit.errand)))
            self._strayed.append(errands_of(visits))
            self._news.set()

    def _task_ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "looking up a name failed", "exception": task.exception()}
            )

    async def _name(self, host: Host) -> None:
        answer = await self._rooms.resolver.resolve(host.name)
        now = self._clock.now()
        if answer.addresses:
            self._settle(host, answer)
        else:
            self._unnamed(host, answer, now)
        self.bench.unpark(host)
        self.bench.leave(host, now)
        self.pump()

    def _unnamed(self, host: Host, answer: Resolution, now: float) -> None:
        outcome = answer.outcome
        if outcome is Outcome.DNS_FAILED:
            host.failures += 1
            self._retire_if_hopeless(host, outcome, answer.detail)
            self._hosts.changed(host)
            # Until the answer is believed no more: asked again sooner, the cache would fail, and not the name.
            self.bench.sleep_until(host, max(now + self._faults.sleep_s(host.failures), answer.expires_at))
            if host.retired:
                self._abandon(host, Outcome.HOST_RETIRED, host.retired)
            else:
                self._put_off(host, self.bench.put_off, now)
        else:
            self._abandon(host, outcome, answer.detail)

    def _abandon(self, host: Host, outcome: Outcome, detail: str) -> None:
        for visit in self.bench.drain(host):
            if visit.purpose is Purpose.PAGE:
                self._end(visit, outcome, detail)
            else:
                self._rules.unmade(visit, outcome, detail, self._clock.now())
        self.bench.rest(host)

    # -- the book --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Write down every host that changed: all that must last of what is known here is in the host book."""
        self._hosts.save()
        return {}

    def robots_state(self, name: str) -> str:
        """The state of the robots.txt of a host, for the table of hosts."""
        return self._rules.state_of(name)

    # -- ends ------------------------------------------------------------------------------------

    def _end(self, visit: Visit, outcome: Outcome, detail: str) -> None:
        """End `visit` without a request."""
        self._hand_out(Exchange(visit, outcome, self._clock.now(), 0.0, detail=detail))

    def _hand_out(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)
        self._news.set()

    async def stop(self) -> None:
        """Start nothing more, and let go of what waits for names."""
        self.stopping = True
        self._slicer.stop()
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def abort(self) -> None:
        """Break off what is under way: it stays a waiting visit. Nothing is started any more."""
        self._aborted = True
        self._rooms.abort()


def errands_of(visits: Iterable[Visit]) -> pa.RecordBatch:
    """Errands as a `URLS` batch, by the keys that their agents know them by."""
    errands = [visit for visit in visits if visit.errand]
    return url_batch(
        [Locator(visit.url.encode(), visit.errand, visit.host, visit.domain) for visit in errands], kind=Kind.RULES
    )
