"""Works out the answers and writes of one batch of operations, for all keys at once.

Called by a merge with the entries of a bucket, and by look-ups with the entries that wait for their keys. Pure: the
contents of the table come in through `lookup`.

Invariant: the result is that of a plain dict to which the entries were applied one by one in order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, Mask
from fyke.core.sorting import Groups, among, grouped

Values = npt.NDArray[Any]
Lookup = Callable[[U64], tuple[Mask, Values | None]]

LOT_ROWS = 8192  # answered at once, about


class Op(IntEnum):
    """An operation on a key."""

    CHECK = 0  # is it there, and with what value?
    UPDATE = 1  # store the value, or combine it with the stored one
    CHECK_UPDATE = 2  # check, then store the value if the key was not there


class Combine(Enum):
    """The effect of an update on a stored value."""

    OVERWRITE = "overwrite"
    ADD = "add"  # integers, or structures of integers; wraps around like NumPy's
    KEEP_FIRST = "keep first"


@dataclass(frozen=True, slots=True)
class Entries:
    """Operations in order of arrival: uint64[n], uint8[n], values [n] or None for a table without values."""

    keys: U64
    ops: npt.NDArray[np.uint8]
    values: Values | None

    def __len__(self) -> int:
        return len(self.keys)

    def of_keys(self, keys: U64) -> "Entries":
        """Return the entries whose key is one of `keys` (sorted, at least one)."""
        mask = self.keys == keys[0] if len(keys) == 1 else among(self.keys, keys)
        values = None if self.values is None else self.values[mask]
        return Entries(self.keys[mask], self.ops[mask], values)


def joined_entries(parts: list[Entries]) -> Entries:
    """Join entries, in order."""
    if len(parts) == 1:
        return parts[0]
    values = [part.values for part in parts if part.values is not None]
    return Entries(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.ops for part in parts]),
        np.concatenate(values) if values else None,
    )


@dataclass(frozen=True, slots=True)
class Resolved:
    """Answers in order of arrival, and the keys and values to write, sorted by key without repeats."""

    found: Mask  # bool[n]
    values: Values | None  # [n], zero if not found
    written: U64  # uint64[m]: keys that are new or have a new value
    written_values: Values | None  # [m]
    new: int  # how many of the written keys were not in the table


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to `check` and `check_update`, in order of arrival."""

    keys: U64  # uint64[n]
    found: Mask  # bool[n]: was the key there when the operation's turn came?
    values: Values | None  # [n], zero if not found; None for a drum without values
    aux: pa.RecordBatch | None  # n rows; None for a drum without aux
    bucket: int = 0  # a key comes in one bucket only, and buckets come one after the other


def resolve(entries: Entries, lookup: Lookup, combine: Combine) -> Resolved:
    """Return the answers and writes of `entries` against the table behind `lookup`: (found bool[m], values[m])."""
    groups = grouped(entries.keys)
    stored, stored_values = lookup(groups.keys)
    if entries.values is None and (entries.ops == Op.CHECK_UPDATE).all():
        return _resolve_uniform(groups, stored)
    return _resolve_mixed(entries, groups, stored, stored_values, combine)


def _resolve_uniform(groups: Groups, stored: Mask) -> Resolved:
    """Resolve URL-seen's case: only CHECK_UPDATE, no values. For each key, at most the first entry is not found."""
    found = np.ones(len(groups.order), np.bool_)
    found[groups.order[groups.starts]] = stored
    written = groups.keys[~stored]
    return Resolved(found, None, written, None, len(written))


