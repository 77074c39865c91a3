"""The fetcher itself: it turns visits into exchanges, politely.

The loop puts `Visits` in and takes the results out. In between the fetcher moves on its own, and sets `news` when there
is something to take. It asks the workbench for a host, resolves its name, and brings the rules of robots.txt by visits
of their own, which are as polite as any. It ends visits that the rules forbid and sends the others to the protocol
modules. Nothing here must last: the frontier knows what it handed out, and the host book what was learned of a host.

Invariant: every visit that was put in is in the workbench, under way, or was taken out, once.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import Kind, concat
from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.core.rests import SOON_S
from fyke.core.slices import Slicer
from fyke.core.visits import Exchange, Purpose, Visit, batch_of, visits_of
from fyke.fetcher.connections import Admission, Connections
from fyke.fetcher.fault_desk import FaultDesk
from fyke.fetcher.host import Host
from fyke.fetcher.host_desk import HostDesk
from fyke.fetcher.name_desk import NameDesk
from fyke.fetcher.refusals import Refusals
from fyke.fetcher.returns import Fetched, Returns
from fyke.fetcher.robots import RobotsState
from fyke.fetcher.rules_desk import RulesDesk
from fyke.fetcher.wiring import Wiring

MOST_RULES = 4096  # origins that may wait for their rules at a time
STARTS = 128  # hosts served in a turn of the loop: each costs a note of its rest, and perhaps a look into the host book
STOOD_STILL_S = 2.0  # between looks at the clock; longer means that the process was stopped, or the machine asleep
HELD_BACK_S = 0.25  # between looks whether a host must still wait
LOOK_AHEAD_S = 1.0  # between looks at slow requests, and at names to refresh, at most `fetch.connections` of them


class Fetcher:
    """Drives the workbench. Call `put` with visits, and `pump` whenever something may be due."""

    def __init__(self, rooms: Wiring, config: Config, news: asyncio.Event, other_connections: int) -> None:
        """`news` is set when something ended. `other_connections` are for newcomers and slow servers."""
        self._rooms = rooms
        self.bench = rooms.bench
        self._clock = rooms.clock
        self._config = config
        self._places = Connections(config.fetch.connections, other_connections)
        self._admission = Admission(self._places, rooms.bench)
        self._returns = Returns(news, rooms.clock)
        self._refusals = Refusals()
        self._hosts = HostDesk(rooms.bench, rooms.resolver, rooms.book, rooms.rests, rooms.clock, rooms.ours)
        self._slicer = Slicer(self.pump, rooms.pace.share())
        self._rules = RulesDesk(
            rooms.bench, self._hosts, rooms.book, config, rooms.clock, self._slicer, shared=rooms.shared
        )
        self._faults = FaultDesk(rooms.bench, self._hosts, self._rules, self._returns, config.politeness, rooms.clock)
        self._names = NameDesk(
            self.bench, self._hosts, self._faults, rooms.resolver, self._returns, self._pump_soon, rooms.pace
        )
        self._alarm: asyncio.TimerHandle | None = None
        self._pumps_soon = self._aborted = False
        self._looked_ahead_at = 0.0
        self._looked_at = self._awake_since = self._clock.now()
        self.stood_still_s = 0.0  # in all
        self.in_flight = 0
        self.stopping = False
        self.held = False  # start nothing, but go on with what is under way
        self.blocked: set[int] = set()  # keys of hosts to which no request begins, not even for rules
        self.pages_left = -1  # how many more pages may be begun; below zero: any number

    def put(self, visits: pa.RecordBatch) -> None:
        """Queue `visits` (schema `URLS`) at their hosts. For one of kind `RULES`, bring its origin's rules."""
        now = self._clock.now()
        for visit in self._with_known(visits):
            if visit.kind is Kind.RULES:
                self._rules.bring(visit.parts.origin, now)
            else:
                self._add(self._host_of(visit, now), visit, now)

    def _add(self, host: Host, visit: Visit, now: float) -> None:
        """Queue `visit` at `host`, or return it if the host was retired or sleeps."""
        self.bench.apply_hours(host, now)
        if host.retired:
            self._returns.end(visit, Outcome.HOST_RETIRED, host.retired)
        elif host.rests_until - now > SOON_S:
            self._returns.put_off(visit, host.rests_until)
        else:
            self.bench.add(host, visit, first=visit.purpose is Purpose.PROBE)
            return
        self.bench.leave(host, now)

    def _with_known(self, visits: pa.RecordBatch) -> list[Visit]:
        rows = visits_of(visits)
        self._rooms.past.note_known(rows)
        return rows

    def take(self, *, exchanges: bool = True) -> Fetched:
        """Take the results since the last call. Without `exchanges`, these stay."""
        brought, put_off = self._returns.take(exchanges=exchanges)
        fetched = Fetched(brought, self._rules.learned, self._rules.sitemaps, put_off)
        self._rules.learned, self._rules.sitemaps = [], []
        return fetched

    def take_strayed(self) -> list[pa.RecordBatch]:
        """Take the visits (schema `URLS`) that are not made here because their hosts moved."""
        return self._returns.take_strayed()

    def recall(self, host: int) -> pa.RecordBatch:
        """Take out the pages that wait at the host with this key (schema `URLS`); they are not visited. Visits that
        bring rules stay, also those that strangers' redirects led here."""
        refused = self._refusals.take_back("host", lambda hosts: np.equal(hosts, host))
        found = self.bench.get(host)
        return refused if found is None else concat([refused, batch_of(self.bench.take_pages(found))])

    def recall_all(self, domains: Callable[[int], bool]) -> list[pa.RecordBatch]:
        """Recall pages and rules of every host whose domain's key satisfies `domains`. Drop errands for other
        agents."""
        recalled = [self._refusals.take_back("domain", lambda keys: np.array([*map(domains, keys.tolist())], np.bool_))]
        for host in [host for host in self.bench if domains(host.domain_key)]:
            visits = [visit for visit in self.bench.drain(host) if not visit.errand]
            recalled.append(batch_of(self._faults.pages_of(visits)))
        return recalled

    # -- errands: a robots.txt that redirects to a host of another agent ----------------------------

    def take_errands(self) -> list[Visit]:
        """Take the visits that other agents must make to bring rules of our hosts."""
        errands, self._rules.errands = self._rules.errands, []
        return errands

    def put_errand(self, visit: Visit) -> None:
        """Make `visit` for another agent, which knows it by its `errand`."""
        self._rules.follow(visit, self._clock.now())

    def take_answers(self) -> list[Exchange]:
        """Take the exchanges of other agents' errands."""
        answers, self._rules.answers = self._rules.answers, []
        return answers

    def put_answer(self, exchange: Exchange) -> None:
        """Take in the exchange of a visit that `take_errands` gave."""
        self._rules.fetched(exchange, self._clock.now())
        self.pump()

    def _host_of(self, visit: Visit, now: float) -> Host:
        return self.bench.get(visit.host) or self._hosts.host(visit.parts.host, now)

    @property
    def ended(self) -> int:
        """Number of exchanges and returned visits that wait to be taken."""
        return len(self._returns)

    @property
    def idle(self) -> bool:
        """True if nothing waits here, is under way, or waits to be taken."""
        waits = self.bench.visits or self._rules.waits or self._refusals
        return self.quiet and not waits and self._returns.empty

    @property
    def has_its_pages(self) -> bool:
        """True if all allowed pages were begun and all their exchanges taken."""
        return self.pages_left == 0 and not self.in_flight and not self._returns.exchanges

    @property
    def unreached(self) -> bool:
        """True if there are hosts, all of them failed once more than they have addresses, and none is being asked."""
        hosts = list(self.bench)
        failed = (host.failed > max(1, len(host.addresses)) or host.retired for host in hosts)
        return bool(hosts) and not self.in_flight and all(failed)

    @property
    def rules_room(self) -> int:
        """Number of further origins that may be asked for rules. One that waits for its name holds no connection."""
        return max(0, MOST_RULES - self._rules.under_way)

    def refuse(self, visits: pa.RecordBatch) -> None:
        """End `visits` (schema `URLS`), whose hosts forbid everything. Each call ends one portion of all that wait,
        unless too many exchanges are untaken."""
        self._refusals.put(visits)
        if not self._refusals or self._returns.full:
            return
        now = self._clock.now()
        for visit in self._with_known(self._refusals.next()):
            host = self._host_of(visit, now)
            robots = self._rules.of(host, visit.parts.origin)
            line = self._rules.refusal(host, robots, visit) if robots is not None else ""
            if line and robots is not None:
                self._rules.take_sitemaps(host, robots)
                self._returns.end(visit, Outcome.ROBOTS_FORBADE, line)
            else:  # robots.txt itself, or rules that changed since or that take longer to ask
                self._add(host, visit, now)

    def pump(self) -> None:
        """Start every request that may start now, and come back when the next one may."""
        self._pumps_soon = False
        if self._aborted:
            return
        now = self._look_at_clock()
        if now >= self._looked_ahead_at + LOOK_AHEAD_S and not (self.stopping or self.held):
            self._look_ahead(now)
        self._rules.go_on(now)
        self._places.fit(self._rooms.room(len(self.bench)))
        for slow in self._places.sort_out(now, self._admission.newcomers):
            if slow.request is not None:
                self._rooms.cut(slow.request, "cut, because it was slow and other requests waited")
        for _ in range(STARTS):
            host = self._admission.next(now) if self._may_start else None
            if host is None:
                break
            self._serve(host, now)
        else:
            self._pump_soon()
        for hosts in (self.bench.crowded, self._rules.slowed):
            while hosts:
                self._faults.put_off(hosts.pop(), self.bench.take_late, now)
        self._set_alarm(now)

    def _look_ahead(self, now: float) -> None:
        """Have names looked up before they are needed, and give back visits that slow requests keep waiting."""
        for host, held_s in self._places.doubled(self._looked_ahead_at, now, self._awake_since):
            self._faults.put_off_slow(host, held_s, now)
        self._looked_ahead_at = now
        self._hosts.look_ahead(now, self._config.fetch.connections)

    def _look_at_clock(self) -> float:
        """Return the time. If it jumped, we stood still: requests under way may have failed by our fault."""
        now = self._clock.now()
        if now - self._looked_at > STOOD_STILL_S and self.in_flight:
            self.stood_still_s += now - self._looked_at
            self._awake_since = now
        self._looked_at = now
        return now

    @property
    def _may_start(self) -> bool:
        return self._places.free and self.pages_left != 0 and not (self.stopping or self.held or self._returns.full)

    @property
    def quiet(self) -> bool:
        """True if no answer, no name and no sliced work is on its way."""
        return not (self.in_flight or len(self._names) or self._slicer)

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        dues = [self.bench.next_due() if self._may_start else None, self._rules.redirects.next_due]
        if self._admission.held_up or not self._may_start:
            dues.append(self._places.changes_at(now))
        if self.in_flight:
            dues.append(now + STOOD_STILL_S / 2)
        due = min((due for due in dues if due is not None), default=None)
        if due is not None and not (self.stopping or self.held):
            self._alarm = asyncio.get_running_loop().call_later(max(0.0, due - now), self.pump)

    # -- one host's turn -------------------------------------------------------------------------

    def _serve(self, host: Host, now: float) -> None:
        if host.key in self.blocked:
            self._faults.leave_alone(host, now)
        elif self._rooms.holds_back(host.key):
            self.bench.sleep_until(host, now + HELD_BACK_S)
        elif host.retired:
            self._faults.abandon(host, Outcome.HOST_RETIRED, host.retired)
        elif self.bench.apply_hours(host, now):
            self.bench.enqueue(host)
            self._faults.put_off(host, self.bench.take_late, now)
        elif self._names.has_address(host, now):
            self._request(host, now)

    def _request(self, host: Host, now: float) -> None:
        while not self._returns.full and (visit := self._next(host, now)) is not None:
            if visit.purpose is Purpose.ROBOTS:
                self._start(host, visit)
                return
            origin = visit.parts.origin
            robots = self._rules.of(host, origin)
            known = host.rules_of(origin)
            if robots is None or not (robots.fresh(now) or known.unused):
                self.bench.add(host, visit, first=not known.in_line)  # last while its rules visit is in line
                if not self._rules.fetch(host, origin):
                    return
                continue
            if visit.kind is not Kind.LISTING:
                self._rules.take_sitemaps(host, robots)
            if robots.state is RobotsState.DISALLOW_ALL:
                known.unused = False
                self._faults.wait_for_rules(host, visit, robots)
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
            self._returns.end(visit, Outcome.ROBOTS_FORBADE, line)
        if not self._returns.full:
            self._faults.put_off(host, self.bench.take_late_retries, now)
        self.bench.enqueue(host)

    def _next(self, host: Host, now: float) -> Visit | None:
        """Return the next visit of `host` whose time has come, without robots visits whose answer is known, and without
        those that the host refuses."""
        while (visit := self.bench.pop(host, now)) is not None:
            if why := host.refuses(visit):
                self._faults.end(visit, Outcome.ADDRESS_REFUSED, why)
                continue
            if visit.purpose is not Purpose.ROBOTS:
                break
            self._rules.begun(host, visit)
            if not self._rules.answer(visit, now):
                break
        return visit

    def _start(self, host: Host, visit: Visit) -> None:
        assert host.address is not None
        self.bench.start(host)
        self._places.begin(host, self._clock.now())
        host.request, host.last_was_led = visit, visit.led
        self._hosts.note_request(host, self._clock.now())
        self.in_flight += 1
        if visit.purpose is Purpose.PAGE:
            self.pages_left -= self.pages_left > 0
            if visit.earlier is not None:
                self._rooms.past.read(visit.earlier)
        self._rooms.protocols.fetch(visit, host.address.text, lambda exchange: self._done(host, exchange))

    def give_back(self, pages: int) -> None:
        """Let `pages` further visits begin as pages, because as many that were begun brought none."""
        if self.pages_left >= 0:
            self.pages_left += pages

    def _done(self, host: Host, exchange: Exchange) -> None:
        now, address = self._look_at_clock(), host.address
        self.in_flight -= 1
        if exchange.visit.purpose is Purpose.PAGE and exchange.outcome is not Outcome.OK:
            self.give_back(1)
        self._places.end(host, now, page=exchange.visit.purpose is Purpose.PAGE)
        # A server may refuse requests to make libcurl ask anew. The second time in a row counts as its fault.
        broke, broke_before = exchange.kept_broke, host.broke
        host.request, host.broke = None, broke
        void = (broke and not broke_before) or exchange.started_at < self._awake_since
        # The failure says nothing of the server, so its visit still counts as waiting.
        if not exchange.outcome.answered and (self.stopping or (void and not self._aborted)):
            exchange.body.close()
            if not self.stopping:
                self.bench.add(host, exchange.visit, first=True)
            self.bench.finished(host, now, now - exchange.started_at, awake_s=now - self._awake_since)
            self._hosts.note_rest(host, now, address)
            self._pump_soon()
            return
        wait_s = self._faults.account(host, exchange, now)
        visit, again_s = exchange.visit, self._faults.again_s(host, exchange, wait_s)
        if again_s is not None:
            visit.tries += 1
            visit.not_before = now + again_s
            self.bench.add(host, visit)
        self.bench.finished(host, now, exchange.duration_s, wait_s, now - self._awake_since)
        self._faults.learn_rules(host, exchange, now)
        self._hosts.note_rest(host, now, address)
        if exchange.outcome is Outcome.CONNECT_FAILED:
            self._hosts.move_on(host)
        visit.rest_s = max(0.0, host.due - now)
        if again_s is not None:
            self._returns.hold(exchange)
        else:
            self._faults.finish(exchange)
        self._faults.settle(host, now)
        self._pump_soon()

    def _pump_soon(self) -> None:
        """Pump at the loop's next turn, once for all that ended in this one."""
        if not self._pumps_soon:
            self._pumps_soon = True
            asyncio.get_running_loop().call_soon(self.pump)

    def state(self) -> dict[str, Any]:
        """Write every changed host to the host book, which has all that must last. Returns an empty state."""
        self._hosts.save()
        return {}

    def stop(self) -> None:
        """Start nothing more, and stop waiting for names."""
        self.stopping = True
        self._slicer.stop()
        if self._alarm is not None:
            self._alarm.cancel()
        self._names.stop()

    def abort(self) -> None:
        """Stop, and break off the requests under way; their visits count as waiting."""
        self._aborted = True
        self._rooms.abort()
        self.stop()  # breaking off may have begun something
