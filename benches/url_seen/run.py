"""One structure in its own process, so that its memory and its bytes are its own: the child of `drum_*.py`.

    python -m url_seen.run '{"name": "drum", "step": "measure", ...}'   (the fields of `Task`)

A task fills a table, or measures the links on it; the result is one line of JSON. The unique URLs are put into a
`DiskQueue`, for which the paper counts p (section 4.2). Making the links is not measured.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Literal

import pyarrow as pa

from fyke.disk.checkpoint import Checkpoint
from fyke.disk.queue import DiskQueue
from url_seen import UrlSeen
from url_seen.stream import BATCH, Stream

FILL_BATCH = 4 << 20
FILL_MEMORY_BYTES = 2 << 30  # to fill a table fast; another process is measured
PATIENCE = 4  # seconds per second of CPU that is allowed
QUEUED = pa.schema([("url", pa.binary())])
STRUCTURES = {
    "drum": "url_seen.drum:DrumSeen",
    "batch merge": "url_seen.batch_merge:BatchMerge",
    "tree batch": "url_seen.tree_batch:TreeBatch",
    "lru and seek": "url_seen.lru_and_seek:LruAndSeek",
    "bloom by site": "url_seen.bloom_by_site:BloomBySite",
    "in memory": "url_seen.in_memory:InMemory",
    "rocksdb": "url_seen.rocksdb_lsm:RocksDb",
    "lmdb": "url_seen.lmdb_btree:Lmdb",
    "sqlite": "url_seen.sqlite_btree:Sqlite",
}


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a child."""

    name: str
    step: Literal["fill", "measure"]
    directory: str
    table: int
    links: int
    memory_bytes: int
    cap_s: float = 3600.0  # of CPU
    popularity: Literal["web", "uniform"] = "web"
    text: Literal["words", "random"] = "words"
    batch: int = BATCH

    @property
    def stream(self) -> Stream:
        return Stream(self.table, self.links, self.popularity, self.text, batch=self.batch)


@dataclass(frozen=True, slots=True)
class Result:
    """The measured figures."""

    links: int  # handed in before the time was up
    unique: int  # that came out
    lost: int  # new, but did not come out
    seconds: float  # in the structure and the queue
    cpu_s: float  # of all threads of the process, in the same
    read_bytes: int  # asked of the system: rchar
    written_bytes: int  # wchar
    queued_bytes: int  # of `written_bytes`, by the queue
    peak_bytes: int
    start_bytes: int  # resident before the structure was made
    mapped_bytes: int  # of the resident ones at the end, those of mapped files
    details: dict[str, Any]  # of the drum


def structure(name: str) -> type[UrlSeen]:
    """Return the class of a structure; only this one is imported."""
    module, _, attribute = STRUCTURES[name].partition(":")
    found: type[UrlSeen] = getattr(importlib.import_module(module), attribute)
    return found


def opened(task: Task, memory_bytes: int) -> UrlSeen:
    directory = Path(task.directory) / "seen"
    directory.mkdir(exist_ok=True)
    return structure(task.name)(directory, memory_bytes, task.table + task.links)


def fill(task: Task, seen: UrlSeen) -> None:
    stream = task.stream
    for numbers in stream.filling(seen.filled_by, FILL_BATCH if seen.persistent else FILL_BATCH // 16):
        seen.fill(stream.keys(numbers), lambda numbers=numbers: stream.texts(numbers))


def measure(task: Task) -> Result:
    start_bytes = _status("VmRSS")
    seen = opened(task, task.memory_bytes)
    if not seen.persistent:
        fill(task, seen)
    directory = Path(task.directory) / "queue"
    directory.mkdir(exist_ok=True)
    with Checkpoint(directory) as checkpoint, DiskQueue(checkpoint.store, "ready", QUEUED) as queue:
        before = moved_bytes()
        links, expected, spent = _run(task, seen, queue)
        moved = moved_bytes()
        details = _details(seen)
        mapped_bytes = _status("RssFile")
        statistics = queue.statistics()
        seen.close()
    return Result(
        links=links,
        unique=statistics.put_rows,
        lost=expected - statistics.put_rows,
        seconds=spent.seconds,
        cpu_s=spent.cpu_s,
        read_bytes=moved[0] - before[0],
        written_bytes=moved[1] - before[1],
        queued_bytes=statistics.written_bytes,
        peak_bytes=_status("VmHWM"),
        start_bytes=start_bytes,
        mapped_bytes=mapped_bytes,
        details=details,
    )


class Spent:
    """Time spent within `with`, added up."""

    def __init__(self) -> None:
        self.seconds = self.cpu_s = 0.0

    def __enter__(self) -> None:
        self.seconds -= perf_counter()
        self.cpu_s -= process_time()

    def __exit__(self, *exception: object) -> None:
        self.seconds += perf_counter()
        self.cpu_s += process_time()


def _run(task: Task, seen: UrlSeen, queue: DiskQueue) -> tuple[int, int, Spent]:
    """Return the number of links handed in, how many of them were new, and their cost."""
    links, expected, spent = 0, 0, Spent()

    def put(uniques: Iterator[pa.BinaryArray]) -> None:
        for urls in uniques:
            queue.put(pa.RecordBatch.from_arrays([urls], schema=QUEUED))

    for keys, texts, new in task.stream.batches():
        with spent:
            put(seen.check_update(keys, texts))
        links, expected = links + len(keys), expected + new
        if spent.cpu_s > task.cap_s or spent.seconds > PATIENCE * task.cap_s:
            break
    with spent:
        put(seen.finish())
    return links, expected, spent


def _details(seen: UrlSeen) -> dict[str, Any]:
    if not hasattr(seen, "drum"):
        return {}
    return asdict(seen.drum.statistics()) | {"waited_bytes": seen.waited_bytes}


def _status(field: str) -> int:
    """Return a size in bytes from /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise LookupError(field)


def moved_bytes() -> tuple[int, int]:
    """Return the bytes that this process has asked the system to read and to write."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"]), int(fields["wchar"])


def main(task: Task) -> None:
    if task.step == "measure":
        print(json.dumps(asdict(measure(task))))
        return
    seen = opened(task, FILL_MEMORY_BYTES)
    if seen.persistent:
        fill(task, seen)
    seen.close()


if __name__ == "__main__":
    main(Task(**json.loads(sys.argv[1])))
