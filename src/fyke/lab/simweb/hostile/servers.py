"""The hostile servers: one process that plays behaviours on real sockets and keeps a ledger.

A name server of our own resolves all names to addresses in 127.0.0.0/8, one for each host that is asked for. Three
sockets listen for all hosts; the address says which behaviour is meant. `Cast` names the hosts once, at the start.
`h7.NAME.hostile` and `NAME-7.hostile` behave as `NAME.hostile`.

`python -m fyke.lab.simweb.hostile.servers CAST` serves until its standard input closes. It answers a line there with
the ledger so far, as one line of JSON: [unix seconds, host, path] for each request.
"""

import asyncio
import json
import re
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from fyke.lab.simweb.dns import NXDOMAIN, answer, parse
from fyke.lab.simweb.hostile import answers, documents, endless, http2, resolving, rules
from fyke.lab.simweb.hostile.honest import sentence
from fyke.lab.simweb.hostile.script import NO_RULES, Behaviour, Many, Numbered, Pause, Reset, Script, Step, whole

BEHAVIOURS: Mapping[str, Behaviour] = {
    one.name: one for table in (answers, documents, rules, resolving, http2) for one in table.BEHAVIOURS
}
START, NORMAL = "start", "normal"
_WELL_BEHAVED = frozenset({START, NORMAL, *endless.KINDS})  # sites whose every answer is whole
STRANGERS = re.compile(r"name-(private|metadata|loopback|zero|broadcast|multicast|shared|reserved|six|alias-to-here)")
PIECE_BYTES = 1 << 16
MOST_NAMES = 1 << 16
_HEAD_S = 600.0


@dataclass(frozen=True)
class Cast:
    """The linked behaviours, hosts of each and pages per host; and the normal sites."""

    behaviours: list[str] = field(default_factory=list)
    hosts: int = 1
    pages: int = 1
    normal_hosts: int = 0
    normal_pages: int = 0
    pause_s: float = 0.0  # before each answer of a normal or honest site
    endless_kinds: list[str] = field(default_factory=list)  # a host of each; `honest` is beside them
    honest: int = 0
    hostile_port: int = 0  # the port at which another process plays the behaviours; 0: this process


def host_of(behaviour: str, number: int = 0) -> str:
    """Return the name of a host with this behaviour."""
    top = "stranger" if STRANGERS.match(behaviour) else "hostile"
    return f"{behaviour}-{number}.{top}" if number else f"{behaviour}.{top}"


def urls_of(cast: Cast, port: int) -> dict[str, str]:
    """Return one URL for each behaviour of `cast`."""
    return {name: next(_urls(cast, name, port)) for name in cast.behaviours}


def _urls(cast: Cast, name: str, port: int) -> Iterator[str]:
    one = BEHAVIOURS[name]
    for number in range(cast.hosts):
        for page in range(cast.pages):
            path = f"{one.path}{page}" if page else one.path
            beside = 2 if one.scheme == "https" else int(one.greets)
            yield f"{one.scheme}://{host_of(name, number)}:{port + beside}{path}"


def _hosts_of(cast: Cast) -> Iterator[str]:
    yield host_of(START)
    yield from (host_of(NORMAL, number) for number in range(cast.normal_hosts))
    yield from endless.hosts_of(cast.endless_kinds, cast.honest)
    yield from (host_of(name, number) for name in cast.behaviours for number in range(cast.hosts))


