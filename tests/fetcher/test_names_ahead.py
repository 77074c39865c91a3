"""Names are looked up again before their answers expire, so that no visit waits for a name it had once."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from fetcher.conftest import NameServer
from fetcher.test_engine import Server, put_again
from fyke.core.batches import url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.urls import locate
from fyke.fetcher.book import HostBook
from fyke.fetcher.engine import Fetcher
from fyke.fetcher.names import Resolver
from fyke.fetcher.rests import Rests
from fyke.fetcher.wiring import Wiring
from fyke.fetcher.workbench import Workbench

TTL_S = 300
BUSY = [f"busy{number}.test" for number in range(12)]
IDLE = [f"idle{number}.test" for number in range(3)]
ZONE = dict.fromkeys([*BUSY, *IDLE], ("93.184.216.34",))


async def crawled(server: NameServer, folder: Path, each_second: Callable[[Fetcher, Resolver], None]) -> Resolver:
    """Visit each busy host every 40 s for an hour, each idle one once."""
    politeness = {"host_delay_s": 40, "min_host_delay_s": 40, "address_delay_s": 0}
    config = Config.model_validate(
        {"politeness": politeness, "fetch": {"connections": 2}, "dns": {"servers": [server.address]}}
    )
    clock = VirtualClock()
    resolver = Resolver(config.dns, clock, lambda host: False, hosts_file=Path("/nonexistent"))
    rests = Rests(folder / "rests", config.politeness, 300.0, clock.now(), resumed=False)
    with closing(rests), HostBook(folder / "hosts.sqlite") as book:
        bench = Workbench(config.politeness)
        rooms = Wiring(bench, resolver, book, rests, Server(clock, b""), lambda: None, clock)  # type: ignore[arg-type]
        fetcher = Fetcher(rooms, config, asyncio.Event())
        for name in [*BUSY, *IDLE]:
            pages = range(200 if name in BUSY else 1)
            fetcher.put(url_batch([locate(f"http://{name}/{page}") for page in pages]))
        for _ in range(3600):
            fetcher.pump()
            put_again(fetcher)
            while not fetcher.quiet or resolver.statistics().in_flight:
                await asyncio.sleep(0)
            each_second(fetcher, resolver)
            clock.advance(1.0)
        fetcher.stop()
    await resolver.close()
    return resolver


@pytest.mark.parametrize("held", [False, True])
async def test_names_with_work_are_looked_up_ahead(tmp_path: Path, held: bool) -> None:
    refreshes = [0]

    def second(fetcher: Fetcher, resolver: Resolver) -> None:
        refreshes.append(resolver.statistics().refreshes)
        fetcher.held = held and len(refreshes) > 200  # paused before the first of them is due

    loop = asyncio.get_running_loop()
    given = {"zone": ZONE, "ttl": TTL_S}
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(**given), ("127.0.0.1", 0))  # type: ignore[arg-type]
    with closing(transport):
        found = (await crawled(server, tmp_path, second)).statistics()
    assert found.lookups - found.refreshes == len(ZONE), "a visit waited for a name that was known"
    assert all(server.asked(name) == 1 for name in IDLE), "a host without work was looked up"
    if held:
        assert found.refreshes == 0
    else:
        assert max(later - sooner for sooner, later in pairwise(refreshes)) <= 2
        assert all(10 <= server.asked(name) <= 15 for name in BUSY), server.questions


async def test_a_name_that_fails_is_remembered(tmp_path: Path) -> None:
    """All that comes for it is given back at once for as long as its answer is believed: nobody is asked again."""
    seconds = iter(range(3600))

    def second(fetcher: Fetcher, resolver: Resolver) -> None:
        if (now := next(seconds)) < 5:
            fetcher.put(url_batch([locate(f"http://{name}/later/{now}") for name in IDLE]))

    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(zone={}), ("127.0.0.1", 0))
    with closing(transport):
        await crawled(server, tmp_path, second)
    assert all(server.asked(name) == 1 for name in [*BUSY, *IDLE]), server.questions
