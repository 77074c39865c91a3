"""How a shard survives a power cut: numbered manifests, each written once.

The crawl loop calls `take`, which is quick, runs `make_durable` in a worker thread, and calls `committed`
back on the loop. Opening a directory reads the newest manifest, cuts grown files to their recorded lengths
and deletes files that no kept manifest names, among names of the shard's own kind only.

The two newest manifests are kept with every file they name, so that a repair can go back to the older one.
That costs the disk space of one checkpoint's replaced files. A manifest that is alone shows that another is lost,
and is not opened. So an empty manifest is written beside the first one.

Invariant: once a checkpoint was committed, the directory always holds a whole manifest with all its files. A
checkpoint that fails, for example on a full disk, does not change that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fyke.core.errors import NotACrawl
from fyke.disk import manifest as manifests
from fyke.disk.files import Opened, cut, damaged, lock, sync_file, write_whole, writing
from fyke.disk.manifest import BEGUN, Manifest
from fyke.disk.store import State, Store

KEPT_MANIFESTS = 2
VERIFIED_BYTES = 256 << 20  # state up to this size is verified when a shard is opened: a tenth of a second


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A shard at one instant, to be made durable. Immutable."""

    directory: Path
    manifest: Manifest
    dirty: tuple[Path, ...]

    def make_durable(self) -> None:
        """Sync all files that the manifest names, then write it. May run in a worker thread.

        Raises DiskFull or DirectoryError; the previous manifest then stays valid. A disk that failed to sync must
        not be trusted again: end the crawl and start it anew.
        """
        for path in self.dirty:
            with writing(path):
                sync_file(path)
        for parent in sorted({path.parent for path in self.dirty} | {self.directory}):
            with writing(parent):
                sync_file(parent)
        path = self.directory / self.manifest.name
        if path.exists():
            raise FileExistsError(path)
        if not manifests.numbers_with_begun(self.directory):
            write_whole(self.directory / BEGUN.name, b"")
        write_whole(path, self.manifest.encode())


class Checkpoint(Opened):
    """The owner of a shard's directory, and its `store`."""

    def __init__(self, directory: Path, *, verified_bytes: int = VERIFIED_BYTES) -> None:
        """Open `directory`, which is made if it is missing. Up to `verified_bytes` of state are verified.

        Raises DirectoryInUse if another process has it open, StateDamaged if the newest manifest is not whole:
        `fyke.crawl.repair` goes back to an older one and puts newer rows aside.
        """
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._verified_bytes = verified_bytes
        in_use = f"{directory} is in use by another crawl: stop it, or choose another directory"
        self._descriptor = lock(directory / "lock", in_use)
        try:
            self.reopen()
        except BaseException:
            super().close()
            raise

    def close(self) -> None:
        """Close the files of the store and unlock the directory; a second call does nothing."""
        self.store.close()
        super().close()

    def reopen(self) -> None:
        """Read the directory again after its owner changed it. Keeps the lock."""
        directory = self._directory
        self._kept = _whole_manifests(directory)
        self._last_number = max(manifests.numbers(directory), default=0)
        newest = _require_last(directory, self._kept, self._last_number)
        self.counters: dict[str, Any] = dict(newest.counters)
        _cut(directory, newest)
        _verify(directory, newest, self._verified_bytes)
        self.store = Store(directory, files=newest.files, digests=newest.digests, participants=newest.participants)
        self._clean()
        self._pending: Snapshot | None = None
        self._uncommitted: list[dict[str, int]] = []

    def __repr__(self) -> str:
        return f"Checkpoint({str(self._directory)!r}, manifest {self.number})"

    @property
    def number(self) -> int:
        """The number of the newest durable manifest, 0 before the first."""
        return self._kept[0].number if self._kept else 0

    def take(
        self,
        participants: Mapping[str, State],
        counters: Mapping[str, Any] | None = None,
        extra_files: Iterable[Path] = (),
    ) -> Snapshot:
        """Return a snapshot of the states that `participants` just gave and every live file's length. Does no I/O.

        `extra_files` lie elsewhere (WARC files): they are synced too, but the participant that wrote them remembers
        their lengths. An earlier snapshot that was not committed is given up.
        """
        self._last_number += 1
        lengths = self.store.lengths()
        manifest = Manifest(self._last_number, lengths, dict(participants), dict(counters or {}), self.store.digests())
        dirty = [self._directory / name for name in self.store.dirty()]
        snapshot = Snapshot(self._directory, manifest, (*dirty, *extra_files))
        self._uncommitted.append(lengths)  # a snapshot that failed may still have reached the disk
        self.store.protect([*(kept.files for kept in self._kept), *self._uncommitted])
        self._pending = snapshot
        return snapshot

    def committed(self, snapshot: Snapshot) -> None:
        """Note that `snapshot` is durable; delete older manifests, then the files that only they named."""
        if snapshot is not self._pending:
            raise RuntimeError(f"manifest {snapshot.manifest.number} is not the one taken last")
        self._pending = None
        self._uncommitted = []
        self._kept = [snapshot.manifest, *self._kept][:KEPT_MANIFESTS]
        self._delete_manifests()
        self.store.protect(kept.files for kept in self._kept)
        self.store.synced(snapshot.manifest.files)

    def _clean(self) -> None:
        """Delete what a crash left: manifests that are not kept, and files that no kept manifest names."""
        self._delete_manifests()
        for path in list(self._directory.iterdir()):
            if manifests.TORN_NAME.fullmatch(path.name):
                path.unlink()
        named = [kept.files for kept in self._kept]
        for name in self.store.names():
            if not any(name in files for files in named):
                (self._directory / name).unlink()
        for name in {name for files in named for name in files} - set(self.store.lengths()):
            self.store.retire_later(name)
        self.store.protect(named)

    def _delete_manifests(self) -> None:
        kept = {manifest.number for manifest in (*self._kept, BEGUN)[:KEPT_MANIFESTS]}
        for number in manifests.numbers_with_begun(self._directory):
            if number not in kept:
                (self._directory / Manifest(number).name).unlink()


