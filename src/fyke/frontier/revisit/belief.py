"""How often do pages change? A belief for each, learned from visits.

Changes of a page count as a Poisson process. The belief of its rate is a Gamma distribution, two numbers a page,
`shape` and `time`: as if `shape` changes had been counted in `time`. Each visit sharpens it, however long after the one
before. If there was no change since, the result is a Gamma distribution. If there were some, nobody knows how many or
when; the result is another distribution, and the Gamma with its mean and variance is kept (moment matching). Histories
are not needed: Cho and Garcia-Molina (Estimating frequency of change, ACM TOIT 2003) keep them, or ask for even
intervals.

A page with few visits is believed to be like others of its domain (`prior`). Because pages have their seasons, each
visit gives a little of the belief back to the prior (`faded`).

Invariant: shape and time are positive and finite, whatever is seen. All arrays are float64[n], times in any one unit.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]

PRIOR_SHAPE = 0.8  # rates of a domain's pages differ more than exponentially distributed ones
KEPT = 0.95  # of a belief, from one visit to the next
LEAST = 1e-12
FOUR_IN_FIVE = 1.2816  # standard deviations of a normal distribution to either side


class Belief(NamedTuple):
    """Gamma distributions of the rates of n pages: mean shape / time, variance shape / time²."""

    shape: Column
    time: Column

    @property
    def mean(self) -> Column:
        """Changes in a unit of time."""
        return self.shape / self.time


def bounds(belief: Belief) -> tuple[Column, Column]:
    """Return the rates between which a page's lies, four times out of five.

    The logarithm of a Gamma variable has the mean digamma(shape) - ln(time) and the variance trigamma(shape). Both
    functions are taken by their asymptotic series at shape + 1, where it is close.
    """
    shape, time = belief
    on = shape + 1.0
    mean = np.log(on) - 1 / (2 * on) - 1 / (12 * on**2) - 1 / shape - np.log(time)
    deviation = np.sqrt(1 / on + 1 / (2 * on**2) + 1 / (6 * on**3) + 1 / shape**2)
    return np.exp(mean - FOUR_IN_FIVE * deviation), np.exp(mean + FOUR_IN_FIVE * deviation)


def prior(changes: Column, time: Column, mean: float) -> Belief:
    """Return the belief of pages that were never visited again, of domains with `changes` seen in `time` of all their
    pages. `mean`, the rate over the whole crawl, counts as one change."""
    rate = (changes + 1.0) / (time + 1.0 / mean)
    shape = np.full(len(rate), PRIOR_SHAPE)
    return Belief(shape, shape / rate)


def unchanged(belief: Belief, since: Column) -> Belief:
    """Return the belief after a visit, `since` after the one before, that found no change."""
    return Belief(belief.shape, belief.time + since)


def changed(belief: Belief, since: Column) -> Belief:
    """Return the belief after a visit, `since` after the one before, that found one change or more.

    With L = ln(1 + since / time), the k-th moment of the rate is Gamma's, times the quotient of 1 - e^-(shape + k)L and
    1 - e^-shape L.
    """
    shape, time = belief
    span = np.log1p(np.maximum(since, LEAST) / time)
    least = np.expm1(-shape * span)
    first = shape / time * np.expm1(-(shape + 1) * span) / least
    second = shape * (shape + 1) / time**2 * np.expm1(-(shape + 2) * span) / least
    variance = np.maximum(second - first**2, LEAST * first**2)
    return Belief(first**2 / variance, first / variance)


def faded(belief: Belief, before: Belief) -> Belief:
    """Return `belief` with a part 1 - `KEPT` given back to the belief `before` anything was seen."""
    return Belief(*(KEPT * own + (1 - KEPT) * common for own, common in zip(belief, before, strict=True)))


def seen(belief: Belief, change: npt.NDArray[np.bool_], since: Column) -> Belief:
    """Return the belief after visits, `since` after those before, that found a change where `change` (bool[n])."""
    true, false = changed(belief, since), unchanged(belief, since)
    return Belief(*(np.where(change, one, other) for one, other in zip(true, false, strict=True)))
