"""Ranges cut a table without losing or repeating a row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.disk.ranges import Buckets, ranges_for, sliced

ROW = np.dtype([("key", "<u8"), ("value", "<i4")])
KEYS = st.lists(st.integers(0, (1 << 64) - 1) | st.sampled_from([0, 1 << 63, (1 << 64) - 1]), max_size=40)


def table(keys: list[int]) -> np.ndarray:
    rows = np.zeros(len(keys), ROW)
    rows["key"], rows["value"] = np.array(keys, np.uint64), np.arange(len(keys))
    return rows


@given(keys=KEYS, power=st.integers(0, 6))
def test_slices(keys: list[int], power: int) -> None:
    rows = np.sort(table(keys), order="key")
    parts = [sliced(rows, "key", at, 1 << power) for at in range(1 << power)]
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    for at, part in enumerate(parts):
        assert all(int(key) >> 64 - power == at for key in part["key"])


@settings(deadline=None)
@given(keys=KEYS, power=st.integers(0, 5), cut=st.integers(0, 40), waiting=st.sampled_from([1, 7, 1000]))
def test_buckets(tmp_path_factory: pytest.TempPathFactory, keys: list[int], power: int, cut: int, waiting: int) -> None:
    rows = table(keys)
    buckets = Buckets(tmp_path_factory.mktemp("buckets"), "test", ROW, 1 << power, waiting)
    for part in (rows[:cut], rows[cut:]):
        buckets.add(np.ascontiguousarray(part["key"]), part)
    found = list(buckets)
    for at, part in enumerate(found):
        wanted = rows[[int(key) >> 64 - power == at for key in rows["key"]]] if len(rows) else rows
        np.testing.assert_array_equal(part, wanted)
    assert buckets.rows == len(rows)


@given(rows=st.integers(0, 10**9), each=st.integers(1, 10**6))
def test_how_many(rows: int, each: int) -> None:
    count = ranges_for(rows, each)
    assert count.bit_count() == 1 and count * each >= rows
    assert count == 1 or count * each < 2 * rows
