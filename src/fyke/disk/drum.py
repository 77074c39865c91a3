"""The memory of the crawl: a sorted table on disk, asked and changed in batches.

DRUM, Disk Repository with Update Management: IRLbot (Lee et al., WWW 2008), section 4.3 and Figure 1. Keys are
uniform 64-bit hashes, with values of one fixed size if wanted. `check`, `update` and `check_update` only gather
operations; `merge` answers them all in one pass. URL-seen, content-seen, the robots cache and the in-degree are
drums. Frontier stages own them and use them on the event loop. Ours differs from the paper:

- The table is cut into parts by key, and a bucket holds the operations that wait for one part. A part that grows over
  `TableSizes.part` keys is split: a small crawl has one small file, a huge one many. A merge leaves a part without
  news alone.
- Operations that fit in memory are merged from memory. Buckets go to disk only when memory is full, all in one
  sequential write (the paper keeps two open files a bucket), so a checkpoint has few files to sync. For URLs, buckets
  hold only the keys: the text stays in order of arrival, as in Mercator-B, because moving it costs more. A table that
  is small for the memory has one bucket; then the Drum is Mercator-B.
- A merge writes to young runs in memory, one above each part. A part is rewritten only when its run is large enough.
  So a merge for a starving fetcher costs a few reads and not the table. A merge of a full bucket reads the table
  like the paper's, and writes less of it. A part too large to be kept in memory after its look-up is read again, from
  the page cache, when it is folded.
- The disk space for buckets, the paper's D, is the size of the table (its Table 3), or twice the memory if that
  is more: `full` says when it is used up. Above a larger table the aux is packed (`fyke.disk.packed`): more operations
  wait in the same space, and the disk moves half the bytes. A smaller table and its operations are in the system's
  page cache, and packing would take longer than it saves.

Invariant: the answers are those of a plain dict to which the operations were applied one by one in order of arrival.
Bounded: of `memory_bytes`, waiting operations and their merge take a quarter, the young runs a quarter, and the
copies that a spill makes the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import NO_KEYS, U64, Mask
from fyke.core.closing import Closing
from fyke.core.sorting import distinct, grouped
from fyke.disk.operations import (
    Answers,
    Combine,
    Entries,
    Op,
    Resolved,
    Values,
    addable,
    answered,
    joined_entries,
    resolve,
)
from fyke.disk.part import TABLE_SIZES, TableSizes
from fyke.disk.pending import Pending, in_lots
from fyke.disk.runs import Batch, Run
from fyke.disk.store import State, Store
from fyke.disk.table import Table

MOST_RUNS = 256
PASS_SHARE = 4  # keys of a table for each row that a merge has memory for; a table up to that size has one bucket
SMALL_SHARE = 2  # times the memory
ENTRY_WORK_BYTES = 64  # taken while an entry is merged, without its value


@dataclass(frozen=True, slots=True)
class DrumStatistics:
    """The table now, and the work since the drum was opened."""

    keys: int
    parts: int
    young_keys: int
    pending: int
    pending_bytes: int
    merges: int
    folds: int
    bytes_read: int
    bytes_written: int
    table_bytes_read: int  # bytes read of the table; the other bytes read are of waiting operations
    table_bytes_written: int


class Drum(Closing):
    """The table `name` of a store.

    `value` is the dtype of the values, plain or structured, None for keys alone. `aux` is the schema of the rows that
    come with checks and go back with their answers. `state` is the result of `state()` at the checkpoint from which
    the store was opened. Raises ValueError for `Combine.ADD` without integers.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        state: State | None = None,
        *,
        value: npt.DTypeLike | None = None,
        aux: pa.Schema | None = None,
        combine: Combine = Combine.OVERWRITE,
        memory_bytes: int = 64 << 20,
        sizes: TableSizes = TABLE_SIZES,
    ) -> None:
        self.name = name
        self._dtype = None if value is None else np.dtype(value)
        if combine is Combine.ADD and (self._dtype is None or not addable(self._dtype)):
            raise ValueError(f"drum {name!r}: only integers are added, not {self._dtype}")
        self._aux = aux
        self._combine = combine
        self._memory_bytes = memory_bytes
        saved = state or {}
        self._table = Table(store, name, self._dtype, saved, memory_bytes=memory_bytes, sizes=sizes)
        self._pending = Pending(store, name, self._dtype, aux, saved.get("pending", {}))
        self._merging = False
        self._merges = 0

    def __repr__(self) -> str:
        return f"Drum({self.name!r}, {len(self)} keys in {self._table.parts} parts, {self.pending} pending)"

    def __len__(self) -> int:
        """Return the number of keys in the table, without those that wait for a merge."""
        return len(self._table)

    @property
    def pending(self) -> int:
        """Number of operations that wait for a merge."""
        return len(self._pending)

    @property
    def pending_bytes(self) -> int:
        """Bytes of the waiting operations, in memory and in files."""
        return self._pending.size_bytes

    @property
    def full(self) -> bool:
        """True if a merge is due: enough operations wait, or more would not fit the merge's memory."""
        if not self.pending or (not self._pending.runs and self._memory_load < self._spill_bytes * 3 // 4):
            return False
        return (
            self._pending.size_bytes >= max(self._table.size_bytes, self._small_bytes)
            or self._pending.runs.rows >= self._memory_bytes // 8
            or len(self._pending.runs) >= MOST_RUNS
            or self._pending.runs.largest_bucket >= self._most_rows
        )

    # --- operations

    def check(self, keys: U64, aux: pa.RecordBatch | None = None) -> None:
        """Ask whether `keys` (uint64[n]) are there; `aux` has n rows."""
        self.submit(keys, np.full(len(keys), Op.CHECK, np.uint8), aux=aux)

    def update(self, keys: U64, values: Values | None = None) -> None:
        """Store `keys` (uint64[n]) with `values` [n], combined with the stored ones. Has no answer."""
        self.submit(keys, np.full(len(keys), Op.UPDATE, np.uint8), values)

    def check_update(self, keys: U64, values: Values | None = None, aux: pa.RecordBatch | None = None) -> None:
        """Ask for `keys` (uint64[n]), and store missing keys with `values` [n]."""
        self.submit(keys, np.full(len(keys), Op.CHECK_UPDATE, np.uint8), values, aux)

    def submit(
        self,
        keys: U64,
        ops: npt.NDArray[np.uint8],
        values: Values | None = None,
        aux: pa.RecordBatch | None = None,
    ) -> None:
        """Add operations of all kinds: `keys` uint64[n], `ops` uint8[n] (`Op`), `values` [n], `aux` n rows.

        The aux of an update is dropped. The arrays are kept and must not change. Raises ValueError if an array is
        missing, not expected, or of another length.
        """
        if not len(keys):
            return
        entries = Entries(np.ascontiguousarray(keys, np.uint64), ops, self._checked_values(keys, ops, values))
        self._pending.add(Batch(entries, self._checked_aux(ops, aux)))
        if self._memory_load >= self._spill_bytes and not self._merging:
            self._spill()

    def _spill(self) -> None:
        self._pending.spill(self._bucket_lows(), pack=self._table.size_bytes > self._small_bytes)

    def _bucket_lows(self) -> U64:
        """Return the first keys of the buckets: one bucket a part, or one for all parts if a merge passes over the
        table in less time than sorting a full memory into buckets takes. Existing runs decide for later ones."""
        runs = self._pending.runs
        one = runs.of_one_bucket if runs else len(self) <= PASS_SHARE * self._most_rows
        return self._table.lows[:1] if one else self._table.lows

    @property
    def _most_rows(self) -> int:
        """Number of rows of a bucket that fit the memory of a merge."""
        return self._memory_bytes // 2 // self._entry_work_bytes

    @property
    def _small_bytes(self) -> int:
        """Size below which the system keeps the table and its waiting operations in the page cache."""
        return SMALL_SHARE * self._memory_bytes

    @property
    def _spill_bytes(self) -> int:
        return self._memory_bytes // 4

    @property
    def _entry_work_bytes(self) -> int:
        return ENTRY_WORK_BYTES + (0 if self._dtype is None else 4 * self._dtype.itemsize)

    @property
    def _memory_load(self) -> int:
        """Bytes that wait in memory, plus the bytes that their merge will take."""
        return self._pending.memory_bytes + self._pending.memory_rows * self._entry_work_bytes

    def _checked_values(self, keys: U64, ops: npt.NDArray[np.uint8], values: Values | None) -> Values | None:
        if self._dtype is None:
            if values is not None:
                raise ValueError(f"{self!r} holds no values")
            return None
        if values is None:
            if (ops != Op.CHECK).any():
                raise ValueError(f"{self!r} needs a value for each key it stores")
            return np.zeros(len(keys), self._dtype)
        values = np.ascontiguousarray(values, self._dtype)
        if len(values) != len(keys) or len(ops) != len(keys):
            raise ValueError(f"{len(keys)} keys, {len(ops)} operations, {len(values)} values")
        return values

    def _checked_aux(self, ops: npt.NDArray[np.uint8], aux: pa.RecordBatch | None) -> pa.RecordBatch | None:
        asked = ops != Op.UPDATE
        if (aux is None) != (self._aux is None) and (aux is not None or asked.any()):
            raise ValueError(f"{self!r} has aux of {self._aux}, and was given {None if aux is None else aux.schema}")
        if aux is None:
            return None
        if aux.num_rows != len(ops) or aux.schema != self._aux:
            raise ValueError(f"{aux.num_rows} rows of {aux.schema} for {len(ops)} keys and {self._aux}")
        if asked.all():
            return aux
        return aux.filter(pa.array(asked)) if asked.any() else None

    # --- merge

    def merge(self) -> Iterator[Answers]:
        """Carry out all waiting operations and yield the answers. Must be iterated to its end; nothing happens before.

        Answers come in order of arrival if all operations waited in memory, or were the same operation of a drum
        without values. Otherwise they come bucket by bucket, in order of arrival within each. Operations submitted
        meanwhile wait in memory for the next merge.
        """
        return self._merge(with_keys=True)

    def _merge(self, *, with_keys: bool) -> Iterator[Answers]:
        if self._merging:
            raise RuntimeError(f"{self!r}: the last merge was not read to its end")
        if not self.pending:
            return
        self._merging = True
        self._merges += 1
        if self._pending.runs:
            self._spill()
            yield from self._merge_runs(with_keys=with_keys)
        else:
            batches = self._pending.take_memory()
            resolved = self._apply(joined_entries([batch.entries for batch in batches]))
            self._table.fold()
            start = 0
            for batch in in_lots(batches):
                yield from answered(batch.entries, resolved, start, batch.aux, 0)
                start += len(batch.entries)
        self._table.forget()
        self._merging = False

    def merge_unique(self) -> Iterator[pa.RecordBatch]:
        """Merge as URL-seen does: yield the aux of keys that were not found, in batches of at least a row."""
        for answers in self._merge(with_keys=False):
            assert answers.aux is not None
            if answers.found.all():
                continue
            yield answers.aux.filter(pa.array(~answers.found)) if answers.found.any() else answers.aux

    def settle(self) -> None:
        """Merge without answers."""
        for _ in self._merge(with_keys=False):
            pass

    def _merge_runs(self, *, with_keys: bool) -> Iterator[Answers]:
        lows = self._bucket_lows()
        self._pending.runs.align(lows)
        runs = list(self._pending.runs)
        found = [np.empty(run.rows[-1] if run.in_order else 0, np.bool_) for run in runs]  # by bucket
        for bucket, low in enumerate(lows.tolist()):
            pieces = [(place, self._pending.runs.entries(run, bucket)) for place, run in enumerate(runs)]
            pieces = [(place, entries) for place, entries in pieces if len(entries)]
            if not pieces:
                continue
            resolved = self._apply(joined_entries([entries for _, entries in pieces]))
            self._table.fold(low if len(lows) > 1 else None)
            start = 0
            for place, entries in pieces:
                run, end = runs[place], start + len(entries)
                if run.in_order:
                    found[place][run.rows[bucket] : run.rows[bucket + 1]] = resolved.found[start:end]
                else:
                    yield from answered(entries, resolved, start, self._pending.runs.aux(run, bucket), bucket)
                start = end
        for run, mask in zip(runs, found, strict=True):
            if run.in_order:
                yield from self._answers_in_order(run, mask, with_keys=with_keys)
        self._pending.runs.drop(runs)

    def _answers_in_order(self, run: Run, found: Mask, *, with_keys: bool) -> Iterator[Answers]:
        start = 0
        keys = self._pending.runs.keys_in_order(run) if with_keys else NO_KEYS
        for there, aux in self._pending.runs.in_order(run, found):
            yield Answers(keys[start : start + len(there)], there, None, aux)
            start += len(there)

    def _apply(self, entries: Entries) -> Resolved:
        resolved = resolve(entries, self._table.lookup, self._combine)
        self._table.put(resolved)
        return resolved

    # --- look-ups

    def contains(self, keys: U64) -> Mask:
        """Return which `keys` (uint64[n]) would be found after all waiting operations: bool[n]. Merges nothing.

        Raises RuntimeError during a merge.
        """
        return self._peek(keys).found if len(keys) else np.zeros(0, np.bool_)

    def values_of(self, keys: U64) -> Values:
        """Return the values [n] of `keys` (uint64[n]) after all waiting operations, zero if not found. Merges nothing.

        Raises RuntimeError during a merge, and for a drum without values.
        """
        if self._dtype is None:
            raise RuntimeError(f"{self!r} holds no values")
        values = self._peek(keys).values if len(keys) else None
        return np.zeros(0, self._dtype) if values is None else values

    def stored(self, keys: U64) -> Values:
        """Return the values [n] as of the last merge. Waiting operations, which may be many, are not read: the caller
        knows which keys have some."""
        if self._merging or self._dtype is None:
            raise RuntimeError(f"{self!r} is in a merge, or holds no values")
        groups = grouped(keys)
        values = self._table.lookup(groups.keys, keep=False)[1]
        assert values is not None
        return values.take(groups.group_of[groups.places])

    def get(self, key: int) -> tuple[bool, Any]:
        """Return whether `key` would be found after all waiting operations, and its value or None. Merges nothing.

        Raises RuntimeError during a merge.
        """
        peeked = self._peek(np.array([key], np.uint64))
        found = bool(peeked.found[0])
        return found, peeked.values[0] if found and peeked.values is not None else None

    def _peek(self, keys: U64) -> Resolved:
        """Return the answers [n] to a check of `keys` behind all waiting operations."""
        if self._merging:
            raise RuntimeError(f"{self!r}: read the merge to its end before a look-up")
        ops = np.full(len(keys), Op.CHECK, np.uint8)
        asked = Entries(keys, ops, None if self._dtype is None else np.zeros(len(keys), self._dtype))
        unique = distinct(keys)
        entries = [*(self._pending.of_keys(unique, self._table.places(unique)) if self.pending else []), asked]
        resolved = resolve(joined_entries(entries), self._table.lookup, self._combine)
        values = None if resolved.values is None else resolved.values[-len(keys) :]
        self._table.forget()
        return Resolved(resolved.found[-len(keys) :], values, unique[:0], None, 0)

    def scan_pending(self) -> Iterator[tuple[U64, npt.NDArray[np.uint8], pa.RecordBatch | None]]:
        """Yield the waiting operations: keys uint64[n], operations uint8[n], and the aux of all except updates."""
        for batch in self._pending.scan():
            yield batch.entries.keys, batch.entries.ops, batch.aux

    # --- life

    def state(self) -> State:
        """Save all that a restart needs in files and return their names. Raises RuntimeError during a merge."""
        if self._merging:
            raise RuntimeError(f"{self!r}: read the merge to its end before a checkpoint")
        return {**self._table.state(), "pending": self._pending.state()}

    def statistics(self) -> DrumStatistics:
        return DrumStatistics(
            keys=len(self._table),
            parts=self._table.parts,
            young_keys=self._table.young_keys,
            pending=self.pending,
            pending_bytes=self.pending_bytes,
            merges=self._merges,
            folds=self._table.folds,
            bytes_read=self._table.bytes_read + self._pending.bytes_read,
            bytes_written=self._table.bytes_written + self._pending.bytes_written,
            table_bytes_read=self._table.bytes_read,
            table_bytes_written=self._table.bytes_written,
        )

    def close(self) -> None:
        """Close the files. Changes after the last `state` are lost with the process."""
        self._pending.close()
