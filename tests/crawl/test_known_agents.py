"""What the supervisor decides by how its agents stand."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fyke.crawl.known_agents import KnownAgent, Stand, allotted, have_their_pages, nobody_reached

STAND = Stand(
    idle=False, level_done=False, rests_until=0.0, activity=0, unsafe_letters=0, later=0, level=0, blocked=0,
    checkpoints=0, answered=False, hosts=1, unreached=True, pages=0, pages_left=0, waiting=1, resting=True,
)  # fmt: skip


@given(st.lists(st.booleans(), min_size=1, max_size=5), st.integers(1, 60), st.data())
def test_pages_never_add_up_to_more_than_the_limit(busy: list[bool], limit: int, data: st.DataObject) -> None:
    known = [KnownAgent(STAND, allowed_pages=0) for _ in busy]
    for turn in range(12 * len(known)):
        for one, works in zip(known, busy, strict=True):
            assert one.stand is not None
            begun = data.draw(st.integers(0, one.stand.pages_left)) if works else 0
            one.stand = replace(one.stand, waiting=works, pages_left=one.stand.pages_left - begun)
        for agent, pages in allotted(known, limit, turn % len(known)):
            stand = known[agent].stand
            assert stand is not None
            known[agent].stand = replace(stand, pages_left=stand.pages_left + pages if pages else 0)
            known[agent].allowed_pages -= 0 if pages else stand.pages_left
        assert sum(one.allowed_pages for one in known) <= limit
    got = [replace(STAND, pages=one.allowed_pages) for one in known]
    assert have_their_pages(got, limit) is (sum(one.allowed_pages for one in known) == limit)


def test_a_crawl_is_unreached_only_where_no_server_ever_answered() -> None:
    assert nobody_reached([STAND, replace(STAND, hosts=0, unreached=False)])
    assert not nobody_reached([STAND, replace(STAND, unreached=False)])
    assert not nobody_reached([STAND, replace(STAND, answered=True)])
    assert not nobody_reached([replace(STAND, hosts=0, unreached=False)])
