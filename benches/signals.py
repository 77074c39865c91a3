"""What are lists worth that say when pages changed? The same visits with and without listening.

    .venv/bin/python benches/signals.py [pages [seed]]

The pages of `benches/freshness.py`, changing as a Poisson process or in bursts. Half of the domains have a sitemap
whose dates announce changes at once. Staleness is given as a share of that without listening.

- *precise*: 90 % of changes are announced, and 10 % of the dates are wrong;
- *imprecise*: half of the changes, and half of the dates wrong;
- *generated*, *nightly*, *random*: only made-up dates, now and then for all pages of the domain, at regular times, or
  for each page by itself.

*Known* listens with the true quality of the lists. *Obeyed* visits each page that is said to have changed before all
others. Four lists were not looked at while the rules were made:

- *deployed* announces all changes, and dates all pages anew with each version of the site's template;
- *late* is a feed that is read with a delay, its dates right;
- *renewed* is the same, each entry dated when it came out;
- *by child* is a sitemap index with one precise half, and the other half dated each night.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from freshness import BUDGETS, HARMONIC, MOST_MISSED, Column, Counts, Crawler, Mask, World, first, world
from usage import arguments

from fyke.frontier.revisit.belief import Belief, faded
from fyke.frontier.revisit.signals import EVIDENCE, Trust, added_up, counted_age, learned, no_trust, seen, trust
from fyke.frontier.revisit.worth import worth

LISTED = 0.5  # of the domains
RATES = {"precise": (0.9, 0.9), "imprecise": (0.5, 0.5)}  # recall and precision
OFTEN = 2.0  # dates made up for all pages of a domain, per unit of time
NIGHTLY = 0.3

DEPLOYED = 0.5  # versions of a template per unit of time
DELAY = 0.3

# The number of signals per page in a step of a world, for pages of these ages.
Tell = Callable[[World, int, Column, np.random.Generator], Column]


def honest(recall: float, precision: float) -> Tell:
    """Return a teller of changes in a step, and of false ones besides."""
    false = recall * (1 - precision) / precision

    def tell(where: World, at: int, _: Column, rng: np.random.Generator) -> Column:
        found: Column = rng.binomial(where.changes[at], recall) + rng.poisson(false * where.rates * where.step_time)
        return found

    return tell


def generated(where: World, _: int, ages: Column, rng: np.random.Generator) -> Column:
    found: Column = (rng.random(where.domains.max() + 1) < OFTEN * where.step_time)[where.domains] * 1.0
    return found


def nightly(where: World, at: int, ages: Column, _: np.random.Generator) -> Column:
    return np.full(len(where.rates), float(at % max(1, round(NIGHTLY / where.step_time)) == 0))


def random(where: World, _: int, ages: Column, rng: np.random.Generator) -> Column:
    found: Column = rng.poisson(where.step_time, len(where.rates)) * 1.0
    return found


def deployed(where: World, at: int, _: Column, rng: np.random.Generator) -> Column:
    new = rng.random(where.domains.max() + 1) < DEPLOYED * where.step_time
    found: Column = np.maximum(where.changes[at], new[where.domains]) * 1.0
    return found


def late(where: World, at: int, ages: Column, rng: np.random.Generator) -> Column:
    return np.where(ages > DELAY, renewed(where, at, ages, rng), 0.0)


def renewed(where: World, at: int, _: Column, rng: np.random.Generator) -> Column:
    then = at - round(DELAY / where.step_time)
    return rng.binomial(where.changes[then], 0.9) * 1.0 if then >= 0 else np.zeros(len(where.rates))


def by_child(where: World, at: int, ages: Column, rng: np.random.Generator) -> Column:
    precise = TELLERS["precise"](where, at, ages, rng)
    return np.where(np.arange(len(precise)) % 2 == 0, precise, nightly(where, at, ages, rng))


TELLERS: dict[str, Tell] = {
    **{name: honest(*rates) for name, rates in RATES.items()},
    "generated": generated, "nightly": nightly, "random": random,
    "deployed": deployed, "late": late, "renewed": renewed, "by child": by_child,
}  # fmt: skip


@dataclass
class Listener:
    """The signals that a crawler gets about its pages, and its trust in them."""

    crawler: Crawler
    listed: Mask
    how: str  # none, learned, known or obeyed
    lists: str

    def __post_init__(self) -> None:
        self.signals = np.zeros(len(self.listed))
        self._evidence = np.zeros(self.crawler.world.domains.max() + 1, EVIDENCE)

    def trust_of(self, pages: Counts) -> Trust:
        if self.how == "known":
            recall, precision = RATES[self.lists]
            false = recall * (1 - precision) / precision * self.crawler.world.rates[pages]
            return Trust(np.where(self.listed[pages], recall, 0.0), false)
        if self.how == "learned":
            return trust(self._evidence[self.crawler.world.domains[pages]])
        return no_trust(len(pages))

    def index(self) -> Column:
        crawler = self.crawler
        trusted = self.trust_of(np.arange(len(self.listed)))
        index = worth(
            crawler.belief, crawler.world.weights, counted_age(crawler.belief, trusted, self.signals, crawler.ages)
        )
        return index + 1e12 * (self.signals > 0) if self.how == "obeyed" else index

    def visit(self, pages: Counts, changed: Mask) -> None:
        """Learn from visits to `pages` about the pages and their lists."""
        crawler, domains = self.crawler, self.crawler.world.domains[pages]
        ages, signals = crawler.ages[pages], self.signals[pages]
        belief, trusted = Belief(*(own[pages] for own in crawler.belief)), self.trust_of(pages)
        crawler.count(pages, changed)
        added = learned(self._evidence[domains], belief, signals, changed, ages)
        self._evidence = added_up(self._evidence, added, domains)
        after = faded(seen(belief, trusted, signals, changed, ages), crawler.prior(pages))
        for own, new in zip(crawler.belief, after, strict=True):
            own[pages] = new
        crawler.ages[pages] = 0.0
        self.signals[pages] = 0.0


def run(where: World, lists: str, how: str) -> tuple[float, float]:
    """Return staleness and freshness in the second half of the time."""
    domains, rng = where.domains, np.random.default_rng(9)
    listed = (np.random.default_rng(5).random(domains.max() + 1) < LISTED)[domains]
    listener = Listener(Crawler(where), listed, how, lists)
    missed, shares = np.zeros(len(listed), np.int64), where.weights / where.weights.sum()
    stale = fresh = 0.0
    steps = len(where.changes)
    for at in range(steps):
        before, was = HARMONIC[missed], missed == 0
        missed = np.minimum(missed + where.changes[at], MOST_MISSED)
        listener.signals += listed * TELLERS[lists](where, at, listener.crawler.ages, rng)
        if at >= steps // 2:
            stale += float(shares @ (before + HARMONIC[missed])) / 2
            fresh += float(shares @ (was * 1.0 + (missed == 0))) / 2
        listener.crawler.ages += where.step_time
        pages = first(listener.index(), listener.crawler)
        listener.visit(pages, missed[pages] > 0)
        missed[pages] = 0
    return stale / (steps - steps // 2), fresh / (steps - steps // 2)


def compare(pages: int, seed: int) -> None:
    print("| visits | without lists | " + " | ".join(TELLERS) + " | precise, known | precise, obeyed |")
    print("|---|" + "---:|" * (len(TELLERS) + 3))
    for budget, bursty in product(BUDGETS, (False, True)):
        where = world(pages, budget, bursty=bursty, seed=seed)
        stale, fresh = run(where, "precise", "none")
        cells = [f"{stale:.3f} / {fresh:.3f}"]
        for lists, how in [*((name, "learned") for name in TELLERS), ("precise", "known"), ("precise", "obeyed")]:
            found = run(where, lists, how)
            cells.append(f"{found[0] / stale:.3f} / {found[1]:.3f}")
        print(f"| {budget}{', bursts' if bursty else ''} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    compare(*arguments(__doc__, pages=10_000, seed=11))
