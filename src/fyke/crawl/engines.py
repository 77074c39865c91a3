"""What the loop moves messages between: the frontier, a fetcher, a worker, and who else a crawl has.

Fetcher and worker are protocols, because the simulator has virtual ones and the loop is the same.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from fyke.core.pace import Pace
from fyke.core.slices import Steps
from fyke.crawl.outbox import Outbox
from fyke.crawl.remote import Remote
from fyke.crawl.revisits import Revisits
from fyke.crawl.rewriting import Rewriting
from fyke.frontier.frontier import Frontier


class FetcherEngine(Protocol):
    """An engine that fetches: `fyke.fetcher.fetcher`, or a virtual one."""

    @property
    def rules_room(self) -> int: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def ended(self) -> int: ...

    @property
    def idle(self) -> bool: ...

    @property
    def has_its_pages(self) -> bool: ...

    @property
    def unreached(self) -> bool: ...

    def put(self, visits: pa.RecordBatch) -> None: ...

    def refuse(self, visits: pa.RecordBatch) -> None: ...

    def recall(self, host: int) -> pa.RecordBatch: ...

    def take(self, *, exchanges: bool = True) -> Any: ...

    def give_back(self, pages: int) -> None: ...

    def pump(self) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...


class Worker(Protocol):
    """A worker that makes messages of what the fetcher brought: `fyke.crawl.gathering`, or a virtual one."""

    @property
    def answered(self) -> bool: ...

    @property
    def body_bytes(self) -> int: ...

    @property
    def waiting(self) -> int: ...

    @property
    def behind(self) -> bool: ...

    @property
    def crowded(self) -> bool: ...

    def gather(self, fetched: Any, outbox: Outbox) -> Steps[int]: ...


@dataclass(frozen=True, slots=True)
class Engines:
    """The parts between which the loop moves messages."""

    frontier: Frontier
    fetcher: FetcherEngine
    gathering: Worker
    outbox: Outbox
    remote: Remote | None = None  # if there are other agents
    revisits: Revisits | None = None  # if the crawl does not end
    rewriting: Rewriting | None = None  # if links are rewritten
    pace: Pace | None = None  # that the fetcher keeps; it is told how long the loop takes
