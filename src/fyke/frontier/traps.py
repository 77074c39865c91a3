"""Traps: URLs whose like bring no new text. They wait here, behind everything else, and none is dropped.

Which these are is the guard's to say (`fyke.frontier.guard`). URLs are diverted before the rules of their hosts are
asked for, and once more as they go out, since more is known by then; so whatever leaves here passes the robots gate.

What waits goes on in four ways. A shape that brings something after all is barren no more: for that some are let
through as if they were none, one in `LET_THROUGH` of those that are found, but no more than what was read of their
domain pays for (`fyke.frontier.tally`). Then what waits of that kind is *cleared*. When nothing else is left but what
sleeps, all of it is *released*. It would wait for ever beside sites that have no end, so it has a *share* of the
visits where most are to hosts that grow, or to few domains while as many others do nothing but wait: one for each of
them, several where few wait beside hosts that grow, and the fewer the more waits of each domain. Visits to what was let
go do not count there: each would let go another.

Who goes first is who has the least that ever waited: a site that was wrongly taken for a trap has some pages here,
and they have an end. What goes on in vain puts its domain behind others (`fyke.frontier.tally`).

Invariant: a URL that was diverted waits here until it is handed out or goes on.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import EMPTY, U64, URLS, Mask, keep, u64
from fyke.core.sorting import nth_of_each
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.alike import own_shapes
from fyke.frontier.guard import TrapGuard
from fyke.frontier.probes import Probes
from fyke.frontier.tally import TrapTally
from fyke.frontier.yields import MOST_SHAPES

LET_THROUGH = 8
RELEASED = 1024  # and more, that are known to have been let go
ROWS = 8192  # that are looked at in a turn, at most
LEAST_ROWS = 256  # and at least
LOOKS = 64  # for each that may go
EACH = 8  # of a domain that go at a time, when nothing else is left: so many in vain put it behind others
LATELY = 64  # visits
MOSTLY = 0.8  # of these, so many to hosts that grow
SHARE = 16  # no fewer than one in so many beside hosts that grow, or the square of that beside others
MOST_EACH = 8  # for each visit to hosts that grow, where fewer wait than `SHARE`
FEW_ACTIVE = 4  # domains of these visits
LEAST_OWED, MOST_OWED = 16, 64.0


class Traps:
    """The guard, and the queue of what waits."""

    def __init__(
        self,
        store: Store,
        after: int,
        state: Mapping[str, Any] | None = None,
        most: int = MOST_SHAPES,
        *,
        probes: bool = False,
    ) -> None:
        """`after` so many pages without new text a shape is barren; 0: none ever is, and nobody is asked. `probes`:
        whether hosts are asked for pages that cannot be there; domains are for hosts in any case."""
        saved = state or {}
        self._queue = DiskQueue(store, "traps", URLS, saved.get("queue"))
        self._guard = TrapGuard(store, after, saved, most, probes=probes)
        self._domains = TrapTally(store, saved.get("domains"))
        self._released: set[int] = set()  # lately, and for good
        self._released_before: set[int] = set()
        self._owed = 0.0  # URLs that wait, for visits to hosts that grow
        self._lately: deque[int] = deque(maxlen=LATELY)  # domains of these visits
        self._grown = 0.0  # of the latest visits, the share of these
        self._left = int(saved.get("left", 0))  # rows that are still to be looked at, since less is barren
        self._looks = int(saved.get("looks", 0))  # that are granted
        if (not after or self.probes.forgave) and len(self._queue):
            self._left = self._looks = len(self._queue)

    def __repr__(self) -> str:
        return f"Traps({len(self)} URLs, {self._guard!r})"

    def __len__(self) -> int:
        """URLs that wait."""
        return len(self._queue)

    @property
    def barren(self) -> int:
        """Shapes that bring nothing, and places, hosts and domains where all is made up."""
        return self._guard.barren

    @property
    def probes(self) -> Probes:
        """What is asked of hosts that grow."""
        return self._guard.probes

    def learn(self, judged: pa.RecordBatch) -> None:
        """Pages were read, and redirects followed (schema `JUDGED`)."""
        self._domains.read(u64(judged, "domain"))
        went_on = keep(
            judged, self._were_let_go(u64(judged, "key")) & judged.column("fresh").is_valid().to_numpy(False)
        )
        self._domains.went_on(u64(went_on, "domain"), went_on.column("fresh").to_numpy(False).astype(np.bool_))
        if self._guard.learn(judged):
            self._left = len(self._queue)

    def are_hosts_in_doubt(self, urls: pa.RecordBatch) -> Mask:
        """At which of `urls` (n rows) hosts like theirs, of their domain, lately brought little: bool[n]."""
        return self._guard.are_hosts_in_doubt(urls)

    def take_accused(self) -> set[int]:
        """Hosts and domains of shapes that became barren since this was last asked: what is out of them may be one."""
        return self._guard.take_accused()

    def divert(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Let those of `urls` wait that are traps. Returns the others."""
        reasons = self._reasons(urls)
        traps = reasons >= 0
        self._try_some(urls, traps, reasons)
        if not traps.any():
            return urls
        aside = keep(urls, traps)
        self._queue.put(aside)
        self._domains.wait(u64(aside, "domain"))
        self.probes.put_aside(u64(aside, "host"), u64(aside, "domain"))
        self._guard.learn_of_traps(aside)
        self._looks += aside.num_rows  # one for each URL that came to wait: a shape that wavers costs no more
        return keep(urls, ~traps)

    def _reasons(self, urls: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Why each of `urls` (n rows) is a trap that was not let go, as the guard says; -1 where none is: int64[n]."""
        reasons = self._guard.reasons(urls)
        if (reasons >= 0).any():
            reasons[self._were_let_go(u64(urls, "key"))] = -1
        return reasons

    def _were_let_go(self, keys: U64) -> Mask:
        """Which of the URLs with these keys (uint64[n]) are no traps for a while: bool[n]."""
        either = ((key in self._released) or (key in self._released_before) for key in keys.tolist())
        return np.fromiter(either, np.bool_, len(keys))

    def _try_some(self, urls: pa.RecordBatch, traps: Mask, reasons: npt.NDArray[np.int64]) -> None:
        """Let through those of the `traps` among `urls` (bool[n], changed) on which what is barren is tried again, and
        the first of their places, by the `reasons` (int64[n]) for which they are traps."""
        first = np.flatnonzero(self._guard.go_first(urls, reasons))
        rows = np.flatnonzero(traps & (u64(urls, "key") % np.uint64(LET_THROUGH) == 0))
        some = urls.take(pa.array(rows))
        again = self._domains.may_try(u64(some, "domain"), own_shapes(some))
        tried = np.union1d(first, rows[again])
        traps[tried] = False
        self._let_go(u64(urls, "key")[tried])

    def _let_go(self, keys: U64) -> None:
        """URLs with these keys (uint64[n]) are no traps from now on, for a while."""
        if len(self._released) >= RELEASED:
            self._released, self._released_before = set(), self._released
        self._released.update(keys.tolist())

    def explain(self, urls: pa.RecordBatch) -> str:
        """Why the URL in the first row is a trap, in words; empty when it is none."""
        return self._guard.explain(urls)

    # --- what goes on

    def cleared(self) -> pa.RecordBatch:
        """Of what waits, some that is no trap any more (schema `URLS`); a few rows are looked at in each turn."""
        rows = min(ROWS, self._left, self._looks)
        batch = self._queue.get(rows) if rows else None
        if batch is None:
            return EMPTY
        self._left -= batch.num_rows
        self._looks -= batch.num_rows
        traps = self._reasons(batch) >= 0
        self._queue.put(keep(batch, traps))
        self._domains.go_on(u64(batch, "domain")[~traps])
        return keep(batch, ~traps)

    def release(self, rows: int, each: int = EACH) -> pa.RecordBatch:
        """Some that wait (schema `URLS`), `rows` at most; they are let through. What waits of domains of which little
        does goes alone, since it has an end, those with the least first; else `each` of those with less than others.
        Of all that waits a part is looked at, so that it may be none."""
        batch = self._queue.get(min(ROWS, max(LEAST_ROWS, LOOKS * rows)))
        self._left = min(self._left, len(self))
        if batch is None:
            return EMPTY
        domains = u64(batch, "domain")
        goes = self._domains.are_few(domains)
        if each and not goes.any():
            goes = self._domains.are_fewest(domains) & (nth_of_each(domains) < each)
        first = np.flatnonzero(goes)
        first = first[np.argsort(self._domains.waited(domains[first]), kind="stable")]
        goes[first[rows:]] = False
        self._queue.put(keep(batch, ~goes))
        batch = keep(batch, goes)
        self._domains.go_on(u64(batch, "domain"))
        self._let_go(u64(batch, "key"))
        return batch

    def visited(self, keys: U64, hosts: U64, domains: U64) -> None:
        """Visits to these URLs, hosts and domains (uint64[n] each) are over."""
        self.probes.visited(hosts, domains)
        own = ~self._were_let_go(keys)
        if len(self) and own.any():
            grown = float(self.probes.grown(hosts[own], domains[own]).mean())
            self._grown += (grown - self._grown) * min(1.0, own.sum() / LATELY)
            self._lately.extend(domains[own].tolist())
            self._owed = min(self._owed + own.sum() * self._rate(), MOST_OWED)

    def _rate(self) -> float:
        """How many URLs that wait go on for each visit to others."""
        active = set(self._lately)
        grow = self._grown >= MOSTLY
        if not grow and (len(active) > FEW_ACTIVE or self._domains.idle(active) < len(active)):
            return 0.0
        least, most = (1 / SHARE, MOST_EACH) if grow else (1 / SHARE**2, 1)
        return min(max(SHARE / max(self._domains.least, 1), least), most)

    def share(self) -> pa.RecordBatch:
        """What goes out of what waits (schema `URLS`), beside others."""
        rows = int(self._owed)
        batch = self.release(rows, each=0) if rows >= LEAST_OWED else EMPTY
        self._owed -= batch.num_rows
        return batch

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Every URL that waits here."""
        return self._queue.scan()

    def state(self) -> dict[str, Any]:
        return {
            "queue": self._queue.state(),
            "left": self._left,
            "looks": self._looks,
            "domains": self._domains.state(),
            **self._guard.state(),
        }

    def close(self) -> None:
        self._queue.close()
