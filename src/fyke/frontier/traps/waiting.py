"""Traps: URLs whose like bring no new text. They wait here, behind everything else, and none is dropped.

The guard says which URLs are traps (`guard`). URLs are diverted before the rules of their hosts are asked for, and
again as they go out, because more is known by then. Every URL that leaves here passes the robots gate.

A trap goes on in one of four ways.
- *Tried*: so that the guard notices if a barren shape brings new text after all, one in `LET_THROUGH` of the traps that
  are found does not wait, as long as other pages of its domain pay for it (`tally`).
- *Cleared*: its shape is barren no longer.
- *Released*: nothing else is left except for URLs that sleep.
- *Shared*: traps have a share of the visits if most visits go to hosts that grow (`probes`), or to few domains while as
  many others only wait; otherwise they would wait for ever. The share is larger beside hosts that grow, and if few URLs
  of some domain ever waited. Visits to URLs that were let go do not count, because each would let another one go.

The domains with the fewest URLs that ever waited go first: a site that was wrongly taken for a trap has few pages here,
and they have an end. A domain falls behind others if its pages that were let go bring nothing.

Invariant: a URL that was put aside waits here until it goes on.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, U64, URLS, Mask, concat, keep, u64
from fyke.core.sorting import nth_of_each
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.traps.alike import own_shapes
from fyke.frontier.traps.guard import Reasons, TrapGuard, Why
from fyke.frontier.traps.probes import Probes
from fyke.frontier.traps.tally import TrapTally
from fyke.frontier.traps.yields import MOST_SHAPES

LET_THROUGH = 8
EXEMPTED = 1024  # keys of URLs let go lately that are remembered, at least
ROWS = 8192  # rows of which some are released in a turn, at most
LOOK_ROWS = 256  # rows that the guard looks at together
LOOK_BYTES = 128 << 10  # of URLs that it looks at in a step: a quarter of a millisecond for each of the longest
LEAST_ROWS = 256  # rows looked at to release some, at least
LOOKS = 64  # rows looked at for each that may go
EACH = 8  # URLs of a domain released at a time: if all bring nothing, it falls behind others
LATELY = 64  # visits
MOSTLY = 0.8  # share of the latest visits to hosts that grow
SHARE = 16  # visits to others for each trap, at most, beside hosts that grow; squared beside few domains
MOST_EACH = 8  # traps for each visit to others, at most, beside hosts that grow, if some claim is below `SHARE`
FEW_ACTIVE = 4  # domains of the latest visits
LEAST_OWED, MOST_OWED = 16, 64.0


def look_bytes(urls: pa.RecordBatch) -> int:
    """Return the bytes of `urls` that the guard looks at."""
    return int(urls.column("url").nbytes)


def portions(urls: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield all `urls`, as many at a time as the guard may look at in a step."""
    begin = 0
    while begin < urls.num_rows:
        end = begin + LOOK_ROWS
        while end < urls.num_rows and look_bytes(urls.slice(begin, end + LOOK_ROWS - begin)) <= LOOK_BYTES:
            end += LOOK_ROWS
        yield urls.slice(begin, end - begin)
        begin = end


