"""A signal to stop that comes while a crawl is opened ends it as it does later, with a line; nothing is lost."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawl.runs import archived, begin, crawl, settings, wait_for
from crawl.small_site import SmallSite, small_site

# What takes long as a crawl with much on its disk is opened: here a plug-in, as it is made, and as it is asked.
SLOW = """
import time
from pathlib import Path
import numpy as np

class Slow:
    def __init__(self):
        self._wait("made")

    def accept(self, urls):
        self._wait("asked")
        return np.ones(urls.num_rows, bool)

    def _wait(self, where):
        if Path({folder!r}, where).exists():
            Path({folder!r}, where).rename(Path({folder!r}, "waits"))
            time.sleep(60)
"""


@pytest.fixture
def site() -> Iterator[SmallSite]:
    with small_site(pages=9) as made:
        yield made


@pytest.mark.parametrize(
    ("number", "status", "ending"),
    [(signal.SIGINT, 130, "stopped"), (signal.SIGTERM, 0, "stopped"), (None, 0, "time")],
    ids=["int", "term", "time"],
)
@pytest.mark.parametrize(("where", "agents"), [("made", "1"), ("made", "2"), ("asked", "1")])
def test_a_crawl_that_is_opened_is_stopped(
    site: SmallSite,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    agents: str,
    number: int | None,
    status: int,
    ending: str,
) -> None:
    """By a signal, or because its time is over."""
    (tmp_path / "slow.py").write_text(SLOW.format(folder=str(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]}, plugins={"filters": ["slow:Slow"]})
    into, more = tmp_path / "crawl", ("--agents", agents)
    assert crawl(into, config, site.url, "--pages", "2", *more).status == 0
    before = sorted(archived(into))
    (tmp_path / where).touch()
    process = begin(
        into, config, "--pages", "9", *more, *(() if number else ("--for", "4s")),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(tmp_path / "waits")
    if number is not None:
        process.send_signal(number)
    out, errors = process.communicate(timeout=15)
    assert process.returncode == status, errors
    assert (summary := json.loads(out))["ending"] == ending and summary["pages"] == 2
    (line,) = errors.splitlines()
    how = "stopped" if number else "its time was over"
    assert line.startswith(f"fyke: {how} while the crawl was opened") and "the same command" in line
    assert sorted(archived(into)) == before
    assert crawl(into, config, "--pages", "9", *more).summary["pages"] == 9


def test_a_crawl_that_begins_is_stopped(site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves no folder, and the same command begins."""
    (tmp_path / "slow.py").write_text(SLOW.format(folder=str(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]}, plugins={"filters": ["slow:Slow"]})
    (tmp_path / "made").touch()
    process = begin(tmp_path / "crawl", config, site.url, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "waits")
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=15)[1].count("\n") == 1 and process.returncode == 0
    assert not (tmp_path / "crawl").exists()
    assert crawl(tmp_path / "crawl", config, site.url).status == 0
