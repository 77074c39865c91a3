"""From links to URLs that may be fetched: the frontier's stages in one place.

    links -> filter -> seen -> [star -> beast -> robots gate] -> level -> ready

The loop hands in the links of each page (`discover`) and calls `turn`; what is new comes out of `take`.
Links are gathered as they come and go through the stages as one batch of columns. A bounded set of
keys met lately stands in front, since most links repeat (Mercator's cache of popular URLs). The places
of STAR, BEAST and the robots gate are marked in `_advance`: each will take a batch and return a batch.

With a depth limit the crawl goes level by level: a URL waits in `later` until all pages nearer to the
seeds are done. Else a page met first by a long way round would pass its greater depth on to its links,
and pages within the limit would be lost.

Invariant: every URL that the filters accepted is in `seen`, and when it was new in exactly one queue
or handed out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import URLS, first_of_each_key, keep, numbers, u64, url_batch
from fyke.core.config import FrontierSection
from fyke.core.urls import Locator
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.filters import Filters
from fyke.frontier.ready import Ready
from fyke.frontier.seen import UrlSeen

BATCH_LINKS = 8192
_KEY = itemgetter(1)
MERGE_SHARE = 4  # merges while starving may take one part in this many of the time


@dataclass(frozen=True, slots=True)
class FrontierStatistics:
    """Counts since the crawl began, and rows that wait."""

    links: int
    accepted: int
    unique: int
    unchecked: int
    ready: int
    spilled: int
    later: int


class Frontier:
    """One shard of the frontier, on the files of one `Store`."""

    def __init__(
        self,
        store: Store,
        config: FrontierSection,
        filters: Filters,
        *,
        by_level: bool,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self._filters = filters
        self._recent_limit = config.link_cache
        self._recent: set[int] = set()
        self._found: list[tuple[Sequence[Locator], int, int, int]] = []
        self._found_links = 0
        self._by_level = by_level
        self._merge_cost_s = 0.0
        self._merged_at = 0.0
        saved = state or {}
        self.level = int(saved.get("level", 0))
        self.links = int(saved.get("links", 0))
        self.accepted = int(saved.get("accepted", 0))
        self.seen = UrlSeen(store, config.seen_memory_bytes, saved.get("seen"))
        self.ready = Ready(store, saved.get("ready"))
        self.later = DiskQueue(store, "later", URLS, saved.get("later"))

    def __repr__(self) -> str:
        return f"Frontier({len(self.seen)} seen, {self.seen.pending} unchecked, {self.ready!r})"

    def discover(self, locators: Sequence[Locator], *, via: int, depth: int, kind: int) -> None:
        """The page with key `via` links to `locators`, which are `depth` links from a seed."""
        recent = self._recent
        self.links += len(locators)
        if recent.issuperset(map(_KEY, locators)):
            return
        fresh = [at for at in locators if at[1] not in recent]
        if fresh:
            self._found.append((fresh, via, depth, kind))
            self._found_links += len(fresh)
            if self._found_links >= BATCH_LINKS:
                self._check_in()

    def turn(self, *, starving: bool, idle: bool) -> None:
        """Move what was found on towards the ready queue, as far as is worth its cost.

        `starving`: memory runs low on visits; `idle`: nothing at all is left to fetch.
        """
        if starving or idle:
            self._check_in()
        if self.seen.full or (self.seen.pending and (idle or (starving and self._merge_is_cheap()))):
            self._advance()
        if idle and not len(self.ready) and len(self.later):
            self._next_level()

    def _merge_is_cheap(self) -> bool:
        return perf_counter() - self._merged_at >= self._merge_cost_s * (MERGE_SHARE - 1)

    def _check_in(self) -> None:
        """Filter the links found and have them checked against the URLs seen."""
        if not self._found:
            return
        groups, self._found, self._found_links = self._found, [], 0
        counts = [len(group[0]) for group in groups]
        _, vias, depths, kinds = zip(*groups, strict=True)
        batch = url_batch(
            list(chain.from_iterable(group[0] for group in groups)),
            via=np.repeat(np.array(vias, np.uint64), counts),
            depth=np.repeat(np.array(depths, np.uint16), counts),
            kind=np.repeat(np.array(kinds, np.uint8), counts),
        )
        batch = self._filters.accept(first_of_each_key(batch))
        if not batch.num_rows:
            return
        self.accepted += batch.num_rows
        if len(self._recent) >= self._recent_limit:
            self._recent.clear()
        self._recent.update(u64(batch, "key").tolist())
        self.seen.check_update(batch)

    def _advance(self) -> None:
        """Merge, and pass what is unique through the stages."""
        start = perf_counter()
        for unique in self.seen.merge():
            # STAR gives each row its domain's budget here, BEAST orders rows by it, and the robots
            # gate holds back what its host's rules forbid; until then all go straight on.
            self._put_by_level(unique)
        self._merged_at = perf_counter()
        self._merge_cost_s = self._merged_at - start

    def _put_by_level(self, urls: pa.RecordBatch) -> None:
        if not self._by_level:
            self.ready.put(urls)
            return
        near = numbers(urls, "depth") <= self.level
        self.ready.put(keep(urls, near))
        self.later.put(keep(urls, ~near))

    def _next_level(self) -> None:
        self.level += 1
        for _ in range(len(self.later)):
            batch = self.later.get(BATCH_LINKS)
            if batch is None:
                break
            self.ready.put(batch)

    def take(self, rows: int) -> pa.RecordBatch:
        """The next URLs to fetch, `rows` at most; schema `URLS`, possibly empty."""
        return self.ready.take(rows)

    def requeue(self, urls: pa.RecordBatch) -> None:
        """Let `urls`, handed out before and not fetched, wait again."""
        self.ready.put(urls)

    @property
    def empty(self) -> bool:
        """Whether nothing waits anywhere in the frontier."""
        return not (self._found or self.seen.pending or len(self.ready) or len(self.later))

    def state(self) -> dict[str, object]:
        """Everything a restart needs; nothing found stays in memory only."""
        self._check_in()
        return {
            "level": self.level,
            "links": self.links,
            "accepted": self.accepted,
            "seen": self.seen.state(),
            "ready": self.ready.state(),
            "later": self.later.state(),
        }

    def statistics(self) -> FrontierStatistics:
        return FrontierStatistics(
            self.links,
            self.accepted,
            len(self.seen),
            self.seen.pending + self._found_links,
            self.ready.waiting,
            self.ready.spilled,
            len(self.later),
        )

    def close(self) -> None:
        self.seen.close()
        self.ready.close()
        self.later.close()
