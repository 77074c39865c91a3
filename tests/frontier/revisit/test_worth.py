"""The index: what the literature says where rates are known, and a schedule that beats its neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import exp1

from fyke.frontier.revisit.belief import Belief, Column
from fyke.frontier.revisit.worth import worth

SURE = 1e9


def known(rates: Column) -> Belief:
    """The belief of somebody who knows."""
    return Belief(np.full(len(rates), SURE), SURE / rates)


def intervals_at(rates: Column, weights: Column, target: float) -> Column:
    """The ages at which visits are worth `target`."""
    low, high = np.full(len(rates), 1e-9), np.full(len(rates), 1e9)
    for _ in range(100):
        middle = np.sqrt(low * high)
        early = worth(known(rates), weights, middle) < target
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    return low


def schedule(rates: Column, weights: Column, visits: float) -> Column:
    """Intervals with `visits` in a unit of time, at each of which a visit is worth the same."""
    low, high = 1e-9, 1e9
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        enough = np.sum(1 / intervals_at(rates, weights, middle)) > visits
        low, high = (middle, high) if enough else (low, middle)
    return intervals_at(rates, weights, low)


def staleness(rates: Column, intervals: Column) -> Column:
    """The mean harmonic staleness of pages visited at even intervals: Ein(x) - 1 + (1 - e^-x) / x."""
    x = rates * intervals
    found: Column = np.euler_gamma + np.log(x) + exp1(x) - 1 - np.expm1(-x) / x
    return found


@given(rate=st.floats(1e-3, 1e3), weight=st.floats(1e-3, 1e3), x=st.floats(1e-2, 50))
def test_with_known_rates_it_is_the_harmonic_index(rate: float, weight: float, x: float) -> None:
    found = worth(known(np.array([rate])), np.array([weight]), np.array([x / rate]))
    assert found[0] == pytest.approx(weight / rate * (x - 1 + np.exp(-x)), rel=1e-4)


@given(shape=st.one_of(st.just(1.0), st.floats(0.999999, 1.000001), st.floats(0.01, 100)), time=st.floats(1e-3, 1e6))
def test_it_grows_with_age_from_zero_without_bound(shape: float, time: float) -> None:
    ages = time * np.logspace(-6, 6, 200)
    belief = Belief(np.full(200, shape), np.full(200, time))
    found = worth(belief, np.ones(200), ages)
    assert (found >= 0).all() and (np.diff(found) > 0).all()
    assert found[-1] > 1e3 * time


def test_no_other_schedule_with_as_many_visits_is_better() -> None:
    rng = np.random.default_rng(2)
    rates, weights = np.exp(rng.normal(0, 1.5, 200)), rng.pareto(1.1, 200) + 1
    intervals = schedule(rates, weights, 60.0)
    best = weights @ staleness(rates, intervals)
    for _ in range(200):
        other = intervals * np.exp(rng.normal(0, 0.2, 200))
        other *= np.sum(1 / other) / 60.0
        assert weights @ staleness(rates, other) > best
