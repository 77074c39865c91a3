"""Which version of each page is current, and which of several equal pages stands for the others?

The first half of a merge; `fyke.search.merge` calls it. The catalogue is one file sorted by key, with a row for each
page ever seen. Each merge makes it anew from the one before and the lots since. Aliases are addresses that lead to
another page: redirects, and pages with the same bytes as the page that stands for them. To stand for others, a page
that names no other address as its own comes first, then one whose address names no other language than that of its
text, then the shortest URL, then the smallest key.

Invariant: the catalogue and the aliases depend on the pages alone, not on how they came in lots and merges.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from fyke.core.sorting import distinct, looked_up
from fyke.disk.files import mapped_zeros, written_whole
from fyke.disk.ranges import Array, Buckets, append, mapped, ranges_for, sliced
from fyke.search.lots import NEAR, ROWS, Fate, Lot

CATALOGUE = np.dtype(
    [*ROWS.descr, *NEAR.descr, ("lot", "<u4"), ("row", "<u4"), ("written", "<u8")]
)  # written: signature of its document, or 0
FIRST = np.dtype([("key", "<u8"), ("near_of", "<u8"), ("said", "<u8"), ("apart", "u1")])
ALIASES = np.dtype([("key", "<u8"), ("page", "<u8")])
_CANDIDATES = np.dtype(  # in the order in which they stand for others
    [("fingerprint", "<u8"), ("names_other", "u1"), ("untranslated", "u1"), ("url_chars", "<u2"), ("key", "<u8")]
)

MAX_HOPS = 20  # redirects that a crawl follows in a row, or fewer and an equal page


def merge_catalogue(before: Array, lots: list[Lot], path: Path, ranges: int) -> None:
    """Write the catalogue `before`, with the rows of `lots` laid over it, to the file `path`."""
    path.unlink(missing_ok=True)
    for at in range(ranges):
        rows = np.concatenate(
            [
                sliced(before, "key", at, ranges),
                *(_catalogued(lot, sliced(lot.rows, "key", at, ranges)) for lot in lots),
            ]
        )
        rows = rows[np.lexsort((rows["lot"], rows["fetched_at"], rows["key"]))]
        last = np.append(rows["key"][1:] != rows["key"][:-1], True)[: len(rows)]
        newest = rows[last]
        newest["written"] = _carried(rows, last)
        append(path, newest)


def _carried(rows: Array, last: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Return the `written` of each page. Only its row of the earlier catalogue has one; others have 0."""
    group = np.concatenate([[0], np.cumsum(last)[:-1]]) if len(rows) else np.zeros(0, np.int64)
    written = np.zeros(int(last.sum()), np.uint64)
    np.maximum.at(written, group, rows["written"])
    return written


def _catalogued(lot: Lot, rows: Array) -> Array:
    out = np.zeros(len(rows), CATALOGUE)
    for name in ROWS.names or ():
        out[name] = rows[name]
    out["lot"] = lot.number
    if len(rows):  # they are a slice of a sorted table without repeats
        begin = int(np.searchsorted(lot.rows["key"], rows["key"][0]))
        out["row"] = np.arange(begin, begin + len(rows))
        for name in NEAR.names or ():
            out[name] = lot.near[name][begin : begin + len(rows)]
    return out


def mark_current(catalogue: Array, offsets: npt.NDArray[np.int64], path: Path, ranges: int) -> npt.NDArray[np.bool_]:
    """Return whether each row of each lot is current: bool[all rows], mapped. A lot begins at its offset."""
    if not offsets[-1]:
        return np.zeros(0, np.bool_)
    current = mapped_zeros(path, np.bool_, (int(offsets[-1]),))
    for at in range(ranges):
        rows = sliced(catalogue, "key", at, ranges)
        current[offsets[rows["lot"]] + rows["row"]] = True
    return current


def find_firsts(catalogue: Array, scratch: Path, ranges: int) -> Buckets:
    """Return the pages that others are near to (`FIRST` with the key alone), by ranges of their keys.

    Also pages that a page near both brings to the cluster `near_of`: they join if they still say what they `said` and
    have no other cluster.
    """
    found = Buckets(scratch, "firsts", FIRST, ranges)
    for at in range(ranges):
        rows = sliced(catalogue, "key", at, ranges)
        rows = rows[(rows["fate"] == Fate.SHOWN) & (rows["near_of"] != 0)]
        keys, bring = distinct(rows["near_of"]), rows[rows["also"] != 0]
        firsts = np.zeros(len(keys) + len(bring), FIRST)
        firsts["key"] = np.append(keys, bring["also"])
        for name, what in (("near_of", "near_of"), ("said", "also_said"), ("apart", "also_apart")):
            firsts[name][len(keys) :] = bring[what]
        found.add(firsts["key"], firsts)
    return found


