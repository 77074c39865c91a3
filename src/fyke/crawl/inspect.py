"""Looking at a crawl from outside: how it stands, and whether its files are whole.

Used by `fyke status` and `fyke check`, also while the crawl runs: both read the newest manifest and
what it names, and never write.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console
from rich.status import Status

from fyke.core.errors import StateDamaged
from fyke.crawl.directory import CrawlDirectory
from fyke.crawl.statistics import CrawlStatistics
from fyke.shelf.checkpoint import newest
from fyke.shelf.queue import read_segment
from fyke.store.check import Fault, check_archive


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """A crawl as its newest checkpoint tells it; `state` is running, stopped, killed, finished, …"""

    state: str
    statistics: CrawlStatistics
    checkpoint: int
    taken_at: float  # unix seconds

    def as_dict(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "checkpoint": self.checkpoint,
            "taken_at": self.taken_at,
            **self.statistics.as_dict(),
        }


def status_of(directory: CrawlDirectory) -> CrawlStatus:
    """How the crawl in `directory` stands. Raises NotACrawl."""
    directory.config()
    manifest = newest(directory.shard) if directory.shard.is_dir() else {}
    state = manifest.get("state", {})
    ending = str(state.get("ending", "running"))
    if in_use(directory):
        ending = "running"
    elif ending == "running":
        ending = "killed: fyke crawl --into it again goes on"
    statistics = CrawlStatistics(**state["totals"]) if state else CrawlStatistics()
    return CrawlStatus(ending, statistics, manifest.get("number", 0), float(state.get("taken_at", 0.0)))


def in_use(directory: CrawlDirectory) -> bool:
    """Whether a process is crawling into `directory` now."""
    try:
        lock = os.open(directory.shard / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def check_crawl(directory: CrawlDirectory, progress: Callable[[str, int, int], None]) -> Iterator[Fault]:
    """Every fault in the checkpoint, the archive and the tables of `directory`. Raises NotACrawl."""
    directory.config()
    try:
        manifest = newest(directory.shard)
    except StateDamaged as error:
        yield Fault(str(directory.shard), str(error))
        manifest = {}
    yield from _check_state(directory, manifest)
    yield from check_archive(directory.path, archive_lengths(manifest), progress=progress)


def archive_lengths(manifest: dict[str, Any]) -> dict[str, int] | None:
    """The lengths that count of archive files still being written, by name below the crawl directory."""
    archive = manifest.get("state", {}).get("archive")
    return {archive["file"]: archive["length"]} if archive and archive["length"] else None


def _check_state(directory: CrawlDirectory, manifest: dict[str, Any]) -> Iterator[Fault]:
    """Files of the checkpoint: there, long enough, and what queues hold as it was written."""
    for name, length in manifest.get("files", {}).items():
        path = directory.shard / name
        size = path.stat().st_size if path.exists() else -1
        if size < length:
            yield Fault(str(path), f"should be {length} bytes long and is {'gone' if size < 0 else size}")
        elif name.endswith(".queue"):
            try:
                for _ in read_segment(path, length):
                    pass
            except StateDamaged as error:
                yield Fault(str(path), str(error))


class Progress:
    """Counts records, and says on a terminal how far it is."""

    def __init__(self, console: Console) -> None:
        self.records = 0
        self._status: Status = console.status("checking")
        self._live = console.is_terminal

    def advance(self, place: str, position: int, length: int) -> None:
        """One record more; `place` is read up to `position`."""
        self.records += 1
        if self._live and self.records % 200 == 0:
            self._status.update(f"checking {place}: {position / max(1, length):.0%}, {self.records:,} records")

    def __enter__(self) -> Self:
        if self._live:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()
