"""Names are looked up again before their answers expire, so that no visit waits for a name it had once."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fetcher.conftest import NameServer
from fetcher.test_fetcher import Server, fetching, put_again
from fyke.core.batches import url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.urls import locate
from fyke.fetcher.fetcher import Fetcher
from fyke.fetcher.names import Resolution, Resolver

TTL_S = 300
BUSY = [f"busy{number}.test" for number in range(12)]
IDLE = [f"idle{number}.test" for number in range(3)]
ZONE = dict.fromkeys([*BUSY, *IDLE], ("93.184.216.34",))


class Watched(Resolver):
    """Notes of which names it had once somebody had to wait for an answer."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.known: set[str] = set()
        self.missed: list[str] = []

    def cached(self, host: str) -> Resolution | None:
        answer = super().cached(host)
        if answer is not None:
            self.known.add(host)
        elif host in self.known:
            self.missed.append(host)
        return answer


async def crawled(server: NameServer, folder: Path, each_second: Callable[[Fetcher], None]) -> Watched:
    """Visit each busy host every 40 s for an hour, each idle one once."""
    politeness = {"host_delay_s": 40, "min_host_delay_s": 40, "address_delay_s": 0}
    config = Config.model_validate(
        {"politeness": politeness, "fetch": {"connections": 2}, "dns": {"servers": [server.address]}}
    )
    clock = VirtualClock()
    resolver = Watched(config.dns, clock, lambda host: False, hosts_file=Path("/nonexistent"))
    with fetching(folder, config, clock, Server(clock, b""), resolver) as fetcher:
        for name in [*BUSY, *IDLE]:
            pages = range(200 if name in BUSY else 1)
            fetcher.put(url_batch([locate(f"http://{name}/{page}") for page in pages]))
        for _ in range(3600):
            fetcher.pump()
            put_again(fetcher)
            while not fetcher.quiet or resolver.in_flight:
                await asyncio.sleep(0)
            each_second(fetcher)
            clock.advance(1.0)
    await resolver.close()
    return resolver


@pytest.mark.parametrize("held", [False, True])
async def test_names_with_work_are_looked_up_ahead(tmp_path: Path, held: bool) -> None:
    asked: list[int] = []  # by the second

    def second(fetcher: Fetcher) -> None:
        asked.append(len(server.questions))
        fetcher.held = held and len(asked) > 200  # paused before the first of them is due

    loop = asyncio.get_running_loop()
    given = {"zone": ZONE, "ttl": TTL_S}
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(**given), ("127.0.0.1", 0))  # type: ignore[arg-type]
    with closing(transport):
        resolver = await crawled(server, tmp_path, second)
    assert not resolver.missed, "a visit waited for a name that was known"
    assert all(server.asked(name) == 1 for name in IDLE), "a host without work was looked up"
    if held:
        assert asked[-1] == len(ZONE)
    else:
        assert max(later - sooner for sooner, later in pairwise(asked)) <= 2
        assert all(10 <= server.asked(name) <= 15 for name in BUSY), server.questions


async def test_a_name_that_fails_is_remembered(tmp_path: Path) -> None:
    """All that comes for it is given back at once for as long as its answer is believed: nobody is asked again."""
    seconds = iter(range(3600))

    def second(fetcher: Fetcher) -> None:
        if (now := next(seconds)) < 5:
            fetcher.put(url_batch([locate(f"http://{name}/later/{now}") for name in IDLE]))

    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(zone={}), ("127.0.0.1", 0))
    with closing(transport):
        await crawled(server, tmp_path, second)
    assert all(server.asked(name) == 1 for name in [*BUSY, *IDLE]), server.questions
