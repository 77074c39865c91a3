"""What a person gets: the command, its report, its pictures, and an end that can be gone on from."""

import json
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from commands import in_process
from fyke.lab.simulate.domain_results import Standings, by_in_degree
from fyke.lab.simulate.policy import POLICIES

SIMULATE = ["simulate", "--domains", "2k", "--host-delay", "1"]
COMMAND = [sys.executable, "-m", "fyke", *SIMULATE]


def fyke(*options):
    return in_process(*SIMULATE, *map(str, options))


def test_the_command_writes_a_report_and_goes_on(tmp_path):
    first = fyke("--into", tmp_path / "s", "--pages", "3k", "--json")
    assert first.status == 0, first.errors
    summary = json.loads(first.out)
    assert summary["pages"] >= 3000
    assert summary["pages"] == 3000 or f"--pages 3,000: {summary['pages']:,} were fetched; " in first.errors
    assert 0 < summary["unique_share"] < 1
    assert summary["peak_memory_bytes"] > 0
    second = fyke("--into", tmp_path / "s", "--pages", "5k")
    assert second.status == 0, second.errors
    assert "pages fetched" in second.out
    report = (tmp_path / "s" / "report.md").read_text()
    for picture in ("policy.svg", "machine.svg"):
        assert f"({picture})" in report
        assert (tmp_path / "s" / picture).read_text().lstrip().startswith("<?xml")
    assert "in-degree" in report
    again = fyke("--into", tmp_path / "s", "--pages", "5k")
    assert again.out == second.out, "nothing was simulated"
    assert (tmp_path / "s" / "report.md").read_text() == report
    other = fyke("--into", tmp_path / "s", "--seed", "2")
    assert other.status == 2
    assert other.errors.count("\n") == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_bytes_on_an_idle_machine_and_beside_other_work(policy, tmp_path):
    def come_of(name, busy):
        with ExitStack() as others:
            for _ in range(busy):
                command = [sys.executable, Path(__file__).with_name("busy.py")]
                others.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
            asked = ["--into", tmp_path / name, "--pages", "8k", "--policy", policy, "--json"]
            done = subprocess.run([*COMMAND, *asked], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        for of_the_machine in ("wall_s", "pages_s", "peak_memory_bytes"):
            del summary[of_the_machine]
        return summary, *((tmp_path / name / file).read_bytes() for file in ("report.md", "policy.svg"))

    assert come_of("alone", 0) == come_of("beside", 2)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 130)], ids=["int", "term", "hup"]
)
def test_it_stops_when_asked_and_has_written_its_report(tmp_path, number, status):
    """With the status of a crawl that the same signal stops."""
    with subprocess.Popen([*COMMAND, "--into", tmp_path / "s", "--pages", "1e9"], stderr=subprocess.PIPE) as process:
        process.stderr.readline()  # how it goes
        process.send_signal(number)
        said = process.stderr.read()
    assert process.returncode == status
    assert b"no link leads to another page" not in said
    assert (tmp_path / "s" / "report.md").exists()


def test_domains_are_gathered_by_in_degree():
    degree = np.array([0, 1, 1, 2, 3, 4, 700])
    fetched = np.array([9, 1, 3, 5, 7, 2, 50])
    bins = by_in_degree(Standings(degree, fetched, fetched, np.zeros(7, bool)), np.ones(7, bool))
    assert bins.in_degree.tolist() == [1, 2.5, 4, 700]
    assert bins.pages.tolist() == [2, 6, 2, 50]
    assert bins.most_pages.tolist() == [3, 7, 2, 50]
    assert bins.domains.tolist() == [2, 2, 1, 1]
    empty = by_in_degree(Standings(degree, fetched, fetched, np.zeros(7, bool)), np.zeros(7, bool))
    assert not len(empty.pages)


@pytest.mark.parametrize(
    "option",
    [
        ("--policy", "no"),
        ("--order", "no"),
        ("--pages", "none"),
        ("--domains", "1B"),
        ("--pages", "0.4"),
        ("--domains", "1.0001k"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(option, tmp_path):
    done = fyke("--into", tmp_path / "s", *option)
    assert done.status == 2
    assert done.errors.count("\n") == 1
    assert not (tmp_path / "s").exists()
