"""How much of a crawl do spam farms get? Breadth-first with fixed delays, and STAR with BEAST, over one virtual web.

    .venv/bin/python benches/spam.py [pages] [domains] [picture]
    .venv/bin/python benches/spam.py sweep [domains,domains,...] [seeds] [shape,shape,...]

The farms never end, and link among themselves. In a breadth-first crawl they come to own some 30 % of all URLs
discovered (IRLbot, Lee et al., WWW 2008, section 5.1: "a quickly branching site that will start to dominate the
queue"). Prints a table, and draws shares over time and Figure 6(b) into `picture` (default: spam.svg).

A policy that holds at one size may fail at another. `sweep` goes through sizes, seeds and shapes of farms, with the
settings as shipped, and prints a line for each web: the share of spam, and the shares of large and small honest
domains.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from usage import arguments

from fyke.core.batches import Mask
from fyke.lab.simulate.domain_results import Standings, standings
from fyke.lab.simulate.figures import HEIGHT_IN, WIDTH_IN, draw_discovered, draw_spam, draw_standings
from fyke.lab.simulate.keep import SimulationSettings, opened, simulate
from fyke.lab.simulate.simulation import Simulation
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.tally import Sample
from fyke.plots import BLUE, RED, panels, save
from fyke.quantities import count_text, share_text

POLICIES = {"breadth-first": RED, "star-beast": BLUE}
SIZES = "2000,6000,20000,60000,200000"
SEEDS = "5"
PAGES_PER_DOMAIN = 6.5  # in a sweep
SPARE = 3  # honest pages per fetched page, at least; giants not counted
LARGE_PAGES = 1000  # of a domain


@dataclass(frozen=True)
class HonestShares:
    """The fetches that honest domains got."""

    pages: int  # of honest domains, without the giants'
    giants_of_fetches: float
    large: float  # share of their pages that was fetched; giants not counted
    small: float


@dataclass(frozen=True)
class Crawl:
    """The result of one policy."""

    samples: list[Sample]
    standings: Standings
    honest: HonestShares

    @property
    def spam_of_fetches(self) -> float:
        return self.samples[-1].spam_pages / self.samples[-1].pages

    @property
    def spam_of_later_fetches(self) -> float:
        """Share of spam in the second half of the crawl, when reputations are known."""
        last = self.samples[-1]
        middle = next(sample for sample in self.samples if sample.pages >= last.pages / 2)
        return (last.spam_pages - middle.spam_pages) / max(1, last.pages - middle.pages)

    @property
    def spam_of_urls(self) -> float:
        return self.standings.spam_share_of_urls


def web_of(domains: int) -> VirtualWebSpec:
    """Return a web with one spam domain in five hundred."""
    return VirtualWebSpec(domains=domains, farms=max(1, domains // 1500))


SHAPES: Mapping[str, Callable[[int], VirtualWebSpec]] = MappingProxyType(
    {
        "own": web_of,
        "huge": lambda domains: VirtualWebSpec(domains=domains, farms=2, farm_domains=max(10, domains // 50)),
        "tiny": lambda domains: VirtualWebSpec(
            domains=domains, farms=max(1, domains // 500), farm_domains=30, spam_cousins=3
        ),
        "other": lambda domains: VirtualWebSpec(  # not looked at until the policy was final
            domains=domains, farms=max(1, domains // 3000), farm_domains=60, spammed_share=0.03, spam_branching=6.0,
            spam_camouflage=2, popularity=0.95, size_growth=0.6, giants=6, giant_pages=500_000,
        ),
    }
)  # fmt: skip


def crawled(spec: VirtualWebSpec, policy: str, pages: int, **settings: Any) -> Crawl:
    """Crawl `pages` pages of the web under `policy`, with `settings` by section over the policy's."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(Path(folder), SimulationSettings(spec, policy, **settings)) as simulation,
    ):
        simulate(simulation, pages)
        return Crawl(
            simulation.simulation.tally.samples, standings(simulation.simulation), honest_shares(simulation.simulation)
        )


