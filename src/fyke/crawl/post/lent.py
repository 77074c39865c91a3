"""Visits that were lent: those to be made here, and those that have ended and are not safe yet.

Of those that ended, a row is a visit (`URLS`) and how it ended (`ENDED`), so that it can be done, or made again.
Invariant: `Unsafe.opened` gives what the last `write` was given.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import URLS, Kind, keep, numbers, u64
from fyke.core.messages import ENDED
from fyke.crawl.post.handed import ToldIn
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

_WHOSE = ("key", "host", "domain")
_HOW = [field.name for field in ENDED if field.name not in _WHOSE]
LENT = pa.schema([*URLS, *(ENDED.field(name).with_name(f"ended_{name}") for name in _HOW)])
_TOLD = [pa.field("agent", pa.uint32()), pa.field("life", pa.uint64()), pa.field("number", pa.uint64())]
UNSAFE = pa.schema([*LENT, *_TOLD])


def lent_rows(urls: pa.RecordBatch, ended: pa.RecordBatch) -> pa.RecordBatch:
    """Return a row for each of the visits `urls`, which ended as `ended` says."""
    urls, ended = urls.sort_by("key"), ended.sort_by("key")
    arrays = [*urls.columns, *(ended.column(name) for name in _HOW)]
    return pa.RecordBatch.from_arrays(arrays, schema=LENT)


def urls_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the visits in rows of `LENT`."""
    return pa.RecordBatch.from_arrays(rows.select(URLS.names).columns, schema=URLS)


def ended_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return how the visits in rows of `LENT` ended."""
    arrays = [rows.column(name) for name in (*_WHOSE, *(f"ended_{name}" for name in _HOW))]
    return pa.RecordBatch.from_arrays(arrays, schema=ENDED)


class Guests:
    """Pages that other shards lent to this agent, until their outcomes are told: keys of visits, each with its shard
    and host. A page that is lent twice is visited once."""

    def __init__(self) -> None:
        self._visits: dict[int, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"Guests({len(self)})"

    def __len__(self) -> int:
        return len(self._visits)

    def take(self, shard: int, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Take `urls`, lent by `shard`; return those that were not here yet."""
        keys = u64(urls, "key").tolist()
        if not self._visits.keys().isdisjoint(keys):
            urls = keep(urls, np.fromiter((key not in self._visits for key in keys), np.bool_, len(keys)))
        pages = keep(urls, numbers(urls, "kind") != Kind.RULES)
        for key, host in zip(u64(pages, "key").tolist(), u64(pages, "host").tolist(), strict=True):
            self._visits[key] = shard, host
        return urls

    def drop(self, keys: Iterable[int]) -> None:
        """Forget the visits with these keys."""
        for key in keys:
            self._visits.pop(key, None)

    def of_shard(self, shard: int) -> list[tuple[int, int]]:
        """Return key and host of the visits that `shard` lent."""
        return [(key, host) for key, (of, host) in self._visits.items() if of == shard]


class Unsafe:
    """The queue `unsafe` of the shard's store: what a checkpoint keeps of these visits."""

    def __init__(self, store: Store, saved: dict[str, Any] | None) -> None:
        self._store = store
        self._queue = DiskQueue(store, "unsafe", UNSAFE, saved)

    def __repr__(self) -> str:
        return f"Unsafe({len(self._queue)} rows)"

    def opened(self) -> Iterator[tuple[ToldIn, pa.RecordBatch]]:
        """Yield the rows of the last checkpoint, by where it was told that they ended."""
        for batch in self._queue.scan():
            places = np.stack([numbers(batch, field.name).astype(np.uint64) for field in _TOLD])
            for told in np.unique(places, axis=1).T:
                mask = (places == told[:, None]).all(axis=0)
                rows = pa.RecordBatch.from_arrays(keep(batch, mask).columns[: len(LENT)], schema=LENT)
                yield ToldIn(*told.tolist()), rows

    def write(self, unsafe: Iterable[tuple[ToldIn, pa.RecordBatch]]) -> Mapping[str, Any]:
        """Keep these rows alone; return what a restart needs."""
        self._queue.destroy()
        self._queue = DiskQueue(self._store, "unsafe", UNSAFE)
        for told, rows in unsafe:
            places = [
                pa.array(np.full(rows.num_rows, value, field.type.to_pandas_dtype()))
                for value, field in zip(told, _TOLD, strict=True)
            ]
            self._queue.put(pa.RecordBatch.from_arrays([*rows.columns, *places], schema=UNSAFE))
        return self._queue.state()

    def close(self) -> None:
        """Give the files back."""
        self._queue.close()
