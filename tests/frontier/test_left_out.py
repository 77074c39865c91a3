"""A rule that a person edits holds from the restart on, also for what waits, and what it left out comes back."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontier.small_web import Crawl, small_web
from fyke.core.batches import texts, url_batch
from fyke.core.choices import Scope
from fyke.core.config import CrawlSection
from fyke.core.urls import locate, split
from fyke.frontier.sizes import Sizes

SIZES = Sizes(batch=16, ready=10, ordered=20, asks=3)
RULES: list[dict[str, list[str]]] = [
    {}, {"deny": ["[02468]$"]}, {"deny": ["spam"]}, {"deny": ["[13579]$", "far"]}, {"allow": ["d[0-5]", "slow"]},
]  # fmt: skip
STEPS = st.one_of(st.sampled_from(["turn", "turn", "fetch", "fetch", "save", "kill"]), st.integers(0, len(RULES) - 1))


def edited(crawl: Crawl, rules: int) -> None:
    """Go on from the last checkpoint with other rules."""
    crawl.crawl = CrawlSection(scope=Scope.WEB, **RULES[rules])
    crawl.restart()


def wanted(crawl: Crawl, url: str) -> bool:
    return url in crawl.web.seeds or not crawl.frontier._filters.refusal(url_batch([locate(url)]))


def check_out(crawl: Crawl) -> None:
    for urls in crawl.frontier._stages.window.rows():
        assert all(wanted(crawl, url) for url in texts(urls))


def check_end(crawl: Crawl) -> None:
    """Everything that was found is fetched once, forbidden, or left out because of a rule."""
    known = {link for page in crawl.model.done for link in crawl.web.links[page]} | set(crawl.web.seeds)
    left = {url for queue in (crawl.frontier.left_out._links, crawl.frontier.left_out._urls)
            for urls in queue.scan() for url in texts(urls)}  # fmt: skip
    assert set(crawl.model.done.values()) <= {1}
    assert {url for url in known if crawl.web.open(url)} - set(crawl.model.done) <= left
    assert not any(wanted(crawl, url) for url in left - set(crawl.web.seeds))
    assert not crawl.frontier.statistics().rows


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEPS, max_size=40), seed=st.integers(0, 3), window=st.sampled_from([2, 100]))
def test_what_goes_out_is_wanted_at_that_time(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str | int], seed: int, window: int
) -> None:
    crawl = Crawl(tmp_path_factory.mktemp("left"), small_web(seed), sizes=SIZES, window_visits=window)
    crawl.save()
    for step in steps:
        if step == "turn":
            crawl.turn()
        elif step == "fetch":
            crawl.fetch()
        elif step == "save":
            crawl.save()
        else:
            edited(crawl, step) if isinstance(step, int) else crawl.restart()
        check_out(crawl)
    crawl.finish(lambda: check_out(crawl))
    check_end(crawl)
    crawl.save()
    edited(crawl, 0)
    crawl.finish()
    assert set(crawl.model.done) == set(crawl.web.distances())
    assert set(crawl.model.done.values()) == {1}
    crawl.close()


@pytest.mark.parametrize("turns", range(2, 14))
def test_no_robots_txt_is_asked_for_pages_alone_that_a_rule_refuses_now(tmp_path: Path, turns: int) -> None:
    """They may wait at the robots gate, or for their check there, when the rule comes."""
    crawl = Crawl(tmp_path, small_web(1), sizes=SIZES)
    for _ in range(turns):
        crawl.turn()
        crawl.fetch()
    crawl.save()
    crawl.crawl = CrawlSection(scope=Scope.WEB, deny=["."])
    crawl.restart()
    asked: set[str] = set()
    crawl.finish(lambda: asked.update(crawl.asked))
    assert asked <= {split(seed).origin for seed in crawl.web.seeds}
    check_end(crawl)
    crawl.close()


def test_what_one_rule_refuses_after_the_other_is_counted_under_the_last(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, small_web(1), CrawlSection(scope=Scope.WEB, deny=["spam"]), sizes=SIZES)
    crawl.finish()
    crawl.save()
    edited(crawl, 1)
    assert crawl.frontier.left_out.recounted == {"deny (?:spam)"}
    crawl.save()  # and it is killed before anything was asked again
    crawl.restart()
    crawl.finish()
    assert set(crawl.frontier._filters.left_out) == {"deny (?:[02468]$)"}
    check_end(crawl)
    crawl.save()
    crawl.restart()
    assert not crawl.frontier.left_out.freed and not crawl.frontier.left_out.recounted
    crawl.close()


def test_a_link_that_each_page_has_is_written_once(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, small_web(1), CrawlSection(scope=Scope.WEB, deny=["spam"]), sizes=SIZES)
    menu = url_batch([locate("http://spam.example/menu")])
    for _ in range(100):
        assert not crawl.frontier.left_out.accepted(menu).num_rows
    assert len(crawl.frontier.left_out._links) == 1
    crawl.close()
