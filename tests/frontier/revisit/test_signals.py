"""Signals are believed as far as they proved true, count what they are worth, and lies cost nothing."""

import numpy as np
import pytest
from freshness import world
from hypothesis import given
from hypothesis import strategies as st
from signals import run

from fyke.frontier.revisit import belief as beliefs
from fyke.frontier.revisit.belief import Belief
from fyke.frontier.revisit.signals import (
    EVIDENCE,
    MOST_RECALL,
    MOST_VISITS,
    Trust,
    added_up,
    counted_age,
    credit,
    learned,
    no_trust,
    seen,
    trust,
)
from fyke.frontier.revisit.worth import worth

positive = st.floats(1e-3, 1e6)


def one(*numbers: float) -> list[np.ndarray]:
    return [np.array([number], float) for number in numbers]


@given(
    rate=st.floats(0.1, 5),
    age=st.floats(0.1, 5),
    recall=st.floats(0, 0.9),
    false=st.floats(0.01, 2),
    told=st.integers(0, 4),
)
def test_the_index_is_that_of_the_changes_missed(
    rate: float, age: float, recall: float, false: float, told: int
) -> None:
    """Of a page whose rate is known, with x = (1 - recall) r t + n recall r / (recall r + false)."""
    sure, trusted = Belief(*one(1e9, 1e9 / rate)), Trust(*one(recall, false))
    x = (1 - recall) * rate * age + told * recall * rate / (recall * rate + false)
    found = worth(sure, np.ones(1), counted_age(sure, trusted, *one(told, age)))
    assert found[0] == pytest.approx((x - 1 + np.exp(-x)) / rate, rel=1e-4, abs=1e-6)
    assert 0 <= credit(sure, trusted)[0] <= 1


@given(shape=positive, time=positive, age=positive, told=st.integers(0, 255), change=st.booleans())
def test_who_has_no_trust_changes_nothing(shape: float, time: float, age: float, told: int, change: bool) -> None:
    belief, none = Belief(*one(shape, time)), no_trust(1)
    assert counted_age(belief, none, *one(told, age))[0] == age
    told_of = seen(belief, none, np.array([float(told)]), np.array([change]), np.array([age]))
    silent = beliefs.seen(belief, np.array([change]), np.array([age]))
    assert np.allclose(told_of, silent, rtol=1e-9)


@given(
    shape=positive, time=positive, since=st.floats(1e-3, 1e9), told=st.integers(0, 255), change=st.booleans(),
    times=st.integers(1, 50),
)  # fmt: skip
def test_whatever_is_seen_trust_stays_within_its_bounds(
    shape: float, time: float, since: float, told: int, change: bool, times: int
) -> None:
    evidence, belief = np.zeros(1, EVIDENCE), Belief(*one(shape, time))
    for _ in range(times):
        trusted = trust(evidence)
        belief = seen(belief, trusted, np.array([float(told)]), np.array([change]), np.array([since]))
        assert all(np.isfinite(part).all() and (part > 0).all() for part in belief)
        added = learned(evidence, belief, np.array([float(told)]), np.array([change]), np.array([since]))
        evidence = added_up(evidence, added, np.zeros(1, np.intp))
    found = trust(evidence)
    assert 0 <= found.recall[0] <= MOST_RECALL and 0 < found.false[0] < np.inf
    assert all(np.isfinite(evidence[name]).all() for name in EVIDENCE.names)


def visited(recall: float, false: float, told_always: bool, seed: int, visits: int = 400) -> Trust:
    """What is learned of a host whose pages change once in a unit of time, by visits at random times, one of three
    of them soon after a signal."""
    rng, evidence = np.random.default_rng(seed), np.zeros(1, EVIDENCE)
    belief = Belief(np.full(20, 50.0), np.full(20, 50.0))
    for _ in range(visits // 20):
        since = rng.exponential(1.0, 20)
        changes = rng.poisson(since)
        told = rng.binomial(changes, recall) + rng.poisson(false * since) + told_always
        added = learned(np.repeat(evidence, 20), belief, told.astype(float), changes > 0, since)
        evidence = added_up(evidence, added, np.zeros(20, np.intp))
    return trust(evidence)


@pytest.mark.parametrize("seed", range(5))
def test_trust_is_what_proved_true(seed: int) -> None:
    precise, liar, always = (visited(*kind, seed) for kind in ((0.9, 0.1, False), (0.0, 1.0, False), (0.0, 0.0, True)))
    assert 0.6 < precise.recall[0] <= 0.9 and precise.false[0] < 0.2
    assert liar.recall[0] < 0.2 and liar.false[0] > 0.4
    assert always.recall[0] == 0


def test_a_host_that_begins_to_lie_is_believed_no_more() -> None:
    evidence = np.zeros(1, EVIDENCE)
    rng, belief = np.random.default_rng(1), Belief(np.full(20, 50.0), np.full(20, 50.0))
    recalls = []
    for step in range(200):
        since = rng.exponential(1.0, 20)
        changes = rng.poisson(since)
        told = changes if step < 100 else rng.poisson(since)
        added = learned(np.repeat(evidence, 20), belief, told.astype(float), changes > 0, since)
        evidence = added_up(evidence, added, np.zeros(20, np.intp))
        recalls.append(float(trust(evidence).recall[0]))
    assert recalls[99] > 0.8 and recalls[199] < 0.2
    assert evidence["visits"][0] <= MOST_VISITS + 0.01


def test_honest_lists_are_worth_listening_to_and_lies_cost_nothing() -> None:
    where = world(1500, 1.0, bursty=False, seed=4)
    without = run(where, "precise", "none")[0]
    at_most = {"precise": 0.88, "imprecise": 0.99, "generated": 1.02, "nightly": 1.02, "random": 1.02}
    assert all(run(where, lists, "learned")[0] < most * without for lists, most in at_most.items())
    assert run(where, "precise", "obeyed")[0] > 2 * without
