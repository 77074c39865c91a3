"""The running web: all servers of a spec, started and stopped together.

Tests call it (`async with Web(spec)`), `running_web` in its own process, and `fyke web` through `serve`.

Invariant: it listens on 127.0.0.0/8 only, with one HTTP port on every address of the web, and nothing of it is left
after it has closed.
"""

import asyncio
import signal
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import uvloop

from fyke.lab.simweb.answers import Responder
from fyke.lab.simweb.dns import NameServer, Zone
from fyke.lab.simweb.ftp import FtpSite
from fyke.lab.simweb.gopher import GopherSite
from fyke.lab.simweb.hosts import HostNames, address_text
from fyke.lab.simweb.http import Connection, WebState
from fyke.lab.simweb.kinds import RobotsKind
from fyke.lab.simweb.layout import Layout, Ports
from fyke.lab.simweb.ledger import Ledger, LedgerStatistics
from fyke.lab.simweb.perfect import Expectation, IntendedCrawl, perfect
from fyke.lab.simweb.spec import WebSpec
from fyke.lab.simweb.weather import Weather

DNS_ADDRESS = "127.0.0.1"
BACKLOG = 1024
BEAT_S = 0.01
MOST_STALLS = 10_000
PORT_TRIES = 50


class Guide:
    """A web as known from its spec and ports alone, in any process."""

    def __init__(self, spec: WebSpec, ports: Ports) -> None:
        self.spec, self.ports = spec, ports
        self.layout = Layout(spec, ports)

    @property
    def dns(self) -> str:
        """Address of the DNS server: `127.0.0.1:port`."""
        return f"{DNS_ADDRESS}:{self.ports.dns}"

    @property
    def seeds(self) -> list[str]:
        """The URL from which all pages can be reached, as a list."""
        return [self.layout.url(self.layout.page(0))]

    def perfect(self, plan: IntendedCrawl | None = None, seeds: Iterable[str] | None = None) -> Expectation:
        """Return what a perfect crawl would do; see `fyke.lab.simweb.perfect`."""
        return perfect(self.layout, plan, seeds)

    def crawl_delays(self) -> dict[str, float]:
        """Return the Crawl-delay in seconds by host name, for the hosts that ask for one."""
        names = self.layout.names
        hosts = [host for host in range(names.hosts) if names.robots_kind(host) is RobotsKind.DELAY]
        return {names.name(host): self.spec.crawl_delay_s for host in hosts}

    def welcome(self) -> str:
        """Return the text for a person who has just started this web."""
        spec = self.spec
        return (
            f"A web of {spec.pages:,} pages on {spec.hosts:,} hosts is running on this machine.\n"
            f"  begin at  {self.seeds[0]}\n"
            f"  its DNS   {self.dns}\n"
            f"Crawl it:   fyke crawl {self.seeds[0]} --dns {self.dns} --into demo\n"
        )


