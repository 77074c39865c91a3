"""The fetcher keeps a host's rest when the workbench forgets the host, and lets no host's rules hold another up."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fyke.core.batches import EMPTY, concat, u64, url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.outcomes import Outcome
from fyke.core.pace import Pace
from fyke.core.urls import locate
from fyke.core.visits import Earlier, Exchange, Purpose, Visit, batch_of
from fyke.fetcher.book import HostBook
from fyke.fetcher.connections import OTHERS_SHARE
from fyke.fetcher.fetcher import STARTS, Fetcher
from fyke.fetcher.names import Resolution
from fyke.fetcher.refusals import PORTION
from fyke.fetcher.rests import Rests
from fyke.fetcher.returns import MOST_UNREAD, MOST_UNTAKEN
from fyke.fetcher.robots_rules import RobotsRules
from fyke.fetcher.wiring import Wiring
from fyke.fetcher.workbench import Workbench


class Names:
    """Every name is at one address."""

    def cached(self, host: str) -> Resolution:
        return Resolution(host, Outcome.OK, ("127.0.0.1",), 1e12)

    def load(self, saved: object) -> None: ...

    def refresh(self, hosts: object) -> None: ...

    def widen(self, host: str) -> bool:
        return False


class FirstVisits:
    """No page was visited before."""

    def note_known(self, visits: Sequence[Visit]) -> None: ...

    def read(self, earlier: Earlier) -> None: ...


class Closed:
    """A fetcher that has met `a.test`, which forbids all."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        config = Config.model_validate({"politeness": {"host_delay_s": 0, "address_delay_s": 0}})
        self.server = Server(self.clock, b"User-agent: *\nDisallow: /\n")
        self._rests = Rests(folder / "rests", config.politeness, 1.0, self.clock.now(), resumed=False)
        self._book = HostBook(folder / "hosts.sqlite")
        rooms = wired(Workbench(config.politeness), Names(), self._book, self._rests, self.server, self.clock)
        self.fetcher = fetcher_of(rooms, config)

    async def __aenter__(self) -> Fetcher:
        self.fetcher.put(url_batch([locate("http://a.test/first")]))
        while not self.fetcher.idle:
            self.clock.advance(1.0)
            self.fetcher.pump()
            await asyncio.sleep(0)
            self.fetcher.take()
        return self.fetcher

    async def __aexit__(self, *_: object) -> None:
        self.fetcher.stop()
        self._rests.close()
        self._book.close()


class EachElsewhere(Names):
    """Every name is at an address of its own."""

    def cached(self, host: str) -> Resolution:
        number = int(host[1:].partition(".")[0])
        return Resolution(host, Outcome.OK, (f"127.0.{number // 250}.{1 + number % 250}",), 1e12)


class Server:
    """Answers at once: the given robots.txt, and pages; remembers when it was asked."""

    def __init__(self, clock: VirtualClock, robots: bytes) -> None:
        self.clock, self.robots = clock, robots
        self.asked: list[tuple[float, str]] = []

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        exchange = self.answer(visit, address, done, Outcome.OK, status=200)
        if visit.url.endswith("/robots.txt"):
            exchange.body.write(self.robots)

    def answer(
        self, visit: Visit, address: str, done: Callable[[Exchange], None], outcome: Outcome, **facts: Any
    ) -> Exchange:
        self.asked.append((self.clock.now(), visit.url))
        exchange = Exchange(visit, outcome, self.clock.now(), 0.0, address, **facts)
        asyncio.get_running_loop().call_soon(done, exchange)
        return exchange


def wired(
    bench: Workbench, names: Any, book: HostBook, rests: Rests, server: Any, clock: VirtualClock,
    abort: Callable[[], None] = lambda: None,
) -> Wiring:  # fmt: skip
    """The rooms of a fetcher, with `names` and a `server` of ours."""
    return Wiring(
        bench=bench,
        resolver=names,
        book=book,
        rests=rests,
        protocols=server,
        abort=abort,
        clock=clock,
        past=FirstVisits(),
        cut=lambda visit, why: None,
        holds_back=lambda host: False,
        room=lambda hosts: 1 << 20,
        ours=lambda address: True,
        shared=False,
        pace=Pace(clock),
    )


