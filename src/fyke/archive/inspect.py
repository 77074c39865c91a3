"""The state of a crawl, and faults in its files, as seen from outside.

Used by `fyke status` and `fyke check`, also while the crawl runs: both read the newest manifest and the files that it
names, and never write.
"""

import json
import os
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fyke.archive.asked import AskedLater
from fyke.archive.check import Fault, check_archive
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.lost import GONE, had_state, lost_files, tables_of
from fyke.archive.mending import journal_holds
from fyke.archive.passes import begun_passes
from fyke.archive.statistics import CrawlStatistics, totals_of
from fyke.archive.table_files import journal_path, series
from fyke.archive.turns import turns
from fyke.core.errors import ConfigurationError, DirectoryError, DiskFull, StateDamaged
from fyke.core.telling import Tell
from fyke.disk import manifest as manifests
from fyke.disk.files import FULL, is_locked, open_file
from fyke.disk.sealed import NO_ROOM, UNREADABLE, database_fault, journal_fault, opened_to_read

TAIL_BYTES = 64 << 10  # of the log: longer than its last line


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """A crawl as its newest checkpoint describes it; `state` is running, stopped, killed, finished, …

    A crawl that broke off is `killed`; `error` is the one that its log names, if it had time to name one.
    """

    state: str
    error: str
    statistics: CrawlStatistics
    checkpoint: int
    taken_at: float  # unix seconds
    blocked_hosts: str = ""  # in words

    def as_dict(self) -> dict[str, Any]:
        facts = asdict(self)
        del facts["statistics"]
        return {**facts, **self.statistics.as_dict()}


def status_of(directory: CrawlDirectory) -> CrawlStatus:
    """Return how the crawl in `directory` stands. Raises NotACrawl."""
    directory.config()
    states = directory.states
    state = states[0] if states else {}
    asked = AskedLater(directory.state)
    ending, error = ending_of(states), ""
    if in_use(directory):
        ending = "running"
    elif ending == "running":
        ending, error = "killed", _last_error(directory)
    elif ending == "blocked" and not asked.blocked:
        ending = "stopped"  # all hosts were unblocked since
    statistics = totals_of(states)
    number, taken_at = int(state.get("number", 0)), float(state.get("taken_at", 0.0))
    return CrawlStatus(ending, error, statistics, number, taken_at, asked.blocked_in_words)


def ending_of(states: list[dict[str, Any]]) -> str:
    """Return how a crawl ended, by the states of its agents; "running" if they do not all say the same."""
    endings = {str(state.get("ending", "running")) for state in states}
    return endings.pop() if len(endings) == 1 else "running"


def _last_error(directory: CrawlDirectory) -> str:
    """Return the error in the last line of the crawl's log; empty if that line has none."""
    try:
        with open_file(directory.logs / "fyke.log") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return str(json.loads(file.read().splitlines()[-1]).get("error") or "")
    except (OSError, ValueError, LookupError, AttributeError):
        return ""


def in_use(directory: CrawlDirectory) -> bool:
    """Return whether a process is crawling into `directory` now."""
    return is_locked(directory.shard / "lock") or is_locked(directory.supervised)


def check_crawl(directory: CrawlDirectory, progress: Tell) -> Iterator[Fault]:
    """Yield every fault in checkpoint, archive and tables of `directory`. Raises NotACrawl, DirectoryError."""
    directory.require_readable()
    passed = []
    try:
        if directory.holds_crawl or not directory.state.is_dir():
            directory.config()
    except ConfigurationError as error:
        if not directory.state.is_dir():
            raise
        yield Fault(directory.place(directory.settings), str(error))
        passed = [directory.settings]
    try:
        lost = lost_files(directory)
    except StateDamaged as error:  # the number of agents is not known
        yield Fault(directory.place(directory.state), str(error))
        return
    told = [directory.place(path) for path in lost]
    yield from (Fault(place, GONE) for place in told)
    yield from asked_faults(directory, [*lost, *passed])
    try:
        deque(turns(directory.path, "pages"), maxlen=0)
    except StateDamaged as error:
        yield Fault(directory.place(directory.tables / "turns"), str(error))
    yield from (fault for fault in _check_parts(directory, progress) if fault.place not in told)


def asked_faults(directory: CrawlDirectory, lost: Sequence[Path]) -> Iterator[Fault]:
    """Yield faults of files with people's requests, which no archive gives back; skip files that are in `lost`."""
    if directory.listed.path not in lost and (what := directory.listed.fault()):
        yield Fault(directory.place(directory.listed.path), what)
    try:
        AskedLater(directory.state)
    except StateDamaged as error:
        yield Fault(directory.place(directory.state / "asked.json"), str(error))
    try:
        state = saved_state(directory.shard)
    except StateDamaged:
        return
    if state and directory.settings not in lost and (what := directory.settings_fault(state)):
        yield Fault(directory.place(directory.settings), what)


def _check_parts(directory: CrawlDirectory, progress: Tell) -> Iterator[Fault]:
    """Yield the faults in what agents wrote."""
    states = []
    for part in directory.parts:
        try:
            state = saved_state(part.shard)
        except StateDamaged as error:
            yield Fault(part.place(part.shard), str(error))
        else:
            states.append(state)
            yield from _check_journals(part, state)
            if not state and had_state(part) and not directory.is_copy:
                yield Fault(part.place(part.shard), "there is an archive but no manifest: the state is gone")
        yield from _check_state(part)
        yield from (Fault(part.place(path), what) for path, what in hosts_faults(part))
    lengths, passes = archive_lengths(directory, *states), [begun_passes(state.get("again", {})) for state in states]
    once = not directory.is_copy  # which passes there were is in the state
    yield from check_archive(directory.path, lengths, once=once, passes=passes, progress=progress)


