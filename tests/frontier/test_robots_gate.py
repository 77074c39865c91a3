"""The laws of the robots gate: nothing passes before its origin's rules are there, and each is asked for once."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontier.shard import Shard
from fyke.core.batches import Kind, texts, u64, url_batch
from fyke.core.messages import Rules
from fyke.core.urls import locate, split
from fyke.disk.store import Store
from fyke.frontier import robots_gate
from fyke.frontier.newcomers import AT_ONCE, FIRST, HALVED_S
from fyke.frontier.origins import origins_of
from fyke.frontier.robots_gate import PATIENCE_S, RECHECK_SHARE, URGENT_RECHECK_SHARE, RobotsGate
from fyke.frontier.sizes import SIZES, Sizes

ORIGINS = [
    "http://a.example:80",
    "https://a.example:443",
    "http://a.example:8080",
    "http://www.a.example:80",
    "http://b.example:80",
    "ftp://b.example:21",
    "http://[2001:db8::1]:80",
]
HOME = [origin.removesuffix(f":{port}") for origin, port in zip(ORIGINS, (80, 443, 0, 80, 80, 21, 80), strict=True)]
FAR = 1e9  # how long the rules of a patient server are believed


@dataclass
class Model:
    """What should wait, what the gate was told, and for what it has asked since it was opened."""

    waiting: Counter[str] = field(default_factory=Counter)
    told: dict[str, tuple[Rules, int]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def rules(self, url: str, now: float) -> Rules:
        rules, end = self.told.get(split(url).origin, (Rules.UNKNOWN, 0))
        return rules if end > now else Rules.UNKNOWN


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0


class Gate(Shard[RobotsGate, Model]):
    """The gate at a virtual time."""

    def __init__(self, directory: Path, memory_bytes: int = 1 << 20, sizes: Sizes = SIZES) -> None:
        self.clock = Clock()
        self.count = 0

        def opened(store: Store, state: Mapping[str, Any]) -> RobotsGate:
            return RobotsGate(store, memory_bytes, self.clock.now, state, sizes)

        super().__init__(directory, opened, Model())

    @property
    def now(self) -> float:
        return self.clock.now

    def put(self, origins: list[int]) -> list[str]:
        """URLs of these origins; those that pass at once."""
        urls = []
        for origin in origins:
            self.count += 1
            urls.append(f"{HOME[origin]}/{self.count}")
        self.model.waiting.update(urls)
        passed = texts(self.stage.put(url_batch([locate(url) for url in urls]), self.now))
        self.came(passed)
        return passed

    def came(self, passed: list[str]) -> None:
        self.out(passed, Rules.OPEN)
        self.out(texts(self.stage.refused()), Rules.CLOSED)
        assert self.stage.refused().num_rows == 0

    def out(self, urls: list[str], rules: Rules) -> None:
        for url in urls:
            assert self.model.rules(url, self.now) is rules
        self.model.waiting.subtract(urls)
        assert not any(count < 0 for count in self.model.waiting.values())

    def turn(self, _: None = None) -> list[str]:
        """What the frontier does when it has nothing else."""
        passed = [] if (urls := self.stage.recheck(self.now, urgent=True)) is None else texts(urls)
        passed += [url for urls in self.stage.merge(self.now) for url in texts(urls)]
        self.came(passed)
        return passed

    def wanted(self, most: int = 100) -> list[str]:
        origins = [split(url).origin for url in texts(self.stage.asks.wanted(most, self.now))]
        assert len(origins) <= most
        assert self.model.asked.isdisjoint(origins)
        assert len(set(origins)) == len(origins)
        self.model.asked.update(origins)
        return origins

    def known(self, answer: tuple[int, Rules, float]) -> None:
        """An answer for an origin that was asked for, or that is known and was fetched anew."""
        origin, rules, ttl_s = ORIGINS[answer[0]], answer[1], answer[2]
        if origin not in self.model.asked and origin not in self.model.told:
            return
        end = self.now + ttl_s
        self.stage.learn_rules(origin, rules, end, self.now)
        self.model.told[origin] = (rules, math.ceil(end))
        self.model.asked.discard(origin)

    def advance(self, seconds: float) -> None:
        self.clock.now += seconds

    def restart(self) -> None:
        super().restart()
        self.model.asked.clear()
        self.stage.resume()

    def check(self) -> None:
        waiting = +self.model.waiting
        assert Counter(url for urls in self.stage.scan() for url in texts(urls)) == waiting
        assert self.stage.waiting == waiting.total()
        assert (len(self.stage) > 0) >= (waiting.total() > 0)
        assert len(self.stage._lately) <= SIZES.known_origins

    def finish(self) -> None:
        """Answer all that is asked, until nothing waits."""
        for _ in range(100):  # in each a part is read
            self.turn()
            self.check()
            if not (+self.model.waiting or len(self.stage)):
                break
            self.advance(1)
            self.wanted()
            for origin in sorted(self.model.asked):
                self.known((ORIGINS.index(origin), Rules.OPEN, FAR))
            ends = [end for rules, end in self.model.told.values() if rules is Rules.UNREACHABLE]
            self.clock.now = max(self.now, *ends, 0)
        assert not +self.model.waiting
        assert len(self.stage) == 0


ANSWERS = st.tuples(
    st.integers(0, len(ORIGINS) - 1),
    st.sampled_from([Rules.OPEN, Rules.OPEN, Rules.CLOSED, Rules.UNREACHABLE]),
    st.sampled_from([1.0, 7.5, 100.0, FAR]),
)
STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(st.integers(0, len(ORIGINS) - 1), min_size=1, max_size=9)),
    st.tuples(st.just("turn"), st.none()),
    st.tuples(st.just("wanted"), st.integers(0, 4)),
    st.tuples(st.just("known"), ANSWERS),
    st.tuples(st.just("advance"), st.sampled_from([0.0, 0.25, 1.0, 10.0, 200.0])),
    st.tuples(st.just("save"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=40), memory_bytes=st.sampled_from([1, 4000, 1 << 20]))
def test_urls_pass_by_the_rules_and_origins_are_asked_for_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]], memory_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_gate, "PATIENCE_S", 1e7)
        gate = Gate(tmp_path_factory.mktemp("gate"), memory_bytes, Sizes(unruled=3, known_origins=2))
        for step, argument in steps:
            getattr(gate, step)(*([] if argument is None else [argument]))
            gate.check()
        gate.finish()
        gate.close()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path)
    yield gate
    gate.close()


def test_an_origin_is_scheme_host_and_port_as_everywhere(gate: Gate) -> None:
    gate.put(list(range(len(ORIGINS))) * 3)
    gate.turn()
    assert sorted(gate.wanted()) == sorted(ORIGINS) == sorted(split(f"{home}/").origin for home in HOME)
    gate.known((0, Rules.OPEN, FAR))
    assert [split(url).origin for url in gate.turn()] == [ORIGINS[0]] * 3


def test_what_is_not_answered_is_asked_again_once_a_restart(gate: Gate) -> None:
    """Also within the same second."""
    gate.put([0, 0, 4, 5])
    gate.turn()
    asked = [ORIGINS[0], ORIGINS[4], ORIGINS[5]]
    assert sorted(gate.wanted(2) + gate.wanted()) == sorted(asked)
    gate.known((5, Rules.OPEN, FAR))
    for _ in range(3):
        gate.save()
        gate.restart()
        gate.turn()
        assert sorted(gate.wanted()) == asked[:2]
        gate.put([0, 4])
        gate.turn()
        assert gate.wanted() == []


def test_an_answer_that_is_lost_is_asked_for_again_in_time(gate: Gate) -> None:
    gate.put([0, 4])
    gate.turn()
    assert len(gate.wanted()) == 2
    gate.known((4, Rules.OPEN, FAR))
    gate.advance(PATIENCE_S - 1)
    gate.turn()
    assert gate.wanted() == []
    gate.model.asked.clear()
    gate.advance(PATIENCE_S)
    gate.turn()
    assert gate.wanted() == [ORIGINS[0]]


def test_who_is_unreachable_waits_and_is_asked_again(gate: Gate) -> None:
    gate.put([0])
    gate.turn()
    gate.wanted()
    for _ in range(3):
        gate.known((0, Rules.UNREACHABLE, 30))
        gate.advance(29)
        assert gate.put([0]) == gate.turn() == gate.wanted() == []
        gate.advance(1)
        assert gate.turn() == []
        assert gate.wanted() == [ORIGINS[0]]
    gate.known((0, Rules.OPEN, 30))
    assert len(gate.turn()) == 4


def test_what_an_answer_lets_pass_waits_for_no_other_turn(gate: Gate) -> None:
    """The answer is told of by a later reading of the clock than the turn goes by."""
    gate.put([0])
    gate.turn()
    gate.wanted()
    gate.stage.learn_rules(ORIGINS[0], Rules.OPEN, gate.now + FAR, gate.now + 0.01)
    passed = gate.stage.recheck(gate.now, urgent=False)
    assert passed is not None
    assert passed.num_rows == 1


def test_answers_that_memory_has_no_room_for_are_read_from_disk(tmp_path: Path) -> None:
    """Also those that come while the first half of what waits has been read."""
    gate = Gate(tmp_path, sizes=Sizes(unruled=10, known_origins=2))
    origins = [0, 4, 5]
    gate.put(origins * 10)
    gate.turn()
    assert len(gate.wanted()) == len(origins)
    for origin in origins:
        gate.known((origin, Rules.OPEN, FAR))
        gate.turn()
    for _ in range(10):
        gate.advance(1)
        gate.turn()
    assert len(gate.stage) == 0
    gate.close()


def test_rules_that_are_stale_are_fetched_again(gate: Gate) -> None:
    gate.put([0])
    gate.turn()
    gate.wanted()
    gate.known((0, Rules.OPEN, 30))
    assert len(gate.put([0])) == 1
    gate.advance(30)
    assert gate.put([0]) == []
    gate.turn()
    assert gate.wanted() == [ORIGINS[0]]


def test_when_nothing_is_new_nothing_is_read(gate: Gate) -> None:
    gate.put([0, 1, 2])
    gate.turn()
    assert gate.stage.recheck(gate.now, urgent=True) is None
    gate.wanted()
    gate.known((0, Rules.UNREACHABLE, 30))
    gate.turn()
    gate.advance(29)
    assert gate.stage.recheck(gate.now, urgent=True) is None
    gate.advance(1)
    assert gate.stage.recheck(gate.now, urgent=True) is not None


def test_what_waits_is_read_again_no_oftener_than_its_rows_are_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often answers come, by the time that is handed in alone."""
    monkeypatch.setattr(robots_gate, "RECHECK_ROW_S", 1.0)
    gate = Gate(tmp_path, sizes=Sizes(unruled=10))
    rows, portions, seconds, read = 40, 4, 500, {True: 0, False: 0}
    gate.put([0] * rows)
    gate.turn()
    gate.wanted()
    for urgent in read:
        for _ in range(seconds):
            gate.advance(1)
            gate.stage.learn_rules(ORIGINS[4], Rules.OPEN, gate.now + FAR, gate.now)
            read[urgent] += gate.stage.recheck(gate.now, urgent=urgent) is not None
            list(gate.stage.merge(gate.now))
    assert read[True] == pytest.approx(portions * seconds / rows / URGENT_RECHECK_SHARE, abs=portions)
    assert read[False] == pytest.approx(portions * seconds / rows / RECHECK_SHARE, abs=portions)
    gate.close()


