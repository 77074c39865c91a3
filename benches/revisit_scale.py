"""A never-ending crawl without its network: ten virtual days of plans over as many pages as fit the disk.

    .venv/bin/python benches/revisit_scale.py FOLDER [pages [MiB]]

Each day has a plan and a checkpoint. A twentieth of the pages is visited, and every fourth of these has changed: at
1,000 visits a second that is a plan each `pages` / 20,000 seconds. Pages, times and parents are as hard to pack as
real ones. `MiB` is the memory of a table (`table_memory_bytes`). It is enough if an eighth of a row fits it for each
visit of a day; otherwise the tables are merged more than once a day.

Prints the memory, the file bytes read and written, and the formula beside it. In it r and b are the packed bytes of a
resting page and of the beliefs about it, and v is the share of the pages visited from plan to plan:

    pages (b + 2 r + 3 (25 + 32) + v w)

A plan reads the beliefs, then reads and writes all (b + 2 r). The tables of known pages (25 bytes) and of their
copies (32) are read, and read again and written where they changed. A visit writes and reads w bytes: 26 and a packed
row into the first table's runs, a packed row of the queue, 33 of what was learned, 33 of a copy if it changed. Last
come the share of the time for which a disk of 250 MB/s is busy with it, and that share without bytes read again: a
merge has just read them, and the system has them in memory.
"""

import time
from collections import deque
from pathlib import Path

import numpy as np
import pyarrow as pa
from usage import arguments

from fyke.core.batches import U64, u64, url_columns
from fyke.core.memory import memory_bytes
from fyke.core.mixing import mixed
from fyke.disk.checkpoint import Checkpoint
from fyke.disk.queue import DiskQueue
from fyke.frontier.known_pages import KnownPages
from fyke.frontier.page_history import COPY, ENDED, KNOWN, News, Visited
from fyke.frontier.revisit.choice import Terms

BATCH = 1 << 16
DAYS = 10
DAY_S = 86400.0
BEGAN_S = 1.7e9
HOST_PAGES = 1000
NAME = b"http://www.d0000000.example/section/................-000"
HOST_AT, WORD_AT, PAGE_AT = NAME.index(b"0"), NAME.index(b"." * 16), len(NAME) - 3
WORDS = [b"articles", b"products", b"category", b"archives", b"branches", b"download", b"material", b"overview"]
DISK_BYTES_S = 250e6
VISITS_S = 1000
VISITED = 20  # one page in this many, from plan to plan
CHANGED = 4  # one visit in this many
MOVED = ("bytes_read", "bytes_written", "read_bytes", "written_bytes")
ENTRY_BYTES = 9  # of a waiting operation, without its value


