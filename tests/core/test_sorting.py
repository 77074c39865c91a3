"""Laws of hashes in order: what plain Python says of them."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.sorting import distinct, grouped, nth_of_each, stably_sorted

CLOSE = st.one_of(st.integers(0, 9), st.integers(2**64 - 9, 2**64 - 1), st.integers(0, 2**64 - 1))


@given(st.lists(CLOSE, max_size=300))
def test_it_is_a_stable_sort(keys: list[int]) -> None:
    order, ordered = stably_sorted(np.array(keys, np.uint64))
    assert ordered.tolist() == sorted(keys)
    assert order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.lists(CLOSE, max_size=300))
def test_groups_are_of_equal_keys(keys: list[int]) -> None:
    groups = grouped(np.array(keys, np.uint64))
    expected = [[*places] for _, places in groupby(sorted(range(len(keys)), key=keys.__getitem__), keys.__getitem__)]
    assert [part.tolist() for part in np.split(groups.order, groups.starts[1:]) if len(part)] == expected
    assert groups.keys.tolist() == sorted(set(keys)) == distinct(np.array(keys, np.uint64)).tolist()
    assert groups.counts.tolist() == [*map(len, expected)]
    assert (groups.last + 1).tolist() == np.cumsum(groups.counts).tolist()
    assert groups.keys[groups.group_of[groups.places]].tolist() == keys


@pytest.mark.parametrize("count", [5_000, 70_000])
def test_numbers_that_are_no_hashes(count: int) -> None:
    """They differ in their low bits alone, in which the sort keeps the places."""
    keys = np.arange(count, dtype=np.uint64)[::-1].copy()
    order, ordered = stably_sorted(keys)
    assert (ordered == np.arange(count)).all() and (keys[order] == ordered).all()


@given(st.lists(CLOSE, max_size=30))
def test_equal_keys_are_numbered_as_they_come(keys: list[int]) -> None:
    expected = [keys[:place].count(key) for place, key in enumerate(keys)]
    assert nth_of_each(np.array(keys, np.uint64)).tolist() == expected
