"""URLs a second through every URL-seen structure, on one stream, with one amount of memory.

    .venv/bin/python benches/drum_throughput.py [--table 100_000_000] [--links 50_000_000] [--memory-mb 512]
        [--cap 60] [--popularity web|uniform] [--only drum --only "batch merge" ...]

Fills a table, then hands links of 80 bytes each, 89 % of them met before (`url_seen.stream`), to each structure in
its own process, and puts the unique ones into a queue on disk. The time is from end to end: the text of URLs goes
through, wherever a structure keeps it. A slow structure is stopped after `--cap` seconds of CPU, merges its waiting
links, and is judged by the links done. A structure that cannot hold the table gets the largest that it can
(`LARGEST`), which the output says. CPU counts all threads, and is the ratio to trust on a shared machine. Needs 30
bytes of disk per key of the table, in the directory for temporary files.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter

from url_seen.run import STRUCTURES, Result, Task
from url_seen.stream import URL_BYTES

LARGEST: dict[str, Callable[[int], int]] = {  # keys, by bytes of memory
    "in memory": lambda memory_bytes: memory_bytes // 250,  # and as many new ones
    "tree batch": lambda _: 100_000_000,  # larger ones take minutes a merge, and it has no smaller merge
    "rocksdb": lambda _: 100_000_000,  # larger ones take up to half an hour to fill, and are slower still
    "lmdb": lambda _: 100_000_000,
    "sqlite": lambda _: 100_000_000,
}


def child(task: Task) -> str:
    """Do `task` in its own process; return its output."""
    command = [sys.executable, "-m", "url_seen.run", json.dumps(asdict(task))]
    return subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True).stdout


def measured(task: Task) -> tuple[Result, float]:
    """Return the result, and the seconds to fill the table."""
    with tempfile.TemporaryDirectory(prefix="url-seen-") as directory:
        task = replace(task, directory=directory)
        began = perf_counter()
        child(replace(task, step="fill"))
        fill_s = perf_counter() - began
        return Result(**json.loads(child(task))), fill_s


HEADER = (
    f"{'structure':14} {'table':>9} {'fill':>7} {'links':>9} {'speed':>10} {'ratio':>6} {'CPU':>8} {'ratio':>6}"
    f" {'moved':>7} {'peak MB':>8} {'mapped':>7} {'lost':>9}"
)


def row(task: Task, result: Result, fill_s: float, drum: Result) -> str:
    """Return a line under `HEADER`: links a second and CPU a link, each against the Drum's; bytes moved a byte of
    URL."""
    speed, cpu = result.links / result.seconds, result.cpu_s / result.links
    moved = (result.read_bytes + result.written_bytes) / (result.links * URL_BYTES)
    return (
        f"{task.name:14} {task.table / 1e6:7,.0f} M {fill_s:5.0f} s {result.links / 1e6:7.1f} M"
        f" {speed / 1e6:6.3f} M/s {speed * drum.seconds / drum.links:6.3f}"
        f" {cpu * 1e6:5.2f} µs {cpu * drum.links / drum.cpu_s:6.1f}"
        f" {moved:7.2f} {result.peak_bytes / 1e6:8.0f} {result.mapped_bytes / 1e6:7.0f} {result.lost:9,}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="URLs a second through every URL-seen structure")
    parser.add_argument("--table", type=int, default=100_000_000)
    parser.add_argument("--links", type=int, default=50_000_000)
    parser.add_argument("--memory-mb", type=int, default=512)
    parser.add_argument("--cap", type=float, default=60.0, help="seconds of CPU for a structure, and a merge more")
    parser.add_argument("--popularity", choices=["web", "uniform"], default="web")
    parser.add_argument("--only", action="append", choices=list(STRUCTURES))
    asked = parser.parse_args()
    print(HEADER)
    drum = None
    for name in asked.only or STRUCTURES:
        memory_bytes = asked.memory_mb << 20
        table = min(asked.table, LARGEST.get(name, lambda _: asked.table)(memory_bytes))
        links = min(asked.links, 9 * table) if name == "in memory" else asked.links
        task = Task(name, "measure", "", table, links, memory_bytes, asked.cap, asked.popularity)
        result, fill_s = measured(task)
        drum = drum or result  # or the first structure asked for
        print(row(task, result, fill_s, drum), flush=True)


if __name__ == "__main__":
    main()
