"""A seed may be at a private address: at the port that was typed, and nowhere else."""

import asyncio

import pytest

from fyke.core.clock import SystemClock
from fyke.core.config import AgentSection, FetchSection
from fyke.core.outcomes import Outcome
from fyke.core.seeds import seeds_of
from fyke.core.urls import split
from fyke.core.visits import Exchange, visit_to
from fyke.fetcher.chosen import Chosen
from fyke.fetcher.robots import RobotsState, rules_from
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.registry import build_registry


@pytest.mark.parametrize(
    ("host", "port", "may"),
    [
        ("a.test", 8080, True), ("a.test", 80, False), ("a.test", 22, False), ("b.test", 80, True),
        ("b.test", 443, True), ("b.test", 8443, False), ("x.a.test", 8080, False), ("127.0.0.1", 9000, True),
        ("127.0.0.1", 9001, False), ("c.test", 21, True), ("c.test", 80, False), ("x.intra", 1, True),
        ("intra", 1, True), ("xintra", 1, False),
    ],
)  # fmt: skip
def test_a_seed_is_chosen_at_its_port(host: str, port: int, may: bool) -> None:
    seeds = seeds_of(["http://a.test:8080/x", "https://b.test/", "http://127.0.0.1:9000/", "ftp://c.test/"])
    chosen = Chosen(seeds, ["intra"])
    scheme = {21: "ftp"}.get(port, "http")
    assert chosen.port(split(f"{scheme}://{host}:{port}/")) is may
    assert not may or chosen.host(host)
    if not host.endswith("intra"):
        assert not any(chosen.port(split(f"{other}://{host}:{port}/")) for other in ("gopher", "x")), "nor so spoken to"


def test_seeds_may_be_added() -> None:
    seeds = seeds_of(["http://a.test/"])
    chosen = Chosen(seeds, [])
    assert not chosen.host("b.test")
    seeds += seeds_of(["http://b.test:81/"])
    assert chosen.port(split("http://b.test:81/")) and not chosen.port(split("http://b.test/"))


async def test_another_port_of_a_private_seed_is_not_asked() -> None:
    asked: list[int] = []
    loop = asyncio.get_running_loop()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(writer.get_extra_info("sockname")[1])
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        writer.close()

    servers = [await asyncio.start_server(answer, "127.0.0.1", 0) for _ in range(2)]
    first, second = (server.sockets[0].getsockname()[1] for server in servers)
    curl = CurlClient(loop, FetchSection(), SystemClock())
    chosen = Chosen(seeds_of([f"http://seed.test:{first}/"]), [])
    registry = build_registry(loop, curl, AgentSection(), SystemClock(), (), chosen.port)

    async def fetched(port: int) -> Exchange:
        done: asyncio.Future[Exchange] = loop.create_future()
        registry.fetch(visit_to(f"http://seed.test:{port}/"), "127.0.0.1", done.set_result)
        return await done

    assert (await fetched(first)).outcome is Outcome.OK
    refused = await fetched(second)
    assert refused.outcome is Outcome.ADDRESS_REFUSED and f"no seed names its port {second}" in refused.detail
    assert asked == [first]
    record = rules_from(refused, b"", now=0.0)
    assert record.state is RobotsState.ALLOW_ALL and "not requested" in record.reason
    curl.close()
    for server in servers:
        server.close()
