"""The finished files of a crawl, copied into an object store or a folder: `fyke copy`, also while it runs.

Finished are closed WARC files with their indexes, table files, exports, and the files that say how the crawl was asked.
None of them changes any more, except as a whole. Each is sent, read back and compared; only then its checksum is put
beside it, as `FILE.xxh3`. So a killed copy goes on with files that have none, and a reader that finds a checksum has
the file. Invariant: memory holds some megabytes, whatever the files are.
"""

import errno
import fcntl
import os
import re
from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import obstore
import xxhash
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url
from rich.console import Console

from fyke.archive.checksum import (
    OTHER_BYTES,
    SUFFIX,
    checksum_line,
    checksum_path,
    file_hash,
    line_holds,
    recorded_line,
)
from fyke.archive.directory import CrawlDirectory
from fyke.archive.lost import lost_files
from fyke.core.errors import ROOM, ConfigurationError, DirectoryError, DiskFull, StateDamaged
from fyke.disk.files import damaged, real_path
from fyke.export.same_crawl import require_own
from fyke.progress import Progress
from fyke.quantities import bytes_text, counted

FOLDERS = ("warc", "tables", "export", "extracted")
_HALF = re.compile(r"#\d+$")
SAID_CHARS = 200  # of a store's error message
_SEALED = (".warc.gz", ".cdxj", ".parquet")  # in `warc` and `tables`


@dataclass(frozen=True, slots=True)
class Copied:
    """The files that are at `target` now: `files` with `size_bytes` in all; `new` were sent this time.

    `lost` names files that could not be copied: they are gone from the crawl, or not as they were written.
    """

    target: str
    files: int
    size_bytes: int
    new: int
    lost: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.target}: {counted(self.files, 'file')}, {bytes_text(self.size_bytes)}; {self.new:,} new, compared"
        )


def copy(directory: CrawlDirectory, target: str, console: Console) -> Copied:
    """Copy the finished files of the crawl in `directory` to `target`, a URL (`s3://BUCKET/PREFIX`, …) or a folder.

    Damaged files are left out. Raises NotACrawl, ConfigurationError for an impossible target, OtherCrawl for one with
    another crawl, before anything is written there, DirectoryError if copying fails, DiskFull.
    """
    directory.config()
    if "://" not in target and real_path(Path(target)).is_relative_to(real_path(directory.path)):
        raise DirectoryError(f"{target} is inside the crawl: name another folder")
    paths = list(_finished(directory))
    with ExitStack() as held:
        with _explained(target):
            store = from_url(target) if "://" in target else LocalStore(_made(Path(target)), mkdir=True)
            there = {found["path"]: found["size"] for batch in obstore.list(store) for found in batch}
            require_own(directory, target, store, there)
            if "://" not in target:
                _tidied(Path(target), {path.relative_to(directory.path).as_posix() for path in paths}, held)
        return _copied_to(store, directory, target, (paths, there), console)


def _copied_to(
    store: Any, directory: CrawlDirectory, target: str, listed: tuple[list[Path], dict[str, int]], console: Console
) -> Copied:
    """Send the files of both lists that `store` lacks: `listed` are those here, and the sizes of those there."""
    paths, there = listed
    total, done, new = sum(path.stat().st_size for path in paths), 0, 0
    lost = [path.relative_to(directory.path).as_posix() for path in _lost(directory)]
    sent, sent_bytes = 0, 0
    with Progress(console, "copying", pipe_s=5.0) as progress:
        for path in paths:
            progress.tell(f"copying {path.name}", done, total, "bytes")
            name = path.relative_to(directory.path).as_posix()
            try:
                with _explained(target):
                    new += _sent(store, path, name, there)
                sent, sent_bytes = sent + 1, sent_bytes + path.stat().st_size
            except StateDamaged:
                lost.append(name)
            done += path.stat().st_size
    return Copied(target, sent, sent_bytes, new, tuple(lost))


def _made(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is not a folder: name another, or an address such as s3://BUCKET/PREFIX")
    return folder.absolute()


def _tidied(folder: Path, names: Set[str], held: ExitStack) -> None:
    """Hold a shared lock on the folder until `held` ends. If nobody else copies into it, first delete half-written
    `names`.

    The store writes `NAME#1` first; a killed copy leaves such files.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    held.callback(os.close, descriptor)
    with suppress(OSError):  # another process copies into it, or it cannot be locked
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path in folder.rglob("*#*"):
            name = path.relative_to(folder).as_posix()
            if name not in names and _HALF.sub("", name).removesuffix(SUFFIX) in names and path.is_file():
                path.unlink()
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _finished(directory: CrawlDirectory) -> Iterator[Path]:
    """Yield the files that never change, or are replaced whole. The small ones that explain the others come last."""
    for folder in (directory.path / name for name in FOLDERS):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            unfinished = any(part.endswith(".part") for part in path.relative_to(folder).parts)
            if unfinished or not path.is_file() or path.is_symlink() or path.suffix == SUFFIX:
                continue
            if folder in (directory.warc, directory.tables) and not _is_sealed(path):
                continue
            yield path
    yield from (path for path in (directory.listed.path, directory.settings) if path.is_file())


def _lost(directory: CrawlDirectory) -> Iterator[Path]:
    """Yield finished files that would be copied and are gone. A table without its checksum counts as gone."""
    wanted = (directory.path, directory.warc, directory.tables)
    yield from (path for path in lost_files(directory) if path in wanted or path.parent in wanted)
    for path in sorted(directory.tables.glob("*.parquet")):
        if not checksum_path(path).is_file():
            yield checksum_path(path)


def _is_sealed(path: Path) -> bool:
    warc = path.with_name(path.name.removesuffix(".cdxj") + ".warc.gz") if path.suffix == ".cdxj" else path
    return path.name.endswith(_SEALED) and checksum_path(warc).is_file()


def _sent(store: Any, path: Path, name: str, there: dict[str, int]) -> bool:
    """Send `path` to `store` as `name` if it is not there; return whether it was sent. Raises StateDamaged if damaged
    here."""
    recorded = recorded_line(path) if checksum_path(path).is_file() else None
    line = checksum_line(path.name, file_hash(path)) if recorded is None else recorded
    if f"{name}{SUFFIX}" in there and there.get(name) == path.stat().st_size:  # noqa: SIM102 - a request
        if bytes(obstore.get(store, f"{name}{SUFFIX}").bytes()) == line.encode():
            return False
    if recorded is not None and not line_holds(recorded, path.name, file_hash(path)):
        raise damaged(path, OTHER_BYTES)
    obstore.put(store, name, path)
    digest = xxhash.xxh3_64()
    for chunk in obstore.get(store, name).stream():
        digest.update(chunk)
    if not line_holds(line, path.name, digest.hexdigest()):
        raise DirectoryError(f"{name} arrived other than it was sent: run the same command again")
    obstore.put(store, f"{name}{SUFFIX}", line.encode())
    return True


@contextmanager
def _explained(target: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError, ValueError) as error:  # ValueError: the address is not a URL
        said = " ".join(str(error).partition("\n\nDebug source")[0].split())[:SAID_CHARS]
        if any(os.strerror(number) in said for number in (errno.ENOSPC, errno.EDQUOT)):
            raise DiskFull(f"{target}: {said}; {ROOM}, and run the same command again") from None
        raise DirectoryError(f"{target}: {said}; fix that, and run the same command again") from None
