"""A name is looked up once for as long as that takes, whoever wants to know meanwhile."""

import asyncio
from pathlib import Path

import pytest

from fetcher.test_fetcher import Server, fetching, put_again
from fyke.core.batches import Kind, url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.messages import Rules
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.fetcher.names import Resolution

FOUND = Resolution("a.test", Outcome.OK, ("127.0.0.1",), 1e12)
FAILED = Resolution("a.test", Outcome.DNS_FAILED, (), 0.0)


class SlowNames:
    """Nothing is known of any name until an answer is given."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[Resolution]] = []
        self.answer: Resolution | None = None

    def cached(self, _: str) -> Resolution | None:
        return self.answer

    def asking(self, _: str) -> "asyncio.Future[Resolution]":
        self.asked.append(asyncio.get_running_loop().create_future())
        return self.asked[-1]

    def load(self, saved: object) -> None: ...

    def refresh(self, hosts: object) -> None: ...


@pytest.mark.parametrize("answer", [FOUND, FAILED], ids=["found", "failed"])
@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_host_that_is_roused_while_its_name_is_looked_up_waits_on(
    tmp_path: Path, answer: Resolution, forgotten: bool
) -> None:
    """Its rules were read out of the book meanwhile; or it had nothing to do any more, and came back."""
    config = Config.model_validate({"politeness": {"host_delay_s": 0, "address_delay_s": 0}})
    clock, names, faults = VirtualClock(), SlowNames(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
    server = Server(clock, b"")
    with fetching(tmp_path, config, clock, server, names) as fetcher:
        bench, visit = fetcher.bench, url_batch([locate("http://a.test/")])
        fetcher.put(visit)
        fetcher.pump()
        (host,) = bench
        if forgotten:
            bench.unpark(host)
            fetcher.recall(host.key)
            fetcher.pump()
            assert not len(bench)
            fetcher.put(visit)
        for _ in range(3):
            (host,) = bench
            bench.unpark(host)
            fetcher.pump()
        assert len(names.asked) == 1
        names.answer = answer if answer is FOUND else None
        names.asked[0].set_result(answer)
        for _ in range(20):
            await asyncio.sleep(0.002)  # a name without an address is told of in a slice
            clock.advance(1.0)
            fetcher.pump()
        assert not faults
        if answer is FOUND:
            assert [url for _, url in server.asked] == ["http://a.test/robots.txt", "http://a.test/"]
        else:
            assert put_again(fetcher) or bench.visits, "its visits are gone"
            (host,) = bench
            assert host.failures == 1


async def test_who_has_an_address_does_not_wait_for_those_that_have_none(tmp_path: Path) -> None:
    """However many answers come at once."""
    config = Config.model_validate({"politeness": {"host_delay_s": 0, "address_delay_s": 0}})
    clock, names = VirtualClock(), SlowNames()
    server = Server(clock, b"")
    hosts = [f"h{number}.test" for number in range(500)] + ["a.test"]
    with fetching(tmp_path, config, clock, server, names) as fetcher:
        fetcher.put(url_batch([locate(f"http://{host}/robots.txt") for host in hosts], kind=Kind.RULES))
        while len(names.asked) < len(hosts):
            fetcher.pump()
            await asyncio.sleep(0)
        for asked in names.asked:
            asked.set_result(FOUND if asked is names.asked[-1] else FAILED)
        while not server.asked:
            await asyncio.sleep(0)
        assert len(fetcher.take().learned) < 50
        while not fetcher.quiet:
            await asyncio.sleep(0.002)
        assert len(fetcher.take().learned) > 450


async def test_names_that_fail_hold_no_room_for_rules(tmp_path: Path) -> None:
    """However many: who rests since its name failed is asked for again then, and is not kept until then."""
    config = Config.model_validate({"politeness": {"host_delay_s": 0, "address_delay_s": 0}})
    clock, names = VirtualClock(), SlowNames()
    names.answer = FAILED
    with fetching(tmp_path, config, clock, Server(clock, b""), names) as fetcher:
        room, told = fetcher.rules_room, dict[str, float]()
        for round_ in range(3):
            urls = [f"http://h{number}.test/robots.txt" for number in range(500)]
            fetcher.put(url_batch([locate(url) for url in urls], kind=Kind.RULES))
            while fetcher.rules_room < room:
                fetcher.pump()
                await asyncio.sleep(0)
            learned = fetcher.take().learned
            assert {rules for _, rules, _ in learned} == {Rules.UNNAMED}
            told = {origin: until - clock.now() for origin, _, until in learned}
            assert len(told) == len(learned) == 500
            assert {*told.values()} == {config.politeness.failure_delay_s * 2**round_}
            assert not len(fetcher.bench) and fetcher.bench.next_due() is None
            clock.advance(max(told.values()))
