"""What do link farms look like in the graph of domains, and what do they get if budgets know of it?

    .venv/bin/python benches/farms.py [domains,...] [seeds] [shape,...]

Each web is crawled twice: with STAR and BEAST as shipped, and again with the budgets of `examples/signal_budget.py`.
These are told the signals of the domains met by the first crawl, computed as `fyke index` does. *AUC* is the chance
that a farm's domain has a smaller share behind it than an honest one with about as many linkers (within a factor of
two). *Flagged* are the domains that the table names as dependent.

Shapes: those of `spam.py`, and farms that buy in-degree: `alliance`, 50 to 400 domains that link to each other;
`bought`, one honest domain in five sells links; `dear`, the same, and 40 domains that link to each other. `held` was
run once, when all was done.
"""

import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from spam import PAGES_PER_DOMAIN, SHAPES, HonestShares, honest_shares
from usage import arguments

from fyke.core.batches import U64, Mask, u64
from fyke.lab.simulate.keep import SimulationSettings, opened, simulate
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.texts import Text, domain_keys
from fyke.lab.simulate.web import VirtualWeb
from fyke.quantities import share_text
from fyke.search.domain_signals import DEPENDENT, LEAST_LINKERS
from fyke.search.graph import GraphBuilder
from fyke.search.supporters import supporters