class Traps:
    """The guard, and the queue of waiting URLs."""

    def __init__(
        self,
        store: Store,
        after: int,
        state: Mapping[str, Any] | None = None,
        most: int = MOST_SHAPES,
        *,
        probes: bool = False,
    ) -> None:
        """`after`: pages without new text that make a shape barren; 0: no shape is ever barren, and nothing is probed.
        `probes`: whether hosts are probed; domains are probed in any case."""
        saved = state or {}
        self._queue = DiskQueue(store, "traps", URLS, saved.get("queue"))
        self._guard = TrapGuard(store, after, saved, most, probes=probes)
        self._domains = TrapTally(store, saved.get("domains"))
        self._exempted: set[int] = set()  # keys that were let go lately
        self._exempted_before: set[int] = set()
        self._owed = 0.0  # URLs that are due as the share of traps
        self._lately: deque[int] = deque(maxlen=LATELY)  # domains of the latest visits to URLs not let go
        self._grown = 0.0  # share of the latest visits to hosts that grow
        self._left = int(saved.get("left", 0))  # rows still to be looked at, because fewer shapes are barren
        self._looks = int(saved.get("looks", 0))  # rows that may be: one for each URL put aside, and for each visit
        if (not after or self.probes.forgave) and len(self._queue):
            self._left = self._looks = len(self._queue)

    def __repr__(self) -> str:
        return f"Traps({len(self)} URLs, {self._guard!r})"

    def __len__(self) -> int:
        """Number of URLs that wait."""
        return len(self._queue)

    @property
    def barren(self) -> int:
        """Number of barren shapes, and of places, hosts and domains that make pages up."""
        return self._guard.barren

    @property
    def probes(self) -> Probes:
        """The probes of hosts that grow."""
        return self._guard.probes

    def learn(self, judged: pa.RecordBatch) -> None:
        """Learn from pages that were read, and redirects that were followed (schema `JUDGED`)."""
        self._domains.note_read(u64(judged, "domain"))
        let_go = keep(judged, self._are_exempt(u64(judged, "key")) & judged.column("fresh").is_valid().to_numpy(False))
        self._domains.note_let_go(u64(let_go, "domain"), let_go.column("fresh").to_numpy(False).astype(np.bool_))
        if self._guard.learn(judged):
            self._left = len(self._queue)

    def are_hosts_in_doubt(self, urls: pa.RecordBatch) -> Mask:
        """Return which of `urls` (n rows) are at hosts in doubt (`alike`): bool[n]."""
        return self._guard.are_hosts_in_doubt(urls)

    def take_accused(self) -> set[int]:
        """Return hosts and domains with shapes that became barren, and those convicted, since the last call: their
        visits that are out may be traps."""
        return self._guard.take_accused()

    def divert(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Put the traps among `urls` aside. Returns the other rows."""
        reasons = self._reasons(urls)
        traps = reasons["why"] != Why.NO_TRAP
        self._try_some(urls, traps, reasons)
        if not traps.any():
            return urls
        aside = keep(urls, traps)
        self._queue.put(aside)
        self._domains.note_waiting(u64(aside, "domain"))
        self.probes.note_put_aside(u64(aside, "host"), u64(aside, "domain"))
        self._guard.learn_of_traps(aside)
        self._looks += aside.num_rows  # so that a shape that wavers costs no more
        return keep(urls, ~traps)

    def _reasons(self, urls: pa.RecordBatch) -> Reasons:
        """Return the guard's reason why each of `urls` (n rows) is a trap, none if it was let go: [n], dtype
        `REASON`."""
        reasons = self._guard.reasons(urls)
        if (reasons["why"] != Why.NO_TRAP).any():
            reasons["why"][self._are_exempt(u64(urls, "key"))] = Why.NO_TRAP
        return reasons

    def _are_exempt(self, keys: U64) -> Mask:
        """Return which `keys` (uint64[n]) were let go lately, and so count as no traps for now: bool[n]."""
        either = ((key in self._exempted) or (key in self._exempted_before) for key in keys.tolist())
        return np.fromiter(either, np.bool_, len(keys))

    def _try_some(self, urls: pa.RecordBatch, traps: Mask, reasons: Reasons) -> None:
        """Let some of the `traps` among `urls` (bool[n], changed in place) through: those that try a barren shape
        again, and, by their `reasons` ([n], dtype `REASON`), the first variants in some places."""
        first = np.flatnonzero(self._guard.go_first(urls, reasons))
        rows = np.flatnonzero(traps & (u64(urls, "key") % np.uint64(LET_THROUGH) == 0))
        some = urls.take(pa.array(rows))
        again = self._domains.may_try(u64(some, "domain"), own_shapes(some))
        tried = np.union1d(first, rows[again])
        traps[tried] = False
        self._exempt(u64(urls, "key")[tried])

    def _exempt(self, keys: U64) -> None:
        """Count the URLs with these keys (uint64[n]) as no traps for a while."""
        if len(self._exempted) >= EXEMPTED:
            self._exempted, self._exempted_before = set(), self._exempted
        self._exempted.update(keys.tolist())

    def explain(self, urls: pa.RecordBatch) -> str:
        """Return in words why the URL in the first row is a trap; empty if it is not."""
        return self._guard.explain(urls)

    # --- leaving

    def take_cleared(self) -> pa.RecordBatch:
        """Take out and return some waiting URLs that are no traps any more (schema `URLS`). A call looks at
        `LOOK_BYTES` of them, or at `LOOK_ROWS` rows if those have more."""
        cleared = []
        left_bytes = LOOK_BYTES
        while left_bytes > 0 and (rows := min(LOOK_ROWS, self._left, self._looks)):
            batch = self._queue.get(rows)
            if batch is None:
                break
            left_bytes -= look_bytes(batch)
            self._left -= batch.num_rows
            self._looks -= batch.num_rows
            traps = self._reasons(batch)["why"] != Why.NO_TRAP
            self._queue.put(keep(batch, traps))
            self._domains.note_gone(u64(batch, "domain")[~traps])
            cleared.append(keep(batch, ~traps))
        return concat(cleared)

    def release(self, rows: int, each: int = EACH) -> pa.RecordBatch:
        """Take out and return `rows` waiting URLs at most (schema `URLS`). URLs of domains with small claims go alone,
        those of the smallest first, because they have an end (`TrapTally`). If there are none, `each` URLs of the
        domains with the smallest claims go. Looks at a part of the queue only, and so may return nothing."""
        batch = self._queue.get(min(ROWS, max(LEAST_ROWS, LOOKS * rows)))
        self._left = min(self._left, len(self))
        if batch is None:
            return EMPTY
        domains = u64(batch, "domain")
        goes = self._domains.have_small_claims(domains)
        if each and not goes.any():
            goes = self._domains.have_smallest_claims(domains) & (nth_of_each(domains) < each)
        first = np.flatnonzero(goes)
        first = first[np.argsort(self._domains.claims(domains[first]), kind="stable")]
        goes[first[rows:]] = False
        self._queue.put(keep(batch, ~goes))
        batch = keep(batch, goes)
        self._domains.note_gone(u64(batch, "domain"))
        self._exempt(u64(batch, "key"))
        return batch

    def note_visited(self, keys: U64, hosts: U64, domains: U64) -> Mask:
        """Note that visits to these URLs, hosts and domains (uint64[n] each) are over. Returns which of the hosts have
        no end in sight: bool[n]."""
        endless = self.probes.note_visited(hosts, domains)
        self._looks = min(self._looks + len(keys), len(self._queue))
        own = ~self._are_exempt(keys)
        if len(self) and own.any():
            grown = float(self.probes.grown(hosts[own], domains[own]).mean())
            self._grown += (grown - self._grown) * min(1.0, own.sum() / LATELY)
            self._lately.extend(domains[own].tolist())
            self._owed = min(self._owed + own.sum() * self._rate(), MOST_OWED)
        return endless

    def _rate(self) -> float:
        """Return how many waiting URLs leave for each visit to URLs that were not let go."""
        active = set(self._lately)
        grow = self._grown >= MOSTLY
        if not grow and (len(active) > FEW_ACTIVE or self._domains.others_waiting(active) < len(active)):
            return 0.0
        least, most = (1 / SHARE, MOST_EACH) if grow else (1 / SHARE**2, 1)
        return min(max(SHARE / max(self._domains.least, 1), least), most)

    def take_share(self) -> pa.RecordBatch:
        """Take out and return waiting URLs that are due as the share of traps (schema `URLS`)."""
        rows = int(self._owed)
        batch = self.release(rows, each=0) if rows >= LEAST_OWED else EMPTY
        self._owed -= batch.num_rows
        return batch

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield every URL that waits here."""
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
