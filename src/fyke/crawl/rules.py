"""How the rules of robots.txt come, are kept, and are asked.

Rules are fetched by visits of their own, which wait at their host like any other and are as polite. The
frontier's gate asks for origins it has not met (`bring`), and the fetcher for what has become stale since
(`ask`). What an answer means is decided by `fyke.hosts.robots`; it is kept in the host book, with the host at
the workbench, and told to the gate.

Invariants: of the rules of one origin, one visit at most is waiting or under way. Each answer decides about one
visit at least, however short it may be believed: else a crawl whose delays are longer than that would never end.
"""

from collections.abc import Callable, Iterable, Sequence

from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.core.urls import canonical, host_keys, split
from fyke.core.visits import Exchange, Visit, robots_visit
from fyke.crawl.known_hosts import Known, KnownHosts
from fyke.fetch import decode_body
from fyke.frontier.robots_gate import Rules
from fyke.hosts.book import HostBook
from fyke.hosts.politeness import Host, Workbench
from fyke.hosts.robots import RobotsRecord, RobotsState, redirect_of, robots_url, rules_from

MOST_SITEMAPS = 5_000  # that are taken from one robots.txt

Told = Callable[[str, Rules, float], None]  # origin, what its rules are, until when


class RulesDesk:
    """The rules of all origins whose hosts are at `bench`."""

    def __init__(
        self,
        bench: Workbench,
        hosts: KnownHosts,
        book: HostBook,
        config: Config,
        *,
        told: Told,
        sitemaps: Callable[[Sequence[str]], None],
    ) -> None:
        self._bench = bench
        self._hosts = hosts
        self._book = book
        self._politeness = config.politeness
        self._limits = config.fetch
        self._negative_s = config.dns.negative_ttl_s
        self._product = config.agent.user_agent
        self._told = told
        self._sitemaps = sitemaps if config.crawl.sitemaps else None
        self._brought: set[str] = set()  # origins that the gate asked for and that were not answered yet

    @property
    def under_way(self) -> int:
        """How many origins the gate waits for."""
        return len(self._brought)

    def of(self, host: Host, origin: str) -> RobotsRecord | None:
        """What is known of the rules of `origin`, fresh or stale."""
        known: Known = host.known
        record = known.rules.get(origin) or self._book.robots(origin)
        if record is not None and origin not in known.rules:
            self._adopt(host, record)
        return record

    def _adopt(self, host: Host, record: RobotsRecord) -> None:
        known: Known = host.known
        known.rules[record.origin] = record
        delays = (one.rules(self._product).crawl_delay_s or 0.0 for one in known.rules.values())
        host.crawl_delay_s = max(delays, default=0.0)
        known.record.crawl_delay_s = host.crawl_delay_s

    def refusal(self, record: RobotsRecord, visit: Visit) -> str:
        """The line that forbids `visit`, with its number; empty when it may be made."""
        verdict = record.rules(self._product).verdict(visit.parts.target)
        return "" if verdict.allowed else f"line {verdict.line_number}: {verdict.line_text}"

    def hand_on_sitemaps(self, host: Host, record: RobotsRecord) -> None:
        """A page of the origin of `record` is begun: now its sitemaps may be read as well.

        Handed on once for as long as `host` is at the workbench; after that, or after a crash, once more, for what was
        seen before is not visited again.
        """
        known: Known = host.known
        if self._sitemaps is None or record.origin in known.listed:
            return
        known.listed.add(record.origin)
        base = robots_url(record.origin)
        named = record.rules(self._product).sitemaps[:MOST_SITEMAPS]
        self._sitemaps([url for url in (canonical(line, base) for line in named) if url])

    # --- asking

    def bring(self, origins: Iterable[str], now: float) -> None:
        """Have the rules of `origins` fetched, or tell at once what is known of them."""
        for origin in origins:
            name = split(f"{origin}/").host
            host = self._hosts.at(host_keys(name)[0], name, now)
            record = self.of(host, origin)
            if record is not None and record.fresh(now):
                self._tell(record)
                continue
            self._brought.add(origin)
            if origin not in host.known.asking:
                self.ask(host, origin)

    def ask(self, host: Host, origin: str) -> bool:
        """Put the visit that brings the rules of `origin` first in line; False when they are on their way."""
        if origin in host.known.asking:
            self._bench.park(host)
            return False
        host.known.asking.add(origin)
        self._bench.add(host, robots_visit(robots_url(origin), origin), first=True)
        return True

    # --- answers

    def answered(self, exchange: Exchange, now: float) -> None:
        """The robots visit of `exchange` has ended: follow it, or learn the rules."""
        visit = exchange.visit
        target = redirect_of(exchange, visit.depth)
        if target is None:
            self._learn(exchange, decode_body(exchange, self._limits).content, now)
            return
        hop = robots_visit(target, visit.robots_of)
        hop.depth = visit.depth + 1
        self._bench.add(self._hosts.at(hop.host, split(target).host, now), hop, first=True)

    def unmade(self, visit: Visit, outcome: Outcome, detail: str, now: float) -> None:
        """A robots visit could not even be made: its host is gone, as those who want to visit it will find."""
        origin = visit.robots_of
        self._learn(Exchange(visit, outcome, now, 0.0, detail=detail), b"", now, tell=False)
        self._told(origin, Rules.OPEN, now + self._negative_s)

    def put_off(self, visit: Visit, now: float) -> None:
        """A robots visit is not made now, since its host is blocked; the pages of its origin may pass the gate: they
        wait where blocked hosts' do, and ask again when they come from there."""
        origin = visit.robots_of
        host = self._bench.get(host_keys(split(f"{origin}/").host)[0])
        if host is None or host.key != visit.host:  # a redirect led here: for its origin it is out of reach
            self.unmade(visit, Outcome.HOST_RETIRED, "it redirects to a blocked host", now)
            return
        self._brought.discard(origin)
        host.known.asking.discard(origin)
        self._told(origin, Rules.OPEN, now + self._negative_s)

    def _learn(self, exchange: Exchange, content: bytes, now: float, *, tell: bool = True) -> None:
        origin = exchange.visit.robots_of
        self._brought.discard(origin)
        host = self._bench.get(host_keys(split(f"{origin}/").host)[0])
        record = rules_from(
            exchange,
            content,
            now=now,
            robots_ttl_s=self._politeness.robots_ttl_s,
            previous=host.known.rules.get(origin) if host is not None else self._book.robots(origin),
            retry_s=(self._politeness.failure_delay_s, self._politeness.max_sleep_s),
        )
        self._book.save_robots(record)
        if tell:
            self._tell(record)
        if host is None:  # it left the workbench while its rules were sought elsewhere, by a redirect
            return
        host.known.asking.discard(origin)
        host.known.answered.add(origin)
        host.known.listed.discard(origin)
        self._adopt(host, record)
        self._bench.sleep_until(host, now + host.crawl_delay_s)  # it asks for a rest after this very request
        self._hosts.book_rest(host, now)
        if host.parked:
            self._bench.unpark(host)

    def _tell(self, record: RobotsRecord) -> None:
        """Say at the gate what may pass. What was in vain too often passes: the fetcher ends it."""
        rules = Rules.OPEN
        if record.state is RobotsState.DISALLOW_ALL and record.failures < self._politeness.host_failures:
            rules = Rules.UNREACHABLE
        elif record.state is RobotsState.RULES and record.rules(self._product).closed:
            rules = Rules.CLOSED
        self._told(record.origin, rules, record.expires_at)

    def word(self, name: str) -> str:
        """What is known of the robots.txt of a host, in a word, for the table of hosts."""
        for scheme in ("https", "http"):
            known = self._book.robots(split(f"{scheme}://{name}/").origin)
            if known is not None:
                return known.state.value
        return ""