def _resolve_mixed(
    entries: Entries,
    groups: Groups,
    stored: Mask,
    stored_values: Values | None,
    combine: Combine,
) -> Resolved:
    ops = entries.ops[groups.order]
    writes = ops != Op.CHECK
    found = stored[groups.group_of] | (_count_before(writes, groups) > 0)
    effective = (ops == Op.UPDATE) | ((ops == Op.CHECK_UPDATE) & ~found)
    if combine is Combine.KEEP_FIRST or entries.values is None:
        effective = writes & ~found
    touched = np.logical_or.reduceat(effective, groups.starts) if len(ops) else stored
    in_order = found[groups.places]
    if entries.values is None or stored_values is None:
        return Resolved(in_order, None, groups.keys[touched], None, int((touched & ~stored).sum()))
    before = stored_values.copy()
    before[~stored] = np.zeros(1, before.dtype)
    work = _added if combine is Combine.ADD else _overwritten
    seen, final = work(entries.values.take(groups.order), effective, groups, before)
    touched &= ~stored | _differ(before, final)
    return Resolved(
        in_order,
        seen.take(groups.places),
        groups.keys[touched],
        final.compress(touched),
        int((touched & ~stored).sum()),
    )


def _count_before(mask: Mask, groups: Groups) -> npt.NDArray[np.int64]:
    """Count for each entry the earlier entries of its key that have `mask` set."""
    before: npt.NDArray[np.int64] = np.cumsum(mask, dtype=np.int64) - mask
    return before - before[groups.starts][groups.group_of]


def _overwritten(values: Values, effective: Mask, groups: Groups, before: Values) -> tuple[Values, Values]:
    """Return the value that each entry sees [n] and the final values [m], if the last effective entry counts."""
    last = np.maximum.accumulate(np.where(effective, np.arange(len(values)), -1))
    earlier = np.empty_like(last)
    earlier[:1] = -1
    earlier[1:] = last[:-1]
    written, latest = np.concatenate([before, values]), last[groups.last]
    seen = np.where(earlier >= groups.starts[groups.group_of], len(before) + earlier, groups.group_of)
    final = np.where(latest >= groups.starts, len(before) + latest, np.arange(len(before)))
    return written.take(seen), written.take(final)


def _added(values: Values, effective: Mask, groups: Groups, before: Values) -> tuple[Values, Values]:
    """Return the same values if effective entries are added up; a structure is added field by field."""
    if values.dtype.names is not None:
        seen, final = np.empty(len(values), values.dtype), np.empty(len(before), values.dtype)
        for name in values.dtype.names:
            seen[name], final[name] = _added(values[name], effective, groups, before[name])
        return seen, final
    added = np.where(effective, values, np.zeros(1, values.dtype))
    total = np.cumsum(added, dtype=values.dtype)
    earlier = total - added
    base = before - earlier[groups.starts]
    return base[groups.group_of] + earlier, base + total[groups.last]


def _differ(one: Values, other: Values) -> Mask:
    """Return where two arrays of one dtype differ in any byte: bool[n]."""
    size = one.dtype.itemsize
    left, right = (np.ascontiguousarray(values).view(np.uint8).reshape(-1, size) for values in (one, other))
    differ: Mask = (left != right).any(axis=1)
    return differ


def addable(dtype: np.dtype[Any]) -> bool:
    """Return whether `Combine.ADD` is exact for values of `dtype`."""
    if dtype.names is not None:
        return all(addable(dtype[name]) for name in dtype.names)
    return bool(np.issubdtype(dtype, np.integer))


def answered(
    entries: Entries, resolved: Resolved, start: int, aux: pa.RecordBatch | None, bucket: int
) -> Iterator[Answers]:
    """Yield the answers to `entries`, which begin at `start` in `resolved`, in lots."""
    asked = np.flatnonzero(entries.ops != Op.UPDATE)
    for begin in range(0, len(asked), LOT_ROWS):
        lot = asked[begin : begin + LOT_ROWS]
        values = None if resolved.values is None else resolved.values.take(lot + start)
        of_lot = None if aux is None else aux.slice(begin, LOT_ROWS)
        yield Answers(entries.keys[lot], resolved.found[lot + start], values, of_lot, bucket)
