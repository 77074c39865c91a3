"""How much of a crawl spam farms get: breadth-first with fixed delays, and STAR with BEAST, over one virtual web.

    .venv/bin/python benches/spam.py [pages] [domains] [picture]

The farms never end, and link among themselves; crawled breadth-first they come to own some 30 % of all URLs
discovered (IRLbot, Lee et al., WWW 2008, section 5.1: "a quickly branching site that will start to dominate the
queue"). Prints a table, and draws shares over time and Figure 6(b) into `picture` (default: spam.svg).
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fyke.lab.simulate.figures import HEIGHT_IN, WIDTH_IN, draw_discovered, draw_spam, draw_standings
from fyke.lab.simulate.keep import Asked, kept, simulate
from fyke.lab.simulate.spec import WebSpec
from fyke.lab.simulate.standing import Standings, standings
from fyke.lab.simulate.tally import Sample
from fyke.plots import BLUE, RED, panels, save
from fyke.quantities import count_text, share_text

POLICIES = {"breadth-first": RED, "star-beast": BLUE}


@dataclass(frozen=True)
class Crawl:
    """What came of one policy."""

    samples: list[Sample]
    standings: Standings

    @property
    def spam_of_fetches(self) -> float:
        return self.samples[-1].spam_pages / self.samples[-1].pages

    @property
    def spam_of_later_fetches(self) -> float:
        """In the second half of the crawl, when reputations are known."""
        last = self.samples[-1]
        middle = next(sample for sample in self.samples if sample.pages >= last.pages / 2)
        return (last.spam_pages - middle.spam_pages) / max(1, last.pages - middle.pages)

    @property
    def spam_of_urls(self) -> float:
        return self.standings.spam_share_of_urls


def web_of(domains: int) -> WebSpec:
    """A web in which one domain in five hundred is spam's."""
    return WebSpec(domains=domains, farms=max(1, domains // 1500))


def crawled(spec: WebSpec, policy: str, pages: int, **settings: Any) -> Crawl:
    """`pages` pages of the web under `policy`, with `settings` by section over the policy's."""
    with tempfile.TemporaryDirectory() as folder, kept(Path(folder), Asked(spec, policy, **settings)) as simulation:
        simulate(simulation, pages)
        return Crawl(simulation.simulation.tally.samples, standings(simulation.simulation))


def draw(crawls: dict[str, Crawl], picture: Path) -> None:
    """Shares over time for all of `crawls`, and Figure 6(b) for the last."""
    least = min(crawl.samples[-1].pages for crawl in crawls.values())
    title = "Spam farms without end, crawled with and without reputation"
    figure, axes = panels(3, title, f"{count_text(least)} pages each", width_in=WIDTH_IN, height_in=HEIGHT_IN)
    curves = [(policy, crawl.samples, POLICIES[policy]) for policy, crawl in crawls.items()]
    draw_discovered(axes[0], curves)
    draw_spam(axes[1], curves)
    policy = list(crawls)[-1]
    draw_standings(axes[2], crawls[policy].standings)
    save(figure, picture)


def main() -> None:
    pages, domains, picture = [*sys.argv[1:], *["1000000", "200000", "spam.svg"][len(sys.argv) - 1 :]][:3]
    crawls = {}
    print(
        f"{'spam farms have':<16} {'of URLs discovered':>20} {'of fetches':>12} {'in the second half':>20}", flush=True
    )
    for policy in POLICIES:
        crawls[policy] = crawl = crawled(web_of(int(float(domains))), policy, int(float(pages)))
        shares = map(share_text, (crawl.spam_of_urls, crawl.spam_of_fetches, crawl.spam_of_later_fetches))
        print("{:<16} {:>20} {:>12} {:>20}".format(policy, *shares), flush=True)
    draw(crawls, Path(picture))
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
