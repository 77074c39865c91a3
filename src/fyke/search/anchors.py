"""What do the pages that link to a page call it?

`fyke.search.merge` calls it for a range of pages at a time. Anchors stay in the lots where they were read, sorted by
target. One counts only while the page it is on is current. Anchors that point at an alias (a redirect, a duplicate)
count for the page behind it. For each page the `MOST_WORDS` wordings of the most pages are kept, common ones up to
`MOST_TIMES` times.

Invariant: the result depends on the current pages alone. Bounded: memory holds the anchors of one range, after equal
ones of a lot were counted together.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import U64
from fyke.core.mixing import mixed
from fyke.core.sorting import looked_up
from fyke.disk.ranges import Array, Buckets, sliced
from fyke.search.lots import Lot

MOST_WORDS = 48
MOST_TIMES = 4

_POINTED = np.dtype([("page", "<u8"), ("lot", "<u4"), ("row", "<u4"), ("words", "<u4")])
COUNTED = np.dtype([("page", "<u4"), ("hash", "<u8"), ("count", "<u4"), ("lot", "<u4"), ("words", "<u4")])


@dataclass(frozen=True, slots=True)
class CurrentRows:
    """The lots, and which of their rows are current: bool[all rows], a lot beginning at its offset."""

    lots: list[Lot]
    offsets: npt.NDArray[np.int64]
    current: npt.NDArray[np.bool_]

    def is_current(self, lot: Lot, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Return whether each of `rows` of `lot` is current."""
        found: npt.NDArray[np.bool_] = self.current[self.offsets[lot.number] + rows.astype(np.int64)]
        return found


def redirected(current_rows: CurrentRows, aliases: Array, scratch: Path, ranges: int) -> Buckets:
    """Return the anchors that point at an alias, by the page it leads to."""
    found = Buckets(scratch, "redirected", _POINTED, ranges)
    keys = np.ascontiguousarray(aliases["key"])
    for lot in current_rows.lots if len(aliases) else []:
        targets = np.ascontiguousarray(lot.anchors["target"])
        places = looked_up(keys, targets)
        which = np.flatnonzero(places >= 0)
        rows = np.zeros(len(which), _POINTED)
        rows["page"] = aliases["page"][places[which]]
        rows["lot"] = lot.number
        rows["row"], rows["words"] = lot.anchors["row"][which], lot.anchors["words"][which]
        found.add(rows["page"], rows)
    return found


def gathered(current_rows: CurrentRows, pages: U64, moved: Array, at: int, ranges: int) -> Array:
    """Return COUNTED for the sorted keys `pages` of range `at`, in order of page, then of most use."""
    found = [np.zeros(0, COUNTED)]
    order = np.argsort(moved["lot"], kind="stable")
    bounds = np.searchsorted(moved["lot"][order], np.arange(len(current_rows.lots) + 1))
    for lot in current_rows.lots:
        anchors = sliced(lot.anchors, "target", at, ranges)
        others = moved[order[bounds[lot.number] : bounds[lot.number + 1]]]
        target = np.concatenate([anchors["target"], others["page"]])
        row = np.concatenate([anchors["row"], others["row"]])
        words = np.concatenate([anchors["words"], others["words"]])
        place = looked_up(pages, target)
        wanted = (place >= 0) & current_rows.is_current(lot, row)
        found.append(_counted(place[wanted], lot, words[wanted]))
    return _chosen(_summed(np.concatenate(found)))


def _counted(page: npt.NDArray[np.int64], lot: Lot, words: npt.NDArray[np.uint32]) -> Array:
    out = np.zeros(len(page), COUNTED)
    out["page"], out["lot"], out["words"], out["count"] = page, lot.number, words, 1
    out["hash"] = lot.hashes[words]
    return _summed(out)


def _summed(rows: Array) -> Array:
    """Return rows of one page and one wording as one; the first lot stands for the wording."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort((rows["lot"], rows["hash"], rows["page"]))]
    begins = np.append(True, (rows["page"][1:] != rows["page"][:-1]) | (rows["hash"][1:] != rows["hash"][:-1]))
    firsts = np.flatnonzero(begins)
    out = rows[firsts]
    out["count"] = np.add.reduceat(rows["count"], firsts)
    return out


def _chosen(rows: Array) -> Array:
    """Return the most used wordings of each page; `count` becomes how often each is to be written."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort((rows["hash"], -rows["count"].astype(np.int64), rows["page"]))]
    begins = np.flatnonzero(np.append(True, rows["page"][1:] != rows["page"][:-1]))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    rows = rows[rank < MOST_WORDS]
    rows["count"] = np.minimum(1 + np.floor(np.log2(rows["count"])), MOST_TIMES)
    return rows


def digests(chosen: Array, pages: int) -> U64:
    """Return a number for each of `pages` pages that changes with its anchors: uint64[pages]."""
    out = np.zeros(pages, np.uint64)
    np.add.at(out, chosen["page"], mixed(chosen["hash"] + chosen["count"].astype(np.uint64)))
    return out


def wordings(current_rows: CurrentRows, chosen: Array, pages: int) -> list[list[str]]:
    """Return the words to be written for each of `pages` pages, one text an anchor."""
    texts: list[list[str]] = [[] for _ in range(pages)]
    order = np.argsort(chosen["lot"], kind="stable")
    words = np.empty(len(chosen), object)
    bounds = np.searchsorted(chosen["lot"][order], np.arange(len(current_rows.lots) + 1))
    for lot in current_rows.lots:
        which = order[bounds[lot.number] : bounds[lot.number + 1]]
        if len(which):
            taken = pc.take(lot.words.column("words"), pa.array(chosen["words"][which]))
            words[which] = taken.to_numpy(zero_copy_only=False)
    for page, text, times in zip(chosen["page"].tolist(), words.tolist(), chosen["count"].tolist(), strict=True):
        texts[page] += [text] * times
    return texts
