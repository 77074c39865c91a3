"""The index: what the literature says where rates are known, and a schedule that beats its neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import exp1

from fyke.frontier.revisit.belief import Belief, Column
from fyke.frontier.revisit.worth import interval, multiplier, worth

SURE = 1e9


def known(rates: Column) -> Belief:
    """The belief of somebody who knows."""
    return Belief(np.full(len(rates), SURE), SURE / rates)


def staleness(rates: Column, intervals: Column) -> Column:
    """The mean harmonic staleness of pages visited at even intervals: Ein(x) - 1 + (1 - e^-x) / x."""
    x = rates * intervals
    found: Column = np.euler_gamma + np.log(x) + exp1(x) - 1 - np.expm1(-x) / x
    return found


@given(rate=st.floats(1e-3, 1e3), weight=st.floats(1e-3, 1e3), x=st.floats(1e-2, 50))
def test_with_known_rates_it_is_the_harmonic_index(rate: float, weight: float, x: float) -> None:
    found = worth(known(np.array([rate])), np.array([weight]), np.array([x / rate]))
    assert found[0] == pytest.approx(weight / rate * (x - 1 + np.exp(-x)), rel=1e-4)


@given(shape=st.floats(0.05, 1e4), time=st.floats(1e-3, 1e6), weight=st.floats(1e-3, 1e3), target=st.floats(1e-3, 1e3))
def test_the_interval_is_where_a_visit_is_worth_the_multiplier(
    shape: float, time: float, weight: float, target: float
) -> None:
    belief, weights = Belief(np.array([shape]), np.array([time])), np.array([weight])
    age = interval(belief, weights, target)
    assert np.isfinite(age).all() and (age > 0).all()
    assert worth(belief, weights, age)[0] == pytest.approx(target, rel=1e-5)


@given(shape=st.one_of(st.just(1.0), st.floats(0.999999, 1.000001), st.floats(0.01, 100)), time=st.floats(1e-3, 1e6))
def test_it_grows_with_age_from_zero_without_bound(shape: float, time: float) -> None:
    ages = time * np.logspace(-6, 6, 200)
    belief = Belief(np.full(200, shape), np.full(200, time))
    found = worth(belief, np.ones(200), ages)
    assert (found >= 0).all() and (np.diff(found) > 0).all()
    assert found[-1] > 1e3 * time


def test_the_multiplier_spends_the_budget() -> None:
    rng = np.random.default_rng(1)
    rates, weights = np.exp(rng.normal(0, 1.5, 500)), rng.pareto(1.1, 500) + 1
    for visits in (5.0, 500.0, 50_000.0):
        intervals = interval(known(rates), weights, multiplier(known(rates), weights, visits))
        assert np.sum(1 / intervals) == pytest.approx(visits, rel=1e-6)


def test_no_other_schedule_with_as_many_visits_is_better() -> None:
    rng = np.random.default_rng(2)
    rates, weights = np.exp(rng.normal(0, 1.5, 200)), rng.pareto(1.1, 200) + 1
    intervals = interval(known(rates), weights, multiplier(known(rates), weights, 60.0))
    best = weights @ staleness(rates, intervals)
    for _ in range(200):
        other = intervals * np.exp(rng.normal(0, 0.2, 200))
        other *= np.sum(1 / other) / 60.0
        assert weights @ staleness(rates, other) > best
