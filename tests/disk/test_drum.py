"""The law of the drum: a dict, through any mix of operations, merges, memory, crash and restart."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.errors import StateDamaged
from fyke.disk.checkpoint import Checkpoint, look
from fyke.disk.drum import Drum
from fyke.disk.operations import Combine, Op
from fyke.disk.part import TableSizes
from fyke.disk.runs import Runs

AUX = pa.schema([("n", pa.uint64()), ("url", pa.binary())])
PAIR = np.dtype([("hits", "<u4"), ("size", "<i8")])
SPREAD = 0x9E3779B97F4A7C15
SMALL = TableSizes(fold=3, block=4, probe=2, probe_share=2)  # a few keys take every path


def aux(numbers: list[int]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.uint64()), pa.array([b"u%d" % n for n in numbers])], schema=AUX)


class Model:
    """A dict to which operations are applied one by one."""

    def __init__(self, dtype: np.dtype[Any] | None, combine: Combine) -> None:
        self.dtype, self.combine = dtype, combine
        self.table: dict[int, Any] = {}
        self.waiting: list[tuple[int, int, Any, int]] = []

    def apply(self) -> list[tuple[int, int, bool, Any]]:
        answers = []
        for key, op, value, number in self.waiting:
            there = key in self.table
            if op != Op.UPDATE:
                answers.append((number, key, there, self.table.get(key)))
            if op == Op.UPDATE and there:
                self.table[key] = self.combined(self.table[key], value)
            elif op != Op.CHECK and not there:
                self.table[key] = value
        self.waiting = []
        return answers

    def combined(self, old: Any, new: Any) -> Any:
        if self.combine is Combine.ADD:
            if self.dtype == PAIR:
                return (old[0] + new[0], old[1] + new[1])
            return old + new
        return new if self.combine is Combine.OVERWRITE else old

    def copy(self) -> "Model":
        other = Model(self.dtype, self.combine)
        other.table, other.waiting = dict(self.table), list(self.waiting)
        return other


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@st.composite
def crawls(draw: st.DrawFn) -> dict[str, Any]:
    dtype = draw(st.sampled_from([None, np.dtype("<i8"), PAIR]))
    combines = [Combine.OVERWRITE, Combine.KEEP_FIRST] + ([Combine.ADD] if dtype is not None else [])
    uniform = draw(st.booleans())
    numbers = st.integers(0, draw(st.sampled_from([3, 30, 300])))
    key = numbers.map(lambda n: n * SPREAD % 2**64) if uniform else numbers | st.just(2**64 - 1)
    entry = st.tuples(key, st.sampled_from(list(Op)), st.integers(0, 9))
    step = st.one_of(
        st.tuples(st.just("submit"), st.lists(entry, max_size=30)),
        st.tuples(st.just("check_update"), st.lists(entry, max_size=60)),
        st.tuples(st.just("merge"), st.none()),
        st.tuples(st.just("state"), st.booleans()),
        st.tuples(st.just("restart"), st.booleans()),
        st.tuples(st.just("peek"), st.lists(key, max_size=5)),
    )
    return {
        "dtype": dtype,
        "combine": draw(st.sampled_from(combines)),
        "memory_bytes": draw(st.sampled_from([1, 400, 4000, 1 << 20])),
        "sizes": replace(SMALL, part=draw(st.sampled_from([1, 5, 40, 10_000]))),
        "aux": draw(st.sampled_from([None, AUX])),
        "steps": draw(st.lists(step, min_size=4, max_size=25)),
        "last": draw(st.lists(entry, min_size=1, max_size=20)),
    }


class Pair:
    """A drum and the model, side by side."""

    def __init__(self, directory: Path, crawl: dict[str, Any]) -> None:
        self.directory, self.crawl = directory, crawl
        self.dtype = crawl["dtype"]
        self.model = Model(self.dtype, crawl["combine"])
        self.safe = self.model.copy()
        self.number = 0
        self.open()

    def open(self) -> None:
        self.checkpoint = Checkpoint(self.directory)
        keywords = {name: self.crawl[name] for name in ("combine", "memory_bytes", "sizes", "aux")}
        saved = self.checkpoint.store.participant("d")
        self.drum = Drum(self.checkpoint.store, "d", saved, value=self.dtype, **keywords)

    def submit(self, entries: list[tuple[int, Op, int]]) -> None:
        values = [(v, 2 * v) if self.dtype == PAIR else v for _, _, v in entries]
        numbers = list(range(self.number, self.number + len(entries)))
        self.number += len(entries)
        self.drum.submit(
            np.array([key for key, _, _ in entries], np.uint64),
            np.array([op for _, op, _ in entries], np.uint8),
            None if self.dtype is None else np.array(values, self.dtype),
            aux(numbers) if self.crawl["aux"] is not None else None,
        )
        for (key, op, _), value, number in zip(entries, values, numbers, strict=True):
            self.model.waiting.append((key, op, None if self.dtype is None else value, number))

    def check_update(self, entries: list[tuple[int, Op, int]]) -> None:
        self.submit([(key, Op.CHECK_UPDATE, value) for key, _, value in entries])

    def merge(self, _: None) -> None:
        in_memory = not self.drum._pending.runs
        expected = self.model.apply()
        answers = list(self.answers())
        if self.crawl["aux"] is None:
            expected = [(-1, *rest) for _, *rest in expected]
        assert not self.drum.full
        if not in_memory:  # bucket by bucket; of one key, in order of arrival
            expected.sort(key=lambda answer: answer[1])
            answers.sort(key=lambda answer: answer[1])
        assert answers == expected

    def answers(self) -> Iterator[tuple[int, int, bool, Any]]:
        bucket_of: dict[int, int] = {}
        bucket = 0
        for answers in self.drum.merge():
            assert answers.bucket >= bucket
            bucket = answers.bucket
            assert all(bucket_of.setdefault(key, bucket) == bucket for key in answers.keys.tolist())
            count = len(answers.keys)
            numbers = [-1] * count if answers.aux is None else answers.aux.column("n").to_pylist()
            if answers.aux is not None:
                assert answers.aux.column("url").to_pylist() == [b"u%d" % n for n in numbers]
            values = [None] * count if answers.values is None else answers.values.tolist()
            for number, key, found, value in zip(
                numbers, answers.keys.tolist(), answers.found.tolist(), values, strict=True
            ):
                assert found or value in (None, 0, (0, 0))
                yield number, key, found, value if found else None

    def state(self, durable: bool) -> None:
        snapshot = self.checkpoint.take({"d": self.drum.state()})
        if durable:
            snapshot.make_durable()
            self.checkpoint.committed(snapshot)
            self.safe = self.model.copy()

    def restart(self, garbage: bool) -> None:
        self.drum.close()
        self.checkpoint.close()
        if garbage:
            (self.directory / "d-99999999.keys").write_bytes(b"left by a crash")
            for path in self.directory.glob("d-*"):
                with path.open("ab") as file:
                    file.write(b"written after the checkpoint")
        self.open()
        self.model = self.safe.copy()

    def peek(self, keys: list[int]) -> None:
        after = self.model.copy()
        after.apply()
        assert self.drum.contains(np.array(keys, np.uint64)).tolist() == [key in after.table for key in keys]
        for key in keys:
            found, value = self.drum.get(key)
            assert found == (key in after.table)
            assert plain(value) == after.table.get(key)
        if self.dtype is not None:
            none = (0, 0) if self.dtype == PAIR else 0
            stored = self.drum.stored(np.array(keys, np.uint64)).tolist()
            assert stored == [self.model.table.get(key, none) for key in keys]

    def check_sizes(self) -> None:
        assert len(self.drum) == len(self.model.table)
        assert self.drum.pending == len(self.model.waiting)
        assert (self.drum.pending_bytes > 0) == bool(self.model.waiting)

    def close(self) -> None:
        self.drum.close()
        self.checkpoint.close()


@settings(max_examples=250, deadline=None)
@given(crawls())
def test_a_drum_is_a_dict(tmp_path_factory: pytest.TempPathFactory, crawl: dict[str, Any]) -> None:
    pair = Pair(tmp_path_factory.mktemp("drum"), crawl)
    for step, argument in crawl["steps"]:
        getattr(pair, step)(argument)
        pair.check_sizes()
    pair.submit(crawl["last"])
    pair.state(durable=True)
    pair.submit(crawl["last"])
    pair.state(durable=True)
    pair.restart(garbage=True)
    pair.check_sizes()
    pair.merge(None)
    pair.submit([(key, Op.UPDATE, value + 1) for key, _, value in crawl["last"]])
    pair.merge(None)
    pair.peek(sorted(pair.model.table))
    pair.state(durable=True)
    pair.restart(garbage=True)
    pair.check_sizes()
    pair.peek(sorted(pair.model.table))
    pair.close()


def random_keys(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def opened(directory: Path, **keywords: Any) -> tuple[Checkpoint, Drum]:
    checkpoint = Checkpoint(directory, verified_bytes=0)
    keywords = {"sizes": SMALL} | keywords
    return checkpoint, Drum(checkpoint.store, "seen", checkpoint.store.participant("seen"), **keywords)


def test_urls_come_out_once_in_order_of_arrival(tmp_path: Path) -> None:
    _, drum = opened(tmp_path, aux=AUX)
    drum.check_update(np.array([9, 3, 9, 5], np.uint64), aux=aux([1, 2, 3, 4]))
    drum.check_update(np.array([5, 1], np.uint64), aux=aux([5, 6]))
    assert [n for batch in drum.merge_unique() for n in batch.column("n").to_pylist()] == [1, 2, 4, 6]
    drum.check_update(np.array([9, 1], np.uint64), aux=aux([7, 8]))
    assert list(drum.merge_unique()) == []
    assert "4 keys" in repr(drum)


def test_parts_split_and_spills_follow_them(tmp_path: Path) -> None:
    keys = random_keys(20_000)
    _, drum = opened(tmp_path, aux=AUX, sizes=replace(SMALL, part=1000), memory_bytes=100_000)
    for round_keys in np.split(keys, 20):
        drum.check_update(round_keys, aux=aux(list(range(1000))))
    assert sum(batch.num_rows for batch in drum.merge_unique()) == 20_000
    assert drum.statistics().parts >= 20
    for round_keys in np.split(keys, 20):
        drum.check_update(round_keys, aux=aux(list(range(1000))))
    written = drum.statistics().bytes_written
    folds = drum.statistics().folds
    assert list(drum.merge_unique()) == []
    assert drum.statistics().folds == folds
    assert drum.statistics().bytes_written - written < 100_000  # the last spill, and no part


def test_a_small_merge_leaves_a_large_table_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    _, drum = opened(tmp_path)
    drum.check_update(random_keys(500_000))
    drum.settle()
    before = drum.statistics()
    drum.check_update(random_keys(100, seed=1))
    assert not np.concatenate([answers.found for answers in drum.merge()]).any()
    after = drum.statistics()
    assert after.bytes_written == before.bytes_written
    assert after.bytes_read - before.bytes_read < 100 * 8 * 512 * 4
    assert len(drum) == 500_100


def test_a_merge_left_half_way_is_no_checkpoint(tmp_path: Path) -> None:
    _, drum = opened(tmp_path)
    drum.check_update(random_keys(10))
    next(drum.merge())
    with pytest.raises(RuntimeError, match="to its end"):
        drum.state()
    with pytest.raises(RuntimeError, match="to its end"):
        drum.get(1)
    with pytest.raises(RuntimeError, match="to its end"):
        next(drum.merge())


def test_what_comes_during_a_merge_waits(tmp_path: Path) -> None:
    _, drum = opened(tmp_path, memory_bytes=1)
    drum.check_update(random_keys(10))
    for _ in drum.merge():
        drum.check_update(random_keys(10))
    assert drum.pending == 10
    assert all(answers.found.all() for answers in drum.merge())


def test_many_small_batches_are_answered_in_few(tmp_path: Path) -> None:
    """What is done about an answer takes as long for one row as for a hundred."""
    _, drum = opened(tmp_path, value=np.uint32, aux=AUX)
    keys = random_keys(20_000)
    for start in range(0, len(keys), 20):
        drum.check(keys[start : start + 20], aux(list(range(start, start + 20))))
        drum.update(keys[start : start + 20], np.arange(start, start + 20, dtype=np.uint32))
        drum.check(keys[start : start + 1], aux([start]))
    answers = list(drum.merge())
    assert len(answers) <= 10
    assert np.concatenate([one.values[one.found] for one in answers]).tolist() == list(range(0, len(keys), 20))
    assert sum(one.aux.num_rows for one in answers) == sum(len(one.keys) for one in answers) == 21_000


def test_full_means_a_merge_is_worth_it(tmp_path: Path) -> None:
    _, drum = opened(tmp_path, memory_bytes=100_000)
    drum.check_update(random_keys(100))
    assert not drum.full
    drum.check_update(random_keys(900))
    assert drum.full
    drum.settle()
    assert not drum.full


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    _, plain_drum = opened(tmp_path / "a")
    keys = random_keys(2)
    with pytest.raises(ValueError, match="no values"):
        plain_drum.update(keys, np.zeros(2))
    with pytest.raises(ValueError, match="aux"):
        plain_drum.check(keys, aux([1, 2]))
    with pytest.raises(ValueError, match="only integers"):
        opened(tmp_path / "b", value="<f8", combine=Combine.ADD)
    _, drum = opened(tmp_path / "c", value="<i8", aux=AUX)
    with pytest.raises(ValueError, match="needs a value"):
        drum.update(keys)
    with pytest.raises(ValueError, match="aux"):
        drum.check(keys)
    with pytest.raises(ValueError, match="rows of"):
        drum.check(keys, aux=aux([1]))
    assert drum.pending == 0


def test_another_process_can_look(tmp_path: Path) -> None:
    checkpoint, drum = opened(tmp_path, aux=AUX)
    drum.check_update(np.array([1, 2], np.uint64), aux=aux([1, 2]))
    drum.settle()
    drum.check_update(np.array([3], np.uint64), aux=aux([3]))
    checkpoint.take({"seen": drum.state()}).make_durable()
    store, _ = look(tmp_path)
    other = Drum(store, "seen", store.participant("seen"), aux=AUX)
    assert other.contains(np.array([1, 3, 4], np.uint64)).tolist() == [True, True, False]
    assert [keys.tolist() for keys, _, _ in other.scan_pending()] == [[3]]


FLAT = """
import resource, sys
from pathlib import Path
import numpy as np, pyarrow as pa
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.drum import Drum
from fyke.disk.part import TableSizes
from fyke.disk.runs import Runs
aux = pa.schema([("url", pa.binary())])
checkpoint = Checkpoint(Path(sys.argv[1]))
drum = Drum(checkpoint.store, "seen", aux=aux, memory_bytes=8 << 20, sizes=TableSizes(part=1 << 18))
random = np.random.default_rng(1)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def grow(rounds):
    for _ in range(rounds):
        keys = random.integers(0, 2**64, 20_000, np.uint64)
        urls = pa.array([b"http://host.example/%016x" % k for k in keys.tolist()])
        drum.check_update(keys, aux=pa.record_batch([urls], schema=aux))
        if drum.full:
            for batch in drum.merge_unique(): pass
    snapshot = checkpoint.take({"seen": drum.state()})
    snapshot.make_durable()
    checkpoint.committed(snapshot)