class Web(Guide):
    """A running web in this process. Its ports are known once it is entered."""

    def __init__(self, spec: WebSpec, ledger: Ledger | None = None, now: Callable[[], float] = time.time) -> None:
        super().__init__(spec, Ports(spec.http_port, spec.dns_port))
        self.ledger = ledger or Ledger()
        self.authority_pem: bytes | None = None  # the certificate to trust, if https
        self.weather = Weather()
        self._now = now
        self._servers: list[asyncio.Server] = []
        self._datagrams: asyncio.DatagramTransport | None = None
        self._site: WebState | None = None
        self._streams: set[asyncio.Task[None]] = set()
        self._stalls: deque[tuple[float, float]] = deque(maxlen=MOST_STALLS)
        self._ran_at = inf

    def __repr__(self) -> str:
        return f"<Web of {self.spec.pages} pages at {self.seeds[0]}, dns {self.dns}>"

    async def __aenter__(self) -> Self:
        spec, loop = self.spec, asyncio.get_running_loop()
        sockets = _listen(HostNames(spec).all_addresses(), spec.http_port)
        first = address_text(0)
        old = {name: _listen([first], 0)[0] for name in ("gopher", "ftp") if getattr(spec, name)}
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.setblocking(False)
        names.bind((DNS_ADDRESS, spec.dns_port))
        olds = {name: one.getsockname()[1] for name, one in old.items()}
        self.ports = Ports(sockets[0].getsockname()[1], names.getsockname()[1], **olds)
        self.layout = Layout(spec, self.ports)
        site = self._site = WebState(Responder(self.layout), self.ledger, self._now, self.weather)
        tls = self._tls() if spec.https else None
        for one in sockets:
            server = await loop.create_server(lambda: Connection(site), sock=one, ssl=tls, backlog=BACKLOG)
            self._servers.append(server)
        zone = Zone(self.layout)
        self._datagrams, _ = await loop.create_datagram_endpoint(
            lambda: NameServer(zone, self.ledger, self._now, self.weather), sock=names
        )
        for name, one in old.items():
            self._servers.append(await asyncio.start_server(self._old_server(name), sock=one))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        if self._datagrams is not None:
            self._datagrams.close()
        for connection in list(self._site.connections) if self._site else []:
            connection.close()
        for task in self._streams:
            task.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)
        await asyncio.sleep(0)  # lets the transports call back before the loop ends
        self._servers.clear()
        self.ledger.flush()

    def _old_server(self, name: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        port, entry = getattr(self.ports, name), self.seeds[0]
        room = (GopherSite if name == "gopher" else FtpSite)(port, entry, self.ledger, self._now)

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(room.serve(reader, writer))
            self._streams.add(task)
            task.add_done_callback(self._streams.discard)

        return accept

    def _tls(self) -> ssl.SSLContext:
        # Only https needs it, and only the tests install it.
        import trustme  # noqa: PLC0415

        authority = trustme.CA()
        certificate = authority.issue_cert(*(f"*.d{domain}.sim" for domain in range(self.spec.domains)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        self.authority_pem = authority.cert_pem.bytes()
        return context

    def statistics(self) -> LedgerStatistics:
        """Return requests, queries and bytes so far."""
        return self.ledger.statistics()

    @property
    def stalls(self) -> list[tuple[float, float]]:
        """The latest times, from and until (unix seconds), when this process did not run.

        An event within such a time was noted at its end.
        """
        self._note_run()
        return list(self._stalls)

    def run(self, on_ready: Callable[["Web"], None], control: Callable[["Web"], Any] | None = None) -> None:
        """Run until SIGINT or SIGTERM; `control`, if given, is started in the loop and may end it."""

        async def until_told() -> None:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            for one in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(one, stop.set)
            async with self:
                on_ready(self)
                others = [asyncio.ensure_future(work) for work in (self._flush_often(), self._note_stalls())]
                waits = [asyncio.ensure_future(stop.wait())]
                if control is not None:
                    waits.append(asyncio.ensure_future(control(self)))
                _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for task in (*pending, *others):
                    task.cancel()
                await asyncio.gather(*pending, *others, return_exceptions=True)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(until_told())
        self.ledger.close()

    async def _flush_often(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self.ledger.flush()

    async def _note_stalls(self) -> None:
        self._ran_at = self._now()
        while True:
            await asyncio.sleep(BEAT_S)
            self._note_run()

    def _note_run(self) -> None:
        now = self._now()
        if now - self._ran_at > 2 * BEAT_S:
            touches = self._stalls and self._ran_at - self._stalls[-1][1] <= 2 * BEAT_S
            begun = self._stalls.pop()[0] if touches else self._ran_at
            self._stalls.append((begun, now))
        self._ran_at = now


class WebReady(NamedTuple):
    """The line of JSON with which a web in its own process says that it can be crawled."""

    seeds: list[str]
    dns: str
    ports: list[int]
    authority: str


def serve(spec: WebSpec, on_ready: Callable[[Web], None], ledger: Path | None = None) -> None:
    """Run a web in this process until SIGINT or SIGTERM; `on_ready` may print `web.welcome()`."""
    Web(spec, Ledger(ledger)).run(on_ready)


def _listen(addresses: list[str], port: int) -> list[socket.socket]:
    """Return a listening socket on each address, all on one port; port 0 means one that is free on all.

    Raises OSError if there is no such port.
    """
    for attempt in range(PORT_TRIES):
        sockets: list[socket.socket] = []
        chosen = port
        try:
            for address in addresses:
                one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                sockets.append(one)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.setblocking(False)
                one.bind((address, chosen))
                one.listen(BACKLOG)
                chosen = one.getsockname()[1]
        except OSError:
            for one in sockets:
                one.close()
            if port or attempt == PORT_TRIES - 1:
                raise
        else:
            return sockets
    raise AssertionError("unreachable")
