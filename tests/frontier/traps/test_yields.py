"""What is counted of shapes: as a plain dictionary has it, and at a cost that does not grow with what is known."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alone import traced
from fyke.frontier.traps.yields import BARREN, COUNT, FERTILE, MOST_SHAPES, STEADY, Yields

AFTER = 6
SHAPES = 8
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(1, SHAPES), st.booleans()), max_size=40), st.sampled_from([1, 2]), st.booleans()
    ),
    max_size=12,
)


def rows(pages):
    """Pages of shapes, fresh or not, each shape with an owner that two share."""
    return np.array([(shape, 100 + shape // 2, 0, 0, fresh, False) for shape, fresh in pages], COUNT)


class Model:
    """The same, page by page."""

    def __init__(self):
        self.shares, self.pages, self.brought, self.barren = {}, Counter(), Counter(), set()

    def kept(self, shape, patience, steady):
        if steady:
            rare = self.pages[shape] / max(self.brought[shape], 1)
            patience = max(1, min(rare, STEADY, 1 + 2 * self.brought[shape] / AFTER))
        return BARREN ** (-1 / (AFTER * patience))

    def add(self, pages, patience, steady):
        before = set(self.barren)
        kept_of = {shape: self.kept(shape, patience, steady) for shape, _ in pages}
        for shape, fresh in pages:
            kept = kept_of[shape]
            self.shares[shape] = self.shares.get(shape, 1.0) * kept + fresh * (1 - kept)
            self.pages[shape] += 1
            self.brought[shape] += fresh
        for shape in {shape for shape, _ in pages}:
            if self.shares[shape] * BARREN <= 1.0001:
                self.barren.add(shape)
            if self.shares[shape] * FERTILE >= 1:
                self.barren.discard(shape)
        return sorted(100 + shape // 2 for shape in self.barren - before), bool(before - self.barren)


@given(BATCHES)
def test_shapes_are_counted_as_one_by_one(batches):
    yields, model = Yields(AFTER, np.zeros(0, COUNT)), Model()
    for pages, patience, steady in batches:
        fell, rose = yields.add(rows(pages), patience, steady=steady)
        assert (sorted(fell), rose) == model.add(pages, patience, steady)
        keys = np.arange(SHAPES + 2, dtype=np.uint64)
        found = yields.of(keys)
        assert found["pages"].tolist() == [yields.pages(int(key)) for key in keys] == [model.pages[key] for key in keys]
        assert found["brought"].tolist() == [model.brought[key] for key in keys]
        assert found["fresh"] == pytest.approx([model.shares.get(key, 0.0) for key in keys], abs=1e-4)
        assert set(keys[found["barren"]].tolist()) == model.barren
        assert yields.owners == Counter(100 + shape // 2 for shape in model.barren)
        assert yields.barren == len(model.barren)
    again = Yields(AFTER, yields.counts.copy())
    assert (again.owners, again.barren) == (yields.owners, yields.barren)
    assert (again.of(keys) == found).all() if batches else True


def stale_until_barren(shown: list[bool], *, steady: bool = True) -> int:
    """How many pages in a row that are not fresh make a shape barren that showed these before, one by one."""
    yields = Yields(AFTER, np.zeros(0, COUNT))
    for fresh in shown:
        yields.add(rows([(1, fresh)]), steady=steady)
    assert not yields.barren
    for stale in range(1, 1000):
        yields.add(rows([(1, False)]), steady=steady)
        if yields.barren:
            return stale
    raise AssertionError("never")


@given(st.lists(st.booleans(), max_size=60))
def test_what_a_steady_shape_costs_is_bounded_by_what_it_brought(shown):
    yields = Yields(AFTER, np.zeros(0, COUNT))
    for at, fresh in enumerate(shown):
        yields.add(rows([(1, fresh)]), steady=True)
        if yields.barren:
            shown = shown[:at]
    left = stale_until_barren(shown)
    assert left <= min(STEADY * AFTER, AFTER + 2 * sum(shown)) + 1


def test_a_shape_of_which_every_second_page_is_fresh_takes_longer_to_fall_than_one_of_which_all_are():
    all_were = stale_until_barren([True] * 40)
    assert AFTER <= all_were <= 2 * AFTER
    assert stale_until_barren([True, False] * 20) > all_were
    assert stale_until_barren([True, False] * 20, steady=False) < AFTER
    assert stale_until_barren([]) == AFTER, "who brought nothing has no more time than before"


def test_of_too_many_those_with_the_most_pages_are_kept():
    yields = Yields(AFTER, np.zeros(0, COUNT), most=10)
    stale = [(shape, False) for shape in range(1, 6) for _ in range(2 * AFTER)]
    fell, _ = yields.add(rows(stale))
    assert len(fell) == yields.barren == 5
    _, rose = yields.add(rows([(shape, True) for shape in range(6, 13)]))
    assert sorted(yields.counts["key"].tolist()) == [1, 2, 3, 4, 5]
    assert not rose
    _, rose = yields.add(rows([(shape, True) for shape in range(20, 30) for _ in range(9 * AFTER)]))
    assert len(yields.counts) == 5
    assert rose, "what was barren is not known any more, so what waits for it may go on"
    assert yields.barren == len(yields.owners) == 0


def test_a_page_costs_the_same_however_many_shapes_are_known():
    known = np.zeros(MOST_SHAPES - 1000, COUNT)
    known["key"] = known["owner"] = np.arange(1, len(known) + 1) << 20
    known["barren"] = np.arange(len(known)) % 2
    yields = Yields(AFTER, known)
    yields.add(rows([(1, True)]))  # room for more is made now and then
    _, peak = traced(yields.add, rows([(shape, False) for shape in range(2, 50)]))
    assert peak < 64 << 10, "a copy of what is known would be three megabytes"