def fetcher_of(rooms: Wiring, config: Config, news: asyncio.Event | None = None) -> Fetcher:
    return Fetcher(rooms, config, news or asyncio.Event(), OTHERS_SHARE * config.fetch.connections)


@contextmanager
def fetching(
    folder: Path, config: Config, clock: VirtualClock, server: Any, names: Any = None, news: asyncio.Event | None = None
) -> Iterator[Fetcher]:
    """A fetcher of a crawl that begins, with a `server` and `names` of ours; it is stopped in the end."""
    rests = Rests(folder / "rests", config.politeness, config.fetch.timeout_s, clock.now(), resumed=False)
    with closing(rests), HostBook(folder / "hosts.sqlite") as book:
        rooms = wired(Workbench(config.politeness), names or Names(), book, rests, server, clock)
        fetcher = fetcher_of(rooms, config, news)
        yield fetcher
        fetcher.stop()


def put_again(fetcher: Fetcher) -> int:
    """Hand out again what was given back, whether its time has come or not; how many visits."""
    given_back = batch_of(visit for visit, _ in fetcher.take().put_off)
    fetcher.put(given_back)
    return given_back.num_rows


@pytest.mark.parametrize(
    ("host_delay_s", "robots"), [(0.0, b"User-agent: *\nCrawl-delay: 120\n"), (120.0, b""), (120.0, b"not rules")]
)
async def test_a_long_rest_outlives_the_workbench(tmp_path: Path, host_delay_s: float, robots: bytes) -> None:
    config = Config.model_validate({"politeness": {"host_delay_s": host_delay_s, "address_delay_s": 0}})
    clock = VirtualClock()
    server = Server(clock, robots)
    with fetching(tmp_path, config, clock, server) as fetcher:
        for page in range(3):
            at = locate(f"http://a.test/{page}")
            fetcher.put(url_batch([at]))
            for _ in range(200):  # the page comes, and the host stays without work for a while
                fetcher.pump()
                await asyncio.sleep(0)
                clock.advance(1.0)
                put_again(fetcher)
                if len(server.asked) == page + 2:
                    break
            for _ in range(5):
                fetcher.pump()
                await asyncio.sleep(0)
    times = [at for at, _ in server.asked]
    assert len(times) == 4
    assert all(later - sooner >= 120 for sooner, later in pairwise(times)), server.asked


async def test_who_is_held_back_is_asked_later_and_others_meanwhile(tmp_path: Path) -> None:
    config = Config.model_validate({"politeness": {"host_delay_s": 0, "address_delay_s": 0}})
    clock = VirtualClock()
    server = Server(clock, b"")
    held: set[int] = set()
    with fetching(tmp_path, config, clock, server) as fetcher:
        fetcher._rooms = replace(fetcher._rooms, holds_back=held.__contains__)
        at = [locate(f"http://{name}.test/{page}") for name in "ab" for page in range(5)]
        held.add(at[0].host)
        fetcher.put(url_batch(at))

        async def go_on() -> set[str]:
            for _ in range(100):
                fetcher.pump()
                await asyncio.sleep(0)
                clock.advance(0.05)
            return {url for _, url in server.asked if not url.endswith("robots.txt")}

        assert await go_on() == {f"http://b.test/{page}" for page in range(5)}
        held.clear()
        assert await go_on() == {f"http://{name}.test/{page}" for name in "ab" for page in range(5)}


async def test_a_crawl_delay_is_in_the_book_when_its_first_rest_begins(tmp_path: Path) -> None:
    """So that a kill leaves it known: the next process may get no rules, because the server fails, and yet asks."""
    clock = VirtualClock()
    server = Server(clock, b"User-agent: *\nCrawl-delay: 2\n")
    with fetching(tmp_path, Config(), clock, server) as fetcher:
        fetcher.put(url_batch([locate("http://a.test/")]))
        for _ in range(50):
            fetcher.pump()
            await asyncio.sleep(0)
        assert len(server.asked) == 1
        with HostBook(tmp_path / "hosts.sqlite", read_only=True) as book:
            known = book.host("a.test")
    assert known is not None and known.crawl_delay_s == 2.0


