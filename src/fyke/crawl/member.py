"""A process that runs agents of a crawl with several.

It is forked (`fyke.crawl.forks`) with a socket to the supervisor (`fyke.crawl.supervisor`), which gives it `Orders` and
asks how its agents stand; both sides write JSON objects, one a line. When the supervisor is gone, this process ends at
once, because the last checkpoint holds.
"""

import asyncio
import json
import os
import socket
import traceback
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from fyke.archive.directory import CrawlDirectory
from fyke.archive.division import Division, division
from fyke.core.config import Config
from fyke.core.errors import AgentFailed, FykeError
from fyke.crawl.agent import Agent
from fyke.crawl.loop import Ending
from fyke.crawl.passes import Pass
from fyke.crawl.post.seat import Seat
from fyke.crawl.post.sockets import Sockets
from fyke.crawl.signals import stop_signals

LINE_BYTES = 64 << 20


def share(config: Config, of: Division) -> Config:
    """Return `config` for one agent: its memory, visits and connections are for the whole crawl."""
    frontier, fetch = config.frontier, config.fetch
    shards, agents = of.shards, of.agents
    return config.model_copy(
        update={
            "frontier": frontier.model_copy(
                update={
                    "window_visits": max(2, frontier.window_visits // shards),
                    "table_memory_bytes": max(1, frontier.table_memory_bytes // shards),
                }
            ),
            "fetch": fetch.model_copy(update={"connections": max(1, fetch.connections // agents)}),
            "crawl": config.crawl.model_copy(update={"for_s": 0}),
        }
    )


class Member:
    """The agents of one process, which obey and answer the supervisor through it."""

    def __init__(self, agents: dict[int, Agent], writer: asyncio.StreamWriter) -> None:
        self._agents = agents
        self._writer = writer
        self._orders: dict[str, Callable[[dict[str, Any]], None]] = {
            "stand": self._stand,
            "stop": lambda order: self._each(lambda agent: agent.stop(Ending(order["ending"]))),
            "checkpoint": lambda order: self._each(Agent.take_checkpoint),
            "descend": lambda order: self._each(lambda agent: agent.descend(int(order["level"]))),
            "hold": lambda order: self._each(lambda agent: agent.hold(bool(order["held"]))),
            "seeds": lambda order: self._each(lambda agent: agent.add_seeds(order["urls"])),
            "block": lambda order: self._each(lambda agent: agent.block(order["host"], order["blocked"])),
            "allow": lambda order: self._agents[order["agent"]].allow(int(order["pages"])),
            "recall": self._recall,
            "begin": lambda order: self.may_begin.set(),
        }
        self.may_begin = asyncio.Event()  # all agents of the crawl were opened

    def __repr__(self) -> str:
        return f"Member({list(self._agents)})"

    def _each(self, do: Callable[[Agent], Any]) -> None:
        for agent in self._agents.values():
            do(agent)

    async def obey(self, reader: asyncio.StreamReader) -> None:
        """Obey the supervisor until it is gone."""
        with suppress(ConnectionError):
            while line := await reader.readline():
                order = json.loads(line)
                self._orders[order["do"]](order)
        os._exit(1)

    def tell(self, **what: Any) -> None:
        """Send the supervisor a line."""
        self._writer.write(json.dumps(what).encode() + b"\n")

    async def end(self, **what: Any) -> None:
        """Send the supervisor the last line; it may be gone, because another agent failed."""
        with suppress(ConnectionError, RuntimeError):  # uvloop raises the latter for a closed transport
            self.tell(**what)
            await self._writer.drain()

    def _stand(self, order: dict[str, Any]) -> None:
        agents = self._agents.items() if order["figures"] else ()
        figures = {number: agent.figures().as_dict() for number, agent in agents}
        for of_another in [*figures.values()][1:]:
            of_another["statistics"]["memory_bytes"] = 0  # counted for the first agent
        stands = {number: asdict(agent.stand()) for number, agent in self._agents.items()}
        self.tell(round=order["round"], stands=stands, figures=figures)

    def _recall(self, order: dict[str, Any]) -> None:
        number = order["agent"]
        self.tell(agent=number, recalled=self._agents[number].recall_pages())


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders that the agents of a process are started with."""

    sockets: str  # the folder for those between agents
    moved: bool  # whether addresses went from agent to agent since the last run
    clock: Mapping[str, Any] = field(default_factory=dict)  # as noted by the clock that all agents go on by
    asked_pass: Pass | None = None  # a pass over the crawl
    deaths: Mapping[str, int] = field(default_factory=dict)  # of this process, told of its first agent

    def written(self) -> str:
        """Return the orders as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, written: str) -> "Orders":
        """Return the orders that `written` gave."""
        told = json.loads(written)
        return cls(**{**told, "asked_pass": None if told["asked_pass"] is None else Pass(**told["asked_pass"])})


async def run(directory: CrawlDirectory, control: socket.socket, numbers: list[int], orders: Orders) -> int:
    """Run the agents with these numbers to the end of the crawl; return the exit status."""
    reader, writer = await asyncio.open_connection(sock=control, limit=LINE_BYTES)
    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, lambda: None)  # the supervisor says when
    told = Member({}, writer)
    try:
        config, divided = directory.config(), division(directory.state)
        async with AsyncExitStack() as stack:
            agents = {}
            for me in numbers:
                sockets = Sockets(me, Path(orders.sockets))
                seat = Seat(
                    me=me,
                    division=divided,
                    transport=sockets,
                    most_rules=config.fetch.connections,
                    moved=orders.moved,
                    deaths=orders.deaths if me == numbers[0] else {},
                    clock=orders.clock,
                )
                own = CrawlDirectory(directory.path, me)
                agent = Agent(own, share(config, divided), seat=seat, asked_pass=orders.asked_pass)
                agents[me] = await stack.enter_async_context(agent)
                sockets.deliver = agent.put
                await stack.enter_async_context(sockets)
            told = Member(agents, writer)
            await _run_opened(agents, told, reader)
        await told.end(ended=True)
    except FykeError as error:
        await told.end(error=str(error), kind=type(error).__name__)
        return error.exit_status
    except Exception as error:  # noqa: BLE001 - a fault of our own: a file has all of it, and the person one line
        await told.end(error=_fault(directory, numbers, error), kind=AgentFailed.__name__)
        return AgentFailed.exit_status
    return 0


async def _run_opened(agents: dict[int, Agent], told: Member, reader: asyncio.StreamReader) -> None:
    """Run `agents`, as soon as all agents of the crawl were opened."""
    obeying = asyncio.create_task(told.obey(reader))
    told.tell(begun=list(agents), process=os.getpid())
    waiting = asyncio.create_task(told.may_begin.wait())
    await _first_failure([waiting, obeying], [waiting])
    running = [asyncio.create_task(agent.run()) for agent in agents.values()]
    await _first_failure([*running, obeying], running)
    obeying.cancel()


def _fault(directory: CrawlDirectory, numbers: list[int], error: Exception) -> str:
    """Write down how the agents failed; return what to tell of it."""
    path = directory.logs / f"fault-{numbers[0]}.txt"
    with path.open("a", encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    what = f"{type(error).__name__}: {error}"
    return (
        f"an agent failed ({what}); this is a fault of Fyke: please report it, with {path}; fyke crawl --into"
        f" {directory.path} goes on from the last checkpoint"
    )


async def _first_failure(watched: list["asyncio.Task[Any]"], until: list["asyncio.Task[Any]"]) -> None:
    """Wait until all of `until` are done, or one of `watched` failed; then raise what it failed with."""
    while not all(task.done() for task in until):
        done, _ = await asyncio.wait([task for task in watched if not task.done()], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


def member(directory: Path, control: socket.socket, numbers: list[int], orders: str) -> int:
    """Run a process of the agents with these numbers, with `orders` as `written` gave them; return its exit status."""
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)  # never closed: the process ends with it
    return runner.run(run(CrawlDirectory(directory), control, numbers, Orders.read(orders)))
