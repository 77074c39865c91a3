"""The fetcher keeps a host's rest when the workbench forgets the host, and lets no host's rules hold another up."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Exchange, Purpose, Visit
from fyke.crawl.fetcher import Fetcher, Wiring
from fyke.hosts.book import HostBook
from fyke.hosts.dns import Answer
from fyke.hosts.politeness import Workbench
from fyke.hosts.robots_rules import RobotsRules


class Names:
    """Every name is at one address."""

    def cached(self, host: str) -> Answer:
        return Answer(host, Outcome.OK, ("127.0.0.1",), 1e12)

    def load(self, saved: object) -> None: ...


class Server:
    """Answers at once: the given robots.txt, and pages; remembers when it was asked."""

    def __init__(self, clock: VirtualClock, robots: bytes) -> None:
        self.clock, self.robots = clock, robots
        self.asked: list[tuple[float, str]] = []

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        self.asked.append((self.clock.now(), visit.url))
        exchange = Exchange(visit, Outcome.OK, self.clock.now(), 0.0, address, status=200)
        if visit.url.endswith("/robots.txt"):
            exchange.body.write(self.robots)
        asyncio.get_running_loop().call_soon(done, exchange)


@pytest.mark.parametrize(
    ("host_delay_s", "robots"), [(0.0, b"User-agent: *\nCrawl-delay: 120\n"), (120.0, b""), (120.0, b"not rules")]
)
def test_a_long_rest_outlives_the_workbench(tmp_path: Path, host_delay_s: float, robots: bytes) -> None:
    config = Config.model_validate({"politeness": {"host_delay_s": host_delay_s, "address_delay_s": 0}})
    clock = VirtualClock()
    server = Server(clock, robots)

    async def crawl() -> None:
        bench = Workbench(config.politeness, 100, 100)
        with HostBook(tmp_path / "hosts.sqlite") as book:
            rooms = Wiring(bench, Names(), book, server, lambda: None, clock)  # type: ignore[arg-type]
            fetcher = Fetcher(
                rooms, config, ended=lambda exchange: None, sitemaps=lambda urls: None, told=lambda *_: None
            )
            for page in range(3):
                at = locate(f"http://a.test/{page}")
                fetcher.offer([Visit(at.url.decode(), at.key, at.host, at.domain)])
                for _ in range(200):  # the page comes, and the host stays without work for a while
                    fetcher.pump()
                    await asyncio.sleep(0)
                    clock.advance(1.0)
                    if len(server.asked) == page + 2:
                        break
                for _ in range(5):
                    fetcher.pump()
                    await asyncio.sleep(0)
            await fetcher.stop()

    asyncio.run(crawl())
    times = [at for at, _ in server.asked]
    assert len(times) == 4
    assert all(later - sooner >= 120 for sooner, later in pairwise(times)), server.asked


HARD = b"User-agent: *\n" + b"".join(
    b"Disallow: /*%bb%b\n" % (b"a" * (20 + n % 60), b"a" * (20 + n // 60)) for n in range(4000)
)


def test_rules_that_are_hard_to_ask_hold_nobody_up(tmp_path: Path) -> None:
    """A host's rules make long work for one URL: another host's are fetched meanwhile; then comes the verdict."""
    config = Config.model_validate({"politeness": {"host_delay_s": 0, "address_delay_s": 0}})
    clock = VirtualClock()
    hard = "/" + "a" * 8000
    targets = [hard, hard + "c", "/fine", "/x" + "a" * 70 + "b" + "a" * 80]
    ends: list[tuple[str, Outcome]] = []
    told: list[str] = []

    class Both(Server):
        def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
            self.robots = HARD if "bad.test" in visit.url else b""
            super().fetch(visit, address, done)

    server = Both(clock, b"")

    async def crawl() -> None:
        bench = Workbench(config.politeness, 1000, 1000)
        done = asyncio.Event()

        def ended(exchange: Exchange) -> None:
            if exchange.visit.purpose is Purpose.PAGE:
                ends.append((exchange.visit.url, exchange.outcome))
                fetcher.forget(exchange.visit)
                if len(ends) == len(urls):
                    done.set()

        urls = [f"http://bad.test{target}" for target in targets] + [f"http://good.test/{n}" for n in range(300)]
        with HostBook(tmp_path / "hosts.sqlite") as book:
            rooms = Wiring(bench, Names(), book, server, lambda: None, clock)  # type: ignore[arg-type]
            fetcher = Fetcher(
                rooms,
                config,
                ended=ended,
                sitemaps=lambda urls: None,
                told=lambda origin, *_: told.append(origin),
            )
            for url in urls:
                at = locate(url)
                fetcher.offer([Visit(url, at.key, at.host, at.domain)])
            fetcher.pump()
            await done.wait()
            assert not list(fetcher.waiting())
            await fetcher.stop()

    asyncio.run(crawl())
    first_bad = next(place for place, (url, _) in enumerate(ends) if "bad.test" in url)
    assert first_bad == 300, "the good host waited for the verdict"
    rules = RobotsRules.parse(HARD, config.agent.user_agent)
    assert {url: outcome is Outcome.OK for url, outcome in ends if "bad.test" in url} == {
        f"http://bad.test{target}": rules.allows(target) for target in targets
    }
    assert len(told) == 2