class Lost(Server):
    """Cannot be connected to any more once it `fails`."""

    fails = False

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        if self.fails:
            self.answer(visit, address, done, Outcome.CONNECT_FAILED)
        else:
            super().fetch(visit, address, done)


async def test_a_crawl_delay_counts_while_no_new_rules_can_be_had(tmp_path: Path) -> None:
    clock = VirtualClock()
    server = Lost(clock, b"User-agent: *\nCrawl-delay: 2\n")
    with fetching(tmp_path, Config(), clock, server) as fetcher:
        for server.fails in (False, True):
            clock.advance(3 * 86400.0)  # rules are old after a day
            fetcher.put(url_batch([locate("http://a.test/")]))
            for _ in range(50):
                fetcher.pump()
                await asyncio.sleep(0)
                clock.advance(0.1)
        fetcher.state()
        with HostBook(tmp_path / "hosts.sqlite", read_only=True) as book:
            known = book.host("a.test")
    assert known is not None and known.crawl_delay_s == 2.0
    assert [url for _, url in server.asked] == [f"http://a.test/{path}" for path in ("robots.txt", "", "robots.txt")]


async def test_few_hosts_are_served_in_a_turn_and_all_in_turn(tmp_path: Path) -> None:
    config = Config.model_validate({"fetch": {"connections": 1000}})
    clock = VirtualClock()
    server = Server(clock, b"")
    with fetching(tmp_path, config, clock, server, EachElsewhere()) as fetcher:
        fetcher.put(url_batch([locate(f"http://h{number}.test/") for number in range(3 * STARTS)]))
        served = []
        fetcher.pump()
        while len(server.asked) < 3 * STARTS:
            served.append(len(server.asked))
            await asyncio.sleep(0)
        fetcher.stop()
        while fetcher.in_flight:
            await asyncio.sleep(0)
    assert max(later - sooner for sooner, later in pairwise([0, *served, len(server.asked)])) == STARTS


async def test_few_pages_wait_to_be_read(tmp_path: Path) -> None:
    """Nobody knows which of them are of traps: no more begin until they are taken. In the end all came."""
    config = Config.model_validate({
        "fetch": {"connections": 1000},
        "politeness": {"host_delay_s": 0, "min_host_delay_s": 0, "address_delay_s": 0, "min_address_delay_s": 0},
    })  # fmt: skip
    clock = VirtualClock()
    server = Server(clock, b"")
    hosts = 20
    urls = [f"http://h{number}.test/{page}" for number in range(hosts) for page in range(20)]
    with fetching(tmp_path, config, clock, server, EachElsewhere()) as fetcher:
        fetcher.put(url_batch([locate(url) for url in urls]))
        came: list[str] = []
        while len(came) < len(urls):
            for _ in range(200):
                clock.advance(0.01)
                fetcher.pump()
                await asyncio.sleep(0)
            taken = [exchange.visit for exchange in fetcher.take().exchanges]
            pages = [visit.url for visit in taken if visit.purpose is Purpose.PAGE]
            assert 0 < len(pages) < MOST_UNREAD + hosts
            came += pages
    assert sorted(came) == sorted(urls)


class Asking(Server):
    """Answers with a status, and asks for a rest of 100 s."""

    def __init__(self, clock: VirtualClock, outcome: Outcome, status: int, *, rules_too: bool) -> None:
        super().__init__(clock, b"")
        self.outcome, self.status, self.rules_too = outcome, status, rules_too

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        if visit.purpose is Purpose.ROBOTS and not self.rules_too:
            super().fetch(visit, address, done)
            return
        head = f"HTTP/1.1 {self.status} x\r\nRetry-After: 0\r\nRetry-After: 100\r\n\r\n".encode()
        self.answer(visit, address, done, self.outcome, status=self.status, head=head)