def met(numbers: U64) -> pa.RecordBatch:
    """Return pages with these numbers (uint64[n]), schema `URLS`."""
    keys, hosts = mixed(numbers), numbers // np.uint64(HOST_PAGES)
    names = np.tile(np.frombuffer(NAME, np.uint8), (len(numbers), 1))
    for digit in range(7):
        names[:, HOST_AT + 6 - digit] = 48 + hosts // np.uint64(10**digit) % np.uint64(10)
    for digit in range(3):
        names[:, PAGE_AT + 2 - digit] = 48 + numbers // np.uint64(10**digit) % np.uint64(10)
    words = np.frombuffer(b"".join(WORDS), np.uint8).reshape(len(WORDS), -1)
    names[:, WORD_AT : WORD_AT + 8] = words[(keys % np.uint64(len(WORDS))).astype(np.intp)]
    for letter in range(8):
        names[:, WORD_AT + 8 + letter] = 97 + (keys >> np.uint64(7 * letter + 3)) % np.uint64(26)
    ends = np.arange(len(numbers) + 1, dtype=np.int32) * len(NAME)
    url = pa.BinaryArray.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(ends), pa.py_buffer(names)])
    via, depth, in_degree = mixed(numbers // np.uint64(20) + np.uint64(1)), keys % np.uint64(9), keys % np.uint64(50)
    return url_columns(url, keys, mixed(hosts), mixed(~hosts), via=via, depth=depth, in_degree=in_degree)


def tell(again: KnownPages, urls: pa.RecordBatch, day: int) -> None:
    """Report that visits to `urls` ended on this day; every fourth page has changed, and has another copy."""
    keys = u64(urls, "key")
    changed = np.full(len(keys), not day) | ((keys ^ np.uint64(day)) % np.uint64(CHANGED) == 0)
    news = np.where(changed, News.CHANGED, News.SAME).astype(np.uint8)
    rng = np.random.default_rng(day)
    at = BEGAN_S + day * DAY_S + rng.integers(0, int(DAY_S * 1e6), len(keys)) / 1e6
    columns = [*urls.columns, *map(pa.array, (np.full(len(keys), Visited.THERE, np.uint8), news, at))]
    copies = np.zeros(len(keys), COPY)
    copies["offset"], copies["fingerprint"], copies["length"] = keys >> np.uint64(34), ~keys, 5000 + day
    again.learn(pa.RecordBatch.from_arrays(columns, schema=ENDED), changed, copies)


def resting(again: KnownPages) -> tuple[DiskQueue, DiskQueue]:
    """Return the queues of the pages that rest: their beliefs, and the rest of their columns."""
    return again._resting._beliefs, again._resting._others


def moved(again: KnownPages) -> int:
    """Return the bytes read and written so far."""
    history = again._history
    parts = [history._known, history._copies, *resting(again), again._queue, history._learned]
    return sum(getattr(part.statistics(), name, 0) for part in parts for name in MOVED)


def formula(again: KnownPages, pages: int) -> tuple[float, float]:
    """Return the bytes that a plan and the visits before it move, and the part of them that was read just before."""
    beliefs, others = (queue.size_bytes / len(queue) for queue in resting(again))
    known, copy = KNOWN.itemsize, COPY.itemsize
    visit = 2 * (ENTRY_BYTES + known + 2 * (beliefs + others) + 8 + known + (ENTRY_BYTES + copy) / CHANGED)
    tables = 16 + known + copy
    return pages * (beliefs + 2 * (beliefs + others) + 3 * tables + visit / VISITED), pages * tables


def share(pages: int, bytes_moved: float) -> float:
    """Return the share of the time from plan to plan that the disk takes for `bytes_moved`."""
    return bytes_moved / DISK_BYTES_S / (pages / VISITED / VISITS_S)


def run(pages: int, folder: Path, memory: int) -> None:
    checkpoint = Checkpoint(folder)
    again = KnownPages(checkpoint.store, memory)
    for begin in range(0, pages, BATCH):
        tell(again, met(np.arange(begin, min(pages, begin + BATCH), dtype=np.uint64)), 0)
    print("| day | memory MB | moved GB | formula GB | plan s | rest | wait | disk | without repeats |")
    print("|" + "---|" * 9, flush=True)
    before = 0
    for day in range(1, DAYS + 1):
        begun, scanned = time.monotonic(), resting(again)[0].size_bytes  # which `moved` lacks
        deque(again.plan(BEGAN_S + (day + 1) * DAY_S, Terms(3600.0, 30 * DAY_S, most=pages // VISITED)), maxlen=0)
        snapshot = checkpoint.take({"again": again.state()})
        snapshot.make_durable()
        checkpoint.committed(snapshot)
        took, by_now = time.monotonic() - begun, moved(again)
        bytes_moved, before = by_now - before + scanned, by_now
        if day > 1:  # the first day also takes in the pages told at the beginning
            expected, repeated = formula(again, pages)
            busy, needed = (share(pages, of) for of in (bytes_moved, bytes_moved - repeated))
            print(
                f"| {day} | {memory_bytes() / 1e6:.0f} | {bytes_moved / 1e9:.2f} | {expected / 1e9:.2f} | {took:.0f} |"
                f" {again.resting:,} | {len(again):,} | {busy:.2%} | {needed:.2%} |",
                flush=True,
            )
        while (urls := again.get(BATCH, None)) is not None:
            tell(again, urls, day)
    again.close()
    checkpoint.close()


if __name__ == "__main__":
    folder, pages, memory_mib = arguments(__doc__, folder=Path, pages=1_000_000, MiB=8)
    run(pages, folder, memory_mib << 20)
