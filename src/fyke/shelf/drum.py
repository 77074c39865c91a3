"""A sorted table on disk, merged in batches: what we remember.

DRUM, the Disk Repository with Update Management of IRLbot (Lee et al., WWW 2008, section 4.3, Figure 1):
`check`, `update` and `check_update` of 64-bit keys with optional fixed-size values are deferred, spread
over buckets by key, and answered by one sequential merge of each bucket with its part of the sorted
table. URL-seen, content-seen and every later memory of the crawl is a Drum.

It differs from the paper: the table is cut into parts by key range, each bucket belongs to one part, and
a part that grows over `part_keys` is split, so a small crawl has one small file and a huge one many; a
bucket is a `DiskQueue` of columns with the aux beside its key, so rows are in arrival order without a
second file and a small bucket never touches the disk; a part in which a merge changes nothing is left
alone.

Invariant: the answers are those of a plain dict to which the operations were applied one by one in the
order of arrival. Answers come bucket by bucket, within a bucket in order of arrival.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, Mask
from fyke.shelf.answers import Combine, Op, Resolved, resolve
from fyke.shelf.part import Part, merged_pieces
from fyke.shelf.queue import DiskQueue
from fyke.shelf.store import Store

PART_KEYS = 4 << 20
ROUND_ROWS = 4 << 20  # entries of one bucket merged at a time
KEY, OP, VALUE = "#key", "#op", "#value"


@dataclass(frozen=True, slots=True)
class Answers:
    """What one bucket's merge found, for its `check` and `check_update` entries in order of arrival.

    `keys` uint64[n], `found` bool[n], `values` dtype[n] (zero where not found; None for a table
    without values), `aux` the record batch of n rows that came with them (None if none came).
    """

    keys: U64
    found: Mask
    values: npt.NDArray[Any] | None
    aux: pa.RecordBatch | None


@dataclass(frozen=True, slots=True)
class DrumStatistics:
    """Size of the table, and bytes moved since it was opened."""

    keys: int
    parts: int
    pending: int
    merges: int
    bytes_read: int
    bytes_written: int


@dataclass(slots=True)
class _Bucket:
    """A part of the table with the entries that wait for it."""

    low: int  # the first key that belongs here
    part: Part
    pending: DiskQueue


class Drum:
    """The table `name` in `store`; begun anew or restored from `state`.

    `value` is the NumPy dtype of the values, None for keys alone. `aux` is the schema of what comes with
    a key, None for nothing. `combine` says what an update does to a value that is there. `pending_bytes`
    bounds what `full` lets gather before a merge.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        value: npt.DTypeLike | None = None,
        aux: pa.Schema | None = None,
        combine: Combine = Combine.OVERWRITE,
        pending_bytes: int = 64 << 20,
        part_keys: int = PART_KEYS,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._store = store
        self._value = None if value is None else np.dtype(value)
        self._aux = aux
        self._combine = combine
        self._limit = pending_bytes
        self._part_keys = part_keys
        self._schema = self._pending_schema()
        saved = state or {}
        self._serial = int(saved.get("serial", 0))
        self._pending_bytes = int(saved.get("pending_bytes", 0))
        self._merges = self._bytes_read = self._bytes_written = 0
        self._buckets = [self._restored(bucket) for bucket in saved.get("buckets", [])] or [self._new_bucket(0)]
        self._lows = self._low_keys()

    def _pending_schema(self) -> pa.Schema:
        fields = [pa.field(KEY, pa.uint64()), pa.field(OP, pa.uint8())]
        if self._value is not None:
            fields.append(pa.field(VALUE, pa.binary(self._value.itemsize)))
        return pa.schema(fields + list(self._aux or []))

    def _restored(self, saved: Mapping[str, Any]) -> _Bucket:
        part = Part(saved["file"], saved["keys"], self._value)
        if part.file and not self._store.read_only:
            self._store.adopt(part.file)
        return _Bucket(saved["low"], part, DiskQueue(self._store, saved["queue"], self._schema, saved["pending"]))

    def _new_bucket(self, low: int) -> _Bucket:
        return _Bucket(low, Part("", 0, self._value), DiskQueue(self._store, self._new_name(), self._schema))

    def _new_name(self) -> str:
        self._serial += 1
        return f"{self.name}-{self._serial:08}"

    def _low_keys(self) -> U64:
        return np.array([bucket.low for bucket in self._buckets], np.uint64)

    def __repr__(self) -> str:
        return f"Drum({self.name!r}, {len(self)} keys in {len(self._buckets)} parts, {self.pending} pending)"

    def __len__(self) -> int:
        return sum(bucket.part.keys for bucket in self._buckets)

    @property
    def pending(self) -> int:
        """Entries that wait for a merge."""
        return sum(len(bucket.pending) for bucket in self._buckets)

    @property
    def full(self) -> bool:
        """Whether enough waits for a merge to be worth its cost."""
        return self._pending_bytes >= self._limit

    # -- operations ------------------------------------------------------------------------------

    def check(self, keys: U64, aux: pa.RecordBatch | None = None) -> None:
        """Ask for each of `keys` (uint64[n]) whether it is in the table."""
        self._defer(Op.CHECK, keys, None, aux)

    def update(self, keys: U64, values: npt.NDArray[Any] | None = None, aux: pa.RecordBatch | None = None) -> None:
        """Put `keys` with `values` (dtype[n]) into the table; a key that is there combines."""
        self._defer(Op.UPDATE, keys, values, aux)

    def check_update(
        self, keys: U64, values: npt.NDArray[Any] | None = None, aux: pa.RecordBatch | None = None
    ) -> None:
        """Ask for `keys`, and put those that are missing into the table with `values`."""
        self._defer(Op.CHECK_UPDATE, keys, values, aux)

    def _defer(self, op: Op, keys: U64, values: npt.NDArray[Any] | None, aux: pa.RecordBatch | None) -> None:
        if not len(keys):
            return
        columns = [pa.array(keys, pa.uint64()), pa.array(np.full(len(keys), op, np.uint8))]
        if self._value is not None:
            given = np.zeros(len(keys), self._value) if values is None else np.ascontiguousarray(values, self._value)
            columns.append(_fixed(given))
        columns += self._aux_columns(aux, len(keys))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._pending_bytes += batch.nbytes
        if len(self._buckets) == 1:
            self._buckets[0].pending.put(batch)
            return
        places = np.searchsorted(self._lows, keys, side="right") - 1
        order = np.argsort(places, kind="stable")
        batch = batch.take(pa.array(order))
        edges = np.searchsorted(places[order], np.arange(len(self._buckets) + 1))
        for bucket, start, end in zip(self._buckets, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            bucket.pending.put(batch.slice(start, end - start))

    def _aux_columns(self, aux: pa.RecordBatch | None, rows: int) -> list[pa.Array]:
        if self._aux is None:
            return []
        if aux is None:
            return [pa.nulls(rows, field.type) for field in self._aux]
        if aux.num_rows != rows:
            raise ValueError(f"{aux.num_rows} rows of aux for {rows} keys")
        return list(aux.columns)

    # -- merge -----------------------------------------------------------------------------------

    def merge(self) -> Iterator[Answers]:
        """Answer everything that waits, bucket by bucket; must be iterated to its end."""
        self._merges += 1
        at = 0
        while at < len(self._buckets):  # a bucket that splits puts its upper half next in line
            while len(self._buckets[at].pending):
                yield from self._merge_round(self._buckets[at])
            at += 1
        self._pending_bytes = 0

    def _merge_round(self, bucket: _Bucket) -> Iterator[Answers]:
        entries = self._entries(bucket.pending)
        keys: U64 = entries.column(KEY).to_numpy()
        ops = entries.column(OP).to_numpy()
        given = None if self._value is None else _values(entries.column(VALUE), self._value)
        old_keys, old_values = bucket.part.read(self._store)
        self._bytes_read += bucket.part.size_bytes
        resolved = resolve(keys, ops, given, (old_keys, old_values), self._combine)
        if resolved.changed:
            self._replace(bucket, old_keys, old_values, resolved)
        asked = np.flatnonzero(ops != Op.UPDATE)
        if len(asked):
            yield self._answers(entries, keys, resolved, asked)

    def _entries(self, pending: DiskQueue) -> pa.RecordBatch:
        batches, rows = [], 0
        while rows < ROUND_ROWS and (batch := pending.get(ROUND_ROWS - rows)) is not None:
            batches.append(batch)
            rows += batch.num_rows
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)

    def _answers(self, entries: pa.RecordBatch, keys: U64, resolved: Resolved, asked: npt.NDArray[np.intp]) -> Answers:
        aux = None
        everything = len(asked) == len(keys)
        if self._aux is not None:
            aux = entries.select([field.name for field in self._aux])
            aux = aux if everything else aux.take(pa.array(asked))
        if everything:
            return Answers(keys, resolved.found, resolved.values, aux)
        values = None if resolved.values is None else resolved.values[asked]
        return Answers(keys[asked], resolved.found[asked], values, aux)

    def _replace(self, bucket: _Bucket, old_keys: U64, old_values: Any, resolved: Resolved) -> None:
        """Write the bucket's part anew, in two when it has become too large."""
        keys, values = merged_pieces(old_keys, old_values, resolved)
        if bucket.part.file:
            self._store.retire(bucket.part.file)
        if len(keys) <= self._part_keys:
            bucket.part = self._write(keys, values)
            return
        middle = len(keys) // 2
        bucket.part = self._write(keys[:middle], None if values is None else values[:middle])
        upper = self._new_bucket(int(keys[middle]))
        upper.part = self._write(keys[middle:], None if values is None else values[middle:])
        self._buckets.insert(self._buckets.index(bucket) + 1, upper)
        self._lows = self._low_keys()
        self._move_pending(bucket, upper)

    def _move_pending(self, lower: _Bucket, upper: _Bucket) -> None:
        """Entries of `lower` that belong to `upper` now, when a bucket is merged in several rounds."""
        if not len(lower.pending):
            return
        old = lower.pending
        lower.pending = DiskQueue(self._store, self._new_name(), self._schema)
        while (batch := old.get(ROUND_ROWS)) is not None:
            above = batch.column(KEY).to_numpy() >= np.uint64(upper.low)
            upper.pending.put(batch.filter(pa.array(above)))
            lower.pending.put(batch.filter(pa.array(~above)))
        old.destroy()

    def _write(self, keys: U64, values: npt.NDArray[Any] | None) -> Part:
        name = f"{self._new_name()}.keys"
        part = Part(name, len(keys), self._value)
        self._store.create(name, *([keys.data] if values is None else [keys.data, values.view(np.uint8).data]))
        self._bytes_written += part.size_bytes
        return part

    # -- look-ups without a merge ----------------------------------------------------------------

    def get(self, key: int) -> tuple[bool, Any]:
        """Whether `key` is in the merged table, and its value. Reads a few blocks; pending entries
        are not asked (see `scan_pending`)."""
        at = int(np.searchsorted(self._lows, np.uint64(key), side="right")) - 1
        return self._buckets[at].part.get(self._store, key)

    def scan_pending(self) -> Iterator[pa.RecordBatch]:
        """Every entry that waits: columns `#key`, `#op`, perhaps `#value`, and the aux."""
        for bucket in self._buckets:
            yield from bucket.pending.scan()

    # -- life ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What a manifest keeps; all entries are then in files."""
        buckets = [
            {
                "low": bucket.low,
                "file": bucket.part.file,
                "keys": bucket.part.keys,
                "queue": bucket.pending.name,
                "pending": bucket.pending.state(),
            }
            for bucket in self._buckets
        ]
        return {"buckets": buckets, "serial": self._serial, "pending_bytes": self._pending_bytes}

    def statistics(self) -> DrumStatistics:
        queues = [bucket.pending.statistics() for bucket in self._buckets]
        return DrumStatistics(
            len(self),
            len(self._buckets),
            self.pending,
            self._merges,
            self._bytes_read + sum(queue.bytes_read for queue in queues),
            self._bytes_written + sum(queue.bytes_written for queue in queues),
        )

    def close(self) -> None:
        for bucket in self._buckets:
            bucket.pending.close()


def _fixed(values: npt.NDArray[Any]) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(values.itemsize), len(values), [None, pa.py_buffer(values)])


def _values(column: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    start = column.offset * dtype.itemsize
    buffer = column.buffers()[1]
    return np.frombuffer(buffer, dtype, len(column), start)