EXAMPLES = Path(__file__).parents[1] / "examples"
MEMORY = 256 << 20
BOUGHT = {
    "alliance": lambda domains: VirtualWebSpec(
        domains=domains, farms=1, farm_domains=min(400, max(50, domains // 50)), spam_cousins=3
    ),
    "bought": lambda domains: VirtualWebSpec(domains=domains, farms=max(1, domains // 1500), spammed_share=0.2),
    "dear": lambda domains: VirtualWebSpec(
        domains=domains, farms=max(1, domains // 3000), farm_domains=40, spam_cousins=3, spammed_share=0.2
    ),
    "held": lambda domains: VirtualWebSpec(
        domains=domains, farms=max(2, domains // 4000), farm_domains=90, spam_cousins=2, spam_camouflage=3,
        spam_branching=5.0, spammed_share=0.04, spam_entry=0.5, popularity=1.0, size_growth=0.65, links_per_page=18,
    ),
}  # fmt: skip
ALL = {**SHAPES, **BOUGHT}


@dataclass(frozen=True)
class Crawled:
    """The result of one crawl."""

    spam: float  # of fetches
    later_spam: float  # of fetches of the second half
    honest: HonestShares
    pages: npt.NDArray[np.int64]  # of each domain
    edges: U64  # [n, 2]: domains that link to another


def crawled(spec: VirtualWebSpec, pages: int, folder: Path, budget: str) -> Crawled:
    """Crawl `pages` pages of the web under STAR and BEAST with this `budget` function."""
    web, found = VirtualWeb(spec), [np.zeros((0, 2), np.uint64)]

    def fetched(text: Text) -> None:
        links = web.links_of(text, np.zeros(len(text), np.int64))
        found.append(np.unique(np.stack([links.sources, u64(links.urls, "domain")], 1), axis=0))
        if len(found) > 64:
            found[:] = [np.unique(np.concatenate(found), axis=0)]

    settings = SimulationSettings(spec, "star-beast", frontier={"budget": budget})
    with opened(folder, settings, fetched) as simulation:
        simulate(simulation, pages)
        samples = simulation.simulation.tally.samples
        last, middle = samples[-1], next(one for one in samples if one.pages >= samples[-1].pages / 2)
        later = (last.spam_pages - middle.spam_pages) / max(1, last.pages - middle.pages)
        tally = simulation.simulation.tally
        return Crawled(
            last.spam_pages / last.pages,
            later,
            honest_shares(simulation.simulation),
            tally.pages_of.astype(np.int64),
            np.unique(np.concatenate(found), axis=0),
        )


def signals(edges: U64, folder: Path) -> tuple[U64, npt.NDArray[np.void]]:
    """Return keys of domains, and their supporters, computed from the links between domains."""
    builder = GraphBuilder(folder, "domains", len(edges), MEMORY)
    for keys in edges.T:
        builder.add_nodes(keys, np.zeros_like(keys))
    builder.add_links(edges[:, 0], edges[:, 1])
    graph = builder.build()
    return np.fromfile(graph.keys, np.uint64), supporters(graph, folder, MEMORY)


def auc(found: npt.NDArray[np.void], spam: Mask) -> float:
    """Return the share of pairs with about as many linkers in which the farm's has fewer behind each; 0.5 without
    pairs."""
    behind, linkers = found["behind"] / np.maximum(found["linkers"], 1), found["linkers"]
    won = pairs = 0.0
    for one in np.flatnonzero(spam & (linkers >= LEAST_LINKERS)).tolist():
        like = behind[~spam & (linkers * 2 >= linkers[one]) & (linkers <= 2 * linkers[one])]
        won += float((like > behind[one]).sum()) + 0.5 * float((like == behind[one]).sum())
        pairs += len(like)
    return won / pairs if pairs else 0.5


def compare(shape: str, domains: int, seed: int) -> None:
    """Crawl one web twice and print its line."""
    spec, pages = replace(ALL[shape](domains), seed=seed), round(PAGES_PER_DOMAIN * domains)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        before = crawled(spec, pages, place / "before", "reputation")
        keys, found = signals(before.edges, place / "graph")
        spam = np.isin(keys, domain_keys(np.arange(spec.domains, spec.all_domains)))
        table = {"key": keys, "linkers": found["linkers"], "independence": found["independence"]}
        os.environ["DOMAINRANK"] = str(place / "domainrank.parquet")
        pq.write_table(pa.table(table), os.environ["DOMAINRANK"])
        after = crawled(spec, pages, place / "after", "signal_budget:SignalBudget")
    flagged = (found["linkers"] >= LEAST_LINKERS) & (found["independence"] < DEPENDENT)
    rivals = spam & (found["linkers"] >= LEAST_LINKERS)
    right = int((flagged & spam).sum())
    print(
        f"{shape:<9} {domains:>8,} {seed:>4} | {np.median(found['linkers'][spam]) if spam.any() else 0:>7.0f}"
        f" {auc(found, spam):>6.3f} {right:>5}/{int(rivals.sum()):<5} {int((flagged & ~spam).sum()):>5}"
        f" | {share_text(before.spam):>7} {share_text(after.spam):>7} | {share_text(before.later_spam):>7}"
        f" {share_text(after.later_spam):>7} | {share_text(before.honest.small):>6} {share_text(after.honest.small):>6}"
        f" | {share_text(lost(before, after, keys[flagged & ~spam], spec)):>6}",
        flush=True,
    )


def lost(before: Crawled, after: Crawled, flagged: U64, spec: VirtualWebSpec) -> float:
    """Return the share of honest domains' fetches that flagged honest domains lost."""
    which = np.isin(domain_keys(np.arange(spec.domains)), flagged)
    less = np.maximum(before.pages[: spec.domains] - after.pages[: spec.domains], 0)[which].sum()
    return float(less / max(1, before.pages[: spec.domains].sum()))


def main() -> None:
    sys.path.insert(0, str(EXAMPLES))
    sizes, seeds, shapes = arguments(__doc__, domains="6000", seeds=1, shapes=",".join(ALL))
    print(
        "                        | farms                      wrong | spam of fetches | of later ones   | small honest"
    )
    print(
        "shape      domains seed | linkers AUC    flagged of        |    STAR signals |    STAR signals |  STAR signals"
    )
    for shape in shapes.split(","):
        for domains in map(int, sizes.split(",")):
            for seed in range(1, seeds + 1):
                compare(shape, domains, seed)


if __name__ == "__main__":
    main()
