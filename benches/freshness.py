"""How fresh can copies be kept with few visits? Eight policies over the same pages, and four estimators of change.

    .venv/bin/python benches/freshness.py [pages] [picture]
    .venv/bin/python benches/freshness.py estimators [pages]

Pages change at rates from a lognormal distribution, by domain and by page (together sigma 1.5, median 1), as a
Poisson process or in bursts (a tenth of the time at ten times the rate). Weights are Pareto's (1.1). The rates are
unknown. Policies that need them learn them in the same way, by `fyke.frontier.revisit.belief`, from a domain's prior
on; one further row knows them. Each policy has the same visits and the same changes, so that policies differ in
nothing else.

*Stale* is the harmonic staleness of Kolobov et al. (NeurIPS 2019), which LambdaCrawl minimises: the weighted mean of
1 + 1/2 + ... + 1/n for copies that miss n changes. *Fresh* is the weighted share of copies that miss none. Both are
means over the second half of the time.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import digamma
from usage import arguments

from fyke.frontier.revisit.belief import Belief, Column, faded, prior, seen
from fyke.frontier.revisit.worth import worth
from fyke.plots import BLUE, FAINT, GREEN, ORANGE, PURPLE, RED, dress, mark_points, panels, save

BUDGETS = (0.1, 0.3, 1.0, 3.0)  # visits per page and median time between changes
DOMAIN_PAGES = 50
LEAST_STEPS = 800
STEP_TIME = 0.05  # at most
VISITS = 20.0  # to a page, in the mean, over the whole time
LEAST_TIME = 12.0  # median times between changes
MOST_MISSED = 100_000
HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, MOST_MISSED + 1))])

STALENESS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # marked in the figure
ACROSS = "visits for a page and median time between changes"

Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """An adaptive schedule: factors of a page's interval, and its bounds as shares of the first interval."""

    after_change: float
    without: float
    least: float
    most: float


NUTCH = Rule(0.8, 1.4, 60 / (30 * 86400), 365 / 30)  # as shipped: from a minute to a year, at first 30 days
STORMCRAWLER = Rule(0.5, 1.5, 1 / 24, 28.0)  # from an hour to four weeks, at first a day


@dataclass
class World:
    """Pages, their weights, and how often each changes in each step of `step_time`."""

    rates: Column
    weights: Column
    domains: Counts
    changes: npt.NDArray[np.uint16]  # [steps, pages]
    step_time: float
    a_step: int  # visits


