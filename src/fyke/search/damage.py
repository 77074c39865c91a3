"""Is the index whole? Every file that its state names must be there, and every byte of the engine's as it was written.

`fyke check` and its repair ask it, also while `fyke index` runs, and searchers after an answer failed. The engine,
tantivy, ends each file of a segment with a footer (JSON, its length, a magic number) that has the CRC-32 of all before
it. Files without a footer, and the version in footers, are compared with what the engine writes here and now.

Invariant: a fault is reported only of an index that did not change meanwhile, because its writer takes files away. A
file of a segment never changes, so it is read once. Bounded: memory holds a piece of a file.
"""

import json
import struct
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from zlib import crc32

from fyke.archive.check import Fault
from fyke.archive.checksum import CHUNK_BYTES
from fyke.archive.lost import GONE
from fyke.disk.files import allowed, is_locked, open_file, read_whole
from fyke.disk.scratch import scratch
from fyke.disk.sealed import unsealed
from fyke.search.folder import ENGINE_META, FORMAT, IndexFolder, IndexState, engine_version
from fyke.search.lots import lot_files
from fyke.search.ranks import rank_files

ENDINGS = ("fast", "fieldnorm", "idx", "pos", "store", "term")  # the files that each segment has
OTHER = "its bytes are not those that were written"
_MANAGED = ".managed.json"  # names all files of the engine
_TAIL = struct.Struct("<II")  # length of the footer, magic number
_MAGIC = 1337
_MOST_OF_FOOTER = 1 << 12
_OF_MERGE = ("catalogue", "aliases", "plan", "deletes")


def index_faults(crawl: Path) -> list[Fault]:
    """Return the damaged and missing files of the index of the crawl directory `crawl`; none if there is no index, or
    one that `fyke index` makes anew. Raises DirectoryError if it may not be read, DiskFull."""
    folder = IndexFolder(crawl)
    look = _Look(folder)
    before, now = None, look.stamp()
    faults: dict[Path, str] = {}
    while now != before and (before is None or faults):
        before, faults = now, dict(look.faults())
        now = look.stamp()
    what = f"delete {folder.path} and make it again with fyke index {crawl}"
    return [Fault(str(path.relative_to(crawl)), f"{fault}: {what}") for path, fault in faults.items()]


class _Look:
    """A look at the index in `folder`, with the files found whole so far."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._whole: set[Path] = set()

    def stamp(self) -> tuple[bytes, bytes]:
        """Return bytes that change whenever the files of the index do."""
        state = self._state()
        return _read(self._folder.state_file), _read(self._meta(state)) if isinstance(state, IndexState) else b""

    def faults(self) -> Iterator[tuple[Path, str]]:
        """Yield damaged and missing files, with what is wrong."""
        state = self._state()
        if isinstance(state, str):
            yield self._folder.state_file, state
        elif state is not None:
            yield from ((path, GONE) for path in self._named(state) if not _is_there(path))
            yield from self._of_engine(state)

    def _meta(self, state: IndexState) -> Path:
        return self._folder.engine(state) / ENGINE_META

    def _state(self) -> IndexState | str | None:
        """Return the state of the index, or in words what is wrong with it; None if nobody uses the files there."""
        path = self._folder.state_file
        try:
            with allowed(path):
                values = unsealed("index", read_whole(path))
            return IndexState(**values) if values["format"] == FORMAT else None
        except FileNotFoundError:
            begun = any(self._folder.lots.glob("*")) and not is_locked(self._folder.lock_file)
            return GONE if begun else None
        except (OSError, ValueError, KeyError, TypeError):
            return OTHER

    def _named(self, state: IndexState) -> Iterator[Path]:
        """Yield the files that `state` names, without the engine's."""
        for number in range(state.lots):
            yield from lot_files(self._folder.lots, number, compared=number < state.merged_lots)
        if state.lots:
            yield self._folder.lines(state.lots)
        if state.merge:
            yield from (self._folder.merge(state.merge, what) for what in _OF_MERGE)
        if state.ranks:
            yield from (path for graph in ("pages", "domains") for path in rank_files(self._folder, state.ranks, graph))

    def _of_engine(self, state: IndexState) -> Iterator[tuple[Path, str]]:
        if state.engine != _installed():
            return  # it is made anew
        meta, managed = self._meta(state), self._folder.engine(state) / _MANAGED
        try:
            told = json.loads(_required(meta))
            names = [name for segment in told["segments"] for name in _files(segment)]
            pages = sum(one["max_doc"] - (one["deletes"] or {"num_deleted_docs": 0})["num_deleted_docs"]
                        for one in told["segments"])  # fmt: skip
            fits = _form(told) == _sample()[0] and (pages == state.documents or not state.settled)
        except FileNotFoundError:
            yield meta, GONE
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            fits, names = False, []
        if not fits:
            yield meta, OTHER
        try:
            listed = set(json.loads(_required(managed)))
            if not listed.issuperset(names):
                yield managed, OTHER
        except FileNotFoundError:
            yield managed, GONE
        except (OSError, ValueError, TypeError):
            yield managed, OTHER
        for path in (self._folder.engine(state) / name for name in names):
            if path not in self._whole and (fault := _fault(path, _sample()[1])):
                yield path, fault
            else:
                self._whole.add(path)


