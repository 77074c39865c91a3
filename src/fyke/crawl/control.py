"""A running crawl, watched and steered by another process: a Unix domain socket in `DIR/state/`.

The command line's crawl (`fyke.crawl.run`) opens the socket, and `fyke serve` connects to it. Both sides send JSON
objects, one a line. A client is sent how the crawl stands (`{"figures": ...}`) once a second, and may send orders
(`{"do": "block", "host": "example.org", "id": 1}`), each of which is answered (`{"id": 1, "ok": true, "said": ...}`).
The socket is the user's own (mode 0600): a process that may open it may stop the crawl by a signal too.

Added seeds and blocks are safe in `state/asked.json` before they are answered. Added seeds are seeds at each restart.
Of a *blocked* host nothing is requested: its URLs wait in a queue of their own, links to it join them, and unblocking
lets them go on. A crawl with nothing else left to do ends as `blocked`, and goes on when the block is taken back
(`fyke.archive.orders`).

Invariant: the socket costs nothing while nobody listens. A listener that does not read is dropped, never waited for.
"""

import asyncio
import heapq
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, Self

from fyke.archive.asked import AskedLater, host_named
from fyke.archive.figures import Figures, HostFigures
from fyke.archive.orders import SOCKET, bound
from fyke.archive.statistics import CrawlStatistics
from fyke.core.batches import concat
from fyke.core.clock import Clock
from fyke.core.errors import BadUrl, FykeError
from fyke.core.urls import Locator, host_keys
from fyke.crawl.outbox import Outbox
from fyke.crawl.post.alone import Post
from fyke.fetcher.fetcher import Fetcher
from fyke.fetcher.host import Host
from fyke.frontier.frontier import Frontier
from fyke.quantities import counted

EVERY_S = 1.0
SLOWEST = 20  # hosts told
MOST_UNREAD_BYTES = 1 << 20  # of a listener
MOST_LISTENERS = 32
ORDER_BYTES = 1 << 20
MOST_SEEDS = 10_000  # added at a time
ROWS = 8192


class Steering:
    """Orders to a running crawl; made by its agent, called on its loop between two steps."""

    def __init__(
        self,
        asked: AskedLater,
        seeds: list[Locator],
        outbox: Outbox,
        frontier: Frontier,
        fetcher: Fetcher,
        post: Post,
        clock: Clock,
    ) -> None:
        """`seeds` are all that the crawl has; added ones are put there too."""
        self._asked = asked
        self._seeds = seeds
        self._outbox = outbox
        self._frontier = frontier
        self._fetcher = fetcher
        self._post = post
        self._clock = clock

    def add_seeds(self, found: Iterable[Locator]) -> int:
        """Take `found` as seeds, as if asked for at the beginning; return how many were new."""
        known = {seed.url for seed in self._seeds}
        new = [at for at in dict.fromkeys(found) if at.url not in known]
        if new:
            self._asked.add_seeds(at.url.decode() for at in new)
            self._seeds += new
            self._outbox.forget_links()  # the scope grows: links refused before may be wanted now
            self._frontier.know_seeds(new)
            self._frontier.put_seeds(self._post.own_seeds(new))
        return len(new)

    def block(self, name: str) -> bool:
        """Request nothing more of the host `name`; return False if it was blocked before."""
        if not self._asked.block(name, blocked=True):
            return False
        key = host_keys(name)[0]
        self._frontier.block([key])
        self._fetcher.blocked.add(key)
        waiting = self._post.give_back(self._fetcher.recall(key), self._clock.now())
        self._frontier.take_back(concat([waiting, self._post.block(key)]))
        return True

    def unblock(self, name: str) -> int:
        """Go on with the host `name`; return how many of its URLs waited for that."""
        self._asked.block(name, blocked=False)
        key = host_keys(name)[0]
        self._fetcher.blocked.discard(key)
        self._post.unblock(key)
        return self._frontier.unblock([key])

    def figures(self, statistics: CrawlStatistics, now: float, *, held: bool) -> Figures:
        """Return how the crawl stands: its `statistics`, the workbench, the slowest hosts."""
        bench = self._fetcher.bench.statistics(now)
        waiting = (host for host in self._fetcher.bench if host.visits)
        slowest = heapq.nlargest(SLOWEST, waiting, key=lambda host: self._left_s(host, now))
        return Figures(
            at=now,
            held=held,
            statistics=statistics,
            bench=asdict(bench),
            slowest=[self._host(host, now) for host in slowest],
            blocked=sorted(self._asked.blocked),
        )

    def host(self, name: str, now: float) -> HostFigures | None:
        """Return how one host stands at the workbench, if it is there."""
        host = self._fetcher.bench.get(host_keys(name)[0])
        return None if host is None else self._host(host, now)

    def _left_s(self, host: Host, now: float) -> float:
        """Return how long the visits of `host` in memory take at its delay."""
        return max(0.0, host.rests_until - now) + len(host.visits) * self._fetcher.bench.delays.of_host(host, 0.0)

    def _host(self, host: Host, now: float) -> HostFigures:
        rest_s = max(0.0, host.rests_until - now)
        state = "awake"
        if host.name in self._asked.blocked:
            state = "blocked"
        elif host.busy:
            state = "under way"
        elif host.parked:
            state = "awaits name or rules"
        elif rest_s:
            state = "resting"
        return HostFigures(
            host=host.name,
            state=state,
            waiting=len(host.visits),
            more_on_disk=self._frontier.overflowed(host.key),
            rest_s=round(rest_s, 3),
            delay_s=round(self._fetcher.bench.delays.of_host(host, 0.0), 3),
            left_s=round(self._left_s(host, now), 3),
            crawl_delay_s=host.crawl_delay_s or 0.0,
            failures=host.failures,
            budget=host.budget,
            address=host.address.text if host.address else "",
        )


