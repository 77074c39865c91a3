"""The manifest: what was safe at an instant, so that a restart is exact.

A checkpoint is three steps. `take`, on the event loop and quick: everybody has handed their bytes to the
operating system and said where they stand. `make_durable`, in any thread: the files are fsynced and the
manifest appears by rename under a number never used before. `committed`, on the loop again: files retired
before are deleted. A crash between the steps leaves the manifest before, and all it names.

`recover` reads the newest whole manifest, cuts files that grew to their recorded length and deletes what
it does not name. Invariant: the files of the newest whole manifest are there, as long as it says at least.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from fyke.core.errors import StateDamaged
from fyke.shelf.store import Store, writing

KEPT = 2


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checkpoint taken, and not safe yet."""

    number: int
    text: str
    dirty: tuple[Path, ...]
    retired: tuple[str, ...]
    folder: Path

    def make_durable(self) -> None:
        """Bring it to the disk. Raises DiskFull; the manifest before is then still the newest."""
        for path in self.dirty:
            _sync(path)
        path = self.folder / manifest_name(self.number)
        part = path.with_suffix(".part")
        with writing(path):
            with part.open("w", encoding="utf-8") as file:
                file.write(self.text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        _sync(self.folder)


class Checkpoint:
    """The numbered manifests of one shard."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.number = max((number for number, _ in manifests(store.folder)), default=0)
        self._retired: list[str] = []

    def __repr__(self) -> str:
        return f"Checkpoint({self.number} in {str(self._store.folder)!r})"

    def recover(self) -> dict[str, Any]:
        """What `take` was given for the newest whole manifest, its files put in order; {} for a new shard."""
        manifest = newest(self._store.folder)
        files: Mapping[str, int] = manifest.get("files", {})
        for name, length in files.items():
            path = self._store.path(name)
            size = path.stat().st_size if path.exists() else -1
            if size < length:
                raise StateDamaged(f"{path} should be {length} bytes long and is {max(size, 0)}: the state is damaged")
            if size > length:
                os.truncate(path, length)
        for path in self._store.folder.iterdir():
            ours = path.name.startswith(("manifest-", "lock"))
            if path.is_file() and path.name not in files and not ours:
                path.unlink()
        state: dict[str, Any] = manifest.get("state", {})
        return state

    def take(self, state: Mapping[str, Any], also_dirty: Iterable[Path] = ()) -> Snapshot:
        """A snapshot of `state` (JSON-able) with the store's files as they are now."""
        self.number += 1
        names = {*self._store.dirty, *self._store.growing()}
        self._store.dirty.clear()
        self._retired += self._store.retired
        self._store.retired.clear()
        body = {"number": self.number, "files": self._store.lengths(), "state": state}
        dirty = (*(self._store.path(name) for name in sorted(names)), *also_dirty)
        return Snapshot(self.number, _sealed(body), dirty, tuple(self._retired), self._store.folder)

    def committed(self, snapshot: Snapshot) -> None:
        """`snapshot` is safe: delete what only older manifests need."""
        for name in snapshot.retired:
            self._store.path(name).unlink(missing_ok=True)
        del self._retired[: len(snapshot.retired)]
        old = sorted(manifests(self._store.folder))[:-KEPT]
        for _, path in old:
            path.unlink(missing_ok=True)


def manifest_name(number: int) -> str:
    return f"manifest-{number:08}.json"


def manifests(folder: Path) -> list[tuple[int, Path]]:
    """Number and path of every manifest in `folder`, whole or not."""
    found = folder.glob("manifest-*.json")
    return [(int(path.stem[9:]), path) for path in found if path.stem[9:].isdigit()]


def newest(folder: Path) -> dict[str, Any]:
    """The newest whole manifest in `folder`, or {}. Raises StateDamaged when there are only torn ones."""
    torn = None
    for _, path in sorted(manifests(folder), reverse=True):
        body = _opened(path)
        if body is not None:
            return body
        torn = path
    if torn is not None:
        raise StateDamaged(f"{torn} and all before it are torn: the crawl's state is damaged, begin anew")
    return {}


def _sealed(body: Mapping[str, Any]) -> str:
    text = json.dumps(body)
    return json.dumps({"xxh3": xxhash.xxh3_64_hexdigest(text.encode()), "body": text})


def _opened(path: Path) -> dict[str, Any] | None:
    try:
        outer = json.loads(path.read_text(encoding="utf-8"))
        if xxhash.xxh3_64_hexdigest(outer["body"].encode()) == outer["xxh3"]:
            body: dict[str, Any] = json.loads(outer["body"])
            return body
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None


def _sync(path: Path) -> None:
    """fsync a file or folder; one that has been deleted meanwhile needs none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        with writing(path):
            os.fsync(fd)
    finally:
        os.close(fd)
