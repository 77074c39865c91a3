"""The laws of a crawl by several agents that are killed: nothing lost, nothing twice, no host asked too soon.

    python benches/agent_laws.py kill        # a tree of 100,000 pages, 25 agents and 5 supervisors killed
    python benches/agent_laws.py politeness  # 300 hosts on 40 addresses, an agent killed every five seconds
    python benches/agent_laws.py exact       # a lively web, by 1, 2, 5 and again 2 agents

Each crawls a synthetic web (`fyke.lab.simweb`) by the command line, and compares the result with the servers' ledger
and a perfect crawl. The tests run them small (`tests/crawl/test_agents.py`).
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fyke.archive.reading import read_table
from fyke.core.config import build, render
from fyke.lab.simweb import (
    IntendedCrawl,
    NameShares,
    PageShares,
    RobotsShares,
    RunningWeb,
    WebSpec,
    audit_politeness,
    lively,
    plain,
    running_web,
)

POLITE = {"host_delay_s": 0.15, "address_delay_s": 0.03, "delay_factor": 5.0, "max_delay_s": 1.0}
HASTY = {"host_delay_s": 0.0, "address_delay_s": 0.0, "delay_factor": 0.0}
FAULTY = {"failure_delay_s": 0.1, "max_sleep_s": 1.0, "host_failures": 5}


@dataclass(frozen=True)
class Found:
    """The result of a crawl: pages by how often they were archived, and every fault."""

    archived: Counter[str]
    missing: set[str]
    extra: set[str]
    twice: set[str]
    early: Sequence[Any]
    check: str  # output of `fyke check`; empty if it found nothing
    deaths: int

    def __str__(self) -> str:
        return (
            f"{len(self.archived):,} pages, {self.deaths} deaths; missing {len(self.missing)}, extra {len(self.extra)},"
            f" twice {len(self.twice)}, early or overlapping {len(self.early)}; check: {self.check or 'clean'}"
        )

    @property
    def lawful(self) -> bool:
        """Whether there is no fault."""
        return not (self.missing or self.extra or self.twice or self.early or self.check)


class Crawls:
    """Crawls of `web` into one directory, by the command line."""

    def __init__(self, folder: Path, web: RunningWeb, politeness: Mapping[str, float], **store: float) -> None:
        self.web, self.into = web, folder / "crawl"
        self._settings = folder / "settings.toml"
        self._politeness = {**HASTY, **FAULTY, **politeness}
        values = {
            "politeness": self._politeness,
            "fetch": {"connect_timeout_s": 3.0, "timeout_s": 6.0, "stall_s": 2},
            "dns": {
                "timeout_s": 0.5, "tries": 4, "negative_ttl_s": 1.0, "servers": [web.dns], "private": ["sim"],
            },
            "store": store,
        }  # fmt: skip
        self._settings.write_text(render(build(values, "settings")))

    def begun(self, agents: int, *more: str) -> subprocess.Popen[str]:
        """Start a crawl with this number of agents."""
        command = [
            sys.executable, "-m", "fyke", "crawl", *self.web.seeds, "--scope", "web", "--agents", str(agents), *more,
            "--config", str(self._settings), "--into", str(self.into), "--json",
        ]  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, agents: int, *more: str, timeout_s: float = 300) -> dict[str, Any]:
        """Crawl undisturbed to the end; return the summary."""
        crawl = self.begun(agents, *more)
        said, errors = crawl.communicate(timeout=timeout_s)
        if crawl.returncode:
            raise RuntimeError(errors[-2000:])
        summary: dict[str, Any] = json.loads(said)
        return summary

    def found(self, deaths: int = 0, *, crawl_delays: bool = False) -> Found:
        """Return the result of all crawls so far."""
        expected = self.web.perfect(IntendedCrawl(scope="web"))
        wanted = expected.archived | expected.begun
        rows = read_table(self.into, "pages", ["url", "outcome"]).to_pylist()
        archived = Counter(row["url"] for row in rows if row["outcome"] in ("ok", "incomplete"))
        pages = set(archived) - expected.auxiliary
        rules = self._politeness
        early = audit_politeness(
            self.web.ledger(), rules["host_delay_s"], rules["address_delay_s"], rules["delay_factor"],
            self.web.crawl_delays() if crawl_delays else None, delay_ceiling_s=rules.get("max_delay_s", 60.0),
        )  # fmt: skip
        check = subprocess.run(
            [sys.executable, "-m", "fyke", "check", str(self.into)], capture_output=True, text=True, check=False
        )
        return Found(
            archived, wanted - pages, pages - wanted,
            {url for url, count in archived.items() if count > 1}, early, check.stdout if check.returncode else "",
            deaths,
        )  # fmt: skip


def children(process: int) -> list[int]:
    """Return the processes that `process` started."""
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def processes_of(crawl: int) -> list[int]:
    """Return the processes of a crawl's agents, which its fork server started."""
    return [process for server in children(crawl) for process in children(server)]


