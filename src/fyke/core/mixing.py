"""How keys are mixed, so that those that are alike lie far from each other."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64

# 2^64 by the golden ratio, odd: multiples of it are far from each other. Fibonacci hashing (Knuth, The Art of Computer
# Programming 3, section 6.4).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(numbers: npt.NDArray[Any]) -> U64:
    """Return each number as 64 bits that look random, in a new array: uint64[...]. It is the last step of splitmix64
    (Steele, Lea and Flood, OOPSLA 2014)."""
    x: U64 = numbers.astype(np.uint64)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
