"""What budgets cost the disk as a crawl grows tenfold: BEAST's queues, and the naive two.

    .venv/bin/python benches/beast_cost.py [pages of the small crawl] [domains] [picture]

Simulated crawls, ten times the small one long, of a web of so few domains that nearly all URLs are over budget: every
domain has the same one, 10 URLs a round. Counted are the bytes that the queues of rounds read and write for each
page. BEAST's are the same for any size of crawl (IRLbot, Lee et al., WWW 2008, Theorem 5); the naive queue is read
again after every round, and what it moves grows with the crawl (Theorem 4). Draws both into `picture` (default:
beast_cost.svg).
"""

import sys
import tempfile
from pathlib import Path

from fyke.plan.quantities import bytes_text, count_text
from fyke.plots import GREEN, RED, panels, save
from fyke.simulate.figures import HEIGHT_IN, draw_cost
from fyke.simulate.keep import Asked, kept, simulate
from fyke.simulate.spec import WebSpec
from fyke.simulate.tally import Sample

GROWTH = 10
SAMPLES = 200
POLICIES = {"star-beast": GREEN, "naive": RED}
QUICK = {"host_delay_s": 0.5, "min_host_delay_s": 0.5, "address_delay_s": 0.0}  # few hosts must be enough


def web_of(domains: int) -> WebSpec:
    """A web of large domains without farms and faults."""
    return WebSpec(
        domains=domains, giants=0, farms=0, size_scale=100_000.0, size_growth=0.2, size_sigma=0.5, branching=2.0,
        dead_share=0, weary_share=0,
    )  # fmt: skip


def crawled(policy: str, domains: int, pages: int) -> list[Sample]:
    """How a crawl of `pages` pages stood over time."""
    asked = Asked(web_of(domains), policy, politeness=QUICK, frontier={"budget": "equal", "window_visits": 4000})
    with tempfile.TemporaryDirectory() as folder, kept(Path(folder), asked) as simulation:
        simulation.simulation.tally.every_pages = max(1, pages // SAMPLES)
        simulate(simulation, pages)
        return simulation.simulation.tally.samples


def bytes_per_page(samples: list[Sample], pages: int) -> float:
    """Bytes moved for each page while the crawl grew from half of `pages` to `pages`."""
    begin = next(sample for sample in samples if sample.pages >= pages / 2)
    end = next((sample for sample in samples if sample.pages >= pages), samples[-1])
    return (end.policy_bytes - begin.policy_bytes) / (end.pages - begin.pages)


def draw(crawls: dict[str, list[Sample]], picture: Path) -> None:
    """Bytes a page over the crawl."""
    figure, (axes,) = panels(
        1, "Budgets that cost the same for any size of crawl", "BEAST and the naive two queues, over one virtual web",
        width_in=8.5, height_in=HEIGHT_IN,
    )  # fmt: skip
    draw_cost(axes, [(policy, samples, POLICIES[policy]) for policy, samples in crawls.items()])
    save(figure, picture)


def main() -> None:
    small, domains, picture = [*sys.argv[1:], *["100000", "500", "beast_cost.svg"][len(sys.argv) - 1 :]][:3]
    pages = int(float(small))
    crawls = {}
    print(
        f"{'':<12} {'at ' + count_text(pages):>16} {'at ' + count_text(GROWTH * pages):>16} {'grows by':>9}", flush=True
    )
    for policy in POLICIES:
        crawls[policy] = samples = crawled(policy, int(float(domains)), GROWTH * pages)
        few, many = bytes_per_page(samples, pages), bytes_per_page(samples, GROWTH * pages)
        print(f"{policy:<12} {bytes_text(few):>16} {bytes_text(many):>16} {many / few - 1:>8.0%}", flush=True)
    draw(crawls, Path(picture))
    print(f"bytes moved a page; picture: {picture}")


if __name__ == "__main__":
    main()
