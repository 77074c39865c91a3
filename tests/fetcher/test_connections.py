"""The law of connections: who answers fast never waits for who does not, and every domain has its share of the rest."""

from collections import Counter
from random import Random

import pytest

from fyke.fetcher.connections import Connections
from fyke.fetcher.host import Host


def host(number: int, domain: int = 0, *, quick: bool = False) -> Host:
    return Host(number, f"h{number}.test", domain_key=domain or number, quick=quick)


@pytest.mark.parametrize("most", [1, 4, 64])
def test_fast_hosts_begin_whatever_slow_ones_hold(most: int) -> None:
    """Slow servers without end, each of which would go on for ever: a fast one waits for `SLOW_S` at most."""
    places = Connections(most, 3 * most)
    newcomers = iter(range(1, 1_000_000))
    waited = now = 0.0
    for turn in range(200):
        now = turn * 0.25
        for slow in places.sort_out(now, waiting=1):
            places.end(slow, now)
        while places.free_for(slow := host(next(newcomers))):
            places.begin(slow, now)
        fast = host(turn + 2_000_000, quick=True)
        if places.free_for(fast):
            places.begin(fast, now)
            places.end(fast, now + 0.01)
            assert fast.quick
            waited = 0.0
        else:
            waited += 0.25
        assert waited <= 1.0
        assert len(places._fast) <= most
        assert len(places._others) <= 3 * most


def test_with_places_for_more_than_one_fast_hosts_never_wait() -> None:
    places = Connections(8, 24)
    for number in range(1, 100):
        if places.free_for(newcomer := host(number)):
            places.begin(newcomer, 0.0)
    assert len(places._fast) + len(places._others) == 6 + 24
    assert places.free_for(host(1000, quick=True))


def test_a_robots_txt_proves_nobody_fast() -> None:
    """Servers give it at once and then hold a page each: as many as there are places for newcomers, or a few times
    more, leave those of the fast alone."""
    places = Connections(8, 24)
    holding = [host(number) for number in range(1, 26)]
    for one in holding:
        places.begin(one, 0.0)
        places.end(one, 0.01, page=False)
        assert not one.quick
    for one in holding:
        assert places.free_for(one)
        places.begin(one, 0.1)
    proven = host(100)
    places.begin(proven, 0.2)
    places.end(proven, 0.3)
    assert proven.quick and places.free_for(proven)
    places.begin(proven, 0.4)
    places.end(proven, 1.5, page=False)
    assert not proven.quick, "a slow one shows that it is slow"


def test_the_domain_that_holds_most_is_cut_first() -> None:
    places = Connections(2, 10)
    farm = [host(number, domain=7) for number in range(9)]
    others = [host(100 + number) for number in range(3)]
    for one in [*others[:2], *farm]:
        assert places.free_for(one)
        places.begin(one, 0.0)
    assert places.sort_out(0.5, waiting=1) == [], "nobody is cut before its time"
    cut = places.sort_out(2.0, waiting=3)
    assert Counter(one.domain_key for one in cut) == {7: len(cut)}
    assert cut
    for one in [*others[:2], *farm]:
        places.end(one, 3.0)
        assert not one.quick
    assert not (places._fast or places._others or places._cut or places._of_domain)


@pytest.mark.parametrize("seed", range(5))
def test_every_request_is_in_one_place(seed: int) -> None:
    random = Random(seed)
    places = Connections(5, 9)
    hosts = [host(number, domain=1 + number % 4, quick=random.random() < 0.3) for number in range(40)]
    under_way: set[Host] = set()
    now = 0.0
    for _ in range(2000):
        now += random.choice([0.0, 0.1, 0.7])
        places.sort_out(now, random.choice([0, 1]))
        one = random.choice(hosts)
        if one in under_way:
            places.end(one, now)
            under_way.discard(one)
        elif places.free_for(one):
            places.begin(one, now)
            under_way.add(one)
        held = [*places._fast, *places._others, *places._cut]
        assert len(held) == len(set(held))
        assert set(held) == under_way
        assert places._newcomers == sum(not one.quick for one in places._fast)
        assert places._of_domain.total() == len(places._others)


def test_where_there_is_less_room_there_are_fewer_places_beside_the_fast_and_who_was_slow_is_cut() -> None:
    places = Connections(8, 24)
    for number in range(1, 100):
        if places.free_for(newcomer := host(number)):
            places.begin(newcomer, 0.0)
    places.fit(12)
    assert places.sort_out(0.5, waiting=1) == []  # they have their time
    cut = places.sort_out(1.5, waiting=1)
    for slow in cut:
        places.end(slow, 1.5)
    assert len(places._others) < 12 - 8
    assert places.free_for(host(1000, quick=True)) and places.free_for(host(1001))
    places.fit(1000)
    assert sum(places.free_for(newcomer) and not places.begin(newcomer, 1.5) for newcomer in map(host, range(200, 300)))
    assert len(places._others) == 24
