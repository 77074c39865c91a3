"""A stage on a directory of its own that is saved, lost, and opened again; the URLs it gets, and what plug-ins say."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from fyke.core.batches import texts, url_batch
from fyke.core.urls import Locator, key_of, locate
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.store import Store


class Stage(Protocol):
    def state(self) -> Any: ...

    def close(self) -> None: ...


S = TypeVar("S", bound=Stage)
M = TypeVar("M")


class Shard(Generic[S, M]):
    """The stage that `make` opens, and beside it the `model` of what it should be, saved with it."""

    def __init__(self, directory: Path, make: Callable[[Store, Mapping[str, Any]], S], model: M) -> None:
        self._directory, self._make = directory, make
        self.model = model
        self._safe = deepcopy(model)
        self._open()

    def _open(self) -> None:
        self.checkpoint = Checkpoint(self._directory)
        self.stage = self._make(self.checkpoint.store, self.checkpoint.store.participant("stage"))

    def save(self) -> None:
        snapshot = self.checkpoint.take({"stage": self.stage.state()})
        snapshot.make_durable()
        self.checkpoint.committed(snapshot)
        self.keep_safe()

    def keep_safe(self) -> None:
        """Remember the model as it is at a checkpoint."""
        self._safe = deepcopy(self.model)

    def restart(self, make: Callable[[Store, Mapping[str, Any]], S] | None = None) -> None:
        """Open the last checkpoint, by `make` from now on; what came after it is lost, as when a process is killed."""
        self.close()
        self._make = make or self._make
        self._open()
        self.model = deepcopy(self._safe)

    def close(self) -> None:
        self.stage.close()
        self.checkpoint.close()


@lru_cache(maxsize=1 << 15)
def at(domain: int | str, number: int) -> Locator:
    """Page `number` of a domain."""
    return locate(f"http://www.d{domain}.example/{number}")


@cache
def domain_of(domain: int | str) -> int:
    """The key of a domain."""
    return key_of(f"d{domain}.example")


def rows(pages: Iterable[tuple[int | str, int]], **columns: Any) -> pa.RecordBatch:
    """A batch of the pages (domain, number)."""
    return url_batch([at(domain, number) for domain, number in pages], **columns)


def pages(batch: pa.RecordBatch | None) -> list[tuple[int, int]]:
    """The pages (domain, number) in a batch of domains that are numbers."""
    return [] if batch is None else [page(url) for url in texts(batch)]


def page(url: str) -> tuple[int, int]:
    host, _, number = url.removeprefix("http://www.d").partition("/")
    return int(host.removesuffix(".example")), int(number)


class Answers:
    """A plug-in that gives always the same, whatever it is asked."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def levels(self, *_asked: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    budgets = levels