def near_pages(rows: Array, firsts: Array) -> tuple[Array, npt.NDArray[np.uint64]]:
    """Return those of the catalogue's `rows` that are near another page, and the cluster of each row: uint64[n].

    A cluster has the key of its first page; 0 is no cluster. Others are near to what the first page once said, so it is
    in no other cluster, whatever it says now.
    """
    brought = firsts["near_of"] != 0
    is_first = np.isin(rows["key"], firsts["key"][~brought])
    rows = _with_brought(rows, (rows["near_of"] == 0) & ~is_first, firsts[brought])
    near = (rows["fate"] == Fate.SHOWN) & (rows["near_of"] != 0) & ~is_first
    return rows[near], np.where(is_first, rows["key"], np.where(near, rows["near_of"], np.uint64(0)))


def _with_brought(rows: Array, alone: npt.NDArray[np.bool_], brought: Array) -> Array:
    """Return `rows` with each row `alone` moved to the nearest cluster that it is `brought` to (FIRST[n])."""
    brought = brought[np.lexsort((brought["near_of"], brought["apart"]))[::-1]]  # the last of several stays
    places = looked_up(rows["key"], brought["key"])
    there = (places >= 0) & alone[places] & (rows["said"][places] == brought["said"]) if len(rows) else places >= 0
    rows = rows.copy()
    for name in ("near_of", "apart"):
        rows[name][places[there]] = brought[name][there]
    return rows


def find_aliases(catalogue: Array, scratch: Path, path: Path, ranges: int) -> Array:
    """Write ALIASES, sorted by key, to the file `path` and return them; redirects are followed to the last page."""
    found = Buckets(scratch, "aliases", ALIASES, ranges)
    equal = Buckets(scratch, "equal", _CANDIDATES, ranges)
    for at in range(ranges):
        rows = sliced(catalogue, "key", at, ranges)
        moved = rows[(rows["fate"] == Fate.MOVED) & (rows["target"] != 0)]
        found.add(moved["key"], _pairs(moved["key"], moved["target"]))
        shown = rows[(rows["fate"] == Fate.SHOWN) & (rows["fingerprint"] != 0)]
        equal.add(shown["fingerprint"], _candidates(shown))
    for rows in equal:
        losers = _losers(rows)
        found.add(losers["key"], losers)
    path.unlink(missing_ok=True)
    for rows in found:
        append(path, rows[np.argsort(rows["key"], kind="stable")])
    for buckets in (found, equal):
        buckets.close()
    return _followed(mapped(path, ALIASES), path)


def _pairs(keys: Array, pages: Array) -> Array:
    out = np.zeros(len(keys), ALIASES)
    out["key"], out["page"] = keys, pages
    return out


def _candidates(rows: Array) -> Array:
    out = np.zeros(len(rows), _CANDIDATES)
    for name in ("fingerprint", "untranslated", "url_chars", "key"):
        out[name] = rows[name]
    out["names_other"] = (rows["canonical"] != 0) & (rows["canonical"] != rows["key"])
    return out


def _losers(rows: Array) -> Array:
    """Return the pages with one fingerprint except the first, each paired with the first."""
    rows = np.sort(rows, order=list(_CANDIDATES.names or ()))
    begins = np.append(True, rows["fingerprint"][1:] != rows["fingerprint"][:-1])[: len(rows)]
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1] if len(rows) else np.zeros(0, np.int64)
    return _pairs(rows["key"][~begins], rows["key"][first][~begins])


def _followed(aliases: Array, path: Path) -> Array:
    """Return `aliases`, with up to `MAX_HOPS` more of them followed, written to the file `path`."""
    if not len(aliases):
        return aliases
    keys = np.ascontiguousarray(aliases["key"])
    with written_whole(path, synced=False) as part:
        part.unlink(missing_ok=True)
        for begin in range(0, len(aliases), 1 << 16):
            rows = np.array(aliases[begin : begin + (1 << 16)])
            for _ in range(MAX_HOPS):
                further = looked_up(keys, rows["page"])
                known = further >= 0
                rows["page"][known] = aliases["page"][further[known]]
            append(part, rows)
    return mapped(path, ALIASES)


def ranges_of(lots: list[Lot], range_rows: int) -> int:
    """Return the number of ranges for a merge of `lots`."""
    return ranges_for(sum(len(lot.rows) for lot in lots), range_rows)
