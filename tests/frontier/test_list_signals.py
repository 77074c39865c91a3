"""Signals wait until their pages are visited: each counted once, whatever the order, restarts or plans."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontier.shard import Shard
from fyke.frontier import list_signals
from fyke.frontier.list_signals import NEWS, ListSignals

KEYS = np.arange(1, 9, dtype=np.uint64)


def dated(rows: list[tuple[int, int]]) -> pa.RecordBatch:
    keys, at = np.array([key for key, _ in rows], np.uint64), np.array([float(at) for _, at in rows])
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(at)], schema=NEWS)


said = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 40)), max_size=12)
steps = st.lists(st.one_of(said, st.integers(1, 40), st.sampled_from(["plan", "save", "restart"])), max_size=30)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps)
def test_each_page_has_the_dates_that_are_later_than_all_before(tmp_path_factory: Any, steps: list[Any]) -> None:
    """A number is the time of a visit to all pages; until the next plan nothing that was noted counts."""
    shard = Shard(tmp_path_factory.mktemp("told"), lambda store, state: ListSignals(store, state), ([], {}, 0.0))
    news, model, visited = shard.model
    shard.save()
    for step in steps:
        if isinstance(step, list):
            shard.stage.note(dated(step))
            news.append(sorted(step, key=lambda row: row[1]))
        elif isinstance(step, int):
            visited = max(visited, float(step))
        elif step == "plan":
            for key, at in sorted((row for rows in news for row in rows), key=lambda row: row[1]):
                newest, times = model.get(key, (0, 0))
                if at > newest:
                    model[key] = (at, times + 1)
            news.clear()
            signals = shard.stage.gathered(0.0)
            found = signals.since(KEYS, np.full(len(KEYS), visited))
            model = {key: one for key, one in model.items() if one[0] > visited}
            assert found.tolist() == [model.get(int(key), (0, 0))[1] for key in KEYS]
            shard.stage.settle(signals)
        elif step == "save":
            shard.model = ([list(rows) for rows in news], dict(model), visited)
            shard.save()
        else:
            shard.restart()
            saved = shard.model
            news, model = [list(rows) for rows in saved[0]], dict(saved[1])
    shard.close()


def test_old_ones_go_and_memory_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(list_signals, "MOST", 100)
    shard = Shard(tmp_path, lambda store, state: ListSignals(store, state), None)
    shard.stage.note(dated([(key, key) for key in range(1, 1001)]))
    shard.stage.note(dated([(1, 5000)]))  # more than is kept
    signals = shard.stage.gathered(500.0)
    assert len(signals) == 100
    assert signals.since(np.array([1, 900, 901, 1000], np.uint64), np.zeros(4)).tolist() == [0, 0, 1, 1]
    assert len(shard.stage.gathered(999.5)) == 1
    shard.close()
