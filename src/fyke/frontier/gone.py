"""Pages that were away at two visits in a row. Some come back, so each is asked for once more after `GONE_S`, and in
each pass over all pages.

A part of `known_pages`, which puts them here as it learns of their visits, and takes out those that are due for a plan.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from fyke.core.batches import URLS, keep
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

GONE_S = 90 * 86400.0  # from a visit to the next, at least
LOOK_S = 86400.0  # between two looks at all of them
ROWS = 8192
SCHEMA = pa.schema([*URLS, ("at", pa.float64())])  # unix seconds: of the last visit


class GonePages:
    """The queue of these pages; `state` is that of `state()` at the checkpoint."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._queue = DiskQueue(store, "gone", SCHEMA, saved.get("queue"), pack=True)
        self._look_at = float(saved.get("look_at", 0.0))

    def __repr__(self) -> str:
        return f"GonePages({len(self)})"

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, ended: pa.RecordBatch) -> None:
        """Add pages whose visits ended; `ended` has the columns of `SCHEMA` and may have others."""
        self._queue.put(ended.select(SCHEMA.names))

    def take(self) -> Iterator[pa.RecordBatch]:
        """Take out all pages (schema `URLS`)."""
        for pages in self._queue.drain(ROWS):
            yield pages.select(URLS.names)

    def due(self, now: float) -> Iterator[pa.RecordBatch]:
        """Take out the pages that are due (schema `URLS`), unless there was a look lately."""
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        for pages in self._queue.drain(ROWS):
            due = pages.column("at").to_numpy() + GONE_S <= now
            self._queue.put(keep(pages, ~due))
            yield keep(pages, due).select(URLS.names)

    def state(self) -> dict[str, Any]:
        return {"queue": self._queue.state(), "look_at": self._look_at}

    def close(self) -> None:
        self._queue.close()
