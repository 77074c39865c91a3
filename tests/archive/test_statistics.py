"""How several agents stand is how one would that did the work of all."""

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from fyke.archive.statistics import CrawlStatistics, sum_of_agents

COUNTS = st.integers(0, 1000)
ONE = st.builds(
    CrawlStatistics, pages=COUNTS, hosts=COUNTS, waiting=COUNTS, outcomes=st.dictionaries(st.sampled_from("ab"), COUNTS)
)


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
