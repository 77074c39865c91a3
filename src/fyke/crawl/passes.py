"""Passes over a crawl: `fyke crawl --again` visits every page once more and tells what has become of it.

`next_pass` says which pass is to be made. `Passes` is what a checkpoint keeps: when each began, and what the last has
found. `learning` tells the frontier of earlier visits; `past` tells those who visit again.

Invariant: what `Passes` counts of a visit is in the same checkpoint as its record and its row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from fyke.archive.passes import Begun, begun_passes
from fyke.archive.statistics import PassFound
from fyke.core.batches import Kind
from fyke.core.outcomes import Outcome
from fyke.core.visits import SAME_TEXT, Purpose
from fyke.harvest.sheaf import Reaped


@dataclass(frozen=True, slots=True)
class Pass:
    """What is asked of a pass."""

    visits: int | None = None  # the most to known pages; None: to all
    forever: bool = False  # each page at its own times, without end
    number: int = 0  # which pass it is, from 1 on
    began_at: float = 0.0  # unix seconds
    shares: Sequence[int] = ()  # of `visits`, by agent

    def share(self, agent: int) -> int | None:
        """Return how many visits to known pages the shard of `agent` may have; None: all."""
        if self.visits is None:
            return None
        return self.shares[agent] if agent < len(self.shares) else 0


def next_pass(states: Sequence[Mapping[str, Any]], asked: Pass | None, now: float, *, may_begin: bool) -> Pass | None:
    """Return the pass that agents with these checkpoints make if `asked`: the next one if it `may_begin`, otherwise the
    one that some had begun when the crawl broke off; None for none."""
    began = max((begun_passes(state.get("again", {})) for state in states), key=len, default=[])
    number, last = len(began), began[-1] if began else None
    forever = last is not None and last.forever
    if asked is not None and (may_begin or asked.forever != forever):
        shares = () if asked.visits is None else _shared(asked.visits, [_visited(state) for state in states])
        return replace(asked, number=number + 1, began_at=now, shares=shares)
    if last is not None and not forever:
        visits = sum(last.shares) if last.shares else None
        return Pass(visits, number=number, began_at=last.at, shares=last.shares)
    return None if asked is None else replace(asked, number=number)


def _visited(state: Mapping[str, Any]) -> int:
    totals = state.get("totals", {})
    return max(1, int(totals.get("urls", 0)) - int(totals.get("waiting", 0)))


def _shared(visits: int, weights: Sequence[int]) -> list[int]:
    """Return `visits` in shares proportional to `weights`; the shares add up to `visits`."""
    ends = [visits * part // sum(weights) for part in accumulate(weights)]
    return [end - begin for begin, end in pairwise([0, *ends])]


class Passes:
    """The passes over one crawl, if there were any."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self.began = begun_passes(saved)
        self._found: Counter[str] = Counter(saved.get("found", {}))

    def __repr__(self) -> str:
        return f"Passes({len(self.began)}, the last: {dict(self._found)})"

    def begin(self, asked: Pass, file: int) -> None:
        """Begin the next pass, with its first record in the archive file numbered `file`. An agent that joined later
        counts as having begun earlier passes."""
        first = file + self.forever  # the current file may be of a pass without end
        began = Begun(asked.began_at, first, asked.forever)
        self.began += [began] * (asked.number - len(self.began) - 1)
        self.began.append(began._replace(shares=asked.shares))
        self._found.clear()

    @property
    def forever(self) -> bool:
        """True if the last pass goes on forever."""
        return bool(self.began) and self.began[-1].forever

    @property
    def pages(self) -> int:
        """Number of pages that the last pass has brought."""
        return self._found["changed"] + self._found["new"]

    def count(self, reaped: Reaped) -> None:
        """Count a visit that ended."""
        if not self.began:
            return
        exchange = reaped.exchange
        self._found["requests"] += bool(exchange.request)
        self._found["bytes"] += len(exchange.head) + exchange.body.size
        is_page = exchange.visit.purpose is Purpose.PAGE and exchange.visit.kind is not Kind.LISTING
        if is_page and (word := self._became(reaped)):
            self._found[word] += 1

    def _became(self, reaped: Reaped) -> str:
        exchange = reaped.exchange
        earlier = exchange.visit.earlier
        if exchange.outcome is Outcome.UNCHANGED or exchange.detail == SAME_TEXT:
            return "unchanged"
        there = earlier is not None and earlier.place is not None
        if reaped.is_page:
            return "changed" if there else "new"
        return "gone" if there and exchange.outcome is Outcome.GONE else ""  # a first 404 or 410 may be a mistake

    def statistics(self) -> PassFound | None:
        """Return what the last pass found so far; None if there was none."""
        if not self.began:
            return None
        return PassFound(len(self.began), self.began[-1].at, **self._found, forever=self.forever)

    def state(self) -> dict[str, Any]:
        return {"began": self.began, "found": dict(self._found)}
