"""How long is a merge that a starving fetcher asks for? 200 links into a large table, and into a small one.

    .venv/bin/python benches/drum_small_merge.py [--table 50_000_000] [--memory-mb 256]

At a crawl's start, a merge of the few URLs found must not cost a pass over the table. It looks each link up with a
read or two and writes nothing to the table.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

from url_seen.drum import DrumSeen
from url_seen.run import Task, fill
from url_seen.stream import Stream

LINKS = 200
SMALL = 30_000
TIMES = 200


def merge_s(seen: DrumSeen, stream: Stream) -> float:
    """Return the CPU seconds of a merge of `LINKS` links, the median of `TIMES`."""
    spent = []
    keys, texts, _ = next(stream.batches())
    for start in range(0, LINKS * TIMES, LINKS):
        for _ in seen.check_update(keys[start : start + LINKS], texts.slice(start, LINKS)):
            raise AssertionError("a small batch made the drum full")
        began = process_time()
        for _ in seen.finish():
            pass
        spent.append(process_time() - began)
    return median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description="how long a small merge takes")
    parser.add_argument("--table", type=int, default=50_000_000)
    parser.add_argument("--memory-mb", type=int, default=256)
    asked = parser.parse_args()
    for table in (SMALL, asked.table):
        with tempfile.TemporaryDirectory(prefix="url-seen-") as directory:
            task = Task("drum", "fill", directory, table, LINKS * TIMES, asked.memory_mb << 20)
            seen = DrumSeen(Path(directory), task.memory_bytes, table)
            fill(task, seen)
            taken = merge_s(seen, task.stream)
            print(f"{LINKS} links into {table:,} keys: {taken * 1e3:.2f} ms of CPU")
            seen.close()


if __name__ == "__main__":
    main()