@pytest.mark.parametrize("rules_too", [False, True])
@pytest.mark.parametrize(
    ("outcome", "status", "rests"),
    [
        (Outcome.OK, 200, False),
        (Outcome.REDIRECTED, 302, True),
        (Outcome.CLIENT_ERROR, 404, True),
        (Outcome.CLIENT_ERROR, 413, True),
        (Outcome.THROTTLED, 429, True),
        (Outcome.SERVER_ERROR, 500, True),
        (Outcome.BROKEN_OFF, 500, True),
        (Outcome.TOO_LARGE, 404, True),
    ],
)
async def test_who_asks_for_a_rest_has_it(
    tmp_path: Path, outcome: Outcome, status: int, rests: bool, rules_too: bool
) -> None:
    """Whatever the status, but 2xx (RFC 9110, 10.2.3), and whatever it answered: robots.txt or a page."""
    patience = {"host_delay_s": 1, "address_delay_s": 1, "failure_delay_s": 2}
    clock = VirtualClock()
    server = Asking(clock, outcome, status, rules_too=rules_too)
    with fetching(tmp_path, Config.model_validate({"politeness": patience}), clock, server) as fetcher:
        fetcher.put(url_batch([locate(f"http://a.test/{page}") for page in range(2)]))
        for _ in range(350):
            fetcher.pump()
            await asyncio.sleep(0)
            clock.advance(1.0)
            put_again(fetcher)
    times = [at for at, url in server.asked if rules_too or not url.endswith("robots.txt")]
    assert len(times) >= 2
    assert (times[1] - times[0] >= 100) is rests, server.asked


class Failing(Server):
    """Fails at one page whenever it is asked for it, and answers for all others."""

    def __init__(self, clock: VirtualClock, outcome: Outcome) -> None:
        super().__init__(clock, b"")
        self.outcome = outcome

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        if visit.url.endswith("/fails"):
            self.answer(visit, address, done, self.outcome)
        else:
            super().fetch(visit, address, done)


@pytest.mark.parametrize("outcome", [Outcome.SERVER_ERROR, Outcome.BROKEN_OFF, Outcome.TIMED_OUT])
async def test_a_page_that_fails_again_waits_itself_and_not_its_host(tmp_path: Path, outcome: Outcome) -> None:
    """Its host rests after each failure as after a first one, while others answer; the page twice as long each time."""
    patience = {"host_delay_s": 1, "address_delay_s": 1, "failure_delay_s": 16, "tries": 4}
    clock, others, waiting = VirtualClock(), 400, list[tuple[float, Visit]]()
    server = Failing(clock, outcome)
    with fetching(tmp_path, Config.model_validate({"politeness": patience}), clock, server) as fetcher:
        fetcher.put(url_batch([locate("http://a.test/fails")]))
        for number in range(others):
            fetcher.put(url_batch([locate(f"http://a.test/{number}")]))
            fetcher.pump()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            clock.advance(1.0)
            waiting += [(max(until, visit.not_before), visit) for visit, until in fetcher.take().put_off]
            fetcher.put(batch_of(visit for at, visit in waiting if at <= clock.now()))
            waiting = [(at, visit) for at, visit in waiting if at > clock.now()]
    times = [at for at, _ in server.asked]
    failed = [place for place, (_, url) in enumerate(server.asked) if url.endswith("/fails")]
    assert len(failed) == 4
    assert all(16 <= times[place + 1] - times[place] <= 18 for place in failed), "the host rests"
    assert all(
        times[later] - times[sooner] >= 16 * 2**tries for tries, (sooner, later) in enumerate(pairwise(failed))
    ), "the page waits"


@pytest.mark.parametrize("outcome", [Outcome.SERVER_ERROR, Outcome.THROTTLED])
async def test_a_host_that_answers_every_page_with_an_error_rests_twice_as_long_each_time(
    tmp_path: Path, outcome: Outcome
) -> None:
    """Also when it was forgotten meanwhile; and after one success as at first."""
    patience = {"host_delay_s": 1, "address_delay_s": 1, "failure_delay_s": 16, "max_sleep_s": 300, "tries": 1}
    clock = VirtualClock()
    server = Failing(clock, outcome)
    first_s = 16 if outcome is Outcome.SERVER_ERROR else 32
    with fetching(tmp_path, Config.model_validate({"politeness": patience}), clock, server) as fetcher:
        for begin in (0, 10):
            fetcher.put(url_batch([locate(f"http://a.test/{n}/fails") for n in range(begin, begin + 8)]))
            for _ in range(2500):
                fetcher.pump()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                clock.advance(1.0)
                put_again(fetcher)
            times = [at for at, url in server.asked if url.endswith("/fails")]
            rests = [later - sooner for sooner, later in pairwise(times)]
            assert len(rests) == 7
            for doublings, rest in enumerate(rests):
                assert 0 <= rest - min(first_s << doublings, 300) <= 3, rests
            server.asked.clear()
            fetcher.put(url_batch([locate("http://a.test/answers")]))


