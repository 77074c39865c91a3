"""Exchanges come out once, in order, and a turn ends in time."""

import pytest

from fyke.core.clock import VirtualClock
from fyke.core.pace import Pace
from fyke.core.visits import Purpose
from fyke.harvest import large_pages
from fyke.harvest.harvest import TOGETHER_BYTES, TURN_BYTES, TURN_S
from fyke.harvest.slow_lane import SlowLane
from harvest.reaping import answer, facts, harvest_with, reaped, urls_of


class TickingClock(VirtualClock):
    """Whoever asks it takes time."""

    def now(self) -> float:
        self.advance(TURN_S / 2)
        return super().now()


@pytest.mark.parametrize("clock", [VirtualClock(), TickingClock()])
def test_a_turn_ends_when_it_took_long_enough(clock: VirtualClock) -> None:
    """What is left comes first in the next, and everything comes once, in order."""
    came = [answer(f"http://h.example/a/{number}", b"<a href=/%d>" % number) for number in range(9)]
    with harvest_with(SlowLane(print, Pace(clock))) as harvest:
        turns = [urls_of(reaped(harvest, came[:5])), urls_of(reaped(harvest, came[5:]))]
        while harvest.behind:
            assert harvest.waiting and harvest.crowded, "others that come meanwhile would fill the memory"
            turns.append(urls_of(reaped(harvest)))
    assert [url for turn in turns for url in turn] == [exchange.visit.url for exchange in came]
    assert all(turns)
    assert len(turns) == 2 if type(clock) is VirtualClock else len(turns) > 4


def test_a_turn_ends_when_its_links_are_long_enough() -> None:
    """Few bytes may bring many, by links below a long URL."""
    base, body = f"http://h.example/{'a' * 2000}/", b"".join(b"<a href=?%d>" % number for number in range(1000))
    came = [answer(f"{base}{number}", body + b"<p>%d" % number) for number in range(30)]
    urls = []
    with harvest_with(SlowLane(print, Pace(VirtualClock()))) as harvest:
        sheaves = list(harvest.reap(came))
        while sheaves:
            assert sum(sheaf.pointers.found.url.nbytes for sheaf in sheaves) < TURN_BYTES + 4 * TOGETHER_BYTES
            urls += [one.page.url for sheaf in sheaves for one in sheaf.reaped]
            sheaves = list(harvest.reap([]))
    assert urls == [exchange.visit.url for exchange in came]


def test_who_fetches_rules_reads_them_and_nobody_else(monkeypatch) -> None:
    for name in ("decode_body", "decode_in_time"):
        monkeypatch.setattr(large_pages, name, lambda *_: pytest.fail("it was decoded once more"))
    exchange = answer("http://h.example/robots.txt", b"<title>a page</title>")
    exchange.visit.purpose = Purpose.ROBOTS
    with harvest_with() as harvest:
        assert facts(reaped(harvest, [exchange])) == {exchange.visit.url: ("", 0)}
    assert not large_pages.opened(None, 0, exchange).size_bytes  # type: ignore[arg-type]