def look(directory: Path) -> tuple[Store, dict[str, Any]]:
    """Return a store to read from, as of the newest manifest, and that manifest's counters. Takes no lock.

    For a process that explains a live crawl. If a file goes while it is read (StateDamaged), look again.
    Raises NotACrawl if there is no manifest.
    """
    kept = _whole_manifests(directory) if directory.is_dir() else []
    if not kept:
        raise NotACrawl(f"{directory} holds no checkpoint: give the directory of a crawl that has run")
    newest = kept[0]
    return Store(directory, files=newest.files, participants=newest.participants, read_only=True), newest.counters


def newest(directory: Path) -> Manifest:
    """Return the newest undamaged manifest in `directory`, number 0 if there is none yet. Takes no lock.

    Files that it names may be lost; the lengths that it records for archive and tables still count.
    Raises StateDamaged if there are manifests but none can be read.
    """
    numbers = manifests.numbers(directory) if directory.is_dir() else []
    found = next((one for one in (manifests.read(directory, number) for number in numbers) if one is not None), None)
    if numbers and found is None:
        raise damaged(directory / Manifest(numbers[0]).name, "no checkpoint is whole")
    return found or Manifest(0)


def _whole_manifests(directory: Path) -> list[Manifest]:
    """Return the newest whole manifests, newest first, at most `KEPT_MANIFESTS`."""
    numbers = manifests.numbers(directory)
    whole = (manifests.load(directory, number) for number in numbers)
    kept = [manifest for manifest in whole if manifest is not None][:KEPT_MANIFESTS]
    if numbers and not kept:
        raise damaged(directory / Manifest(numbers[0]).name, "no checkpoint is whole")
    return kept


def require_whole(directory: Path) -> None:
    """Raise StateDamaged if `Checkpoint` would on opening `directory`. Takes no lock, writes nothing."""
    if directory.is_dir():
        last = max(manifests.numbers(directory), default=0)
        _verify(directory, _require_last(directory, _whole_manifests(directory), last), VERIFIED_BYTES)


def _require_last(directory: Path, kept: Sequence[Manifest], last_number: int) -> Manifest:
    """Return the first manifest of `kept`, number 0 if there is none.

    Raises StateDamaged if it is not the last one written, or may not be: to go on from an older one would delete newer
    files.
    """
    if directory.is_dir() and (number := manifests.lone(directory)):
        gone = f"{Manifest(number + 1).name} or {Manifest(number - 1).name} is gone"
        raise damaged(directory, f"{gone}; going on could delete what came later")
    newest = kept[0] if kept else Manifest(0)
    if newest.number != last_number:  # no crash does this: a manifest is written in one step, after its files
        what = "this checkpoint is not whole, and going on from the one before would delete what came later"
        raise damaged(directory / Manifest(last_number).name, what)
    return newest


def _cut(directory: Path, manifest: Manifest) -> None:
    for name, length in manifest.files.items():
        cut(directory / name, length)


def _verify(directory: Path, manifest: Manifest, most_bytes: int) -> None:
    """Verify the files whose digests are not checked when they are used; all files if they are small together."""
    little = sum(manifest.files.values()) <= most_bytes
    for name in manifest.files:
        if little or name.endswith(".ops"):
            manifests.verify(directory, manifest, name)
