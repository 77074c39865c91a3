"""Looking at a crawl from outside: how it stands, and whether its files are whole.

Used by `fyke status` and `fyke check`, also while the crawl runs: both read the newest manifest and
what it names, and never write.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fyke.archive.asked import AskedLater
from fyke.archive.check import Fault, check_archive
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.mending import journal_holds
from fyke.archive.statistics import CrawlStatistics, added
from fyke.archive.table_files import journal_path, series
from fyke.core.errors import StateDamaged
from fyke.disk import manifest as manifests
from fyke.disk.files import Reader, is_locked
from fyke.disk.frames import verify

TAIL_BYTES = 64 << 10  # of the log: more than its last line


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """A crawl as its newest checkpoint tells it; `state` is running, stopped, killed, finished, …

    A crawl that broke off is `killed`, with the `error` that its log names, if it had time to name one.
    """

    state: str
    error: str
    statistics: CrawlStatistics
    checkpoint: int
    taken_at: float  # unix seconds
    blocked_hosts: str = ""  # in words

    def as_dict(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "error": self.error,
            "checkpoint": self.checkpoint,
            "taken_at": self.taken_at,
            "blocked_hosts": self.blocked_hosts,
            **self.statistics.as_dict(),
        }


def status_of(directory: CrawlDirectory) -> CrawlStatus:
    """How the crawl in `directory` stands. Raises NotACrawl."""
    directory.config()
    states = [state for part in directory.parts if (state := saved_state(part.shard))]
    state = states[0] if states else {}
    asked = AskedLater(directory.state)
    ending, error = ending_of(states), ""
    if in_use(directory):
        ending = "running"
    elif ending == "running":
        ending, error = "killed", _last_error(directory)
    elif ending == "blocked" and not asked.blocked:
        ending = "stopped"  # they were all unblocked since
    statistics = added([CrawlStatistics(**one["totals"]) for one in states])
    number, taken_at = int(state.get("number", 0)), float(state.get("taken_at", 0.0))
    return CrawlStatus(ending, error, statistics, number, taken_at, asked.blocked_in_words)


def ending_of(states: list[dict[str, Any]]) -> str:
    """How the crawl whose agents have these states ended; running, where one of them does not say the same as all."""
    endings = {str(state.get("ending", "running")) for state in states}
    return endings.pop() if len(endings) == 1 else "running"


def _last_error(directory: CrawlDirectory) -> str:
    """The error that the log of the crawl in `directory` ends with; empty when it does not end with one."""
    try:
        with (directory.logs / "fyke.log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return str(json.loads(file.read().splitlines()[-1]).get("error") or "")
    except (OSError, ValueError, LookupError, AttributeError):
        return ""


def in_use(directory: CrawlDirectory) -> bool:
    """Whether a process is crawling into `directory` now."""
    return is_locked(directory.shard / "lock") or is_locked(directory.supervised)


def check_crawl(directory: CrawlDirectory, progress: Callable[[str, int, int], None]) -> Iterator[Fault]:
    """Every fault in the checkpoint, the archive and the tables of `directory`. Raises NotACrawl."""
    directory.config()
    states = []
    for part in directory.parts:
        try:
            state = saved_state(part.shard)
        except StateDamaged as error:
            yield Fault(str(part.shard), str(error))
        else:
            states.append(state)
            yield from _check_journals(part, state)
            if not state and any(directory.warc.glob("*.warc.gz")):
                yield Fault(str(part.shard), "there is an archive and no manifest: the state is gone")
        yield from _check_state(part)
        yield from _check_hosts(part)
    began = [one for state in states[:1] for one in state.get("again", {}).get("began", [])]
    passes = [(int(file), bool(forever and forever[0])) for _, file, *forever in began]
    lengths = archive_lengths(directory, *states)
    yield from check_archive(directory.path, lengths, passes=passes, progress=progress)


def archive_lengths(directory: CrawlDirectory, *states: dict[str, Any]) -> dict[str, int]:
    """The lengths that count of archive files still being written, by name below the crawl directory.

    What lies beyond a checkpoint, a run that goes on will fetch again. `states` are those of the crawl's agents.
    """
    lengths: dict[str, int] = {}
    names = [f"{directory.warc.name}/{path.name}" for path in directory.warc.glob("*.warc.gz")]
    for archive in (state["archive"] for state in states if state.get("archive")):
        own = archive["file"].rpartition("-")[0]
        lengths |= {name: 0 for name in names if name.rpartition("-")[0] == own and name > archive["file"]}
        lengths[archive["file"]] = archive["length"]
    return lengths


def _check_state(directory: CrawlDirectory) -> Iterator[Fault]:
    """Every manifest whole, and every byte of the files that it names as it was written."""
    for number in manifests.numbers(directory.shard) if directory.shard.is_dir() else []:
        manifest = manifests.load(directory.shard, number)
        if manifest is None:
            yield Fault(f"{directory.shard / manifests.Manifest(number).name}", "it is torn, or lacks files it names")
            continue
        yield from file_faults(directory, manifest)


def _check_journals(directory: CrawlDirectory, state: dict[str, Any]) -> Iterator[Fault]:
    """Every byte of the rows that are in no Parquet file yet as it was written."""
    for name in ("pages", "links"):
        table = state.get(name, {})
        own = series(name, directory.part)
        for serial in range(table.get("sealed", 0), table.get("sealed", 0) + len(table.get("segments", []))):
            if not journal_holds(directory.path, own, table, serial):
                path = journal_path(directory.path, own, serial)
                yield Fault(str(path), "its bytes are not those that were written")


def _check_hosts(directory: CrawlDirectory) -> Iterator[Fault]:
    """What is remembered of hosts can be read."""
    if directory.hosts.exists() and (what := book_fault(directory.hosts)):
        yield Fault(str(directory.hosts), what)


def book_fault(path: Path) -> str:
    """What is wrong with the host book at `path`; empty when nothing is."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as book:
            if book.execute("PRAGMA user_version").fetchone() == (0,):
                return "it is empty"
            said: str = book.execute("PRAGMA integrity_check(1)").fetchone()[0]
            return "" if said == "ok" else f"it is damaged: {said}"
    except sqlite3.Error as error:
        return f"it cannot be read: {error}"


def file_faults(directory: CrawlDirectory, manifest: manifests.Manifest) -> Iterator[Fault]:
    """What of the files that `manifest` names is not as it was written."""
    for name, length in manifest.files.items():
        try:
            if name in manifest.digests:
                manifests.verify(directory.shard, manifest, name)
            elif name.endswith(".seg"):  # of an earlier version
                with Reader(directory.shard / name) as reader:
                    verify(reader, length)
        except StateDamaged as error:
            yield Fault(str(directory.shard / name), str(error))
