"""Columns of hashes in order: sorted, and in groups of equal ones."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask

Places = npt.NDArray[np.intp]
_MOST_WRONG = 1000


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys in groups of equal ones, which are sorted; within a group in order of arrival."""

    order: Places  # [n], where each was in order of arrival
    keys: U64  # [m], of each group
    starts: Places  # [m], first place of each group in `order`
    of: Places  # [n], the group of each place in `order`

    @property
    def last(self) -> Places:
        """Last place of each group in `order`: [m]."""
        return self.starts + self.counts - 1

    @property
    def places(self) -> Places:
        """Where in `order` each key is, in order of arrival: [n]."""
        places = np.empty(len(self.order), np.intp)
        places[self.order] = np.arange(len(places))
        return places

    @property
    def counts(self) -> Places:
        """How many keys each group has: [m]."""
        return np.diff(self.starts, append=len(self.order))


def distinct(keys: U64) -> U64:
    """Each of `keys` (uint64[n]) once, sorted: uint64[m]. `np.unique` hashes them, at up to twenty times the cost."""
    ordered = np.sort(keys)
    return ordered[_first_of_equals(ordered)]


def grouped(keys: U64) -> Groups:
    """The groups of `keys` (uint64[n]), which are hashes."""
    order, ordered = stably_sorted(keys)
    first = _first_of_equals(ordered)
    starts = np.flatnonzero(first)
    return Groups(order, ordered[starts], starts, np.cumsum(first) - 1)


def _first_of_equals(ordered: U64) -> Mask:
    first = np.empty(len(ordered), np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def stably_sorted(keys: U64) -> tuple[Places, U64]:
    """`keys` (uint64[n]) in sorted order, and before them their places, equal ones in order of arrival: intp[n].

    NumPy sorts values many times faster than it argsorts, so the place takes the key's low bits. Hashes that
    differ in those bits alone are rare; those that stand wrong are sorted among themselves.
    """
    low_bits = np.uint64((1 << max(1, len(keys) - 1).bit_length()) - 1)
    packed = keys & ~low_bits
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    packed &= low_bits
    order = packed.view(np.intp)
    ordered = keys[order]
    wrong = ordered[np.flatnonzero(ordered[1:] < ordered[:-1])] & ~low_bits
    if len(wrong) > _MOST_WRONG:  # these are no hashes
        order = order[np.argsort(ordered, kind="stable")]
        return order, keys[order]
    for start, end in zip(
        np.searchsorted(ordered, wrong), np.searchsorted(ordered, wrong | low_bits, "right"), strict=True
    ):
        order[start:end] = order[start:end][np.argsort(ordered[start:end], kind="stable")]
        ordered[start:end] = keys[order[start:end]]
    return order, ordered


def nth_of_each(keys: U64) -> npt.NDArray[np.int64]:
    """How many equal keys come before each: int64[n]."""
    groups = grouped(keys)
    return groups.places - groups.starts[groups.of[groups.places]]
