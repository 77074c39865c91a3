"""What is a visit worth? The index by which pages are visited.

Let D(t) be the expected cost a second of a copy that is t old, w the weight of its page. A visit at age t is worth

    U(t) = w (t D(t) - integral of D from 0 to t)

Visiting each page when U reaches the same number is optimal among all schedules with as many visits (Olston and Pandey,
Recrawl scheduling based on information longevity, WWW 2008, equation 4). So a policy is a choice of D, and a limited
number of visits goes where U is greatest.

Ours is the harmonic staleness of Kolobov et al. (Staying up to date with online content changes using reinforcement
learning for scheduling, NeurIPS 2019): the n-th change missed costs 1/n. With changes at the rate r, U(t) = w/r (x - 1
+ e^-x) at x = rt. It differs from their LambdaCrawl in two ways. Intervals are even and not random, which is cheaper
for any convex D. The rate is not known: U is the mean over its belief (`belief`), which has a closed form. No page is
given up: U grows without bound, whatever is believed.

Invariant: U is 0 for a new copy, and grows with its age.
"""

import numpy as np

from fyke.frontier.revisit.belief import Belief, Column


def worth(belief: Belief, weight: Column, age: Column) -> Column:
    """Return U of copies that are `age` old, float64[n]."""
    return weight * (age - _wanting(belief, age))


def _wanting(belief: Belief, age: Column) -> Column:
    """Return the mean of (1 - e^-(rate age)) / rate: the integral of ((time / (time + s)) ^ shape) from 0 to `age`."""
    shape, time = belief
    span = np.log1p(age / time)
    power = (1.0 - shape) * span
    near = np.abs(power) < 1e-6  # shape 1, or a short time: the quotient would lose all digits, so the series
    ratio = np.where(near, 1.0 + power / 2, np.expm1(power) / np.where(near, 1.0, power))
    wanting: Column = time * span * ratio
    return wanting
