"""Rules that redirect to another host: strangers may lead any number there, and keep nobody from work."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fetcher.test_fetcher import Names, fetching, put_again
from fyke.core.batches import Kind, url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.messages import Rules
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.fetcher import Fetcher
from fyke.fetcher.names import Resolution
from fyke.fetcher.robots_redirects import MOST_DELAYED

LED = 150


class Elsewhere(Names):
    """Every name is at an address of its own."""

    def cached(self, host: str) -> Resolution:
        return Resolution(host, Outcome.OK, (f"at {host}",), 1e12)


class Server:
    """All rules but those of `well.test` lead there, each to a URL of its own unless `one_for_all`."""

    def __init__(self, clock: VirtualClock, waits: str) -> None:
        self.clock, self.waits, self.one_for_all, self.fields = clock, waits, False, list[str]()
        self.of_redirects = list[str]()
        self.asked: list[tuple[float, str]] = []
        self.begun: Callable[[str], None] = lambda url: None

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        self.asked.append((self.clock.now(), visit.url))
        self.begun(visit.url)
        stranger = visit.url.endswith("/robots.txt") and "well.test" not in visit.url
        led = f"http://well.test/of/{'all' if self.one_for_all else visit.parts.host}"
        lines = [f"Location: {led}", *self.of_redirects] if stranger else [f"Retry-After: {self.waits}", *self.fields]
        head = "\r\n".join(["HTTP/1.1 302 Found", *lines, "", ""]).encode()
        throttled = self.waits and "/of/" in visit.url
        outcome = Outcome.REDIRECTED if stranger else Outcome.THROTTLED if throttled else Outcome.OK
        status = {Outcome.REDIRECTED: 302, Outcome.THROTTLED: 429}.get(outcome, 200)
        exchange = Exchange(visit, outcome, self.clock.now(), 0.0, address, status=status, head=head)
        asyncio.get_running_loop().call_soon(done, exchange)

    def paths(self, host: str) -> list[str]:
        """What was asked of `host`, in order."""
        return [url.split("/", 3)[3] for _, url in self.asked if f"//{host}/" in url]


@contextmanager
def led(folder: Path, waits: str = "") -> Iterator[tuple[Fetcher, Server, VirtualClock]]:
    clock = VirtualClock()
    server = Server(clock, waits)
    with fetching(folder, Config(), clock, server, Elsewhere()) as fetcher:
        yield fetcher, server, clock


def lead(fetcher: Fetcher, hosts: int = LED) -> None:
    """The gate asks for the rules of hosts that lead to `well.test`."""
    fetcher.put(url_batch([locate(f"http://s{n}.test/robots.txt") for n in range(hosts)], kind=[Kind.RULES] * hosts))


async def passing(fetcher: Fetcher, clock: VirtualClock, seconds: int) -> list[tuple[str, Rules, float]]:
    """What the gate learns in that time; visits that are given back are handed out again."""
    learned = []
    for _ in range(seconds):
        clock.advance(1.0)
        for _ in range(6):
            fetcher.pump()
            await asyncio.sleep(0)
        learned += fetcher._rules.learned
        put_again(fetcher)
    return learned


async def test_rules_that_are_led_to_one_host_hold_no_room_of_others(tmp_path: Path) -> None:
    with led(tmp_path) as (fetcher, _, clock):
        most = fetcher.rules_room
        lead(fetcher)
        learned = await passing(fetcher, clock, 30)
    assert fetcher.rules_room >= most - 60, "what the host comes to within a minute may wait, the others not"
    assert len({origin for origin, _, _ in learned}) >= LED - 60


async def test_one_answer_serves_all_that_are_led_to_it_while_it_is_valid(tmp_path: Path) -> None:
    with led(tmp_path) as (fetcher, server, clock):
        server.one_for_all, server.fields = True, ["Cache-Control: max-age=7200"]
        begun = clock.now()
        for most in (LED // 2, LED):  # some while it is asked for, others later
            lead(fetcher, most)
            await passing(fetcher, clock, 60)
        records = [fetcher._rules._book.robots(f"http://s{n}.test:80") for n in range(LED)]
        assert server.paths("well.test") == ["of/all"]
        assert all(record is not None and record.status == 200 for record in records)
        assert {record.expires_at - begun < 7200 + 60 for record in records if record} == {True}
        clock.advance(7200)
        lead(fetcher)
        await passing(fetcher, clock, 60)
        assert server.paths("well.test") == ["of/all"] * 2


async def test_rules_that_many_are_led_to_are_asked_for_again_and_never_given_up(tmp_path: Path) -> None:
    with led(tmp_path) as (fetcher, server, clock):
        learned = []
        lead(fetcher)
        for _ in range(40):
            learned += await passing(fetcher, clock, 30)
            due = [origin for origin, rules, until in learned if rules is Rules.UNREACHABLE and until <= clock.now()]
            learned = [row for row in learned if row[0] not in due]
            fetcher.put(url_batch([locate(f"{origin}/robots.txt") for origin in due], kind=[Kind.RULES] * len(due)))
        assert len(server.paths("well.test")) == LED, "each is led there once"
        records = [fetcher._rules._book.robots(f"http://s{n}.test:80") for n in range(LED)]
    assert all(record is not None and not record.failures for record in records)


async def test_a_host_that_strangers_lead_to_is_visited_as_often_for_itself(tmp_path: Path) -> None:
    with led(tmp_path) as (fetcher, server, clock):
        lead(fetcher)
        await passing(fetcher, clock, 3)
        fetcher.put(url_batch([locate(f"http://well.test/{n}") for n in range(20)]))
        await passing(fetcher, clock, 45)
    asked = server.paths("well.test")
    assert all(f"{n}" in asked for n in range(20)), asked
    assert sum(path.startswith("of/") for path in asked) >= 20, "nor do they wait for all of its pages"


async def test_rules_that_are_led_to_a_host_that_sleeps_do_not_wait_for_that(tmp_path: Path) -> None:
    with led(tmp_path, waits="86400") as (fetcher, server, clock):
        most = fetcher.rules_room
        fetcher.put(url_batch([locate("http://well.test/of/itself")]))
        await passing(fetcher, clock, 5)
        lead(fetcher)
        await passing(fetcher, clock, 30)
        assert fetcher.rules_room == most
        assert server.paths("well.test") == ["robots.txt", "of/itself"]


async def test_rules_are_brought_from_a_host_whose_pages_are_taken_back(tmp_path: Path) -> None:
    """Pages are taken back where a trap is guessed, or a host is slow. That says nothing against what redirects there:
    strangers' pages would end for it."""
    well, few = locate("http://well.test/"), 20
    with led(tmp_path) as (fetcher, server, clock):
        lead(fetcher, few)
        fetcher.put(url_batch([locate(f"http://well.test/{n}") for n in range(20)]))
        taken_back = 0
        for _ in range(45):
            taken_back += fetcher.recall(well.host).num_rows
            await passing(fetcher, clock, 1)
        records = [fetcher._rules._book.robots(f"http://s{n}.test:80") for n in range(few)]
    assert taken_back == 20
    assert all(record is not None and not record.failures for record in records)
    assert sorted(server.paths("well.test")) == sorted(f"of/s{n}.test" for n in range(few))


