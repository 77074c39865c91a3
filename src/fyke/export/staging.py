"""An export that is not whole yet: the folder `<target>.part` beside the target.

    progress.json   what was asked, of which rows, and how far it is
    lock            held by the writer
    out             what will be the target: a file or a folder
    scratch/        what is only needed on the way

`fyke.export.job` opens it, the formats write below it and yield a `Mark` after each part. Invariant: the target appears
by one rename, when all of it is safe on the disk; `progress.json` never counts bytes that are not safe.
"""

import errno
import json
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fyke.core.errors import ConfigurationError
from fyke.disk import files

PROGRESS = "progress.json"
LOCK = "lock"
FULL = "free some space, and the same command goes on where it was"
REFUSED = "fix that, or choose another place with --out"
_AT_ONCE = 1 << 20  # rows of a column that is begun: at most 8 MiB of zeros


@dataclass(frozen=True, slots=True)
class Mark:
    """Progress of an export: `done` of its total, `entries` made of that, and the format's state to go on from."""

    done: int = 0
    entries: int = 0
    state: dict[str, Any] = field(default_factory=dict)  # as JSON has it
    unreadable: int = 0  # pages whose record in the archive was not there or not whole


def writing(path: Path) -> AbstractContextManager[None]:
    """Turn an OSError of the block into an error that a person can act on."""
    return files.writing(path, FULL, REFUSED)


class Staging(files.Opened):
    """The export to `target`, under way. If `asked` differs from that of an earlier run, the export begins anew.

    Raises ConfigurationError if the target exists, DirectoryInUse, DirectoryError, DiskFull.
    """

    def __init__(self, target: Path, asked: dict[str, Any]) -> None:
        if target.name in ("", ".."):  # the current folder, the root, or one above: nothing can be beside it
            raise ConfigurationError(f"{target} exists already: choose another place with --out")
        self.target = target
        self.folder = target.with_name(target.name + ".part")
        self.out = self.folder / "out"
        self.scratch = self.folder / "scratch"
        self.mark = Mark()
        self.until: dict[str, Any] = {}  # how much of the crawl is exported
        self.published = False  # the target is in its place, and only this folder must still be deleted
        self._asked = asked

    def __repr__(self) -> str:
        return f"Staging({str(self.folder)!r}, {self.mark.done} done)"

    def __enter__(self) -> Self:
        with writing(self.folder):
            self._enter()
        return self

    def _enter(self) -> None:
        begun = self.folder / PROGRESS
        if self.folder.exists() and not begun.exists() and not self._barely_begun():
            raise ConfigurationError(f"{self.folder} is in the way: move it, or choose another place with --out")
        progress = self._progress()
        same = progress.get("asked") == self._asked
        renamed = same and progress["whole"] and not self.out.exists()
        there = os.path.lexists(self.target)
        if there and not renamed:
            if self.folder.exists() and not begun.exists() and not files.is_locked(self.folder / LOCK):
                shutil.rmtree(self.folder)  # killed when only this was left to do
            raise ConfigurationError(f"{self.target} exists already: delete it, or choose another place with --out")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._descriptor = files.lock(
            self.folder / LOCK, f"{self.target} is being written by another fyke export: wait for it"
        )
        self.published = there
        if same and there == renamed:
            self.mark, self.until = Mark(*progress["mark"]), progress["until"]
        else:
            self.begin_anew()

    def _barely_begun(self) -> bool:
        return self.folder.is_dir() and {path.name for path in self.folder.iterdir()} <= {
            LOCK,
            PROGRESS + ".part",
            "scratch",
        }

    def _progress(self) -> dict[str, Any]:
        path = self.folder / PROGRESS
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def begin_anew(self) -> None:
        """Delete what an earlier run wrote."""
        with writing(self.folder):
            (self.folder / PROGRESS).unlink(missing_ok=True)
            for path in (self.out, self.scratch):
                _delete(path)
        self.mark, self.until = Mark(), {}

    def begin(self, until: dict[str, Any]) -> None:
        """Note how much of the crawl is exported; nothing is done yet."""
        self.until = until
        self.record(self.mark)

    def record(self, mark: Mark, *, whole: bool = False) -> None:
        """Note that everything up to `mark` is safe on the disk."""
        self.mark = mark
        counted = [mark.done, mark.entries, mark.state, mark.unreadable]
        text = json.dumps({"asked": self._asked, "until": self.until, "whole": whole, "mark": counted})
        with files.written_whole(self.folder / PROGRESS, FULL, REFUSED) as part:
            part.write_text(text)

    def publish(self) -> None:
        """Put the whole export in its place."""
        if not self.published:
            self.record(self.mark, whole=True)
            with writing(self.target):
                if os.path.lexists(self.target):  # another program made it meanwhile
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                self.out.rename(self.target)
                files.sync_file(self.target.parent)
        with writing(self.folder):
            for path in self.folder.iterdir():
                if path.name not in (PROGRESS, LOCK):
                    _delete(path)
            (self.folder / PROGRESS).unlink()  # until now it says that all is done
        descriptor, self._descriptor = self._descriptor, -1
        files.remove_locked(self.folder, descriptor)


def column_once(path: Path, dtype: npt.DTypeLike, rows: int, fill: Callable[[npt.NDArray[Any]], None]) -> Any:
    """Return a column of `rows` values as the file `path`; `fill` makes it from zeros if it is not there. Raises
    DiskFull."""
    if not rows:
        return np.zeros(0, dtype)
    if not path.exists():
        with writing(path):
            path.parent.mkdir(exist_ok=True)
        with files.written_whole(path, FULL, REFUSED, synced=False) as part:
            with part.open("wb") as file:  # written, not only made long: a mapping cannot say that the disk is full
                for begin in range(0, rows, _AT_ONCE):
                    file.write(bytes(min(_AT_ONCE, rows - begin) * np.dtype(dtype).itemsize))
            column = np.memmap(part, dtype, "r+", shape=(rows,))
            fill(column)
            column.flush()
    return np.memmap(path, dtype, "r", shape=(rows,))


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
