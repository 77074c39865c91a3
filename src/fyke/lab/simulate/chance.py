"""Chance without a generator: every number is a pure function of the web's seed and the thing it is about.

Every module of the virtual web uses it. A web therefore needs no memory for its pages, and answers the same in any
order and after a restart.
"""

from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64
from fyke.core.mixing import GOLDEN, mixed

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

_S30, _S32 = np.uint64(30), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_UNIT = 2.0**-32
QUANTILES = 4096


def dice(seed: int, what: int, *numbers: I64) -> U64:
    """Return a hash of each row of `numbers` (int64[n] each), different for each `what`: uint64[n]."""
    start = (seed * int(GOLDEN) + what * 0xD1342543DE82EF95) & 0xFFFFFFFFFFFFFFFF
    state = np.full(len(numbers[0]), start, np.uint64)
    for column in numbers:
        state += column.view(np.uint64)
        state *= GOLDEN
        state = mixed(state)
    return state


def dice_each(rolls: U64, count: int) -> U64:
    """Return `count` hashes for each of `rolls` (uint64[n]): uint64[n, count]."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
    return mixed(rolls[:, None] + steps)


def high(rolls: U64) -> F64:
    """Return the upper half of each roll as a number in [0, 1): float64[...]."""
    return (rolls >> _S32).astype(np.float64) * _UNIT


def low(rolls: U64) -> F64:
    """Return the lower half of each roll as a number in [0, 1): float64[...]."""
    return (rolls & _LOW).astype(np.float64) * _UNIT


@lru_cache(maxsize=8)
def lognormal_table(sigma: float) -> F64:
    """Return `QUANTILES` quantiles of a lognormal with median 1: a look-up costs no logarithm."""
    normal = NormalDist()
    places = [(place + 0.5) / QUANTILES for place in range(QUANTILES)]
    return np.exp(sigma * np.array([normal.inv_cdf(place) for place in places]))


def spread(rolls: U64, sigma: float) -> F64:
    """Return a lognormal number with median 1 for each of `rolls`: float64[n]."""
    numbers: F64 = lognormal_table(sigma)[(rolls >> _S30) % np.uint64(QUANTILES)]
    return numbers
