"""Hours of the day, by the command: nobody is asked outside of them, whatever becomes of the process."""

import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crawl.runs import archived, command, crawl, settings, wait_until
from crawl.runs import fyke_here as fyke
from crawl.small_site import SmallSite, small_site
from loaded import Loaded

LATER_H = 3


@pytest.fixture
def site():
    with small_site(pages=40) as running:
        yield running


def hours_from(hour: int) -> tuple[str, datetime]:
    """An hour of the day in UTC, which begins so many hours from now, and when that is."""
    begin = (datetime.now(UTC) + timedelta(hours=hour)).replace(minute=0, second=0, microsecond=0)
    return f"{begin.hour}-{(begin.hour + 1) % 24} UTC", begin


def stands(into: Path) -> dict[str, Any]:
    """How the newest checkpoint has it, or what runs."""
    told = fyke("status", str(into), "--json").stdout
    return json.loads(told) if told else {}


def ended_by(number: int, into: Path, config: Path, begin: datetime, *arguments: str) -> tuple[int, str]:
    """Crawl until it rests until `begin`, then send it the signal `number`; its exit status, and what it said."""
    before = stands(into).get("checkpoint", 0)

    def ready() -> bool:
        now = stands(into)
        return now.get("checkpoint", 0) > before and now["rest_until"] == begin.timestamp()

    with Loaded(
        command(into, config, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: ready() or process.poll() is not None)
        assert process.poll() is None, "it waits, however long"
        said = fyke("status", str(into)).stdout
        sent = time.monotonic()
        os.kill(process.pid, number)
        _, told = process.communicate(timeout=60)
        assert time.monotonic() - sent < 30  # and not hours
    assert f"all hosts rest until {datetime.fromtimestamp(begin.timestamp()):%H:%M:%S}" in said
    return process.returncode, told


@pytest.mark.parametrize("agents", [1, 2])
def test_what_rests_for_hours_outlives_the_process_and_goes_on_when_they_change(
    agents: int, site: SmallSite, tmp_path: Path
) -> None:
    into = tmp_path / "there"
    some = crawl(into, settings(tmp_path), site.url, "--pages", "5", "--agents", str(agents))
    assert some.status == 0
    asked = site.asked.total()
    hours, begin = hours_from(LATER_H)
    closed = settings(tmp_path, politeness={"hours": hours}, store={"checkpoint_s": 0.2}, crawl={"agents": agents})

    for number in (signal.SIGKILL, signal.SIGINT):
        status, told = ended_by(number, into, closed, begin, site.url)
    assert status == 130 and "Traceback" not in told
    assert site.asked.total() == asked, "nothing was requested"
    why = fyke("why", str(into), f"{site.url}p39").stdout
    assert f"127.0.0.1 rests until {begin:%Y-%m-%d %H:%M} UTC: its hours are {hours}" in why
    assert "waiting: " in fyke("why", str(into), f"{site.url}p9").stdout
    whole = crawl(into, settings(tmp_path, crawl={"agents": agents}), site.url)
    assert whole.status == 0 and whole.summary["ending"] == "finished"
    assert sorted(archived(into)) == sorted(site.all_urls())


def test_hosts_have_hours_of_their_own(site: SmallSite, tmp_path: Path) -> None:
    """A crawl whose first host is closed fetches from another one; it says until when it waits."""
    into = tmp_path / "there"
    hours, begin = hours_from(LATER_H)
    with small_site(pages=9, host="127.0.0.2") as other:
        text = settings(tmp_path, politeness={"hours": hours}, store={"checkpoint_s": 0.2}).read_text()
        config = tmp_path / "own.toml"
        config.write_text(text + '\n[[site]]\nmatch = "127.0.0.2"\nhours = "0-24"\n')

        status, _ = ended_by(signal.SIGTERM, into, config, begin, site.url, other.url)
        assert status == 0 and not site.asked and sorted(archived(into)) == sorted(other.all_urls())
    assert f"hosts are asked in these hours of the day: {hours}, 0-24 for 127.0.0.2" in fyke("status", str(into)).stdout
