"""URLs of hosts that rest for long: they wait here, on disk, by the time of waking, and not in the window.

The window holds what may be fetched soon. A host that asks for an hour, fails, or has no name for now sleeps: the
fetcher gives back its visits with the time of waking, and URLs found meanwhile are diverted here. So sleeping hosts
keep nobody else's pages out of memory, however many they are (IRLbot, sections 1.2 and 1.3).

The waiting rows are a timing wheel (Varghese and Lauck 1987) of queues: level n has rows that wake in 2^n to 2^(n+1)
times `STEP_S`. Before its first row could be late, a level is read through, and its rows go down to the levels where
they belong by then. So a row moves about as often as there are levels below it, whatever servers ask for, and wakes
`STEP_S` late at most.

A redirect may ask to wait before its target is requested (RFC 9110, 10.2.3). The target sleeps by itself, from when it
would go out. It is known by the page it was found on: a URL that others named first waits for no redirect.

Settings may say when hosts wake. When they change, all rows are roused: they come out whatever their time, and the
fetcher sends back those that must sleep on.

Invariants: a row that was put is here until its time, or until it is roused, and then comes out once. At most
`MOST_HOSTS` hosts are known to sleep; rows of others are handed out, and come back. Of more than `MOST_DELAYED`
redirects that ask to wait the oldest are forgotten.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import URLS, keep, u64
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

WAITING = pa.schema([*URLS, ("until", pa.float64())])  # unix seconds
STEP_S = 2.0
LEVELS = 24  # the last is of rows that wake in half a year or later
MOST_HOSTS = 100_000  # remembered as asleep
MOST_DELAYED = 10_000
ROWS = 8192
MOST_ROWS = 65_536  # read in one turn


class Asleep:
    """The URLs that wait for their hosts to wake. Times are unix seconds."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        queues, earliest, roused = (saved.get(key, {}) for key in ("queues", "earliest", "roused"))
        names = [_name(n) for n in range(LEVELS)]
        self._levels = [
            _Level(store, n, queues.get(name), earliest.get(name, inf), roused.get(name, 0))
            for n, name in enumerate(names)
        ]
        self._until: dict[int, float] = {}  # of hosts that are known to sleep
        self._delayed = {int(via): float(until) for via, until in saved.get("delayed", {}).items()}

    def __repr__(self) -> str:
        return f"Asleep({len(self)} URLs, {len(self._until)} hosts)"

    def __len__(self) -> int:
        """Number of URLs that wait."""
        return sum(len(level.queue) for level in self._levels)

    @property
    def wakes_at(self) -> float:
        """Time when the first URL may be fetched; infinite without any."""
        return min(level.earliest for level in self._levels)

    def holds(self, host: int, now: float) -> bool:
        """Return whether `host` is known to sleep."""
        return self._until.get(host, 0.0) > now

    def sleep(self, hosts: Mapping[int, float], now: float) -> None:
        """Let these hosts sleep, each until its time."""
        if len(self._until) + len(hosts) > MOST_HOSTS:
            self._until = {host: until for host, until in self._until.items() if until > now}
            if len(self._until) + len(hosts) > MOST_HOSTS:
                self._until.clear()
        self._until.update(hosts)

    def delay(self, delayed: pa.RecordBatch, now: float) -> None:
        """Let the targets of redirects sleep, each until its time (schema `DELAYED`), once they would go out."""
        if delayed.num_rows:
            self._delayed = {via: until for via, until in self._delayed.items() if until > now}
            self._delayed.update(zip(u64(delayed, "via").tolist(), _until(delayed).tolist(), strict=True))
            while len(self._delayed) > MOST_DELAYED:
                del self._delayed[next(iter(self._delayed))]

    def put(self, waiting: pa.RecordBatch, now: float) -> None:
        """Let rows (schema `WAITING`) wait, each until its time."""
        if waiting.num_rows:
            levels = _levels_of(_until(waiting) - now)
            for n in np.unique(levels).tolist():
                self._levels[n].put(keep(waiting, levels == n))

    def divert(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Put those of `urls` aside whose hosts are known to sleep, and delayed targets. Returns the others."""
        if not (self._until or self._delayed) or not urls.num_rows:
            return urls
        until = np.array([self._until.get(host, 0.0) for host in u64(urls, "host").tolist()])
        if self._delayed:
            until = np.maximum(until, [self._delayed.get(via, 0.0) for via in u64(urls, "via").tolist()])
        sleep = until > now
        if sleep.any():
            columns = [*keep(urls, sleep).columns, pa.array(until[sleep])]
            self.put(pa.RecordBatch.from_arrays(columns, schema=WAITING), now)
        return keep(urls, ~sleep)

    def rouse(self) -> None:
        """Let all rows come out, whatever their time."""
        for level in self._levels:
            if len(level.queue):
                level.roused, level.earliest = len(level.queue), 0.0
        self._until.clear()

    def woken(self, now: float) -> Iterator[pa.RecordBatch]:
        """Yield URLs whose time has come (schema `URLS`)."""
        budget = MOST_ROWS
        for level in reversed(self._levels):  # rows that go down are looked at again below
            for batch in level.read(now, budget):
                budget -= batch.num_rows
                awake = _until(batch) <= now
                awake[: level.roused] = True
                level.roused = max(0, level.roused - batch.num_rows)
                self.put(keep(batch, ~awake), now)
                if awake.any():
                    yield keep(batch, awake).select(URLS.names)

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield every URL that waits here."""
        for level in self._levels:
            for batch in level.queue.scan():
                yield batch.select(URLS.names)

    def state(self) -> dict[str, Any]:
        return {
            "queues": {level.queue.name: level.queue.state() for level in self._levels},
            "earliest": {level.queue.name: level.earliest for level in self._levels if len(level.queue)},
            "roused": {level.queue.name: level.roused for level in self._levels if level.roused},
            "delayed": {str(via): until for via, until in self._delayed.items()},
        }

    def close(self) -> None:
        for level in self._levels:
            level.queue.close()


class _Level:
    """The queue of rows that wake in 2^n to 2^(n+1) steps, the first at `earliest`. Its first `roused` rows come out
    whatever their time."""

    def __init__(self, store: Store, n: int, state: dict[str, Any] | None, earliest: float, roused: int) -> None:
        self.queue = DiskQueue(store, _name(n), WAITING, state)
        self.earliest = earliest
        self.roused = roused
        self._ahead_s = STEP_S * 2.0**n / 2 if n else -STEP_S / 2  # how long before its first row's time it is read
        self._left = 0  # rows of the present reading

    def put(self, batch: pa.RecordBatch) -> None:
        self.queue.put(batch)
        self.earliest = min(self.earliest, float(_until(batch).min()))

    def read(self, now: float, most: int) -> Iterator[pa.RecordBatch]:
        """Take out all rows, about `most` in one turn, once the first of them belongs on a level below."""
        if not self._left:
            if not len(self.queue) or now < self.earliest - self._ahead_s:
                return
            self._left, self.earliest = len(self.queue), inf
        while self._left and most > 0 and (batch := self.queue.get(min(ROWS, self._left))) is not None:
            self._left -= batch.num_rows
            most -= batch.num_rows
            yield batch
        if self._left:
            self.earliest = now  # the rest is read in the next turn


def _name(n: int) -> str:
    return f"asleep-{n:02}"


def _until(batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
    return batch.column("until").to_numpy()  # type: ignore[no-any-return]


def _levels_of(wait_s: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return the level of rows that wake in `wait_s` seconds: [n]."""
    steps = np.maximum(wait_s / STEP_S, 1.0)
    return np.minimum(np.log2(steps), LEVELS - 1).astype(np.intp)
