"""A Drum is a dict that answers later, also when it is killed in between."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.shelf.answers import Combine, Op
from fyke.shelf.checkpoint import Checkpoint
from fyke.shelf.drum import Drum
from fyke.shelf.store import Store

AUX = pa.schema([("n", pa.int64()), ("text", pa.binary())])
KEYS = st.integers(0, 40).map(lambda n: (n * 0x9E3779B97F4A7C15) % 2**64)
ENTRIES = st.lists(st.tuples(st.sampled_from(list(Op)), KEYS, st.integers(0, 9)), min_size=1, max_size=30)
STEPS = st.lists(
    st.one_of(ENTRIES, st.just("merge"), st.just("checkpoint"), st.just("crash")), min_size=1, max_size=14
)


class Model:
    """The dict, and what it must have answered: key, found, value, number of the entry."""

    def __init__(self, combine: Combine) -> None:
        self.table: dict[int, int] = {}
        self.waiting: list[tuple[int, bool, int, int]] = []
        self.combine = combine

    def apply(self, op: Op, key: int, value: int, number: int) -> None:
        if op is not Op.UPDATE:
            self.waiting.append((key, key in self.table, self.table.get(key, 0), number))
        if op is Op.UPDATE:
            added = self.combine is Combine.ADD
            self.table[key] = self.table.get(key, 0) + value if added else value
        elif op is Op.CHECK_UPDATE:
            self.table.setdefault(key, value)

    def copy(self) -> "Model":
        other = Model(self.combine)
        other.table, other.waiting = dict(self.table), list(self.waiting)
        return other


def defer(drum: Drum, op: Op, rows: list[tuple[Op, int, int]], numbers: list[int]) -> None:
    keys = np.array([key for _, key, _ in rows], np.uint64)
    values = np.array([value for _, _, value in rows], np.int64)
    aux = pa.RecordBatch.from_pydict({"n": numbers, "text": [str(n).encode() * n for n in numbers]}, schema=AUX)
    if op is Op.CHECK:
        drum.check(keys, aux)
    else:
        (drum.update if op is Op.UPDATE else drum.check_update)(keys, values, aux)


def answers(drum: Drum) -> list[tuple[int, bool, int, int]]:
    rows = []
    for answer in drum.merge():
        assert answer.values is not None and answer.aux is not None
        texts = answer.aux.column("text").to_pylist()
        numbers = answer.aux.column("n").to_pylist()
        assert texts == [str(n).encode() * n for n in numbers]
        rows += zip(answer.keys.tolist(), answer.found.tolist(), answer.values.tolist(), numbers, strict=True)
    return rows


class Crawl:
    """A drum in a directory, opened, checkpointed and crashed."""

    def __init__(self, folder: Path, combine: Combine) -> None:
        self.folder, self.combine = folder, combine
        self.open()

    def open(self) -> None:
        self.store = Store(self.folder)
        self.checkpoint = Checkpoint(self.store)
        state = self.checkpoint.recover().get("drum")
        self.drum = Drum(
            self.store, "d", value=np.int64, aux=AUX, combine=self.combine, part_keys=5, pending_bytes=100, state=state
        )

    def save(self) -> None:
        snapshot = self.checkpoint.take({"drum": self.drum.state()})
        snapshot.make_durable()
        self.checkpoint.committed(snapshot)

    def crash(self) -> None:
        self.drum.close()
        self.store.close()
        (self.folder / "d-99999999.keys").write_bytes(b"left by nobody")
        self.open()


@settings(max_examples=120, deadline=None)
@given(steps=STEPS, combine=st.sampled_from(list(Combine)))
def test_drum_is_a_dict(steps: list[Any], combine: Combine) -> None:
    with tempfile.TemporaryDirectory() as folder:
        crawl, model, number = Crawl(Path(folder), combine), Model(combine), 0
        crawl.save()
        saved = model.copy()
        for step in [*steps, "merge"]:
            if step == "merge":
                assert sorted(answers(crawl.drum)) == sorted(model.waiting)
                model.waiting.clear()
                assert len(crawl.drum) == len(model.table)
                for key, value in model.table.items():
                    assert crawl.drum.get(key) == (True, value)
            elif step == "checkpoint":
                crawl.save()
                saved = model.copy()
            elif step == "crash":
                crawl.crash()
                model = saved.copy()
            else:
                for op, key, value in step:
                    model.apply(op, key, value, number)
                    defer(crawl.drum, op, [(op, key, value)], [number])
                    number += 1
        crawl.store.close()


@pytest.mark.parametrize("rows", [10, 20_000])
def test_batches_with_many_parts(tmp_path: Path, rows: int) -> None:
    """Whole batches, keys alone, over parts that split and queues that reach the disk."""
    rng = np.random.default_rng(rows)
    drum = Drum(Store(tmp_path), "d", part_keys=1000)
    seen: set[int] = set()
    for _ in range(6):
        keys = rng.integers(0, rows, rows, np.uint64) * np.uint64(2**64 // rows)
        drum.check_update(keys)
        found = {True: 0, False: 0}
        for answer in drum.merge():
            found[True] += int(answer.found.sum())
            found[False] += int((~answer.found).sum())
        new = set(keys.tolist()) - seen
        seen |= new
        assert found == {False: len(new), True: rows - len(new)}
        assert len(drum) == len(seen)
    absent = [key + 1 for key in list(seen)[:50]]
    assert all(drum.get(key)[0] for key in list(seen)[:50]) and not any(drum.get(key)[0] for key in absent)


def test_order_of_arrival(tmp_path: Path) -> None:
    drum = Drum(Store(tmp_path), "d", aux=pa.schema([("n", pa.int64())]))
    keys = np.random.default_rng(1).integers(0, 2**63, 9000, np.uint64)
    drum.check_update(keys, aux=pa.RecordBatch.from_pydict({"n": np.arange(9000)}))
    (answer,) = drum.merge()
    assert answer.aux is not None and answer.aux.column("n").to_pylist() == list(range(9000))


def test_a_merge_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    drum = Drum(Store(tmp_path), "d")
    keys = np.arange(100, dtype=np.uint64)
    drum.check_update(keys)
    list(drum.merge())
    before = drum.statistics().bytes_written
    drum.check_update(keys)
    assert all(answer.found.all() for answer in drum.merge())
    assert drum.statistics().bytes_written == before
