"""A web server that says whatever a test wants, and a client to ask it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
import trustme

from fyke.core.clock import SystemClock
from fyke.core.config import AgentSection, FetchSection
from fyke.core.pace import Pace
from fyke.core.plugins import ProtocolModule
from fyke.core.site import SiteSection
from fyke.core.visits import Exchange, visit_to
from fyke.fetcher.access import Sites
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.registry import Registry, build_registry
from looping import on_loop

LOCAL = "127.0.0.1"
AGENT = AgentSection(user_agent="fyke-test", contact="https://example.org/bot")
Script = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class WebServer:
    """Plays `script` for each request head it reads; keeps the connection while the script does."""

    script: Script
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await self.script(head, reader, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def url(self, target: str = "/", host: str = "site.test") -> str:
        return f"http://{host}:{self.port}{target}"


@asynccontextmanager
async def listening(handler, **options) -> AsyncIterator[int]:
    """The port of a server for as long as the block runs."""
    tasks = set()

    async def tracked(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            with suppress(ConnectionError):  # the client would have no more of it
                await handler(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()

    server = await asyncio.start_server(tracked, LOCAL, 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def web(script: Script, **options) -> AsyncIterator[WebServer]:
    server = WebServer(script)
    async with listening(server.serve, **options) as server.port:
        yield server


def saying(*pieces: bytes, close: bool = False) -> Script:
    """A script that sends `pieces`, each by itself."""

    async def script(_head, _reader, writer):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if close:
            writer.close()

    return script


class Client:
    """A client with the built-in modules, and every answer counted."""

    def __init__(
        self,
        plugins: list[ProtocolModule] = (),
        folder: str | None = None,
        loop=None,
        kept: int | None = None,
        pace: Pace | None = None,
        site: SiteSection | None = None,
        of_address: int = 0,
        **limits,
    ) -> None:  # type: ignore[assignment]
        loop = loop or asyncio.get_running_loop()
        settings = {"connect_timeout_s": 2, "timeout_s": 5, "connections": 32} | limits
        self.curl = CurlClient(
            loop, FetchSection(**settings), SystemClock(), folder, pace, kept=kept, of_address=of_address
        )
        self.registry: Registry = build_registry(
            loop, self.curl, AGENT, SystemClock(), plugins, sites=Sites([site] if site else [])
        )
        self.answers: list[Exchange] = []

    async def get(self, url: str, address: str = LOCAL) -> Exchange:
        return (await self.get_all([url], address))[0]

    async def get_all(self, urls: list[str], address: str = LOCAL) -> list[Exchange]:
        """Every URL at once; fails when one is answered twice or from inside `fetch`."""
        futures = []
        for url in urls:
            future = asyncio.get_running_loop().create_future()
            futures.append(future)
            self.registry.fetch(visit_to(url), address, self._into(future))
            assert not future.done()
        answers = await asyncio.wait_for(asyncio.gather(*futures), 20)
        self.answers += answers
        return answers

    def _into(self, future):
        def done(exchange: Exchange) -> None:
            assert not future.done(), "answered twice"
            future.set_result(exchange)

        return done

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.curl.close()
        assert self.curl.in_flight == 0
        for answer in self.answers:
            answer.body.close()


@pytest.fixture
def run():
    """Runs a coroutine on a loop of its own."""
    return on_loop


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    authority = trustme.CA()
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return authority, str(path)


def tls(authority, name="site.test", *protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    context.set_alpn_protocols(list(protocols))
    return context
