"""The protocol of a post, as the loop uses it, and the post of a crawl with one agent.

`fyke.crawl.post.office` has the post of an agent among others.
"""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from fyke.core.batches import EMPTY
from fyke.core.messages import Links, Outcomes
from fyke.core.urls import Locator


class Post(Protocol):
    """Takes rows for other agents out of what the loop moves."""

    @property
    def lent(self) -> bool: ...

    @property
    def quiet(self) -> bool: ...

    @property
    def ready(self) -> bool: ...

    def rules_room(self, here: int) -> int: ...

    def post(self, links: Links, outcomes: Outcomes, now: float) -> tuple[Links, Outcomes]: ...

    def route(self, visits: pa.RecordBatch, now: float) -> pa.RecordBatch: ...

    def refuse(self, visits: pa.RecordBatch) -> pa.RecordBatch: ...

    def flush(self) -> None: ...

    def send(self, now: float, *, idle: bool) -> None: ...

    def owns(self, address: str) -> bool: ...

    def own_seeds(self, seeds: Sequence[Locator]) -> Sequence[Locator]: ...

    def give_back(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch: ...

    def block(self, host: int) -> pa.RecordBatch: ...

    def unblock(self, host: int) -> None: ...

    def close(self) -> None: ...


class Alone:
    """The post of a crawl with one agent: everything is its own."""

    lent = False
    quiet = True
    ready = True

    def rules_room(self, here: int) -> int:
        """Return how many more origins may be asked for rules."""
        return here

    def post(self, links: Links, outcomes: Outcomes, now: float) -> tuple[Links, Outcomes]:
        """Return everything: the only shard is here."""
        return links, outcomes

    def route(self, visits: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Return all visits: all are made here."""
        return visits

    def refuse(self, visits: pa.RecordBatch) -> pa.RecordBatch:
        """Return all visits: all hosts are known here."""
        return visits

    def flush(self) -> None:
        """Do nothing: nothing waits."""

    def send(self, now: float, *, idle: bool) -> None:
        """Do nothing: nothing goes out."""

    def owns(self, address: str) -> bool:
        """Return True: every address is asked from here."""
        return True

    def own_seeds(self, seeds: Sequence[Locator]) -> Sequence[Locator]:
        """Return all seeds: the only shard is here."""
        return seeds

    def give_back(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Return all visits: the only shard is here."""
        return urls

    def block(self, host: int) -> pa.RecordBatch:
        """Return none: no visit waits here."""
        return EMPTY

    def unblock(self, host: int) -> None:
        """Do nothing: no visit waits here."""

    def close(self) -> None:
        """Do nothing: nothing is open."""
