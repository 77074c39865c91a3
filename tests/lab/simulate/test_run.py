"""A simulated crawl is a crawl: every page once, politely, and a kill loses and repeats nothing."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from fyke.core.errors import ConfigurationError
from fyke.core.hours import Hours
from fyke.lab.simulate import keep, texts
from fyke.lab.simulate.keep import SimulationSettings, opened, simulate
from fyke.lab.simulate.policy import POLICIES
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.web import VirtualWeb
from lab.simulate.runs import FINITE, Log, logged, reachable, settings_for

ALL = reachable(VirtualWeb(FINITE))
SMALL = VirtualWebSpec(
    domains=3000, giants=3, giant_pages=5000, farms=4, farm_domains=5, weary_share=0.05, dead_share=0.05
)


def pages_in(rows):
    return Counter(zip(rows["domain"].tolist(), rows["page"].tolist(), strict=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_finite_web_is_fetched_to_its_last_page_once(policy, tmp_path):
    log = Log(tmp_path / "log")
    with opened(tmp_path / "crawl", settings_for(policy), log) as simulation:
        log.simulation = simulation
        simulate(simulation, sys.maxsize)
        totals = simulation.simulation.tally.totals
        unique = simulation.sample().unique
    assert pages_in(logged(tmp_path / "log")) == dict.fromkeys(ALL, 1)
    assert (totals.pages, unique, totals.failures) == (len(ALL), len(ALL), 0)
    assert totals.links == len(ALL) * FINITE.links_per_page


def test_killed_at_any_time_it_goes_on_and_ends_with_every_page_once(tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, Path(__file__).with_name("runs.py"), tmp_path / "crawl", log, "star-beast"]
    chance = Random(7)
    for share in (0.1, 0.4, 0.7):
        with subprocess.Popen(command) as process:
            while len(logged(log)) < share * len(ALL) and process.poll() is None:
                wait(process, 0.02)
            wait(process, chance.random() / 10)
            process.kill()
        assert process.returncode == -signal.SIGKILL, "it was killed before its end"
        os.truncate(log, logged(log).nbytes)  # a torn row would shift all that follow
    subprocess.run(command, check=True)
    rows = logged(log)
    assert pages_in(rows).keys() == ALL, "nothing lost"
    assert pages_in(line_of_checkpoints(rows)) == dict.fromkeys(ALL, 1), "nothing repeated that a checkpoint knew"


def wait(process, timeout_s):
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)


def line_of_checkpoints(rows):
    """The rows without those that a kill took back: what a run fetched after the checkpoint the next went on from."""
    line = rows[:0]
    for start, end in pairwise([*np.flatnonzero(np.diff(rows["run"], prepend=-1)), len(rows)]):
        line = np.concatenate([line[line["checkpoint"] < rows["checkpoint"][start]], rows[start:end]])
    return line


class Watched(VirtualWeb):
    """A web that notes every request: host key, address, begin and end."""

    requests: list

    def answers(self, text, now):
        answers = super().answers(text, now)
        ends = (now + answers.duration_s).tolist()
        self.requests += zip(
            texts.host_keys(text).tolist(), self.addresses(text).tolist(), [now] * len(ends), ends, strict=True
        )
        return answers


@pytest.mark.parametrize("policy", ["star-beast", "breadth-first"])
def test_no_host_and_no_address_is_asked_twice_at_once_or_too_soon(policy, tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "VirtualWeb", Watched)
    Watched.requests = []
    delays = {"host_delay_s": 5.0, "min_host_delay_s": 2.0, "address_delay_s": 0.5, "min_address_delay_s": 0.2}
    host_delay_s, address_delay_s = (2.0, 0.2) if policy == "star-beast" else (5.0, 0.5)  # budgets shorten them
    asking = SimulationSettings(SMALL, policy, politeness=delays)
    for pages in (2000, 4000):  # the second goes on from the checkpoint of the first
        with opened(tmp_path, asking) as simulation:
            simulate(simulation, pages)
            now = simulation.simulation.clock.now()
        Watched.requests = [(*request[:3], min(request[3], now)) for request in Watched.requests]  # the rest broken off
    for column, delay_s in ((0, host_delay_s), (1, address_delay_s)):
        free_at = {}
        for request in sorted(Watched.requests, key=lambda request: request[2]):
            assert request[2] >= free_at.get(request[column], 0.0), (column, request)
            free_at[request[column]] = request[3] + delay_s
    assert len(Watched.requests) >= 4000


def test_hosts_are_asked_in_their_hours_alone_and_no_page_is_lost(tmp_path, monkeypatch):
    """The real loop, over days of a virtual clock: what is not asked now is on disk, and the crawl waits for it."""
    monkeypatch.setattr(keep, "VirtualWeb", Watched)
    Watched.requests = []
    hours, log, closed = Hours.of("1:30-1:50 UTC"), Log(tmp_path / "log"), 0
    politeness = {"host_delay_s": 5.0, "address_delay_s": 0.1, "hours": "1:30-1:50 UTC"}
    asking = SimulationSettings(FINITE, "star-beast", politeness=politeness, fetch={"connections": 300})
    for pages in (3000, sys.maxsize):  # the second goes on from the checkpoint of the first
        with opened(tmp_path / "crawl", asking, log) as running:
            log.simulation = running
            simulation = running.simulation
            while simulation.tally.totals.pages < pages and simulation.step():
                now = simulation.clock.now()
                rests_until = simulation.frontier.rests_until(now) if simulation._loop.idle else 0.0
                if rests_until > now + 3600:
                    closed += 1
                    assert rests_until == hours.opens_at(now) and simulation._loop._nothing_left(now) is None
                    assert simulation.fetcher.bench.visits == 0 and len(simulation.frontier._stages.asleep)
            running.checkpoint()
    assert closed and pages_in(logged(tmp_path / "log")) == dict.fromkeys(ALL, 1)
    begun = {request[2] for request in Watched.requests}
    assert all(hours.opens_at(at) == at for at in begun) and max(begun) - min(begun) > 86400


def test_dead_hosts_are_given_up_and_weary_ones_asked_again(tmp_path):
    with opened(
        tmp_path,
        SimulationSettings(
            SMALL, "breadth-first", politeness={"host_delay_s": 1.0, "failure_delay_s": 2.0, "tries": 2}
        ),
    ) as simulation:
        simulate(simulation, 12_000)
        totals = simulation.simulation.tally.totals
    assert totals.failures > 0
    assert totals.retries > 0
    assert totals.rules > 500


def test_a_run_in_two_pieces_counts_what_a_run_in_one_does(tmp_path):
    asking = settings_for("star-beast")
    with opened(tmp_path / "pieces", asking) as simulation:
        simulate(simulation, 1000)
        middle = simulation.simulation.tally.totals.pages
    with opened(tmp_path / "pieces", asking) as simulation:
        assert simulation.simulation.tally.totals.pages == middle >= 1000
        simulate(simulation, sys.maxsize)
        totals = simulation.simulation.tally.totals
        assert simulation.simulation.tally.pages_of.sum() == totals.pages == len(ALL)


def test_another_simulation_is_refused_the_directory(tmp_path):
    with opened(tmp_path, settings_for("star-beast")) as simulation:
        simulate(simulation, 100)
    with pytest.raises(ConfigurationError, match="another web or policy"), opened(tmp_path, settings_for("naive")):
        pass
    with pytest.raises(ConfigurationError, match="unknown policy 'no'"), opened(tmp_path / "other", settings_for("no")):
        pass
    assert not (tmp_path / "other").exists()
    assert json.loads((tmp_path / keep.SETTINGS).read_text())["policy"] == "star-beast"


def test_a_start_that_broke_off_is_begun_anew(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lock").touch()
    (tmp_path / f"{keep.SETTINGS}.part").write_text("{")
    with opened(tmp_path, settings_for("star-beast")) as simulation:
        simulate(simulation, 100)
    assert (tmp_path / keep.SETTINGS).is_file()
