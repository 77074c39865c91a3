"""A crawl that never ends, without its network: ten virtual days of plans over as many pages as fit the disk.

    .venv/bin/python benches/revisit_scale.py FOLDER [pages]

Each day has a plan and a checkpoint, and a twentieth of the pages is visited: at 1,000 visits a second that is a plan
each `pages` / 20,000 seconds. Prints the memory, what was read and written, and the formula beside it: a plan reads the
pages that rest twice and writes them once, and the table of what is known of them once each way. Then the share of the
time for which a disk of 250 MB/s is busy with it.
"""

import sys
import time
from collections import deque
from pathlib import Path

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, u64, url_columns
from fyke.core.memory import memory_bytes
from fyke.disk.checkpoint import Checkpoint
from fyke.frontier.again import COPY, ENDED, KNOWN, Again, News, Visited
from fyke.frontier.revisit.choice import Terms
from fyke.search.ranges import mixed

BATCH = 1 << 16
DAYS = 10
DAY_S = 86400.0
HOST_PAGES = 1000
NAME = b"http://www.d0000000.example/some/page-000000000"
DIGITS_AT = len(NAME) - 9
DISK_BYTES_S = 250e6
VISITS_S = 1000
VISITED = 20  # one page in so many, from plan to plan
MOVED = ("bytes_read", "bytes_written", "read_bytes", "written_bytes")


def met(numbers: U64) -> pa.RecordBatch:
    """Pages with these numbers (uint64[n]), schema `URLS`."""
    names = np.tile(np.frombuffer(NAME, np.uint8), (len(numbers), 1))
    for digit in range(9):
        names[:, DIGITS_AT + 8 - digit] = 48 + numbers // np.uint64(10**digit) % np.uint64(10)
    ends = np.arange(len(numbers) + 1, dtype=np.int32) * len(NAME)
    url = pa.BinaryArray.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(ends), pa.py_buffer(names)])
    host = mixed(numbers // np.uint64(HOST_PAGES))
    return url_columns(url, mixed(numbers), host, host)


def tell(again: Again, urls: pa.RecordBatch, now: float) -> None:
    """Visits to `urls` ended; every fourth page has changed."""
    news = np.where(u64(urls, "key") % np.uint64(4) == 0, News.CHANGED, News.SAME).astype(np.uint8)
    there = np.full(urls.num_rows, Visited.THERE, np.uint8)
    columns = [*urls.columns, *map(pa.array, (there, news, np.full(urls.num_rows, now)))]
    none = np.zeros(urls.num_rows, bool)
    again.learn(pa.RecordBatch.from_arrays(columns, schema=ENDED), none, np.zeros(len(none), COPY))


def moved(again: Again) -> int:
    """Bytes read and written so far."""
    parts = [part.statistics() for part in (again._known, again._resting, again._queue, again._learned)]
    return sum(getattr(part, name, 0) for part in parts for name in MOVED)


def run(pages: int, folder: Path) -> None:
    checkpoint = Checkpoint(folder)
    again = Again(checkpoint.store, 8 << 20)
    for begin in range(0, pages, BATCH):
        tell(again, met(np.arange(begin, min(pages, begin + BATCH), dtype=np.uint64)), 0.0)
    print("| day | memory MB | moved GB | formula GB | plan s | rest | wait | disk |\n|" + "---|" * 8, flush=True)
    for day in range(1, DAYS + 1):
        before, begun = moved(again), time.monotonic()
        deque(again.plan(day * DAY_S, Terms(3600.0, 30 * DAY_S, most=pages // VISITED)), maxlen=0)
        snapshot = checkpoint.take({"again": again.state()})
        snapshot.make_durable()
        checkpoint.committed(snapshot)
        took, bytes_moved = time.monotonic() - begun, moved(again) - before
        if day > 1:  # the first one takes in what was told at the beginning
            scanned = again._resting.size_bytes
            bytes_moved += scanned
            expected = 3 * scanned + 2 * len(again._known) * (8 + KNOWN.itemsize)
            share = bytes_moved / DISK_BYTES_S / (pages / VISITED / VISITS_S)
            print(
                f"| {day} | {memory_bytes() / 1e6:.0f} | {bytes_moved / 1e9:.2f} | {expected / 1e9:.2f} | {took:.0f} |"
                f" {again.resting:,} | {len(again):,} | {share:.1%} |",
                flush=True,
            )
        while (urls := again.get(BATCH, None)) is not None:
            tell(again, urls, day * DAY_S)
    again.close()
    checkpoint.close()


if __name__ == "__main__":
    run(int(float(sys.argv[2])) if sys.argv[2:] else 1_000_000, Path(sys.argv[1]))
