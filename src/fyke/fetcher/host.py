"""A host, as the fetcher has it: one record of its rest, its rules, its failures, its addresses.

`HostDesk` makes the record when the first visit to a host comes, or reads it from the host book. The `Workbench` holds
it while it has visits or rests. The `RulesDesk` keeps the rules of its origins with it. An `Address` is the server that
hosts share.

Invariant: exactly the fields in `ROW` outlive the process.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf

from fyke.core.urls import has_default_port
from fyke.core.visits import Visit
from fyke.fetcher.robots import RobotsRecord
from fyke.fetcher.turns import AddressTurns

MOST_ANSWERING = 8  # answering origins that are remembered of a host


@dataclass(slots=True, eq=False)
class Address:
    """A server's address. It is asked one thing at a time, and rests after each request."""

    text: str
    due: float = 0.0
    busy: bool = False
    hosts: int = 0
    waiting: AddressTurns = field(default_factory=AddressTurns)
    members: dict[int, int] = field(default_factory=dict)  # number of hosts, by domain
    budgets: dict[int, int] = field(default_factory=dict)  # by domain
    budget_total: int = 0

    @property
    def mean_budget(self) -> float:
        """Mean budget of the domains whose hosts are at the workbench; 0 if there are none."""
        return self.budget_total / len(self.budgets) if self.budgets else 0.0


@dataclass(slots=True)
class OriginRules:
    """The rules of one origin of a host (scheme, host and port), and the work under way for them."""

    robots: RobotsRecord | None = None  # fresh or stale
    on_the_way: bool = False  # to be fetched, being fetched, or being read
    in_line: bool = False  # the visit that will fetch them waits at the host
    unused: bool = False  # they came, and no visit was decided by them yet
    sitemaps_taken: bool = False
    delay_s: float = 0.0  # their Crawl-delay, kept when the rules leave memory
    failures: int = 0  # of its pages, in a row, that count against it and not against the host


@dataclass(slots=True, eq=False)
class RulesCheck:
    """The question whether the rules fetched at `fetched_at` (unix seconds) forbid the visit with `key`."""

    key: int
    fetched_at: float
    line: str | None = None  # that forbids it; empty if none does, None until that is known


@dataclass(slots=True, eq=False)
class Host:
    """A host with work, or whose rest is not over yet. Times are unix seconds, zero for never."""

    # These fields outlive the process: see `ROW`.
    key: int
    name: str
    domain: str = ""
    addresses: tuple[str, ...] = ()
    addresses_until: float = 0.0  # when the DNS answer expires
    due: float = 0.0  # no request sooner: usual rest, Retry-After, sleep after failures
    failures: int = 0  # in a row
    retired: str = ""  # why the host was retired; empty while it is not
    pages: int = 0  # fetched so far
    first_seen: float = 0.0
    last_seen: float = 0.0
    crawl_delay_s: float | None = None  # of robots.txt; None: not asked yet
    trouble: str = ""  # outcome of its last request, if that is why it rests
    answering: tuple[str, ...] = ()  # origins that answered when last asked, the latest met first
    port_failures: int = 0  # failures of other origins, at ports not their schemes' own, since one came back

    faults: int = 0  # in a row: failures, and answers that say the server is in trouble

    # These are of this process alone.
    closed_until: float = 0.0  # when its hours of the day begin; in the past: they are on
    visits: deque[Visit] = field(default_factory=deque)
    gives_way_until: float = 0.0  # until then visits to answering origins go first
    busy: bool = False  # a request is under way
    parked: bool = False  # waits for its name or its rules
    queued: bool = False  # in the heap, or in line at its address
    quick: bool = False  # neither its last page nor a later robots.txt was slow
    broke: bool = False  # the kept connection of its last request broke
    request: Visit | None = None  # under way
    last_was_led: bool = False  # a redirect led its last request here: now one of its own goes first
    domain_key: int = 0
    budget: int = 0  # of its domain, by its latest visit; 0: the default
    address: Address | None = None  # where it is asked
    look_up_at: float = inf  # when its name is worth looking up again, ahead of `addresses_until`
    origins: dict[str, OriginRules] = field(default_factory=dict)
    check: RulesCheck | None = None  # the latest that was not answered at once

    @property
    def rests_until(self) -> float:
        """Time before which no request is made: `due`, or when its hours begin."""
        return max(self.due, self.closed_until)

    @property
    def has_nothing_to_do(self) -> bool:
        """True if the host waits for nothing, and nothing waits for it."""
        is_wanted = self.visits or self.busy or self.parked or self.queued
        return not is_wanted and not any(known.on_the_way for known in self.origins.values())

    @property
    def never_answered(self) -> bool:
        """True if it never answered, as far as is remembered."""
        return not (self.answering or self.pages)

    @property
    def failed(self) -> int:
        """Number of its failures in a row; those at any port if it never answered."""
        return max(self.failures, self.port_failures) if self.never_answered else self.failures

    def answers_beside(self, origin: str) -> bool:
        """Return whether another origin of this host than `origin` answered when last asked."""
        return any(other != origin for other in self.answering)

    def refuses(self, visit: Visit) -> str:
        """Return why `visit` may not be made here; empty if it may. Another host may have the same key. And who answers
        HTTP would take the line of a Gopher URL, which the author of a link chose, for a request."""
        parts = visit.parts
        if parts.host != self.name:
            return f"its host has the same key as {self.name}"
        if parts.scheme == "gopher" and any(
            parts._replace(scheme=scheme).origin in self.answering for scheme in ("http", "https")
        ):
            return f"its host speaks HTTP at port {parts.port}, and not Gopher"
        return ""

    def gives_way(self, visit: Visit, now: float) -> bool:
        """Return whether other visits go before `visit`. If no origin of the host is known to answer, visits at their
        schemes' own ports go first. Otherwise those to answering origins do, until `gives_way_until`."""
        if not self.answering:
            return not has_default_port(visit.parts)
        return now < self.gives_way_until and (visit.robots_of or visit.parts.origin) not in self.answering

    def heard(self, origin: str, *, answered: bool) -> None:
        """Note that a request to `origin` was `answered`, or failed."""
        if answered != (origin in self.answering):
            others = tuple(other for other in self.answering if other != origin)
            self.answering = (origin, *others)[:MOST_ANSWERING] if answered else others

    def rules_of(self, origin: str) -> OriginRules:
        """Return what is known of the rules of `origin`, one of this host's."""
        known = self.origins.get(origin)
        if known is None:
            known = self.origins[origin] = OriginRules()
        return known


# The fields that the host book keeps, in the order of its columns; there `port_failures` is called `vain`.
ROW = (
    "key", "name", "domain", "addresses", "addresses_until", "due", "failures", "retired", "pages", "first_seen",
    "last_seen", "crawl_delay_s", "trouble", "answering", "port_failures", "faults",
)  # fmt: skip
