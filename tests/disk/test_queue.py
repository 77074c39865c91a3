"""The law of the queue: a deque of rows, through any checkpoint and restart."""

from collections import deque
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.errors import OtherVersion, StateDamaged
from fyke.disk.checkpoint import Checkpoint, look
from fyke.disk.queue import BUFFER_BYTES, DiskQueue

SCHEMA = pa.schema([("n", pa.uint64()), ("text", pa.binary())])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 9)),
        st.tuples(st.just("get"), st.integers(1, 12)),
        st.tuples(st.just("state"), st.booleans()),
        st.tuples(st.just("restart"), st.booleans()),
        st.tuples(st.just("scan"), st.just(0)),
    ),
    max_size=40,
)


def rows(start: int, count: int) -> pa.RecordBatch:
    numbers = range(start, start + count)
    return pa.record_batch([pa.array(numbers, pa.uint64()), pa.array([b"u%d" % n for n in numbers])], schema=SCHEMA)


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    for batch in batches:
        assert batch.column("text").to_pylist() == [b"u%d" % n for n in batch.column("n").to_pylist()]
    return [n for batch in batches for n in batch.column("n").to_pylist()]


def commit(checkpoint: Checkpoint, queue: DiskQueue) -> None:
    snapshot = checkpoint.take({"q": queue.state()})
    snapshot.make_durable()
    checkpoint.committed(snapshot)


def opened(directory: Path, *, pack: bool = False, **sizes: int) -> tuple[Checkpoint, DiskQueue]:
    checkpoint = Checkpoint(directory)
    return checkpoint, DiskQueue(checkpoint.store, "q", SCHEMA, checkpoint.store.participant("q"), pack=pack, **sizes)


@settings(max_examples=120, deadline=None)
@given(STEPS, st.sampled_from([1, 4, 100]), st.sampled_from([1, 400, 1 << 20]), st.booleans())
def test_a_queue_is_a_deque(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int]],
    buffer_rows: int,
    segment_bytes: int,
    pack: bool,
) -> None:
    """Also one that is packed after a restart and was not before, and the other way round."""
    directory = tmp_path_factory.mktemp("queue")
    sizes = {"buffer_rows": buffer_rows, "segment_bytes": segment_bytes}
    checkpoint, queue = opened(directory, pack=pack, **sizes)
    model: deque[int] = deque()
    safe: list[int] = []
    following = 0
    for step, argument in steps:
        if step == "put":
            queue.put(rows(following, argument))
            model.extend(range(following, following + argument))
            following += argument
        elif step == "get":
            batch = queue.get(argument)
            expected = [model.popleft() for _ in range(min(argument, len(model)))]
            assert numbers([batch] if batch is not None else []) == expected
        elif step == "state":
            snapshot = checkpoint.take({"q": queue.state()})
            if argument:
                snapshot.make_durable()
                checkpoint.committed(snapshot)
                safe = list(model)
        elif step == "restart":
            queue.close()
            checkpoint.close()
            if argument:
                (directory / "q-99999999.seg").write_bytes(b"left by a crash")
            pack = not pack
            checkpoint, queue = opened(directory, pack=pack, **sizes)
            model = deque(safe)
        else:
            assert numbers(list(queue.scan())) == list(model)
        assert len(queue) == len(model)
        assert (queue.size_bytes > 0) == bool(model)
    queue.close()
    checkpoint.close()


def test_a_short_queue_does_not_touch_the_disk(tmp_path: Path) -> None:
    _, queue = opened(tmp_path)
    for start in range(0, 30, 3):
        queue.put(rows(start, 3))
    assert numbers([queue.get(100)]) == list(range(30))
    assert queue.get(1) is None
    assert queue.statistics().written_bytes == 0


def test_segments_roll_and_go_only_after_a_checkpoint_without_them(tmp_path: Path) -> None:
    checkpoint, queue = opened(tmp_path, buffer_rows=10, segment_bytes=1000)
    for start in range(0, 500, 10):
        queue.put(rows(start, 10))
    commit(checkpoint, queue)
    commit(checkpoint, queue)
    before = set(checkpoint.store.names())
    assert len(before) > 3
    assert numbers([queue.get(400)]) == list(range(400))
    assert set(checkpoint.store.names()) == before
    commit(checkpoint, queue)
    assert set(checkpoint.store.names()) == before
    commit(checkpoint, queue)
    assert set(checkpoint.store.names()) < before
    assert len(queue) == 100


def test_another_process_can_look(tmp_path: Path) -> None:
    checkpoint, queue = opened(tmp_path)
    queue.put(rows(0, 7))
    queue.get(2)
    checkpoint.take({"q": queue.state()}, {"pages": 3}).make_durable()
    queue.put(rows(7, 5))
    store, counters = look(tmp_path)
    other = DiskQueue(store, "q", SCHEMA, store.participant("q"))
    assert counters == {"pages": 3}
    assert numbers(list(other.scan())) == [2, 3, 4, 5, 6]
    other.put(rows(0, 1))
    with pytest.raises(RuntimeError, match="for reading only"):
        other.state()


def test_damage_is_recognised(tmp_path: Path) -> None:
    checkpoint, queue = opened(tmp_path)
    queue.put(rows(0, 7))
    commit(checkpoint, queue)
    path = tmp_path / checkpoint.store.names()[0]
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateDamaged, match="damaged: its bytes from 0 on"):
        queue.get(1)


def test_the_schema_is_the_queues(tmp_path: Path) -> None:
    checkpoint, queue = opened(tmp_path)
    with pytest.raises(TypeError, match="holds"):
        queue.put(pa.record_batch({"n": [1]}))
    assert "0 rows" in repr(queue)
    assert "manifest 0" in repr(checkpoint)


def test_rows_that_passed_by_the_disk_stay_ahead_of_those_on_it(tmp_path: Path) -> None:
    checkpoint, queue = opened(tmp_path, buffer_rows=4)
    queue.put(rows(0, 3))
    assert numbers([queue.get(1)]) == [0]
    queue.put(rows(3, 9))
    commit(checkpoint, queue)
    queue.close()
    checkpoint.close()
    _, queue = opened(tmp_path)
    assert numbers([queue.get(100)]) == list(range(1, 12))


def test_what_waits_in_memory_is_bounded_in_bytes_too(tmp_path: Path) -> None:
    """However few rows it is: URLs may be long."""
    _, queue = opened(tmp_path)
    long = pa.record_batch([pa.array([1], pa.uint64()), pa.array([bytes(BUFFER_BYTES // 4)])], schema=SCHEMA)
    for _ in range(9):
        queue.put(long)
        assert queue.size_bytes - queue.statistics().written_bytes < BUFFER_BYTES
    assert len(queue) == 9 and [len(queue.get(1)) for _ in range(9)] == [1] * 9


def test_columns_that_this_version_does_not_know_are_told(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        with DiskQueue(checkpoint.store, "q", SCHEMA) as queue:
            queue.put(rows(0, 3))
            state = queue.state()
        wider = pa.schema([*SCHEMA, ("more", pa.float64())])
        with DiskQueue(checkpoint.store, "q", wider, state) as queue, pytest.raises(OtherVersion, match="with columns"):
            queue.get(3)
