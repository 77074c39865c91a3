"""Rates as a person reads them, and the panel and the line they are in."""

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fyke.archive.directory import CrawlDirectory
from fyke.archive.statistics import CrawlStatistics, PassFound
from fyke.core.config import CrawlSection
from fyke.core.freshness import Freshness
from fyke.crawl.loop import Ending
from fyke.crawl.monitor import ENDED, REST_TOLD_S, WINDOW_S, Rates, line, panel
from fyke.crawl.summary import Summary, report
from fyke.quantities import counted


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


def test_each_ending_has_its_words() -> None:
    assert set(ENDED) == set(Ending)


def test_no_time_is_no_rate() -> None:
    assert Rates(CrawlStatistics()).add(CrawlStatistics()) == (0.0, 0.0)


COUNTS = st.integers(0, 2 * 10**9)
LARGE = CrawlSection(seeds=["http://www.a-name-that-is-rather-long.example.org/with/a/path/"] * 3, pages=10**7)


@given(
    columns=st.integers(38, 250),
    now=st.builds(
        CrawlStatistics, pages=COUNTS, bytes=COUNTS, in_flight=COUNTS, hosts=COUNTS, urls=COUNTS, waiting=COUNTS,
        domains=COUNTS, over_budget=COUNTS, elapsed_s=st.floats(0, 1e7), rest_until=st.sampled_from([0.0, 1100.0]),
        outcomes=st.dictionaries(st.sampled_from(["client_error", "robots_forbade", "timed_out"]), COUNTS),
        again=st.builds(PassFound, COUNTS, st.just(0.0), unchanged=COUNTS, changed=COUNTS, new=COUNTS, gone=COUNTS),
        freshness=st.none() | st.builds(Freshness, fresh=st.floats(0, 1), due=COUNTS),
    ),
)  # fmt: skip
def test_the_panel_is_whole_in_any_terminal(columns: int, now: CrawlStatistics) -> None:
    """Between two borders nothing is cut but the name of the seed."""
    console = Console(width=columns, height=50, color_system=None)
    with console.capture() as captured:
        console.print(panel(LARGE, now, (12_345.6, 1e9), 1000.0, columns, LARGE.seeds[0]))
    lines = captured.get().splitlines()
    assert len({len(line) for line in lines}) == 1 and len(lines[0]) <= columns
    assert all(line[0] + line[-1] in ("╭╮", "││", "╰╯") for line in lines)
    text = re.sub(r"\W+", " ", " ".join(line.strip("│╰╯─ ") for line in lines))
    told = [
        f"{now.pages:,} pages",
        f"{now.waiting:,} waiting",
        f"{now.urls:,} URLs seen",
        "Ctrl-C stops; the same command resumes",
    ]
    told += [f"{name.replace('_', ' ')} {count:,}" for name, count in now.outcomes.items()]
    told += ["all hosts rest until"] if now.rest_until else []
    assert all(re.sub(r"\W+", " ", words) in text for words in told), (told, text)


@pytest.mark.parametrize("columns", [60, 120])
def test_the_panel_names_the_seed_as_it_is(columns: int) -> None:
    """No part of it is taken for markup, or a picture."""
    console = Console(width=columns, height=50, color_system=None)
    seed = "http://[fd00::1]:80/12:man:30"
    with console.capture() as captured:
        console.print(panel(LARGE, CrawlStatistics(), (0.0, 0.0), 1000.0, columns, seed))
    assert seed in captured.get()


@given(left_s=st.floats(-100, 10_000))
def test_a_rest_of_all_hosts_is_told(left_s: float) -> None:
    told = line(LARGE, CrawlStatistics(rest_until=1e9 + left_s), (0.0, 0.0), 1e9)
    assert ("all hosts rest until" in told) == (left_s >= REST_TOLD_S)


def test_one_is_one() -> None:
    assert "  1 page " in line(LARGE, CrawlStatistics(pages=1, hosts=1), (0.0, 0.0), 0.0)
    assert "  1 host " in line(LARGE, CrawlStatistics(pages=1, hosts=1), (0.0, 0.0), 0.0)
    assert [counted(n, "try") for n in (0, 1, 2, 1000)] == ["0 tries", "1 try", "2 tries", "1,000 tries"]


def test_an_end_that_no_agent_can_date_names_no_date(tmp_path: Path) -> None:
    """As one of several whose hosts are blocked, beside others whose hosts rest."""
    told = StringIO()
    resting = Summary(Ending.RESTING, CrawlStatistics(waiting=3), 0)
    report(resting, CrawlDirectory(tmp_path), Console(file=told, width=200))
    assert "3  URLs wait for hosts that rest\n" in told.getvalue()
