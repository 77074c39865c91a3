"""A crawl's directory: where things are, and whether it may be used.

    fyke.toml   what was asked, complete
    seeds.txt   the seeds of a list, if there was one
    warc/       the archive, with its indexes
    tables/     Parquet
    state/      what a restart needs
    logs/       what happened, one JSON object a line

Used by the agent to begin or resume a crawl, and by the commands that read one. Invariant: a directory that holds
anything but a crawl is never written to.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_intdigest

from fyke.archive.asked import NAME as ASKED
from fyke.archive.checksum import checksum_path
from fyke.archive.division import division
from fyke.archive.seed_list import SeedList
from fyke.core.clock import SystemClock
from fyke.core.config import Config, literal, load, render
from fyke.core.errors import DirectoryError, FykeError, NotACrawl, OtherCrawl, OtherVersion
from fyke.core.seeds import seeds_of
from fyke.disk import manifest as manifests
from fyke.disk.checkpoint import newest
from fyke.disk.files import lock, open_append, read_whole, require_readable, write_whole, writing
from fyke.disk.sealed import sealed_line

SAME_CRAWL = ("seeds", "scope", "depth", "allow", "deny", "requisites")
EDITED = ("allow", "deny")  # of these, what a person may edit in fyke.toml
WRITTEN = "\n# While this is as the run wrote it, the XXH3 of all before it is"  # the last line, before the digest

STORES = ("s3:", "gs:", "az:")  # how the address of an object store begins
LEAST_ROOM_BYTES = 1 << 20  # with less room no crawl begins


def require_folder(path: Path) -> None:
    """Raise DirectoryError if `path` is the address of an object store, is a file, or would be inside a file."""
    if path.parts[:1] and path.parts[0] in STORES:
        raise DirectoryError(f"{path} is not a folder on this machine: crawl into one, then send it with fyke copy")
    with suppress(PermissionError):  # later reads of the folder report it
        there = next((one for one in (path, *path.parents) if one.exists()), path)
        if there.exists() and not there.is_dir():
            raise DirectoryError(f"{there} is not a folder: name a folder")


def no_crawl(folder: Path) -> NotACrawl:
    """Return the error for a `folder` that holds no crawl."""
    return NotACrawl(f"{folder} holds no crawl: begin one with fyke crawl URL --into {folder}")


def require_format(folder: Path) -> None:
    """Raise OtherVersion if a checkpoint of the crawl in `folder` has another format than this Fyke reads."""
    with suppress(OSError):  # later reads of the folder report it
        for shard in sorted((folder / "state").glob("shard-*")):
            try:
                newest(shard)
            except OtherVersion:
                raise
            except DirectoryError:
                continue  # damage is for those who read the state


class CrawlDirectory:
    """The paths of the crawl in the folder `path`."""

    def __init__(self, path: Path, part: int = 0) -> None:
        """`part` is the number of the agent whose state is meant (`division`).

        Raises DirectoryError for a path that is not UTF-8, because Arrow takes no other, and for a path that is not a
        folder.
        """
        require_folder(path)
        try:
            os.fsencode(path).decode()
        except UnicodeDecodeError:
            raise DirectoryError(f"{str(path)!r} is not UTF-8: rename the folder, or choose another") from None
        self.path = path
        self.settings = path / "fyke.toml"
        self.listed = SeedList(path)
        self.warc = path / "warc"
        self.tables = path / "tables"
        self.state = path / "state"
        self.logs = path / "logs"
        self.part = part
        self.shard = self.state / f"shard-{part:04d}"
        self.hosts = self.state / (f"hosts-{part:04d}.sqlite" if part else "hosts.sqlite")
        self.supervised = self.state / "supervised"  # locked while a crawl runs, of however many agents
        self.rests = self.state / (f"rests-{part:04d}" if part else "rests")

    def __repr__(self) -> str:
        return f"CrawlDirectory({str(self.path)!r})"

    def place(self, path: Path) -> str:
        """Return `path`, which is below the folder, without the folder, for messages."""
        return str(path.relative_to(self.path))

    @property
    def parts(self) -> list["CrawlDirectory"]:
        """This directory once for each of the crawl's agents. Raises StateDamaged."""
        return [CrawlDirectory(self.path, part) for part in range(division(self.state).agents)]

    @property
    def host_books(self) -> list[Path]:
        """The host book of each agent, there or not. Raises StateDamaged."""
        return [part.hosts for part in self.parts]

    @property
    def states(self) -> list[dict[str, Any]]:
        """The `saved_state` of each agent that has a checkpoint. Raises StateDamaged."""
        return [state for part in self.parts if (state := saved_state(part.shard))]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other crawls out of the directory while the block runs. Raises DirectoryInUse, DirectoryError."""
        in_use = f"{self.path} is in use by another crawl: stop it, or choose another folder with --into"
        with writing(self.state):
            self.state.mkdir(parents=True, exist_ok=True)
        descriptor = lock(self.supervised, in_use)
        try:
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def closed_to_crawls(self) -> Iterator[None]:
        """Keep crawls out of the directory while the block runs. Raises DirectoryInUse if one runs, DirectoryError."""
        in_use = f"{self.path} is in use by a crawl: stop it, and run the same command again"
        with ExitStack() as locks:
            for path in (self.supervised, *(part.shard / "lock" for part in self.parts)):
                with writing(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                locks.callback(os.close, lock(path, in_use))
            yield

    @property
    def holds_crawl(self) -> bool:
        return self.settings.is_file()

    @property
    def is_copy(self) -> bool:
        """True if `fyke copy` made the folder: it leaves the state out, and gives every file a checksum."""
        return checksum_path(self.settings).is_file() and not any(self.state.glob("shard-*/manifest-*"))

    def config(self) -> Config:
        """Return what was asked of the crawl here. Raises NotACrawl."""
        if not self.holds_crawl:
            begin = f"begin one with fyke crawl URL --into {self.path}"
            raise NotACrawl(self.settings_gone or f"{self.path} holds no crawl (no fyke.toml): {begin}")
        return load(self.settings)

    @property
    def settings_gone(self) -> str:
        """A message if a crawl is here without its settings; otherwise empty."""
        if self.holds_crawl or not self.shard.is_dir() or not manifests.numbers_with_begun(self.shard):
            return ""
        return f"{self.settings} is gone; it holds the settings of this crawl: restore it from a copy"

    def require_readable(self) -> None:
        """Raise DirectoryError if this user may not read a file that is needed."""
        require_readable(self.settings, self.listed.path, self.warc, self.tables, self.state)

    def first_seed(self, config: Config) -> str:
        """Return the first seed of the crawl of `config`; empty without seeds."""
        return next(iter([*config.crawl.seeds, *islice(self.listed.urls(), 1)]), "")

    def prepare(self, config: Config) -> None:
        """Check that the crawl of `config` may be here, and make the folder; the lock in `shard` can be taken after it.

        Raises OtherCrawl if a crawl that was asked something else is here, OtherVersion, DirectoryError if the folder
        holds other things or cannot be written.
        """
        require_format(self.path)
        if self.holds_crawl:
            self.compare(config)
        with self._writing():
            self.path.mkdir(parents=True, exist_ok=True)
            if not self.holds_crawl and not self._barely_begun():
                other = f"{self.path} is not empty and holds no crawl: empty it"
                raise DirectoryError(f"{self.settings_gone or other}, or choose another folder with --into")

    @contextmanager
    def recorded(self, config: Config, listed: Iterable[str] | None = None) -> Iterator[None]:
        """Write down `config` and the seeds `listed`, and make the folders. The caller holds the lock.

        If the block fails before a checkpoint with this `config`, the earlier `fyke.toml` is put back. Raises as
        `prepare`.
        """
        before = b""
        if self.holds_crawl:
            self.compare(config, listed)
            before = self.settings.read_bytes()
        with self._writing():
            if room_bytes(self.path) < LEAST_ROOM_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if listed is not None and not self.holds_crawl:
                self.listed.write(listed)
            asked = sealed_line(render(config) + WRITTEN)
            write_whole(self.settings, asked.encode())  # a folder is a crawl from here on
            for folder in (self.warc, self.tables, self.logs):
                folder.mkdir(exist_ok=True)
        try:
            yield
        except BaseException:
            if before and not self._is_kept():
                with suppress(FykeError):
                    write_whole(self.settings, before)
            raise

    def _is_kept(self) -> bool:
        """Return whether a checkpoint was taken with the present `fyke.toml`."""
        try:
            return saved_state(self.shard).get("settings") == self.settings_digests()
        except FykeError:
            return False

    def settings_digests(self) -> dict[str, int]:
        """Return what a checkpoint remembers of `fyke.toml`: digests of the file, and of the settings that make it this
        crawl."""
        return {"file": xxh3_64_intdigest(self.settings.read_bytes()), "crawl": crawl_digest(self.config())}

    def settings_differ(self, saved: Mapping[str, Any]) -> bool:
        """Return whether `fyke.toml` is not as the checkpoint `saved` knows it. Raises OtherCrawl if that makes it
        another crawl."""
        before, now = saved.get("settings"), self.settings_digests()
        if not before or before == now:
            return False
        if before["crawl"] != now["crawl"]:
            raise OtherCrawl(
                f"{self.settings} differs from the settings of this crawl: it was edited (only allow and deny may be),"
                " or is damaged; restore what it said"
            )
        return True

    def settings_fault(self, saved: Mapping[str, Any]) -> str:
        """Return how `fyke.toml` differs from what the last run wrote; empty if it does not.

        The checkpoint `saved` tells, or the file's own last line if a younger run wrote it.
        """
        digests, data = saved.get("settings"), read_whole(self.settings)
        if not digests or digests["file"] == xxh3_64_intdigest(data):
            return ""
        text, _, _ = data.decode("utf-8", "replace").rpartition(" ")
        younger = sealed_line(text).encode() == data and digests["crawl"] == self.settings_digests()["crawl"]
        return "" if younger else "it differs from what the last run wrote: it was edited since, or is damaged"

    def withdraw(self) -> None:
        """Delete the folder of a start that broke off before `recorded`, if nothing else is in it."""
        if self.path.is_dir() and not self.holds_crawl and self._barely_begun():
            shutil.rmtree(self.path, ignore_errors=True)

    def forget(self) -> None:
        """Delete the state of a crawl that has brought nothing, so that it begins anew; the lock is held."""
        with self._writing():
            shard = self.shard.iterdir() if self.shard.is_dir() else ()
            for path in (*shard, *self.state.glob(f"{self.hosts.name}*")):
                if path.is_file() and path.name != "lock":
                    path.unlink()

    def log(self, at: float, event: str, **facts: object) -> None:
        """Add a line to the log: what happened at the unix time `at`. Raises DiskFull or DirectoryError."""
        line = {**facts, "event": event, "timestamp": f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"}
        path = self.logs / "fyke.log"
        with writing(path), open_append(path, -1) as file:
            file.write(json.dumps(line).encode() + b"\n")

    def _barely_begun(self) -> bool:
        """Return whether the folder has only rests, blocked hosts, and leftovers of a start that broke off before
        `recorded`."""
        lock = self.shard / "lock"
        listed = self.listed.path, checksum_path(self.listed.path)
        parts = (path.with_name(f"{path.name}.part") for path in (self.settings, *listed))
        ours = {*parts, *listed, self.state, self.shard, lock, self.supervised, self.rests, self.state / ASKED}
        return all(path in ours for path in self.path.rglob("*"))

    def _writing(self) -> AbstractContextManager[None]:
        return writing(
            self.path, "free some space, and run the command again", "fix that, or choose another folder with --into"
        )

    def compare(self, asked: Config, listed: Iterable[str] | None = None) -> None:
        """Raise OtherCrawl if `asked` and `listed` (if given) are not the crawl here, BadUrl for a seed that is not a
        URL."""
        if listed is not None:
            self.listed.compare(listed)
        there = self.config()
        before, now = ({key: getattr(of.crawl, key) for key in SAME_CRAWL} for of in (there, asked))
        before["seeds"], now["seeds"] = ([seed.url.decode() for seed in seeds_of(of["seeds"])] for of in (before, now))
        if there.extract != asked.extract:
            raise OtherCrawl(
                f"{self.path} holds a crawl with other [[extract]] tables: fyke extract {self.path} --config FILE makes"
                " new ones from the archive"
            )
        for key in SAME_CRAWL:
            if before[key] != now[key]:
                edited = (
                    f"; {key} may be edited in {self.settings}, also for links that were found before"
                    if key in EDITED
                    else ""
                )
                raise OtherCrawl(
                    f"{self.path} holds another crawl ({key} = {literal(before[key])}, not {literal(now[key])}): choose"
                    f" another folder with --into, or resume that one with fyke crawl --into {self.path}{edited}"
                )


def crawl_digest(config: Config) -> int:
    """Return a digest of the settings that make it this crawl, and that nobody may edit."""
    same = {key: getattr(config.crawl, key) for key in SAME_CRAWL if key not in EDITED}
    return xxh3_64_intdigest(repr((same, config.extract)).encode())


def room_bytes(folder: Path) -> int:
    """Return how many bytes may still be written into `folder`; 0 if no more files may be made. Raises OSError."""
    left = os.statvfs(folder)
    return left.f_bavail * left.f_frsize if left.f_favail or not left.f_files else 0


def crawl_clock(directory: CrawlDirectory) -> SystemClock:
    """Return the clock that all agents of the crawl share, as the latest checkpoint noted it. Raises StateDamaged."""
    return SystemClock(max(directory.states, key=itemgetter("taken_at"), default=None))


def saved_state(directory: Path) -> dict[str, Any]:
    """Return the newest checkpoint in the shard `directory`, by name; empty if there is none. Raises StateDamaged."""
    manifest = newest(directory)
    return {**manifest.participants, **manifest.counters, "number": manifest.number} if manifest.number else {}
