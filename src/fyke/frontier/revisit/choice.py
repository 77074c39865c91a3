"""Which of the resting pages are visited next?

A plan is two passes over them. The first counts due pages by what a visit is worth (`Choice.count`); then it is known
how many of each worth there is room for (`settle`); the second takes these (`take`). A page is due when

- its copy is out of date with a chance of `CHANCE` or more, by belief and lists, or it links to a new page with such a
  chance, or its copy is `greatest_s` old;
- and it was not asked for in the last `least_s`. If requests bring nothing, the page rests for as long as it has
  brought nothing: if it is away for three days, it is asked for again after three more.

In a pass lists of pages come before all. In a crawl that never ends each list counts as `LIST` pages; otherwise a host
with more lists than can be asked for would have no other page visited any more.

Pages that were taken wait for their visits in *lines*, one a host (`Lines`). The room in a line is learned from visits:
twice as many pages as were visited since the last plan, less those that still wait. So a line is not empty while pages
are due, and not longer than the visits of two plans, whatever bounds visits: politeness, the network, or this machine.
The same holds for all lines together, so that a large and slow host takes nobody else's room: the second level of
PoliteBinaryLambdaCrawl (Kolobov et al., SIGIR 2019). Hosts are counted in `CELLS` cells, by their keys.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Mask
from fyke.core.freshness import Freshness
from fyke.frontier.revisit.belief import Belief, Column
from fyke.frontier.revisit.calibration import Calibration
from fyke.frontier.revisit.finds import finding
from fyke.frontier.revisit.signals import Trust, all_false, counted_age, fresh_chance
from fyke.frontier.revisit.worth import worth

CHANCE = 0.05
LIST = 10.0  # pages that a list is worth, without time for all
CELLS = 2048
LEAST_OF_CELL = 32  # pages of a cell that may wait in any case
LEAST = 1024  # pages in all that may wait in any case

Counts = npt.NDArray[np.int64]


class Terms(NamedTuple):
    """The terms of a plan. The defaults ask for visits to all pages."""

    least_s: float = 0.0  # between two visits to a page
    greatest_s: float = 0.0
    most: int | None = None  # pages


class Resting(NamedTuple):
    """The facts of n resting pages for a choice."""

    host: U64
    at: Column  # unix seconds: when their copies were last known to be up to date; 0: never
    tried: Column  # when they were last asked for
    belief: Belief
    first: Mask  # lists of pages, which say what to visit
    trusted: Trust
    signals: Column  # of changes since `at`
    weight: Column
    finds: Column  # new links a second


class Room(NamedTuple):
    """The number of pages for which there is room, in all and in each cell."""

    in_all: int
    of_cell: Counts


class Lines:
    """The numbers of pages that wait for a visit, and that were visited since the last plan, by cell."""

    def __init__(self) -> None:
        self._waiting = np.zeros(CELLS, np.int64)
        self._visited = np.zeros(CELLS, np.int64)

    def wait(self, hosts: U64) -> None:
        """Note that a page of each of `hosts` (uint64[n]) waits for its visit."""
        np.add.at(self._waiting, _cells(hosts, CELLS), 1)

    def visited(self, hosts: U64) -> None:
        """Note that a page of each of `hosts` was visited again."""
        np.add.at(self._visited, _cells(hosts, CELLS), 1)

    def room(self) -> Room:
        """Return the room, and count visits anew from now on."""
        waiting = np.maximum(self._waiting - self._visited, 0)  # after a restart nobody knows how many waited
        of_cell = np.maximum(np.maximum(2 * self._visited, LEAST_OF_CELL) - waiting, 0)
        in_all = max(max(2 * int(self._visited.sum()), LEAST) - int(waiting.sum()), 0)
        self._waiting, self._visited = waiting, np.zeros(CELLS, np.int64)
        return Room(in_all, of_cell)


class Choice:
    """The choice of one plan at `now` (unix seconds): all due pages, as far as there is `room`."""

    def __init__(
        self, now: float, terms: Terms, room: Room | None = None, calibration: Calibration | None = None
    ) -> None:
        """`calibration` corrects the believed freshness of copies."""
        self._calibration = calibration or Calibration()
        self._now = now
        self._terms = terms
        self._room = room
        # Worth by its logarithm: a bin is 1/32 of a doubling, or a quarter if there is a row for each cell.
        shape, self._each, self._offset = ((1, 4096), 32, 2048) if room is None else ((CELLS, 216), 4, 40)
        self._table = np.zeros(shape, np.int64)  # due pages by cell and worth; once settled, pages to take
        self._pages = self._due = self._chosen = 0
        self._fresh = 0.0

    @property
    def freshness(self) -> Freshness:
        return Freshness(self._now, self._pages, self._fresh / max(1, self._pages), self._due, self._chosen)

    def count(self, resting: Resting) -> None:
        """Count these resting pages in the first pass."""
        due, places = self._places(resting)
        np.add.at(self._table.reshape(-1), places, 1)
        self._pages += len(resting.at)
        self._due += len(due)
        seen = resting.at > 0
        age = np.maximum(self._now - resting.at, 0.0)
        believed = fresh_chance(resting.belief, resting.trusted, resting.signals, age)
        self._fresh += float(np.sum(self._calibration.fresh(believed)[seen]))

    def settle(self) -> bool:
        """Find, once all are counted, how many pages of each cell and worth there is room for, the most worth first.
        Returns whether there are any."""
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
        """Return which of these pages are visited: bool[n]. Called in the second pass, in the order of the first."""
        chosen = np.zeros(len(resting.at), np.bool_)
        due, places = self._places(resting)
        left = self._table.reshape(-1)
        taken = _rank(places) < left[places]
        np.subtract.at(left, places[taken], 1)
        chosen[due[taken]] = True
        self._chosen += int(taken.sum())
        return chosen

    def _places(self, resting: Resting) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return which of the pages are due, as row numbers, and the place of each due page in the table."""
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
    """Return from when on pages are due, unix seconds [n]. A visit later than `now`, by a clock set back since, counts
    as made now."""
    at, tried = np.minimum(resting.at, now), np.minimum(resting.tried, now)
    shape, time = resting.belief
    left = np.maximum(all_false(resting.belief, resting.trusted, resting.signals) - np.log1p(-CHANCE), 0.0)
    with np.errstate(over="ignore"):  # solves 1 - (time / (time + s)) ^ shape = CHANCE for unannounced changes
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
    """Return how many of `counts` along `axis` there is room for, the first of them first."""
    before = np.cumsum(counts, axis) - counts
    found: Counts = np.clip(room - before, 0, counts)
    return found


def _rank(places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return for each of `places` how many equal ones stand before it."""
    order = np.argsort(places, kind="stable")
    ranks = np.empty(len(places), np.intp)
    ordered = places[order]
    ranks[order] = np.arange(len(places)) - np.searchsorted(ordered, ordered)
    return ranks
