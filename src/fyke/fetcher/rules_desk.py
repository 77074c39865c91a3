"""How the rules of robots.txt come, are kept, and are asked.

Rules are fetched by visits of their own, which wait at their host like any other and are as polite. The
frontier's gate asks for origins it has not met (`bring`), and the fetcher for what has become stale since
(`fetch`). What an answer means is decided by `fyke.fetcher.robots`; it is kept in the host book, with the host at
the workbench, and handed on to the gate.

A server may send rules that are long to unfold or to read, or hard to ask. All three are work for the loop in slices:
an ordinary robots.txt is read, and asked, before the call returns; else the host is parked until that is done.

A redirect may lead to any host, and strangers by the thousand to the same: what it comes to soon waits there, and the
origins of the others are asked again later.

Invariants: of the rules of one origin, one visit at most is waiting or under way. Rules with a host are read. Each
answer decides about one visit at least, however short it may be believed: else a crawl whose delays are longer than
that would never end.
"""

from dataclasses import replace

from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.messages import SOON_S, Rules, soon_visits
from fyke.core.outcomes import Outcome
from fyke.core.slices import Slicer, Slices
from fyke.core.urls import canonical, host_keys, robots_url, split
from fyke.core.visits import Exchange, Visit, robots_visit
from fyke.fetcher.book import HostBook
from fyke.fetcher.host import Host, RulesCheck
from fyke.fetcher.host_desk import HostDesk
from fyke.fetcher.long_rules import LongRules
from fyke.fetcher.robots import MAX_CRAWL_DELAY_S, RobotsRecord, RobotsState, redirect_of, rules_from
from fyke.fetcher.robots_lines import MAX_BYTES
from fyke.fetcher.robots_rules import Verdict
from fyke.fetcher.unfolding import Unfolding
from fyke.fetcher.workbench import Workbench

_TOO_MANY = "it takes long to unfold, and so do those of too many others"
_LED_TOO_LATE = "it redirects to a host that rests, or to which too many do"
MOST_LED = 256  # robots visits that redirects led to one host and that wait there
MOST_SITEMAPS = 5_000  # that are taken from one robots.txt


