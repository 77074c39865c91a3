"""What a second agent costs: CPU a page and memory of the same crawl with 1 and 2 agents, in one run.

    python benches/agents.py [--pages 6000] [--agents 1 2]

A synthetic web without delays, whose server runs beside the crawler: on two cores it takes a part of them, so wall time
says little, and CPU seconds of the crawler's own processes are what is compared.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from agent_laws import Crawls

from fyke.lab.simweb import plain, running_web


def cpu_s() -> float:
    """CPU seconds of all children that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    """A line for each number of agents; start and end are taken off by a crawl of one page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    with running_web(plain(pages=asked.pages, hosts=120)) as web:
        for agents in asked.agents:
            spent = []
            for pages in (1, 10 * asked.pages):
                with tempfile.TemporaryDirectory() as folder:
                    before, began = cpu_s(), time.perf_counter()
                    crawl = Crawls(Path(folder), web, {}).run(agents, "--pages", str(pages))
                    spent.append((cpu_s() - before, time.perf_counter() - began))
            cpu = (spent[1][0] - spent[0][0]) / crawl["pages"] * 1e6
            rate = crawl["pages"] / (spent[1][1] - spent[0][1])
            memory = crawl["peak_memory_bytes"] / 1e6
            print(f"{agents} agents: {cpu:,.0f} µs of CPU a page, {rate:,.0f} pages/s, {memory:,.0f} MB at most")


if __name__ == "__main__":
    main()