def test_what_waits_is_read_again_a_part_in_a_turn(tmp_path: Path) -> None:
    """However much waits: else one answer would hold up all that is under way."""
    gate = Gate(tmp_path, sizes=Sizes(unruled=10))
    gate.put([0] * 95)
    gate.turn()
    gate.wanted()
    gate.known((0, Rules.OPEN, FAR))
    for left in range(95, 0, -10):
        assert len(gate.turn()) == min(left, 10)
        assert gate.stage.rests_until == (0.0 if left > 10 else math.inf)
    gate.close()


def test_memory_is_bounded(tmp_path: Path) -> None:
    gate = Gate(tmp_path, sizes=Sizes(known_origins=50))
    hosts = [f"http://h{number}.example:80" for number in range(1000)]
    gate.stage.put(url_batch([locate(f"{host.removesuffix(':80')}/") for host in hosts]), gate.now)
    assert not any(urls.num_rows for urls in gate.stage.merge(gate.now))
    assert gate.stage.asks.wanted(10_000, gate.now, all_of_a_domain=True).num_rows == 1000
    for host in hosts:
        gate.stage.learn_rules(host, Rules.OPEN, gate.now + FAR, gate.now)
        assert len(gate.stage._lately) <= 50
    passed = 0
    for _ in range(2):
        urls = gate.stage.recheck(gate.now, urgent=True)
        passed += 0 if urls is None else urls.num_rows
        passed += sum(urls.num_rows for urls in gate.stage.merge(gate.now))
    assert passed == 1000
    assert len(gate.stage._lately) <= 50
    gate.close()


