"""Where does the index lie (`DIR/index/`), who may write it, and how far is it?

    state.json        the one file that says which others count
    lots/             what was read in the archive, some thousand pages to a lot; never changed
    lines-0, -1.npy   lines met at hosts (`fyke.search.own_text`), as of an even or an odd number of lots
    near/             which texts were met, and their bands: a shard of its own (`fyke.search.near`)
    merge-<n>.*       which page is current, and what is to be written
    engine-<n>/       the tantivy index

Used by the indexer, which holds the lock, and by searchers, which only read. Invariant: `state.json` is replaced in one
step, after all that it names is safe on disk. A file that it does not name is nobody's.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from fyke.archive.directory import no_crawl, require_folder
from fyke.core.errors import DirectoryError
from fyke.disk.files import allowed, lock, read_whole, write_whole, writing
from fyke.disk.sealed import sealed, unsealed

FORMAT = 18  # of lots and merges; increase it when they change, or what is read in a page
INDEX = "index"
ENGINE_META = "meta.json"  # tantivy's; an engine that has it holds an index


def engine_version() -> str:
    """Return the version of tantivy, whose files no other version need understand."""
    return version("tantivy")


@dataclass(frozen=True, slots=True)
class IndexState:
    """State of an index: which of its files count. All numbers begin at 0, for an empty index."""

    format: int = FORMAT
    engine: str = ""  # the version of tantivy that wrote `engine_dir`
    engine_number: int = 0
    beginning: str = ""  # of the pages table, so that another crawl is noticed
    pages_read: int = 0  # rows of the pages table
    unreadable: int = 0  # pages among them whose record was missing or incomplete
    lots: int = 0
    merged_lots: int = 0
    merge: int = 0
    links_ranked: int = 0  # rows of the tables links and pages that PageRank was made of
    pages_ranked: int = 0
    ranks: int = 0
    merged_ranks: int = 0
    written: int = 0  # groups of lots whose documents of this merge are in the engine
    settled: bool = True  # whether all documents of the merge are
    documents: int = 0  # of the merge


class IndexFolder:
    """The paths of the index of the crawl directory `crawl`. Raises DirectoryError if that is no folder."""

    def __init__(self, crawl: Path) -> None:
        require_folder(crawl)
        self.crawl = crawl
        self.path = crawl / INDEX
        self.lots = self.path / "lots"
        self.near = self.path / "near"
        self.state_file = self.path / "state.json"
        self.lock_file = self.path / "lock"

    def __repr__(self) -> str:
        return f"IndexFolder({str(self.path)!r})"

    def state(self) -> IndexState | None:
        """Return how far the index is. None if there is none, it is damaged, or this version cannot read it."""
        try:
            with allowed(self.state_file):
                values = unsealed("index", read_whole(self.state_file))
            return IndexState(**values) if values["format"] == FORMAT else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def stamp(self) -> int:
        """Return nanoseconds that change whenever the state is saved."""
        try:
            return self.state_file.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def save(self, state: IndexState) -> None:
        """Make `state` what counts; all files it names are on disk by now. Raises DiskFull or DirectoryError."""
        write_whole(self.state_file, sealed("index", asdict(state)))

    def lines(self, lots: int) -> Path:
        """Return the file of the lines met in `lots` lots. The file for one lot less stays as it is."""
        return self.path / f"lines-{lots % 2}.npy"

    def engine(self, state: IndexState) -> Path:
        return self.path / f"engine-{state.engine_number:03}"

    def scratch(self) -> Path:
        """Return a folder for intermediate files; `tidy` deletes it."""
        path = self.path / "scratch"
        with writing(path):
            path.mkdir(exist_ok=True)
        return path

    def last_engine(self) -> int:
        """Return the highest number of an engine here, named by the state or not; 0 without one."""
        return max((int(path.name.partition("-")[2]) for path in self.path.glob("engine-*")), default=0)

    def merge(self, number: int, what: str) -> Path:
        """Return the file of merge `number` that holds `what`."""
        return self.path / f"merge-{number:06}.{what}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the one writer. Raises DirectoryInUse, NotACrawl, DirectoryError."""
        if not self.crawl.is_dir():
            raise no_crawl(self.crawl)
        with writing(self.path):
            self.lots.mkdir(parents=True, exist_ok=True)
        held = lock(self.lock_file, f"{self.path} is being written by another fyke index: wait for it, or stop it")
        try:
            yield
        finally:
            os.close(held)

    def tidy(self, state: IndexState) -> None:
        """Delete files that `state` does not name: left by a run that was killed, or no longer needed."""
        with writing(self.path):
            for path in self.path.iterdir():
                kind, _, number = path.name.partition(".")[0].partition("-")
                wanted = {"merge": state.merge, "ranks": state.ranks, "engine": state.engine_number}.get(kind)
                unnamed = wanted is not None and (not number.isdecimal() or int(number) != wanted)
                unnamed = unnamed or (path == self.near and not state.lots)
                if unnamed or path.suffix == ".part" or kind == "scratch":
                    _delete(path)
            for path in self.lots.iterdir():
                number = path.name.partition(".")[0]
                if number.isdecimal() and int(number) >= state.lots:
                    _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def require(state: IndexState | None, folder: IndexFolder) -> IndexState:
    """Return `state` if there is an index that can be searched. Raises DirectoryError if not."""
    if state is None or state.engine != engine_version() or not (folder.engine(state) / ENGINE_META).exists():
        old = state is not None or folder.stamp()
        what = "the index is damaged, or of another version" if old else "there is no index"
        raise DirectoryError(f"{folder.crawl}: {what}; make it with fyke index {folder.crawl}")
    return state
