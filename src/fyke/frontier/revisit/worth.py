"""What is a visit worth? The index by which pages are visited, and the multiplier that makes them fit a budget.

Let D(t) be the expected cost a second of a copy that is t old, w the weight of its page. A visit at age t is worth

    U(t) = w (t D(t) - integral of D from 0 to t)

and to visit each page when U reaches the same number, the multiplier, is optimal among all schedules with as many
visits (Olston and Pandey, Recrawl scheduling based on information longevity, WWW 2008, equation 4). So a policy is a
choice of D, and one number for the whole crawl.

Ours is the harmonic staleness of Kolobov et al. (Staying up to date with online content changes using reinforcement
learning for scheduling, NeurIPS 2019): the n-th change missed costs 1/n. With changes at the rate r, U(t) = w/r (x - 1
+ e^-x) at x = rt. It differs from their LambdaCrawl in that intervals are even and not random, which is cheaper for any
convex D, and in that the rate is not taken for known: U is the mean over what is believed of it (`belief`), which has a
closed form. No page is given up: U grows without bound, whatever is believed.

Invariant: U is 0 for a new copy, and grows with its age.
"""

import numpy as np

from fyke.frontier.revisit.belief import Belief, Column

NEWTON_STEPS = 8
BISECTIONS = 60


def worth(belief: Belief, weight: Column, age: Column) -> Column:
    """U of copies that are `age` old, float64[n]."""
    return weight * (age - _wanting(belief, age))


def _wanting(belief: Belief, age: Column) -> Column:
    """The mean of (1 - e^-(rate age)) / rate: the integral of ((time / (time + s)) ^ shape) from 0 to `age`."""
    shape, time = belief
    span = np.log1p(age / time)
    power = (1.0 - shape) * span
    near = np.abs(power) < 1e-6  # shape 1, or a short time: the series, where the quotient would lose all digits
    ratio = np.where(near, 1.0 + power / 2, np.expm1(power) / np.where(near, 1.0, power))
    wanting: Column = time * span * ratio
    return wanting


def interval(belief: Belief, weight: Column, multiplier: float) -> Column:
    """The age at which a visit is worth `multiplier`, float64[n], by Newton's method: U is convex."""
    shape, time = belief
    target = multiplier / weight
    age = np.sqrt(2.0 * target * time / shape)  # where U is near its parabola; it lies below that, so this is too early
    for _ in range(NEWTON_STEPS):
        value = age - _wanting(belief, age)
        slope = -np.expm1(-shape * np.log1p(age / time))
        age = np.maximum(age + (target - value) / slope, age / 2)
    return age


def multiplier(belief: Belief, weight: Column, visits: float) -> float:
    """The multiplier at which pages are visited `visits` times in a unit of time, all together."""
    low, high = 1e-300, 1e300
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low) * np.sqrt(high))
        if np.sum(1.0 / interval(belief, weight, middle)) > visits:
            low = middle
        else:
            high = middle
    return float(np.sqrt(low) * np.sqrt(high))
