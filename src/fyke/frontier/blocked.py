"""URLs of hosts that a person blocked: they wait here until the block is taken back.

Blocked work is waiting work: nothing is requested of the host, and no URL of it is lost. The window hands in URLs that
are about to go out; the frontier takes out URLs whose host is unblocked.

Invariant: a row that was diverted waits here until its host is not blocked.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import URLS, Mask, keep, u64
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

ROWS = 8192


class Blocked:
    """The keys of blocked hosts, and the queue of their URLs."""

    def __init__(self, store: Store, state: dict[str, Any] | None = None) -> None:
        self._hosts: set[int] = set()
        self._waiting = DiskQueue(store, "blocked", URLS, state)

    def __repr__(self) -> str:
        return f"Blocked({len(self._hosts)} hosts, {len(self)} URLs)"

    def __len__(self) -> int:
        """Number of URLs that wait."""
        return len(self._waiting)

    def add(self, hosts: Iterable[int]) -> None:
        """Block hosts with these keys."""
        self._hosts.update(hosts)

    def divert(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Put the URLs of blocked hosts aside. Returns the others."""
        if not self._hosts or not urls.num_rows:
            return urls
        blocked = self._of_blocked_hosts(urls)
        self._waiting.put(keep(urls, blocked))
        return keep(urls, ~blocked)

    def release(self, hosts: Iterable[int] = ()) -> Iterator[pa.RecordBatch]:
        """Unblock these hosts. Yields the waiting URLs of hosts that are not blocked now."""
        self._hosts.difference_update(hosts)
        for urls in self._waiting.drain(ROWS):
            blocked = self._of_blocked_hosts(urls)
            self._waiting.put(keep(urls, blocked))
            yield keep(urls, ~blocked)

    def _of_blocked_hosts(self, urls: pa.RecordBatch) -> Mask:
        mask: Mask = np.isin(u64(urls, "host"), np.fromiter(self._hosts, np.uint64, len(self._hosts)))
        return mask

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield every URL that waits here."""
        return self._waiting.scan()

    def state(self) -> dict[str, Any]:
        return self._waiting.state()

    def close(self) -> None:
        self._waiting.close()
