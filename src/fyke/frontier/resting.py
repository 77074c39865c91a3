"""Pages that rest: known ones that neither wait for a visit nor were visited since the last plan.

Two queues in step, a row a page in each: the belief of the page, which each plan reads twice, and the other columns of
its URL, which a plan reads once. Both are packed: a plan reads and writes them whole, and its cost is their bytes.
Invariant: row n of both queues is of the same page.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from fyke.core.batches import URLS, Mask, keep
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

BATCH_ROWS = 8192
BELIEVED = {
    "at": pa.float64(),  # as in `KNOWN`
    "silent": pa.float64(),  # seconds from then until the last request; 0, which packs to nothing, for most pages
    "shape": pa.float32(),
    "time": pa.float32(),
    "finds": pa.float32(),  # new links a second
}
_CHOSEN_BY = ("key", "host", "kind", "in_degree")
BELIEFS = pa.schema([*(URLS.field(name) for name in _CHOSEN_BY), *BELIEVED.items()])
OTHERS = pa.schema([field for field in URLS if field.name not in _CHOSEN_BY])

Pages = tuple[pa.RecordBatch, pa.RecordBatch]  # schemas `BELIEFS` and `OTHERS`


class RestingPages:
    """The resting pages, in a store; `state` is that of `state()` at the checkpoint."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._beliefs = DiskQueue(store, "beliefs", BELIEFS, saved.get("beliefs"), pack=True)
        self._others = DiskQueue(store, "others", OTHERS, saved.get("others"), pack=True)

    def __repr__(self) -> str:
        return f"RestingPages({len(self)})"

    def __len__(self) -> int:
        return len(self._beliefs)

    def put(self, pages: Pages) -> None:
        """Add `pages` behind all others."""
        self._beliefs.put(pages[0])
        self._others.put(pages[1])

    def beliefs(self) -> Iterator[pa.RecordBatch]:
        """Return the beliefs of all pages, in order (schema `BELIEFS`), and take none out."""
        self.state()  # all in files, so that a checkpoint moves no rows under the scan
        return self._beliefs.scan()

    def take_all(self) -> Iterator[Pages]:
        """Take out all pages that rest now, in order. Pages that are put meanwhile stay."""
        return zip(self._beliefs.drain(BATCH_ROWS), self._others.drain(BATCH_ROWS), strict=True)

    def state(self) -> dict[str, Any]:
        return {"beliefs": self._beliefs.state(), "others": self._others.state()}

    def close(self) -> None:
        for queue in (self._beliefs, self._others):
            queue.close()


def pages_of(urls: pa.RecordBatch, believed: Mapping[str, Any]) -> Pages:
    """Return resting pages of `urls` (schema `URLS`, n rows) and their beliefs, by the names of `BELIEVED`."""
    of = [pa.array(believed[name], kind) for name, kind in BELIEVED.items()]
    beliefs = pa.RecordBatch.from_arrays([*urls.select(_CHOSEN_BY).columns, *of], schema=BELIEFS)
    return beliefs, urls.select(OTHERS.names)


def urls_of(pages: Pages) -> pa.RecordBatch:
    """Return the URLs of resting pages, schema `URLS`."""
    columns = (pages[0 if field.name in _CHOSEN_BY else 1].column(field.name) for field in URLS)
    return pa.RecordBatch.from_arrays(list(columns), schema=URLS)


def those(pages: Pages, mask: Mask) -> Pages:
    """Return those of n resting pages for which `mask` (bool[n]) is true."""
    return keep(pages[0], mask), keep(pages[1], mask)
