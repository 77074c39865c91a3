"""The benches in small: what they are to show already shows."""

from dataclasses import replace

import beast_cost
import pytest
import simulated_scale
import spam

from fyke.lab.simulate.keep import SimulationSettings, opened
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.quantities import bytes_text


@pytest.mark.parametrize("shape", ["own", "huge", "tiny"])
def test_in_a_small_web_too_farms_get_at_most_half_of_what_they_get_breadth_first_and_nobody_starves(shape):
    """With the settings as shipped, where politeness lets nobody but farms be fetched at once."""
    spec, pages = spam.SHAPES[shape](3000), 15_000
    first, reputation = (spam.crawled(spec, policy, pages) for policy in spam.POLICIES)
    assert first.honest.pages >= spam.SPARE * pages
    assert first.spam_of_fetches > 0.05
    assert reputation.spam_of_fetches < first.spam_of_fetches / 2
    assert reputation.honest.small > first.honest.small
    assert reputation.honest.large > first.honest.large / 2
    assert reputation.honest.giants_of_fetches > first.honest.giants_of_fetches / 2


def test_a_sweep_is_a_line_for_each_web(capsys):
    spam.sweep("500", "1", "own,tiny")
    heading, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["own", "tiny"]
    assert all(line.count("|") == heading.count("|") for line in lines)


def test_reputation_keeps_farms_from_what_they_get_breadth_first(tmp_path):
    web = VirtualWebSpec(
        domains=40_000, farms=6, spammed_share=0.08, spam_cousins=3, size_scale=20.0, giants=6, giant_pages=50_000
    )
    few = {"window_visits": 3000, "host_visits": 16, "default_budget_urls": 2, "max_budget_urls": 40}
    crawls = {
        policy: spam.crawled(web, policy, 50_000, frontier=few, politeness={"host_delay_s": 2.0})
        for policy in spam.POLICIES
    }
    first, reputation = crawls["breadth-first"], crawls["star-beast"]
    assert first.spam_of_urls > 0.25
    assert reputation.spam_of_fetches < first.spam_of_fetches / 2
    spam.draw(crawls, tmp_path / "spam.svg")
    assert (tmp_path / "spam.svg").stat().st_size > 10_000


def test_the_naive_queue_moves_more_a_page_the_longer_the_crawl_and_beast_does_not(tmp_path):
    crawls = {policy: beast_cost.crawled(policy, 150, 48_000) for policy in beast_cost.POLICIES}
    late = {policy: beast_cost.bytes_per_page(samples, 48_000) for policy, samples in crawls.items()}
    middle = {policy: beast_cost.bytes_per_page(samples, 12_000) for policy, samples in crawls.items()}
    assert late["star-beast"] < 2.5 * middle["star-beast"], "a part of it may just have been read again"
    assert late["naive"] > middle["naive"]
    assert late["naive"] > 1.5 * late["star-beast"]
    assert beast_cost.bytes_per_page(crawls["naive"], 10**9) is None
    beast_cost.draw(crawls, tmp_path / "cost.svg")
    assert (tmp_path / "cost.svg").stat().st_size > 5_000


def test_the_scale_bench_stops_and_goes_on(tmp_path):
    settings = simulated_scale.settings_of(2000)
    assert isinstance(settings, SimulationSettings)
    with opened(tmp_path, settings) as simulation:
        simulated_scale.run(simulation, 4000, 60)
    with opened(tmp_path, settings) as simulation:
        assert simulation.simulation.tally.totals.pages >= 4000
        simulated_scale.run(simulation, 8000, 0)
        assert simulation.simulation.tally.totals.pages < 8000, "its time was over"
        now = simulation.sample()
    said = simulated_scale.memory_held([replace(now, pages=n, memory_bytes=n << 20) for n in range(1, 101)])
    assert said.count(",") == 10, said
    assert said.endswith(f"at most {bytes_text(100 << 20)}")
