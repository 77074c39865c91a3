"""Pages of other shards that were lent to this agent and are to be visited here, until their outcomes are told.

Invariant: a page that is lent twice is visited once.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from fyke.core.batches import Kind, keep, numbers, u64


class Guests:
    """Keys of visits, each with its shard and host."""

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