@cache
def _sample() -> tuple[Any, Any]:
    """Return the part of an index's `meta.json` that does not depend on its documents, and the version in a footer, as
    the engine writes them: for as long as this process runs, since making them takes a tenth of a second."""
    import tantivy  # noqa: PLC0415 - it is there where there is an index that it wrote, and costs time to load

    from fyke.search.schema import Analysis, engine_at, open_engine  # noqa: PLC0415 - it loads the engine

    with scratch("fyke-check-") as below, engine_at(below):
        writer = open_engine(below / "engine", Analysis()).writer(15 << 20, 1)
        writer.add_document(tantivy.Document())
        writer.commit()
        writer.wait_merging_threads()
        told = json.loads(_required(below / "engine" / ENGINE_META))
        (name, *_) = _files(told["segments"][0])
        return _form(told), _footer(below / "engine" / name)[0]["version"]


def _installed() -> str:
    try:
        return engine_version()
    except PackageNotFoundError:
        return ""


def _read(path: Path) -> bytes:
    try:
        return read_whole(path)
    except OSError:
        return b""


def _required(path: Path) -> bytes:
    with allowed(path):
        return read_whole(path)


def _is_there(path: Path) -> bool:
    with allowed(path):
        return path.is_file()


def _form(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in ("segments", "opstamp")}


def _files(segment: dict[str, Any]) -> list[str]:
    """Return the names of the files of a segment, as `meta.json` has it."""
    name = segment["segment_id"].replace("-", "")
    deletes = [f"{name}.{segment['deletes']['opstamp']}.del"] if segment["deletes"] else []
    return [*(f"{name}.{ending}" for ending in ENDINGS), *deletes]


def _footer(path: Path) -> tuple[dict[str, Any], int]:
    """Return the content of a file's footer, and how many bytes are before it. Raises OSError, ValueError."""
    with allowed(path), open_file(path) as file:
        size = path.stat().st_size
        file.seek(max(0, size - _TAIL.size))
        length, magic = _TAIL.unpack(file.read().rjust(_TAIL.size, b"\0"))
        begin = size - _TAIL.size - length
        if magic != _MAGIC or length > _MOST_OF_FOOTER or begin < 0:
            raise ValueError(OTHER)
        file.seek(begin)
        text = file.read(length)
    footer = json.loads(text)
    if json.dumps(footer, separators=(",", ":")).encode() != text:
        raise ValueError(OTHER)
    return footer, begin


def _fault(path: Path, version: Any) -> str:
    """Return what is wrong with a file of a segment; empty if nothing is."""
    try:
        footer, left = _footer(path)
        digest = 0
        with open_file(path) as file:
            while left and (chunk := file.read(min(CHUNK_BYTES, left))):
                digest, left = crc32(chunk, digest), left - len(chunk)
    except FileNotFoundError:
        return GONE
    except (OSError, ValueError):
        return OTHER
    return "" if footer == {"version": version, "crc": digest} else OTHER