class Steered(Protocol):
    """A crawl that is controlled: an agent, or the supervisor of several."""

    def hold(self, held: bool) -> None: ...

    def stop(self) -> None: ...

    def add_seeds(self, urls: Iterable[str]) -> int: ...

    def block(self, name: str, blocked: bool) -> str: ...

    def figures(self) -> Figures: ...

    def host_figures(self, name: str) -> HostFigures | None: ...


class Control:
    """The socket of the crawl that `agent` runs, in the folder `state`. Use as an async context manager."""

    def __init__(self, agent: Steered, state: Path) -> None:
        self._agent = agent
        self._state = state
        self._listeners: set[asyncio.StreamWriter] = set()
        self._telling: asyncio.Task[None] | None = None
        self._server: asyncio.AbstractServer | None = None
        self._orders: dict[str, Callable[[dict[str, Any]], Any]] = {
            "pause": lambda order: self._hold(True),
            "resume": lambda order: self._hold(False),
            "stop": self._stop,
            "seeds": self._seeds,
            "block": lambda order: self._agent.block(host_named(str(order.get("host", ""))), True),
            "unblock": lambda order: self._agent.block(host_named(str(order.get("host", ""))), False),
            "host": self._host,
        }

    def __repr__(self) -> str:
        return f"Control({str(self._state)!r}, {len(self._listeners)} listening)"

    async def __aenter__(self) -> Self:
        with suppress(OSError):  # a crawl runs without if the file system knows no sockets
            self._server = await asyncio.start_unix_server(self._listen, sock=bound(self._state), limit=ORDER_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            (self._state / SOCKET).unlink(missing_ok=True)
        if self._telling is not None:
            self._telling.cancel()
        for writer in list(self._listeners):
            writer.close()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        if len(self._listeners) >= MOST_LISTENERS:
            writer.close()
            return
        self._listeners.add(writer)
        try:
            self._send(writer, self._figures())
            if self._telling is None or self._telling.done():
                self._telling = asyncio.get_running_loop().create_task(self._tell())
            with suppress(OSError, ValueError, asyncio.IncompleteReadError):  # gone, or an order without end
                while line := await reader.readline():
                    self._send(writer, _line(self._obey(line)))
        finally:
            self._listeners.discard(writer)
            writer.close()

    async def _tell(self) -> None:
        """Tell all listeners once a second, while there are any."""
        while self._listeners:
            await asyncio.sleep(EVERY_S)
            line = self._figures() if self._listeners else b""
            for writer in list(self._listeners):
                self._send(writer, line)

    def _figures(self) -> bytes:
        return _line({"figures": self._agent.figures().as_dict()})

    def _send(self, writer: asyncio.StreamWriter, line: bytes) -> None:
        transport = writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self._listeners.discard(writer)
            transport.abort()
            return
        writer.write(line)

    def _obey(self, line: bytes) -> dict[str, Any]:
        """Do what the order in `line` says; return the answer."""
        number = None
        try:
            order = json.loads(line)
            number = order.get("id")
            act = self._orders[order["do"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {"id": number, "ok": False, "said": "unknown order"}
        try:
            return {"id": number, "ok": True, "said": act(order)}
        except FykeError as error:
            return {"id": number, "ok": False, "said": str(error)}

    def _hold(self, held: bool) -> str:
        self._agent.hold(held)
        return "paused: no new request starts" if held else "going on"

    def _stop(self, order: dict[str, Any]) -> str:
        self._agent.stop()
        return "stopping; the same command resumes the crawl"

    def _host(self, order: dict[str, Any]) -> dict[str, Any] | None:
        found = self._agent.host_figures(host_named(str(order.get("host", ""))))
        return None if found is None else found._asdict()

    def _seeds(self, order: dict[str, Any]) -> str:
        given = order.get("urls")
        urls = list(map(str, given)) if isinstance(given, list) else []
        if not 0 < len(urls) <= MOST_SEEDS:
            raise BadUrl(f"{len(urls):,} seeds: give between 1 and {MOST_SEEDS:,}")
        return f"{counted(self._agent.add_seeds(urls), 'seed')} added"


def _line(what: dict[str, Any]) -> bytes:
    return json.dumps(what).encode() + b"\n"
