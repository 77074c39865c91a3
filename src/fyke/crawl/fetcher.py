"""The half of the loop that acts: from a visit to an exchange, politely.

The loop gives it visits; it knows from the workbench which host may be asked, resolves names, brings
the rules of robots.txt as visits of their own (so they are as polite as any), drops what the rules
forbid, sends the rest to the protocol modules, and hands every visit that has ended to `ended`, once.
Nothing it holds must last: what was under way when the process died is still a waiting visit in the
last checkpoint; what it learned of a host is in the host book.

Invariant: every visit given to `offer` is in the workbench, under way, or was handed to `ended`.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fyke.core.batches import Kind
from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.core.urls import split
from fyke.core.visits import Exchange, Purpose, Visit
from fyke.crawl.control import Blocked
from fyke.crawl.known_hosts import Known, KnownHosts
from fyke.crawl.rules import RulesDesk, Told
from fyke.fetch import FAULTS, Fault, Registry, Wait, retry_after
from fyke.hosts.book import HostBook, HostRecord
from fyke.hosts.dns import Answer, Resolver
from fyke.hosts.politeness import Host, Workbench
from fyke.hosts.robots import RobotsRecord, RobotsState


@dataclass(frozen=True, slots=True)
class Wiring:
    """The rooms the fetcher acts through."""

    bench: Workbench
    resolver: Resolver
    book: HostBook
    protocols: Registry
    abort: Callable[[], None]  # breaks off every request under way
    clock: Clock


class Fetcher:
    """Drives the workbench: call `offer` with visits and `pump` whenever something may be due."""

    def __init__(
        self,
        rooms: Wiring,
        config: Config,
        *,
        ended: Callable[[Exchange], None],
        sitemaps: Callable[[Sequence[str]], None],
        told: Told,
        rested_since: float = 0.0,
        blocked: Blocked | None = None,
    ) -> None:
        """`told` hears what came of asking for the rules of an origin; visits to hosts in `blocked` are put there."""
        self._rooms = rooms
        self._bench = rooms.bench
        self._clock = rooms.clock
        self._politeness = config.politeness
        self._connections = config.fetch.connections
        self._ended = ended
        self._blocked = blocked
        self._hosts = KnownHosts(rooms.bench, rooms.resolver, rooms.book, rooms.clock, config.politeness, rested_since)
        self._rules = RulesDesk(rooms.bench, self._hosts, rooms.book, config, told=told, sitemaps=sitemaps)
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._under_way: dict[int, Visit] = {}
        self.in_flight = 0
        self.stopping = False
        self.held = False  # start nothing, but go on with what is under way
        self.pages_left = -1  # how many more pages may be begun; below zero: any number

    def offer(self, visits: Iterable[Visit]) -> list[Visit]:
        """Let `visits` wait at their hosts; returns those for which a host had no room."""
        excess = []
        now = self._clock.now()
        for visit in visits:
            host = self._bench.get(visit.host) or self._hosts.at(visit.host, split(visit.url).host, now)
            if self._bench.host_room(host) > 0:
                self._bench.add(host, visit)
            else:
                host.overflowed = True
                excess.append(visit)
        return excess

    @property
    def rules_room(self) -> int:
        """How many more origins may be asked for their rules now: each is a name to look up as well."""
        return max(0, self._connections - self._rules.under_way)

    def bring_rules(self, origins: Iterable[str]) -> None:
        """Have the robots.txt of `origins` fetched."""
        self._rules.bring(origins, self._clock.now())

    def refuse(self, visits: Iterable[Visit]) -> None:
        """End `visits`, whose hosts forbid everything."""
        now = self._clock.now()
        for visit in visits:
            host = self._hosts.at(visit.host, split(visit.url).host, now)
            rules = self._rules.of(host, visit.parts.origin)
            line = self._rules.refusal(rules, visit) if rules is not None else ""
            if line and rules is not None:
                self._rules.hand_on_sitemaps(host, rules)
                self._end(visit, Outcome.ROBOTS_FORBADE, line)
            else:
                self._bench.add(host, visit)  # robots.txt itself, or rules that changed since

    def waiting(self) -> Iterator[Visit]:
        """Every page visit that has not ended: what a checkpoint must remember."""
        yield from (visit for visit in self._bench.waiting() if visit.purpose is Purpose.PAGE)
        yield from self._under_way.values()

    def forget(self, exchange: Exchange) -> None:
        """The loop has made safe what came of `exchange`; only now is it known whether that is a page."""
        visit = exchange.visit
        self._under_way.pop(visit.key, None)
        if visit.kind is Kind.LISTING and exchange.outcome is Outcome.OK:
            self._give_back()

    def pump(self) -> None:
        """Start every request that may start now, and come back when the next one may."""
        now = self._clock.now()
        while self._may_start:
            host = self._bench.next(now)
            if host is None:
                break
            self._serve(host, now)
        self._set_alarm(now)

    @property
    def _may_start(self) -> bool:
        return self.in_flight < self._connections and self.pages_left != 0 and not (self.stopping or self.held)

    @property
    def quiet(self) -> bool:
        """Whether nothing is on its way: no answer, no name."""
        return not (self.in_flight or self._tasks)

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due = self._bench.next_due()
        if due is not None and self._may_start:
            self._alarm = asyncio.get_running_loop().call_later(max(0.0, due - now), self.pump)

    # -- one host's turn -------------------------------------------------------------------------

    def _serve(self, host: Host, now: float) -> None:
        known: Known = host.known
        if self._blocked is not None and host in self._blocked:
            self._set_aside(host, self._blocked, now)
        elif known.record.retired:
            self._abandon(host, Outcome.HOST_RETIRED, known.record.retired)
        elif self._at_address(host, now):
            self._request(host, known, now)

    def _request(self, host: Host, known: Known, now: float) -> None:
        while (visit := self._bench.pop(host, now)) is not None:
            if visit.purpose is Purpose.ROBOTS:
                self._start(host, visit)
                return
            origin = visit.parts.origin
            rules = known.rules.get(origin) or self._rules.of(host, origin)
            if rules is None or not (rules.fresh(now) or origin in known.answered):
                self._bench.add(host, visit, first=True)
                if not self._rules.ask(host, origin):
                    return
                continue
            known.answered.discard(origin)
            if visit.kind is not Kind.LISTING:
                self._rules.hand_on_sitemaps(host, rules)
            if rules.state is RobotsState.DISALLOW_ALL:
                self._wait_for_rules(host, visit, rules)
                continue
            line = self._rules.refusal(rules, visit)
            if not line:
                self._start(host, visit)
                return
            self._end(visit, Outcome.ROBOTS_FORBADE, line)
        self._bench.rest(host)

    def _wait_for_rules(self, host: Host, visit: Visit, rules: RobotsRecord) -> None:
        """Put `visit` off until its origin's robots.txt is asked for again, or end it when that was in vain
        too often; other origins of the host (https beside a closed port 80) go on."""
        if rules.failures >= self._politeness.host_failures:
            self._end(visit, Outcome.ROBOTS_UNREACHABLE, rules.reason)
        else:
            visit.not_before = rules.expires_at
            self._bench.add(host, visit)

    def _start(self, host: Host, visit: Visit) -> None:
        assert host.address is not None
        self._bench.start(host)
        self.in_flight += 1
        if visit.purpose is Purpose.PAGE:
            self._under_way[visit.key] = visit
            self._count_started()
        self._rooms.protocols.fetch(visit, host.address.text, lambda exchange: self._done(host, exchange))

    def _count_started(self) -> None:
        if self.pages_left > 0:
            self.pages_left -= 1

    def _give_back(self) -> None:
        """A page that was begun did not become one: another may be begun instead."""
        if self.pages_left >= 0:
            self.pages_left += 1

    def _done(self, host: Host, exchange: Exchange) -> None:
        self.in_flight -= 1
        if exchange.visit.purpose is Purpose.PAGE and exchange.outcome is not Outcome.OK:
            self._give_back()
        if self.stopping and not exchange.outcome.answered:
            return  # broken off by us: it is still a waiting visit
        now = self._clock.now()
        fault = FAULTS[exchange.outcome]
        wait_s = self._account(host, exchange, fault, now)
        visit = exchange.visit
        again = fault.retry and visit.tries + 1 < self._politeness.tries and not host.known.record.retired
        again = again and visit.purpose is Purpose.PAGE
        if again:
            self._under_way.pop(visit.key, None)
            visit.tries += 1
            visit.not_before = now + wait_s
            self._bench.add(host, visit)
        self._bench.finished(host, now, exchange.duration_s, wait_s)
        self._hosts.book_rest(host, now)
        if again:
            exchange.body.close()
        elif visit.purpose is Purpose.ROBOTS:
            self._rules.answered(exchange, now)
            self._ended(exchange)
        else:
            self._ended(exchange)
        self.pump()

    # -- what an answer costs the host -----------------------------------------------------------

    def _account(self, host: Host, exchange: Exchange, fault: Fault, now: float) -> float:
        """Seconds that `host` must rest beyond its usual delay because of this answer."""
        politeness = self._politeness
        record: HostRecord = host.known.record
        tries = exchange.visit.tries
        if not fault.costs_host:
            host.failures = 0
        elif not tries or exchange.outcome is Outcome.CONNECT_FAILED:
            host.failures += 1  # a page that fails again says nothing new of its host
        wait_s = 0.0
        if fault.wait is Wait.THROTTLE:
            asked = retry_after(exchange, now)
            doubled = politeness.throttle_delay_s * 2**tries
            wait_s = min(doubled, politeness.max_sleep_s) if asked is None else asked
        elif fault.wait is Wait.FAILURE:
            wait_s = self._sleep_s(max(host.failures, tries + 1))
        self._judge(host, exchange.outcome, exchange.detail)
        record.failures = host.failures
        record.last_seen = now
        record.pages += exchange.outcome is Outcome.OK and exchange.visit.purpose is Purpose.PAGE
        self._hosts.touch(host)
        return wait_s

    def _sleep_s(self, failures: int) -> float:
        doubled: float = self._politeness.failure_delay_s * 2 ** max(0, min(failures, 20) - 1)
        return min(doubled, self._politeness.max_sleep_s)

    def _judge(self, host: Host, outcome: Outcome, detail: str) -> None:
        if host.failures >= self._politeness.host_failures:
            host.known.record.retired = f"{host.failures} failures in a row, the last: {outcome}" + (
                f" ({detail})" if detail else ""
            )

    # -- names -----------------------------------------------------------------------------------

    def _at_address(self, host: Host, now: float) -> bool:
        """Whether the address of `host` is known; if not, the host is parked until it is."""
        if host.address is not None and host.address_expires > now:
            return True
        answer = self._rooms.resolver.cached(host.name)
        if answer is not None and answer.addresses:
            self._hosts.settle(host, answer)
            self._bench.rest(host)  # the address has its own order
            return False
        self._bench.park(host)
        task = asyncio.get_running_loop().create_task(self._name(host))
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)
        return False

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
            self._hosts.settle(host, answer)
        else:
            self._unnamed(host, answer, now)
        self._bench.unpark(host)
        self.pump()

    def _unnamed(self, host: Host, answer: Answer, now: float) -> None:
        outcome = answer.outcome
        if outcome is Outcome.DNS_FAILED:
            host.failures += 1
            self._judge(host, outcome, answer.detail)
            # Until the answer is believed no more: asked again sooner, the cache would fail, and not the name.
            self._bench.sleep_until(host, max(now + self._sleep_s(host.failures), answer.expires_at))
        else:
            self._abandon(host, outcome, answer.detail)

    def _abandon(self, host: Host, outcome: Outcome, detail: str) -> None:
        host.overflowed = host.overflowed and not host.known.record.retired
        for visit in self._bench.drain(host):
            if visit.purpose is Purpose.PAGE:
                self._end(visit, outcome, detail)
            else:
                self._rules.unmade(visit, outcome, detail, self._clock.now())
        self._bench.rest(host)

    def _set_aside(self, host: Host, blocked: Blocked, now: float) -> None:
        """A person blocked `host`: its visits wait elsewhere until that is taken back."""
        visits = self._bench.drain(host)
        blocked.put(visit for visit in visits if visit.purpose is Purpose.PAGE)
        for visit in visits:
            if visit.purpose is Purpose.ROBOTS:
                self._rules.put_off(visit, now)
        self._bench.rest(host)

    # -- the book --------------------------------------------------------------------------------

    def write_book(self) -> None:
        """Write down every host that changed."""
        self._hosts.write()

    def robots_word(self, name: str) -> str:
        """What is known of the robots.txt of a host, in a word, for the table of hosts."""
        return self._rules.word(name)

    # -- ends ------------------------------------------------------------------------------------

    def _end(self, visit: Visit, outcome: Outcome, detail: str) -> None:
        """End `visit` without a request."""
        self._under_way[visit.key] = visit
        self._ended(Exchange(visit, outcome, self._clock.now(), 0.0, detail=detail))

    async def stop(self) -> None:
        """Start nothing more, and let go of what waits for names."""
        self.stopping = True
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def abort(self) -> None:
        """Break off what is under way: it stays a waiting visit."""
        self._rooms.abort()
