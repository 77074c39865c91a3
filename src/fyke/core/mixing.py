"""The number by which keys are mixed: Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4)."""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 by the golden ratio, odd: multiples of it are far from each other
