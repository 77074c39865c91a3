"""What a batch of mixed operations finds and leaves, as if applied one by one: the heart of a merge.

Called by `Drum` for one bucket; pure, and vectorised: entries are sorted by key (stably, so each key's
entries stay in order of arrival), and what an entry sees is what the entries of its group before it and
the table left behind.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask

Indices = npt.NDArray[np.intp]


class Op(IntEnum):
    """What is asked of a key."""

    CHECK = 1
    UPDATE = 2
    CHECK_UPDATE = 3


class Combine(IntEnum):
    """What an update makes of a value that is there."""

    OVERWRITE = 0
    ADD = 1


@dataclass(frozen=True, slots=True)
class Resolved:
    """The answers and the change to the table.

    By entry, in order of arrival: `found` bool[n], `values` dtype[n] or None. By distinct key that is
    to be in the table, sorted: `unique` uint64[u], `on_disk` bool[u], `places` intp[u] (where it is or
    belongs in the old table), `final` dtype[u] or None. `changed`: whether the table must be written.
    """

    found: Mask
    values: npt.NDArray[Any] | None
    unique: U64
    on_disk: Mask
    places: Indices
    final: npt.NDArray[Any] | None
    changed: bool


def resolve(
    keys: U64,
    ops: npt.NDArray[np.uint8],
    given: npt.NDArray[Any] | None,
    table: tuple[U64, npt.NDArray[Any] | None],
    combine: Combine,
) -> Resolved:
    """Apply `ops` (uint8[n]) of `keys` (uint64[n]) with values `given` to the sorted `table`."""
    old_keys, old_values = table
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_ops = keys[order], ops[order]
    starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    unique = sorted_keys[starts]
    places = np.searchsorted(old_keys, unique)
    inside = np.minimum(places, max(0, len(old_keys) - 1))
    on_disk = old_keys[inside] == unique if len(old_keys) else np.zeros(len(unique), bool)
    group = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(keys)]))

    writes = sorted_ops != Op.CHECK
    written_before = _count_before(writes, starts, group)
    found_sorted = on_disk[group] | (written_before > 0)
    found = np.empty(len(keys), bool)
    found[order] = found_sorted
    kept = on_disk | np.logical_or.reduceat(writes, starts)
    if given is None or old_values is None:
        new = kept & ~on_disk
        return Resolved(found, None, unique[kept], on_disk[kept], places[kept], None, bool(new.any()))

    base = np.zeros(len(unique), given.dtype)
    base[on_disk] = old_values[places[on_disk]]
    inserts = ~found_sorted & (sorted_ops == Op.CHECK_UPDATE)
    effects = inserts | (sorted_ops == Op.UPDATE)
    seen, final = (_added if combine is Combine.ADD else _overwritten)(effects, given[order], starts, group, base)
    seen[~found_sorted] = np.zeros(1, given.dtype)[0]
    values = np.empty(len(keys), given.dtype)
    values[order] = seen
    changed = bool((kept & ~on_disk).any() or effects.any())
    return Resolved(found, values, unique[kept], on_disk[kept], places[kept], final[kept], changed)


def _count_before(mask: Mask, starts: Indices, group: Indices) -> npt.NDArray[np.int64]:
    """How many entries of the same group before each entry have `mask` set: int64[n]."""
    before: npt.NDArray[np.int64] = np.cumsum(mask, dtype=np.int64) - mask
    return before - before[starts][group]


def _overwritten(
    effects: Mask, given: npt.NDArray[Any], starts: Indices, group: Indices, base: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What each entry sees, and each group's value at the end, when the last write wins."""
    count = len(effects)
    last = np.maximum.accumulate(np.where(effects, np.arange(count), -1))
    before = np.r_[-1, last[:-1]] if count else last
    seen = base[group]
    written = before >= starts[group]
    seen[written] = given[before[written]]
    ends = np.r_[starts[1:], count] - 1
    final = base.copy()
    ended = last[ends] >= starts
    final[ended] = given[last[ends][ended]]
    return seen, final


def _added(
    effects: Mask, given: npt.NDArray[Any], starts: Indices, group: Indices, base: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The same when writes add up."""
    amounts = np.where(effects, given, np.zeros(1, given.dtype)[0])
    total = np.cumsum(amounts, dtype=given.dtype)
    before = total - amounts
    seen = base[group] + before - before[starts][group]
    return seen, base + np.add.reduceat(amounts, starts, dtype=given.dtype)
