"""A host, as the fetcher has it: one record of its rest, its rules, its failures, its addresses.

`HostDesk` makes one when the first visit to a host comes, or reads it from the host book; the `Workbench` holds it
while it has visits or rests; the `RulesDesk` keeps the rules of its origins with it. An `Address` is the server that
hosts share.

Invariant: `ROW` names what outlives the process, and nothing else does.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf

from fyke.core.urls import has_own_port
from fyke.core.visits import Visit
from fyke.fetcher.robots import RobotsRecord

MOST_ANSWERING = 8  # origins of a host that are remembered to answer


@dataclass(slots=True, eq=False)
class Address:
    """A server's address: one request at a time, and a rest after each."""

    text: str
    due: float = 0.0
    busy: bool = False
    hosts: int = 0
    waiting: deque["Host"] = field(default_factory=deque)
    members: dict[int, int] = field(default_factory=dict)  # hosts of each domain
    budgets: dict[int, int] = field(default_factory=dict)  # of each domain
    budget_total: int = 0

    @property
    def mean_budget(self) -> float:
        """Of the domains whose hosts are at the workbench; 0 when there are none."""
        return self.budget_total / len(self.budgets) if self.budgets else 0.0


@dataclass(slots=True)
class OriginRules:
    """The rules of one origin of a host (scheme, host and port), and what is done about them."""

    robots: RobotsRecord | None = None  # fresh or stale
    on_the_way: bool = False  # to be fetched, being fetched, or read
    in_line: bool = False  # the visit that is to fetch them waits at the host
    unused: bool = False  # they came, and no visit was decided by them yet
    sitemaps_taken: bool = False
    delay_s: float = 0.0  # their Crawl-delay, also when they are in memory no more
    failures: int = 0  # of its pages, in a row, while another origin of the host answered


@dataclass(slots=True, eq=False)
class RulesCheck:
    """Whether the rules fetched at `fetched_at` (unix seconds) forbid the visit with `key`."""

    key: int
    fetched_at: float
    line: str | None = None  # that forbids it; empty when none does, None until that is known


@dataclass(slots=True, eq=False)
class Host:
    """A host with work, or whose rest is not over yet; times are unix seconds, zero for never."""

    # What outlives the process: see `ROW`.
    key: int
    name: str
    domain: str = ""
    addresses: tuple[str, ...] = ()
    addresses_until: float = 0.0  # when the DNS answer expires
    due: float = 0.0  # no request sooner: its usual rest, Retry-After, sleep after failures
    failures: int = 0  # in a row
    retired: str = ""  # why the host was given up; empty while it is not
    pages: int = 0  # fetched so far
    first_seen: float = 0.0
    last_seen: float = 0.0
    crawl_delay_s: float | None = None  # of robots.txt; None: not asked yet
    trouble: str = ""  # what became of its last request, where that is why it rests
    answering: tuple[str, ...] = ()  # origins that answered when they were last asked, those met last first
    vain: int = 0  # failures of others beside them, at ports that are not their schemes' own, since one came back

    # What is of this process alone.
    closed_until: float = 0.0  # when the hours of the day in which it may be asked begin; past: they are on
    visits: deque[Visit] = field(default_factory=deque)
    gives_way_until: float = 0.0  # while visits wait to origins that answer, others are not made before
    busy: bool = False  # a request is under way
    parked: bool = False  # waits for its name or its rules
    queued: bool = False  # in the heap, or in line at its address
    quick: bool = False  # its last page was not slow, nor its robots.txt since
    broke: bool = False  # the connection that was kept for its last request did
    request: Visit | None = None  # under way
    led: bool = False  # its last request was for rules that led here: now what is its own goes first
    domain_key: int = 0
    budget: int = 0  # of its domain, as its latest visit said; 0: the default
    address: Address | None = None  # where it is asked
    look_up_at: float = inf  # when its name is worth looking up again, ahead of `addresses_until`
    origins: dict[str, OriginRules] = field(default_factory=dict)
    check: RulesCheck | None = None  # the last that was not answered at once

    @property
    def rests_until(self) -> float:
        """No request sooner: `due`, or when its hours begin."""
        return max(self.due, self.closed_until)

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether it waits for nothing, and nothing for it."""
        is_wanted = self.visits or self.busy or self.parked or self.queued
        return not is_wanted and not any(known.on_the_way for known in self.origins.values())

    @property
    def never_answered(self) -> bool:
        """Whether nothing ever came of it, as far as is remembered."""
        return not (self.answering or self.pages)

    @property
    def failed(self) -> int:
        """How often in a row it failed; where it never answered, at whatever port."""
        return max(self.failures, self.vain) if self.never_answered else self.failures

    def answers_beside(self, origin: str) -> bool:
        """Whether another origin of this host than `origin` answered when it was last asked."""
        return any(other != origin for other in self.answering)

    def gives_way(self, visit: Visit, now: float) -> bool:
        """Whether other visits go before `visit`. While no origin of the host is known to answer, those at their
        schemes' own ports do; else those to origins that answer, until `gives_way_until`."""
        if not self.answering:
            return not has_own_port(visit.parts)
        return now < self.gives_way_until and (visit.robots_of or visit.parts.origin) not in self.answering

    def heard(self, origin: str, *, answered: bool) -> None:
        """A request to `origin` was `answered`, or failed."""
        if answered != (origin in self.answering):
            others = tuple(other for other in self.answering if other != origin)
            self.answering = (origin, *others)[:MOST_ANSWERING] if answered else others

    def rules_of(self, origin: str) -> OriginRules:
        """What is known of the rules of `origin`, which is one of this host's."""
        known = self.origins.get(origin)
        if known is None:
            known = self.origins[origin] = OriginRules()
        return known


# What the host book keeps of a host, in the order of its columns.
ROW = (
    "key", "name", "domain", "addresses", "addresses_until", "due", "failures", "retired", "pages", "first_seen",
    "last_seen", "crawl_delay_s", "trouble", "answering", "vain",
)  # fmt: skip
