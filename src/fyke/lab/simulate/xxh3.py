"""xxh3-64 of many byte strings of equal length at once, in NumPy: the keys of `fyke.core.urls`, without a call each.

Follows the specification of XXH3 (xxHash, doc/xxhash_spec.md) for the three lengths that the virtual web writes: 9 to
16 bytes (a domain), 17 to 32 (a host), 33 to 64 (a URL). Seed 0, the default secret.

Invariant: equal to `xxhash.xxh3_64_intdigest` of each row.
"""

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64

Rows = npt.NDArray[np.uint8]

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
)
_MASK = (1 << 64) - 1
_PRIME64_1 = 0x9E3779B185EBCA87
_PRIME_MX1 = np.uint64(0x165667919E3779F9)
_LOW = np.uint64(0xFFFFFFFF)
_S32, _S37 = np.uint64(32), np.uint64(37)
CHUNK_ROWS = 4096  # the columns of this many rows stay in the processor's cache


def xxh3_64(rows: Rows, span: slice) -> U64:
    """Return the xxh3-64 of the bytes `span` (9 to 64) of each row of `rows` (uint8[n, m], contiguous): uint64[n]."""
    length = span.stop - span.start
    hash_words = _short if length <= 16 else _medium
    hashed = np.empty(len(rows), np.uint64)
    for first in range(0, len(rows), CHUNK_ROWS):
        words = ByteColumns(rows[first : first + CHUNK_ROWS], span.start)
        hashed[first : first + CHUNK_ROWS] = hash_words(words, length)
    return hashed


class ByteColumns:
    """Columns of 8 bytes of a matrix of bytes, by the place at which they begin."""

    def __init__(self, rows: Rows, start: int) -> None:
        self._rows = rows
        self._start = start

    def __getitem__(self, place: int) -> U64:
        """Return little-endian integers, aligned or not: uint64[n], a view."""
        return np.ndarray(len(self._rows), "<u8", self._rows, self._start + place, self._rows.strides[:1])


def _short(words: ByteColumns, length: int) -> U64:
    """Hash 9 to 16 bytes."""
    low = words[0] ^ np.uint64(_secret(24) ^ _secret(32))
    high = words[length - 8] ^ np.uint64(_secret(40) ^ _secret(48))
    mixed: U64 = low.byteswap() + high
    mixed += _folded_product(low, high)
    mixed += np.uint64(length)
    return _avalanche(mixed)


def _medium(words: ByteColumns, length: int) -> U64:
    """Hash 17 to 64 bytes."""
    mixed = _mix16(words, 0, 0)
    mixed += _mix16(words, length - 16, 16)
    if length > 32:
        mixed += _mix16(words, 16, 32)
        mixed += _mix16(words, length - 32, 48)
    mixed += np.uint64(length * _PRIME64_1 & _MASK)
    return _avalanche(mixed)


def _mix16(words: ByteColumns, place: int, secret: int) -> U64:
    low = words[place] ^ np.uint64(_secret(secret))
    high = words[place + 8] ^ np.uint64(_secret(secret + 8))
    return _folded_product(low, high)


def _folded_product(left: U64, right: U64) -> U64:
    """Return the halves of the 128-bit products, xored: schoolbook multiplication in halves of 32 bits."""
    left_low, left_high = left & _LOW, left >> _S32
    right_low, right_high = right & _LOW, right >> _S32
    cross = left_high * right_low
    middle = left_low * right_low
    middle >>= _S32
    middle += cross & _LOW
    left_low *= right_high
    middle += left_low
    left_high *= right_high
    left_high += cross >> _S32
    left_high += middle >> _S32
    left_high ^= left * right
    return left_high


def _avalanche(mixed: U64) -> U64:
    mixed ^= mixed >> _S37
    mixed *= _PRIME_MX1
    mixed ^= mixed >> _S32
    return mixed


def _secret(place: int) -> int:
    return int.from_bytes(_SECRET[place : place + 8], "little")
