"""A request that does not end keeps no place from others: visits that wait for it are given back meanwhile."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fetcher.test_fetcher import EachElsewhere, Names, Server, fetching
from fyke.core.batches import url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.rests import SOON_S, soon_visits
from fyke.core.urls import locate
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.connections import SLOW_S
from fyke.fetcher.fetcher import LOOK_AHEAD_S

PAGES = 50


class Slow(Server):
    """Gives robots.txt at once, and never ends a page."""

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        if visit.url.endswith("/robots.txt"):
            super().fetch(visit, address, done)
        else:
            self.asked.append((self.clock.now(), visit.url))


def _host(url: str) -> int:
    return int(url[len("http://h") :].partition(".")[0])


@pytest.mark.parametrize("delay_factor", [0.0, 10.0])
@pytest.mark.parametrize("names", [Names, EachElsewhere])
@pytest.mark.parametrize("hosts", [1, 12])
async def test_the_longer_a_request_takes_the_fewer_visits_wait_for_it(
    tmp_path: Path, delay_factor: float, names: type[Names], hosts: int
) -> None:
    """However many hosts do so, at addresses of their own or at one. No visit is lost, or sleeps for long."""
    politeness = {"host_delay_s": 0.01, "address_delay_s": 0.01, "delay_factor": delay_factor}
    config, clock = Config.model_validate({"politeness": politeness}), VirtualClock()
    server = Slow(clock, b"")
    urls = [f"http://h{host}.test/{page}" for host in range(hosts) for page in range(PAGES)]
    shares = dict.fromkeys(range(hosts), PAGES)
    asleep: list[tuple[float, str]] = []
    with fetching(tmp_path, config, clock, server, names()) as fetcher:
        fetcher.put(url_batch([*map(locate, urls)]))
        for _ in range(600):
            fetcher.pump()
            await asyncio.sleep(0)
            now, begun = clock.now(), [at for at, url in server.asked if not url.endswith("/robots.txt")]
            held_s = now - min(begun, default=now)
            for visit, until in fetcher.take().put_off:
                assert now < until <= now + max(2 * held_s, SOON_S)
                shares[_host(visit.url)] = soon_visits(until - now, PAGES)
                asleep.append((until, visit.url))
            assert len(begun) + len(asleep) + fetcher.bench.visits == len(urls)
            if held_s > 8 * SLOW_S:
                most = 2 * SOON_S / (held_s / 2 - 2 * LOOK_AHEAD_S)
                assert fetcher.bench.visits <= hosts * most, f"after {held_s} s"
            for until, url in list(asleep):
                host = fetcher.bench.get(locate(url).host) if until <= now else None
                if until <= now and (host is None or len(host.visits) < shares[_host(url)]):
                    asleep.remove((until, url))
                    fetcher.put(url_batch([locate(url)]))
            clock.advance(LOOK_AHEAD_S / 2)


@pytest.mark.parametrize("stopped_s", [5.0, 100.0, 36_000.0])
async def test_the_time_for_which_the_process_was_stopped_does_not_count(tmp_path: Path, stopped_s: float) -> None:
    """Otherwise visits would sleep for as long again as the machine did."""
    politeness = {"host_delay_s": 0.01, "address_delay_s": 0.01, "delay_factor": 0.0}
    config, clock = Config.model_validate({"politeness": politeness}), VirtualClock()
    with fetching(tmp_path, config, clock, Slow(clock, b""), EachElsewhere()) as fetcher:
        fetcher.put(url_batch([locate(f"http://h1.test/{page}") for page in range(PAGES)]))
        for step in range(100):
            fetcher.pump()
            await asyncio.sleep(0)
            longest_s = max((until - clock.now() for _, until in fetcher.take().put_off), default=0.0)
            assert longest_s <= step * LOOK_AHEAD_S / 2
            clock.advance(stopped_s if step == 6 else LOOK_AHEAD_S / 2)


async def test_who_was_under_way_when_the_process_was_stopped_has_its_next_turn_as_always(tmp_path: Path) -> None:
    config, clock = Config.model_validate({"politeness": {"host_delay_s": 1.0}}), VirtualClock()
    server = Slow(clock, b"")
    under_way: list[Callable[[], None]] = []
    began = clock.now()

    def fetch(visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        at = clock.now()
        under_way.append(lambda: Server.fetch(server, visit, address, lambda got: done(_began(got, at))))

    server.fetch = fetch  # type: ignore[method-assign]
    with fetching(tmp_path, config, clock, server, Names()) as fetcher:
        fetcher.put(url_batch([locate(f"http://h{host}.test/{page}") for host in range(3) for page in range(99)]))
        for step in range(200):
            fetcher.pump()
            await asyncio.sleep(0)
            fetcher.take()
            stops = clock.now() < began + 36_000.0 and step > 20 and len(under_way) == 1
            clock.advance(36_000.0 if stops else LOOK_AHEAD_S / 2)
            if stops:
                fetcher.pump()  # others come to wait for the address
            while under_way:
                under_way.pop()()
                await asyncio.sleep(0)
        assert {_host(url) for at, url in server.asked if at > began + 36_000.0 + 20 * LOOK_AHEAD_S} == {0, 1, 2}


def _began(exchange: Exchange, at: float) -> Exchange:
    return replace(exchange, started_at=at, duration_s=exchange.started_at - at)