class Silent(Server):
    """Never answers; what is asked of it is broken off."""

    broken_off: Callable[[], None]

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        exchange = Exchange(visit, Outcome.BROKEN_OFF, self.clock.now(), 0.0, address)
        self.broken_off = lambda: done(exchange)


async def test_what_is_broken_off_rests_too(tmp_path: Path) -> None:
    """A crawl that is stopped leaves requests unanswered: host and address rest from then on, in the next run too."""
    politeness = {"host_delay_s": 1, "address_delay_s": 20, "delay_factor": 10, "max_delay_s": 60}
    config, clock = Config.model_validate({"politeness": politeness}), VirtualClock()
    server = Silent(clock, b"")

    def rests() -> Rests:
        return Rests(tmp_path / "rests", config.politeness, 300.0, clock.now(), resumed=True)

    bench = Workbench(config.politeness)
    with closing(rests()) as journal, HostBook(tmp_path / "hosts.sqlite") as book:
        clock.advance(20.0)
        rooms = wired(bench, Names(), book, journal, server, clock, lambda: server.broken_off())
        fetcher = fetcher_of(rooms, config)
        at = locate("http://a.test/")
        fetcher.put(url_batch([at]))
        for _ in range(3):
            fetcher.pump()
            await asyncio.sleep(0)
        clock.advance(0.25)
        fetcher.stop()
        fetcher.abort()
    ended = clock.now()
    with closing(rests()) as journal:
        assert journal.due("a.test") == ended + 2.5
        assert journal.due("@127.0.0.1") == ended + 20.0


class Void(Server):
    """The first request for a page comes to nothing, by no fault of the server: `stops` says how."""

    stops = True

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        if visit.url.endswith("robots.txt") or any(url == visit.url for _, url in self.asked):
            super().fetch(visit, address, done)
            return
        outcome = Outcome.STALLED if self.stops else Outcome.BROKEN_OFF
        self.answer(visit, address, done, outcome, kept_broke=not self.stops)
        if self.stops:
            self.clock.advance(60.0)  # for the process stood still until now


async def turned(fetcher: Fetcher, clock: VirtualClock, turns: int) -> list[Outcome]:
    """How visits to a page ended in so many turns, a second each; what comes back is put in again."""
    ends: list[Outcome] = []
    fetcher.put(url_batch([locate("http://a.test/")]))
    for _ in range(turns):
        fetcher.pump()
        await asyncio.sleep(0)
        clock.advance(1.0)
        fetched = fetcher.take()
        ends.extend(each.outcome for each in fetched.exchanges if each.visit.purpose is Purpose.PAGE)
        fetcher.put(batch_of(visit for visit, _ in fetched.put_off))
    return ends


@pytest.mark.parametrize("stops", [True, False])
async def test_a_fault_that_is_not_the_servers_costs_it_nothing(tmp_path: Path, stops: bool) -> None:
    """Who was stopped, or whose kept connection broke, asks again after the usual rest; no try is counted."""
    config = Config.model_validate({"politeness": {"host_delay_s": 7, "tries": 1, "host_failures": 1}})
    clock = VirtualClock()
    server = Void(clock, b"")
    server.stops = stops
    with fetching(tmp_path, config, clock, server) as fetcher:
        assert await turned(fetcher, clock, 100) == [Outcome.OK]
        assert bool(fetcher.stood_still_s) == stops
    times = [at for at, _ in server.asked]
    assert len(times) == 3 and all(later - sooner >= 7 for sooner, later in pairwise(times)), server.asked


class Refusing(Server):
    """Whatever is asked, it breaks the connection so that libcurl would ask anew, as by REFUSED_STREAM in HTTP/2."""

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        self.answer(visit, address, done, Outcome.BROKEN_OFF, kept_broke=True)