class HostileServers:
    """A player of a `cast`."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._addresses: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        self.ledger: list[tuple[float, str, str]] = []
        self.port = 0
        for host in _hosts_of(cast):  # so that all processes with this cast use the same addresses
            self.address(host)

    # --- names

    def address(self, host: str) -> str:
        """Return the address of `host`: its own, except that all hosts below a trap share one."""
        host = ".".join(host.split(".")[-2:])
        found = self._addresses.get(host)
        if found is None:
            n = len(self._addresses) % MOST_NAMES
            found = self._addresses[host] = f"127.{10 + n // 250 // 250}.{n // 250 % 250}.{1 + n % 250}"
            self._hosts[found] = host
        return found

    def resolve(self, packet: bytes) -> list[bytes]:
        """Return the datagrams that answer a question."""
        question = parse(packet)
        if question is None:
            return []
        behaviour = self._behaviour(question.name)
        if behaviour is None:
            return [answer(question, NXDOMAIN, [], negative=True)]
        return resolving.answers(behaviour.resolving, question, self.address(question.name))

    def _behaviour(self, host: str) -> Behaviour | None:
        label, _, top = ".".join(host.split(".")[-2:]).partition(".")
        if top not in ("hostile", "stranger"):
            return None
        name = re.sub(r"-\d+$", "", label) if label not in BEHAVIOURS else label
        if name in _WELL_BEHAVED:
            return Behaviour(name)
        return BEHAVIOURS.get(name)

    # --- connections

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, greets: bool) -> None:
        """Serve one connection: any number of requests at a well-behaved site, one at any other."""
        host = self._hosts.get(writer.get_extra_info("sockname")[0], "")
        behaviour = self._behaviour(host)
        try:
            if behaviour is None:
                return
            if greets:
                self._note(host, "")
                await self._play(writer, behaviour.answer, host, "")
                return
            while await self._answer(reader, writer, host, behaviour):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            writer.close()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection in HTTP/2, behind TLS."""
        host = self._hosts.get(writer.get_extra_info("sockname")[0], "")
        behaviour = self._behaviour(host) or Behaviour("")

        async def play(path: str, stream: bytes) -> bool:
            self._note(host, path)
            script = behaviour.robots if path == "/robots.txt" else behaviour.answer
            await self._play(writer, script, host, path, stream)
            return not isinstance(script[-1], Reset)

        try:
            await http2.talk(reader, writer, play)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, behaviour: Behaviour
    ) -> bool:
        line = await asyncio.wait_for(reader.readline(), _HEAD_S)
        if not line:
            return False
        words = line.decode("latin-1").split()
        if behaviour.scheme != "gopher":
            while field := (await reader.readline()).strip():
                if behaviour.name in endless.KINDS and field[:5].lower() == b"host:":
                    host = field[5:].decode("latin-1").strip().partition(":")[0]  # one of many hosts at this address
        path = words[1] if len(words) > 1 else line.decode("latin-1").strip()
        self._note(host, path)
        if behaviour.name in _WELL_BEHAVED:
            if behaviour.name in (NORMAL, "honest") and self._cast.pause_s:
                await asyncio.sleep(self._cast.pause_s)
            writer.write(self._good(host, path))
            await writer.drain()
            return True
        robots = path == "/robots.txt"
        # The target of a redirected robots.txt is redirected too.
        chained = behaviour.answer is not behaviour.robots and behaviour.name.startswith("rules-")
        script = behaviour.robots if robots or (chained and path.lstrip("/").isdigit()) else behaviour.answer
        await self._play(writer, script, host, path)
        return False

    def _note(self, host: str, path: str) -> None:
        self.ledger.append((time.time(), host, path[:100]))

    def _good(self, host: str, path: str) -> bytes:
        """Return the answer of a well-behaved site; the start page links to all others."""
        if path == "/robots.txt":
            return _kept_open(NO_RULES)
        if endless.kind_of(host):
            made = endless.answer(host, path)
            moved = [f"Location: {made.leads_to}"] if made.leads_to else []
            text = endless.html(made, host).replace("%PORT%", f":{self.port}")
            return _kept_open(whole(text.encode(), *moved, status="302 Found" if moved else "200 OK"))
        links: Iterable[str] = ()
        if host.startswith(START):
            links = self._all_urls()
        elif path == "/":
            links = (f"/{number}" for number in range(1, self._cast.normal_pages))
        text = f"<!doctype html><title>{host}{path}</title><p>{sentence(host, path)}</p>"
        body = text + "".join(f"<a href='{link}'>x</a>" for link in links)
        return _kept_open(whole(body.encode()))

    def _all_urls(self) -> Iterator[str]:
        for name in self._cast.behaviours:
            yield from _urls(self._cast, name, self._cast.hostile_port or self.port)
        for number in range(self._cast.normal_hosts):
            yield f"http://{host_of(NORMAL, number)}:{self.port}/"
        for host in endless.hosts_of(self._cast.endless_kinds, self._cast.honest):
            yield f"http://{host}:{self.port}/"

    async def _play(
        self, writer: asyncio.StreamWriter, script: Script, host: str, path: str, stream: bytes = b""
    ) -> None:
        digits = re.search(r"(\d{1,15})$", path)
        said = {
            b"%NEXT%": str(int(digits[1]) + 1 if digits else 1).encode(),
            b"%HOST%": host.encode(),
            b"%PORT%": str(self.port).encode(),
            b"%ID%": stream,
        }

        def filled(piece: bytes) -> bytes:
            for word, value in said.items() if b"%" in piece else ():
                piece = piece.replace(word, value)
            return piece

        for step in script:
            if isinstance(step, Reset):
                writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            else:
                await _step(writer, step, filled)


