"""What the loop asks of a post, and the post of a crawl with one agent, where there is nobody else.

`fyke.crawl.post.office` has that of many.
"""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from fyke.core.batches import EMPTY
from fyke.core.messages import Links, Outcomes
from fyke.core.urls import Locator


class Post(Protocol):
    """Takes what is for other agents out of what the loop moves."""

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
    """The post of a crawl with one agent: all is its own."""

    lent = False
    quiet = True
    ready = True

    def rules_room(self, here: int) -> int:
        """How many more origins may be asked for their rules."""
        return here

    def post(self, links: Links, outcomes: Outcomes, now: float) -> tuple[Links, Outcomes]:
        """All is for the shard that is here."""
        return links, outcomes

    def route(self, visits: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """All are made here."""
        return visits

    def refuse(self, visits: pa.RecordBatch) -> pa.RecordBatch:
        """All hosts are known here."""
        return visits

    def flush(self) -> None:
        """Nothing waits."""

    def send(self, now: float, *, idle: bool) -> None:
        """Nothing goes out."""

    def owns(self, address: str) -> bool:
        """Every address is asked from here."""
        return True

    def own_seeds(self, seeds: Sequence[Locator]) -> Sequence[Locator]:
        """All are of the shard that is here."""
        return seeds

    def give_back(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """All are of the shard that is here."""
        return urls

    def block(self, host: int) -> pa.RecordBatch:
        """No visit waits here."""
        return EMPTY

    def unblock(self, host: int) -> None:
        """No visit waits here."""

    def close(self) -> None:
        """Nothing is open."""
