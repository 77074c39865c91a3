"""`fyke serve`: from directories to a server that a person can open.

The command line calls it. The port is taken before anything is printed, so that what is printed is true. Invariant: a
mistake (a port in use, no such directory) is one line, before anything listens. Requests of strangers print nothing,
except the first `MOST_FAULTS` faults of our own that they find.
"""

import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn

from fyke.core.errors import ConfigurationError
from fyke.serve.app import application
from fyke.serve.guests import Guest
from fyke.serve.security import Token
from fyke.serve.shelf import Shelf

MOST_FAULTS = 20  # of our own, printed with tracebacks; a stranger may repeat the request without end
GRACE_S = 1  # for answers under way when it ends; an open dashboard never ends by itself


@dataclass(frozen=True, slots=True)
class Serving:
    """Addresses and token of the server, for people."""

    url: str
    dashboard: str  # with the token in its fragment, which no browser sends anywhere
    token: str


def serve(folders: Sequence[Path], host: str, port: int, token: str | None, ready: Callable[[Serving], None]) -> None:
    """Serve the crawls in `folders` until interrupted. Raises DirectoryError, ConfigurationError."""
    word = Token(token)
    shelf = Shelf(folders)
    listening = listen(host, port)
    app = application(shelf, word, host)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="on",
        http=Guest,
    )
    few = FirstFaults()
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(few)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}/"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn ends by it and raises it again, which is no failure
    serving = Serving(url, f"{url}crawl#token={word.text}", word.text)
    with listening:
        server = _AnnouncedServer(config, shelf, lambda: ready(serving))
        server.run(sockets=[listening])
    if server.unable is not None:
        raise server.unable


class FirstFaults(logging.Filter):
    """Filter that lets the first records pass, and says at the last that no more are said."""

    def __init__(self) -> None:
        super().__init__()
        self._left = MOST_FAULTS

    def filter(self, record: logging.LogRecord) -> bool:
        self._left -= 1
        if self._left == 0:
            record.msg, record.args, record.exc_info = "there were more faults; they are no longer shown", (), None
        return self._left >= 0


class _AnnouncedServer(uvicorn.Server):
    """A server that says when it serves. When it is interrupted, it ends the streams of dashboards instead of waiting
    for them."""

    def __init__(self, config: uvicorn.Config, shelf: Shelf, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._shelf = shelf
        self._ready = ready
        self.unable: Exception | None = None  # why it did not begin

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            for crawl in self._shelf:
                await crawl.watch.look()  # uvicorn would log a traceback of a failure while the application begins
            await super().startup(sockets)
            if self.started:
                self._ready()
        except Exception as error:  # noqa: BLE001 - raised again, once the server has ended in order
            self.unable, self.should_exit = error, True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        for crawl in self._shelf:
            crawl.watch.end()
        super().handle_exit(sig, frame)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises ConfigurationError."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (socket.gaierror, UnicodeError):  # UnicodeError for text that is no name
        raise ConfigurationError(f"--host {host}: no such address; write 127.0.0.1 or 0.0.0.0") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(f"port {port} of {host} is in use: choose another with --port") from None
        raise ConfigurationError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