def honest_shares(simulation: Simulation) -> HonestShares:
    """Return the fetches that honest domains have got in `simulation` so far."""
    domains, totals = simulation.web.domains, simulation.tally.totals
    fetched = simulation.tally.pages_of[: domains.honest].astype(np.int64)
    pages = domains.pages.astype(np.int64)
    giant = np.zeros(domains.honest, np.bool_)
    giant[domains.giants] = True

    def share(which: Mask) -> float:
        return float(fetched[which].sum() / max(1, pages[which].sum()))

    return HonestShares(
        int(pages[~giant].sum()),
        float(fetched[giant].sum() / totals.pages),
        share(~giant & (pages >= LARGE_PAGES)),
        share(~giant & (pages < LARGE_PAGES)),
    )


def draw(crawls: dict[str, Crawl], picture: Path) -> None:
    """Draw shares over time for all of `crawls`, and Figure 6(b) for the last."""
    least = min(crawl.samples[-1].pages for crawl in crawls.values())
    title = "Spam farms without end, crawled with and without reputation"
    figure, axes = panels(3, title, f"{count_text(least)} pages each", width_in=WIDTH_IN, height_in=HEIGHT_IN)
    curves = [(policy, crawl.samples, POLICIES[policy]) for policy, crawl in crawls.items()]
    draw_discovered(axes[0], curves)
    draw_spam(axes[1], curves)
    policy = list(crawls)[-1]
    draw_standings(axes[2], crawls[policy].standings)
    save(figure, picture)


def honest_text(honest: HonestShares) -> str:
    """Return the shares of honest domains, in words."""
    large, small = share_text(honest.large), share_text(honest.small)
    return (
        f"giants {share_text(honest.giants_of_fetches)} of fetches; of their pages the large {large}, the small {small}"
    )


def sweep(sizes: str = SIZES, seeds: str = SEEDS, shapes: str = "own") -> None:
    """Print a line for each web: for each policy spam's share of fetches, giants' share, and the share of pages
    fetched."""
    print("shape      domains seed     pages  spam: bf   star | giants: bf  star | large: bf  star | small: bf  star")
    for shape in shapes.split(","):
        for domains in map(int, sizes.split(",")):
            for seed in range(1, int(seeds) + 1):
                compare(shape, domains, seed)


def compare(shape: str, domains: int, seed: int) -> None:
    """Crawl one web under both policies and print its line."""
    spec, pages = replace(SHAPES[shape](domains), seed=seed), round(PAGES_PER_DOMAIN * domains)
    first, reputation = (crawled(spec, policy, pages) for policy in POLICIES)
    assert first.honest.pages >= SPARE * pages, "else only spam is left"
    pairs = [
        (first.spam_of_fetches, reputation.spam_of_fetches),
        (first.honest.giants_of_fetches, reputation.honest.giants_of_fetches),
        (first.honest.large, reputation.honest.large),
        (first.honest.small, reputation.honest.small),
    ]
    shares = " | ".join(f"{share_text(before):>9} {share_text(after):>6}" for before, after in pairs)
    print(f"{shape:<8} {domains:>9,} {seed:>4} {pages:>9,} {shares}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["sweep"]:
        sweep(*sys.argv[2:])
        return
    pages, domains, picture = arguments(__doc__, pages=1_000_000, domains=200_000, picture=Path("spam.svg"))
    crawls = {}
    print(
        f"{'spam farms have':<16} {'of URLs discovered':>20} {'of fetches':>12} {'in the second half':>20}", flush=True
    )
    for policy in POLICIES:
        crawls[policy] = crawl = crawled(web_of(domains), policy, pages)
        shares = map(share_text, (crawl.spam_of_urls, crawl.spam_of_fetches, crawl.spam_of_later_fetches))
        print("{:<16} {:>20} {:>12} {:>20}".format(policy, *shares), flush=True)
        print(f"{'':<16} honest domains: {honest_text(crawl.honest)}", flush=True)
    draw(crawls, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
