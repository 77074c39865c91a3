"""Lots: what was read in the archive, some thousand pages to a lot; written once, then only read.

The indexer writes them in the order of the pages table. Merges read the numbers of all lots; the writing of documents
reads their texts. A lot is five files:

    <n>.rows.npy       ROWS, sorted by key, a key once: what became of each page
    <n>.texts.arrow    TEXTS, compressed: what the pages with a text say; `ROWS.text` is the place in it
    <n>.anchors.npy    ANCHORS, sorted by target: which row calls which URL what
    <n>.words.arrow    WORDS, sorted by hash: the wordings of the anchors
    <n>.sketches.npy   SKETCHES, one for each text in order of arrival, also if a page was read again in this lot

A sixth, `<n>.near.npy`, is written when its sketches were compared with earlier ones: NEAR, a row for each of ROWS.

Invariant: a lot is a function of the pages it was made of, its sketches also of earlier pages. Its files are
memory-mapped, so only the parts asked for are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from sys import getsizeof
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.table_files import as_file
from fyke.core.batches import NO_KEYS, U64
from fyke.core.urls import key_of, split
from fyke.disk.files import save_array, sync_file, writing
from fyke.search.article import NO_PARTS
from fyke.search.extract import Anchor, Extract
from fyke.search.own_text import OwnText
from fyke.search.pieces import Pieces
from fyke.search.sketch import SKETCH

Array = npt.NDArray[Any]

FILES = ("rows.npy", "texts.arrow", "anchors.npy", "words.arrow", "sketches.npy")
HEADER_BYTES = 1 << 10  # of an array file, at most
PAGE_BYTES = 1_000  # that a page takes beside its text
ANCHOR_BYTES = 150  # the same for an anchor, while it is written
TEXTS_TOGETHER = 64  # rows of a compressed block, the least that is read


class Fate(IntEnum):
    """What became of a page, by the last visit that says something about it."""

    SHOWN = 1  # it has a text, and may be found
    HIDDEN = 2  # it is there, but may not be found: noindex, or nothing to read
    GONE = 3  # 404 or 410, twice in a row
    MOVED = 4  # a redirect
    REFUSED = 5  # it was SHOWN, and a visit found it as it was, but its header said noindex


ROWS = np.dtype(
    [
        ("key", "<u8"),
        ("fetched_at", "<i8"),  # microseconds
        ("fingerprint", "<u8"),  # 0 when there is none
        ("domain", "<u8"),  # key of the pay-level domain
        ("canonical", "<u8"),  # key of the address that the page says is its own, or 0
        ("target", "<u8"),  # where it moved to, or 0
        ("text", "<i4"),  # place in TEXTS, or -1
        ("sketch", "<i4"),  # place in SKETCHES, or -1
        ("url_chars", "<u2"),
        ("steps", "u1"),  # segments of the path
        ("teased", "u1"),  # percent of its text that names or introduces other pages
        ("untranslated", "u1"),  # 1 if its address names another language than that of its text
        ("fate", "u1"),
    ]
)
ANCHORS = np.dtype([("target", "<u8"), ("row", "<u4"), ("words", "<u4")])
SKETCHES = np.dtype([("key", "<u8"), *SKETCH.descr])
NEAR = np.dtype(  # near_of: key of the first page that says nearly the same, or 0; apart: signs that differ from it
    [
        ("near_of", "<u8"),
        ("apart", "u1"),
        ("said", "<u8"),  # 64 of its signs
        ("also", "<u8"),  # key of another page that it is near, or 0
        ("also_said", "<u8"),
        ("also_apart", "u1"),
    ]
)
TEXTS = pa.schema(
    [
        ("url", pa.string()),
        ("title", pa.string()),
        ("headings", pa.string()),
        ("description", pa.string()),
        ("text", pa.string()),
        ("language", pa.string()),
        ("date_s", pa.int64()),
        ("fetched_at", pa.int64()),  # microseconds
        ("fingerprint", pa.uint64()),
    ]
)
WORDS = pa.schema([("hash", pa.uint64()), ("words", pa.string())])


@dataclass(frozen=True, slots=True)
class Read:
    """A page as it was read: its row (ROWS except places), its URL, and what it says if it is SHOWN.

    `extract` is also there for a HIDDEN page, for its anchors.
    """

    row: dict[str, int]
    url: str
    extract: Extract | None


class LotWriter:
    """A lot that is gathered in memory. Its sketches are of what `own_text` leaves of each page, once all are met."""

    def __init__(self, own_text: OwnText) -> None:
        self._own_text = own_text
        self._pages: dict[int, Read] = {}
        self._anchors: dict[int, _Anchors] = {}  # of the same pages, apart: objects would take five times the memory
        self._texts: list[tuple[int, int, Pieces]] = []  # to be sketched: key of the page, key of its host, its pieces
        self.size_bytes = 0

    def __repr__(self) -> str:
        return f"LotWriter({len(self)} pages, {self.size_bytes} bytes)"

    def __len__(self) -> int:
        return len(self._pages)

    def add(self, page: Read) -> None:
        """Add a page. It replaces an earlier row of the same page, unless that was fetched later."""
        if page.row["fate"] == Fate.SHOWN and page.extract is not None:
            page.row["sketch"] = len(self._texts)
            host = key_of(split(page.url).host)
            pieces = page.extract.pieces()
            self._own_text.meet(host, pieces)
            self._texts.append((page.row["key"], host, pieces))
            self.size_bytes += pieces.nbytes
        key = page.row["key"]
        before = self._pages.get(key)
        if before is None or before.row["fetched_at"] <= page.row["fetched_at"]:
            self._pages[key] = page
            self._anchors.pop(key, None)
            if page.extract is not None:
                self._anchors[key] = anchors = _Anchors.of(page.extract.anchors)
                self.size_bytes += page.extract.size_bytes + anchors.size_bytes + PAGE_BYTES
                self._pages[key] = replace(page, extract=replace(page.extract, parts=NO_PARTS, anchors=()))

    def fate(self, key: int) -> Fate | None:
        """Return the fate of the page `key`; None if it has no row."""
        page = self._pages.get(key)
        return None if page is None else Fate(page.row["fate"])

    def write(self, folder: Path, number: int) -> None:
        """Write the lot `number` and make it safe. Raises DiskFull or DirectoryError."""
        pages = [self._pages[key] for key in sorted(self._pages)]
        shown = [page for page in pages if page.row["fate"] == Fate.SHOWN]
        paths = [_path(folder, number, what) for what in FILES]
        with writing(folder):
            save_array(paths[0], _rows(pages))
            _write_texts(paths[1], shown)
            anchors, words = _anchors([self._anchors.get(page.row["key"], _NO_ANCHORS) for page in pages])
            save_array(paths[2], anchors)
            _write_arrow(paths[3], WORDS, [words], None)
            save_array(paths[4], self._sketches())
            for path in (*paths, folder):
                sync_file(path)

    def _sketches(self) -> Array:
        for _, host, pieces in self._texts:
            self._own_text.spread(host, pieces)
        out = np.zeros(len(self._texts), SKETCHES)
        for at, (key, host, pieces) in enumerate(self._texts):
            out["key"][at] = key
            one = self._own_text.sketch(host, pieces)
            for name in SKETCH.names or ():
                out[name][at] = one[name]
        return out


def _path(folder: Path, number: int, what: str) -> Path:
    return folder / f"{number:06}.{what}"


def lot_files(folder: Path, number: int, *, compared: bool) -> list[Path]:
    """Return the files of lot `number`, `compared` with others or not yet."""
    return [_path(folder, number, what) for what in (*FILES, *(["near.npy"] if compared else []))]


def _rows(pages: list[Read]) -> Array:
    rows = np.zeros(len(pages), ROWS)
    place = 0
    for at, page in enumerate(pages):
        shown = page.row["fate"] == Fate.SHOWN
        rows[at] = tuple({"sketch": -1, **page.row, "text": place if shown else -1}[name] for name in ROWS.names or ())
        place += shown
    return rows


def _write_texts(path: Path, pages: list[Read]) -> None:
    batches = (_texts(pages[at : at + TEXTS_TOGETHER]) for at in range(0, len(pages), TEXTS_TOGETHER))
    _write_arrow(path, TEXTS, batches, "zstd")


def _texts(pages: list[Read]) -> pa.RecordBatch:
    own: dict[str, list[Any]] = {"url": [page.url for page in pages]}
    own |= {name: [page.row[name] for page in pages] for name in ("fetched_at", "fingerprint")}
    names = [name for name in TEXTS.names if name not in own]
    return pa.RecordBatch.from_pydict(
        own | {name: [getattr(page.extract, name) for page in pages] for name in names}, schema=TEXTS
    )


@dataclass(frozen=True, slots=True)
class _Anchors:
    """The anchors of one page."""

    targets: U64  # [n]
    hashes: U64  # [n], of the words
    words: str  # a line for each

    @classmethod
    def of(cls, anchors: tuple[Anchor, ...]) -> Self:
        """Return `anchors`, whose words have no line ends."""
        hashes = np.fromiter((key_of(anchor.words) for anchor in anchors), np.uint64, len(anchors))
        targets = np.fromiter((anchor.target for anchor in anchors), np.uint64, len(anchors))
        return cls(targets, hashes, "\n".join(anchor.words for anchor in anchors))

    @property
    def size_bytes(self) -> int:
        """Memory that they take, also while they are written."""
        return getsizeof(self.words) + ANCHOR_BYTES * len(self.targets)


_NO_ANCHORS = _Anchors.of(())


def _anchors(of_rows: list[_Anchors]) -> tuple[Array, pa.RecordBatch]:
    hashes = np.concatenate([NO_KEYS, *(one.hashes for one in of_rows)])
    found = np.empty(len(hashes), ANCHORS)
    found["target"] = np.concatenate([NO_KEYS, *(one.targets for one in of_rows)])
    found["row"] = np.repeat(np.arange(len(of_rows)), [len(one.targets) for one in of_rows])
    hashes, firsts, found["words"] = np.unique(hashes, return_index=True, return_inverse=True)
    words = [words for one in of_rows if len(one.targets) for words in one.words.split("\n")]
    return np.unique(found), pa.RecordBatch.from_pydict(
        {"hash": hashes, "words": [words[first] for first in firsts.tolist()]}, schema=WORDS
    )


def _write_arrow(path: Path, schema: pa.Schema, batches: Any, compression: str | None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


class Lot:
    """A lot to read."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self.number = number

    def __repr__(self) -> str:
        return f"Lot({self.number})"

    @cached_property
    def rows(self) -> Array:
        """ROWS, [n]."""
        return _mapped(_path(self._folder, self.number, "rows.npy"))

    @property
    def sketches(self) -> Array:
        """SKETCHES, [n]; read once, so not kept."""
        return _mapped(_path(self._folder, self.number, "sketches.npy"))

    @cached_property
    def near(self) -> Array:
        """NEAR, [n]; there once the sketches were compared."""
        return _mapped(_path(self._folder, self.number, "near.npy"))

    def write_near(self, near: Array) -> None:
        """Write `near` (NEAR for each sketch) as a row for each of ROWS, safely. Raises DiskFull or DirectoryError."""
        places = _mapped(_path(self._folder, self.number, "rows.npy"))["sketch"]
        out = np.zeros(len(places), NEAR)
        out[places >= 0] = near[places[places >= 0]]
        path = _path(self._folder, self.number, "near.npy")
        with writing(self._folder):
            save_array(path, out)
            sync_file(path)
            sync_file(self._folder)

    @cached_property
    def anchors(self) -> Array:
        """ANCHORS, [n]."""
        return _mapped(_path(self._folder, self.number, "anchors.npy"))

    @cached_property
    def words(self) -> pa.RecordBatch:
        """WORDS."""
        with pa.memory_map(as_file(_path(self._folder, self.number, "words.arrow"))) as file:
            return pa.ipc.open_file(file).get_batch(0)

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """Hashes of WORDS, [n]."""
        return self.words.column("hash").to_numpy()  # type: ignore[no-any-return]

    def texts(self, places: npt.NDArray[np.integer]) -> Iterator[pa.RecordBatch]:
        """Yield the TEXTS at `places` (sorted), a block at a time."""
        with pa.memory_map(as_file(_path(self._folder, self.number, "texts.arrow"))) as file:
            reader = pa.ipc.open_file(file)
            blocks = places // TEXTS_TOGETHER
            for block in np.unique(blocks).tolist():
                within = places[blocks == block] - block * TEXTS_TOGETHER
                yield pc.take(reader.get_batch(block), pa.array(within))


