"""Origins whose robots.txt the fetcher is to bring: IRLbot's queue of asks, and those that must wait before it.

The robots gate puts each origin in once, and tells what became of it; the frontier takes out those whose turn it is
(`wanted`). Few hosts of a domain are asked at a time (`fyke.frontier.newcomers`). The others are `held`, except for
made-up hosts, by which probes find out whether the domain has a host for every name (`fyke.frontier.traps.probes`). If
name after name of a domain has no address, they wait longer (`fyke.frontier.nameless`).

Invariant: an origin that was put is here, or came out once.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, Mask, concat, keep, u64
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.nameless import ORIGINS, Nameless, robots_of
from fyke.frontier.newcomers import Newcomers

MOST_TRIALS = 1024
HELD_ROWS = 64  # held origins looked at in a turn
InDoubt = Callable[[pa.RecordBatch], Mask]  # for which of some visits (schema `URLS`) made-up hosts are feared


class Asks:
    """The origins to ask, on the files of a store; `saved` has the parts of `state()` at the checkpoint."""

    def __init__(self, store: Store, saved: Mapping[str, Any]) -> None:
        self._queue = DiskQueue(store, "robots-asks", ORIGINS, saved.get("asks"))
        self._held = DiskQueue(store, "robots-held", ORIGINS, saved.get("held"))
        self.nameless = Nameless(store, saved.get("nameless"))
        self._newcomers = Newcomers()
        self._trials: set[int] = set()  # origins of hosts that probes ask: they are not held
        self._looked = 0  # held origins looked at since a visit was over
        self._unreached: list[int] = []  # domains of origins not reached since the last `wanted`

    def __repr__(self) -> str:
        return f"Asks({len(self)} in line, {self.held} held, {self.nameless!r})"

    def __len__(self) -> int:
        """Number of origins whose robots.txt nobody has begun to bring."""
        return len(self._queue)

    @property
    def held(self) -> int:
        """Number of origins that wait for others of their domain."""
        return len(self._held)

    def put(self, origins: pa.RecordBatch) -> None:
        """Let `origins` (schema `ORIGINS`) wait for their turn."""
        self._queue.put(origins)

    def try_hosts(self, origins: Iterable[int]) -> None:
        """Note the keys of `origins` of hosts that probes ask."""
        if len(self._trials) < MOST_TRIALS:
            self._trials.update(origins)

    def note_unreached(self, domain: int) -> None:
        """Note that a host of `domain` was not reached."""
        self._unreached.append(domain)

    def wanted(
        self,
        most: int,
        now: float,
        in_doubt: InDoubt = lambda rules: np.zeros(rules.num_rows, np.bool_),
        *,
        all_of_a_domain: bool = False,
    ) -> pa.RecordBatch:
        """Return robots.txt files to bring now (schema `URLS`, kind `RULES`), `most` at most; each is handed out once.
        `in_doubt` says which of them are at domains whose hosts bring little. `all_of_a_domain`: nothing else is left
        to fetch, so no host waits for others of its domain."""
        wanted = []
        if self._unreached:
            self.over(np.array(self._unreached, np.uint64), asked=False)
            self._unreached.clear()
        if self._newcomers.forget(now):
            self._looked = 0
        for queue in (self._queue, self._held):
            if most <= 0 or (queue is self._held and self._looked >= len(queue) and not all_of_a_domain):
                continue
            if (batch := queue.get(most if queue is self._queue else min(most, HELD_ROWS))) is not None:
                wanted.append(self._begin(self.nameless.admit(batch, now), in_doubt, anyway=all_of_a_domain))
                most -= wanted[-1].num_rows
        if (batch := self.nameless.get(most, now)) is not None:
            wanted.append(self._begin(batch, in_doubt, anyway=all_of_a_domain))
        return concat(wanted)

    def _begin(self, asked: pa.RecordBatch, in_doubt: InDoubt, *, anyway: bool) -> pa.RecordBatch:
        """Return the robots.txt files (schema `URLS`) of the origins that begin now; the others are held."""
        rules = robots_of(asked)
        trials = self._trials.intersection(asked.column("key").to_pylist())
        begun = self._newcomers.begin(rules, in_doubt) | anyway
        begun |= np.isin(u64(asked, "key"), np.fromiter(trials, np.uint64, len(trials)))
        self._trials -= trials
        self._held.put(keep(asked, ~begun))
        self._looked = 0 if begun.any() else self._looked + asked.num_rows
        return keep(rules, begun)

    def over(self, domains: U64, *, asked: bool = True) -> None:
        """Note that visits to these domains (uint64[n], with repeats) are over, or, if not `asked`, that their hosts
        could not be asked."""
        if self._newcomers.over(domains, asked=asked):
            self._looked = 0

    def forget(self) -> None:
        """Drop all origins after a restart, because unanswered ones are put again."""
        self._queue.destroy()
        self._held.destroy()
        self.nameless.destroy()

    def state(self) -> dict[str, Any]:
        return {"asks": self._queue.state(), "held": self._held.state(), "nameless": self.nameless.state()}

    def close(self) -> None:
        for owned in (self._queue, self._held, self.nameless):
            owned.close()
