"""Which of the pages that rest are visited next?

A plan is two passes over them. The first counts (`Choice.count`) those that are due, by what a visit is worth; then it
is known how many of each worth there is room for (`settle`); the second takes these (`take`). A page is due when

- its copy is out of date with a chance of `CHANCE` or more, by what is believed of it and what lists say, or it links
  to a new page with such a chance, or is `greatest_s` old;
- and it was not asked for in the last `least_s`, nor, where it brings nothing, for as long as that goes on: who is away
  for three days is asked again after three more.

In a pass lists of pages come before all; in a crawl that never ends each counts as `LIST` pages. There a host with more
lists than it can be asked for would else have no page visited any more.

How many there is room for is learned from how many were visited (`Lines`): twice as many as since the last plan, less
those that still wait. So the line is not empty while pages are due, and not longer than what is visited in two plans,
whatever bounds that: politeness, the network, or this machine. The same holds for each host, so that a large and slow
one fills nobody else's line: the second level of PoliteBinaryLambdaCrawl (Kolobov et al., SIGIR 2019). Hosts are
counted in `CELLS` cells, by their keys.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask
from fyke.frontier.revisit.belief import Belief, Column
from fyke.frontier.revisit.calibration import Calibration
from fyke.frontier.revisit.finds import finding
from fyke.frontier.revisit.signals import Trust, all_false, counted_age, fresh_chance
from fyke.frontier.revisit.worth import worth

CHANCE = 0.05
LIST = 10.0  # pages that a list is worth, where there is no time for all
CELLS = 2048
LEAST_OF_CELL = 32  # pages that may wait in any case
LEAST = 1024  # and in all

Counts = npt.NDArray[np.int64]


class Terms(NamedTuple):
    """What is asked of a plan; as it stands, that all pages are visited."""

    least_s: float = 0.0  # between two visits to a page
    greatest_s: float = 0.0
    most: int | None = None  # pages


class Resting(NamedTuple):
    """What n pages that rest bring to a choice."""

    host: U64
    at: Column  # unix seconds: when they were last known to be as their copies; 0: never
    tried: Column  # when they were last asked for
    belief: Belief
    first: Mask  # lists of pages, which say what to visit
    trusted: Trust
    signals: Column  # of changes since `at`
    weight: Column
    finds: Column  # new links a second


class Standing(NamedTuple):
    """How the pages that rest stood at the last plan."""

    at: float = 0.0  # unix seconds; 0: there was no plan
    pages: int = 0
    fresh: float = 0.0  # of them, as is believed and visits have proved
    due: int = 0
    chosen: int = 0
    next_at: float = 0.0  # unix seconds: when the next plan is made


class Room(NamedTuple):
    """For how many more pages there is room, in all and in each cell."""

    in_all: int
    of_cell: Counts


class Lines:
    """How many pages wait for a visit, and how many were visited since the last plan, by cell."""

    def __init__(self) -> None:
        self._waiting = np.zeros(CELLS, np.int64)
        self._visited = np.zeros(CELLS, np.int64)

    def wait(self, hosts: U64) -> None:
        """A page of each of `hosts` (uint64[n]) waits for its visit."""
        np.add.at(self._waiting, _cells(hosts, CELLS), 1)

    def visited(self, hosts: U64) -> None:
        """A page of each of `hosts` was visited again."""
        np.add.at(self._visited, _cells(hosts, CELLS), 1)

    def room(self) -> Room:
        """What there is room for; from now on it is counted anew."""
        waiting = np.maximum(self._waiting - self._visited, 0)  # after a restart nobody knows how many waited
        of_cell = np.maximum(np.maximum(2 * self._visited, LEAST_OF_CELL) - waiting, 0)
        in_all = max(max(2 * int(self._visited.sum()), LEAST) - int(waiting.sum()), 0)
        self._waiting, self._visited = waiting, np.zeros(CELLS, np.int64)
        return Room(in_all, of_cell)


class Choice:
    """The choice of one plan at `now` (unix seconds): all that is due, as far as there is `room`."""

    def __init__(
        self, now: float, terms: Terms, room: Room | None = None, calibration: Calibration | None = None
    ) -> None:
        """`calibration` says how fresh copies are that are believed to be."""
        self._calibration = calibration or Calibration()
        self._now = now
        self._terms = terms
        self._room = room
        # Worth by its logarithm: a bin is 1/32 of a doubling, or a quarter where there is a row for each cell.
        shape, self._each, self._offset = ((1, 4096), 32, 2048) if room is None else ((CELLS, 216), 4, 40)
        self._table = np.zeros(shape, np.int64)  # pages by cell and worth: that are due, and once settled, to be taken
        self._pages = self._due = self._chosen = 0
        self._fresh = 0.0

    @property
    def standing(self) -> Standing:
        return Standing(self._now, self._pages, self._fresh / max(1, self._pages), self._due, self._chosen)

    def count(self, resting: Resting) -> None:
        """These pages rest: the first pass."""
        due, places = self._places(resting)
        np.add.at(self._table.reshape(-1), places, 1)
        self._pages += len(resting.at)
        self._due += len(due)
        seen = resting.at > 0
        age = np.maximum(self._now - resting.at, 0.0)
        believed = fresh_chance(resting.belief, resting.trusted, resting.signals, age)
        self._fresh += float(np.sum(self._calibration.fresh(believed)[seen]))

    def settle(self) -> bool:
        """Find, once all were counted, how many of each cell and worth there is room for, the most worth first.

        Returns whether there are any.
        """
        used = np.flatnonzero(self._table.any(axis=1))
        table = self._table[used]
        if self._room is not None:
            table = _fitting(table[:, ::-1], self._room.of_cell[used, None], axis=1)[:, ::-1]
        most = self._terms.most if self._room is None else self._room.in_all
        if most is not None:
            of_bin = _fitting(table.sum(0)[::-1], np.array(most), axis=0)[::-1]
            table = _fitting(table, of_bin[None, :], axis=0)
        self._table[used] = table
        return bool(self._table.any())

    def take(self, resting: Resting) -> Mask:
        """Which of these pages are visited: the second pass, in the same order."""
        chosen = np.zeros(len(resting.at), np.bool_)
        due, places = self._places(resting)
        left = self._table.reshape(-1)
        taken = _rank(places) < left[places]
        np.subtract.at(left, places[taken], 1)
        chosen[due[taken]] = True
        self._chosen += int(taken.sum())
        return chosen

    def _places(self, resting: Resting) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Which of the pages are due, and where each of these is in the table."""
        due = np.flatnonzero(due_at(resting, self._terms, self._now) <= self._now)
        cells, bins = self._table.shape
        age = np.maximum(self._now - resting.at[due], 1.0)
        belief, trusted = Belief(*(column[due] for column in resting.belief)), _of(resting.trusted, due)
        counts_for = counted_age(belief, trusted, resting.signals[due], age)
        weight = resting.weight[due] * np.where(resting.first[due], LIST, 1.0)
        with np.errstate(divide="ignore"):
            index = worth(belief, weight, counts_for) + weight * finding(resting.finds[due], age)
            worths = np.log2(index) * self._each + self._offset
        if self._room is None:
            worths[resting.first[due]] = bins
        return due, (_cells(resting.host[due], cells) * bins + np.clip(worths, 0, bins - 1)).astype(np.intp)


