"""The runs of a drum: operations that wait for its next merge and did not fit into memory.

A run is one file of entries and one of aux, both laid out by bucket; a bucket has the entries of one part of the
table. In a drum without values, if all spilled entries are the same operation, as in URL-seen, the aux stays in order
of arrival. Each entry keeps its place in it. Text is then written and read once, in sequence, and only keys are moved.
Runs are written when memory is full, read by bucket in a merge, and dropped after it.

Invariant: while there are runs, the parts of the table do not change. So bucket n of every run is part n, or the one
bucket of every run is all parts.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, Mask
from fyke.core.sorting import Places
from fyke.disk import frames, packed
from fyke.disk.files import Bytes, Reader, raw
from fyke.disk.operations import Entries, Op, joined_entries
from fyke.disk.part import KEY
from fyke.disk.store import State, Store

PREFIX_BITS = 16
PLACE = np.dtype("<u4")
MESSAGE_ROWS = 1 << 14
WRITE_BYTES = 1 << 20  # gathered for one write, which takes half the time of writes in pieces


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries, and the aux [m] of the m entries that are not plain updates."""

    entries: Entries
    aux: pa.RecordBatch | None

    @property
    def nbytes(self) -> int:
        entries = self.entries
        values = 0 if entries.values is None else entries.values.nbytes
        aux = 0 if self.aux is None else self.aux.nbytes
        return int(entries.keys.nbytes + entries.ops.nbytes + values + aux)


class EntryFormat:
    """The layout of entries in a file: key, operation, and the value of `dtype` if the drum has values."""

    def __init__(self, dtype: np.dtype[Any] | None) -> None:
        fields: list[Any] = [("key", "<u8"), ("op", "u1")]
        self.record = np.dtype(fields if dtype is None else [*fields, ("value", dtype)])
        self.has_values = dtype is not None

    def records(self, entries: Entries) -> Any:
        """Return entries as a structured array [n]."""
        records = np.empty(len(entries), self.record)
        records["key"], records["op"] = entries.keys, entries.ops
        if self.has_values:
            records["value"] = entries.values
        return records

    def entries(self, records: Any) -> Entries:
        """Return the entries in a structured array [n]."""
        values = np.ascontiguousarray(records["value"]) if self.has_values else None
        return Entries(np.ascontiguousarray(records["key"]), np.ascontiguousarray(records["op"]), values)


@dataclass(frozen=True, slots=True)
class Run:
    """A spilled batch; bucket n is rows `rows[n]` to `rows[n + 1]` and the message from byte `aux[n]` on.

    In a run in order of arrival all entries are the operation `op`. The entries' file holds the keys by bucket, then
    the place of each key in the aux (no places if there is one bucket), and `aux` has the ends of the messages.

    Arrays take 16 bytes a bucket; the buckets of all runs of a large table are too many for objects.
    """

    entries_file: str
    aux_file: str
    rows: "array[int]"
    aux: "array[int]"
    packed: bool  # whether the aux is, see `fyke.disk.packed`
    op: int  # the operation of all entries if the aux is in order of arrival, or -1

    @classmethod
    def of(
        cls, entries_file: str, aux_file: str, rows: Sequence[int], aux: Sequence[int], packed: bool, op: int
    ) -> Self:
        return cls(entries_file, aux_file, array("q", rows), array("q", aux), packed, op)

    @property
    def in_order(self) -> bool:
        """True if the aux is in order of arrival."""
        return self.op >= 0

    def state(self) -> State:
        return {
            "entries_file": self.entries_file,
            "aux_file": self.aux_file,
            "rows": self.rows.tolist(),
            "aux": self.aux.tolist(),
            "packed": self.packed,
            "op": self.op,
        }


