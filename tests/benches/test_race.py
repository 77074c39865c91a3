"""The race measures all of a crawler, and says what the server saw."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from peers import PEERS
from race import Run, median, table
from webs.alone import can_go_alone
from webs.serving import Tally

BENCHES = Path(__file__).parents[2] / "benches"

# A crawler that ends and leaves a child behind, which has used 0.3 s of CPU, holds 50 MB and would stay for ever.
CHILD = """
import signal, time
held = b"x" * 50_000_000
while time.process_time() < 0.3: pass
print("done", flush=True)
signal.pause()
"""
CRAWLER = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid)
"""
BENCH = """
import json, os, resource, subprocess, sys
import race
from webs.alone import can_go_alone
from webs.serving import Tally
race.adopt_orphans()
processes = race.Processes()
crawler = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
peak = race.watch(crawler, processes, lambda: Tally(0, 0, 0, 0, 0, 0, 0, 0), None, 60)
processes.end(crawler)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
left = os.path.exists(f"/proc/{int(crawler.stdout.read())}")
print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "peak": peak, "left": left}))
"""


def test_what_a_crawler_leaves_running_is_counted_and_ended():
    done = subprocess.run([sys.executable, "-c", BENCH, CRAWLER], cwd=BENCHES, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    assert found["cpu_s"] >= 0.3
    assert found["peak"] >= 50_000_000
    assert not found["left"]


def ran(pages: int, cpu_s: float) -> Run:
    return Run(Tally(pages, 0, 0, 1, 0, 0, 1, 0), 10.0, cpu_s, 1, [])


def test_the_table_has_the_cheapest_first_and_ratios_to_ours():
    text = table({PEERS["scrapy"]: ran(100, 2.0), PEERS["fyke"]: ran(1000, 1.0), PEERS["wget2"]: ran(1000, 0.25)})
    cells = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| ")]
    assert [(row[1], row[4], row[5]) for row in cells[1:]] == [
        ("wget2", "250", "0.25"),
        ("fyke", "1,000", "1.00"),
        ("scrapy", "20,000", "20.00"),
    ]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_median_is_a_run_that_took_place(count):
    runs = [ran(100, cpu_s) for cpu_s in range(1, count + 1)]
    assert median(runs[::-1]) is runs[count // 2]


@pytest.mark.skipif(not can_go_alone(), reason="this system gives nobody a network of its own")
def test_a_short_race_counts_what_the_server_served_and_goes_on_without_who_does_not_crawl(tmp_path):
    broken = tmp_path / "wget2"
    broken.write_text("#!/bin/sh\necho no such option\nexit 2\n")
    broken.chmod(0o755)
    command = [sys.executable, BENCHES / "race.py", "endless", "--only", "wget2", "--only", "fyke", "--pages", "600"]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*command, "--into", tmp_path], env=environment, capture_output=True, text=True, check=True)
    assert "wget2 fetched nothing: no such option" in done.stderr
    told = done.stdout.splitlines()
    assert [line.split("|")[1:3] for line in told if line.startswith("| ")][1:] == [[" fyke ", " 600 "]]
    assert "0 forbidden URLs, 0 pages again, 0 other answers" in told[-1]
