"""Which pages link to a page, and in which words? From the anchors that the index keeps.

The searcher calls it. Only links of current pages that may be found are told. Invariant: reads grow with the links to
the page, not with the index, except for one look through the list of aliases.
"""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from fyke.disk.ranges import Array, mapped
from fyke.search.catalogue import ALIASES, CATALOGUE
from fyke.search.folder import IndexFolder, IndexState
from fyke.search.lots import Fate, Lot
from fyke.search.ranks import Ranks
from fyke.search.results import InLink

MAX_PAGES = 10_000  # looked at in a lot


def inlinks(folder: IndexFolder, state: IndexState, key: int, limit: int) -> list[InLink]:
    """Return at most `limit` of the links to the page `key`, or to an address that leads to it, highest rank first."""
    catalogue = mapped(folder.merge(state.merge, "catalogue"), CATALOGUE)
    aliases = mapped(folder.merge(state.merge, "aliases"), ALIASES)
    targets = [key, *aliases["key"][aliases["page"] == key].tolist()]
    found: list[tuple[float, Lot, int, int]] = []
    ranks = Ranks(folder, state)
    for number in range(state.merged_lots):
        lot = Lot(folder.lots, number)
        for target in targets:
            found += _of_lot(lot, target, catalogue, ranks)
    found.sort(key=lambda link: (-link[0], link[1].number, link[2], link[3]))
    return [_told(lot, text, words) for _, lot, text, words in found[:limit]]


def _of_lot(lot: Lot, target: int, catalogue: Array, ranks: Ranks) -> Iterator[tuple[float, Lot, int, int]]:
    column = lot.anchors["target"]
    begin = bisect_left(column, target)
    end = bisect_left(column, target + 1, begin) if target + 1 < 1 << 64 else len(column)
    anchors = lot.anchors[begin : min(end, begin + MAX_PAGES)]
    if not len(anchors):
        return
    rows = lot.rows[anchors["row"]]
    rank = ranks.of_pages(np.ascontiguousarray(rows["key"]))
    for row, words, value in zip(rows, anchors["words"].tolist(), rank.tolist(), strict=True):
        at = bisect_left(catalogue["key"], row["key"])
        if row["fate"] == Fate.SHOWN and at < len(catalogue) and catalogue[at]["lot"] == lot.number:
            yield value, lot, int(row["text"]), words


def _told(lot: Lot, text: int, words: int) -> InLink:
    page = next(lot.texts(np.array([text]))).select(["url", "title"]).to_pylist()[0]
    return InLink(page["url"], page["title"], lot.words.column("words")[words].as_py())
