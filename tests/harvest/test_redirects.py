"""The law of chains: none is followed for longer than `MOST_HOPS`, wherever it leads, and through restarts."""

from random import Random

import pytest

from fyke.harvest.redirects import MOST_HOPS, Redirects


@pytest.mark.parametrize("seed", range(5))
def test_chains_are_counted_through_restarts_beside_others(seed: int) -> None:
    random = Random(seed)
    redirects = Redirects({}, most=50)
    ends = {chain: chain * 1_000_000 for chain in range(20)}  # the URL where each stands
    hops = dict.fromkeys(ends, 0)
    for _ in range(1000):
        chain = random.choice(list(ends))
        counted = redirects.followed(ends[chain])
        hops[chain] += 1
        assert counted == hops[chain]
        if counted > MOST_HOPS:
            ends[chain], hops[chain] = ends[chain] + 500_000, 0  # no more is followed; another begins
            continue
        ends[chain] += 1
        redirects.lead_to(ends[chain], counted)
        if random.random() < 0.1:
            redirects = Redirects(redirects.state(), most=50)


def test_a_page_ends_its_chain() -> None:
    redirects = Redirects({})
    redirects.lead_to(7, 5)
    redirects.ended(7)
    assert redirects.followed(7) == 1
    assert not redirects.state()


def test_of_very_many_targets_the_oldest_are_forgotten() -> None:
    redirects = Redirects({}, most=3)
    for key in range(10):
        redirects.lead_to(key, 4)
    assert redirects.state() == {"7": 4, "8": 4, "9": 4}
