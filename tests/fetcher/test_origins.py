"""An origin that cannot be reached costs its own URLs alone: its host, which answers at another port, goes on."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher.test_fetcher import Names, fetcher_of, wired
from fyke.core.batches import Kind, url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate, split
from fyke.core.visits import Exchange, Purpose, Visit, batch_of
from fyke.fetcher.book import HostBook
from fyke.fetcher.rests import Rests
from fyke.fetcher.workbench import Workbench

FAILURES = 5
CONFIG = Config.model_validate(
    {"politeness": {"host_delay_s": 1, "address_delay_s": 1, "host_failures": FAILURES, "tries": 3}}
)
FAULTS = [Outcome.CONNECT_FAILED, Outcome.TIMED_OUT, Outcome.TLS_FAILED, Outcome.BAD_ANSWER, Outcome.BROKEN_OFF]


@dataclass
class Ports:
    """A host that answers at some of its ports; `dead` says which do not, and how."""

    clock: VirtualClock
    dead: dict[int, Outcome]
    asked: list[tuple[float, str]] = field(default_factory=list)

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        self.asked.append((self.clock.now(), visit.url))
        fault = self.dead.get(split(visit.url).port)
        exchange = Exchange(visit, fault or Outcome.OK, self.clock.now(), 0.0, address, status=0 if fault else 200)
        asyncio.get_running_loop().call_soon(done, exchange)

    def times(self, port: int) -> int:
        return sum(split(url).port == port for _, url in self.asked)


class Crawl:
    """A fetcher on the books in `folder`: hands out again what comes back, once its time has come."""

    def __init__(self, folder: Path, clock: VirtualClock, server: Ports) -> None:
        self.clock = clock
        self._rests = Rests(folder / "rests", CONFIG.politeness, 1.0, clock.now(), resumed=True)
        self._book = HostBook(folder / "hosts.sqlite")
        rooms = wired(Workbench(CONFIG.politeness), Names(), self._book, self._rests, server, clock)
        self.fetcher = fetcher_of(rooms, CONFIG)
        self.ends: dict[str, Outcome] = {}
        self._back: list[tuple[float, Visit]] = []

    def put(self, urls: list[str], kind: Kind = Kind.PAGE) -> None:
        self.fetcher.put(url_batch([locate(url) for url in urls], kind=kind))

    async def turn(self) -> None:
        self.fetcher.pump()
        await asyncio.sleep(0)
        dues = [until for until, _ in self._back]
        dues += [due for due in [self.fetcher.bench.next_due()] if due is not None]
        if self.fetcher.quiet and dues:
            self.clock.advance(max(0.5, min(dues) - self.clock.now()))
        fetched = self.fetcher.take()
        pages = (each for each in fetched.exchanges if each.visit.purpose is Purpose.PAGE)
        self.ends.update((each.visit.url, each.outcome) for each in pages)
        self._back += [(max(until, visit.not_before), visit) for visit, until in fetched.put_off]
        now = self.clock.now()
        self.fetcher.put(batch_of(visit for until, visit in self._back if until <= now))
        self._back = [(until, visit) for until, visit in self._back if until > now]

    async def run(self) -> None:
        while self._back or not self.fetcher.idle:
            await self.turn()

    def close(self) -> None:
        self.fetcher.state()
        self.fetcher.stop()
        self._rests.close()
        self._book.close()


def pages(port: int, count: int) -> list[str]:
    authority = "a.test" if port == 80 else f"a.test:{port}"
    return [f"http://{authority}/{page}" for page in range(count)]


async def crawled(
    folder: Path, dead: dict[int, Outcome], live: list[int], named: list[int], *, asks: bool, resumes: bool
) -> tuple[Ports, dict[str, Outcome]]:
    """The first of `live` ports has answered when pages of all ports are `named`, in that order."""
    clock = VirtualClock()
    server = Ports(clock, dead)
    with closing(Crawl(folder, clock, server)) as crawl:
        crawl.put(pages(live[0], 1))
        await crawl.run()
        ends = crawl.ends
        if not resumes:
            await named_too(crawl, named, asks=asks)
    if resumes:
        with closing(Crawl(folder, clock, server)) as crawl:
            await named_too(crawl, named, asks=asks)
            ends |= crawl.ends
    return server, ends


async def named_too(crawl: Crawl, named: list[int], *, asks: bool) -> None:
    for port in named:
        if asks:  # as the frontier's gate does
            crawl.put(pages(port, 1), Kind.RULES)
        crawl.put(pages(port, 3))
    await crawl.run()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_an_origin_that_fails_costs(data: st.DataObject) -> None:
    ports = data.draw(st.lists(st.sampled_from([80, *range(8000, 8030)]), min_size=2, unique=True))
    live = ports[: data.draw(st.integers(1, 3))]
    dead = {port: data.draw(st.sampled_from(FAULTS)) for port in ports if port not in live}
    named = data.draw(st.permutations(ports))
    asks, resumes = data.draw(st.booleans()), data.draw(st.booleans())
    with TemporaryDirectory() as folder:
        server, ends = asyncio.run(crawled(Path(folder), dead, live, named, asks=asks, resumes=resumes))
    assert {url: end for url, end in ends.items() if split(url).port in live} == {
        url: Outcome.OK for port in live for url in pages(port, 3)
    }
    assert Outcome.HOST_RETIRED not in ends.values()
    assert ends.keys() == {url for port in ports for url in pages(port, 3)}  # those of the others ended too
    at_dead = [split(url).port for _, url in server.asked if split(url).port in dead]
    assert max(Counter(at_dead).values(), default=0) <= FAILURES
    assert len(at_dead) <= len(dead) + FAILURES * (1 + (80 in dead)), "each is asked once, and few of them again"
    times = [at for at, _ in server.asked]
    assert all(later - sooner >= 1 for sooner, later in pairwise(times)), "the host and its address rest over all ports"


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("resumes", [True, False])
async def test_pages_do_not_wait_for_origins_that_fail(tmp_path: Path, asks: bool, resumes: bool) -> None:
    dead = dict.fromkeys(range(8000, 8030), Outcome.CONNECT_FAILED)
    server, _ = await crawled(tmp_path, dead, [80], [*dead, 80], asks=asks, resumes=resumes)
    ports = [split(url).port for _, url in server.asked]
    until = max(place for place, port in enumerate(ports) if port == 80)
    assert until <= 5, "robots.txt, a page, three pages, and one that failed"
    assert server.asked[until][0] - server.asked[0][0] < 10, "it slept"


async def test_an_origin_that_fails_later_is_given_up(tmp_path: Path) -> None:
    """While its host answers at another: less and less often asked, and all its pages end."""
    clock = VirtualClock()
    server = Ports(clock, {})
    with closing(Crawl(tmp_path, clock, server)) as crawl:
        crawl.put([*pages(80, 1), *pages(8000, 1)])
        await crawl.run()
        server.dead[8000] = Outcome.CONNECT_FAILED
        before = len(server.asked)
        crawl.put(pages(8000, 30)[1:])
        crawl.put(pages(80, 30)[1:])
        await crawl.run()
    asked = server.asked[before:]
    assert sum(split(url).port == 8000 for _, url in asked) <= FAILURES
    assert all(crawl.ends[url] is Outcome.OK for url in pages(80, 30))
    assert {crawl.ends[url] for url in pages(8000, 30)[1:]} <= {Outcome.ROBOTS_UNREACHABLE, Outcome.CONNECT_FAILED}
    good = [at for at, url in asked if split(url).port == 80]
    assert good[-1] - good[0] < 40, "it slept"


async def test_a_host_all_of_whose_origins_fail_is_given_up(tmp_path: Path) -> None:
    clock = VirtualClock()
    server = Ports(clock, {})
    with closing(Crawl(tmp_path, clock, server)) as crawl:
        crawl.put([*pages(80, 1), *pages(8000, 1)])
        await crawl.run()
        server.dead |= dict.fromkeys([80, *range(8000, 8100)], Outcome.CONNECT_FAILED)
        before = len(server.asked)
        for port in server.dead:
            crawl.put(pages(port, 2)[1:])
        await crawl.run()
    assert len(server.asked) - before <= FAILURES + 2
    assert Counter(crawl.ends[pages(port, 2)[1]] for port in server.dead)[Outcome.HOST_RETIRED] >= 90


@pytest.mark.parametrize("live", [80, 8500])
@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("resumes", [True, False])
async def test_dead_ports_of_a_host_that_never_answered(tmp_path: Path, live: int, asks: bool, resumes: bool) -> None:
    """A stranger names them before anybody names the port at which it answers."""
    clock = VirtualClock()
    server = Ports(clock, dict.fromkeys(range(8000, 8000 + 4 * FAILURES), Outcome.CONNECT_FAILED))
    with closing(Crawl(tmp_path, clock, server)) as crawl:
        await named_too(crawl, [*server.dead], asks=asks)
        ends = crawl.ends
        assert len(server.asked) <= len(server.dead) + FAILURES**2
        if not resumes:
            await named_too(crawl, [live], asks=asks)
    if resumes:
        with closing(Crawl(tmp_path, clock, server)) as crawl:
            await named_too(crawl, [live], asks=asks)
            ends |= crawl.ends
    assert all(ends[url] is Outcome.OK for url in pages(live, 3))
    assert Outcome.HOST_RETIRED not in ends.values()


@pytest.mark.parametrize("dead", [[80, *range(8000, 8020)], [8000]])
async def test_a_host_that_never_answered_is_given_up(tmp_path: Path, dead: list[int]) -> None:
    """Where its scheme's own port fails too, or there is no other."""
    clock = VirtualClock()
    server = Ports(clock, dict.fromkeys(dead, Outcome.CONNECT_FAILED))
    with closing(Crawl(tmp_path, clock, server)) as crawl:
        await named_too(crawl, dead, asks=False)
        assert {crawl.ends[url] for url in pages(dead[0], 3)} == {Outcome.HOST_RETIRED}
        assert server.times(dead[0]) <= FAILURES + 1
