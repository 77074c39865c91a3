"""Which URLs were met before, and which bodies: two Drums.

`UrlSeen` is IRLbot's (section 4.3): check+update by URL key, the URL itself as aux. `ContentSeen`
answers at once, because a page that waits for a merge would have to be read again from the archive: a
look-up in the table, one block of it for each page, and a bounded set for what was met since the last
merge.

Invariant: a URL is handed on by `UrlSeen.merge` once in the life of a crawl.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import URLS, keep, u64
from fyke.shelf.drum import KEY, Drum, DrumStatistics
from fyke.shelf.store import Store


class UrlSeen:
    """Every URL the filters accepted."""

    def __init__(self, store: Store, pending_bytes: int, state: Mapping[str, Any] | None = None) -> None:
        self._drum = Drum(store, "seen", aux=URLS, pending_bytes=pending_bytes, state=state)

    def __repr__(self) -> str:
        return f"UrlSeen({self._drum!r})"

    def __len__(self) -> int:
        return len(self._drum)

    @property
    def pending(self) -> int:
        """URLs that wait for their check."""
        return self._drum.pending

    @property
    def full(self) -> bool:
        """Whether enough wait for a merge."""
        return self._drum.full

    def check_update(self, urls: pa.RecordBatch) -> None:
        """Check `urls` (schema `URLS`) at the next merge, and remember them."""
        self._drum.check_update(u64(urls, "key"), aux=urls)

    def merge(self) -> Iterator[pa.RecordBatch]:
        """Those that were new, in batches of the schema `URLS`."""
        for answer in self._drum.merge():
            assert answer.aux is not None
            unique = keep(answer.aux, ~answer.found)
            if unique.num_rows:
                yield unique

    def holds(self, key: int) -> bool:
        """Whether the URL with this key was checked and remembered. Reads the disk."""
        return bool(self._drum.get(key)[0])

    def unchecked(self) -> Iterator[pa.RecordBatch]:
        """URLs that wait for their check."""
        for batch in self._drum.scan_pending():
            yield batch.select(URLS.names)

    def state(self) -> dict[str, Any]:
        return self._drum.state()

    def statistics(self) -> DrumStatistics:
        return self._drum.statistics()

    def close(self) -> None:
        self._drum.close()


class ContentSeen:
    """Every body met, by a key made of its bytes and the place they were met at."""

    def __init__(self, store: Store, pending_bytes: int, state: Mapping[str, Any] | None = None) -> None:
        self._drum = Drum(store, "content", pending_bytes=pending_bytes, state=state)
        self._limit = max(1, pending_bytes // 100)  # a Python integer in a set costs about that
        self._new = {key for batch in self._drum.scan_pending() for key in batch.column(KEY).to_pylist()}
        self._fresh: list[int] = []  # of the new ones, those the drum was not told yet

    def __repr__(self) -> str:
        return f"ContentSeen({self._drum!r})"

    def __len__(self) -> int:
        return len(self._drum) + len(self._new)

    def met(self, key: int) -> bool:
        """Whether `key` was met before; it is from now on."""
        if key in self._new or self._drum.get(key)[0]:
            return True
        self._new.add(key)
        self._fresh.append(key)
        if len(self._new) >= self._limit:
            self._tell()
            for _ in self._drum.merge():
                pass
            self._new.clear()
        return False

    def _tell(self) -> None:
        self._drum.update(np.array(self._fresh, np.uint64))
        self._fresh.clear()

    def state(self) -> dict[str, Any]:
        self._tell()
        return self._drum.state()

    def close(self) -> None:
        self._drum.close()