def _kept_open(answer: Script) -> bytes:
    """Return a whole `answer` after which others may follow."""
    (sent,) = answer
    assert isinstance(sent, bytes)
    return sent.replace(b"Connection: close\r\n", b"")


async def _step(writer: asyncio.StreamWriter, step: Step, filled: Any) -> None:
    match step:
        case bytes():
            writer.write(filled(step))
            await writer.drain()
        case Pause(seconds):
            await asyncio.sleep(seconds)
        case Many(piece, times, pause_s):
            together = 1 if pause_s else max(1, PIECE_BYTES // len(piece))
            whole_piece = filled(piece) * together
            while times > 0 and not writer.is_closing():
                if pause_s:
                    await asyncio.sleep(pause_s)
                writer.write(whole_piece[: len(whole_piece) // together * min(times, together)])
                await writer.drain()
                await asyncio.sleep(0)  # a task that never waits never learns that the connection is gone
                times -= together
        case Numbered(piece, times):
            piece = filled(piece)
            for begin in range(0, times, 1000):
                numbers = range(begin, min(begin + 1000, times))
                writer.write(b"".join(piece.replace(b"%N%", b"%d" % number) for number in numbers))
                await writer.drain()


class _HostileNames(asyncio.DatagramProtocol):
    def __init__(self, servers: HostileServers) -> None:
        self._servers = servers
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        for datagram in self._servers.resolve(data):
            self._transport.sendto(datagram, addr)


async def _run(cast: Cast) -> None:
    loop = asyncio.get_running_loop()
    servers = HostileServers(cast)
    names, _ = await loop.create_datagram_endpoint(lambda: _HostileNames(servers), ("127.0.0.1", 0))
    asks, greets, talks = await _listen(servers)
    servers.port = asks.sockets[0].getsockname()[1]
    ready = {"port": servers.port, "dns": "127.0.0.1:{}".format(names.get_extra_info("sockname")[1])}
    print(json.dumps(ready), flush=True)
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while await orders.readline():
        print(json.dumps(servers.ledger), flush=True)
    for server in (asks, greets, talks):
        server.close()


async def _listen(servers: HostileServers) -> list[asyncio.Server]:
    """Return servers at three ports in a row, on all addresses: for requests, for greetings, for HTTP/2."""
    kinds = (
        (partial(servers.serve, greets=False), None),
        (partial(servers.serve, greets=True), None),
        (servers.talk, http2.tls()),
    )
    while True:
        found: list[asyncio.Server] = []
        try:
            for talk, context in kinds:
                port = found[0].sockets[0].getsockname()[1] + len(found) if found else 0
                found.append(await asyncio.start_server(talk, "0.0.0.0", port, backlog=4096, ssl=context))
        except OSError:
            for server in found:
                server.close()
        else:
            return found


if __name__ == "__main__":
    asyncio.run(_run(Cast(**json.loads(sys.argv[1]))))
