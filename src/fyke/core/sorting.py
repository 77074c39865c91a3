"""Columns of hashes in order: sorted, in groups of equal ones, and looked up in each other."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask

Places = npt.NDArray[np.intp]
_MOST_WRONG = 1000


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys in groups of equal ones; groups are sorted, and keys within a group are in order of arrival."""

    order: Places  # [n], places in order of arrival, sorted by key
    keys: U64  # [m], of each group
    starts: Places  # [m], first place of each group in `order`
    group_of: Places  # [n], the number of the group of each place in `order`

    @property
    def last(self) -> Places:
        """Last place of each group in `order`: [m]."""
        return self.starts + self.counts - 1

    @property
    def places(self) -> Places:
        """Place in `order` of each key, in order of arrival: [n]."""
        places = np.empty(len(self.order), np.intp)
        places[self.order] = np.arange(len(places))
        return places

    @property
    def counts(self) -> Places:
        """Number of keys in each group: [m]."""
        return np.diff(self.starts, append=len(self.order))


def distinct(keys: U64) -> U64:
    """Return each of `keys` (uint64[n]) once, sorted: uint64[m]. `np.unique` hashes, at up to twenty times the cost."""
    ordered = np.sort(keys)
    return ordered[_first_of_equals(ordered)]


def grouped(keys: U64) -> Groups:
    """Return the groups of `keys` (uint64[n]), which are hashes."""
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
    """Return the places of `keys` (uint64[n]) in sorted order (intp[n], equal keys in order of arrival), and the sorted
    keys.

    NumPy sorts values many times faster than it argsorts, so the place replaces the key's low bits. Hashes that
    differ only in these bits are rare; wrongly placed ones are sorted among themselves.
    """
    low_bits = np.uint64((1 << max(1, len(keys) - 1).bit_length()) - 1)
    packed = keys & ~low_bits
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    packed &= low_bits
    order = packed.view(np.intp)
    ordered = keys[order]
    wrong = ordered[np.flatnonzero(ordered[1:] < ordered[:-1])] & ~low_bits
    if len(wrong) > _MOST_WRONG:  # the keys are not hashes
        order = order[np.argsort(ordered, kind="stable")]
        return order, keys[order]
    for start, end in zip(
        np.searchsorted(ordered, wrong), np.searchsorted(ordered, wrong | low_bits, "right"), strict=True
    ):
        order[start:end] = order[start:end][np.argsort(ordered[start:end], kind="stable")]
        ordered[start:end] = keys[order[start:end]]
    return order, ordered


def nth_of_each(keys: U64) -> npt.NDArray[np.int64]:
    """Count the equal keys before each of `keys`: int64[n]."""
    groups = grouped(keys)
    return groups.places - groups.starts[groups.group_of[groups.places]]


def among(keys: U64, known: U64) -> Mask:
    """Return which of `keys` are in `known`, which is sorted: bool[n]. It is quick also for millions."""
    if not len(known):
        return np.zeros(len(keys), bool)
    mask: Mask = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    return mask


def looked_up(keys: U64, wanted: U64) -> npt.NDArray[np.int64]:
    """Return where in the sorted `keys` each of `wanted` is: int64[n], -1 if it is not there."""
    places = np.searchsorted(keys, wanted)
    places[places == len(keys)] = 0
    return np.where(keys[places] == wanted, places, -1) if len(keys) else np.full(len(wanted), -1)
