"""How many bytes does the Drum move on disk, compared with IRLbot's model?

    .venv/bin/python benches/drum_overhead.py [--table 100_000_000] [--merges 8] [--memory-mb 512]

Fills a table, hands in links until `--merges` merges are done, and counts the bytes read and written for each byte of
URL, by the Drum's own count and the system's (`/proc/self/io`). The model is Theorem 2 (section 4.4) at the same n,
U, p, b, H, P, R and M. Its D is the size of the Drum's buckets: the bytes that waited when it merged.

It is done twice: with URLs of random bytes and uniform popularity, which cannot be packed, as in the model; and with
URLs of words and a web's popularity (`url_seen.stream`). The terms, in bytes a byte of URL, and why ours differ:

- `waiting`, the paper's 2 + 2H/b: text and keys are written once and read once. Ours adds to each link 4 bytes for
  the
  start of its text and up to 4 for its key's place in the text, twice, and a header for each message; the model has
  URLs without a length. So it is up to a tenth above the model if nothing is packed. It is about half of it for real
  URLs and a table larger than twice the memory, because the drum then packs spilled links with LZ4.
- `queue`, the paper's p: unique URLs written to the queue, unpacked. Ours adds the same 4 bytes and a header.
- `table`, the paper's (H + b)(2UH + pHn) / (bD): D / (H + b) links are merged at a time, and each merge reads the
  table
  and writes it anew. Ours reads it whole and writes only the parts whose young runs have gathered enough
  (`fyke.disk.young`). That is below the model: by half if memory holds the news of many merges, by less the larger the
  table is for its memory. Packed, more links wait in D, so there are also fewer merges.

So the sum is nowhere more than a tenth above the model, and below it where the table counts.
"""

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from drum_throughput import child
from url_seen.drum import DrumSeen
from url_seen.run import QUEUED, Task, moved_bytes
from url_seen.stream import URL_BYTES

from fyke.disk.checkpoint import Checkpoint
from fyke.disk.queue import DiskQueue
from fyke.lab.plan.model import Workload, drum_overhead, least_overhead

ENDLESS = 1 << 40  # links; only as many are made as the merges take


@dataclass(frozen=True, slots=True)
class Overhead:
    """Bytes moved per byte of URL: measured term by term, by the system's count, and the model's."""

    links: int
    merges: int
    bucket_bytes: float  # D
    waiting: float
    queue: float
    table: float
    by_system: float
    crawl: Workload  # for the model
    memory_bytes: int

    @property
    def measured(self) -> float:
        return self.waiting + self.queue + self.table

    @property
    def model(self) -> float:
        return drum_overhead(self.crawl, self.memory_bytes, self.bucket_bytes)

    @property
    def least(self) -> float:
        return least_overhead(self.crawl)


def overhead(task: Task, merges: int) -> Overhead:
    """Return the overhead of a drum whose table was filled in the task's directory, over whole merges."""
    seen = DrumSeen(Path(task.directory) / "seen", task.memory_bytes, task.table)
    queue_directory = Path(task.directory) / "queue"
    links, start = 0, moved_bytes()
    with Checkpoint(queue_directory) as checkpoint, DiskQueue(checkpoint.store, "ready", QUEUED) as queue:
        for keys, texts, _ in task.stream.batches():
            for uniques in seen.check_update(keys, texts):
                queue.put(pa.RecordBatch.from_arrays([uniques], schema=QUEUED))
            links += len(keys)
            if len(seen.waited_bytes) == merges:
                break
        queue.state()  # writes the rows still in memory
        drum, queued = seen.drum.statistics(), queue.statistics()
        by_system = sum(moved_bytes()) - sum(start)
    seen.close()
    bytes_in = links * URL_BYTES
    table_bytes = drum.table_bytes_read + drum.table_bytes_written
    return Overhead(
        links=links,
        merges=drum.merges,
        bucket_bytes=sum(seen.waited_bytes) / len(seen.waited_bytes),
        waiting=(drum.bytes_read + drum.bytes_written - table_bytes) / bytes_in,
        queue=queued.written_bytes / bytes_in,
        table=table_bytes / bytes_in,
        by_system=by_system / bytes_in,
        crawl=Workload(links, 1.0, queued.put_rows / links, task.table, URL_BYTES),
        memory_bytes=task.memory_bytes,
    )


def report(found: Overhead) -> None:
    crawl, least = found.crawl, found.least
    print(f"n = {found.links:,} links in {found.merges} merges, p = {crawl.unique_share:.3f}")
    print(f"U = {crawl.keys_at_start:,.0f} keys, b = {URL_BYTES}, H = {crawl.key_bytes:.0f}")
    print(f"R = {found.memory_bytes / 1e6:,.0f} MB, D = {found.bucket_bytes / 1e6:,.0f} MB, M = 256 kB")
    print(f"{'bytes a byte of URL':24} {'measured':>9} {'model':>9} {'ratio':>7}")
    terms = [
        ("waiting: 2 + 2H/b", found.waiting, least - crawl.unique_share),
        ("queue: p", found.queue, crawl.unique_share),
        ("table", found.table, found.model - least),
        ("all", found.measured, found.model),
    ]
    for name, ours, models in terms:
        print(f"{name:24} {ours:9.3f} {models:9.3f} {ours / models:7.3f}")
    print(f"{'all, by the system':24} {found.by_system:9.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="what the Drum moves on disk, beside the model")
    parser.add_argument("--table", type=int, default=100_000_000)
    parser.add_argument("--merges", type=int, default=8)
    parser.add_argument("--memory-mb", type=int, default=512)
    asked = parser.parse_args()
    for text, popularity in (("random", "uniform"), ("words", "web")):
        with tempfile.TemporaryDirectory(prefix="url-seen-") as directory:
            task = Task("drum", "fill", directory, asked.table, ENDLESS, asked.memory_mb << 20, 0, popularity, text)
            child(task)
            print(f"\nURLs of {text}, {popularity} popularity")
            report(overhead(replace(task, step="measure"), asked.merges))


if __name__ == "__main__":
    main()
