"""A crawl's directory moved to another place: `fyke move`.

On the same disk the folder is only renamed. To another disk every file is copied, synced, read back and compared before
the first old one is deleted. Invariant: at every moment one of the two folders has everything, and at most one has a
`fyke.toml`, which makes a folder a crawl: the old one loses it before the new one gets it. After a kill the same
command goes on.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fyke.archive.checksum import file_hash
from fyke.archive.directory import CrawlDirectory, require_folder
from fyke.core.errors import DirectoryError, NotACrawl
from fyke.core.telling import Tell
from fyke.disk.files import open_file, read_whole, real_path, sync_file, write_all, write_whole, writing, written_whole

MARK = "moving"  # in the new folder until it is the crawl; holds the old path
MOVED = "fyke.toml.moved"  # the name of fyke.toml when all is copied: in the new folder, then in the old
COPIED_BYTES = 1 << 20  # at a time
FULL = "free some space there, and run the same command again"
REFUSED = "fix that and run the same command again, or name another folder"


@dataclass(frozen=True, slots=True)
class Moved:
    """Files and bytes that were copied and compared; zeros if the folder was renamed."""

    files: int = 0
    size_bytes: int = 0


def move(
    directory: CrawlDirectory, target: Path, told: Tell, rename: Callable[[Path, Path], None] = os.rename
) -> Moved:
    """Move the crawl in `directory` to the folder `target`; `told` hears how many bytes are done, and of how many.

    If `directory` is a link, its target is moved, and the link deleted. Raises NotACrawl, DirectoryInUse,
    DirectoryError, DiskFull.
    """
    require_folder(target)
    named = directory.path
    done = _moved(CrawlDirectory(real_path(named)), real_path(target), told, rename)
    if named.is_symlink():
        with writing(named, FULL, REFUSED):
            named.unlink()
    return done


def _moved(directory: CrawlDirectory, target: Path, told: Tell, rename: Callable[[Path, Path], None]) -> Moved:
    source = directory.path
    emptied = source.is_dir() and not any(source.iterdir())
    renamed = not source.exists() and (target / MARK).is_file()
    if not directory.holds_crawl and (emptied or renamed or (source / MOVED).is_file()) and _is_ours(source, target):
        _change(source, target)  # killed after everything was copied
        return Moved()
    if not source.exists() and CrawlDirectory(target).holds_crawl:
        raise NotACrawl(f"{source} is not there, and {target} holds a crawl: was it moved there before?")
    directory.config()
    _check(source, target)
    with directory.closed_to_crawls():
        if not target.exists() and _renamed(source, target, rename):
            return Moved()
        done = _copied(source, target, told)
        with writing(source, FULL, REFUSED):
            directory.settings.rename(source / MOVED)
            sync_file(source)
        _change(source, target)
    return done


def _renamed(source: Path, target: Path, rename: Callable[[Path, Path], None]) -> bool:
    """Rename `source` to `target`; return False if that is another disk."""
    with writing(target, FULL, REFUSED):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(source / MARK, str(source).encode())
        try:
            rename(source, target)
        except OSError as error:
            (source / MARK).unlink(missing_ok=True)
            if error.errno != errno.EXDEV:
                raise
            return False
        sync_file(target.parent)
    _change(source, target)
    return True


def _change(source: Path, target: Path) -> None:
    """Make `target`, which has everything, the crawl; delete `source`."""
    with writing(target, FULL, REFUSED):
        if (target / MOVED).is_file():
            (target / MOVED).rename(target / "fyke.toml")
            sync_file(target)
        (target / MARK).unlink(missing_ok=True)
        sync_file(target)
    _remove(source)


def _is_ours(source: Path, target: Path) -> bool:
    """Return whether `source` is being moved to `target`."""
    begun = target / MARK
    return read_whole(begun).decode() == str(real_path(source)) if begun.is_file() else (target / "fyke.toml").is_file()


def _check(source: Path, target: Path) -> None:
    """Raise DirectoryError for an impossible target."""
    inner, outer = real_path(target), real_path(source)
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise DirectoryError(f"one of {target} and {source} is inside the other: name another folder")
    if (target / MARK).is_file() and _is_ours(source, target):
        return
    if target.exists() and not (target.is_dir() and {path.name for path in target.iterdir()} <= {f"{MARK}.part"}):
        raise DirectoryError(f"{target} exists and is not empty: name another folder")


def _files(folder: Path) -> list[Path]:
    """Return all files and links below `folder`; its sockets belong to a process that is gone."""
    return sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def _copied(source: Path, target: Path, told: Tell) -> Moved:
    settings = source / "fyke.toml"
    paths = [path for path in _files(source) if path != settings]
    sizes = {path: path.lstat().st_size for path in paths}
    total, done = sum(sizes.values()), 0
    with writing(target, FULL, REFUSED):
        target.mkdir(parents=True, exist_ok=True)
        write_whole(target / MARK, str(real_path(source)).encode())
        for folder in sorted(path for path in source.rglob("*") if path.is_dir() and not path.is_symlink()):
            (target / folder.relative_to(source)).mkdir(exist_ok=True)
        for path in paths:
            _copy(path, target / path.relative_to(source))
            done += sizes[path]
            told(path.name, done, total)
        for folder in [target, *(path for path in target.rglob("*") if path.is_dir() and not path.is_symlink())]:
            sync_file(folder)
        _copy(settings, target / MOVED)
    return Moved(len(paths) + 1, total + settings.stat().st_size)


def _copy(path: Path, to: Path) -> None:
    """Copy `path` to `to` and compare what the disk has; do nothing if it is there already."""
    if path.is_symlink():
        if not os.path.lexists(to):
            to.symlink_to(path.readlink())
        return
    wanted = file_hash(path)
    if to.is_file() and to.stat().st_size == path.stat().st_size and _on_disk(to) == wanted:
        return
    with written_whole(to, FULL, REFUSED) as part:
        with open_file(path) as file, part.open("wb", buffering=0) as copy:
            while chunk := file.read(COPIED_BYTES):
                write_all(copy.fileno(), chunk)
            os.fsync(copy.fileno())
        os.utime(part, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        part.chmod(path.stat().st_mode & 0o777)
        if _on_disk(part) != wanted:
            raise DirectoryError(f"{to} differs from what was written: do not trust that disk; {path} is unchanged")


def _on_disk(path: Path) -> str:
    """Return the hash of `path` as it is on the disk: the system is asked to forget its copy in memory first."""
    with open_file(path) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file_hash(path)


def _remove(source: Path) -> None:
    """Delete the old folder, and last the mark that it was moved."""
    with writing(source, FULL, REFUSED):
        for folder, folders, files in os.walk(source, topdown=False):
            for name in files:
                if (path := Path(folder) / name) != source / MOVED:
                    path.unlink()
            for name in folders:
                path = Path(folder) / name
                path.unlink() if path.is_symlink() else path.rmdir()
        (source / MOVED).unlink(missing_ok=True)
        with suppress(OSError):  # somebody's working directory, or a disk's own folder
            source.rmdir()
