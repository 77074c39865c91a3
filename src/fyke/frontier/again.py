"""Pages that were visited before and are to be visited again: the first stage of a pass over a crawl.

`fyke crawl --again` begins a pass: the rows that the table of pages has got since the last one began are told to
`learn`, in their order, then each is asked for (`ask`), and `release` puts those into the queue that are the last
of their page. All other pages still wait from before, or are gone. So no page waits twice, whenever a pass
begins. From the queue pages go on through the robots gate like any, before what is new: they were let through by their
domain's budget once.

What earlier visits brought is in two Drums by the URL's key, both written in the order of visits: `latest` (the visit
before), and `copies` (the newest answer with the page's content). Both are asked when a page is handed out.

Invariant: a page is in the queue at most once, and not while it waits in another one.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, URLS, Mask, keep, numbers
from fyke.disk.drum import Drum
from fyke.disk.operations import Values
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store


class Visited(IntEnum):
    """What the visit before says of a page."""

    NEVER = 0  # there was none
    THERE = 1  # or not known to be away: a server that fails says nothing of its pages
    MISSING = 2  # 404 or 410
    GONE = 3  # the same twice in a row: it is not asked for any more


LATEST = np.dtype([("row", "<u8"), ("visited", "u1")])  # row of the table of pages; a `Visited`
COPY = np.dtype(
    [
        ("offset", "<u8"),  # of the record in its archive file
        ("fingerprint", "<u8"),  # of the decoded body
        ("length", "<u4"),  # of the record; 0: there is no copy
        ("file", "<u4"),  # number of the archive file
    ]
)
ASKED = pa.schema([*URLS, ("row", pa.uint64())])


class Before(NamedTuple):
    """What earlier visits to n pages brought; zero where there were none."""

    visited: npt.NDArray[np.uint8]  # a `Visited` for each
    copies: Values  # dtype `COPY`


class Again:
    """The queue of known pages, and what is known of them."""

    def __init__(self, store: Store, memory_bytes: int, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._latest = Drum(store, "latest", saved.get("latest"), value=LATEST, aux=ASKED, memory_bytes=memory_bytes)
        self._copies = Drum(store, "copies", saved.get("copies"), value=COPY, memory_bytes=memory_bytes)
        self._queue = DiskQueue(store, "again", URLS, saved.get("queue"))
        self._left = len(self._queue)  # rows that were not looked at for this level
        self.rows = int(saved.get("rows", 0))  # of the table of pages that were learned

    def __repr__(self) -> str:
        return f"Again({len(self)} waiting, {len(self._latest)} known)"

    def __len__(self) -> int:
        return len(self._queue)

    # --- a pass begins

    def learn(self, keys: U64, latest: Values, copied: Mask, copies: Values) -> None:
        """The next visits, in order: `keys` uint64[n], `latest` [n] (dtype `LATEST`), and what is their copy from now
        on, `copies` [n] (dtype `COPY`), where `copied`."""
        self._latest.update(keys, latest)
        self._copies.update(keys[copied], copies[copied])
        self.rows += len(keys)
        if self._latest.full:
            self._merge()
        if self._copies.full:
            self._copies.settle()

    def ask(self, urls: pa.RecordBatch, rows: U64) -> None:
        """Have `urls` (schema `URLS`) visited again if `rows` (uint64[n]) were the last of their pages."""
        self._latest.check(urls.column("key").to_numpy(), urls.append_column(ASKED.field("row"), pa.array(rows)))
        if self._latest.full:
            self._merge()

    def release(self) -> None:
        """All is learned and asked: let the pages wait for their visits."""
        self._merge()
        self._copies.settle()
        self._left = len(self._queue)

    def _merge(self) -> None:
        for answers in self._latest.merge():
            assert answers.aux is not None and answers.values is not None
            last = (answers.values["row"] == numbers(answers.aux, "row")) & (answers.values["visited"] != Visited.GONE)
            self._queue.put(keep(answers.aux.select(URLS.names), last))

    # --- visits

    def get(self, rows: int, level: int | None) -> pa.RecordBatch | None:
        """The next `rows` pages or fewer that are not deeper than `level`; None when there are no more."""
        while self._left > 0:
            urls = self._queue.get(min(rows, self._left))
            assert urls is not None
            self._left -= urls.num_rows
            if level is None:
                return urls
            near = numbers(urls, "depth") <= level
            self._queue.put(keep(urls, ~near))
            if near.any():
                return keep(urls, near)
        return None

    @property
    def spent(self) -> bool:
        """Whether none is left that is not too deep."""
        return self._left <= 0

    def next_level(self) -> None:
        """The level is another one: look at all of them again."""
        self._left = len(self._queue)

    def before(self, keys: U64) -> Before | None:
        """What earlier visits to the pages with `keys` (uint64[n]) brought; None when nothing is known of any page."""
        if not len(self._latest):
            return None
        return Before(self._latest.values_of(keys)["visited"], self._copies.values_of(keys))

    # --- life

    def scan(self) -> Iterator[pa.RecordBatch]:
        """All that wait."""
        return self._queue.scan()

    def state(self) -> dict[str, Any]:
        return {
            "latest": self._latest.state(),
            "copies": self._copies.state(),
            "queue": self._queue.state(),
            "rows": self.rows,
        }

    def close(self) -> None:
        for part in (self._latest, self._copies, self._queue):
            part.close()
