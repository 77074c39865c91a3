"""What a host and its address rest outlives the process, by the servers' ledger and to the last microsecond."""

import os
import signal
import subprocess
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crawl.runs import begin, crawl, settings
from crawl.small_site import small_site
from fyke.archive.directory import CrawlDirectory
from fyke.core.config import PolitenessSection
from fyke.fetcher.rests import Rests
from fyke.lab.simweb import PageShares, WebSpec, audit_politeness, running_web
from fyke.lab.simweb.child import RunningWeb

# Every page takes long, so that after it its host rests for as long as a host's rest is in no book yet.
SLOW = WebSpec(
    pages=2000, hosts=12, addresses=9, domains=12, pages_exponent=0.0, page_shares=PageShares(slow=1.0), slow_s=0.35
)
ADDRESS_RESTS = {"host_delay_s": 0.1, "address_delay_s": 3.0, "min_address_delay_s": 3.0}
HOST_RESTS = {"host_delay_s": 0.1, "delay_factor": 16.0, "max_delay_s": 4.8}


def killed(into: Path, config: Path, web: RunningWeb, rng: Random) -> float:
    """Crawl on, and kill it at an instant after some of its requests; when it was dead."""
    begun = web.statistics().requests
    upto, instant_s = begun + rng.randrange(2, 9), rng.random() * 0.5
    arguments = (*web.seeds, "--scope", "web")
    with begin(into, config, *arguments) as process:
        while web.statistics().requests < upto:
            assert process.poll() is None, "the crawl ended before it was killed"
            waits(process, 0.01)
        waits(process, instant_s)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return time.time()


def waits(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def cut_at(rows: list[dict[str, Any]], deaths: list[float]) -> list[dict[str, Any]]:
    """Requests that were under way as the crawler died ended there, however late the server found out."""
    for row in rows:
        row["ended"] = min([row["ended"], *(death for death in deaths if death >= row["arrived"])])
    return rows


def test_a_seed_that_was_public_is_asked_nothing_when_it_is_private_later(tmp_path: Path) -> None:
    """As it is after a kill: the journal alone knows of it."""
    config, into = settings(tmp_path), tmp_path / "crawl"
    with small_site(pages=9) as site:
        seed = site.url.replace("127.0.0.1", "a.localhost")
        assert crawl(into, config, seed, "--pages", "2").status == 0
        directory = CrawlDirectory(into)
        with closing(Rests(directory.rests, PolitenessSection(), 1.0, time.time(), resumed=True)) as rests:
            rests.note_public(["a.localhost"], time.time())
        site.asked.clear()
        done = crawl(into, config, "--pages", "9").summary
        assert done["ending"] == "finished" and done["outcomes"]["address_refused"], done
        assert not site.asked


def address_gaps(rows: list[dict[str, Any]]) -> list[float]:
    """Seconds between the end of each request to an address and the next."""
    by_server: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["arrived"]):
        by_server.setdefault(row["server"], []).append(row)
    return [later["arrived"] - sooner["ended"] for own in by_server.values() for sooner, later in pairwise(own)]


@pytest.mark.parametrize("polite", [ADDRESS_RESTS, HOST_RESTS], ids=["address", "host"])
@pytest.mark.timeout(120)
def test_rests_outlive_the_process(tmp_path: Path, polite: dict[str, float]) -> None:
    assert not too_soon(tmp_path, polite, kills=3, seed=1)


def too_soon(tmp_path: Path, polite: dict[str, float], kills: int, seed: int) -> list[Any]:
    """What the servers say came too soon in a crawl that was killed so often."""
    rng = Random(seed)
    with running_web(SLOW) as web:
        into, config = tmp_path / "crawl", settings(tmp_path, web, politeness=polite, store={"checkpoint_s": 1.0})
        deaths = [killed(into, config, web, rng) for _ in range(kills)]
        requests = web.ledger()
    rows = cut_at(requests.to_pylist(), deaths)
    requests = requests.from_pylist(rows, requests.schema)
    found: list[Any] = audit_politeness(
        requests, 0.1, 0.0, polite.get("delay_factor", 0.0), delay_ceiling_s=polite.get("max_delay_s", 0.0)
    )
    due_s = polite.get("address_delay_s", float("-inf"))
    return found + [("address", gap_s) for gap_s in address_gaps(rows) if gap_s < due_s]
