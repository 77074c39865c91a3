"""The processes of a crawl with several agents: started, told what to do, heard, and started again when they die.

The supervisor has them, and says what the crawl does; here is only who lives. Each process is forked by the fork server
(`fyke.crawl.forks`) with a socket, over which both sides send JSON objects, one a line (`fyke.crawl.member`).

Invariant: a process that dies is started again from its agents' checkpoints, unless it is to end. If processes die
`MOST_DEATHS` times and nothing goes forward in between, that is a failure.
"""

import asyncio
import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from fyke.archive.directory import CrawlDirectory
from fyke.archive.statistics import death_key
from fyke.core import errors
from fyke.core.clock import Clock
from fyke.crawl.forks import ForkServer, how_ended
from fyke.crawl.member import LINE_BYTES, Orders

MOST_DEATHS = 20  # of processes with no checkpoint in between, beyond which the crawl gives up
AGAIN_S = 0.2  # before a dead process is started again
SILENT_S = 10.0  # after which a process that says nothing is killed, once the crawl is to end


@dataclass(eq=False)
class Process:
    """One process, in its present life."""

    agents: list[int]
    deaths: Counter[str]  # as in `CrawlStatistics`
    writer: asyncio.StreamWriter | None = None
    hearing: "asyncio.Task[None] | None" = None
    begun: bool = False
    ended: bool = False
    number: int = 0  # the system's number of the process
    heard_at: float = 0.0  # when it last said something, by the monotonic clock
    said: list[dict[str, Any]] = field(default_factory=list)  # and nobody took yet


class Processes:
    """The processes of the agents of the crawl in `directory`. Use as an async context manager."""

    def __init__(
        self, directory: CrawlDirectory, processes: Sequence[Process], orders: Orders, forks: ForkServer, clock: Clock
    ) -> None:
        """`orders` are for all agents."""
        self._directory = directory
        self._processes = processes
        self._orders = orders
        self._forks = forks
        self._clock = clock
        self._deaths = 0  # since something went forward
        self.failure: errors.FykeError | None = None  # what the crawl ends with
        self.news = asyncio.Event()  # one said something, or there is a failure

    def __repr__(self) -> str:
        return f"Processes({[process.agents for process in self._processes]})"

    def __len__(self) -> int:
        return len(self._processes)

    async def __aenter__(self) -> "Processes":
        for process in self._processes:
            await self._start(process)
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            process.ended = True
            if process.writer is not None and not process.writer.transport.is_closing():
                process.writer.write_eof()  # the members end at once
        hearing = [process.hearing for process in self._processes if process.hearing is not None]
        if hearing:
            await asyncio.wait(hearing)

    async def _start(self, process: Process) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            orders = replace(self._orders, deaths=dict(process.deaths)).written()
            self._forks.start(theirs, self._directory.path, process.agents, orders)
        process.begun = process.ended = False
        reader, process.writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES)
        process.hearing = asyncio.create_task(self._hear(process, reader))

    async def _hear(self, process: Process, reader: asyncio.StreamReader) -> None:
        """Take what one process says, until it is gone; then start another in its place."""
        status: int | None = None
        with suppress(ConnectionError):
            while line := await reader.readline():
                with suppress(json.JSONDecodeError):  # half a line, from a process that died
                    said = json.loads(line)
                    status = said.get("exit", status)
                    self._heard(process, said)
        assert process.writer is not None
        process.begun = False
        process.writer.close()
        if process.ended or self.failure is not None:
            return
        try:
            self._note_death(process, how_ended(status))
        except errors.FykeError as error:
            self.failure = error
            self.news.set()
            return
        await asyncio.sleep(AGAIN_S)
        if not process.ended:
            await self._start(process)

    def _heard(self, process: Process, said: dict[str, Any]) -> None:
        process.heard_at = time.monotonic()
        if "begun" in said:
            process.begun, process.number = True, said["process"]
        elif "error" in said:
            kind: type[errors.FykeError] = getattr(errors, said["kind"], errors.AgentFailed)
            self.failure = self.failure or kind.__new__(kind, said["error"])  # some have another constructor
            process.ended = True
        elif "ended" in said:
            process.ended = True
        process.said.append(said)
        self.news.set()

    def _note_death(self, process: Process, how: str) -> None:
        """Note that a process died, and `how`. Raises AgentFailed if that happens again and again, or DiskFull."""
        self._directory.log(self._clock.now(), "died", agents=process.agents, how=how)
        self._deaths += 1
        process.deaths[death_key(process.agents, how)] += 1
        if self._deaths > MOST_DEATHS:
            raise errors.AgentFailed(
                f"the process of agent {process.agents[0]} ended {MOST_DEATHS} times without a checkpoint, at last by"
                f" {how}: see the system's log for the cause (too little memory?); fyke crawl --into"
                f" {self._directory.path} goes on from the last checkpoint"
            )

    # --- for the supervisor

    @property
    def all_ended(self) -> bool:
        """True if no process goes on."""
        return all(process.ended for process in self._processes)

    @property
    def all_begun(self) -> bool:
        """True if all processes have opened their agents."""
        return all(process.begun for process in self._processes)

    @property
    def deaths(self) -> Counter[str]:
        """How often processes died, as in `CrawlStatistics`."""
        return sum((process.deaths for process in self._processes), Counter())

    def of(self, agent: int) -> Process:
        """Return the process of `agent`."""
        return next(process for process in self._processes if agent in process.agents)

    def went_forward(self) -> None:
        """Note that there is a new checkpoint: deaths are counted anew."""
        self._deaths = 0

    def take(self) -> list[tuple[Process, dict[str, Any]]]:
        """Take what was said since the last call. Raises the failure to start a process again."""
        said = []
        for process in self._processes:
            if process.hearing is not None and process.hearing.done():
                process.hearing.result()
            said += [(process, one) for one in process.said]
            process.said.clear()
        return said

    def tell(self, process: Process, **order: Any) -> None:
        """Have `process` carry out `order`, if it can hear."""
        writer = process.writer
        if writer is not None and process.begun and not (process.ended or writer.transport.is_closing()):
            writer.write(json.dumps(order).encode() + b"\n")

    def tell_all(self, **order: Any) -> None:
        for process in self._processes:
            self.tell(process, **order)

    def kill_silent(self, since: float) -> None:
        """Kill processes that are to end `since` then (by the monotonic clock) and stand still."""
        now = time.monotonic()
        for process in self._processes:
            if process.begun and not process.ended and now - max(process.heard_at, since) > SILENT_S:
                process.begun = False
                with suppress(ProcessLookupError):
                    os.kill(process.number, signal.SIGKILL)
