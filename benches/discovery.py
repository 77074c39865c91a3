"""How many new pages do visits to old ones find, if few old pages link to them? Six policies over one web.

    .venv/bin/python benches/discovery.py [pages [seed [skew life]]]

Old pages change at lognormal rates (sigma 1.5, median 1). In a unit of time new pages appear, a twentieth of the old
ones. One to three old pages link to each new one, by Zipf's law over all of them; the link is a change, and it is
gone after two units of time, in the mean. A visit to an old page shows its present links. *Found* is the number of
new pages found by a hundred visits, *share* their share of all that appear, *stale* the harmonic staleness of the old
pages; all in the second half of the time.

- *Uniform* visits all pages in turn.
- *Past yield* visits the page that showed most a visit so far, except for a tenth of the visits, which go in turn.
- *Degree* and *cover* are after Dasgupta et al. (The discoverability of the web, WWW 2007). A part of the visits goes
  to all pages in turn, which takes a *month*. By the links shown in the last two months, pages are chosen for the
  other visits, anew each *week*, each once a week. *Degree* takes first the pages that showed most new pages a visit.
  *Cover* takes greedily the pages that together showed most, so that one of several with the same links is enough.
  Both run with a tenth, a third, a half and two thirds of the visits in turn, and weeks of a 4th, 16th and 64th of a
  month. The run that found most is shown; nobody could choose it beforehand.
- *Changes alone* is Fyke's index without the worth of new links, *Fyke* the whole index.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
from freshness import HARMONIC, MOST_MISSED, Column, Counts
from usage import arguments

from fyke.frontier.revisit.belief import Belief, faded, prior, seen
from fyke.frontier.revisit.finds import brought, finding, rates
from fyke.frontier.revisit.worth import worth

BUDGETS = (0.1, 0.3, 1.0)
TIME = 30.0
STEPS = 1500
APPEAR = 0.05  # new pages, per old page and unit of time
LIFE = 2.0  # of a link, in the mean
SKEW = 1.0  # of Zipf's law
LEARNING = 0.1  # share of the visits by past yield that go in turn
IN_TURN = (0.1, 1 / 3, 0.5, 2 / 3)  # shares of the visits that go in turn, for rules with weeks
WEEKS = (4, 16, 64)  # in a month
WINDOW = 2.0  # months


@dataclass
class Web:
    """Old pages, and new ones by the step in which they appear, with the old ones that link to them."""

    changes: npt.NDArray[np.uint16]  # [steps, pages]
    appear: Counts  # [new]: steps, sorted
    pages: Counts  # [new, 3]: the pages that link to it; -1: none
    until: Counts  # [new, 3]: the step at which the link is gone


def web(pages: int, seed: int, skew: float, life: float) -> Web:
    rng = np.random.default_rng(seed)
    changes = rng.poisson(np.exp(rng.normal(0, 1.5, pages)) * TIME / STEPS, (STEPS, pages))
    popular = rng.permutation(pages)
    chance = np.cumsum(1.0 / np.arange(1, pages + 1) ** skew)
    new = rng.poisson(APPEAR * pages * TIME)
    appear = np.sort(rng.integers(0, STEPS, new))
    linking = popular[np.searchsorted(chance, rng.random((new, 3)) * chance[-1])]
    linking[np.arange(3) >= rng.integers(1, 4, new)[:, None]] = -1
    for step, some in zip(appear, linking, strict=True):
        np.add.at(changes[step], some[some >= 0], 1)
    until = appear[:, None] + np.ceil(rng.exponential(life * STEPS / TIME, (new, 3))).astype(np.int64)
    return Web(np.minimum(changes, 60_000).astype(np.uint16), appear, linking, until)


@dataclass
class Crawler:
    """The crawler's knowledge of old pages, by visits."""

    pages: int
    ages: Column = field(init=False)
    belief: Belief = field(init=False)
    links: Column = field(init=False)
    time: Column = field(init=False)
    visits: Column = field(init=False)
    shown: Column = field(init=False)  # new pages shown, also those that another page had shown

    def __post_init__(self) -> None:
        self.ages = np.random.default_rng(7).random(self.pages) * 1e-3
        none = np.zeros(self.pages)
        self._common = prior(none, none, 1.0)
        self.belief = Belief(*(part.copy() for part in self._common))
        self.links, self.time, self.visits, self.shown = (np.zeros(self.pages) for _ in range(4))
        self._first = np.array([1.0, 10.0])
        self.now = 0.0
        self.shows: list[tuple[float, int, list[int]]] = []  # time, page, new pages that it showed

    def visit(self, pages: Counts, changed: npt.NDArray[np.bool_], new: Column, shown: Column) -> None:
        ages = self.ages[pages]
        fresh = self.links[pages] == 0
        self._first += new[fresh].sum(), ages[fresh].sum()
        links, time = brought(self.links[pages], self.time[pages], new, ages)
        self.links[pages], self.time[pages] = links * (links > 0), time * (links > 0)
        common = Belief(*(part[pages] for part in self._common))
        after = faded(seen(Belief(*(part[pages] for part in self.belief)), changed, ages), common)
        for own, one in zip(self.belief, after, strict=True):
            own[pages] = one
        self.visits[pages] += 1
        self.shown[pages] += shown
        self.ages[pages] = 0.0

    def finding(self) -> Column:
        return finding(rates(self.links, self.time, self._first[0] / self._first[1]), self.ages)

    def changing(self) -> Column:
        return worth(self.belief, np.ones(self.pages), self.ages)


Index = Callable[[Crawler], Column]