class NotShown:
    """The pages that are HIDDEN or REFUSED by the lots so far: 9 bytes each. A lot is read once, when one asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lots = 0
        self._keys = NO_KEYS  # sorted
        self._fates = np.zeros(0, np.uint8)

    def __repr__(self) -> str:
        return f"NotShown({len(self._keys)} pages of {self._lots} lots)"

    def _add(self, lot: Lot) -> None:
        stay = np.isin(self._keys, lot.rows["key"], invert=True)
        hidden = lot.rows[np.isin(lot.rows["fate"], (Fate.HIDDEN, Fate.REFUSED))]
        keys = np.append(self._keys[stay], hidden["key"])
        order = np.argsort(keys)
        self._keys, self._fates = keys[order], np.append(self._fates[stay], hidden["fate"])[order]

    def fate(self, key: int, lots: int) -> Fate | None:
        """Return the fate of the page `key` by the first `lots` lots; None if it is neither."""
        for number in range(self._lots, lots):
            self._add(Lot(self._folder, number))
            self._lots = number + 1
        place = np.searchsorted(self._keys, np.uint64(key))
        there = place < len(self._keys) and self._keys[place] == key
        return Fate(self._fates[place]) if there else None


def _mapped(path: Path) -> Array:
    """Return an array file without reading it; one without rows, which cannot be mapped, is no longer than its
    header."""
    if path.stat().st_size <= HEADER_BYTES:
        return np.load(as_file(path), allow_pickle=False)  # type: ignore[no-any-return]
    return np.load(as_file(path), mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