grow(12)
first = peak()
grow(108)
print(len(drum) + drum.pending, peak() - first)
"""


def test_memory_is_flat_while_the_table_grows_tenfold(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FLAT, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    keys, grown_kb = map(int, run.stdout.split())
    assert keys == 2_400_000  # 19 MB of keys, 90 MB of text
    assert grown_kb < 12 << 10


def test_a_spill_keeps_each_aux_with_its_entry(tmp_path: Path) -> None:
    _, drum = opened(tmp_path, aux=AUX, sizes=replace(SMALL, part=10), memory_bytes=1)
    keys = random_keys(200)
    drum.update(keys)
    drum.settle()
    assert drum.statistics().parts > 10
    ops = np.where(np.arange(200) % 3 == 0, Op.UPDATE, Op.CHECK).astype(np.uint8)
    drum.submit(keys, ops, aux=aux(list(range(200))))
    answered = {}
    for answers in drum.merge():
        assert answers.aux is not None
        answered |= dict(zip(answers.aux.column("n").to_pylist(), answers.keys.tolist(), strict=True))
    assert answered == {n: key for n, key in enumerate(keys.tolist()) if n % 3}


@pytest.mark.parametrize("suffix", ["keys", "vals"])
def test_a_damaged_table_is_found_out(tmp_path: Path, suffix: str) -> None:
    checkpoint, drum = opened(tmp_path, value="<u4", memory_bytes=1)
    keys = random_keys(100)
    drum.update(keys, np.arange(100, dtype=np.uint32))
    drum.settle()
    checkpoint.take({"seen": drum.state()}).make_durable()
    checkpoint.close()
    path = next(tmp_path.glob(f"seen-*.{suffix}"))
    content = bytearray(path.read_bytes())
    content[37] ^= 1
    path.write_bytes(content)
    with pytest.raises(StateDamaged, match=r"damaged: block \d+ differs from what was written"):
        _, drum = opened(tmp_path, value="<u4", memory_bytes=1)
        drum.contains(keys)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("filled", [0, 10_000])
def test_links_that_were_spilled_come_out_in_order_of_arrival(tmp_path: Path, filled: int, packed: bool) -> None:
    """By buckets go the keys alone: the text is written and read in sequence, and a restart changes nothing."""
    memory_bytes = 30_000 if packed else 400_000  # a table that is small for the memory is not packed
    checkpoint, drum = opened(tmp_path, aux=AUX, memory_bytes=memory_bytes, sizes=replace(SMALL, part=1000))
    met = random_keys(filled)
    drum.update(met)
    drum.settle()
    keys = random_keys(6000, seed=1)
    keys[::3] = keys[1::3]
    keys[2::30] = met[:200] if filled else keys[0]
    for start in range(0, len(keys), 500):
        drum.check_update(keys[start : start + 500], aux=aux(list(range(start, start + 500))))
    assert drum._pending.runs and all(run.in_order for run in drum._pending.runs)
    assert {run.packed for run in drum._pending.runs} == {packed and filled > 0}
    snapshot = checkpoint.take({"seen": drum.state()})
    snapshot.make_durable()
    checkpoint.committed(snapshot)
    drum.close()
    checkpoint.close()
    _, drum = opened(tmp_path, aux=AUX, memory_bytes=memory_bytes, sizes=replace(SMALL, part=1000))
    scanned = [number for _, _, batch in drum.scan_pending() if batch for number in batch.column("n").to_pylist()]
    assert scanned == list(range(len(keys)))
    known, expected = set(met.tolist()), []
    for number, key in enumerate(keys.tolist()):
        if key not in known:
            expected.append(number)
            known.add(key)
    assert [number for batch in drum.merge_unique() for number in batch.column("n").to_pylist()] == expected
    assert len(drum) == len(known) and not drum.pending


def test_runs_by_bucket_are_merged_with_those_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields: dict[str, Any] = {"aux": AUX, "memory_bytes": 100_000, "sizes": replace(SMALL, part=1000)}
    checkpoint, drum = opened(tmp_path, **fields)
    drum.update(random_keys(4000))
    drum.settle()
    keys = random_keys(4000, seed=1)
    keys[3000:] = keys[1000:2000]
    with monkeypatch.context() as before:
        before.setattr(Runs, "_common_op", lambda *_: -1)
        drum.check_update(keys[:2000], aux=aux(list(range(2000))))
    snapshot = checkpoint.take({"seen": drum.state()})
    snapshot.make_durable()
    checkpoint.committed(snapshot)
    drum.close()
    checkpoint.close()
    _, drum = opened(tmp_path, **fields)
    drum.check_update(keys[2000:], aux=aux(list(range(2000, 4000))))
    assert {run.in_order for run in drum._pending.runs} == {True, False}
    found = [number for batch in drum.merge_unique() for number in batch.column("n").to_pylist()]
    assert sorted(found) == list(range(3000))