def test_of_a_domain_with_many_hosts_few_begin_until_visits_there_end(gate: Gate) -> None:
    """Also over a restart; other domains do not wait for it."""
    gate.stage.put(url_batch([locate(f"http://h{number}.many.example/") for number in range(500)]), gate.now)
    gate.turn()
    asked = gate.stage.asks.wanted(1000, gate.now)
    assert asked.num_rows == FIRST
    assert gate.stage.asks.wanted(1000, gate.now).num_rows == 0
    gate.put([4])
    gate.turn()
    assert [split(url).origin for url in texts(gate.stage.asks.wanted(1000, gate.now))] == [ORIGINS[4]], (
        "another domain"
    )
    gate.save()
    gate.restart()
    gate.turn()
    begun = Counter(texts(gate.stage.asks.wanted(1000, gate.now)))
    for _ in range(600):
        gate.stage.asks.over(u64(asked, "domain")[:1])
        begun.update(texts(gate.stage.asks.wanted(1000, gate.now)))
    assert len(begun) == 501 and set(begun.values()) == {1}, "each is asked for once, and none is forgotten"


@pytest.mark.parametrize(("doubted", "asked", "rounds"), [
    (False, True, [8, 16, 32, 64, 64]), (True, True, [8, 8, 8]), (False, False, [8, 8, 8]),
])  # fmt: skip
def test_a_domain_begins_slowly_and_twice_as_many_hosts_each_time(
    gate: Gate, rounds: list[int], *, doubted: bool, asked: bool
) -> None:
    """Unless its hosts bring little, or none was reached."""
    assert (rounds[0], max(rounds)) in {(FIRST, AT_ONCE), (FIRST, FIRST)}
    gate.stage.put(url_batch([locate(f"http://h{number}.many.example/") for number in range(500)]), gate.now)
    gate.turn()
    for begun in rounds:
        wanted = [
            gate.stage.asks.wanted(1000, gate.now, lambda rules: np.full(rules.num_rows, doubted)) for _ in range(8)
        ]
        assert sum(batch.num_rows for batch in wanted) == begun
        for batch in wanted:
            gate.stage.asks.over(u64(batch, "domain"), asked=asked)


