"""The law of long rules: whatever servers send as robots.txt, a bounded part of it is in memory, and all is obeyed."""

import asyncio
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from fetcher.test_engine import Names, Server, put_again
from fyke.core.batches import url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.pace import Pace
from fyke.core.slices import Slicer
from fyke.core.urls import locate
from fyke.fetcher.book import HostBook
from fyke.fetcher.engine import Fetcher
from fyke.fetcher.host import OriginRules
from fyke.fetcher.long_rules import AT_ONCE, KEPT_BYTES, LONG_BYTES, LongRules
from fyke.fetcher.rests import Rests
from fyke.fetcher.robots import RobotsRecord, RobotsState
from fyke.fetcher.wiring import Wiring
from fyke.fetcher.workbench import Workbench

DELAY_S = 90


def rules_of(number: int, size: int) -> bytes:
    lines = [f"User-agent: *\nCrawl-delay: {DELAY_S}\nDisallow: /closed-{number}\n"]
    lines += [f"Disallow: /{line:0500d}\n" for line in range(size // 512)]
    return "".join(lines).encode()


@pytest.mark.parametrize("size", [1_000, 2 * LONG_BYTES, 500_000])
def test_those_in_memory_are_few(tmp_path: Path, size: int) -> None:
    held = [OriginRules() for _ in range(60)]
    waiting = 0

    async def scenario() -> None:
        nonlocal waiting
        with HostBook(tmp_path / "hosts.sqlite") as book:
            slicer = Slicer(lambda: None, Pace(VirtualClock()).share())
            rules = LongRules(book, slicer, "fyke")

            def came(number: int, record: RobotsRecord) -> None:
                assert not record.body, "its text is in memory still"
                assert not record.rules("fyke").verdict(f"/closed-{number}/page").allowed
                held[number].robots = record
                rules.keep(held[number], record)

            for number, known in enumerate(held):
                origin = f"http://h{number}.test:80"
                book.save_robots(RobotsRecord(origin, RobotsState.RULES, 1.0, 1e9, 200, "", rules_of(number, size)))
                rules.read(origin, lambda record, number=number: came(number, record))
                assert len(slicer) <= AT_ONCE
                waiting += known.robots is None
            while rules._reading or rules._waiting:
                assert len(slicer) <= AT_ONCE
                await asyncio.sleep(0)
                slicer._slice()
            sizes = [known.robots.size for known in held if known.robots is not None]
            assert sum(sizes) <= max(KEPT_BYTES, 60 * min(size, LONG_BYTES))
            assert held[-1].robots is not None
            kept = [number for number, known in enumerate(held) if known.robots is not None]
            if size > LONG_BYTES:
                assert len(kept) < 60 if size * 60 > KEPT_BYTES else len(kept) == 60
                rules.used(f"http://h{kept[0]}.test:80")
                rules.read("http://h0.test:80", lambda record: came(0, record))
                while rules._reading:
                    slicer._slice()
                    await asyncio.sleep(0)
                if len(kept) < 60:
                    assert held[kept[0]].robots is not None and held[kept[1]].robots is None, (
                        "the oldest use goes first"
                    )

    asyncio.run(scenario())
    assert waiting or size < LONG_BYTES


def test_they_are_obeyed_also_when_they_were_forgotten(tmp_path: Path) -> None:
    """Of more hosts than there is memory for each gives all its pages but what it closes, at its Crawl-delay."""
    politeness = {"host_delay_s": 0, "min_host_delay_s": 0, "address_delay_s": 0, "min_address_delay_s": 0}
    config, clock = Config.model_validate({"politeness": {**politeness, "delay_factor": 0}}), VirtualClock()
    server = Server(clock, rules_of(0, 400_000))
    hosts, pages = 3 * KEPT_BYTES // 400_000, 3

    async def crawl() -> None:
        bench = Workbench(config.politeness)
        rests = Rests(tmp_path / "rests", config.politeness, 300.0, clock.now(), resumed=False)
        with closing(rests), HostBook(tmp_path / "hosts.sqlite") as book:
            rooms = Wiring(bench, Names(), book, rests, server, lambda: None, clock)  # type: ignore[arg-type]
            fetcher = Fetcher(rooms, config, asyncio.Event())
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
            fetcher.stop()

    asyncio.run(crawl())
    asked = defaultdict(list)
    for at, url in server.asked:
        assert "closed" not in url
        asked[url.split("/")[2]].append(at)
    assert len(asked) == hosts and all(len(times) == 1 + pages for times in asked.values())
    assert all(later - sooner >= DELAY_S for times in asked.values() for sooner, later in pairwise(times))
