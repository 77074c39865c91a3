"""The law of long rules: whatever servers send as robots.txt, a bounded part of it is in memory, and all is obeyed."""

import asyncio
import gc
import tracemalloc
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from fetcher.test_fetcher import Server, fetching, put_again
from fyke.core.batches import url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.pace import Pace
from fyke.core.slices import Slicer
from fyke.core.urls import locate
from fyke.fetcher import long_rules
from fyke.fetcher.book import MOST_UNWRITTEN_BYTES, HostBook
from fyke.fetcher.host import OriginRules
from fyke.fetcher.long_rules import AT_ONCE, SMALL_BYTES, LongRules
from fyke.fetcher.robots import RobotsRecord, RobotsState

DELAY_S = 90


def rules_of(number: int, size: int) -> bytes:
    lines = [f"User-agent: *\nCrawl-delay: {DELAY_S}\nDisallow: /closed-{number}\n"]
    lines += [f"Disallow: /{line:0500d}\n" for line in range(size // 512)]
    return "".join(lines).encode()


def dense(number: int, size: int) -> bytes:
    """As many rules as fit."""
    lines = "".join(f"allow:/{line:x}\n" for line in range(size // 11))
    return f"User-agent: *\nDisallow: /closed-{number}\n{lines}".encode()


def wild(number: int, size: int) -> bytes:
    """The same, each with a wildcard."""
    return dense(number, size).replace(b"allow:/", b"allow:*")


def listing(number: int, size: int) -> bytes:
    lines = "".join(f"sitemap:{line:x}\n" for line in range(size // 12))
    return f"User-agent: *\nDisallow: /closed-{number}\n{lines}".encode()


def held_by(book: HostBook, bodies: list[bytes]) -> tuple[LongRules, Slicer, list[OriginRules]]:
    """The rules of hosts that sent `bodies`, read one after the other."""
    slicer = Slicer(lambda: None, Pace(VirtualClock()).share())
    rules, held = LongRules(book, slicer, "fyke"), [OriginRules() for _ in bodies]
    for number, body in enumerate(bodies):
        read(rules, held, book, number, body)
        while len(slicer):
            slicer._slice()
    return rules, slicer, held


def read(rules: LongRules, held: list[OriginRules], book: HostBook, number: int, body: bytes) -> None:
    def came(record: RobotsRecord) -> None:
        assert not record.body, "its text is in memory still"
        assert not record.rules("fyke").verdict(f"/closed-{number}/page").allowed
        held[number].robots = record
        rules.keep(held[number], record)

    record = RobotsRecord(f"http://h{number}.test:80", RobotsState.RULES, 1.0, 1e9, 200, "", body)
    book.save_robots(record)
    rules.read(record, came)


def in_memory(held: list[OriginRules]) -> list[int]:
    return [number for number, known in enumerate(held) if known.robots is not None]


@pytest.mark.parametrize("body_of", [rules_of, dense, wild, listing])
@pytest.mark.parametrize("size", [300, 3_000, 32_000, 100_000])
async def test_those_in_memory_take_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body_of: Callable[[int, int], bytes], size: int
) -> None:
    """Whatever their files have: many rules, long ones, wildcards, sitemaps. One may be of any length."""
    monkeypatch.setattr(long_rules, "KEPT_BYTES", budget := 1 << 20)
    with HostBook(tmp_path / "hosts.sqlite") as book:
        hosts = min(20, max(4, 200_000 // size))
        bodies = [body_of(number, size) for number in range(hosts)]
        held_by(book, bodies[:1])
        begun = not tracemalloc.is_tracing()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            _, _, held = held_by(book, bodies)
            gc.collect()
            taken = tracemalloc.get_traced_memory()[0] - before
            while len(in_memory(held)) > 1:
                held[in_memory(held)[0]].robots = None
            gc.collect()
            one = tracemalloc.get_traced_memory()[0] - before
        finally:
            if begun:
                tracemalloc.stop()
    book_bytes = 2 * MOST_UNWRITTEN_BYTES
    assert taken < max(1.2 * budget, 1.1 * one) + hosts * (SMALL_BYTES + 1000) + book_bytes


@pytest.mark.parametrize("body_of", [rules_of, dense, wild, listing])
async def test_what_is_not_read_at_once_waits_its_turn(tmp_path: Path, body_of: Callable[[int, int], bytes]) -> None:
    """A file that is half read takes memory, however short it is."""
    with HostBook(tmp_path / "hosts.sqlite") as book:
        for size in [*range(100, 2_000, 100), 10_000, 30_000]:
            slicer = Slicer(lambda: None, Pace(VirtualClock()).share())
            rules, held = LongRules(book, slicer, "fyke"), [OriginRules() for _ in range(10)]
            for number in range(10):
                read(rules, held, book, number, body_of(number, size))
            assert len(slicer) <= AT_ONCE
            assert size > 400 or len(in_memory(held)) == 10
            slicer.stop()


async def test_what_is_small_is_never_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_rules, "KEPT_BYTES", 1 << 16)
    few = b"User-agent: *\n" + b"".join(b"Disallow: /closed-%d\n" % line for line in range(10))
    with HostBook(tmp_path / "hosts.sqlite") as book:
        bodies = [few if number < 10 else dense(number, 32_000) for number in range(20)]
        rules, slicer, held = held_by(book, bodies)
        assert in_memory(held) == [*range(10), 19]
        read(rules, held, book, 0, few)
        assert not len(slicer)


async def test_what_was_asked_longest_ago_is_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [dense(number, 32_000) for number in range(4)]
    with HostBook(tmp_path / "hosts.sqlite") as book:
        rules, slicer, held = held_by(book, bodies)
        assert in_memory(held) == [0, 1, 2, 3] and held[0].robots is not None
        monkeypatch.setattr(long_rules, "KEPT_BYTES", 4 * held[0].robots.rules("fyke").size_bytes)
        rules.used("http://h0.test:80")
        held.append(OriginRules())
        read(rules, held, book, 4, bodies[0].replace(b"closed-0", b"closed-4"))
        while len(slicer):
            slicer._slice()
        assert in_memory(held) == [0, 2, 3, 4]


async def test_many_that_waited_are_not_read_at_once(tmp_path: Path, monkeypatch) -> None:
    """Each of them is nearly short: it ends in its first slice. They come while a few very long ones are read."""
    monkeypatch.setattr(long_rules, "KEPT_BYTES", 32 << 20)  # room for all
    with HostBook(tmp_path / "hosts.sqlite") as book:
        slicer = Slicer(lambda: None, Pace(VirtualClock()).share())
        rules, held = LongRules(book, slicer, "fyke"), [OriginRules() for _ in range(1_000)]
        for number in range(len(held)):
            read(rules, held, book, number, dense(number, 100_000 if number < AT_ONCE else 700))
        before = len(in_memory(held))
        while len(slicer):
            slicer._slice()
            assert len(in_memory(held)) <= before + 2 * AT_ONCE
            before = len(in_memory(held))
        assert before == len(held)


async def test_few_are_read_at_a_time_and_the_shortest_first(tmp_path: Path) -> None:
    with HostBook(tmp_path / "hosts.sqlite") as book:
        slicer = Slicer(lambda: None, Pace(VirtualClock()).share())
        rules, held = LongRules(book, slicer, "fyke"), [OriginRules() for _ in range(21)]
        for number in range(20):
            read(rules, held, book, number, dense(number, 300_000 - 10_000 * number))
            assert len(slicer) <= AT_ONCE
        read(rules, held, book, 20, dense(20, 300))
        while not in_memory(held):
            slicer._slice()
        assert in_memory(held) == [20]
        came: list[int] = []
        while len(slicer):
            assert len(slicer) <= AT_ONCE
            slicer._slice()
            came += [number for number in in_memory(held) if number not in came]
        assert sorted(came) == [*range(21)]
        assert [number for number in came if number >= AT_ONCE] == [20, *range(19, AT_ONCE - 1, -1)]


def test_they_are_obeyed_also_when_they_were_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more hosts than there is memory for each gives all its pages but what it closes, at its Crawl-delay."""
    monkeypatch.setattr(long_rules, "KEPT_BYTES", 4 << 20)
    politeness = {"host_delay_s": 0, "min_host_delay_s": 0, "address_delay_s": 0, "min_address_delay_s": 0}
    config, clock = Config.model_validate({"politeness": {**politeness, "delay_factor": 0}}), VirtualClock()
    server = Server(clock, rules_of(0, 400_000))
    hosts, pages = 30, 3

    async def crawl() -> None:
        with fetching(tmp_path, config, clock, server) as fetcher:
            urls = [f"http://h{host}.test/{page}" for host in range(hosts) for page in [*range(pages), "closed-0"]]
            fetcher.put(url_batch([locate(url) for url in urls]))
            for _ in range(100_000):
                fetcher.pump()
                while not fetcher.quiet:
                    await asyncio.sleep(0)
                put_again(fetcher)
                if len(server.asked) == hosts * (1 + pages):
                    break
                clock.advance(1.0)

    asyncio.run(crawl())
    asked = defaultdict(list)
    for at, url in server.asked:
        assert "closed" not in url
        asked[url.split("/")[2]].append(at)
    assert len(asked) == hosts and all(len(times) == 1 + pages for times in asked.values())
    assert all(later - sooner >= DELAY_S for times in asked.values() for sooner, later in pairwise(times))
