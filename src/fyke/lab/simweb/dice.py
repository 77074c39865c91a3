"""Chance without a generator: every draw is a hash of (seed, tag, number).

Every module that shapes the web calls it. Invariant: equal arguments give equal bits on every machine, in every
process and in any order; nothing is remembered.
"""

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, TypeVar

import xxhash

Kind = TypeVar("Kind")

SCALE = 1 << 20


def bits(seed: int, tag: bytes, number: int) -> int:
    """Return 64 even bits for (`seed`, `tag`, `number`)."""
    return xxhash.xxh3_64_intdigest(tag + number.to_bytes(8, "little"), seed)


def words(seed: int, tag: bytes, number: int, count: int) -> tuple[int, ...]:
    """Return `count` even 32-bit integers for (`seed`, `tag`, `number`)."""
    key = struct.pack("<QQ", seed, number) + tag
    return struct.unpack(f"<{count}I", hashlib.shake_128(key).digest(4 * count))


class Chooser(Generic[Kind]):
    """A choice among kinds by shares; the remaining share chooses `otherwise`."""

    def __init__(self, shares: Sequence[tuple[Kind, float]], otherwise: Kind) -> None:
        chosen = [(kind, share) for kind, share in shares if share > 0]
        total = sum(share for _, share in chosen)
        if total > 1.000001:
            raise ValueError(f"shares add up to {total:.3f}; they must stay within 1")
        self._edges = [round(edge * SCALE) for edge in accumulate(share for _, share in chosen)]
        self._kinds = [kind for kind, _ in chosen] + [otherwise]
        self.constant = not chosen

    def pick(self, draw: int) -> Kind:
        """Return the kind that `draw` chooses; only 20 bits of `draw` count."""
        if self.constant:
            return self._kinds[0]
        return self._kinds[bisect_right(self._edges, draw % SCALE)]