def world(pages: int, budget: float, bursty: bool, seed: int) -> World:
    """Return a world in which each page can be visited `budget` times in a unit of time."""
    rng = np.random.default_rng(seed)
    domains = rng.integers(0, max(1, pages // DOMAIN_PAGES), pages)
    logs = rng.normal(0, 1.2, domains.max() + 1)[domains] + rng.normal(0, 0.9, pages)
    rates = np.exp(logs)
    weights = np.minimum(rng.pareto(1.1, pages) + 1, 1e4)
    time = max(VISITS / budget, LEAST_TIME)
    steps = max(LEAST_STEPS, round(time / STEP_TIME))
    step = time / steps
    changes = np.empty((steps, pages), np.uint16)
    on = rng.random(pages) < 0.1
    for at in range(steps):
        if bursty:
            flips = rng.random(pages) < -np.expm1(-rates * step * np.where(on, 1.0, 1 / 9))
            on ^= flips
            expected = rates * step * np.where(on, 10.0, 0.0)
        else:
            expected = rates * step
        changes[at] = np.minimum(rng.poisson(expected), 60_000)
    return World(rates, weights, domains, changes, step, max(1, round(budget * step * pages)))


@dataclass
class Crawler:
    """The crawler's knowledge of the pages of `world`, by visits."""

    world: World
    ages: Column = field(init=False)
    belief: Belief = field(init=False)
    scaled: Column = field(init=False)  # intervals, for policies that scale them

    def __post_init__(self) -> None:
        pages = len(self.world.rates)
        self.ages = np.random.default_rng(7).random(pages)  # so that equal pages have an order
        self._changes, self._time = np.zeros(self.world.domains.max() + 1), np.zeros(self.world.domains.max() + 1)
        self.belief = self.prior(np.arange(pages))
        self.scaled = np.ones(pages)

    def prior(self, pages: Counts) -> Belief:
        """Return the belief about pages by the other pages of their domains."""
        domains = self.world.domains[pages]
        mean = (self._changes.sum() + 1.0) / (self._time.sum() + 1.0)
        return prior(self._changes[domains], self._time[domains], float(mean))

    def count(self, pages: Counts, changed: Mask) -> None:
        """Count visits to `pages` for their domains."""
        domains = self.world.domains[pages]
        np.add.at(self._changes, domains, changed)
        np.add.at(self._time, domains, self.ages[pages])

    def visit(self, pages: Counts, changed: Mask, rule: "Rule") -> None:
        """Learn from visits to `pages`, and scale their intervals by `rule`."""
        ages = self.ages[pages]
        self.count(pages, changed)
        after = faded(seen(Belief(*(own[pages] for own in self.belief)), changed, ages), self.prior(pages))
        for own, new in zip(self.belief, after, strict=True):
            own[pages] = new
        scaled = self.scaled[pages] * np.where(changed, rule.after_change, rule.without)
        self.scaled[pages] = np.clip(scaled, rule.least, rule.most)
        self.ages[pages] = 0.0


Choose = Callable[[Crawler, np.random.Generator], Counts]


def first(index: Column, crawler: Crawler) -> Counts:
    """Return the pages with the greatest index, as many as a step has visits."""
    return np.argpartition(index, -crawler.world.a_step)[-crawler.world.a_step :]


def uniform(crawler: Crawler, _: np.random.Generator) -> Counts:
    return first(crawler.ages, crawler)


def proportional(crawler: Crawler, _: np.random.Generator) -> Counts:
    return first(crawler.ages * crawler.belief.mean, crawler)


def scaling(crawler: Crawler, _: np.random.Generator) -> Counts:
    return first(crawler.ages / crawler.scaled, crawler)


def at_random(rates: Callable[[Column, Column, float], Column]) -> Choose:
    """Return a policy of random visits, at the rates that `rates` gives for change rates, weights and a multiplier."""

    def choose(crawler: Crawler, rng: np.random.Generator) -> Counts:
        means, weights = crawler.belief.mean, crawler.world.weights
        low, high = 1e-12, 1e12
        for _ in range(40):
            middle = np.sqrt(low * high)
            visits = rates(means, weights, middle)
            if np.sum(-np.expm1(-visits * crawler.world.step_time)) > crawler.world.a_step:
                low = middle
            else:
                high = middle
        return np.flatnonzero(rng.random(len(means)) < -np.expm1(-visits * crawler.world.step_time))

    return choose


def lambda_crawl(rates: Column, weights: Column, multiplier: float) -> Column:
    """Return the visit rates of Kolobov et al. 2019 for pages whose changes are not announced."""
    found: Column = (np.sqrt(rates**2 + 4 * weights * rates / multiplier) - rates) / 2
    return found


def azar(rates: Column, weights: Column, multiplier: float) -> Column:
    """Return the visit rates of Azar et al., Tractable near-optimal policies for crawling, PNAS 2018."""
    return np.maximum(np.sqrt(weights * rates / multiplier) - rates, 0.0)


def cho(crawler: Crawler, _: np.random.Generator) -> Counts:
    """Choose by the optimum of Cho and Garcia-Molina (Effective page refresh policies, TODS 2003), as an index."""
    x = crawler.belief.mean * crawler.ages
    return first(crawler.world.weights / crawler.belief.mean * (1 - (1 + x) * np.exp(-x)), crawler)


def ours(crawler: Crawler, _: np.random.Generator) -> Counts:
    return first(worth(crawler.belief, crawler.world.weights, crawler.ages), crawler)


def with_true_rates(choose: Choose) -> Choose:
    """Return `choose` with knowledge of the true change rates."""

    def chosen(crawler: Crawler, rng: np.random.Generator) -> Counts:
        sure = np.full(len(crawler.ages), 1e9)
        crawler.belief = Belief(sure, sure / crawler.world.rates)
        return choose(crawler, rng)

    return chosen


POLICIES: dict[str, tuple[Choose, Rule, str]] = {
    "uniform": (uniform, NUTCH, FAINT),
    "proportional": (proportional, NUTCH, FAINT),
    "Nutch's rule": (scaling, NUTCH, ORANGE),
    "StormCrawler's rule": (scaling, STORMCRAWLER, ORANGE),
    "Azar 2018": (at_random(azar), NUTCH, PURPLE),
    "LambdaCrawl": (at_random(lambda_crawl), NUTCH, RED),
    "Cho, Garcia-Molina": (cho, NUTCH, GREEN),
    "Fyke": (ours, NUTCH, BLUE),
    "Fyke, true rates": (with_true_rates(ours), NUTCH, BLUE),
}


def run(where: World, choose: Choose, rule: Rule, seed: int = 3) -> tuple[float, float]:
    """Return staleness and freshness of a policy in the second half of the time."""
    rng = np.random.default_rng(seed)
    crawler = Crawler(where)
    missed = np.zeros(len(where.rates), np.int64)
    shares = where.weights / where.weights.sum()
    stale = fresh = 0.0
    steps = len(where.changes)
    for at in range(steps):
        before = HARMONIC[missed]
        was = missed == 0
        missed = np.minimum(missed + where.changes[at], MOST_MISSED)
        if at >= steps // 2:  # the mean of the step's begin and end
            stale += float(shares @ (before + HARMONIC[missed])) / 2
            fresh += float(shares @ (was * 1.0 + (missed == 0))) / 2
        crawler.ages += where.step_time
        pages = choose(crawler, rng)
        crawler.visit(pages, missed[pages] > 0, rule)
        missed[pages] = 0
    return stale / (steps - steps // 2), fresh / (steps - steps // 2)


def compare(pages: int, picture: Path) -> None:
    """Print the table, and draw staleness against the budget as `picture`."""
    found: dict[tuple[str, bool, float], tuple[float, float]] = {}
    for bursty in (False, True):
        for budget in BUDGETS:
            where = world(pages, budget, bursty, seed=11)
            for name, (choose, rule, _) in POLICIES.items():
                found[name, bursty, budget] = run(where, choose, rule)
                stale, fresh = found[name, bursty, budget]
                kind = "bursty" if bursty else "Poisson"
                print(f"{kind}, {budget:4} visits: {name:20} stale {stale:.3f} fresh {fresh:.3f}", flush=True)
    print(
        "\n| policy | " + " | ".join(f"{kind} {budget}" for kind in ("Poisson", "bursty") for budget in BUDGETS) + " |"
    )
    print("|---|" + "---|" * 2 * len(BUDGETS))
    for name in POLICIES:
        cells = (found[name, bursty, budget] for bursty in (False, True) for budget in BUDGETS)
        print(f"| {name} | " + " | ".join(f"{stale:.3f} / {fresh:.3f}" for stale, fresh in cells) + " |")
    for bursty in (False, True):
        for budget in BUDGETS:
            own, true, rival = (found[name, bursty, budget] for name in ("Fyke", "Fyke, true rates", "LambdaCrawl"))
            print(
                f"{'bursty' if bursty else 'Poisson'} {budget}: of LambdaCrawl's staleness {own[0] / rival[0]:.3f},"
                f" of that with true rates {own[0] / true[0]:.3f}, fresh {own[1] - rival[1]:+.3f}"
            )
    draw(found, picture)


def draw(found: dict[tuple[str, bool, float], tuple[float, float]], picture: Path) -> None:
    title = "How stale copies are, by policy"
    subtitle = "mean harmonic staleness, weighted; rates of change learned from visits; both axes logarithmic"
    figure, axes = panels(2, title, subtitle, width_in=12, height_in=5.6)
    for bursty, axis in enumerate(axes):
        for name, (_, _, colour) in POLICIES.items():
            line = [found[name, bool(bursty), budget][0] for budget in BUDGETS]
            axis.loglog(BUDGETS, line, "--" if "true" in name else "-", color=colour, linewidth=2)
        axis.set_xlim(BUDGETS[0] * 0.9, BUDGETS[-1] * 8)
        axis.set_ylim(0.05, 6)
        axis.set_xticks(BUDGETS, [f"{budget:g}" for budget in BUDGETS])
        axis.set_yticks(STALENESS, [f"{stale:g}" for stale in STALENESS])
        axis.minorticks_off()
        dress(axis, "pages change in bursts" if bursty else "pages change as a Poisson process", ACROSS, "staleness")
        mark_points(
            axis,
            BUDGETS[-1],
            [(found[name, bool(bursty), BUDGETS[-1]][0], name, colour) for name, (_, _, colour) in POLICIES.items()],
        )
    save(figure, picture)


# --- estimators


def estimators(pages: int) -> None:
    """Print root mean square errors of the logarithm of the rate, after some visits at random times."""
    print("| visits, mean interval | naive | Cho, Garcia-Molina | smoothed likelihood | Fyke |")
    print("|---|---|---|---|---|")
    for interval in (0.3, 2.0):
        for visits in (3, 10, 30):
            rng = np.random.default_rng(visits)
            rates = np.exp(rng.normal(0, 1.5, pages))
            gaps = rng.exponential(interval, (visits, pages))
            changed = rng.random((visits, pages)) < -np.expm1(-rates * gaps)
            errors = [np.sqrt(np.mean((np.log(found) - np.log(rates)) ** 2)) for found in estimates(gaps, changed)]
            print(f"| {visits}, {interval} | " + " | ".join(f"{error:.2f}" for error in errors) + " |")


def estimates(gaps: Column, changed: Mask) -> Iterator[Column]:
    """Yield the rates of pages that were seen `changed` [visits, pages] after `gaps`, by each estimator. All priors
    are the same: a typical rate of 1, as sure as one visit that found a change and one that found none."""
    time, count, visits = gaps.sum(0), changed.sum(0), len(gaps)
    least = 0.01 / time
    yield np.maximum(count / time, least)
    yield np.maximum(-np.log((visits - count + 0.5) / (visits + 0.5)) * visits / time, least)
    half = np.full((1, gaps.shape[1]), np.log(2.0))
    yield likeliest(
        np.concatenate([gaps, half, half]),
        np.concatenate([changed, np.ones_like(changed[:1]), np.zeros_like(changed[:1])]),
    )
    belief = prior(np.zeros(gaps.shape[1]), np.zeros(gaps.shape[1]), 3.0)  # the mean of rates with median 1
    for gap, change in zip(gaps, changed, strict=True):
        belief = seen(belief, change, gap)
    yield np.exp(digamma(belief.shape)) / belief.time


def likeliest(gaps: Column, changed: Mask) -> Column:
    """Return the root of the sum of gap / (e^(rate gap) - 1) over changes, less the gaps without a change."""
    low, high = np.full(gaps.shape[1], 1e-6), np.full(gaps.shape[1], 1e6)
    without = np.where(changed, 0.0, gaps).sum(0)
    for _ in range(60):
        middle = np.sqrt(low * high)
        with np.errstate(over="ignore"):
            slope = np.where(changed, gaps / np.expm1(middle * gaps), 0.0).sum(0) - without
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return np.sqrt(low * high)


if __name__ == "__main__":
    if sys.argv[1:2] == ["estimators"]:
        estimators(int(sys.argv[2]) if sys.argv[2:] else 20_000)
    else:
        compare(*arguments(__doc__, pages=10_000, picture=Path("freshness.svg")))