def crawl_killing(crawls: Crawls, agents: int, kills: Sequence[str], every: int, timeout_s: float) -> int:
    """Crawl to the end; return how many processes were killed.

    `kills` names an `agent` or the `supervisor` in turn; each is killed after `every` more requests.
    """
    rng = random.Random(1)
    deadline = time.monotonic() + timeout_s
    crawl, killed, seen = crawls.begun(agents), 0, 0
    while time.monotonic() < deadline:
        try:
            _, errors = crawl.communicate(timeout=0.2)
        except subprocess.TimeoutExpired:
            requests = crawls.web.ledger().num_rows
            if killed == len(kills) or requests < seen + every:
                continue
            if kills[killed] == "supervisor":
                crawl.kill()
                crawl.communicate()
                crawl = crawls.begun(agents)
            elif there := processes_of(crawl.pid):
                os.kill(rng.choice(there), signal.SIGKILL)
            else:
                continue
            killed, seen = killed + 1, requests
        else:
            if crawl.returncode:
                raise RuntimeError(f"the crawl ended with {crawl.returncode}: {errors[-4000:]}")
            return killed
    crawl.kill()
    crawl.communicate()
    raise TimeoutError(f"no end after {timeout_s} s, {killed} killed")


def kill_law(folder: Path, pages: int, hosts: int, agents: int, kills: Sequence[str], timeout_s: float) -> Found:
    """Crawl a tree of pages, in which a lost link is a lost page."""
    with running_web(plain(pages=pages, hosts=hosts, tree=True, branching=4)) as web:
        crawls = Crawls(folder, web, {"host_delay_s": 0.02}, checkpoint_s=0.5, warc_bytes=4_000_000)
        every = max(20, pages // (2 * len(kills)))
        return crawls.found(crawl_killing(crawls, agents, kills, every, timeout_s))


def politeness_law(folder: Path, pages: int, hosts: int, addresses: int, kills: int, timeout_s: float) -> Found:
    """Crawl hosts that share addresses; some have Crawl-delays, several addresses, or a robots.txt that redirects."""
    spec = WebSpec(
        pages=pages, hosts=hosts, addresses=addresses, domains=hosts // 3, pages_exponent=0.3,
        robots_shares=RobotsShares(delay=0.2, allow=0.2, moved_away=0.05), name_shares=NameShares(several=0.2),
        page_shares=PageShares(throttled=0.03, throttled_date=0.02, slow=0.02, flaky=0.02, redirect_away=0.02),
    )  # fmt: skip
    with running_web(spec) as web:
        crawls = Crawls(folder, web, POLITE, checkpoint_s=1.0)
        deaths = crawl_killing(crawls, 3, ["agent"] * kills, max(10, pages // (2 * kills)), timeout_s)
        return crawls.found(deaths, crawl_delays=True)


def exact_law(folder: Path, pages: int, hosts: int, agents: Sequence[int], timeout_s: float, *, odd: bool) -> Found:
    """Crawl a part of the web with each number of agents in turn."""
    spec = lively(pages=pages, hosts=hosts) if odd else plain(pages=pages, hosts=hosts)
    with running_web(spec) as web:
        crawls = Crawls(folder, web, {})
        for turn, count in enumerate(agents, 1):
            limit = pages * turn // (len(agents) + 1) if turn < len(agents) else 10 * pages
            summary = crawls.run(count, "--pages", str(limit), timeout_s=timeout_s)
            if turn < len(agents) and summary["pages"] != limit:
                raise RuntimeError(f"{summary['pages']} pages, and {limit} were asked for")
        return crawls.found()


def main() -> None:
    """Test one law at full size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("law", choices=["kill", "politeness", "exact"])
    parser.add_argument("--pages", type=int, default=0)
    asked = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        if asked.law == "kill":
            kills = (["agent"] * 5 + ["supervisor"]) * 5
            found = kill_law(path, asked.pages or 100_000, 400, 3, kills, 3600)
        elif asked.law == "politeness":
            found = politeness_law(path, asked.pages or 1200, 300, 40, 20, 900)
        else:
            found = exact_law(path, asked.pages or 3000, 120, [1, 2, 5, 2], 300, odd=True)
    print(f"{asked.law}: {found}; {time.perf_counter() - began:,.0f} s")
    sys.exit(not found.lawful)


if __name__ == "__main__":
    main()