def past_yield(crawler: Crawler) -> Column:
    past = (crawler.shown + 1e-9) / np.maximum(crawler.visits, 1) + 1e9 * (crawler.visits == 0)
    return np.where(np.random.default_rng(int(crawler.visits.sum())).random() < LEARNING, crawler.ages, past)


Order = Callable[[Iterable[tuple[float, int, list[int]]]], list[int]]


def by_degree(shows: Iterable[tuple[float, int, list[int]]]) -> list[int]:
    """Return the pages that showed new ones, in falling order of new pages a visit."""
    of: dict[int, list[int]] = defaultdict(list)
    for _, page, new in shows:
        of[page].append(len(new))
    means = {page: sum(counts) / len(counts) for page, counts in of.items()}
    return sorted((page for page in means if means[page] > 0), key=lambda page: -means[page])


def by_cover(shows: Iterable[tuple[float, int, list[int]]]) -> list[int]:
    """Return pages greedily, in falling order of new pages that no page before them showed."""
    of: dict[int, set[int]] = defaultdict(set)
    for _, page, new in shows:
        of[page].update(new)
    heap = [(-len(new), page) for page, new in of.items() if new]
    heapq.heapify(heap)
    covered: set[int] = set()
    order = []
    while heap:
        _, page = heapq.heappop(heap)
        left = len(of[page] - covered)
        if heap and left < -heap[0][0]:
            if left:
                heapq.heappush(heap, (-left, page))
            continue
        if left:
            order.append(page)
            covered |= of[page]
    return order


class Weekly:
    """A rule that chooses pages anew each week: an `Index`."""

    def __init__(self, order: Order, budget: float, in_turn: float, weeks: int) -> None:
        self._order, self._in_turn = order, in_turn
        self._month = 1 / (budget * in_turn)
        self._week = self._month / weeks
        self._until = self._began = 0.0
        self._rng = np.random.default_rng(3)
        self._places = np.zeros(0)

    def __call__(self, crawler: Crawler) -> Column:
        if crawler.now >= self._until:
            self._began, self._until = crawler.now, crawler.now + self._week
            oldest = crawler.now - WINDOW * self._month
            crawler.shows = [one for one in crawler.shows if one[0] >= oldest]
            order = self._order(crawler.shows)
            self._places = np.zeros(crawler.pages)
            self._places[order] = np.arange(len(order), 0, -1)
        if self._rng.random() < self._in_turn:
            return crawler.ages
        waits = crawler.ages > crawler.now - self._began
        return np.where(waits, self._places, 0.0) + 1e-3 * crawler.ages / TIME


def weekly(order: Order, budget: float) -> list[Index]:
    return [Weekly(order, budget, share, weeks) for share in IN_TURN for weeks in WEEKS]


def changing(crawler: Crawler) -> Column:
    return crawler.changing()


def fyke(crawler: Crawler) -> Column:
    return crawler.changing() + crawler.finding()


# By name: the rules of which the one that finds most is shown.
Rules = Callable[[float], list[Index]]
POLICIES: dict[str, Rules] = {
    "uniform": lambda _: [lambda crawler: crawler.ages],
    "past yield": lambda _: [past_yield],
    "Dasgupta, degree": partial(weekly, by_degree),
    "Dasgupta, cover": partial(weekly, by_cover),
    "changes alone": lambda _: [changing],
    "Fyke": lambda _: [fyke],
}


def run(where: Web, budget: float, index: Index) -> tuple[float, float, float]:
    """Return new pages found per hundred visits, their share of all, and the staleness of the old pages."""
    steps, pages = where.changes.shape
    crawler, missed = Crawler(pages), np.zeros(pages, np.int64)
    linked: list[list[tuple[int, int]]] = [[] for _ in range(pages)]
    found_at = np.full(len(where.appear), -1)
    next_new, visits, stale, room = 0, 0, 0.0, 0.0
    for step in range(steps):
        missed = np.minimum(missed + where.changes[step], MOST_MISSED)
        while next_new < len(where.appear) and where.appear[next_new] == step:
            for page, until in zip(where.pages[next_new].tolist(), where.until[next_new].tolist(), strict=True):
                if page >= 0:
                    linked[page].append((next_new, until))
            next_new += 1
        crawler.ages += TIME / steps
        crawler.now += TIME / steps
        room += budget * TIME / steps * pages
        count, room = int(room), room % 1
        chosen = np.argpartition(index(crawler), -count)[-count:] if count else np.zeros(0, np.int64)
        new, shown = np.zeros(count), np.zeros(count)
        for row, page in enumerate(chosen.tolist()):
            there = [one for one, until in linked[page] if until > step]
            unmet = [one for one in there if found_at[one] < 0]
            found_at[unmet] = step
            new[row], shown[row] = len(set(unmet)), len(there)
            crawler.shows.append((crawler.now, page, there))
            linked[page] = []
        crawler.visit(chosen, missed[chosen] > 0, new, shown)
        missed[chosen] = 0
        if step >= steps // 2:
            visits += count
            stale += float(HARMONIC[missed].mean())
    late = where.appear >= steps // 2
    found = found_at[late] >= 0
    return 100 * float(found.sum()) / visits, float(found.mean()), stale / (steps - steps // 2)


def compare(pages: int, seed: int, skew: float, life: float) -> None:
    where = web(pages, seed, skew, life)
    print("| policy | " + " | ".join(f"{budget} visits" for budget in BUDGETS) + " |\n|---|" + "---:|" * len(BUDGETS))
    for name, rules in POLICIES.items():
        found = [max(run(where, budget, index) for index in rules(budget)) for budget in BUDGETS]
        cells = (f"{new:.1f} / {share:.0%} / {stale:.2f}" for new, share, stale in found)
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    compare(*arguments(__doc__, pages=5000, seed=5, skew=SKEW, life=LIFE))