async def test_who_breaks_every_connection_is_not_asked_for_ever(tmp_path: Path) -> None:
    """Once in a row it is a kept connection that grew old; twice, the server's fault, of which there are so many."""
    config = Config.model_validate(
        {"politeness": {"host_delay_s": 0, "address_delay_s": 0, "tries": 3, "host_failures": 4, "max_sleep_s": 20}}
    )
    clock = VirtualClock()
    server = Refusing(clock, b"")
    with fetching(tmp_path, config, clock, server) as fetcher:
        ends = await turned(fetcher, clock, 2000)
    assert len(ends) == 1 and ends[0] is not Outcome.OK
    assert len(server.asked) <= 10, len(server.asked)


async def test_what_was_aborted_starts_nothing(tmp_path: Path) -> None:
    """Also where it had answers whose hosts would be looked at again: those who carry out requests may be gone."""
    config, clock = Config.model_validate({"politeness": {"host_delay_s": 0, "address_delay_s": 0}}), VirtualClock()
    server = Server(clock, b"")
    with fetching(tmp_path, config, clock, server) as fetcher:
        fetcher.put(url_batch([locate(f"http://a.test/{n}") for n in range(9)]))
        while len(server.asked) < 3:
            fetcher.pump()
            await asyncio.sleep(0)
            clock.advance(0.25)
        fetcher.abort()
        asked = len(server.asked)
        for _ in range(9):
            await asyncio.sleep(0)
            clock.advance(0.25)
        assert len(server.asked) == asked


