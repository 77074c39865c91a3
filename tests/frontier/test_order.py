"""What each crawl order puts first."""

import numpy as np
import pytest

from frontier.shard import rows
from fyke.core.batches import u64
from fyke.core.config import FrontierSection
from fyke.core.errors import ConfigurationError, PluginError
from fyke.frontier.order import LAST, LEVELS, crawl_order

FOUND = [(1, number) for number in range(10)]


def levels(order: str, patterns: list[str] | None = None, **columns: list[int]) -> list[int]:
    ordered = crawl_order(FrontierSection(order=order, order_patterns=patterns or []))
    assert len(ordered.levels(rows([]))) == 0
    return [int(level) for level in ordered.levels(rows(FOUND, **columns))]


def test_breadth_first_has_one_level() -> None:
    assert levels("breadth-first") == [0] * 10


def test_by_depth_the_nearer_come_first() -> None:
    depths = [0, 1, 2, 6, 7, 8, 100, 65_535, 3, 0]
    assert levels("depth", depth=depths) == [min(depth, LAST) for depth in depths]


def test_by_in_degree_a_level_is_a_factor_of_four() -> None:
    degrees = [0, 2, 3, 14, 15, 63, 4**6 - 1, 4**7 - 2, 4**7 - 1, 2**32 - 1]
    assert levels("in-degree", in_degree=degrees) == [7, 7, 6, 6, 5, 4, 1, 1, 0, 0]


def test_by_pattern_the_first_match_counts() -> None:
    assert levels("patterns", ["/[35]$", "/[1-6]$", "d2"]) == [7, 1, 1, 0, 1, 0, 1, 7, 7, 7]


@pytest.mark.parametrize("patterns", [[], ["a"] * LEVELS, ["(unclosed"]])
def test_patterns_that_cannot_be_used_are_refused(patterns: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="order_patterns"):
        levels("patterns", patterns)


def test_random_is_even_and_always_the_same() -> None:
    order = crawl_order(FrontierSection(order="random"))
    urls = rows([(number % 50, number) for number in range(8000)])
    drawn = np.asarray(order.levels(urls)).astype(int)
    assert np.array_equal(drawn, order.levels(urls))
    assert np.array_equal(drawn, np.asarray(u64(urls, "key") >> np.uint64(61)).astype(int))
    assert np.bincount(drawn, minlength=LEVELS).min() > 850


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(PluginError, match="no-such-order"):
        crawl_order(FrontierSection(order="no-such-order"))
