"""URLs that wait because their domain is over budget: queues of rounds, and one for all that does not fit.

BEAST, Budget Enforcement with Anti-Spam Tactics: IRLbot (Lee et al., WWW 2008), section 6.2 and Figure 4. No URL is
thrown away for being over budget. The queues `Q1...Qj` are rounds: a domain with budget B has its next B URLs in the
next round, B more in the one after, and the rest beyond the last in `QF`. The frontier reads the current round; after j
rounds `QF` is read again and spread over more.

The frontier calls `put` with URLs and the slot of each domain (see below), and `get` for URLs to fetch, saying whether
a new round may begin. While `splitting` it puts the URLs that `take_over_budget` returns through STAR again, a slice at
a time, so that a long `QF` does not stop the crawl. Differs from the paper:

- A domain's use of its rounds is not an array in memory for each queue, but one number on disk with the domain: the
  *slot* up to which its URLs are planned, as in a fair queue. The next URL is planned at that slot. The earliest
  possible slot is the next round, or the current round while the next may not begin yet.
- `j` doubles while `QF` is longer than `CARRIED` times what the rounds let through, and is halved once `QF` is shorter
  than a quarter of that; the paper doubles until a limit. Beyond `sizes.rounds` a round lets through 2, 4, ... budgets
  of each domain instead: the shares stay, and a crawl of three huge domains needs no thousand files. So about `CARRIED`
  URLs are read again for each that is let through, at most, whatever the crawl has met: Theorem 5, as a rule of the
  loop.
- `QF` is read again as the last planned round begins, so that the plan has no gap and small domains no delay.
- URLs without any budget wait apart (`barred`). They are read again once reputations changed and they are no more than
  `CARRIED` for each URL let through since, or when nothing else waits.
- A domain that is alone in scope never comes here (`Backlog`).

Invariant: a URL that was put is in exactly one queue, or was got.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import NO_KEYS, U64, URLS, numbers, u64
from fyke.core.sorting import Groups, Places, grouped
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.sizes import SIZES, Sizes

FIRST_QUEUES = 2
MOST_BUDGETS = 1 << 20  # of a domain in one round
CARRIED = 8  # URLs read again for each that is let through, at most: the paper's 2(L-1) with its L of 6.5 lets 11
_BARRED, _OVER, _ROUNDS = range(3)  # lanes: without a budget, over it, and from the third on one for each round
_SLOT = 1 << 32  # one round
_MOVED_ROWS = 4096


class EnforcerStatistics(NamedTuple):
    """Rows that wait."""

    rounds: int
    waiting: int  # URLs in them
    over_budget: int


class Enforcer(Protocol):
    """Decides which URLs wait, and in what order they pass."""

    @property
    def splitting(self) -> bool:
        """True if `take_over_budget` has URLs to put again."""
        ...

    @property
    def stuck(self) -> bool:
        """True if no waiting URL has a budget, and nothing changed that."""
        ...

    @property
    def round(self) -> int:
        """Number of the current round."""
        ...

    def __len__(self) -> int: ...

    def put(self, urls: pa.RecordBatch, slots: U64) -> tuple[U64, U64]: ...

    def get(self, rows: int, *, next_round: bool = True) -> pa.RecordBatch | None: ...

    def take_over_budget(self, rows: int) -> pa.RecordBatch | None: ...

    def reconsider(self) -> None: ...

    def queues(self) -> Sequence[DiskQueue]: ...

    def statistics(self) -> EnforcerStatistics: ...

    def state(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


class Backlog:
    """First come, first served: for crawls without budgets, and for those of a single domain."""

    splitting = False
    stuck = False
    round = 0

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        self._queue = DiskQueue(store, "backlog", URLS, (state or {}).get("backlog"))

    def __repr__(self) -> str:
        return f"Backlog({len(self)} waiting)"

    def __len__(self) -> int:
        return len(self._queue)

    def take_over(self, beast: "Beast") -> None:
        """Take all URLs that wait in `beast`: budgets were enforced until now."""
        for queue in beast.queues():
            for urls in queue.drain(_MOVED_ROWS):
                self._queue.put(urls)
            queue.destroy()

    def put(self, urls: pa.RecordBatch, slots: U64) -> tuple[U64, U64]:
        """Let `urls` wait. No domain has a plan."""
        self._queue.put(urls)
        return NO_KEYS, NO_KEYS

    def get(self, rows: int, *, next_round: bool = True) -> pa.RecordBatch | None:
        """Return the next URLs, `rows` at most, or None when none wait. There are no rounds."""
        return self._queue.get(rows)

    def take_over_budget(self, rows: int) -> pa.RecordBatch | None:
        """Return None: no URL is ever over budget."""
        return None

    def reconsider(self) -> None:
        """Do nothing: nothing depends on reputation."""

    def queues(self) -> Sequence[DiskQueue]:
        return [self._queue]

    def statistics(self) -> EnforcerStatistics:
        return EnforcerStatistics(rounds=1, waiting=len(self), over_budget=0)

    def state(self) -> dict[str, Any]:
        return {"backlog": self._queue.state()}

    def close(self) -> None:
        self._queue.close()


class Beast:
    """The rounds from `current` on, and `QF`."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None, sizes: Sizes = SIZES) -> None:
        saved = state or {}
        self._store = store
        self._sizes = sizes
        self._saved: Mapping[str, Any] = saved.get("queues", {})
        self._rounds: dict[int, DiskQueue] = {}  # by place, which is the number modulo `sizes.rounds`
        for place in self._saved:
            if place.startswith("round-"):
                self._round(int(place.removeprefix("round-")))
        self._current = int(saved.get("current", 0))  # number of the current round
        self._width = int(saved.get("width", FIRST_QUEUES))  # j
        self._budgets = int(saved.get("budgets", 1))  # of a domain in one round
        self._read = int(saved.get("read", 0))  # rounds read to their end since QF was
        self._passed = int(saved.get("passed", 0))  # URLs let through since then
        self._passed_barred = int(saved.get("passed_barred", 0))  # URLs let through since `barred` was read
        self._recalled = int(saved.get("recalled", 0))  # URLs of `barred` that are to be read again
        self._closed = bool(saved.get("closed", True))  # the next round may begin, and takes the next URLs
        self._news = bool(saved.get("news", False))  # whether barred URLs may have a budget by now
        names = saved.get("over", ["over-0", "over-1"])
        self._over = self._queue(names[0])  # QF
        self._again = self._queue(names[1])  # the QF of before, being spread
        self._barred = self._queue("over-barred")  # the part of QF whose domains have no budget at all

    def __repr__(self) -> str:
        over = self.statistics().over_budget
        return f"{type(self).__name__}({len(self)} waiting, {over} over budget, {self._width} rounds)"

    def __len__(self) -> int:
        return sum(map(len, self.queues()))

    def _queue(self, name: str) -> DiskQueue:
        saved, rows = self._saved.get(name), self._sizes.round_buffer
        return DiskQueue(self._store, f"beast-{name}", URLS, saved, buffer_rows=rows)

    def _round(self, number: int) -> DiskQueue:
        place = number % self._sizes.rounds
        if place not in self._rounds:
            self._rounds[place] = self._queue(f"round-{place}")
        return self._rounds[place]

    def put(self, urls: pa.RecordBatch, slots: U64) -> tuple[U64, U64]:
        """Let `urls` wait in their rounds; their domains are planned up to `slots` (uint64[n]).

        Returns by how much the plans grew: domains uint64[m], distinct, and slots uint64[m].
        """
        if not urls.num_rows:
            return NO_KEYS, NO_KEYS
        domains = grouped(u64(urls, "domain"))
        before = slots[domains.order[domains.starts]]
        begin = np.maximum(before, np.uint64((self._current + self._closed) * _SLOT))
        budgets = numbers(urls, "budget")[domains.order].astype(np.uint64)
        cost = _cost(budgets * np.uint64(self._budgets))
        taken = begin[domains.group_of] + _sum_before(cost, domains)
        fits = (taken < (self._current + self._width) * _SLOT) & (budgets > 0)
        lanes = np.where(budgets > 0, _OVER, _BARRED)
        lanes[fits] = taken[fits] // np.uint64(_SLOT) - np.uint64(self._current) + np.uint64(_ROUNDS)
        self._spread(urls, lanes, domains.order)
        end = np.maximum.reduceat(np.where(fits, taken + cost, np.uint64(0)), domains.starts)
        grown = end > 0
        return domains.keys[grown], (end - before)[grown]

    def _spread(self, urls: pa.RecordBatch, lanes: npt.NDArray[np.int64], order: Places) -> None:
        """Put each row into the queue of its lane; `lanes` [n] are of the rows in `order` [n]."""
        of_rows = np.empty(len(lanes), np.uint16)  # 16 bits, because those are sorted by their radix
        of_rows[order] = lanes
        rows, starts = np.argsort(of_rows, kind="stable"), np.zeros(int(lanes.max()) + 2, np.intp)
        np.cumsum(np.bincount(of_rows), out=starts[1:])
        for lane in np.flatnonzero(np.diff(starts)).tolist():
            piece = urls.take(pa.array(rows[starts[lane] : starts[lane + 1]]))  # a slice would keep all of the batch
            self._lane(lane).put(piece)

    def _lane(self, lane: int) -> DiskQueue:
        if lane >= _ROUNDS:
            return self._round(self._current + lane - _ROUNDS)
        return self._over if lane == _OVER else self._barred

    def get(self, rows: int, *, next_round: bool = True) -> pa.RecordBatch | None:
        """Return the next URLs, `rows` at most; None when all rounds are empty (there may still be some in `QF`).

        Unless a `next_round` may begin, returns None also when the current round is empty. New URLs then join the
        current round: they must not wait for a round that is far away, nor keep one open whose time is over.
        """
        self._closed = next_round
        while any(map(len, self._rounds.values())):
            batch = self._round(self._current).get(rows)
            if batch is not None:
                self._passed += batch.num_rows
                self._passed_barred += batch.num_rows
                return batch
            if not next_round:
                return None
            self._next_round()
        if next_round and not self.splitting:
            if len(self._over):
                self._split()
            elif self._news:
                self._recall()
        return None

    def _next_round(self) -> None:
        self._current += 1
        self._read += 1
        if self._read < self._width - 1 or self.splitting:
            return
        if len(self._over):
            self._split()
        if self._news and len(self._barred) <= CARRIED * self._passed_barred:
            self._recall()

    def _split(self) -> None:
        """Have `QF` read again, over as many rounds as carry it."""
        self._resize()
        self._over, self._again = self._again, self._over
        self._read = self._passed = 0

    def _recall(self) -> None:
        """Have all barred URLs read again."""
        self._recalled = len(self._barred)
        self._passed_barred = 0
        self._news = False

    def reconsider(self) -> None:
        """Note that some domain's reputation changed, so that barred URLs may have a budget."""
        self._news = True

    def _resize(self) -> None:
        carried = CARRIED * self._passed
        waiting = len(self._over)
        if waiting > carried:
            if self._width < self._sizes.rounds:
                self._width *= 2
            else:
                self._budgets = min(2 * self._budgets, MOST_BUDGETS)
        elif waiting * 4 < carried:
            if self._budgets > 1:
                self._budgets //= 2
            else:
                self._width = max(FIRST_QUEUES, self._width // 2)

    @property
    def round(self) -> int:
        """Number of the current round."""
        return self._current

    @property
    def splitting(self) -> bool:
        """True if `QF` is being read again."""
        return len(self._again) > 0 or self._recalled > 0

    @property
    def stuck(self) -> bool:
        """True if no waiting URL has a budget, and nothing changed that."""
        return 0 < len(self) == len(self._barred) and not (self._news or self._recalled)

    def take_over_budget(self, rows: int) -> pa.RecordBatch | None:
        """Take out and return URLs of `QF`, `rows` at most, that are to get new budgets and be put again."""
        if len(self._again):
            return self._again.get(rows)
        batch = self._barred.get(min(rows, self._recalled))
        self._recalled -= 0 if batch is None else batch.num_rows
        return batch

    def queues(self) -> Sequence[DiskQueue]:
        """Return all queues, for checkpoints and explanations."""
        return [*self._rounds.values(), self._over, self._again, self._barred]

    def statistics(self) -> EnforcerStatistics:
        over = len(self._over) + len(self._again) + len(self._barred)
        return EnforcerStatistics(self._width, len(self) - over, over)

    def state(self) -> dict[str, Any]:
        return {
            "queues": {queue.name.removeprefix("beast-"): queue.state() for queue in self.queues()},
            "over": [queue.name.removeprefix("beast-") for queue in (self._over, self._again)],
            "current": self._current,
            "width": self._width,
            "budgets": self._budgets,
            "read": self._read,
            "passed": self._passed,
            "passed_barred": self._passed_barred,
            "recalled": self._recalled,
            "news": self._news,
            "closed": self._closed,
        }

    def close(self) -> None:
        for queue in self.queues():
            queue.close()


class NaiveEnforcer(Beast):
    """Two queues: the current round and `QF`, which is read again after every round.

    IRLbot had it before BEAST (section 6.2, Theorem 4). It is the comparison, not for use.
    """

    def _resize(self) -> None:
        """Keep the one round."""


def _cost(budgets: U64) -> U64:
    """Return the part of a round that one URL takes, so that at most `budgets` (uint64[n]) fit; 0 for no budget:
    uint64[n]."""
    budgets = np.minimum(budgets, np.uint64(_SLOT))
    return np.where(budgets > 0, (np.uint64(_SLOT - 1) + budgets) // np.maximum(budgets, np.uint64(1)), np.uint64(0))


def _sum_before(cost: U64, groups: Groups) -> U64:
    """Return the sum of the `cost` of the rows before each in its group: uint64[n], in the order of `groups`."""
    before: U64 = np.cumsum(cost) - cost
    return before - before[groups.starts][groups.group_of]
