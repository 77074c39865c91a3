"""A domain of names that have no address costs its name servers a few look-ups a second, and nobody else waits."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.messages import Rules
from fyke.core.urls import key_of, locate, robots_url
from fyke.disk.store import Store
from fyke.frontier.nameless import HOPELESS, IN_VAIN, MOST_DOMAINS, MOST_REST_S, ORIGINS, PAUSE_S, Nameless, rest_s
from fyke.frontier.robots_gate import MEANS

BEGUN_AT = 1_000_000.0


def origins(names: list[str]) -> pa.RecordBatch:
    of = [f"http://{name}:80".encode() for name in names]
    return pa.record_batch([pa.array(list(map(key_of, of)), pa.uint64()), pa.array(of, pa.binary())], schema=ORIGINS)


def names_of(batch: pa.RecordBatch | None) -> list[str]:
    found = [] if batch is None else batch.column("origin").to_pylist()
    return [origin.decode().removeprefix("http://").removesuffix(":80") for origin in found]


def domain(name: str) -> int:
    return locate(robots_url(f"http://{name}:80")).domain


@pytest.fixture
def nameless(tmp_path: Path) -> Nameless:
    return Nameless(Store(tmp_path))


def looked_up(nameless: Nameless, names: list[str], has_address: "set[str]", seconds: float) -> list[tuple[float, str]]:
    """When each of `names` is looked up, if all are asked for at once and answers come at once."""
    found, now, asked = [], BEGUN_AT, names
    while now < BEGUN_AT + seconds:
        for name in [
            *names_of(nameless.admit(origins(asked), now) if asked else None),
            *names_of(nameless.get(256, now)),
        ]:
            found.append((now - BEGUN_AT, name))
            nameless.tell(domain(name), found=name in has_address)
        now, asked = now + 0.05, []
    return found


def test_a_domain_of_such_names_is_looked_up_a_few_times_a_second(nameless: Nameless) -> None:
    """Whatever was asked for at once before an answer came; and all of them in time."""
    for _ in range(IN_VAIN):
        nameless.tell(domain("bad.test"), found=False)
    times = [at for at, _ in looked_up(nameless, [f"n{number}.bad.test" for number in range(300)], set(), 60.0)]
    assert 60 / PAUSE_S * 0.5 < len(times) <= 60 / PAUSE_S + 1
    assert np.diff(times).min() > PAUSE_S / 2


def test_who_has_an_address_waits_for_no_other_domain(nameless: Nameless) -> None:
    """Nor does a domain of which some names have none."""
    for _ in range(IN_VAIN):
        nameless.tell(domain("bad.test"), found=False)
    good = [f"n{number}.good.test" for number in range(300)]
    bad = [f"n{number}.bad.test" for number in range(300)]
    found = looked_up(nameless, [*bad, *good], {*good}, 1.0)
    assert {name for at, name in found if not at} >= {*good}


def test_a_name_that_has_an_address_ends_it(nameless: Nameless) -> None:
    names = [f"n{number}.bad.test" for number in range(300)]
    for _ in range(HOPELESS + 60):
        nameless.tell(domain("bad.test"), found=False)
    assert names_of(nameless.admit(origins(names), BEGUN_AT)) == names[:1]
    assert names_of(nameless.get(256, BEGUN_AT + 1000)) == []
    assert nameless.due > BEGUN_AT + 1000
    nameless.tell(domain("bad.test"), found=True)
    came = [*names_of(nameless.get(256, BEGUN_AT + 1000)), *names_of(nameless.get(256, BEGUN_AT + 1000))]
    assert sorted(came) == sorted(names[1:])


def test_rests_grow_so_that_a_crawl_ends() -> None:
    """No domain is looked up more often than twice as long a crawl waits, beyond its first thousand names."""
    assert rest_s(IN_VAIN - 1) == 0
    assert rest_s(HOPELESS) == PAUSE_S
    assert sum(map(rest_s, range(HOPELESS + 14))) < HOPELESS * PAUSE_S + 2 * rest_s(HOPELESS + 13)
    assert rest_s(HOPELESS + 13) < 3600 < rest_s(HOPELESS + 14)
    assert rest_s(10**9) == MOST_REST_S


class Model:
    """What should be known, and who came out."""

    def __init__(self, nameless: Nameless) -> None:
        self.nameless, self.now, self.put = nameless, BEGUN_AT, 0
        self.out, self.in_vain, self.last = Counter[str](), Counter[str](), dict[str, float]()

    def came(self, names: list[str]) -> None:
        for name in names:
            parent = name.split(".", 1)[1]
            if self.in_vain[parent] >= IN_VAIN:
                assert self.now >= self.last.get(parent, 0.0) + rest_s(self.in_vain[parent])
                self.last[parent] = self.now
        self.out.update(names)
        assert len(self.nameless) + self.out.total() == self.put

    def asked(self, count: int) -> None:
        names = [f"n{self.put + place}.d{place % 3}.test" for place in range(count)]
        self.put += count
        self.came(names_of(self.nameless.admit(origins(names), self.now)))

    def get(self, most: int) -> None:
        names = names_of(self.nameless.get(most, self.now))
        assert len(names) <= most
        self.came(names)

    def told(self, number: int, *, found: bool) -> None:
        of = f"d{number % 3}.test"
        for _ in range(1 if found else IN_VAIN):
            self.nameless.tell(domain(of), found=found)
        self.in_vain[of] = 0 if found else self.in_vain[of] + IN_VAIN
        if found:
            self.last.pop(of, None)


STEPS = {
    "put": Model.asked,
    "get": lambda model, number: model.get(max(1, number)),
    "found": lambda model, number: model.told(number, found=True),
    "failed": lambda model, number: model.told(number, found=False),
    "wait": lambda model, number: setattr(model, "now", model.now + number / 40),
}


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from([*STEPS]), st.integers(0, 40)), max_size=40))
def test_every_origin_is_here_or_came_out_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Whatever is told meanwhile; and no domain is looked up sooner than it may be."""
    model = Model(Nameless(Store(tmp_path_factory.mktemp("shard"))))
    for step, number in steps:
        STEPS[step](model, number)
    for parent in range(3):
        model.told(parent, found=True)
    while len(model.nameless):
        model.get(256)
        model.now += PAUSE_S
    assert model.out.total() == model.put
    assert set(model.out.values()) <= {1}


def test_what_is_known_is_saved_and_bounded(tmp_path: Path) -> None:
    nameless = Nameless(Store(tmp_path))
    for key in range(1, MOST_DOMAINS + 100):
        nameless.tell(key, found=False)
    assert not nameless.state()["domains"]
    for key in range(1, MOST_DOMAINS + 100):
        for _ in range(IN_VAIN):
            nameless.tell(key, found=False)
    state = nameless.state()
    assert len(state["domains"]) == MOST_DOMAINS
    again = Nameless(Store(tmp_path), {"domains": state["domains"]})
    assert again.state()["domains"] == state["domains"]


def test_each_kind_of_rules_has_a_meaning_for_its_urls() -> None:
    assert {*MEANS.values()} == {Rules.OPEN, Rules.UNREACHABLE}
