"""`fyke crawl --metrics`: the running crawl's figures for Prometheus, at an address of its own.

It answers `GET /metrics` alone, in the crawl's loop. For more, or a browser, start `fyke serve` beside it. Invariant: a
connection, whatever is sent over it, costs a few kilobytes and one look at the figures.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from fyke.archive.figures import Figures
from fyke.core.errors import ConfigurationError
from fyke.metrics import MEDIA_TYPE, CrawlFigures, exposition

HOST = "127.0.0.1"
PATIENCE_S = 10.0
REQUEST_BYTES = 8 << 10
MOST_CONNECTIONS = 16


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `9464`, `0.0.0.0:9464` or `[::1]:9464`. Raises ConfigurationError."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16) or (colon and not host):
        raise ConfigurationError(f"--metrics {text}: not an address; write a port, or HOST:PORT")
    return host.strip("[]") or HOST, int(port)


class Exporter:
    """Answers at `address` for the crawl called `name`. Use as an async context manager.

    `figures` is as `fyke.crawl.control.Steered.figures`.
    """

    def __init__(self, address: str, name: str, figures: Callable[[], Figures]) -> None:
        self._host, self._port = address_of(address)
        self._name = name
        self._figures = figures
        self._connections = 0

    def __repr__(self) -> str:
        return f"Exporter({self._host}, {self._port}, {self._connections} connections)"

    async def __aenter__(self) -> Self:
        """Listen. Raises ConfigurationError if that is not possible."""
        try:
            self._server = await asyncio.start_server(self._answer, self._host, self._port, limit=REQUEST_BYTES)
        except OSError as error:
            raise ConfigurationError(
                f"--metrics: cannot listen on {self._host}, port {self._port} ({error.strerror}): choose another"
            ) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and end the connection."""
        self._connections += 1
        try:
            if self._connections <= MOST_CONNECTIONS:
                async with asyncio.timeout(PATIENCE_S):
                    writer.write(self._page(await reader.readuntil(b"\r\n\r\n")))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # gone, slow, or no request
        finally:
            self._connections -= 1
            with suppress(OSError):
                writer.close()

    def _page(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method != b"GET" or path != b"/metrics":
            return _response("404 Not Found", "text/plain", b"GET /metrics\n")
        now = self._figures()
        told = CrawlFigures(self._name, True, now.held, now.at, now.statistics)
        return _response("200 OK", MEDIA_TYPE, exposition([told]))


def _response(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
