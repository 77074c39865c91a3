"""The URLs met before: a Drum.

`UrlSeen` is IRLbot's (section 4.3): check+update by URL key, the URL itself as aux.

Invariant: `UrlSeen.merge` yields a URL once in the life of a crawl.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from fyke.core.batches import URLS, u64
from fyke.disk.drum import Drum
from fyke.disk.store import Store


class UrlSeen:
    """Every URL the filters accepted."""

    def __init__(self, store: Store, memory_bytes: int, state: dict[str, Any] | None = None) -> None:
        self._drum = Drum(store, "seen", state, aux=URLS, memory_bytes=memory_bytes)

    def __repr__(self) -> str:
        return f"UrlSeen({self._drum!r})"

    def __len__(self) -> int:
        return len(self._drum)

    @property
    def pending(self) -> int:
        """Number of URLs that wait for their check."""
        return self._drum.pending

    @property
    def full(self) -> bool:
        """True if enough URLs wait for a merge."""
        return self._drum.full

    def check_update(self, urls: pa.RecordBatch) -> None:
        """Check `urls` (schema `URLS`) at the next merge, and remember them."""
        if urls.num_rows:
            self._drum.check_update(u64(urls, "key"), aux=urls)

    def merge(self) -> Iterator[pa.RecordBatch]:
        """Yield the new URLs, in batches of the schema `URLS`."""
        yield from self._drum.merge_unique()

    def holds(self, key: int) -> bool:
        """Return whether the URL with this key was met. Reads the disk."""
        return self._drum.get(key)[0]

    def unchecked(self) -> Iterator[pa.RecordBatch]:
        """Yield URLs that wait for their check."""
        for _, _, urls in self._drum.scan_pending():
            if urls is not None:
                yield urls

    def state(self) -> dict[str, Any]:
        return self._drum.state()

    def close(self) -> None:
        self._drum.close()
