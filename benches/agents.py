"""What does a second agent cost? CPU a page and memory of the same crawl with 1 and 2 agents, in one run.

    python benches/agents.py [--pages 20000] [--agents 1 2] [--rounds 4]

The plain web (`webs`), without delays. All processes of a crawl are held on one core and the server on the other. So
the bench compares the amount of work, not how well two cores share their caches and memory. But processes that take
turns on a core push each other out of its caches. The control is therefore as many independent crawls with one agent
each, of the same web, at the same time, on the same core. The cost of agents above that is their communication. From
each crawl the cost to start and end is subtracted, as measured by a crawl of one page.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from peers import FYKE
from webs import made, size_of
from webs.alone import go_alone
from webs.known import WEBS
from webs.serving import CRAWLER_CORE, Served, served

from fyke.quantities import counted


def cpu_s() -> float:
    """Return the CPU seconds of all processes that were waited for."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def crawled(web: Served, crawls: int, agents: int, *limit: str) -> tuple[float, int, int]:
    """Run `crawls` at the same time, with `agents` each; return CPU seconds, all pages, and the peak memory of one
    crawl."""
    before = cpu_s()
    with tempfile.TemporaryDirectory() as folder:
        running = [
            subprocess.Popen(
                [*FYKE.program(), "-m", "fyke", "crawl", web.web.first_page, "--scope", "web", "--config", web.settings,
                 "--agents", str(agents), "--into", f"{folder}/{number}", "--json", *limit],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: os.sched_setaffinity(0, {CRAWLER_CORE}),
            )
            for number in range(crawls)
        ]  # fmt: skip
        summaries: list[dict[str, Any]] = [json.loads(crawl.communicate()[0]) for crawl in running]
    pages = sum(summary["pages"] for summary in summaries)
    return cpu_s() - before, pages, max(summary["peak_memory_bytes"] for summary in summaries)


def main() -> None:
    """Print a line for each crawl, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    plain = WEBS["plain"]
    files = made(plain, size_of(plain, asked.pages))
    go_alone()
    of_each = [(1, agents) for agents in asked.agents]
    of_each[1:1] = [(agents, 1) for agents in asked.agents if agents > 1]
    names = {each: f"{counted(each[0], 'crawl')} by {counted(each[1], 'agent')}" for each in of_each}
    costs: dict[tuple[int, int], list[float]] = {each: [] for each in of_each}
    with tempfile.TemporaryDirectory() as name, served(plain, files, Path(name)) as web:
        for each in of_each * asked.rounds:
            start_s, _, _ = crawled(web, *each, "--pages", "1")
            used_s, pages, memory = crawled(web, *each)
            costs[each].append((used_s - start_s) / pages * 1e6)
            print(
                f"{names[each]}: {costs[each][-1]:,.0f} µs of CPU a page, and {start_s:.1f} s to start and end;"
                f" {memory / 1e6:,.0f} MB at most",
                flush=True,
            )
    first = median(costs[of_each[0]])
    for each, some in costs.items():
        print(f"{names[each]}: {median(some):,.0f} µs a page, {median(some) / first:.2f} times")


if __name__ == "__main__":
    main()
