"""The workbench keeps every rule whatever happens in whatever order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fyke.core.config import PolitenessSection
from fyke.core.visits import Visit
from fyke.fetcher.host import Host
from fyke.fetcher.workbench import Workbench

HOSTS, ADDRESSES = 5, 2
EPSILON = 1e-6


def visit(host: int, number: int, not_before: float = 0.0, budget: int = 0) -> Visit:
    return Visit(f"http://h{host}.test/{number}", number, host, host, budget=budget, not_before=not_before)


def entered(bench: Workbench, key: int, due: float = 0.0) -> Host:
    host = Host(key, f"h{key}", due=due)
    bench.enter(host)
    return host


class Politeness(RuleBasedStateMachine):
    """A caller that adds, starts, finishes, parks and waits; the model remembers when things happened."""

    config = PolitenessSection(host_delay_s=1.0, address_delay_s=0.5, delay_factor=2.0, max_delay_s=10.0)

    def __init__(self) -> None:
        super().__init__()
        self.bench = Workbench(self.config)
        self.now = 100.0
        self.number = 0
        self.host_due: dict[int, float] = {}
        self.address_due: dict[str, float] = {}
        self.under_way: dict[int, tuple[Host, float]] = {}
        self.added = self.ended = 0

    def host(self, key: int) -> Host:
        return self.bench.get(key) or entered(self.bench, key, self.host_due.get(key, 0.0))

    @rule(key=st.integers(1, HOSTS), first=st.booleans(), later=st.sampled_from([0.0, 0.0, 3.0]))
    def add(self, key: int, first: bool, later: float) -> None:
        self.number += 1
        self.added += 1
        self.bench.add(self.host(key), visit(key, self.number, self.now + later if later else 0.0), first=first)

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 5.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(again=st.booleans())
    def serve(self, again: bool) -> None:
        rest_until = self.bench.statistics(self.now).rest_until
        assert rest_until == 0 or rest_until > self.now
        host = self.bench.next(self.now)
        if host is None:
            return
        assert not rest_until, "a host was asked while all were said to rest"
        if host.address is None:
            self.bench.settle(host, f"a{host.key % ADDRESSES}")
            self.bench.enqueue(host)
            return
        taken = self.bench.pop(host, self.now)
        if taken is None:
            self.bench.enqueue(host)
            return
        if again:  # as when robots.txt must come first
            self.bench.add(host, taken, first=True)
            taken = self.bench.pop(host, self.now)
            assert taken is not None
        assert taken.not_before <= self.now
        assert host.key not in self.under_way, "two requests at once to a host"
        assert self.now >= self.host_due.get(host.key, 0.0) - EPSILON, "a host too soon"
        address = host.address.text
        if self.config.address_delay_s:
            assert self.now >= self.address_due.get(address, 0.0) - EPSILON, "an address too soon"
            assert all(other.address is not host.address for other, _ in self.under_way.values())
        self.bench.start(host)
        self.under_way[host.key] = host, self.now

    @rule(key=st.integers(1, HOSTS), wait_s=st.sampled_from([0.0, 0.0, 20.0, 200.0]))
    def finish(self, key: int, wait_s: float) -> None:
        if key not in self.under_way:
            return
        host, started = self.under_way.pop(key)
        took = self.now - started
        due = self.now + max(1.0, min(2.0 * took, 10.0), host.crawl_delay_s or 0.0, wait_s)
        self.host_due[key] = due
        assert host.address is not None
        self.address_due[host.address.text] = self.now + 0.5
        self.bench.finished(host, self.now, took, wait_s)
        self.ended += 1

    @rule(key=st.integers(1, HOSTS), parked=st.booleans())
    def park(self, key: int, parked: bool) -> None:
        host = self.bench.get(key)
        if host is not None and not host.busy and host.visits:
            (self.bench.park if parked else self.bench.unpark)(host)

    @rule(key=st.integers(1, HOSTS))
    def recall(self, key: int) -> None:
        host = self.bench.get(key)
        self.ended += len(self.bench.drain(host)) if host is not None else 0

    @rule()
    def prune(self) -> None:
        self.bench.prune(self.now)

    @invariant()
    def counts(self) -> None:
        assert all(self.bench.get(key) is host for key, (host, _) in self.under_way.items())
        assert self.bench.visits == sum(len(host.visits) for host in self.bench)
        assert self.bench.visits + self.ended + len(self.under_way) == self.added
        assert self.bench.busy == len(self.under_way)

    def teardown(self) -> None:
        """Nothing is forgotten: in time, every visit is made."""
        for host in list(self.bench):
            self.bench.unpark(host)
        for _ in range(20_000):
            for key in list(self.under_way):
                self.finish(key=key, wait_s=0.0)
            self.serve(again=False)
            if not self.bench.visits and not self.under_way:
                return
            self.now += 0.5
        raise AssertionError(f"visits were forgotten: {self.bench!r}")


class HostsOnly(Politeness):
    """The same when addresses have no delay."""

    config = PolitenessSection(host_delay_s=1.0, address_delay_s=0.0, delay_factor=2.0, max_delay_s=10.0)


TestPoliteness = Politeness.TestCase
TestPoliteness.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
TestHostsOnly = HostsOnly.TestCase
TestHostsOnly.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)


@given(delays=st.tuples(*[st.floats(0, 100)] * 4))
def test_the_longest_delay_counts(delays: tuple[float, float, float, float]) -> None:
    own, ceiling, crawl_delay, took = delays
    config = PolitenessSection(host_delay_s=own, max_delay_s=ceiling, delay_factor=10)
    bench = Workbench(config)
    host = entered(bench, 1)
    host.crawl_delay_s = crawl_delay
    assert bench.delays.of_host(host, took) == max(own, min(10 * took, ceiling), crawl_delay)


@given(
    budgets=st.lists(st.integers(1, 10_000), min_size=1, max_size=8),
    delay_s=st.floats(0, 100),
    least_s=st.floats(0, 100),
)
def test_delays_follow_budgets(budgets: list[int], delay_s: float, least_s: float) -> None:
    """Section 6.1: in proportion to the budget, between the floor and the delay of a domain without reputation."""
    config = PolitenessSection(
        host_delay_s=delay_s,
        min_host_delay_s=least_s,
        address_delay_s=delay_s,
        min_address_delay_s=least_s,
        delay_factor=0,
    )
    bench = Workbench(config, default_budget_urls=10)
    hosts = []
    for key, budget in enumerate(budgets):
        host = entered(bench, key)
        bench.add(host, visit(key, key, budget=1))
        bench.settle(host, "a")
        bench.add(host, visit(key, key, budget=budget))
        hosts.append(host)
    least = min(least_s, delay_s)
    for host, budget in zip(hosts, budgets, strict=True):
        due = delay_s if budget <= 10 else max(least, delay_s * 10 / budget)
        assert abs(bench.delays.of_host(host, 1.0) - due) < EPSILON
    mean = sum(budgets) / len(budgets)
    due = delay_s if mean <= 10 else max(least, delay_s * 10 / mean)
    assert hosts[0].address is not None
    assert abs(bench.delays.of_address(hosts[0].address) - due) < EPSILON
    for host in hosts[1:]:  # they move away: only the first one's domain counts then
        bench.settle(host, f"b{host.key}")
    assert hosts[0].address.mean_budget == budgets[0]


def test_who_got_no_visit_is_forgotten_but_not_while_its_rules_are_on_the_way() -> None:
    """As of a site that forbids everything: its visits end before they wait here."""
    bench = Workbench(PolitenessSection())
    hosts = [entered(bench, key) for key in range(4)]
    bench.add(hosts[1], visit(1, 1))
    hosts[2].rules_of("http://h2.test:80").on_the_way = True
    hosts[3].due = 10.0
    bench.prune(9.0)
    assert list(bench) == hosts[1:]
    hosts[2].rules_of("http://h2.test:80").on_the_way = False
    bench.prune(10.0)
    assert list(bench) == [hosts[1]]


def test_a_host_that_was_forgotten_takes_nobody_along() -> None:
    """It may be in the heap still: a namesake that came since is not forgotten with it, or asked twice at once."""
    bench = Workbench(PolitenessSection(host_delay_s=1.0, address_delay_s=0.0))
    host = entered(bench, 1)
    bench.add(host, visit(1, 1))
    assert bench.next(0.0) is host
    bench.add(host, visit(1, 2), first=True)  # put back: it is in the heap again
    bench.pop(host, 0.0)
    bench.start(host)
    bench.drain(host)
    bench.finished(host, 0.0, 0.0, wait_s=100.0)
    assert bench.get(1) is None
    namesake = entered(bench, 1, due=100.0)
    bench.add(namesake, visit(1, 3))
    assert bench.next(50.0) is None
    assert bench.next(100.0) is namesake
    bench.start(namesake)
    assert bench.next(100.0) is None
    assert bench.get(1) is namesake


def test_a_host_that_left_and_was_forgotten_gets_its_turn_when_it_comes_back() -> None:
    bench = Workbench(PolitenessSection(host_delay_s=1.0, address_delay_s=0.0))
    host = entered(bench, 1, 0.0)
    bench.add(host, visit(1, 1))
    bench.sleep_until(host, 5000.0)
    bench.drain(host)
    bench.leave(host, 0.0)
    bench.prune(0.0)
    assert bench.get(1) is None
    bench.enter(host)
    bench.add(host, visit(1, 2))
    assert bench.next(5001.0) is host
