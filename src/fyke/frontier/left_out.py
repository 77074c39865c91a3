"""URLs that rules refuse which a person may edit: `allow`, `deny`, plug-ins. They wait here until the rule is gone.

Found links are asked as they come (`accepted`). URLs that the crawl had accepted are asked again before the rules of
their host are asked for, and as they go out (`divert`), so that a rule holds from the restart at which it was added.
Rules change only between two runs. If they did, the next run asks anew about all that waits here.

The links are as many as were refused, without repeats of the latest `LATELY`: the same menu is on each page of a site.
They are written in sequence, and read if the rules change.

Invariant: a URL that a rule refused is here until no rule refuses it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, URLS, first_of_each_key, keep, numbers, u64
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.filters import Filters, named_in

NAME = "rules that were added later"
ROWS = 4096
LATELY = 1 << 16  # refused links, by key and kind


class LeftOut:
    """The queues of refused links, and of URLs that were accepted once, under the rules of `filters`."""

    def __init__(self, store: Store, filters: Filters, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._filters = filters
        self._links = DiskQueue(store, "left-out", URLS, saved.get("links"), pack=True)
        self._urls = DiskQueue(store, "withdrawn", URLS, saved.get("urls"), pack=True)
        before = saved.get("rules", filters.edited)
        changed = before != filters.edited
        earlier = map(named_in, before) if changed else ()
        self.recounted = frozenset(earlier)  # rules; what they refused is counted anew
        self._lately: set[int] = set()
        self._left = [len(self._links), len(self._urls)] if changed else saved.get("left", [0, 0])  # to be asked again

    def __repr__(self) -> str:
        return f"LeftOut({len(self._links)} links, {len(self)} URLs)"

    def __len__(self) -> int:
        """Number of URLs that wait, and were accepted once."""
        return len(self._urls)

    @property
    def freed(self) -> bool:
        """True if rows are to be asked about again."""
        return any(self._left)

    def accepted(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of `urls` that every filter accepts, each key once. Those that a rule refuses wait."""
        # Filter before the repeats go: a refused row must not hide an accepted one.
        return first_of_each_key(self._filters.accept(urls, self._put_aside))

    def _put_aside(self, refused: pa.RecordBatch) -> None:
        refused = first_of_each_key(refused)
        marks = (u64(refused, "key") ^ numbers(refused, "kind").astype(np.uint64)).tolist()
        self._links.put(keep(refused, np.fromiter((mark not in self._lately for mark in marks), np.bool_, len(marks))))
        if len(self._lately) + len(marks) > LATELY:
            self._lately.clear()
        self._lately.update(marks[:LATELY])

    def divert(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Let those of `urls` wait that a rule refuses now. Returns the others."""
        wanted = self._filters.still_accepted(urls)
        if wanted.all():
            return urls
        self._urls.put(keep(urls, ~wanted))
        return keep(urls, wanted)

    def links_again(self) -> pa.RecordBatch:
        """Return some of the links that no rule refuses any more (schema `URLS`)."""
        return self.accepted(self._next(0, self._links))

    def urls_again(self) -> pa.RecordBatch:
        """Return some of the URLs that were accepted once, and that no rule refuses any more (schema `URLS`)."""
        return self.divert(self._next(1, self._urls))

    def _next(self, place: int, queue: DiskQueue) -> pa.RecordBatch:
        rows = min(ROWS, self._left[place])
        self._left[place] -= rows
        return (queue.get(rows) if rows else None) or EMPTY

    def state(self) -> dict[str, Any]:
        return {
            "links": self._links.state(), "urls": self._urls.state(), "rules": self._filters.edited,
            "left": list(self._left),
        }  # fmt: skip

    def close(self) -> None:
        self._links.close()
        self._urls.close()
