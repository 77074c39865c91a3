"""Which finished files of a crawl should be there and are not?

Asked by `fyke check`, and by readers of a crawl, which must not silently give less. A checkpoint names finished files
of archive and tables, the search index's state names its own tables, and a checksum that is left names its file. Only
names are looked at, so this may be asked at every start; checksums tell whether a file is as it was written. Invariant:
a file that is being written is not lost.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fyke.archive.asked import NAME as ASKED
from fyke.archive.cdxj import index_path
from fyke.archive.checksum import SUFFIX, checksum_path, is_gone
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.division import division
from fyke.archive.reading import MENDED, generation, rows_recorded
from fyke.archive.reindexing import archive_files, part_of, serial_of
from fyke.archive.table_files import journal_path, parquet_path, series
from fyke.archive.turns import COUNTED
from fyke.core.errors import StateDamaged
from fyke.disk.files import allowed, damaged, is_locked, read_whole, real_path
from fyke.disk.sealed import unsealed

GONE = "it is gone"
INDEX_COUNTERS = {"near-00000": "merge", "pagerank": "ranks", "domainrank": "ranks"}  # the counter in `state.json`


def lost_files(directory: CrawlDirectory) -> list[Path]:
    """Return the files and folders that are gone; the files of a missing folder are not named.

    Raises StateDamaged if the number of agents is not known.
    """
    found = [] if _settings_are_there(directory) else [directory.settings]
    states = {}
    for part in directory.parts:
        try:
            states[part.part] = saved_state(part.shard)
        except StateDamaged:  # its readers report it
            states[part.part] = {}
    found += [*_asked(directory, states), *_checksum_of_seeds(directory)]
    if any(states.values()):
        found += [folder for folder in (directory.warc, directory.tables) if not folder.is_dir()]
    for part in directory.parts:
        found += _of_part(part, states[part.part], found)
    found += _left_checksums(directory, states)
    found += [path for name in INDEX_COUNTERS if is_gone_of_index(path := directory.tables / f"{name}.parquet")]
    found += _turns(directory, states) if directory.tables.is_dir() else []
    return list(dict.fromkeys(found))


def require_asked(directory: CrawlDirectory) -> None:
    """Raise StateDamaged if the file of what people asked is gone: a host may be blocked, and would be asked."""
    for path in _asked(directory, {part.part: saved_state(part.shard) for part in directory.parts}):
        raise damaged(path, GONE)


def require_settings(directory: CrawlDirectory) -> None:
    """Raise StateDamaged if `fyke.toml` is empty or gone: nobody knows what was asked of the crawl."""
    if not _settings_are_there(directory):
        raise StateDamaged(
            f"{directory.settings} is gone or empty; it holds the settings of this crawl: restore it from a copy"
        )


def require_state(directory: CrawlDirectory) -> None:
    """Raise StateDamaged if there is an archive, and no checkpoint."""
    if not saved_state(directory.shard) and had_state(directory):
        raise StateDamaged(
            f"{directory.shard} holds no manifest, but {directory.warc} holds an archive: restore the state from a"
            " copy, or leave this folder as it is and crawl into another with --into"
        )


def had_state(part: CrawlDirectory) -> bool:
    """Return whether this agent had a checkpoint. Its first comes before its first archive file; of agents with which
    the crawl began, before any archive file."""
    own, agents = real_path(part.path).name, len(part.parts)
    is_later = part.part >= division(part.state).shards
    files = archive_files(part.path)
    return any(not is_later or part_of(path.name, own, agents) == part.part for path in files)


def require_rows(directory: CrawlDirectory, name: str) -> None:
    """Raise StateDamaged if files of the table `name` are gone, DirectoryError if the folder may not be read."""
    for part in directory.parts:
        for path in _files(part, name, saved_state(part.shard).get(name, {})):
            raise damaged(path, GONE)


def require_turns(directory: CrawlDirectory) -> None:
    """Raise StateDamaged if the order of the rows of several agents (`turns`) is gone."""
    for path in _turns(directory, {part.part: saved_state(part.shard) for part in directory.parts}):
        raise damaged(path, GONE)


def require_of_index(path: Path) -> None:
    """Raise StateDamaged if `path`, a table that `fyke index` wrote, is gone."""
    if is_gone_of_index(path):
        raise damaged(path, GONE)


def is_gone_of_index(path: Path) -> bool:
    """Return whether the table `path`, which `fyke index` wrote by its `state.json` or a checksum, is gone.

    False if tables were mended since: then the index writes all of them anew.
    """
    if is_gone(path) or path.exists() or path.with_name(f"{path.name}.part").exists():
        return is_gone(path)
    crawl = path.parent.parent
    try:
        state = unsealed("index", read_whole(crawl / "index" / "state.json"))
        mended = int(state["beginning"].partition(MENDED)[2] or 0)
        return bool(state[INDEX_COUNTERS[path.stem]]) and mended == generation(crawl)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _settings_are_there(directory: CrawlDirectory) -> bool:
    return directory.holds_crawl and directory.settings.stat().st_size > 0


def _asked(directory: CrawlDirectory, states: Mapping[int, Mapping[str, Any]]) -> list[Path]:
    """Return the file of people's requests, if it is gone."""
    path = directory.state / ASKED
    was_there = any(any(state.get("asked", {}).values()) for state in states.values())
    return [path] if was_there and not path.is_file() else []


