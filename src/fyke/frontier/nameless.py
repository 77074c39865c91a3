"""Origins of domains where one name after the other has no address: they wait here for their domain's turn.

A page can name any number of hosts below somebody's domain. Each costs the domain's name servers a look-up, and those
that do not exist cost nothing else, so no rest of a host or address slows them. So after `IN_VAIN` names of a domain in
a row without an address, its further names are looked up one every `PAUSE_S`; after `HOPELESS`, each time after twice
as long a rest, up to `MOST_REST_S`. A name that has an address ends that. Until their turn the origins wait on disk,
and their URLs with those whose rules are not known. A crawl with nothing else left ends once the rests are longer than
it waits.

The robots gate asks before it has the rules of an origin brought, and tells what became of the names.

Bounded: what is known of `MOST_DOMAINS` domains, and `ROWS` rows at a time. Invariant: an origin that was put is here,
or came out once.
"""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, Kind, Mask, keep, u64, url_batch
from fyke.core.urls import locate, robots_url
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store

IN_VAIN = 16
PAUSE_S = 0.25
HOPELESS = 1024
MOST_REST_S = 86400.0
MOST_DOMAINS = 16_384
ROWS = 2048  # looked at every `PAUSE_S`
NOTHING = (0, 0.0)  # is known of a domain
ORIGINS = pa.schema([("key", pa.uint64()), ("origin", pa.binary())])
WAITING = pa.schema([*ORIGINS, ("domain", pa.uint64())])


def rest_s(names: int) -> float:
    """Return the least seconds between two look-ups below a domain of which `names` in a row had no address."""
    if names < IN_VAIN:
        return 0.0
    return min(PAUSE_S * 2.0 ** min(max(0, names - HOPELESS), 64), MOST_REST_S)


class Nameless:
    """The names in vain of each domain, and the origins that wait for them. Times are unix seconds."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._queue = DiskQueue(store, "robots-nameless", WAITING, saved.get("queue"))
        # By domain: how many names in a row had no address, and until when the next must wait.
        self._in_vain = domains_in_vain(saved)
        self._since = inf  # the first origin has waited
        self._look_at = 0.0 if len(self._queue) else inf  # not before
        self._left = 0  # rows to look at until all were
        self._soonest = inf  # turn of those looked at

    def __repr__(self) -> str:
        return f"Nameless({len(self)} origins, {len(self._in_vain)} domains)"

    def __len__(self) -> int:
        """Number of origins that wait."""
        return len(self._queue)

    @property
    def due(self) -> float:
        """Time of the first origin's turn; infinite without any."""
        return self._look_at if len(self) else inf

    def tell(self, domain: int, *, found: bool) -> None:
        """Note whether a name below `domain` has an address."""
        names, until = self._in_vain.pop(domain, NOTHING)
        if not found:
            self._in_vain[domain] = names + 1, until
            if len(self._in_vain) > MOST_DOMAINS:
                del self._in_vain[next(iter(self._in_vain))]
        elif names >= IN_VAIN:
            self._look_at = 0.0

    def admit(self, origins: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Return those of `origins` (schema `ORIGINS`) that may be asked now. The others wait here."""
        if not self._in_vain:
            return origins
        domains = u64(robots_of(origins), "domain")
        admitted = self._turns(domains, len(domains), now)
        if not admitted.all():
            waiting = pa.RecordBatch.from_arrays([*origins.columns, pa.array(domains)], schema=WAITING)
            self._wait(keep(waiting, ~admitted))
            self._since = min(self._since, now)
        return keep(origins, admitted)

    def _turns(self, domains: U64, most: int, now: float) -> Mask:
        """Return for which names below `domains` it is the turn, `most` at most: bool[n]. After each the domain
        rests."""
        turns = np.zeros(len(domains), np.bool_)
        for row, domain in enumerate(domains.tolist()):
            names, until = self._in_vain.get(domain, NOTHING)
            turns[row] = until <= now and most > 0
            most -= bool(turns[row])
            if turns[row] and names >= IN_VAIN:
                self._in_vain[domain] = names, now + rest_s(names)
        return turns

    def _wait(self, waiting: pa.RecordBatch) -> None:
        self._queue.put(waiting)
        turns = (self._in_vain.get(domain, NOTHING)[1] for domain in set(u64(waiting, "domain").tolist()))
        self._soonest = min(self._soonest, *turns)
        self._look_at = min(self._look_at, self._soonest)

    def get(self, most: int, now: float) -> pa.RecordBatch | None:
        """Take out origins whose turn it is (schema `ORIGINS`), `most` at most; None if none was looked at."""
        if most <= 0 or now < self.due:
            return None
        if self._left <= 0:
            self._left, self._soonest = len(self), inf
        self._look_at = now + PAUSE_S
        batch = self._queue.get(min(ROWS, self._left))
        assert batch is not None
        self._left -= batch.num_rows
        goes = self._turns(u64(batch, "domain"), most, now)
        if not goes.all():
            self._wait(keep(batch, ~goes))
        if self._left <= 0:
            self._look_at = self._soonest
        return keep(batch, goes).select(ORIGINS.names)

    def renew(self, before: float) -> None:
        """Drop all origins if some wait since `before` or longer, because these are asked for again."""
        if self._since <= before:
            self.destroy()

    def destroy(self) -> None:
        """Drop all origins."""
        self._queue.destroy()
        self._since, self._look_at, self._left, self._soonest = inf, inf, 0, inf

    def state(self) -> dict[str, Any]:
        domains = [[key, *record] for key, record in self._in_vain.items() if record[0] >= IN_VAIN]
        return {"queue": self._queue.state(), "domains": domains}

    def close(self) -> None:
        self._queue.close()


def robots_of(origins: pa.RecordBatch) -> pa.RecordBatch:
    """Return the robots.txt files (schema `URLS`, kind `RULES`) of `origins` (schema `ORIGINS`)."""
    names = origins.column("origin").to_pylist()
    return url_batch([locate(robots_url(origin.decode())) for origin in names], kind=Kind.RULES)


def domain_of(origin: str) -> int:
    """Return the key of the domain of `origin`."""
    return locate(robots_url(origin)).domain


def domains_in_vain(state: Mapping[str, Any]) -> dict[int, tuple[int, float]]:
    """Return how many names in a row had no address, and until when the next waits, by the domains of a saved state
    whose names wait."""
    return {int(key): (int(names), float(until)) for key, names, until in state.get("domains", [])}
