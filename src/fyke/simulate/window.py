"""The stretch of the frontier that is at the workbench: what the loop does for a crawl, over columns.

The driver calls `fill` once a slice. URLs come from the frontier's ready queue; those of hosts that have their
share already go to its spill queues without ever becoming objects, and are looked for there when such a host
runs low. As in `fyke.crawl.loop`, but decided for a batch at once.

Invariant: every URL taken from the frontier is at the workbench or was put back.
"""

from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, keep, u64
from fyke.core.config import Config
from fyke.core.visits import batch_of, visits_of
from fyke.frontier.frontier import Frontier
from fyke.frontier.ready import SPILLS
from fyke.hosts.politeness import Host, Workbench
from fyke.simulate import texts
from fyke.simulate.chance import I64
from fyke.simulate.web import Web

REFILL_ROWS = 4096
SPILLED_ROWS = 16_384  # looked through for hungry hosts at a time, at most
FEED_S = 1.0  # between two times
FOREVER = float("inf")


class Window:
    """Fills `bench` from `frontier` with pages of `web`."""

    def __init__(self, web: Web, frontier: Frontier, bench: Workbench, config: Config, rested_since: float) -> None:
        self._web = web
        self._frontier = frontier
        self._bench = bench
        self._low = config.frontier.window_visits // 2
        self._share = config.frontier.host_visits
        self._may_ask_at = rested_since + config.politeness.host_delay_s if rested_since else 0.0
        self._spilled = _spilled_by_host(frontier)  # how many URLs of each host wait in the spill queues
        self._hungry = set(self._spilled)  # hosts that run low while some do
        self._place = 0  # the spill queue looked through last
        self._feed_at = 0.0

    def __repr__(self) -> str:
        return f"Window({self._bench!r}, {len(self._spilled)} hosts overflowed, {len(self._hungry)} hungry)"

    @property
    def low(self) -> bool:
        """Whether the workbench should be given more."""
        return self._bench.visits < self._low

    def fill(self, now: float) -> None:
        """Give the workbench work when it runs low, and its hungry hosts what waits for them on disk."""
        ready = self._frontier.ready
        while self.low and ready.waiting:
            self._offer(self._frontier.take(REFILL_ROWS))
        if now < self._feed_at and self._bench.visits:
            return
        self._feed_at = now + FEED_S
        left = SPILLED_ROWS
        while self._hungry and left > 0 and self._bench.room:
            left -= self._feed()

    def served(self, host: Host) -> None:
        """A visit of `host`, which has overflowed, was taken: it may be hungry now."""
        if self._bench.hungry(host):
            self._hungry.add(host.key)

    def _offer(self, urls: pa.RecordBatch) -> None:
        """Let `urls` wait at their hosts, or where the rest of their host's is."""
        if self._spilled:
            waits = np.isin(u64(urls, "host"), _keys(self._spilled))
            self._spill(keep(urls, waits))
            urls = keep(urls, ~waits)
        self._admit(urls)

    def _admit(self, urls: pa.RecordBatch) -> None:
        """Let `urls` wait at their hosts as far as these have room; the rest on disk."""
        if not urls.num_rows:
            return
        fits = _nth_of_host(u64(urls, "host")) < self._share
        self._spill(keep(urls, ~fits))
        urls = keep(urls, fits)
        bench = self._bench
        addresses = self._web.addresses(texts.of_column(urls.column("url"))).tolist()
        excess = []
        for visit, address in zip(visits_of(urls), addresses, strict=True):
            host = bench.get(visit.host)
            if host is None and bench.room:
                host = bench.enter(visit.host, visit.url[texts.HOST], self._may_ask_at)
                host.overflowed = visit.host in self._spilled
                bench.add(host, visit)
                bench.settle(host, str(address), FOREVER)
            elif host is not None and bench.host_room(host) > 0:
                bench.add(host, visit)
            else:
                excess.append(visit)
        self._spill(batch_of(excess))

    # --- what was spilled

    def _spill(self, urls: pa.RecordBatch) -> None:
        """Let `urls` wait on disk until their hosts have room."""
        if not urls.num_rows:
            return
        self._frontier.ready.put_back(urls)
        for key, count in _counts(urls):
            self._spilled[key] = self._spilled.get(key, 0) + count
            host = self._bench.get(key)
            if host is not None:
                host.overflowed = True

    def _feed(self) -> int:
        """Read a stretch of one spill queue and let in the URLs of hungry hosts; how many were read."""
        place = self._next_place()
        batch = self._frontier.ready.take_spilled(place, REFILL_ROWS)
        hungry = np.isin(u64(batch, "host"), _keys(self._hungry))
        self._frontier.ready.put_back(keep(batch, ~hungry))
        fed = keep(batch, hungry)
        for key, count in _counts(fed):
            self._take_off(key, count)
        self._admit(fed)
        return max(1, int(batch.num_rows))

    def _next_place(self) -> int:
        """The next spill queue, in turn, in which a hungry host has URLs."""
        places = sorted({key % SPILLS for key in self._hungry})
        self._place = next((place for place in places if place > self._place), places[0])
        return self._place

    def _take_off(self, key: int, count: int) -> None:
        """`count` URLs of the host `key` were taken out of the spill queues. What finds no room is spilled anew."""
        self._hungry.discard(key)  # `served` notes it again
        self._spilled[key] -= count
        if not self._spilled[key]:
            del self._spilled[key]
            host = self._bench.get(key)
            if host is not None:
                host.overflowed = False
                self._bench.rest(host)


def _spilled_by_host(frontier: Frontier) -> dict[int, int]:
    spilled: dict[int, int] = {}
    for queue in frontier.ready.queues():
        if queue.name.startswith("spill"):
            for batch in queue.scan():
                for key, count in _counts(batch):
                    spilled[key] = spilled.get(key, 0) + count
    return spilled


def _nth_of_host(hosts: U64) -> I64:
    """How many rows of the same host come before each: int64[n]."""
    order = np.argsort(hosts, kind="stable")
    starts = np.flatnonzero(np.diff(hosts[order], prepend=~hosts[order[:1]]))
    nth = np.empty(len(hosts), np.int64)
    nth[order] = np.arange(len(hosts)) - np.repeat(starts, np.diff(starts, append=len(hosts)))
    return nth


def _counts(urls: pa.RecordBatch) -> Iterable[tuple[int, int]]:
    """The hosts of `urls` and how many each has."""
    keys, counts = np.unique(u64(urls, "host"), return_counts=True)
    return zip(keys.tolist(), counts.tolist(), strict=True)


def _keys(hosts: Collection[int]) -> U64:
    return np.fromiter(hosts, np.uint64, len(hosts))
