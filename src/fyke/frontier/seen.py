"""Which URLs were met before, and which bodies: two Drums.

`UrlSeen` is IRLbot's (section 4.3): check+update by URL key, the URL itself as aux. `ContentSeen`
answers at once, because a page that waits for a merge would have to be read again from the archive: a
look-up in the table for the pages of a turn, and a bounded set for what was met since the drum was told.

Invariant: a URL is handed on by `UrlSeen.merge` once in the life of a crawl.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import URLS, u64
from fyke.disk.drum import Drum, DrumStatistics
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
        yield from self._drum.merge_unique()

    def holds(self, key: int) -> bool:
        """Whether the URL with this key was met. Reads the disk."""
        return self._drum.get(key)[0]

    def unchecked(self) -> Iterator[pa.RecordBatch]:
        """URLs that wait for their check."""
        for _, _, urls in self._drum.scan_pending():
            if urls is not None:
                yield urls

    def state(self) -> dict[str, Any]:
        return self._drum.state()

    def statistics(self) -> DrumStatistics:
        return self._drum.statistics()

    def close(self) -> None:
        self._drum.close()


class ContentSeen:
    """Every body read, by a key made of its bytes and of the place where the same bytes mean the same links."""

    def __init__(self, store: Store, memory_bytes: int, state: dict[str, Any] | None = None) -> None:
        self._drum = Drum(store, "content", state, memory_bytes=memory_bytes)
        self._limit = max(1, memory_bytes // 200)  # a Python integer in a set costs about half of that
        self._new: set[int] = set()  # since the drum was last told

    def __repr__(self) -> str:
        return f"ContentSeen({self._drum!r})"

    def __len__(self) -> int:
        return len(self._drum) + len(self._new)

    def known(self, keys: Sequence[int]) -> set[int]:
        """Those of `keys` that were entered in the drum; what was entered since it was told, `entered` says."""
        if len(self._new) >= self._limit:
            self._tell()
        held = self._drum.contains(np.array(keys, np.uint64)).tolist()
        return {key for key, there in zip(keys, held, strict=True) if there}

    def entered(self, key: int) -> bool:
        """Whether `key` was entered since the drum was told."""
        return key in self._new

    def enter(self, key: int) -> None:
        """The body with `key` was read."""
        self._new.add(key)

    def _tell(self) -> None:
        self._drum.update(np.fromiter(self._new, np.uint64, len(self._new)))
        self._drum.settle()
        self._new.clear()

    def state(self) -> dict[str, Any]:
        self._tell()
        return self._drum.state()

    def close(self) -> None:
        self._drum.close()
