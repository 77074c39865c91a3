"""Pages of the virtual web change as they are said to, and the crawl that never ends keeps up with them."""

from dataclasses import replace

import numpy as np
import pytest

from fyke.lab.simulate import texts
from fyke.lab.simulate.changing import LISTS, MOST_LISTED, Lists, Pages
from fyke.lab.simulate.domain_sizes import DomainSizes
from fyke.lab.simulate.keep import opened, simulate
from lab.simulate.runs import FINITE, settings_for

DAY = 86400.0


def some_pages(count):
    numbers = np.arange(count)
    return texts.written(numbers % 40, np.zeros(count, np.int64), numbers)


@pytest.mark.parametrize("bursty", [0.0, 1.0])
def test_versions_only_grow_and_as_fast_as_the_rates_say(bursty):
    pages, text = Pages(7, 3.0, bursty, 0.0), some_pages(4000)
    times = [0.0, 0.5 * DAY, 3 * DAY, 3 * DAY + 1, 30 * DAY, 300 * DAY]
    versions = np.array([pages.versions(text, time) for time in times])
    assert (np.diff(versions, axis=0) >= 0).all()
    assert (versions[:, :2000] == [pages.versions(text[:2000], time) for time in times]).all()
    grown = versions[-1] - versions[0]
    assert np.median(grown) == pytest.approx(100, rel=0.35)  # a change each three days in the median
    quiet = np.mean(versions[2] == versions[0])  # in the first three days
    assert quiet > 0.65 if bursty else 0.35 < quiet < 0.6


def test_a_crawl_that_never_ends_keeps_up(tmp_path):
    spec, seldom = replace(FINITE, change_days=8.0, listed_share=0.2), {"least_s": DAY / 2}
    wanted = replace(settings_for("star-beast"), spec=spec, revisit=seldom)
    with opened(tmp_path, wanted) as simulation:
        simulate(simulation, 2500)
    with opened(tmp_path, wanted) as simulation:  # goes on where it was
        simulate(simulation, 3000)
        crawl = simulation.simulation
        seen, believed = crawl.copies.seen(crawl.clock.now()), crawl.frontier.known_pages.freshness
    assert seen.pages > 500 and seen.revisits > 300
    assert 0.75 < seen.fresh <= 1 and 0.05 < seen.changed / seen.revisits < 0.95
    assert abs(believed.fresh - seen.fresh) < 0.2


def test_lists_say_what_their_kind_says():
    """Of the changes of some days that precise lists announce, imprecise ones, and those that lie."""
    spec = replace(FINITE, domains=400, change_days=8.0)
    pages, domains = Pages(spec.seed, 8.0, 0.0, 0.0), DomainSizes(spec)
    lists = Lists(spec.seed, pages, domains, 0.6)
    every = np.arange(spec.domains)
    listed = lists.there(every, np.zeros_like(every))
    assert 0.5 < listed.mean() < 0.7 and not lists.there(every, np.ones_like(every)).any()
    counts = np.zeros((len(LISTS), 3))  # changes, those announced, dates
    for domain in every[listed].tolist():
        page = np.arange(1, min(domains.pages[domain], MOST_LISTED))
        of = np.full(len(page), domain)
        text = texts.written(of, domains.host_of(of, page), page)
        changed, at = pages.last_change(text, 20 * DAY, 22 * DAY)
        assert (pages.versions(text, at) == pages.versions(text, 22 * DAY))[changed].all()
        told = lists.told(domain, 20 * DAY, 22 * DAY)
        said = np.isin(texts.keys(text), told.column("key").to_numpy())
        counts[lists.kind(domain)] += changed.sum(), (changed & said).sum(), said.sum()
        assert ((told.column("at").to_numpy() >= 20 * DAY) & (told.column("at").to_numpy() <= 22 * DAY)).all()
    for (recall, precision), (changes, announced, dates) in zip(LISTS, counts, strict=True):
        assert changes > 50
        if recall:
            assert recall - 0.1 < announced / changes < recall + 0.3 and announced / dates > precision - 0.15
        else:
            assert dates > 2 * changes