def archive_lengths(directory: CrawlDirectory, *states: dict[str, Any]) -> dict[str, int]:
    """Return the lengths that count of archive files that are not finished by the last checkpoint, by name below the
    crawl directory.

    A resumed crawl fetches again what lies beyond its checkpoint, and finishes closed files anew. `states` are those of
    the crawl's agents.
    """
    lengths: dict[str, int] = {}
    names = [f"{directory.warc.name}/{path.name}" for path in directory.warc.glob("*.warc.gz")]
    for archive in (state["archive"] for state in states if state.get("archive")):
        own = archive["file"].rpartition("-")[0]
        lengths |= {name: 0 for name in names if name.rpartition("-")[0] == own and name > archive["file"]}
        lengths |= {f"{own}-{serial:05d}.warc.gz": length for serial, length, _ in archive.get("closing", [])}
        lengths[archive["file"]] = archive["length"]
    return lengths


def _check_state(directory: CrawlDirectory) -> Iterator[Fault]:
    """Check that there are two manifests, both whole, and that the files they name are as they were written."""
    if directory.shard.is_dir() and (number := manifests.lone(directory.shard)):
        before, after = (manifests.Manifest(one).name for one in (number - 1, number + 1))
        yield Fault(directory.place(directory.shard), f"a checkpoint is gone: {after}, or {before}")
    told = set()  # a file that both manifests name is one fault
    for number in manifests.numbers(directory.shard) if directory.shard.is_dir() else []:
        path = directory.shard / manifests.Manifest(number).name
        # A running crawl deletes the older manifest, and then the files that only that one named.
        for fault in _manifest_faults(directory, number):
            if fault.place not in told and (path.exists() or (directory.path / fault.place).exists()):
                told.add(fault.place)
                yield fault


def _manifest_faults(directory: CrawlDirectory, number: int) -> Iterator[Fault]:
    manifest = manifests.read(directory.shard, number)
    if manifest is None:
        yield Fault(directory.place(directory.shard / manifests.Manifest(number).name), "it is torn")
        return
    lacking = set(manifests.lacking(directory.shard, manifest))
    what = f"it is gone or too short; {manifest.name} lists it"
    yield from (Fault(directory.place(directory.shard / name), what) for name in sorted(lacking))
    faults = file_faults(directory, manifest)
    yield from (fault for fault in faults if Path(fault.place).name not in lacking)


def _check_journals(directory: CrawlDirectory, state: dict[str, Any]) -> Iterator[Fault]:
    """Check that rows in no Parquet file yet are, to the byte, as they were written."""
    for name, table in tables_of(state).items():
        own = series(name, directory.part)
        for serial in range(table.get("sealed", 0), table.get("sealed", 0) + len(table.get("segments", []))):
            path = journal_path(directory.path, own, serial)
            # Asked last: a journal that goes meanwhile became a Parquet file, which is checked by itself.
            if not journal_holds(directory.path, own, table, serial) and path.exists():
                yield Fault(directory.place(path), "its bytes are not those that were written")


def hosts_faults(directory: CrawlDirectory) -> Iterator[tuple[Path, str]]:
    """Yield path and fault of the host book and of the journal of rests beside it, if damaged.

    Raises DirectoryError or DiskFull if SQLite lacks a right, or the room, to read a killed process's journal.
    """
    try:
        fault, writes = journal_fault(directory.rests)  # before the book, which may grow meanwhile
    except OSError as error:
        fault, writes = f"it cannot be read: {error.strerror}", 0
    if fault:
        yield directory.rests, f"it is damaged: {fault}"
    if (directory.hosts.exists() or writes) and (what := _book_fault(directory.hosts, writes)):
        yield directory.hosts, what


def _book_fault(path: Path, writes: int) -> str:
    try:
        with closing(opened_to_read(path)) as book:
            (version,) = book.execute("PRAGMA user_version").fetchone()
            if not version:
                return "it is empty"
            fault = database_fault(book, writes)
            return f"it is damaged: {fault}" if fault else ""
    except sqlite3.Error as error:
        refused = getattr(error, "sqlite_errorcode", 0) & 0xFF in UNREADABLE
        if refused and path.with_name(f"{path.name}-wal").exists() and not os.access(path.parent, os.W_OK):
            raise DirectoryError(
                f"cannot read {path}: a killed process left a journal beside it, and the folder is read-only: check a"
                " copy of the crawl in a folder that can be written"
            ) from None
        _require_room(path, getattr(error, "sqlite_errorcode", 0))
        return f"it cannot be read: {error}"


def _require_room(path: Path, code: int) -> None:
    """Raise DiskFull if SQLite's error `code` is not about the book at `path`, but about a file it makes to read a
    journal."""
    shared = path.with_name(f"{path.name}-shm")
    if code in NO_ROOM or (code == sqlite3.SQLITE_CANTOPEN and path.is_file() and not os.path.lexists(shared)):
        raise DiskFull(f"cannot write {shared}, which is needed to read {path.name}; {FULL}")


def file_faults(directory: CrawlDirectory, manifest: manifests.Manifest) -> Iterator[Fault]:
    """Yield the faults of the files that `manifest` names."""
    for name in manifest.files:
        try:
            manifests.verify(directory.shard, manifest, name)
        except StateDamaged as error:
            yield Fault(directory.place(directory.shard / name), str(error))
