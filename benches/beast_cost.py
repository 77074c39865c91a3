"""What do budgets cost the disk as a crawl grows tenfold? BEAST's queues, and the naive two.

    .venv/bin/python benches/beast_cost.py [pages of the small crawl] [domains] [picture]

Simulated crawls of a web of few domains, so that nearly all URLs are over budget: every domain has the same budget,
10 URLs a round. The bench counts the bytes that the queues of rounds read and write, for each page fetched so far.

- For BEAST they stay below a bound for any size of crawl (IRLbot, Lee et al., WWW 2008, Theorem 5). Within it they go
  up and down: the queue over budget is reread whole a few times while the crawl doubles.
- The naive queue is reread after every round, and the bytes it moves grow with the crawl (Theorem 4). It is given up
  after `PATIENCE` times the time of BEAST.

Draws both into `picture` (default: beast_cost.svg).
"""

import tempfile
from pathlib import Path
from time import perf_counter

from usage import arguments

from fyke.lab.simulate.figures import HEIGHT_IN, draw_cost
from fyke.lab.simulate.keep import SimulationSettings, opened, simulate
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.tally import Sample
from fyke.plots import GREEN, RED, panels, save
from fyke.quantities import bytes_text, count_mark

GROWTH = 10
SAMPLES = 200
PATIENCE = 2.0
POLICIES = {"star-beast": GREEN, "naive": RED}
QUICK = {"host_delay_s": 0.5, "min_host_delay_s": 0.5, "address_delay_s": 0.0}  # so that few hosts are enough


def web_of(domains: int) -> VirtualWebSpec:
    """Return a web of large domains without farms and faults."""
    return VirtualWebSpec(
        domains=domains, giants=0, farms=0, size_scale=100_000.0, size_growth=0.2, size_sigma=0.5, branching=2.0,
        dead_share=0, weary_share=0,
    )  # fmt: skip


def crawled(policy: str, domains: int, pages: int, patience_s: float = float("inf")) -> list[Sample]:
    """Return the samples of a crawl of `pages` pages; it ends sooner after `patience_s` seconds."""
    settings = SimulationSettings(
        web_of(domains), policy, politeness=QUICK, frontier={"budget": "equal", "window_visits": 4000}
    )
    end = perf_counter() + patience_s
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), settings) as simulation:
        simulation.simulation.tally.every_pages = max(1, pages // SAMPLES)
        simulate(simulation, pages, stopped=lambda: perf_counter() >= end)
        return simulation.simulation.tally.samples


def bytes_per_page(samples: list[Sample], pages: int) -> float | None:
    """Return the bytes moved per page when the crawl had `pages`; None if it did not get that far."""
    at = next((sample for sample in samples if sample.pages >= pages), None)
    return None if at is None else at.policy_bytes / at.pages


def draw(crawls: dict[str, list[Sample]], picture: Path) -> None:
    """Draw bytes a page over the crawl."""
    figure, (axes,) = panels(
        1,
        "Budgets that cost the same for any size of crawl",
        "BEAST and the naive two queues, over one virtual web",
        width_in=8.5,
        height_in=HEIGHT_IN,
    )
    draw_cost(axes, [(policy, samples, POLICIES[policy]) for policy, samples in crawls.items()])
    save(figure, picture)


def main() -> None:
    small, domains, picture = arguments(__doc__, pages=100_000, domains=200, picture=Path("beast_cost.svg"))
    marks = [round(small * share) for share in (1, 1.5, 2, 3, 5, 7, GROWTH)]
    print("bytes moved a page, at", *(f"{count_mark(mark):>8}" for mark in marks), flush=True)
    crawls: dict[str, list[Sample]] = {}
    patience_s = float("inf")
    for policy in POLICIES:
        begun = perf_counter()
        crawls[policy] = crawled(policy, domains, marks[-1], patience_s)
        patience_s = PATIENCE * (perf_counter() - begun)
        costs = (bytes_per_page(crawls[policy], mark) for mark in marks)
        print(f"{policy:<22}", *(f"{bytes_text(cost) if cost else 'given up':>8}" for cost in costs), flush=True)
    draw(crawls, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
