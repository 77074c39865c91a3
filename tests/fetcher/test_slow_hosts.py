"""A request that does not end keeps no place from others: visits that wait for it are given back meanwhile."""

import asyncio
from collections.abc import Callable
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
