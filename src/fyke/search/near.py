"""Which pages say nearly what an earlier one said? Sketches go in, the first page of each cluster comes out.

    lots ─► bands ─► Drum ─► candidates ─► signs ─► first page ─► <lot>.near.npy

The indexer calls it when there are new lots. A band is a key of a Drum; its value is the number of the text that had it
first (`check_update` keeps the first). A text whose band is there already has a candidate. Texts are numbered and
decided in order of arrival, also those of pages that were read again:

- A text near a candidate joins its cluster, unless it is far from the first text there. Of several clusters, it joins
  the one whose first text has the fewest signs different.
- Any other text is the first of its own cluster.

So of two texts near each other, neither stays alone because a third came first that is near one of them only. And no
cluster drifts by chains, in which each text is near the one before it and the last has nothing of the first. A page
that changed is known by each of its texts.

A text with several clusters also notes the first text of the second nearest, if that is not far from the nearest's
first. If no page is near that first text when all are merged, its page joins the nearest cluster too
(`fyke.search.catalogue`). So of three texts that only the last connects, none stays alone.

Invariant: the cluster of a text depends on earlier texts alone, not on lots, runs, or when the Drum merges. The folder
`near/` is a checkpointed shard, and its file `met` has a row of `MET` a text. Both are cut back to the newest
checkpoint, and later work is done again. Bounded: memory holds the Drum's share, and `TOGETHER` texts with their
candidates.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from fyke.core.errors import OtherVersion, StateDamaged
from fyke.core.sorting import distinct
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.drum import Drum
from fyke.disk.files import cut, raw, writing
from fyke.disk.operations import Combine
from fyke.disk.ranges import Array, Buckets
from fyke.search.lots import NEAR, Lot
from fyke.search.sketch import BANDS, FAR_SIGNS, MOST_SIGNS, SIGNS

TOGETHER_BITS = 14
TOGETHER = 1 << TOGETHER_BITS  # texts decided at a time
_ROW = pa.schema([("row", pa.uint64())])
_CANDIDATES = np.dtype([("row", "<u8"), ("earlier", "<u8")])
MET = np.dtype([("key", "<u8"), ("first", "<u8"), *NEAR.descr, ("signs", "u1", (SIGNS // 8,))])


class _MetText(NamedTuple):
    key: int  # of its page
    first: int  # number of the first text of its cluster
    signs: int


def find_near(folder: Path, lots: Sequence[Lot], memory_bytes: int) -> None:
    """Write NEAR for each of `lots` that lacks it. `folder` has all texts met, with `memory_bytes` for their table.

    A `folder` that is damaged or of another version is made anew from the lots. Raises DiskFull, DirectoryError.
    """
    try:
        with Clusters(folder, memory_bytes) as clusters:
            clusters.take(lots)
    except (StateDamaged, OtherVersion):
        with writing(folder):
            shutil.rmtree(folder)
        with Clusters(folder, memory_bytes) as clusters:
            clusters.take(lots)


class Clusters:
    """All texts met, open to take in more. Raises StateDamaged, DirectoryInUse, DirectoryError, DiskFull."""

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._open = ExitStack()

    def __repr__(self) -> str:
        return f"Clusters({str(self._folder)!r}, {self.rows} texts of {self.lots} lots)"

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            self._checkpoint = opening.enter_context(Checkpoint(self._folder))
            counters, store = self._checkpoint.counters, self._checkpoint.store
            self.lots, self.rows = int(counters.get("lots", 0)), int(counters.get("rows", 0))
            self._done = self.rows  # texts that are decided
            self._bands = opening.enter_context(
                Drum(
                    store, "bands", store.participant("bands"), value=np.uint64, aux=_ROW, combine=Combine.KEEP_FIRST,
                    memory_bytes=self._memory_bytes,
                )
            )  # fmt: skip
            self._path = self._folder / "met"
            with writing(self._path):
                self._met = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            opening.callback(os.close, self._met)
            cut(self._path, self.rows * MET.itemsize)
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def take(self, lots: Sequence[Lot]) -> None:
        """Compare the sketches of the new ones among `lots`, all from the first on."""
        waiting: list[Lot] = []
        for lot in lots[self.lots :]:
            waiting.append(lot)
            self._submit(lot.sketches)
            if self._bands.full:
                self._decide(waiting)
                waiting = []
        if waiting:
            self._decide(waiting)

    def _submit(self, sketches: Array) -> None:
        met = np.zeros(len(sketches), MET)
        numbers = np.arange(self.rows, self.rows + len(met), dtype=np.uint64)
        met["key"] = met["near_of"] = sketches["key"]
        met["first"] = numbers
        met["signs"] = sketches["signs"]
        met["said"] = np.ascontiguousarray(sketches["signs"][:, :8]).view("<u8")[:, 0]
        self._write(self.rows, met)
        self.rows += len(met)
        there = sketches["bands"].any(axis=1)
        keys, rows = sketches["bands"][there].reshape(-1), np.repeat(numbers[there], BANDS)
        self._bands.check_update(keys, rows, pa.RecordBatch.from_arrays([pa.array(rows)], schema=_ROW))

    # --- the decision about texts that wait

    def _decide(self, lots: list[Lot]) -> None:
        """Decide about `lots`, all that wait, and make the result safe."""
        candidates = self._candidates()
        for at, found in enumerate(candidates):
            if len(found):
                begin = self._done + at * TOGETHER
                rows = self._read(begin, min(self.rows, begin + TOGETHER))
                self._join(begin, rows, found)
                self._write(begin, rows)
        candidates.close()
        for lot in lots:
            end = self._done + len(lot.sketches)
            lot.write_near(_near(self._read(self._done, end)))
            self._done = end
        self.lots += len(lots)
        counters = {"lots": self.lots, "rows": self.rows}
        snapshot = self._checkpoint.take({"bands": self._bands.state()}, counters, [self._path])
        snapshot.make_durable()
        self._checkpoint.committed(snapshot)

    def _candidates(self) -> Buckets:
        """Return _CANDIDATES of the texts that wait, in ranges of `TOGETHER` texts."""
        bits = max(0, (self.rows - self._done - 1) >> TOGETHER_BITS).bit_length()
        found = Buckets(self._folder / "scratch", "candidates", _CANDIDATES, 1 << bits)
        for answers in self._bands.merge():
            assert answers.aux is not None and answers.values is not None
            rows = answers.aux.column("row").to_numpy()
            some = np.flatnonzero(answers.found & (answers.values != rows))
            pairs = np.empty(len(some), _CANDIDATES)
            pairs["row"], pairs["earlier"] = rows[some], answers.values[some]
            found.add((pairs["row"] - np.uint64(self._done)) << np.uint64(64 - TOGETHER_BITS - bits), pairs)
        return found

    def _join(self, begin: int, rows: Array, found: Array) -> None:
        """Let each of `rows` (MET, from number `begin` on) join the nearest of the clusters that `found` leads to."""
        texts = self._texts(distinct(np.append(found["row"], found["earlier"])).tolist())
        texts |= self._texts({one.first for one in texts.values()} - texts.keys())
        for number, earlier in _grouped(found):
            signs, at = texts[number].signs, number - begin
            near = [one for one in map(texts.__getitem__, earlier) if (signs ^ one.signs).bit_count() <= MOST_SIGNS]
            among = sorted({((signs ^ texts[one.first].signs).bit_count(), one.first) for one in near})
            if not among or among[0][0] > FAR_SIGNS:
                continue
            (apart, first), *others = among
            texts[number] = texts[number]._replace(first=first)
            rows["first"][at], rows["apart"][at], rows["near_of"][at] = first, apart, texts[first].key
            for _, also in others[:1]:
                apart = (texts[also].signs ^ texts[first].signs).bit_count()
                if apart <= FAR_SIGNS:
                    said = texts[also].signs & (1 << 64) - 1
                    rows["also"][at], rows["also_said"][at], rows["also_apart"][at] = texts[also].key, said, apart

    def _texts(self, numbers: Iterable[int]) -> dict[int, _MetText]:
        out = {}
        for number in numbers:
            row = self._read(number, number + 1)[0]
            out[number] = _MetText(int(row["key"]), int(row["first"]), int.from_bytes(row["signs"].tobytes(), "little"))
        return out

    # --- texts met, on disk

    def _read(self, begin: int, end: int) -> Array:
        size = (end - begin) * MET.itemsize
        with writing(self._path):
            data = bytearray(os.pread(self._met, size, begin * MET.itemsize))
        if len(data) != size:
            raise StateDamaged(f"{self._path} is shorter than it was")
        return np.frombuffer(data, MET)

    def _write(self, begin: int, rows: Array) -> None:
        data, done = raw(rows), 0
        with writing(self._path):
            while done < len(data):
                done += os.pwrite(self._met, data[done:], begin * MET.itemsize + done)


def _grouped(found: Array) -> Iterator[tuple[int, list[int]]]:
    """Yield each text that has candidates, in order, with the earlier texts it may be near."""
    found = found[np.lexsort((found["earlier"], found["row"]))]
    bounds = np.flatnonzero(np.append(True, found["row"][1:] != found["row"][:-1])).tolist()
    rows, earlier = found["row"].tolist(), found["earlier"].tolist()
    for begin, end in zip(bounds, [*bounds[1:], len(rows)], strict=True):
        yield rows[begin], earlier[begin:end]


def _near(met: Array) -> Array:
    """Return NEAR of texts met. A page that is near an earlier text of its own counts as near no page."""
    out = np.zeros(len(met), NEAR)
    out["said"] = met["said"]
    other: Any = met["near_of"] != met["key"]
    for name in NEAR.names or ():
        out[name][other] = met[name][other]
    return out
