"""The Drum moves what the model says it must, and less than a batch merge. Bytes are counted, never time."""

from dataclasses import replace
from pathlib import Path

import pytest
from drum_overhead import ENDLESS, overhead
from url_seen.batch_merge import BatchMerge
from url_seen.drum import DrumSeen
from url_seen.run import Task, fill, opened
from url_seen.stream import URL_BYTES


def filled(name: str, directory: Path, table: int, memory_bytes: int, **fields: str) -> Task:
    directory.mkdir()
    task = Task(name, "fill", str(directory), table, ENDLESS, memory_bytes, **{"batch": 1000} | fields)
    seen = opened(task, memory_bytes)
    fill(task, seen)
    seen.close()
    return replace(task, step="measure")


@pytest.mark.parametrize("merges", [2, 6])
def test_the_overhead_is_the_models_when_nothing_can_be_packed(tmp_path: Path, merges: int) -> None:
    found = overhead(filled("drum", tmp_path / "drum", 300_000, 2 << 20, text="random", popularity="uniform"), merges)
    assert found.merges == merges
    assert found.waiting == pytest.approx(found.least - found.crawl.unique_share, rel=0.1)
    assert found.queue == pytest.approx(found.crawl.unique_share, rel=0.1)
    assert found.table <= 1.1 * (found.model - found.least)
    assert found.least < found.measured <= 1.1 * found.model
    assert found.by_system == pytest.approx(found.measured, rel=0.05)  # which also reads modules, imported meanwhile


def test_packed_the_overhead_is_below_the_models_floor_and_a_pass_over_the_table(tmp_path: Path) -> None:
    found = overhead(filled("drum", tmp_path / "drum", 300_000, 1 << 20), 3)
    assert found.waiting < 0.6 * (found.least - found.crawl.unique_share)
    assert found.measured < found.least


def test_the_drum_moves_less_than_a_batch_merge(tmp_path: Path) -> None:
    moved = {}
    for name in ("drum", "batch merge"):
        task = replace(filled(name, tmp_path / name.split()[0], 300_000, 1 << 20), links=100_000)
        seen = opened(task, task.memory_bytes)
        assert isinstance(seen, DrumSeen | BatchMerge)
        for keys, texts, _ in task.stream.batches():
            for _ in seen.check_update(keys, texts):
                pass
        for _ in seen.finish():
            pass
        moved[name] = seen.moved_bytes / (task.links * URL_BYTES)
        seen.close()
    assert moved["drum"] < 0.6 * moved["batch merge"]
