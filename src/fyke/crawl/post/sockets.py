"""Envelopes between processes of one machine: each agent listens at a Unix socket, usually in the crawl's `state`.

A transport as the office wants it: `send` carries a frame or loses it, and never waits. Each agent writes to the
connections it opened, and reads from those that others opened. Invariant: a frame arrives whole or not at all. Bounded:
memory holds `MOST_BYTES` for each agent, however slow it is.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fyke.archive.orders import bound, near
from fyke.core.errors import DirectoryError
from fyke.crawl.post.columns import FRAME, envelope_opened
from fyke.crawl.post.letters import Envelope
from fyke.disk.scratch import scratch

MOST_BYTES = 32 << 20  # of frames that wait for one agent
AGAIN_S = 0.1  # between attempts to reach an agent


def name_of(agent: int) -> str:
    """Return the name of an agent's socket, in the folder `state`."""
    return f"agent-{agent:04d}.sock"


@contextmanager
def folder_for_sockets(state: Path) -> Iterator[Path]:
    """Give the folder for the agents' sockets while the block runs: `state`, or a temporary one if the file system
    there knows no sockets, as exFAT."""
    try:
        bound(state, name_of(0)).close()
    except OSError:
        with scratch("fyke-sockets-") as place:
            yield place
    else:
        yield state


class Sockets:
    """The transport of agent `me`. Use as an async context manager, after `deliver` was set."""

    def __init__(self, me: int, folder: Path) -> None:
        self._me = me
        self._folder = folder
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._reaching: dict[int, asyncio.Task[None]] = {}
        self._readers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.AbstractServer | None = None
        self.deliver: Callable[[Envelope], None] | None = None  # takes each envelope that comes

    def __repr__(self) -> str:
        return f"Sockets(agent {self._me}, {len(self._writers)} reached)"

    async def __aenter__(self) -> "Sockets":
        """Listen. Raises DirectoryError where no socket can be made: some file systems know none."""
        try:
            listening = bound(self._folder, name_of(self._me))
        except OSError as error:
            raise DirectoryError(
                f"cannot make a socket in {self._folder}: {error.strerror}; several agents need one each: set TMPDIR to"
                " a folder where that works"
            ) from error
        self._server = await asyncio.start_unix_server(self._read, sock=listening)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._reaching.values():
            task.cancel()
        if self._server is not None:
            self._server.close()
        for writer in (*self._writers.values(), *self._readers):
            writer.transport.abort()
        (self._folder / name_of(self._me)).unlink(missing_ok=True)

    def send(self, to: int, frame: bytes) -> None:
        """Carry `frame` to the agent `to`; lose it if that agent is not there, or far behind."""
        writer = self._writers.get(to)
        if writer is None or writer.transport.is_closing():
            if to not in self._reaching:
                self._reaching[to] = asyncio.get_running_loop().create_task(self._reach(to))
        elif writer.transport.get_write_buffer_size() + len(frame) <= MOST_BYTES:
            writer.write(frame)

    async def _reach(self, to: int) -> None:
        try:
            with near(self._folder, name_of(to)) as path:
                _, self._writers[to] = await asyncio.open_unix_connection(path)
        except OSError:
            await asyncio.sleep(AGAIN_S)
        finally:
            del self._reaching[to]

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one agent's frames, until it ends."""
        self._readers.add(writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    head_bytes, body_bytes = FRAME.unpack(await reader.readexactly(FRAME.size))
                    head, body = await reader.readexactly(head_bytes), await reader.readexactly(body_bytes)
                    if self.deliver is not None:
                        self.deliver(envelope_opened(head, body))
        finally:
            self._readers.discard(writer)
            writer.close()
