"""The laws of the ready queues: all comes out once, what is first comes sooner, and nothing starves."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontier.shard import Answers, Shard, at, pages, rows
from fyke.core.batches import numbers, u64
from fyke.core.plugins import CrawlOrder
from fyke.frontier.order import LAST, LEVELS, BreadthFirst, ByDepth, Random
from fyke.frontier.ready import SPILLS, Ready

Waiting = dict[str, Counter[tuple[int, int]]]


class Line(Shard[Ready, Waiting]):
    """The model: the pages that wait in line, and those that were put back."""

    def put(self, found: list[tuple[int, int]]) -> None:
        self.stage.put(rows(found, depth=[number % 10 for _, number in found]))
        self.model["ready"].update(found)

    def take(self, most: int) -> None:
        urls = self.stage.take(most)
        assert urls.num_rows <= most
        assert (urls.num_rows > 0) == (self.model["ready"].total() > 0)
        self.model["ready"].subtract(pages(urls))
        back = urls.slice(0, urls.num_rows // 2)
        self.stage.put_back(back)
        self.model["spilled"].update(pages(back))

    def take_spilled(self, domain: int) -> None:
        place = at(domain, 0).host % SPILLS
        before = self.stage.spilled_at(place)
        urls = self.stage.take_spilled(place, 3)
        assert urls.num_rows == min(3, before)
        assert set((u64(urls, "host") % np.uint64(SPILLS)).tolist()) <= {place}
        self.model["spilled"].subtract(pages(urls))

    def check(self) -> None:
        assert self.stage.waiting == self.model["ready"].total()
        assert self.stage.spilled == self.model["spilled"].total()
        assert len(self.stage) == self.stage.waiting + self.stage.spilled
        waiting = Counter(one for urls in self.stage.scan() for one in pages(urls))
        assert waiting == +self.model["ready"] + +self.model["spilled"]


def line(directory: Path, order: CrawlOrder) -> Line:
    return Line(directory, lambda store, state: Ready(store, order, state), {"ready": Counter(), "spilled": Counter()})


STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 50)), max_size=20)),
    st.tuples(st.just("take"), st.integers(1, 30)),
    st.tuples(st.just("take_spilled"), st.integers(0, 30)),
    st.tuples(st.just("save"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)


@pytest.mark.parametrize("order", [BreadthFirst(), ByDepth(), Random()], ids=lambda order: type(order).__name__)
@settings(max_examples=30, deadline=None)
@given(steps=st.lists(STEPS, max_size=20))
def test_what_waits_comes_out_once(
    tmp_path_factory: pytest.TempPathFactory, order: CrawlOrder, steps: list[tuple[str, Any]]
) -> None:
    ready = line(tmp_path_factory.mktemp("ready"), order)
    for step, argument in steps:
        getattr(ready, step)(*([] if argument is None else [argument]))
        ready.check()
    while ready.stage.waiting:
        ready.take(1000)
    while ready.stage.spilled:
        assert any(ready.stage.spilled_at(place) for place in range(SPILLS))
        for domain in range(31):
            ready.take_spilled(domain)
    ready.check()
    ready.close()


def leveled(directory: Path, each: int, levels: int = LEVELS) -> Line:
    """A line with so many pages in each of the first levels."""
    ready = line(directory, ByDepth())
    for depth in range(levels):
        ready.stage.put(rows([(depth, number) for number in range(each)], depth=depth))
    return ready


def test_a_level_is_drained_twice_as_fast_as_the_next(tmp_path: Path) -> None:
    ready = leveled(tmp_path, 4000)
    drained: Counter[int] = Counter()
    for _ in range(4):
        drained.update(numbers(ready.stage.take(1024), "depth").tolist())
    assert drained.total() == 4 * 1024
    counts = [drained[level] for level in range(LEVELS)]
    assert all(one == 2 * after for one, after in pairwise(counts[:-1]))
    assert counts[-2] == counts[-1]
    ready.close()


@pytest.mark.parametrize("most", [1, 2, 3, 10, 500])
def test_no_level_starves(tmp_path: Path, most: int) -> None:
    """Also when URLs are taken one at a time, and the first level never runs dry."""
    ready = leveled(tmp_path, 4000)
    drained: Counter[int] = Counter()
    while drained.total() < 3000:
        drained.update(numbers(ready.stage.take(most), "depth").tolist())
    shares = [3000 >> min(level + 1, LAST) for level in range(LEVELS)]
    assert all(abs(drained[level] - share) <= max(2, share // 2) for level, share in enumerate(shares))
    ready.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([0, 3, 7], [0, 3, 7]),
        (np.array([-5, 99, 2]), [0, 7, 2]),
        ([0.5, 3.0, float("inf")], [0, 3, 7]),
        ([0.0, float("nan"), 2.0], None),
        ([0, 1], None),
        ([[0, 1, 2]], None),
        (3, None),
        (None, None),
        ("first", None),
        (RuntimeError("broken"), None),
    ],
)
def test_an_order_that_talks_nonsense_orders_nothing(tmp_path: Path, answer: Any, expected: list[int] | None) -> None:
    ready = line(tmp_path, Answers(answer))
    ready.stage.put(rows([(1, 0), (1, 1), (1, 2)]))
    levels = {one: level for level in range(LEVELS) for one in pages(ready.stage.queues()[level].get(9))}
    assert [levels[1, number] for number in range(3)] == (expected or [LAST] * 3)
    assert ready.stage.failures == ({} if expected else {"Answers": 1})
    ready.close()
