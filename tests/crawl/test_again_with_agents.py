"""Passes over a crawl by several agents: the same laws as by one."""

import os
import random
import signal
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from agent_laws import processes_of

from crawl.nginx import NGINX, nginx
from crawl.runs import archived, begin, crawl, fyke, settings, wait_until
from crawl.test_again import LAST_WEEK, changed, lay, outcomes, records, site
from fyke.archive.reading import read_table
from fyke.lab.simweb import RunningWeb, plain, running_web

pytestmark = pytest.mark.timeout(240)
needs_nginx = pytest.mark.skipif(not NGINX.exists(), reason="needs nginx")
FOUND = ("number", "unchanged", "changed", "new", "gone")


@needs_nginx
@pytest.mark.parametrize("agents", [(1, 2, 3), (3, 2, 1)])
def test_a_pass_finds_the_same_whatever_the_number_of_agents(tmp_path: Path, agents: tuple[int, int, int]) -> None:
    root, into, config = tmp_path / "root", tmp_path / "crawl", settings(tmp_path)
    first, second, third = (("--agents", str(count)) for count in agents)
    before = site(60)
    lay(root, before)
    with nginx(root) as url:
        assert crawl(into, config, url, *first).summary["pages"] == 61
        lay(root, changed(before), LAST_WEEK + 1000)
        run = crawl(into, config, "--again", *second)
        assert run.status == 0, run.errors
        assert [run.summary["again"][name] for name in FOUND] == [1, 52, 6, 2, 0]
        assert [kind for kind, _ in records(into)].count("revisit") == 52  # each copy was found, whoever wrote it
        assert fyke("check", str(into)).stdout.count("\n") < 3
        run = crawl(into, config, "--again", *third)
        assert [run.summary["again"][name] for name in FOUND] == [2, 60, 0, 0, 3]
    assert sorted(outcomes(into)["p5.html"]) == ["client_error", "gone", "ok"]
    assert fyke("status", str(into)).stdout.count("pass 2: 60 unchanged") == 1
    checked = fyke("check", str(into))
    assert checked.returncode == 0, checked.stdout


def requested_more(web: RunningWeb, requests: int) -> bool:
    return web.ledger().num_rows > requests


def test_a_pass_may_be_killed_and_visits_each_page_once(tmp_path: Path) -> None:
    """Agents and the supervisor die in a pass; its number of agents changes in the middle."""
    rng, into, again = random.Random(2), tmp_path / "crawl", ("--scope", "web", "--again")
    with running_web(plain(pages=150, hosts=12)) as web:
        config = settings(tmp_path, web, politeness={"host_delay_s": 0.02}, store={"checkpoint_s": 0.3})
        whole = crawl(into, config, *web.seeds, "--scope", "web", "--agents", "2").summary
        pages = set(archived(into))
        assert len(pages) == whole["pages"]
        for kill in ("agent", "supervisor", "agent"):
            seen = web.ledger().num_rows
            run = begin(into, config, *again, "--agents", str(rng.choice([2, 3])))
            wait_until(partial(requested_more, web, seen + 25))
            os.kill(rng.choice(processes_of(run.pid)) if kill == "agent" else run.pid, signal.SIGKILL)
            if kill == "agent":
                wait_until(partial(requested_more, web, seen + 40))
                run.send_signal(signal.SIGINT)
            run.wait(60)
        done = crawl(into, config, *again, "--agents", "3")
    assert done.status == 0, done.errors
    assert done.summary["again"]["number"] == 1
    rows = read_table(into, "pages", ["url", "outcome"]).to_pylist()
    unchanged = Counter(row["url"] for row in rows if row["outcome"] == "unchanged")
    assert unchanged == dict.fromkeys(pages, 1)
    assert done.summary["again"]["unchanged"] == len(pages)
    checked = fyke("check", str(into))
    assert checked.returncode == 0, checked.stdout


def test_so_many_visits_are_those_of_all_agents_together(tmp_path: Path) -> None:
    with running_web(plain(pages=150, hosts=20)) as web:
        into, config = tmp_path / "crawl", settings(tmp_path, web)
        assert crawl(into, config, *web.seeds, "--scope", "web", "--agents", "3").status == 0
        done = crawl(into, config, "--scope", "web", "--again", "--visits", "40")
    assert done.summary["again"]["unchanged"] == 40
