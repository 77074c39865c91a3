"""Whoever connects and says nothing keeps nobody from the page, and not for long."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from uvicorn.server import ServerState

from fyke.serve import guests
from fyke.serve.guests import MOST_GUESTS, Guest, most_guests
from looping import on_loop

ASK = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
ANSWER_S = 0.3  # that an answer takes


async def app(scope, receive, send):
    """Answers once the body is there, and a while has passed."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(ANSWER_S if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    config = uvicorn.Config(app, http=Guest, log_level="critical", lifespan="off")
    config.load()
    state = ServerState()
    made = lambda: Guest(config=config, server_state=state, app_state={})  # noqa: E731
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0, backlog=1000)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for guest in [*state.connections]:
            guest.leave()


async def page(port: int, asked: bytes = ASK) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(asked)
    answer = await asyncio.wait_for(reader.readuntil(b"hi"), 5)
    writer.close()
    return answer


def test_silent_connections_keep_nobody_from_the_page() -> None:
    async def run() -> None:
        async with listening() as port:
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * MOST_GUESTS)]
            for _, writer in silent:
                writer.write(b"GET / HTTP/1.1\r\n")
            assert await page(port)
            for _, writer in silent:
                writer.close()

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    try:
        on_loop(run())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


SAID = {
    "nothing": b"",
    "half a head": ASK[:-2],
    "half a body": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_who_does_not_finish_a_request_is_not_waited_for(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if it goes on, a letter at a time."""
    monkeypatch.setattr(guests, "PATIENCE_S", 0.3)
    monkeypatch.setattr(guests, "LOOK_S", 0.05)

    async def run() -> None:
        async with listening() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            begun = time.monotonic()
            while not reader.at_eof() and time.monotonic() < begun + 20:
                try:
                    if said:
                        writer.write(b"X")
                    await asyncio.wait_for(reader.read(100), 0.05)
                except TimeoutError:
                    pass
                except OSError:
                    break
            assert time.monotonic() - begun < 10
            writer.close()

    on_loop(run())


def test_who_asks_is_answered_however_long_that_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "PATIENCE_S", ANSWER_S / 3)
    monkeypatch.setattr(guests, "LOOK_S", ANSWER_S / 30)

    async def run() -> None:
        async with listening() as port:
            assert await page(port, ASK.replace(b" / ", b" /slow "))

    on_loop(run())


def test_guests_leave_files_for_the_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    assert most_guests() == 128
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert most_guests() == MOST_GUESTS