HARD = b"User-agent: *\n" + b"".join(
    b"Disallow: /*%bb%b\n" % (b"a" * (20 + n % 60), b"a" * (20 + n // 60)) for n in range(4000)
)


async def test_what_was_aborted_goes_on_with_nothing(tmp_path: Path) -> None:
    """Rules that were being read or asked, as the disk was full: the book is closed then, and the loop goes on."""
    config, clock = Config(), VirtualClock()
    with fetching(tmp_path, config, clock, Server(clock, HARD)) as fetcher:
        fetcher.put(url_batch([locate(f"http://a.test/{'a' * 2000}")]))
        while fetcher.quiet or fetcher.in_flight:
            clock.advance(1.0)
            fetcher.pump()
            await asyncio.sleep(0)
        fetcher.abort()
        assert fetcher.quiet


async def test_rules_that_are_hard_to_ask_hold_nobody_up(tmp_path: Path) -> None:
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

    news = asyncio.Event()
    urls = [f"http://bad.test{target}" for target in targets] + [f"http://good.test/{n}" for n in range(300)]
    with fetching(tmp_path, config, clock, Both(clock, b""), news=news) as fetcher:
        fetcher.put(url_batch([locate(url) for url in urls]))
        fetcher.pump()
        while len(ends) < len(urls):
            await news.wait()
            news.clear()
            fetched = fetcher.take()
            told.extend(origin for origin, *_ in fetched.learned)
            pages = (one for one in fetched.exchanges if one.visit.purpose is Purpose.PAGE)
            ends.extend((one.visit.url, one.outcome) for one in pages)
        assert fetcher.idle
    first_bad = next(place for place, (url, _) in enumerate(ends) if "bad.test" in url)
    assert first_bad == 300, "the good host waited for the verdict"
    rules = RobotsRules.parse(HARD, config.agent.user_agent)
    assert {url: outcome is Outcome.OK for url, outcome in ends if "bad.test" in url} == {
        f"http://bad.test{target}": rules.verdict(target).allowed for target in targets
    }
    assert len(told) == 2


async def test_refusals_are_told_a_portion_in_a_turn(tmp_path: Path) -> None:
    """However many pages of a host a sitemap names; and none while what ended is not taken."""
    closed = Closed(tmp_path)
    async with closed as fetcher:
        urls = [f"http://a.test/{page}" for page in range(10 * PORTION + 1)]
        fetcher.refuse(url_batch([locate(url) for url in urls]))
        while fetcher.ended < MOST_UNTAKEN:
            before = fetcher.ended
            fetcher.refuse(EMPTY)
            assert fetcher.ended == before + PORTION
        fetcher.refuse(EMPTY)
        assert fetcher.ended == MOST_UNTAKEN
        told = []
        while not fetcher.idle:
            ended = fetcher.take().exchanges
            told += [exchange.visit.url for exchange in ended if exchange.outcome is Outcome.ROBOTS_FORBADE]
            fetcher.refuse(EMPTY)
            assert fetcher.ended <= PORTION
        assert told == urls
        assert closed.server.asked == [(closed.server.asked[0][0], "http://a.test/robots.txt")]


async def test_what_rules_forbid_is_ended_in_portions_though_the_frontier_did_not_know(tmp_path: Path) -> None:
    """As where another agent sent it: no turn ends more than are taken."""
    closed = Closed(tmp_path)
    async with closed as fetcher:
        urls = [f"http://a.test/{page}" for page in range(5 * MOST_UNTAKEN + 1)]
        fetcher.put(url_batch([locate(url) for url in urls]))
        told = []
        while not fetcher.idle:
            fetcher.pump()
            assert 0 < fetcher.ended <= MOST_UNTAKEN
            fetcher.pump()
            assert 0 < fetcher.ended <= MOST_UNTAKEN
            ended = fetcher.take().exchanges
            told += [exchange.visit.url for exchange in ended if exchange.outcome is Outcome.ROBOTS_FORBADE]
        assert told == urls
        assert len(closed.server.asked) == 1


async def test_refusals_that_wait_are_taken_back(tmp_path: Path) -> None:
    async with Closed(tmp_path) as fetcher:
        a = locate("http://a.test/")
        ours = [locate(f"http://{'ab'[page % 2]}.test/{page}") for page in range(2 * PORTION)]
        for column in ("host", "domain"):
            fetcher.refuse(url_batch(ours))
            fetcher.take()
            left = ours[PORTION:]
            back = (
                fetcher.recall(a.host) if column == "host" else concat(fetcher.recall_all(lambda key: key == a.domain))
            )
            assert u64(back, "key").tolist() == [at.key for at in left if at.host == a.host]
            assert not fetcher.idle
            others = fetcher.recall(locate("http://b.test/").host)  # of which no rules are known yet, beside
            assert {at.key for at in left if at.host != a.host} <= set(u64(others, "key").tolist())


async def test_a_host_with_the_key_of_another_is_never_asked_for_its_pages(tmp_path: Path) -> None:
    """Who finds a name with the key of another would answer in its place."""
    clock = VirtualClock()
    server = Server(clock, b"")
    first = locate("http://first.test/")
    urls = [first, locate("http://other.test/page")._replace(host=first.host), locate("http://first.test/page")]
    ends = {}
    with fetching(tmp_path, Config(), clock, server) as fetcher:
        fetcher.put(url_batch(urls))
        for _ in range(60):
            clock.advance(1.0)
            fetcher.pump()
            await asyncio.sleep(0)
            ends |= {exchange.visit.url: exchange for exchange in fetcher.take().exchanges}
        assert fetcher.idle
    assert not any("other.test" in url for _, url in server.asked)
    assert {url: ends[url].outcome for url in ends if not url.endswith("/robots.txt")} == {
        "http://first.test/": Outcome.OK,
        "http://other.test/page": Outcome.ADDRESS_REFUSED,
        "http://first.test/page": Outcome.OK,
    }
    assert ends["http://other.test/page"].detail == "its host has the same key as first.test"


async def test_who_answers_http_at_a_port_is_sent_no_line_of_a_gopher_url_there(tmp_path: Path) -> None:
    clock = VirtualClock()
    server = Server(clock, b"")
    ends = {}
    with fetching(tmp_path, Config(), clock, server) as fetcher:
        for url in ("http://a.test:7000/", "gopher://a.test:7000/1GET%20/private", "gopher://a.test:7001/1x"):
            fetcher.put(url_batch([locate(url)]))
            for _ in range(30):
                clock.advance(1.0)
                fetcher.pump()
                await asyncio.sleep(0)
                ends |= {exchange.visit.url: exchange.outcome for exchange in fetcher.take().exchanges}
    assert not any(url.startswith("gopher://a.test:7000") for _, url in server.asked)
    assert ends["gopher://a.test:7000/1GET%20/private"] is Outcome.ADDRESS_REFUSED
    assert (ends["http://a.test:7000/"], ends["gopher://a.test:7001/1x"]) == (Outcome.OK, Outcome.OK)
