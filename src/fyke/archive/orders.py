"""A crawl asked and told what to do from another process: by its control socket while it runs, otherwise by its files.

Used by `fyke status`, `fyke block`, `fyke unblock` and `fyke serve`. A block holds for a running crawl and for later
runs: it is in `state/asked.json` before `block` returns. The crawl writes that file, or `block` does, under the crawl's
lock, if none runs.
"""

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fyke.archive.asked import AskedLater, host_named
from fyke.archive.directory import CrawlDirectory
from fyke.archive.inspect import CrawlStatus, status_of
from fyke.archive.lost import require_asked, require_state
from fyke.archive.statistics import CrawlStatistics
from fyke.core.errors import BadUrl, DirectoryInUse
from fyke.disk.checkpoint import require_whole

SOCKET = "control.sock"
FIGURES_BYTES = 64 << 20  # of one line that a crawl sends
PATIENCE_S = 10.0  # for an answer
AGAIN_S = 0.1


@asynccontextmanager
async def connected(state: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to the socket in `state`, and close the connection after the block. Raises OSError if no crawl listens
    there."""
    with near(state) as path:
        reader, writer = await asyncio.open_unix_connection(path, limit=FIGURES_BYTES)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@contextmanager
def near(folder: Path, name: str = SOCKET) -> Iterator[str]:
    """Give a short path of the socket in `folder`, valid within the block: the system takes 107 bytes at most."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def bound(folder: Path, name: str = SOCKET) -> socket.socket:
    """Return a socket bound in `folder`, open to this user alone, after removing one that a killed process left.

    Raises OSError.
    """
    path = folder / name
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    try:
        with near(folder, name) as short:
            listening.bind(short)
        path.chmod(0o600)  # nobody can connect before it listens
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


async def current_status(directory: CrawlDirectory) -> CrawlStatus:
    """Return how the crawl in `directory` stands: by its own figures if it runs and answers, otherwise by its
    checkpoint.

    Raises NotACrawl; StateDamaged if a crawl could not go on from there.
    """
    status = status_of(directory)
    if status.state != "running":
        require_state(directory)
        for part in directory.parts:
            require_whole(part.shard)
    else:
        with suppress(OSError, TimeoutError, ValueError, LookupError, TypeError):
            async with asyncio.timeout(PATIENCE_S), connected(directory.state) as (reader, _):
                figures = json.loads(await reader.readline())["figures"]
            status = replace(status, statistics=CrawlStatistics.read(figures["statistics"]))
    return status


async def ordered(state: Path, what: str, **more: Any) -> tuple[bool, Any]:
    """Have the crawl of the folder `state` do `what`; return whether it did, and its answer.

    Raises OSError if none listens, TimeoutError or ValueError if it does not answer as a crawl does.
    """
    order = {"do": what, "id": time.monotonic_ns(), **more}
    async with asyncio.timeout(PATIENCE_S), connected(state) as (reader, writer):
        writer.write(json.dumps(order).encode() + b"\n")
        await writer.drain()
        while line := await reader.readline():
            answer = json.loads(line)
            if answer.get("id") == order["id"]:
                return bool(answer["ok"]), answer["said"]
    raise OSError("the crawl ended before it answered")


async def block(directory: CrawlDirectory, host: str, blocked: bool) -> str:
    """Block or unblock `host`, a name or a URL, whether the crawl runs or not; return a sentence about what was done.

    Raises BadUrl, NotACrawl, and DirectoryInUse if a crawl has the folder and does not listen.
    """
    name = host_named(host)
    directory.config()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with directory.closed_to_crawls():
                return _written(directory, name, blocked)
        except DirectoryInUse:
            with suppress(OSError, TimeoutError, ValueError):  # it is beginning or ending
                done, said = await ordered(directory.state, "block" if blocked else "unblock", host=name)
                if not done:
                    raise BadUrl(said) from None
                return str(said)
            if time.monotonic() > deadline:
                raise DirectoryInUse(
                    f"{directory.path}: the crawl there does not answer; wait for it or stop it, then run the same"
                    " command again"
                ) from None
        await asyncio.sleep(AGAIN_S)


def _written(directory: CrawlDirectory, name: str, blocked: bool) -> str:
    """Block or unblock in the file itself: no crawl runs, and none can begin meanwhile."""
    require_asked(directory)
    if not AskedLater(directory.state).block(name, blocked):
        return f"{name} was {'already blocked' if blocked else 'not blocked'}"
    if blocked:
        return f"{name} is blocked: nothing is requested from it, and its URLs wait"
    return f"{name} is no longer blocked; fyke crawl --into {directory.path} goes on with its URLs"