def test_a_host_that_is_tried_waits_for_no_other(gate: Gate) -> None:
    """What it shows decides whether the others are worth anything."""
    gate.stage.put(url_batch([locate(f"http://h{number}.many.example/") for number in range(500)]), gate.now)
    gate.turn()
    gate.stage.asks.wanted(1000, gate.now)
    gate.stage.put(url_batch([locate("http://made-up.many.example/")], kind=Kind.PROBE), gate.now)
    gate.turn()
    assert [split(url).host for url in texts(gate.stage.asks.wanted(1000, gate.now))] == ["made-up.many.example"]


def test_who_begins_and_never_ends_holds_up_nobody_for_long(gate: Gate) -> None:
    gate.stage.put(url_batch([locate(f"http://h{number}.many.example/") for number in range(100)]), gate.now)
    gate.turn()
    begun = gate.stage.asks.wanted(1000, gate.now).num_rows
    for _ in range(40):
        gate.advance(HALVED_S)
        begun += gate.stage.asks.wanted(1000, gate.now).num_rows
    assert begun == 100


def test_origins_are_those_of_the_urls_parts() -> None:
    homes = ["http://a.org", "http://a.org:81", "http://a.org.", "http://a.org.:81", "ftp://a.org..", "http://[::1]"]
    urls = [f"{home}/x" for home in [*homes, "http://[::1]:81", "news2://a.org.", "http://."]]
    assert origins_of(url_batch([locate(url) for url in urls])) == [split(url).origin.encode() for url in urls]