class Runs:
    """The runs of the drum `name` in order of arrival, with aux of the schema `aux` (None for a drum without aux)."""

    def __init__(
        self, store: Store, name: str, format: EntryFormat, aux: pa.Schema | None, saved: Sequence[State]
    ) -> None:
        self._store = store
        self._name = name
        self._format = format
        self._aux_schema = aux
        self._runs = [Run.of(**run) for run in saved]
        self.largest_bucket = _largest_bucket(self._runs)  # rows in all runs
        self.bytes_read = 0
        self.bytes_written = 0

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @property
    def rows(self) -> int:
        """Entries in all runs."""
        return sum(run.rows[-1] for run in self._runs)

    @property
    def of_one_bucket(self) -> bool:
        """True if there are runs, with one bucket for all parts."""
        return bool(self._runs) and len(self._runs[0].rows) == 2

    @property
    def size_bytes(self) -> int:
        return sum(run.rows[-1] * self._entry_bytes(run) + run.aux[-1] for run in self._runs)

    def _entry_bytes(self, run: Run) -> int:
        if not run.in_order:
            return self._format.record.itemsize
        return KEY.itemsize + (PLACE.itemsize if len(run.rows) > 2 else 0)

    def state(self) -> list[State]:
        return [run.state() for run in self._runs]

    # --- writing

    def add(self, batches: list[Batch], lows: U64, *, pack: bool = True) -> None:
        """Make `batches` a run, by the buckets that begin at the keys `lows` (uint64[k]).

        `pack` says whether aux in order of arrival is packed; aux by bucket always is.
        """
        entries = joined_entries([batch.entries for batch in batches])
        op = self._common_op(entries.ops)
        aux = [batch.aux for batch in batches if batch.aux is not None]
        if op < 0:
            self._runs.append(self._spill_by_bucket(entries, aux, lows))
        else:
            self._runs.append(self._spill_in_order(entries, aux, lows, pack=pack))
        self.largest_bucket = _largest_bucket(self._runs)

    def _common_op(self, ops: npt.NDArray[np.uint8]) -> int:
        """Return the one operation of `ops` if the aux may stay in order of arrival, or -1."""
        op = int(ops[0])
        plain = self._aux_schema is not None and not self._format.has_values and op != Op.UPDATE
        return op if plain and (ops == op).all() else -1

    def align(self, lows: U64) -> None:
        """Lay out all runs by bucket if one is, so that a bucket's answers come in order of arrival."""
        if len({run.in_order for run in self._runs}) < 2:
            return
        for at, run in enumerate(self._runs):
            if run.in_order:
                batches = list(self._scan_in_order(run))
                aux = [batch.aux for batch in batches if batch.aux is not None]
                self._runs[at] = self._spill_by_bucket(joined_entries([batch.entries for batch in batches]), aux, lows)
                self._retire(run)

    def _spill_in_order(self, entries: Entries, aux: list[pa.RecordBatch], lows: U64, *, pack: bool) -> Run:
        rows, pieces = [0, len(entries)], [entries.keys]
        if len(lows) > 1:
            order, rows = _by_bucket(entries.keys, lows)
            pieces = [entries.keys[order], order.astype(PLACE)]
        entries_file = self._store.write(self._name, "ops", list(map(raw, pieces)))
        encode, ends = packed.encode if pack else frames.encode, [0]
        name, file = self._store.create(self._name, "aux")
        with file:
            for batch in _gathered(aux):
                for piece in encode(batch):
                    file.write(piece)
                ends.append(file.length)
        self.bytes_written += self._store.size(entries_file) + file.length
        return Run.of(entries_file, name, rows, ends, packed=pack, op=int(entries.ops[0]))

    def _spill_by_bucket(self, entries: Entries, batches: list[pa.RecordBatch], lows: U64) -> Run:
        aux = pa.concat_batches(batches) if batches else None
        rows = [0, len(entries)]
        asked = entries.ops != Op.UPDATE
        if len(lows) > 1:
            order, rows = _by_bucket(entries.keys, lows)
            if aux is not None:
                aux = aux.take(pa.array(order if asked.all() else (np.cumsum(asked) - 1)[order][asked[order]]))
            values = None if entries.values is None else entries.values[order]
            entries, asked = Entries(entries.keys[order], entries.ops[order], values), asked[order]
        entries_file = self._store.write(self._name, "ops", [raw(self._format.records(entries))])
        self.bytes_written += self._store.size(entries_file)
        aux_file, ends = self._spill_aux(aux, rows, asked)
        return Run.of(entries_file, aux_file, rows, ends, packed=True, op=-1)

    def _spill_aux(self, aux: pa.RecordBatch | None, rows: list[int], asked: Any) -> tuple[str, list[int]]:
        if aux is None:
            return "", [0] * len(rows)
        edges = np.concatenate(([0], np.cumsum(asked)))[rows].tolist()
        ends, length = [0], 0
        pieces: list[Bytes] = []
        name, file = self._store.create(self._name, "aux")
        with file:
            for start, end in pairwise(edges):
                if end > start:
                    new = packed.encode(aux.slice(start, end - start))
                    length += sum(map(len, new))
                    pieces += new
                if length - file.length >= WRITE_BYTES:
                    file.write(b"".join(pieces))
                    pieces.clear()
                ends.append(length)
            file.write(b"".join(pieces))
        self.bytes_written += length
        return name, ends

    # --- reading

    def entries(self, run: Run, bucket: int) -> Entries:
        """Return the entries of one bucket of a run."""
        start, end = run.rows[bucket : bucket + 2]
        with self._store.read(run.entries_file) as reader:
            if run.in_order:
                keys = reader.array(KEY, start, end - start)
                self.bytes_read += keys.nbytes
                return Entries(keys, np.full(end - start, run.op, np.uint8), None)
            records = reader.array(self._format.record, start, end - start)
        self.bytes_read += records.nbytes
        return self._format.entries(records)

    def aux(self, run: Run, bucket: int) -> pa.RecordBatch | None:
        """Return the aux of one bucket of a run, None if it has none."""
        start, end = run.aux[bucket : bucket + 2]
        if start == end:
            return None
        self.bytes_read += end - start
        with self._store.read(run.aux_file) as reader:
            return self._message(reader, run, start, end)

    def in_order(self, run: Run, found: Mask) -> Iterator[tuple[Mask, pa.RecordBatch]]:
        """Yield a run in order of arrival, a batch at a time: its part [n] of `found` (bool[all], given by bucket), and
        its aux of n rows."""
        count = run.rows[-1]
        if len(run.rows) > 2:
            mask = np.empty(count, np.bool_)
            mask[self._column(run, PLACE)] = found
            found = mask
        at = 0
        with self._store.read(run.aux_file) as reader:
            for start, end in pairwise(run.aux):
                aux = self._message(reader, run, start, end)
                yield found[at : at + aux.num_rows], aux
                at += aux.num_rows
        self.bytes_read += run.aux[-1]

    def _message(self, reader: Reader, run: Run, start: int, end: int) -> pa.RecordBatch:
        if run.packed:
            return packed.decode(reader, start, end - start, self._aux_schema)
        return frames.decode(reader, start, self._aux_schema)[0]

    def keys_in_order(self, run: Run) -> U64:
        """Return the keys of a run in order of arrival, uint64[n]."""
        by_bucket: U64 = self._column(run, KEY)
        if len(run.rows) == 2:
            return by_bucket
        keys = np.empty_like(by_bucket)
        keys[self._column(run, PLACE)] = by_bucket
        return keys

    def _column(self, run: Run, dtype: "np.dtype[Any]") -> Any:
        """Return the keys (`KEY`) or places (`PLACE`) of a run in order of arrival, by bucket."""
        count = run.rows[-1]
        offset = 0 if dtype == KEY else count * KEY.itemsize
        with self._store.read(run.entries_file) as reader:
            self.bytes_read += count * dtype.itemsize
            return np.frombuffer(reader.read(offset, count * dtype.itemsize), dtype)

    def scan(self) -> Iterator[Batch]:
        """Yield all entries, those of each key in order of arrival."""
        for run in self._runs:
            if run.in_order:
                yield from self._scan_in_order(run)
                continue
            for bucket in range(len(run.rows) - 1):
                if run.rows[bucket] < run.rows[bucket + 1]:
                    yield Batch(self.entries(run, bucket), self.aux(run, bucket))

    def _scan_in_order(self, run: Run) -> Iterator[Batch]:
        keys, start = self.keys_in_order(run), 0
        for _, aux in self.in_order(run, np.zeros(len(keys), np.bool_)):
            end = start + aux.num_rows
            yield Batch(Entries(keys[start:end], np.full(end - start, run.op, np.uint8), None), aux)
            start = end

    def of_buckets(self, buckets: list[int]) -> Iterator[Entries]:
        """Yield the entries of `buckets`, those of each key in order of arrival."""
        for run in self._runs:
            for bucket in buckets if len(run.rows) > 2 else [0]:
                yield self.entries(run, bucket)

    # --- the end of a run

    def drop(self, runs: list[Run]) -> None:
        """Drop `runs`, which were merged."""
        self._runs = [run for run in self._runs if run not in runs]
        self.largest_bucket = _largest_bucket(self._runs)
        for run in runs:
            self._retire(run)

    def _retire(self, run: Run) -> None:
        self._store.retire(run.entries_file)
        if run.aux_file:
            self._store.retire(run.aux_file)


