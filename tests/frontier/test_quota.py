"""A host has no more pages than it may have, and as many as it may where it has them; what is left out is named."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontier.small_web import Crawl, SmallWeb, small_web
from fyke.core.batches import Kind, texts, url_batch
from fyke.core.errors import ConfigurationError
from fyke.core.messages import ended_batch
from fyke.core.outcomes import Outcome
from fyke.core.site import SiteSection
from fyke.core.urls import locate, split
from fyke.core.visits import visits_of
from fyke.frontier.sizes import Sizes

SIZES = Sizes(batch=16, ready=10, ordered=20, asks=3)
TABLES = [
    SiteSection(match="*", pages=3),
    SiteSection(match="*.d1.example", pages=0),
    SiteSection(match="*.spam.example", pages=2),
    SiteSection(match="H1.spam.example", pages=5),
    SiteSection(match="h1.spam.example", delay_s=0),  # says nothing of pages
]


def most(host: str) -> float:
    if host == "h1.spam.example":
        return 5
    return 2 if host.endswith(".spam.example") else float("inf") if host.endswith(".d1.example") else 3


def holey_web(seed: int) -> SmallWeb:
    """Every third page that is linked to is not there."""
    web = small_web(seed)
    return replace(web, missing=frozenset(url for url in web.links if Random(url).random() < 0.3))


def pages(crawl: Crawl) -> Counter[str]:
    return Counter(split(url).host for url in crawl.model.done if url not in crawl.web.missing)


def out(crawl: Crawl) -> Counter[str]:
    return Counter(split(url).host for urls in crawl.frontier._stages.window.rows() for url in texts(urls))


def left_out(crawl: Crawl) -> Counter[str]:
    return Counter(split(url).host for urls in crawl.frontier._stages.quota.scan() for url in texts(urls))


def check(crawl: Crawl) -> None:
    """Whatever comes of what is out, no host will have too many."""
    for host, count in (pages(crawl) + out(crawl)).items():
        assert count <= most(host), host


def check_left_out(crawl: Crawl) -> set[str]:
    """What is left out is of hosts that have all their pages, and was not fetched; nothing was twice."""
    check(crawl)
    assert set(crawl.model.done.values()) <= {1}
    for host in left_out(crawl):
        assert pages(crawl)[host] == most(host)
    waiting = {url for urls in crawl.frontier._stages.quota.scan() for url in texts(urls)}
    assert waiting.isdisjoint(crawl.model.done)
    return waiting


def check_end(crawl: Crawl) -> None:
    waiting = check_left_out(crawl)
    known = {link for page in crawl.model.done for link in crawl.web.links[page]} | set(crawl.web.seeds)
    assert {url for url in known if crawl.web.open(url)} == set(crawl.model.done) | waiting
    told = crawl.frontier.statistics()
    assert (told.over_quota, told.rows) == (len(waiting), 0)


STEPS = st.one_of(
    st.sampled_from(["turn", "turn", "fetch", "save", "restart"]), st.sampled_from(["lend", "safe", "void"])
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEPS, max_size=40),
    seed=st.integers(0, 3),
    window=st.sampled_from([2, 100]),
    begun=st.integers(0, 8),
)
def test_no_host_has_more_than_its_pages(  # noqa: C901
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int, window: int, begun: int
) -> None:
    """Also after crashes, and of visits that ended elsewhere and become safe late, or never."""
    crawl = Crawl(tmp_path_factory.mktemp("quota"), holey_web(seed), sizes=SIZES, sites=TABLES, window_visits=window)
    for _ in range(begun):
        crawl.turn()
        crawl.fetch()
    crawl.save()
    unsafe: list[Any] = []
    for step in steps:
        if step == "turn":
            crawl.turn()
        elif step == "fetch":
            crawl.fetch()
        elif step == "save" and not unsafe:
            crawl.save()
        elif step == "restart":
            crawl.restart()
            unsafe = []
        elif step == "lend" and crawl.model.leased:  # another agent fetches what was handed out first, and says so
            urls = crawl.model.leased.pop(0)
            ended = ended_batch((visit, crawl.web.outcome(visit.url)) for visit in visits_of(urls))
            crawl.frontier.take_out(ended.column("key").to_pylist())
            crawl.frontier.hold(ended)
            unsafe.append((urls, ended))
        elif step == "safe" and unsafe:
            urls, ended = unsafe.pop(0)
            crawl.model.done.update(texts(urls))
            crawl.frontier.put_done(ended)
        elif step == "void" and unsafe:
            crawl.frontier.take_back(unsafe.pop(0)[0])
        held = Counter(split(url).host for urls, _ in unsafe for url in texts(urls) if url not in crawl.web.missing)
        for host, count in (pages(crawl) + out(crawl) + held).items():
            assert count <= most(host), (step, host)
    for urls, _ in unsafe:
        crawl.frontier.take_back(urls)
    crawl.finish(lambda: check(crawl))
    check_left_out(crawl)
    crawl.close()


def test_all_is_fetched_or_left_out_and_a_greater_limit_goes_on(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, holey_web(1), sizes=SIZES, sites=TABLES)
    crawl.finish(lambda: check(crawl))
    check_end(crawl)
    assert left_out(crawl)
    crawl.save()
    crawl.restart()
    crawl.finish()
    check_end(crawl)
    crawl.save()
    crawl.sites = ()
    crawl.restart()
    crawl.save()  # and it is killed before anything went on
    crawl.restart()
    crawl.finish()
    assert set(crawl.model.done) == set(crawl.web.distances()) and not left_out(crawl)
    crawl.close()


def test_what_came_before_the_limit_was_not_counted(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, small_web(1))
    crawl.turn()
    crawl.save()
    crawl.sites = TABLES
    with pytest.raises(ConfigurationError, match="began without it"):
        crawl.restart()
    crawl.checkpoint.close()


def test_a_probe_that_was_held_for_is_let_go_of(tmp_path: Path) -> None:
    """Where another agent makes it, it may be under way at a restart; it brings no page."""
    crawl = Crawl(tmp_path, small_web(1), sizes=SIZES, sites=TABLES)
    quota = crawl.stage._stages.quota
    probe = visits_of(url_batch([locate("http://a.example/nothing")], kind=Kind.PROBE))[0]
    quota.hold([(probe.key, probe.host)])
    assert quota._held
    crawl.stage.put_done(ended_batch([(probe, Outcome.OK)]))
    assert not quota._held
    crawl.close()