def due_at(resting: Resting, terms: Terms, now: float) -> Column:
    """From when on pages are due, unix seconds [n]. Who was visited later than `now`, by a clock that was set back
    since, was visited now."""
    at, tried = np.minimum(resting.at, now), np.minimum(resting.tried, now)
    shape, time = resting.belief
    left = np.maximum(all_false(resting.belief, resting.trusted, resting.signals) - np.log1p(-CHANCE), 0.0)
    with np.errstate(over="ignore"):  # solves 1 - (time / (time + s)) ^ shape = CHANCE for what was not announced
        likely = time * np.expm1(left / shape) / (1.0 - resting.trusted.recall)
    with np.errstate(divide="ignore"):
        likely = np.minimum(likely, CHANCE / resting.finds)
    outdated = at + np.minimum(np.where(resting.first, 0.0, likely), terms.greatest_s)
    due: Column = np.maximum(outdated, tried + np.maximum(np.minimum(tried - at, terms.greatest_s), terms.least_s))
    return due


def _of(trusted: Trust, rows: npt.NDArray[np.intp]) -> Trust:
    return Trust(*(column[rows] for column in trusted))


def _cells(hosts: U64, cells: int) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = (hosts % np.uint64(cells)).astype(np.int64)
    return found


def _fitting(counts: Counts, room: Counts, axis: int) -> Counts:
    """How many of `counts` along `axis` there is room for, the first of them first."""
    before = np.cumsum(counts, axis) - counts
    found: Counts = np.clip(room - before, 0, counts)
    return found


def _rank(places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """How many equal ones stand before each."""
    order = np.argsort(places, kind="stable")
    ranks = np.empty(len(places), np.intp)
    ordered = places[order]
    ranks[order] = np.arange(len(places)) - np.searchsorted(ordered, ordered)
    return ranks
