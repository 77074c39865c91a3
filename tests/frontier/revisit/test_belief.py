"""The belief of how often pages change: exact where it can be, near the truth where not, and never out of bounds."""

from math import exp, expm1, lgamma, log

import numpy as np
import pytest
from freshness import estimates
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammainc, gammainccinv, gammaincinv

from fyke.frontier.revisit.belief import Belief, bounds, changed, faded, prior, seen, unchanged

positive = st.floats(1e-6, 1e9)


def one(shape: float, time: float) -> Belief:
    return Belief(np.array([shape]), np.array([time]))


@given(shape=st.floats(0.2, 50), time=st.floats(0.01, 100), since=st.floats(0.01, 100))
def test_a_change_somewhere_keeps_mean_and_variance_of_the_posterior(shape: float, time: float, since: float) -> None:
    low, middle = gammaincinv(shape, [1e-12, 0.5]) / time
    high, scale = gammainccinv(shape, 1e-13) / time, lgamma(shape) - shape * log(time)

    def moment(power: int) -> float:
        def density(rate: float) -> float:
            return rate**power * -expm1(-rate * since) * exp((shape - 1) * log(rate) - rate * time - scale)

        return sum(quad(density, *ends, limit=200)[0] for ends in ((low, middle), (middle, high)))

    whole = moment(0)
    mean = moment(1) / whole
    variance = moment(2) / whole - mean**2
    found = changed(one(shape, time), np.array([since]))
    assert found.mean[0] == pytest.approx(mean, rel=1e-4)
    assert found.shape[0] / found.time[0] ** 2 == pytest.approx(variance, rel=1e-3)


@given(shape=positive, time=positive, since=st.floats(1e-9, 1e9))
def test_a_change_within_no_time_is_a_change_that_was_counted(shape: float, time: float, since: float) -> None:
    """Also whatever the numbers, a change makes the rate greater, a visit without one smaller, and all stays finite."""
    before, gap = one(shape, time), np.array([since])
    found = changed(before, gap)
    assert all(np.isfinite(part).all() and (part > 0).all() for part in found)
    assert found.mean[0] >= before.mean[0] * (1 - 1e-9)
    assert unchanged(before, gap).mean[0] <= before.mean[0]
    if since < 1e-6 * time / (shape + 1):
        assert found.mean[0] == pytest.approx((shape + 1) / time, rel=1e-3)


@given(shape=st.floats(0.8, 1e6), time=positive)
def test_four_in_five_lie_between_the_bounds(shape: float, time: float) -> None:
    low, high = (float(bound[0]) for bound in bounds(one(shape, time)))
    assert gammainc(shape, high * time) - gammainc(shape, low * time) == pytest.approx(0.8, abs=0.06)


def test_what_is_seen_little_is_believed_to_be_like_its_domain() -> None:
    quiet, busy, unseen = prior(np.array([0.0, 100.0, 0.0]), np.array([100.0, 100.0, 0.0]), 0.5).mean
    assert quiet < 0.02 and busy > 0.9 and unseen == pytest.approx(0.5)


def test_pages_that_begin_to_change_are_believed_anew() -> None:
    common = prior(np.array([1.0]), np.array([10.0]), 0.1)
    belief, gap = common, np.array([1.0])
    for _ in range(500):
        belief = faded(unchanged(belief, gap), common)
    assert belief.mean[0] < 0.05
    for _ in range(20):
        belief = faded(changed(belief, gap), common)
    assert belief.mean[0] > 0.5


@pytest.mark.parametrize("interval", [0.3, 2.0])
@pytest.mark.parametrize("visits", [3, 10, 30])
def test_no_other_estimator_is_nearer_to_the_truth(visits: int, interval: float) -> None:
    rng = np.random.default_rng(visits)
    rates = np.exp(rng.normal(0, 1.5, 4000))
    gaps = rng.exponential(interval, (visits, len(rates)))
    change = rng.random(gaps.shape) < -np.expm1(-rates * gaps)
    *others, ours = (np.sqrt(np.mean(np.log(found / rates) ** 2)) for found in estimates(gaps, change))
    assert ours < 1.02 * min(others)


def test_visits_are_seen_each_by_itself() -> None:
    before, gaps = Belief(np.array([1.0, 2.0]), np.array([3.0, 4.0])), np.array([5.0, 6.0])
    both = seen(before, np.array([True, False]), gaps)
    assert both.shape[0] == changed(before, gaps).shape[0] and both.time[1] == unchanged(before, gaps).time[1]
