"""What a second agent costs: CPU a page and memory of the same crawl with 1 and 2 agents, in one run.

    python benches/agents.py [--pages 20000] [--agents 1 2] [--rounds 3]

The plain web (`webs`), without delays. All processes of a crawl are held on one core and the server on the other, so
that agents do not slow each other down: what is compared is how much there is to do, and not how well two cores share
what is beside them. Of each crawl what it takes to start and end is taken off, as a crawl of one page tells it.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from peers import FYKE
from webs import made, size_of
from webs.alone import go_alone
from webs.known import WEBS
from webs.serving import CRAWLER_CORE, Served, served


def crawled(web: Served, agents: int, *limit: str) -> tuple[float, dict[str, int]]:
    """CPU seconds of a crawl's processes, and its summary."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*FYKE.program(), "-m", "fyke", "crawl", web.web.first_page, "--scope", "web", "--config", web.settings,
             "--agents", str(agents), "--into", f"{folder}/crawl", "--json", *limit],
            check=True, capture_output=True, preexec_fn=lambda: os.sched_setaffinity(0, {CRAWLER_CORE}),
        )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, json.loads(done.stdout)


def main() -> None:
    """A line for each crawl, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    plain = WEBS["plain"]
    files = made(plain, size_of(plain, asked.pages))
    go_alone()
    costs: dict[int, list[float]] = {agents: [] for agents in asked.agents}
    with tempfile.TemporaryDirectory() as name, served(plain, files, Path(name)) as web:
        for agents in asked.agents * asked.rounds:
            start_s, _ = crawled(web, agents, "--pages", "1")
            cpu_s, summary = crawled(web, agents)
            costs[agents].append((cpu_s - start_s) / summary["pages"] * 1e6)
            print(
                f"{agents} agents: {costs[agents][-1]:,.0f} µs of CPU a page, and {start_s:.1f} s to start and end;"
                f" {summary['peak_memory_bytes'] / 1e6:,.0f} MB at most",
                flush=True,
            )
    first = median(costs[asked.agents[0]])
    for agents, some in costs.items():
        print(f"{agents} agents: {median(some):,.0f} µs a page, {median(some) / first:.2f} times")


if __name__ == "__main__":
    main()