class RulesDesk:
    """The rules of all origins whose hosts are at `bench`."""

    def __init__(
        self,
        bench: Workbench,
        hosts: HostDesk,
        book: HostBook,
        config: Config,
        clock: Clock,
        slicer: Slicer,
        *,
        shared: bool,
    ) -> None:
        """`shared`: hosts may be others' to ask; where a redirect leads to another host, that is an errand."""
        self._bench = bench
        self._hosts = hosts
        self._book = book
        self._politeness = config.politeness
        self._clock = clock
        self._slicer = slicer
        self._long = LongRules(book, slicer, config.agent.user_agent)
        self._unfolding = Unfolding(slicer, min(config.fetch.max_body_bytes, MAX_BYTES + 1))  # more is not read
        self._negative_s = config.dns.negative_ttl_s
        self._product = config.agent.user_agent
        self._read_sitemaps = config.crawl.sitemaps
        self.learned: list[tuple[str, Rules, float]] = []  # what the frontier is to know, since it was taken
        self.sitemaps: list[str] = []  # the same
        self.slowed: list[Host] = []  # hosts whose rules came, which may ask for a longer rest, until they are taken
        self.errands: list[Visit] = []  # visits to other hosts that bring the rules of ours, the same
        self.answers: list[Exchange] = []  # what came of errands of others, the same
        self._shared = shared
        self._brought: set[str] = set()  # origins that the gate asked for and that were not answered yet

    @property
    def has_news(self) -> bool:
        """Whether something came that nobody has taken yet."""
        return bool(self.learned or self.sitemaps or self.errands or self.answers)

    @property
    def under_way(self) -> int:
        """How many origins the gate waits for."""
        return len(self._brought)

    def of(self, host: Host, origin: str) -> RobotsRecord | None:
        """The robots.txt of `origin`, fresh or stale; None where there is none in the book, or it is being read."""
        known = host.rules_of(origin)
        if known.robots is None and not known.on_the_way:
            record = self._book.robots(origin)
            if record is not None:
                known.on_the_way = True
                self._long.read(record, self._recalled)
        self._long.used(origin)
        return known.robots

    def _recalled(self, record: RobotsRecord) -> None:
        """A record out of the book is read."""
        self._adopt(record)
        if record.origin in self._brought:
            self._brought.discard(record.origin)
            self.bring(record.origin, self._clock.now())

    def _adopt(self, record: RobotsRecord) -> Host | None:
        """Keep `record`, which is read, with its host, if that is at the workbench still."""
        host = self._host_of(record.origin)
        if host is None:
            return None
        known = host.rules_of(record.origin)
        known.on_the_way = known.in_line = False
        known.robots, known.delay_s = record, record.rules(self._product).crawl_delay_s or 0.0
        self._long.keep(known, record)
        # Of a host that slept meanwhile only the book is left: its rules came, and no visit was decided by them yet.
        known.unused |= record.state is RobotsState.RULES and host.last_seen <= record.fetched_at
        host.crawl_delay_s = min(max(one.delay_s for one in host.origins.values()), MAX_CRAWL_DELAY_S)
        if host.parked:
            self._bench.unpark(host)
        return host

    def _host_of(self, origin: str) -> Host | None:
        return self._bench.get(host_keys(split(f"{origin}/").host)[0])

    def _own_host(self, visit: Visit) -> Host | None:
        """The host of a robots visit, where that is its origin's; None for one that a redirect led here."""
        host = self._host_of(visit.robots_of)
        return None if visit.errand or host is None or host.key != visit.host else host

    def refusal(self, host: Host, record: RobotsRecord, visit: Visit) -> str | None:
        """The line that forbids `visit`, with its number; empty when it may be made; None when that takes longer:
        ask again when the slicer has resumed."""
        check = host.check
        if check is not None and check.line is None:
            return None  # one at a time
        if check is None or check.key != visit.key or check.fetched_at != record.fetched_at:
            check = self._begin_check(host, record, visit)
        if check.line is not None:
            host.check = None
        return check.line

    def _begin_check(self, host: Host, record: RobotsRecord, visit: Visit) -> RulesCheck:
        check = host.check = RulesCheck(visit.key, record.fetched_at)
        self._slicer.run(self._judging(record, visit), lambda verdict: self._judged(host, check, verdict))
        return check

    def _judging(self, record: RobotsRecord, visit: Visit) -> Slices[Verdict]:
        rules = yield from record.reading(self._product)
        return (yield from rules.judging(visit.parts.target))

    def _judged(self, host: Host, check: RulesCheck, verdict: Verdict) -> None:
        if host.check is check:
            check.line = "" if verdict.allowed else f"line {verdict.line_number}: {verdict.line_text}"
            if host.parked:
                self._bench.unpark(host)

    def take_sitemaps(self, host: Host, record: RobotsRecord) -> None:
        """A page of the origin of `record` is begun: now its sitemaps may be read as well.

        Taken once for as long as `host` is at the workbench; after that, or after a crash, once more, for what was
        seen before is not visited again.
        """
        known = host.rules_of(record.origin)
        if not self._read_sitemaps or known.sitemaps_taken:
            return
        known.sitemaps_taken = True
        named = record.rules(self._product).sitemaps[:MOST_SITEMAPS]
        if named:
            base = robots_url(record.origin)
            self.sitemaps += [url for url in (canonical(line, base) for line in named) if url]

    # -- visits that bring rules ---------------------------------------------------------------

    def bring(self, origin: str, now: float) -> None:
        """Have the rules of `origin` fetched for the gate, or hand on at once what is known of them."""
        host = self._hosts.host(split(f"{origin}/").host, now)
        record = self.of(host, origin)
        if record is not None and record.fresh(now):
            self._hand_on(record)
            return
        if host.retired:  # as the fetcher tells each of its visits
            self.learned.append((origin, Rules.OPEN, now + self._negative_s))
            self._bench.leave(host, now)
            return
        closed = self._bench.close(host, now)
        if host.rests_until - now > SOON_S:
            self._hold_back(origin, host.rests_until, closed=closed)
            self._bench.leave(host, now)
            return
        self._brought.add(origin)
        if not host.rules_of(origin).on_the_way:
            self.fetch(host, origin)

    def fetch(self, host: Host, origin: str) -> bool:
        """Put the visit that brings the rules of `origin` first in line, if it does not wait there; False, and `host`
        parked, when they are on their way."""
        known = host.rules_of(origin)
        if known.in_line:
            return True
        if known.on_the_way:
            self._bench.park(host)
            return False
        known.on_the_way = known.in_line = True
        self._bench.add(host, robots_visit(robots_url(origin), origin), first=True)
        return True

    def begun(self, host: Host | None, visit: Visit) -> None:
        """A robots visit, to `host` or led there, waits no more."""
        if host is not None and visit.robots_of in host.origins:
            host.origins[visit.robots_of].in_line = False

    # -- what they bring -------------------------------------------------------------------------

    def fetched(self, exchange: Exchange, now: float, least_failures: int = 1) -> None:
        """The robots visit of `exchange` has ended: follow its redirect, or learn the rules. If it failed, it counts as
        at least the `least_failures`th failure in a row."""
        visit = exchange.visit
        if visit.errand:
            self.answers.append(exchange)
            return
        target = redirect_of(exchange, visit.depth)
        if target is None:
            if not self._unfolding.read(exchange, lambda of, content: self._learn(of, content, now, least_failures)):
                self._learn(replace(exchange, outcome=Outcome.THROTTLED, detail=_TOO_MANY), b"", now)
            return
        hop = robots_visit(target, visit.robots_of)
        hop.depth = visit.depth + 1
        if self._shared and hop.host != visit.host:
            self.errands.append(hop)
            return
        self.lead(hop, now)

    def lead(self, hop: Visit, now: float) -> None:
        """Have `hop`, to which a redirect led, wait at its host, if that comes to it soon."""
        host = self._hosts.host(hop.parts.host, now)
        rest_s = max(host.rests_until - now, self._bench.delay_s(host, 0.0))
        if sum(visit.led for visit in host.visits) < soon_visits(rest_s, MOST_LED):
            self._bench.add(host, hop, first=True)
        else:
            self._led_too_late(hop, host.rests_until, now)
            self._bench.leave(host, now)

    def _led_too_late(self, visit: Visit, until: float, now: float) -> None:
        """The host to which a redirect led, which rests until then, does not come to `visit` soon. Where others alone
        are in the way, nothing is wrong with its origin: it is asked again later, and never given up for that."""
        exchange = Exchange(visit, Outcome.THROTTLED, now, 0.0, detail=_LED_TOO_LATE)
        if visit.errand:
            self.answers.append(exchange)
        else:
            self._learn(exchange, b"", now, spared=until - now <= SOON_S)

    def unmade(self, visit: Visit, outcome: Outcome, detail: str, now: float) -> None:
        """A robots visit could not even be made: its host is gone, as those who want to visit it will find."""
        if visit.errand:
            self.answers.append(Exchange(visit, outcome, now, 0.0, detail=detail))
            return
        origin = visit.robots_of
        self.begun(self._host_of(origin), visit)
        self._learn(Exchange(visit, outcome, now, 0.0, detail=detail), b"", now, hand_on=False)
        self.learned.append((origin, Rules.OPEN, now + self._negative_s))

    def lost(self, host: Host, exchange: Exchange, now: float, least_failures: int) -> None:
        """A page of one origin of `host` failed while other origins answer. The origin is treated as if its robots.txt
        had failed, `least_failures` times at least."""
        origin = exchange.visit.parts.origin
        if not host.rules_of(origin).on_the_way:  # else its robots.txt is being asked for anyway
            visit = robots_visit(robots_url(origin), origin)
            self._learn(Exchange(visit, exchange.outcome, now, 0.0, detail=exchange.detail), b"", now, least_failures)

    def rest_until(self, visit: Visit, until: float, now: float) -> None:
        """A robots visit is not made before `until`, since its host rests. Its origin is asked again then. An origin of
        another host, whose robots.txt redirects there, does not wait for that: its visit has failed."""
        host = self._own_host(visit)
        if host is None:  # a redirect led here
            self._led_too_late(visit, until, now)
            return
        self._not_made(host, visit)
        self._hold_back(visit.robots_of, until, closed=host.closed_until > now)

    def _hold_back(self, origin: str, until: float, *, closed: bool) -> None:
        """Nothing is asked of `origin` before `until`. Where that is since it is `closed` by the hours of the day, its
        pages pass the gate and sleep: hours may change, and what sleeps can be roused."""
        self.learned.append((origin, Rules.OPEN if closed else Rules.UNREACHABLE, until))

    def put_off(self, visit: Visit, now: float) -> None:
        """A robots visit is not made now, since its host is blocked; the pages of its origin may pass the gate: they
        wait where blocked hosts' do, and ask again when they come from there."""
        host = self._own_host(visit)
        if host is None:  # a redirect led here: its robots.txt is out of reach
            self.unmade(visit, Outcome.HOST_RETIRED, "it redirects to a blocked host", now)
            return
        self._not_made(host, visit)
        self.learned.append((visit.robots_of, Rules.OPEN, now + self._negative_s))

    def _learn(
        self,
        exchange: Exchange,
        content: bytes,
        now: float,
        least_failures: int = 1,
        *,
        hand_on: bool = True,
        spared: bool = False,
    ) -> None:
        """`spared`: though this was in vain, it never was too often."""
        origin = exchange.visit.robots_of
        host = self._host_of(origin)
        previous = host.rules_of(origin).robots if host is not None else self._book.robots(origin)
        record = rules_from(
            exchange,
            content,
            now=now,
            previous=previous,
            least_failures=least_failures,
            retry_s=(self._politeness.failure_delay_s, self._politeness.max_sleep_s),
        )
        if spared:
            record.failures = min(record.failures, self._politeness.host_failures - 1)
        self._book.save_robots(record)
        if host is not None:
            if previous is not None and previous.failures and not record.failures:
                host.vain = 0  # an origin came back
            self._bench.park(host)  # it may ask for a longer rest
        self._long.read(record, lambda read: self._learned(read, now, hand_on=hand_on))

    def _not_made(self, host: Host, visit: Visit) -> None:
        self._brought.discard(visit.robots_of)
        known = host.rules_of(visit.robots_of)
        known.on_the_way = known.in_line = False

    def _learned(self, record: RobotsRecord, now: float, *, hand_on: bool) -> None:
        """The rules that a server sent before `now` are read."""
        self._brought.discard(record.origin)
        if hand_on:
            self._hand_on(record)
        host = self._adopt(record)
        if host is not None:  # else the workbench forgot it while a redirect led to its rules
            known = host.rules_of(record.origin)
            known.unused, known.sitemaps_taken = True, False
            self._bench.sleep_until(host, now + (host.crawl_delay_s or 0.0))  # it asks for a rest after this request
            self._hosts.note_rest(host, now)
            self.slowed.append(host)

    def _hand_on(self, record: RobotsRecord) -> None:
        """Have the gate know what may pass. What was in vain too often passes: the fetcher ends it."""
        rules = Rules.OPEN
        if record.state is RobotsState.DISALLOW_ALL and record.failures < self._politeness.host_failures:
            rules = Rules.UNREACHABLE
        elif record.state is RobotsState.RULES and record.rules(self._product).closed:
            rules = Rules.CLOSED
        self.learned.append((record.origin, rules, record.expires_at))

    def state_of(self, name: str) -> str:
        """The state of the robots.txt of the host `name` (https, else http); empty when none was asked for."""
        for scheme in ("https", "http"):
            record = self._book.robots(split(f"{scheme}://{name}/").origin)
            if record is not None:
                return record.state.value
        return ""
