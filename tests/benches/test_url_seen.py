"""The law of every URL-seen structure: what a plain set calls new comes out, each once. Bloom filters lose a few."""

from pathlib import Path

import numpy as np
import pytest
from url_seen.bloom_by_site import BloomBySite, false_positives
from url_seen.run import STRUCTURES, Task, fill, opened, structure
from url_seen.stream import URL_BYTES, Stream

MEMORY_BYTES = 200_000
NEEDS = {"rocksdb": "rocksdict", "lmdb": "lmdb"}


def task_for(name: str, directory: Path, **fields: object) -> Task:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    values = {"table": 20_000, "links": 30_000, "memory_bytes": MEMORY_BYTES, "batch": 1000} | fields
    return Task(name, "measure", str(directory), **values)


def filled(task: Task):
    """The structure with its table, opened a second time when it lasts."""
    seen = opened(task, 4 * MEMORY_BYTES)
    fill(task, seen)
    if seen.persistent:
        seen.close()
        seen = opened(task, task.memory_bytes)
    return seen


def came_out(task: Task, seen) -> list[bytes]:
    uniques = [piece for keys, texts, _ in task.stream.batches() for piece in seen.check_update(keys, texts)]
    uniques += list(seen.finish())
    return [text for piece in uniques for text in piece.to_pylist()]


def expected(stream: Stream) -> list[bytes]:
    seen = set(stream.texts(np.arange(stream.table, dtype=np.uint64)).to_pylist())
    texts = (text for _, batch, _ in stream.batches() for text in batch.to_pylist())
    return [text for text in texts if not (text in seen or seen.add(text))]


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name != "bloom by site"])
@pytest.mark.parametrize("table", [0, 20_000])
def test_what_a_plain_set_calls_new_comes_out_once(tmp_path: Path, name: str, table: int) -> None:
    task = task_for(name, tmp_path, table=table)
    seen = filled(task)
    found = came_out(task, seen)
    seen.close()
    assert len(found) > 3000
    assert sorted(found) == sorted(expected(task.stream))


def test_bloom_filters_repeat_nothing_and_lose_what_theory_says(tmp_path: Path) -> None:
    task = task_for("bloom by site", tmp_path, table=100_000, links=200_000, memory_bytes=80_000)
    seen = filled(task)
    assert isinstance(seen, BloomBySite)
    found, new = came_out(task, seen), expected(task.stream)
    assert len(set(found)) == len(found)
    assert set(found) <= set(new)
    pages = [(task.table + at) / task.stream.sites for at in range(len(new))]
    lost = sum(false_positives(number, seen.site_bytes) for number in pages)
    assert len(new) - len(found) == pytest.approx(lost, rel=0.15)


def test_a_stream_is_what_it_says() -> None:
    stream = Stream(50_000, 200_000, batch=1000)
    numbers = np.concatenate(list(stream.filling("text", 7000)))
    assert sorted(numbers.tolist()) == list(range(50_000))
    texts = stream.texts(numbers).to_pylist()
    assert texts == sorted(texts) and {len(text) for text in texts} == {URL_BYTES}
    keys = stream.keys(np.concatenate(list(stream.filling("key", 7000))))
    assert (keys[1:] > keys[:-1]).all()
    batches = list(stream.batches())
    new = sum(count for _, _, count in batches)
    assert new == pytest.approx(0.11 * 200_000, rel=0.02)
    distinct = np.unique(np.concatenate([batch for batch, _, _ in batches]))
    assert len(np.setdiff1d(distinct, keys)) == new


def test_every_structure_is_a_class_that_is_there() -> None:
    for name in STRUCTURES:
        if name not in NEEDS:
            assert structure(name).filled_by in ("key", "text")