@pytest.mark.parametrize("first", ["led", "blocked"])
async def test_a_host_that_is_blocked_is_asked_for_no_rules(tmp_path: Path, first: str) -> None:
    """Neither for its own nor for those that redirect there, which are out of reach."""
    well, few = locate("http://well.test/"), 20
    with led(tmp_path) as (fetcher, server, clock):
        if first == "blocked":
            fetcher.blocked.add(well.host)
        lead(fetcher, few)
        fetcher.put(url_batch([locate("http://well.test/robots.txt"), well], kind=[Kind.RULES, Kind.PAGE]))
        await passing(fetcher, clock, 3)
        asked = server.paths("well.test")
        assert not asked or first == "led"
        fetcher.blocked.add(well.host)
        fetcher.recall(well.host)
        lead(fetcher, few)
        fetcher.put(url_batch([locate("https://well.test/robots.txt")], kind=[Kind.RULES]))
        await passing(fetcher, clock, 60)
        assert server.paths("well.test") == asked
        assert not fetcher.bench.visits
        records = [fetcher._rules._book.robots(f"http://s{n}.test:80") for n in range(few)]
        fetcher.blocked.discard(well.host)
        fetcher.put(url_batch([well]))
        await passing(fetcher, clock, 30)
        assert "" in server.paths("well.test")
    assert sum(record is not None and record.failures > 0 for record in records) >= few - len(asked)


async def test_what_fails_while_its_host_is_blocked_is_kept_and_not_tried_again(tmp_path: Path) -> None:
    page = locate("http://well.test/of/itself")
    with led(tmp_path, waits="5") as (fetcher, server, clock):
        server.begun = lambda url: fetcher.blocked.add(page.host) if url.endswith("itself") else None
        fetcher.put(url_batch([page]))
        kept = []
        for _ in range(60):
            clock.advance(1.0)
            for _ in range(6):
                fetcher.pump()
                await asyncio.sleep(0)
            kept += [visit.url for visit, _ in fetcher.take().put_off]
        assert server.paths("well.test") == ["robots.txt", "of/itself"]
    assert kept == ["http://well.test/of/itself"]


@pytest.mark.parametrize("wait_s", [1, 30, 60])
async def test_redirects_that_ask_to_wait_are_followed_then_and_hold_no_room_of_others(
    tmp_path: Path, wait_s: int
) -> None:
    hosts = 40  # the host they lead to comes to as many soon
    with led(tmp_path) as (fetcher, server, clock):
        server.of_redirects, most = [f"Retry-After: {wait_s}"], fetcher.rules_room
        lead(fetcher, hosts)
        begun = clock.now()
        await passing(fetcher, clock, 0 if wait_s == 1 else wait_s // 2)
        if wait_s > 1:
            assert server.paths("well.test") == []
            assert fetcher.rules_room == most
            assert not fetcher.idle
        learned = await passing(fetcher, clock, 2 * wait_s + hosts)
        assert fetcher.idle
    first = min(at for at, url in server.asked if "well.test" in url)
    assert first >= begun + wait_s
    assert {(origin, rules) for origin, rules, _ in learned} == {
        (f"http://s{n}.test:80", Rules.OPEN) for n in range(hosts)
    }


@pytest.mark.parametrize(("wait_s", "hosts"), [(61, 40), (60, 3000)])
async def test_redirects_that_ask_to_wait_long_and_those_beyond_room_are_asked_again_and_end(
    tmp_path: Path, wait_s: int, hosts: int
) -> None:
    with led(tmp_path) as (fetcher, server, clock):
        server.of_redirects = [f"Retry-After: {wait_s}"]
        lead(fetcher, hosts)
        learned = await passing(fetcher, clock, 20)
        late = [(origin, until) for origin, rules, until in learned if rules is Rules.UNREACHABLE]
        assert len(late) >= hosts - MOST_DELAYED
        assert all(until >= clock.now() - 20 + wait_s for _, until in late)
        records = [fetcher._rules._book.robots(origin) for origin, _ in late]
        assert all(
            record is not None and record.failures == 1 and "asks to wait" in record.reason for record in records
        )
