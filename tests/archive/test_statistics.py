"""How several agents stand is how one would that did the work of all."""

import json
from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from fyke.archive.figures import Figures, HostFigures
from fyke.archive.statistics import CrawlStatistics, PassFound, sum_of_agents
from fyke.core.freshness import Freshness

COUNTS = st.integers(0, 1000)
ONE = st.builds(
    CrawlStatistics, pages=COUNTS, hosts=COUNTS, waiting=COUNTS, outcomes=st.dictionaries(st.sampled_from("ab"), COUNTS)
)

PASSES = st.builds(PassFound, st.integers(1, 3), st.floats(0, 1e9), changed=COUNTS, bytes=COUNTS)
FRESHNESS = st.builds(Freshness, st.floats(1, 9), COUNTS, st.floats(0, 1), COUNTS, COUNTS, st.floats(1, 9))
HOSTS = st.builds(
    HostFigures, st.just("a.example"), st.just("awake"), COUNTS, st.booleans(), *[st.floats(0, 9)] * 4, COUNTS, COUNTS,
    st.just("127.0.0.1"),
)  # fmt: skip


@given(st.lists(ONE, max_size=4))
def test_counts_add_up_and_nothing_adds_up_to_zeros(many: list[CrawlStatistics]) -> None:
    total = sum_of_agents(many)
    for field in fields(CrawlStatistics):
        assert type(getattr(total, field.name)) is type(getattr(CrawlStatistics(), field.name))
    assert (total.pages, total.waiting) == (sum(one.pages for one in many), sum(one.waiting for one in many))
    for outcome in "ab":
        assert total.outcomes.get(outcome, 0) == sum(one.outcomes.get(outcome, 0) for one in many)


def test_all_hosts_rest_until_the_first_of_any_agent_may_be_asked() -> None:
    """Also those that no workbench has any more, since what is to be asked of them sleeps on disk."""
    rests = CrawlStatistics(hosts=2, rest_until=30.0)
    asleep, nothing, busy = CrawlStatistics(rest_until=20.0), CrawlStatistics(), CrawlStatistics(hosts=1)
    assert sum_of_agents([rests, asleep, nothing]).rest_until == 20.0
    assert sum_of_agents([asleep, nothing]).rest_until == 20.0
    assert sum_of_agents([rests, asleep, busy]).rest_until == 0.0


@given(
    st.builds(CrawlStatistics, pages=COUNTS, again=st.none() | PASSES, freshness=st.none() | FRESHNESS),
    st.lists(HOSTS, max_size=3),
)
def test_figures_are_heard_as_they_were_told(now: CrawlStatistics, slowest: list[HostFigures]) -> None:
    """Also those of a crawl without a pass or plan, which JSON has as empty objects."""
    told = Figures(at=1.5, held=True, statistics=now, slowest=slowest, blocked=["a.example"])
    written = json.dumps(told.as_dict())
    assert Figures.read(json.loads(written)) == replace(told, slowest=list(slowest))
    assert bool(json.loads(written)["statistics"]["again"]) == (now.again is not None)


@given(st.lists(PASSES, min_size=1, max_size=4))
def test_the_last_pass_is_that_of_all_agents_that_began_it(passes: list[PassFound]) -> None:
    found = sum_of_agents([CrawlStatistics(again=one) for one in passes] + [CrawlStatistics()]).again
    assert found is not None
    last = [one for one in passes if one.number == max(one.number for one in passes)]
    assert (found.number, found.began_at) == (last[0].number, min(one.began_at for one in last))
    assert (found.changed, found.bytes) == (sum(one.changed for one in last), sum(one.bytes for one in last))
