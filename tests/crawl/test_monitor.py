"""Rates as a person reads them."""

from dataclasses import replace

import pytest

from fyke.crawl.monitor import WINDOW_S, Rates
from fyke.crawl.statistics import CrawlStatistics


@pytest.mark.parametrize("step_s", [0.5, 5.0])
def test_rates_are_of_the_last_seconds_from_the_first_look_on(step_s: float) -> None:
    """Ten pages a second at first, then none; a run that goes on does not count the pages of those before."""
    rates = Rates(CrawlStatistics(pages=700))
    for step in range(1, 9):
        now = CrawlStatistics(elapsed_s=step * step_s, pages=700 + int(10 * step * step_s))
        assert rates.add(now)[0] == pytest.approx(10)
    for step in range(9, 9 + int(WINDOW_S / step_s)):
        last, _ = rates.add(replace(now, elapsed_s=step * step_s))
    assert last == pytest.approx(0)


def test_no_time_is_no_rate() -> None:
    assert Rates(CrawlStatistics()).add(CrawlStatistics()) == (0.0, 0.0)
