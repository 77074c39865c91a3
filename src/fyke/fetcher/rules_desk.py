"""How the rules of robots.txt are fetched, kept and asked.

Visits of their own fetch the rules. They wait at their host like any other and are as polite. The frontier's gate asks
for origins it has not met (`bring`), and the fetcher for stale rules (`fetch`). `fyke.fetcher.robots` decides what an
answer means. The record is kept in the host book and with the host at the workbench, and handed on to the gate.

A server may send rules that are long to unfold or to read, or hard to ask. The loop does all three in slices. An
ordinary robots.txt is read, and asked, before the call returns; otherwise the host is parked until that is done.

A redirect may lead to any host, and strangers may lead thousands of visits to the same one. Visits that the host comes
to soon wait there. The origins of the others are asked again later. An answer serves all that are led to its URL. If a
redirect asks to wait, its target is not asked sooner, whichever host that is at.

Invariants: for each origin at most one rules visit waits or is under way. Rules kept with a host have been read. Each
answer decides about at least one visit, however soon it expires: otherwise a crawl whose delays are longer than answers
last would never end.
"""

from dataclasses import replace

from fyke.core.clock import Clock
from fyke.core.config import Config
from fyke.core.messages import Rules
from fyke.core.outcomes import Outcome
from fyke.core.rests import SOON_S, soon_visits
from fyke.core.slices import Slicer, Slices
from fyke.core.urls import canonical, host_keys, robots_url, split
from fyke.core.visits import Exchange, Visit, robots_visit
from fyke.fetcher.book import HostBook
from fyke.fetcher.faults import retry_after
from fyke.fetcher.host import Host, RulesCheck
from fyke.fetcher.host_desk import HostDesk
from fyke.fetcher.long_rules import LongRules
from fyke.fetcher.robots import MAX_CRAWL_DELAY_S, RobotsRecord, RobotsState, redirect_of, rules_from
from fyke.fetcher.robots_lines import MAX_BYTES
from fyke.fetcher.robots_redirects import RobotsRedirects
from fyke.fetcher.robots_rules import Verdict
from fyke.fetcher.unfolding import Unfolding
from fyke.fetcher.workbench import Workbench