def _by_bucket(keys: U64, lows: U64) -> tuple[Places, list[int]]:
    """Return the places of `keys` by the buckets that begin at `lows`, in order within each, and the bucket edges."""
    buckets = _buckets(keys, lows)
    order = np.argsort(buckets, kind="stable")  # a radix sort, because buckets are of 8 or 16 bits
    return order, [0, *np.cumsum(np.bincount(buckets, minlength=len(lows))).tolist()]


def _buckets(keys: U64, lows: U64) -> npt.NDArray[Any]:
    """Return for each key the last of `lows` (sorted, the first is 0) not above it: uint8[n], or uint16[n] for many.

    A table gives it by the key's leading bits. Only a key that shares its leading bits with a low is searched for.
    """
    shift = np.uint64(64 - PREFIX_BITS)
    firsts = np.arange(1 << PREFIX_BITS, dtype=np.uint64) << shift
    small = np.uint8 if len(lows) <= 1 << 8 else np.uint16
    table = (np.searchsorted(lows, firsts, side="right") - 1).astype(small)
    split = np.zeros(1 << PREFIX_BITS, np.bool_)
    split[(lows >> shift).astype(np.intp)] = True
    prefixes = (keys >> shift).astype(np.uint16)
    places = table[prefixes]
    unsure = np.flatnonzero(split[prefixes])
    places[unsure] = np.searchsorted(lows, keys[unsure], side="right") - 1
    return places


def _largest_bucket(runs: list[Run]) -> int:
    return int(np.sum([np.diff(run.rows) for run in runs], axis=0).max()) if runs else 0


def _gathered(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches, in order; only the last one yielded may be small."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= MESSAGE_ROWS:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else batch
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_batches(waiting)
