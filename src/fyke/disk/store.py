"""The directory of one shard, in three calls: create a *new* name, read, list the names.

Made by `Checkpoint`, used by every drum and queue of the shard. The calls are few, so that the directory may one day
be a bucket of an object store. The store knows each live file and its length, for the manifest.

Digests cover every byte of a file: one for each stretch written by one process (`Digests`), taken as it is written. The
manifest that names the file has them.

Invariant: a file that a manifest on disk may name is never changed within the length recorded there, and
not deleted. `retire` only marks it; the checkpoint deletes it once no kept manifest names it.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.disk.files import Appender, Bytes, Opened, Reader, raw

State = dict[str, Any]  # a participant gives it to a checkpoint and gets it back: JSON values only

Digests = dict[str, list[list[int]]]  # by file: begin, end and xxh3-64 of each stretch

SUFFIXES = ("seg", "keys", "vals", "ops", "aux")
OWN_NAME = re.compile(rf"[a-z][a-z0-9_-]*-(\d{{8,}})\.({'|'.join(SUFFIXES)})")


class Store:
    """The files of one shard. `read_only` is for another process that looks into a live shard."""

    def __init__(
        self,
        directory: Path,
        *,
        files: Mapping[str, int] | None = None,
        digests: Digests | None = None,
        participants: Mapping[str, State] | None = None,
        read_only: bool = False,
    ) -> None:
        self.directory = directory
        self.read_only = read_only
        self._participants = dict(participants or {})
        self._lengths = dict(files or {})
        self._digests: Digests = dict(digests or {})  # of bytes written before this store was opened
        self._written: dict[str, tuple[int, xxhash.xxh3_64]] = {}  # of bytes written since: the first one, the digest
        self._synced = dict(self._lengths)
        self._retired: set[str] = set()
        self._named: list[frozenset[str]] = [frozenset(self._lengths)]
        self._serial = max(map(_serial, self.names()), default=0)
        self._opened: WeakSet[Opened] = WeakSet()

    def __repr__(self) -> str:
        return f"Store({str(self.directory)!r}, {len(self._lengths)} files, {len(self._retired)} retired)"

    def participant(self, name: str) -> State:
        """Return the state of `name` in the checkpoint from which this shard was opened; empty at the first start."""
        return self._participants.get(name, {})

    # --- the three calls

    def create(self, stem: str, suffix: str) -> tuple[str, Appender]:
        """Make a new file `<stem>-<serial>.<suffix>`; return its name, which was never used before, and the file."""
        self._serial += 1
        name = f"{stem}-{self._serial:08}.{suffix}"
        if not OWN_NAME.fullmatch(name):
            raise ValueError(f"{name!r}: a stem is lower case, and a suffix one of {SUFFIXES}")
        path = self.directory / name
        if path.exists():
            raise FileExistsError(path)
        return name, self._appender(name, 0)

    def write(self, stem: str, suffix: str, pieces: Iterable[Bytes]) -> str:
        """Write a new file that holds `pieces` and will not change; return its name."""
        name, file = self.create(stem, suffix)
        with file:
            for piece in pieces:
                file.write(piece)
        return name

    def read(self, name: str) -> Reader:
        """Open a live file. Raises StateDamaged if it is gone."""
        file = Reader(self.directory / name)
        self._opened.add(file)
        return file

    # --- one array, in a file of its own

    def write_array(self, stem: str, array: npt.NDArray[Any], before: str) -> str:
        """Write `array` to a new file in place of the live file `before` (or ""); return its name."""
        if before:
            self.retire(before)
        return self.write(stem, "vals", [raw(array)])

    def array(self, name: str, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        """Return the array of `write_array`: read-only, [count]; no items if `name` is empty. Raises StateDamaged."""
        if not name:
            return np.zeros(0, dtype)
        with self.read(name) as reader:
            return reader.array(dtype, 0, count)

    def close(self) -> None:
        """Close all open files, also those of participants that failed while they were opened."""
        for file in list(self._opened):
            file.close()

    def names(self) -> list[str]:
        """Return the names of the shard's own kind in the directory, live or not, sorted."""
        if not self.directory.is_dir():
            return []
        return sorted(path.name for path in self.directory.iterdir() if OWN_NAME.fullmatch(path.name))

    # --- what grows, what goes

    def append(self, name: str) -> Appender:
        """Open a live file to let it grow further."""
        return self._appender(name, self._lengths[name])

    def _appender(self, name: str, length: int) -> Appender:
        if self.read_only:
            raise RuntimeError(f"{self!r} was opened for reading only")

        def note(length: int) -> None:
            self._lengths[name] = length

        note(length)
        _, digest = self._written.setdefault(name, (length, xxhash.xxh3_64()))
        file = Appender(self.directory / name, length, note, digest)
        self._opened.add(file)
        return file

    def size(self, name: str) -> int:
        """Return the length of a live file in bytes."""
        return self._lengths[name]

    def retire(self, name: str) -> None:
        """Delete the live file `name` at once, or as soon as no kept manifest names it."""
        del self._lengths[name]
        self._digests.pop(name, None)
        self._written.pop(name, None)
        self._synced.pop(name, None)
        self._retired.add(name)
        if not any(name in named for named in self._named):
            self._delete(name)

    def retire_later(self, name: str) -> None:
        """Delete `name`, which is not live, as soon as no kept manifest names it."""
        self._retired.add(name)

    def _delete(self, name: str) -> None:
        (self.directory / name).unlink(missing_ok=True)
        self._retired.discard(name)

    # --- for the checkpoint

    def lengths(self) -> dict[str, int]:
        """Return every live file and its length in bytes."""
        return dict(self._lengths)

    def digests(self) -> Digests:
        """Return the digests of every live file up to its length now."""
        digests = dict(self._digests)
        for name, (begin, digest) in self._written.items():
            if self._lengths[name] > begin:
                digests[name] = [*digests.get(name, []), [begin, self._lengths[name], digest.intdigest()]]
        return digests

    def dirty(self) -> list[str]:
        """Return the live files with bytes that no committed checkpoint has made durable."""
        return [name for name, length in self._lengths.items() if self._synced.get(name) != length]

    def protect(self, named: Iterable[Iterable[str]]) -> None:
        """Keep the files in these sets of names: those of the manifests that may be read after a crash."""
        self._named = [frozenset(names) for names in named]

    def synced(self, lengths: Mapping[str, int]) -> None:
        """Note that `lengths` are durable, and delete retired files that are not protected any more."""
        self._synced = {name: length for name, length in lengths.items() if name in self._lengths}
        for name in [name for name in self._retired if not any(name in named for named in self._named)]:
            self._delete(name)


def _serial(name: str) -> int:
    match = OWN_NAME.fullmatch(name)
    return int(match[1]) if match else 0