_TOO_MANY = "it takes long to unfold, and too many others do so too"
_LED_TOO_LATE = "it redirects to a host that rests, or that too many others redirect to"
_ASKS_TOO_LONG = "it redirects and asks to wait too long, or too many others do"
MOST_LED = 256  # robots visits that redirects led to one host and that wait there
MOST_SITEMAPS = 5_000  # taken from one robots.txt


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
        """`shared`: other agents may ask hosts of this crawl, so a redirect to another host is an errand."""
        self._bench = bench
        self._hosts = hosts
        self._book = book
        self._politeness = config.politeness
        self._clock = clock
        self._slicer = slicer
        self._long = LongRules(book, slicer, config.agent.user_agent)
        self._unfolding = Unfolding(slicer, MAX_BYTES + 1)  # more is not read
        self._negative_s = config.dns.negative_ttl_s
        self._product = config.agent.user_agent
        self._read_sitemaps = config.crawl.sitemaps
        self.learned: list[tuple[str, Rules, float]] = []  # news for the frontier, until it is taken
        self.sitemaps: list[str] = []  # the same
        self.slowed: list[Host] = []  # hosts whose new rules may ask for a longer rest, until taken
        self.errands: list[Visit] = []  # visits to other hosts that bring rules of ours, until taken
        self.answers: list[Exchange] = []  # results of other agents' errands, until taken
        self._shared = shared
        self.redirects = RobotsRedirects()  # `go_on` has something to do when their next is due
        self._brought: set[str] = set()  # origins that the gate asked for, not answered yet

    @property
    def waits(self) -> bool:
        """True if something waits to be taken, or for its time."""
        return bool(self.learned or self.sitemaps or self.errands or self.answers or self.redirects.next_due)

    @property
    def under_way(self) -> int:
        """Number of origins that the gate waits for."""
        return len(self._brought)

    def of(self, host: Host, origin: str) -> RobotsRecord | None:
        """Return the robots.txt of `origin`, fresh or stale; None if the book has none, or if it is being read."""
        known = host.rules_of(origin)
        if known.robots is None and not known.on_the_way:
            record = self._book.robots(origin)
            if record is not None:
                known.on_the_way = True
                self._long.read(record, self._take_from_book)
        self._long.used(origin)
        return known.robots

    def _take_from_book(self, record: RobotsRecord) -> None:
        """Take in a record out of the book, which is now read."""
        self._adopt(record)
        if record.origin in self._brought:
            self._brought.discard(record.origin)
            self.bring(record.origin, self._clock.now())

    def _adopt(self, record: RobotsRecord) -> Host | None:
        """Keep `record`, which is read, with its host, and return the host; None if it is no longer at the
        workbench."""
        host = self._host_of(record.origin)
        if host is None:
            return None
        known = host.rules_of(record.origin)
        known.on_the_way = known.in_line = False
        known.robots = record
        if not record.failures:  # otherwise the Crawl-delay that was known goes on
            known.delay_s = record.rules(self._product).crawl_delay_s or 0.0
            host.crawl_delay_s = min(max(one.delay_s for one in host.origins.values()), MAX_CRAWL_DELAY_S)
        self._long.keep(known, record)
        # If the host slept meanwhile, the book alone has its rules, and no visit was decided by them yet.
        known.unused |= record.state is RobotsState.RULES and host.last_seen <= record.fetched_at
        if host.parked:
            self._bench.unpark(host)
        return host

    def _host_of(self, origin: str) -> Host | None:
        return self._bench.get(host_keys(split(f"{origin}/").host)[0])

    def _own_host(self, visit: Visit) -> Host | None:
        """Return the host of a robots visit, or None if a redirect led the visit to another host."""
        host = self._host_of(visit.robots_of)
        return None if visit.errand or host is None or host.key != visit.host else host

    def refusal(self, host: Host, record: RobotsRecord, visit: Visit) -> str | None:
        """Return the line that forbids `visit`, with its number; empty if the visit may be made. Returns None if that
        takes longer: ask again when the slicer has resumed."""
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
        """Take the sitemaps of `record`, because a page of its origin is begun.

        They are taken once for each answer while `host` is at the workbench. They may be taken again later or after a
        crash, because URLs seen before are not visited again.
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
        if host.retired:  # the fetcher will end each of its visits
            self._open(origin, host, now)
            self._bench.leave(host, now)
            return
        closed = self._bench.apply_hours(host, now)
        if host.rests_until - now > SOON_S:
            self._hold_back(origin, host.rests_until, closed=closed)
            self._bench.leave(host, now)
            return
        self._brought.add(origin)
        if not host.rules_of(origin).on_the_way:
            self.fetch(host, origin)

    def fetch(self, host: Host, origin: str) -> bool:
        """Put a visit that brings the rules of `origin` first in line and return True, also if one waits already. If
        the rules are on their way, park `host` and return False."""
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
        """Note that a robots visit, to `host` or led elsewhere, no longer waits."""
        if host is not None and visit.robots_of in host.origins:
            host.origins[visit.robots_of].in_line = False

    # -- what they bring -------------------------------------------------------------------------

    def fetched(self, exchange: Exchange, now: float, least_failures: int = 1) -> None:
        """End the robots visit of `exchange`: follow its redirect, or learn the rules. A failure counts as at least the
        `least_failures`th in a row."""
        visit = exchange.visit
        if visit.errand:
            self.answers.append(exchange)
            return
        target = redirect_of(exchange, visit.depth)
        if target is None:
            if not self._unfolding.read(exchange, lambda of, content: self._learn(of, content, now, least_failures)):
                self._learn(replace(exchange, outcome=Outcome.THROTTLED, detail=_TOO_MANY), b"", now)
            return
        wait_s = retry_after(exchange, now)
        hop = robots_visit(target, visit.robots_of, visit.depth + 1)
        if not wait_s:
            self.redirects.note_redirect(visit, target, now)
            self._go(hop, now)
        elif wait_s <= SOON_S and self.redirects.delay(hop, now + wait_s):
            self._brought.discard(visit.robots_of)  # others may be asked meanwhile
        else:
            self._learn(replace(exchange, outcome=Outcome.THROTTLED, detail=_ASKS_TOO_LONG), b"", now)

    def go_on(self, now: float) -> None:
        """Make the visits whose redirects asked to wait until now."""
        for hop in self.redirects.take_due(now):
            self._go(hop, now)

    def _go(self, hop: Visit, now: float) -> None:
        """Have `hop`, to which a redirect led, made here or by another agent."""
        if not self.answer(hop, now):
            if self._shared and hop.host != host_keys(split(f"{hop.robots_of}/").host)[0]:
                self.errands.append(hop)
            else:
                self.follow(hop, now)

    def answer(self, visit: Visit, now: float) -> bool:
        """End a robots visit that is led to a URL which answered another such visit lately, or return False."""
        answer = self.redirects.answer(visit, now)
        if isinstance(answer, RobotsRecord):
            self._keep(answer, now)
        elif answer is not None:
            self._go(robots_visit(answer, visit.robots_of, visit.depth + 1), now)
        return answer is not None

    def follow(self, hop: Visit, now: float) -> None:
        """Let `hop`, to which a redirect led, wait at its host, if that comes to it soon."""
        host = self._hosts.host(hop.parts.host, now)
        rest_s = max(host.rests_until - now, self._bench.delays.of_host(host, 0.0))
        if sum(visit.led for visit in host.visits) < soon_visits(rest_s, MOST_LED):
            self._bench.add(host, hop, first=True)
        else:
            self._fail_led_too_late(hop, host.rests_until, now)
            self._bench.leave(host, now)

    def _fail_led_too_late(self, visit: Visit, until: float, now: float) -> None:
        """Fail `visit`, to which a redirect led, because its host rests until `until`. If only other visits are in the
        way, its origin is asked again later, and is never given up for that."""
        exchange = Exchange(visit, Outcome.THROTTLED, now, 0.0, detail=_LED_TOO_LATE)
        if visit.errand:
            self.answers.append(exchange)
        else:
            self._learn(exchange, b"", now, spared=until - now <= SOON_S)

    def unmade(self, visit: Visit, outcome: Outcome, detail: str, now: float) -> None:
        """End a robots visit that could not be made, because its host is gone. The gate opens, so that the origin's
        pages find that out."""
        if visit.errand:
            self.answers.append(Exchange(visit, outcome, now, 0.0, detail=detail))
            return
        origin, host = visit.robots_of, self._own_host(visit)
        self.begun(self._host_of(origin), visit)
        self._learn(Exchange(visit, outcome, now, 0.0, detail=detail), b"", now, hand_on=False)
        self._open(origin, host, now)

    def lost(self, host: Host, exchange: Exchange, now: float, least_failures: int) -> None:
        """Treat a page's failure, which is the fault of its origin and not of `host`, as a failure of the origin's
        robots.txt: at least the `least_failures`th."""
        origin = exchange.visit.parts.origin
        if not host.rules_of(origin).on_the_way:  # otherwise its robots.txt is being asked for anyway
            visit = robots_visit(robots_url(origin), origin)
            self._learn(Exchange(visit, exchange.outcome, now, 0.0, detail=exchange.detail), b"", now, least_failures)

    def rest_until(self, visit: Visit, until: float, now: float) -> None:
        """Put a robots visit off until its host has rested (`until`); its origin is asked again then. If a redirect led
        the visit to this host, it has failed: the origin that sent it does not wait."""
        host = self._own_host(visit)
        if host is None:  # a redirect led here
            self._fail_led_too_late(visit, until, now)
            return
        self._not_made(host, visit)
        if host.addresses or host.closed_until > now:
            self._hold_back(visit.robots_of, until, closed=host.closed_until > now)
        else:
            self.learned.append((visit.robots_of, Rules.UNNAMED, until))

    def _hold_back(self, origin: str, until: float, *, closed: bool) -> None:
        """Ask nothing of `origin` before `until`. If the hours of the day are the reason (`closed`), its pages pass the
        gate and sleep: hours may change, and sleeping pages can be roused."""
        self.learned.append((origin, Rules.OPEN if closed else Rules.UNREACHABLE, until))

    def _open(self, origin: str, host: Host | None, now: float) -> None:
        """Let the pages of `origin` pass the gate for a while: the fetcher will end them, or ask for rules again. If
        `host` has no address, they pass as slowly as such names are looked up."""
        rules = Rules.OPEN if host is None or host.addresses else Rules.NAMELESS
        self.learned.append((origin, rules, now + self._negative_s))

    def put_off(self, visit: Visit, now: float) -> None:
        """Give up a robots visit for now, because its host is blocked or belongs to another agent. The pages of its
        origin may pass the gate: they wait with those of blocked hosts, and ask for rules again when they return."""
        host = self._own_host(visit)
        if host is None:  # a redirect led here: its robots.txt is out of reach
            self.unmade(visit, Outcome.HOST_RETIRED, "it redirects to a host that is not asked here", now)
            return
        self._not_made(host, visit)
        self._open(visit.robots_of, None, now)

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
        """Learn the rules from `exchange`. A `spared` failure never gives the origin up."""
        origin = exchange.visit.robots_of
        host = self._host_of(origin)
        previous = host.rules_of(origin).robots if host is not None else self._book.robots(origin)
        retry_s = self._politeness.failure_delay_s, self._politeness.max_sleep_s
        record = rules_from(
            exchange, content, now=now, previous=previous, least_failures=least_failures, retry_s=retry_s
        )
        if spared:
            record.failures = min(record.failures, self._politeness.host_failures - 1)
        self.redirects.note(exchange.visit, record)
        self._keep(record, now, hand_on=hand_on)

    def _keep(self, record: RobotsRecord, now: float, *, hand_on: bool = True) -> None:
        """Keep a `record` that came now, and have it read."""
        self._book.save_robots(record)
        host = self._host_of(record.origin)
        if host is not None:
            previous = host.rules_of(record.origin).robots
            if previous is not None and previous.failures and not record.failures:
                host.port_failures = 0  # an origin came back
            self._bench.park(host)  # the rules may ask for a longer rest
        self._long.read(record, lambda read: self._learned(read, now, hand_on=hand_on))

    def _not_made(self, host: Host, visit: Visit) -> None:
        self._brought.discard(visit.robots_of)
        known = host.rules_of(visit.robots_of)
        known.on_the_way = known.in_line = False

    def _learned(self, record: RobotsRecord, now: float, *, hand_on: bool) -> None:
        """Take in the rules that a server sent before `now`, which are read."""
        self._brought.discard(record.origin)
        if hand_on:
            self._hand_on(record)
        host = self._adopt(record)
        if host is not None:  # otherwise the workbench forgot it while a redirect led to its rules
            known = host.rules_of(record.origin)
            known.unused, known.sitemaps_taken = True, False
            self._bench.sleep_until(host, now + (host.crawl_delay_s or 0.0))  # it asks for a rest after this request
            self._hosts.note_delay(host)
            self._hosts.note_rest(host, now)
            self.slowed.append(host)

    def _hand_on(self, record: RobotsRecord) -> None:
        """Tell the gate what may pass. An origin that failed too often passes, and the fetcher ends its visits."""
        rules = Rules.OPEN
        if record.state is RobotsState.DISALLOW_ALL and record.failures < self._politeness.host_failures:
            rules = Rules.UNREACHABLE
        elif record.state is RobotsState.RULES and record.rules(self._product).closed:
            rules = Rules.CLOSED
        self.learned.append((record.origin, rules, record.expires_at))