def _checksum_of_seeds(directory: CrawlDirectory) -> list[Path]:
    """Return the checksum of the list of seeds, if it is gone."""
    path = checksum_path(directory.listed.path)
    return [path] if directory.listed and not path.exists() else []


def _of_part(part: CrawlDirectory, state: Mapping[str, Any], gone: list[Path]) -> list[Path]:
    """Return the missing files of one agent, whose newest checkpoint has `state`."""
    found = [part.hosts] if state and not part.hosts.is_file() else []
    if part.warc not in gone and state.get("archive"):
        found += _archive(part, state["archive"])
    if part.tables not in gone:
        found += [path for name, table in tables_of(state).items() for path in _files(part, name, table)]
        summaries = (parquet_path(part.path, series(name, part.part), 0) for name in state.get("summaries", ()))
        found += [path for path in summaries if not path.is_file()]
    return found


def _archive(part: CrawlDirectory, archive: Mapping[str, Any]) -> Iterator[Path]:
    """Yield missing archive files, and missing indexes and checksums of finished ones."""
    own, agents = real_path(part.path).name, len(part.parts)
    ours = (path for path in archive_files(part.path) if part_of(path.name, own, agents) == part.part)
    there = {serial_of(path.name)[0]: path for path in ours}
    unfinished = {archive["serial"], *(serial for serial, _, _ in archive["closing"])}
    stem = archive["file"].rpartition("-")[0]
    for serial in range(archive["serial"] + bool(archive["length"])):
        warc = there.get(serial, part.path / f"{stem}-{serial:05d}.warc.gz")
        closed, growing = (index_path(warc, closed=one) for one in (True, False))
        if not warc.is_file():
            yield warc
        elif serial not in unfinished and not checksum_path(warc).is_file():
            yield checksum_path(warc)
        if not closed.is_file() and not (serial in unfinished and growing.is_file()):
            yield growing if serial == archive["serial"] else closed
        elif serial not in unfinished and not checksum_path(closed).is_file():
            yield checksum_path(closed)


def tables_of(state: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the tables whose files a checkpoint counts, by name."""
    extracted = {word.removeprefix("extract "): state[word] for word in state if word.startswith("extract ")}
    return {**{name: state[name] for name in COUNTED if name in state}, **extracted}


def _files(part: CrawlDirectory, name: str, table: Mapping[str, Any]) -> Iterator[Path]:
    sealed = table.get("sealed", 0)
    for serial in range(sealed + len(table.get("segments", []))):
        path, journal = (of(part.path, series(name, part.part), serial) for of in (parquet_path, journal_path))
        with allowed(path.parent):  # raises if the folder may not be read
            gone = not path.is_file() and (serial < sealed or not journal.is_file())
        if gone:
            yield path


def _turns(directory: CrawlDirectory, states: Mapping[int, Mapping[str, Any]]) -> list[Path]:
    """Return the file `turns` if it is gone; while the agents run it may not be written yet."""
    turns = directory.tables / "turns"
    rows = sum(rows_recorded(state, name) for state in states.values() for name in COUNTED)
    if len(states) < 2 or not rows or turns.is_file() or is_locked(directory.supervised):
        return []
    return [turns]


def _left_checksums(directory: CrawlDirectory, states: Mapping[int, Mapping[str, Any]]) -> Iterator[Path]:
    """Yield files of which only the checksum is left, unless checkpoints count their table: a full disk leaves some."""
    counted = {name for state in states.values() for name in tables_of(state)}
    folders = [directory.path, directory.tables, *([] if any(states.values()) else [directory.warc])]
    for path in (left.with_suffix("") for folder in folders for left in sorted(folder.glob(f"*{SUFFIX}"))):
        if is_gone(path) and _table(path) not in counted:
            yield path


def _table(path: Path) -> str:
    """Return the table that a file belongs to by its name: `pages` for `pages-1-00000.parquet`."""
    return path.name.partition("-")[0].partition(".")[0]
