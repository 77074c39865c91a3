"""Limits of pages for hosts: `pages` of `[[site]]` tables. URLs beyond a limit wait here, and are not fetched.

As a host's visits go out, the window asks how many pages the host may still have. It lets that many out at most, and
each brings one page at most, so no host ever has more. A visit without a page makes room for the next. A page is an
answer with outcome OK that is no listing, at its first visit; later visits count nothing. A Drum has the counts, so
there is no end of hosts. URLs of a host that has all its pages go to a queue of their own, where `fyke why` finds them
and the summary counts them. They go on when a limit was changed.

With several agents a visit may be in neither window nor Drum: it ended elsewhere and is not safe yet, or this shard
went back to its checkpoint and has forgotten that it handed it out. Room is *held* for such visits, as if they had
brought pages, until they are done or come to the window again; then they go out before any other.

Invariant: the pages that a host has, its visits that are out, and those that room is held for are together no more than
its limit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import EMPTY, URLS, Kind, Mask, keep, numbers, texts, u64
from fyke.core.errors import ConfigurationError
from fyke.core.messages import OK
from fyke.core.site import SiteSection
from fyke.core.urls import split
from fyke.disk.drum import Drum
from fyke.disk.operations import Combine
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

NAME = "the limit of pages of their host"
ROWS = 8192
NO_LIMIT = np.iinfo(np.int64).max
Numbers = npt.NDArray[np.int64]


class PageLimits:
    """The limits of hosts by name. The last of several tables that names one counts."""

    def __init__(self, tables: Sequence[SiteSection]) -> None:
        self._tables = [table for table in tables if table.pages is not None]

    def __bool__(self) -> bool:
        return bool(self._tables)

    def of(self, host: str) -> int:
        """Return the limit of pages of the host with this name."""
        found = (table.pages for table in reversed(self._tables) if table.has_host(host))
        return next(found, 0) or NO_LIMIT

    def state(self) -> list[list[Any]]:
        return [[table.match, table.pages] for table in self._tables]


class Quota:
    """The pages of each host, and the queue of URLs beyond the limit."""

    def __init__(
        self,
        store: Store,
        tables: Sequence[SiteSection],
        memory_bytes: int,
        state: Mapping[str, Any] | None = None,
        *,
        new: bool = True,
    ) -> None:
        """`new`: the crawl begins now. Raises ConfigurationError for limits of a crawl that began without them."""
        if not (new or state) and PageLimits(tables):
            raise ConfigurationError(
                "[[site]] pages: this crawl began without it and has not counted; begin another crawl"
            )
        saved = state or {}
        self._limits = PageLimits(tables)
        self._pages = Drum(
            store, "host-pages", saved.get("pages"), value=np.uint32, combine=Combine.ADD, memory_bytes=memory_bytes
        )
        self._queue = DiskQueue(store, "quota", URLS, saved.get("queue"))
        self._counts = bool(self._limits or saved)
        self._held: dict[int, int] = {int(key): host for key, host in saved.get("held", [])}  # hosts of visits, by key
        self._held_of = Counter(self._held.values())
        self._met: dict[int, int] = {}  # hosts of visits that were held for, and went out again
        changed = bool(saved) and saved["limits"] != self._limits.state()
        self._left = len(self._queue) if changed else 0  # rows that may go on

    def __repr__(self) -> str:
        return f"Quota({len(self)} URLs, {self._pages!r})"

    def __len__(self) -> int:
        """Number of URLs that wait here."""
        return len(self._queue)

    @property
    def freed(self) -> int:
        """Number of URLs that `released` will yield."""
        return self._left

    # --- going out

    def divert(self, urls: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch, Numbers | None]:
        """Put those of `urls` aside whose hosts have all their pages.

        Returns the visits that room was held for, which go out in any case; the other rows that may go; and for each of
        the n others how many visits of its host may be out in all: [n], None if no host has a limit.
        """
        if not self._limits or not urls.num_rows:
            return EMPTY, urls, None
        held = np.fromiter((key in self._held for key in u64(urls, "key").tolist()), bool, urls.num_rows)
        owed, urls = keep(urls, held), keep(urls, ~held)
        for key, host in zip(u64(owed, "key").tolist(), u64(owed, "host").tolist(), strict=True):
            self._drop_hold(key)
            self._met[key] = host
        room = self._room(urls)
        full = room <= 0
        self._queue.put(keep(urls, full))
        return owed, keep(urls, ~full), room[~full]

    def _room(self, urls: pa.RecordBatch) -> Numbers:
        """Return how many pages the host of each of `urls` may still have: int64[n]."""
        hosts, first, of = np.unique(u64(urls, "host"), return_index=True, return_inverse=True)
        names = [split(url).host for url in texts(urls.take(pa.array(first)))]
        limits = np.array([self._limits.of(name) for name in names], np.int64)
        held = np.array([self._held_of[host] for host in hosts.tolist()], np.int64)
        room: Numbers = (limits - self._pages.values_of(hosts).astype(np.int64) - held)[of]
        return room

    # --- coming back

    def count(self, ended: pa.RecordBatch) -> None:
        """Count visits that are over (schema `ENDED`) and whose results are safe."""
        if not self._counts or not ended.num_rows:
            return
        brought = _brought_pages(ended)
        for key, page in zip(u64(ended, "key").tolist(), brought.tolist(), strict=True):
            if key in self._held or key in self._met:
                self._drop_hold(key)
                self._met.pop(key, None)
                if not page:  # others of its host were diverted meanwhile
                    self._left = len(self._queue)
        hosts, pages = np.unique(u64(ended, "host")[brought], return_counts=True)
        if len(hosts):
            self._pages.update(hosts, pages.astype(np.uint32))
        if self._pages.pending > ROWS:
            self._pages.settle()

    def hold_ended(self, ended: pa.RecordBatch) -> None:
        """Hold room for visits that ended (schema `ENDED`), brought pages and are not safe yet."""
        brought = _brought_pages(ended)
        self.hold(zip(u64(ended, "key")[brought].tolist(), u64(ended, "host")[brought].tolist(), strict=True))

    def hold(self, visits: Iterable[tuple[int, int]]) -> None:
        """Hold room for these visits (key and host each), which may have brought pages."""
        for key, host in visits if self._counts else ():
            if key not in self._held:
                self._held[key] = host
                self._held_of[host] += 1

    def _drop_hold(self, key: int) -> None:
        host = self._held.pop(key, None)
        if host is not None:
            self._held_of[host] -= 1
            if not self._held_of[host]:
                del self._held_of[host]

    def released(self) -> Iterator[pa.RecordBatch]:
        """Yield waiting URLs that may go on: all, if limits changed at a restart, or a visit that room was held for
        brought no page."""
        while self._left > 0 and (urls := self._queue.get(min(ROWS, self._left))) is not None:
            self._left -= urls.num_rows
            yield urls

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield every URL that waits here."""
        return self._queue.scan()

    # --- what a restart needs

    def state(self) -> dict[str, Any]:
        if not self._counts:
            return {}
        held = [[key, host] for key, host in (self._met | self._held).items()]
        return {
            "pages": self._pages.state(), "queue": self._queue.state(), "held": held,
            "limits": None if self._left else self._limits.state(),
        }  # fmt: skip

    def close(self) -> None:
        self._pages.close()
        self._queue.close()


def _brought_pages(ended: pa.RecordBatch) -> Mask:
    """Return which visits (schema `ENDED`) brought a page, and were the first to it: bool[n]."""
    fetched = (numbers(ended, "outcome") == OK) & ~np.isin(numbers(ended, "kind"), (Kind.LISTING, Kind.PROBE))
    again = ended.column("again").to_numpy(zero_copy_only=False)
    first: Mask = fetched & ~again
    return first
