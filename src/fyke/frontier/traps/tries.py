"""Which URLs that look like copies are read anyway? The first few of a place, whatever others brought.

- Sessions say nothing of the second pages of a forum's threads. So `TRIED` pages are read of each folder and name, if
  that name is the only one in the query.
- Copies for print or for telephones, in folders of their own, say nothing of a folder in another language. So of each
  folder that brought something, one page is read although a page of the same name stands in another folder. What it
  brings counts for such pages of that folder alone (`guard`).
- A host has `FOLDERS_TRIED` such folders at most, because a host that makes folders up has no end of them.

Bounded: `MOST_TRIED` counts, lost at a restart or when there are more.
"""

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from fyke.core.batches import Mask, texts, u64
from fyke.core.shapes import Shapes, first_folder, shape_keys, shapes, skeleton
from fyke.frontier.traps.ways import Difference, way_keys
from fyke.frontier.traps.yields import Yields

TRIED = 2
FOLDERS_TRIED = 8
MOST_TRIED = 1 << 16


class FirstTries:
    """The number of tries of each folder and name, and of each host."""

    def __init__(self, yields: Yields) -> None:
        """`yields` has the counts of folders."""
        self._yields = yields
        self._tried: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"FirstTries({self._tried.total()} pages)"

    def go(self, urls: pa.RecordBatch, ways: npt.NDArray[np.int64]) -> Mask:
        """Return which of `urls` (n rows) are tried although they differ from pages that were read only in their query
        or folders: bool[n]. `ways` (int64[n]): the way in which each one differs, -1 if it is no variant."""
        go = np.zeros(urls.num_rows, np.bool_)
        rows = np.flatnonzero((ways == Difference.QUERY) | (ways == Difference.FOLDERS))
        some = urls.take(pa.array(rows))
        of_some = zip(rows.tolist(), texts(some), u64(some, "host").tolist(), strict=True)
        for row, url, host in of_some:
            is_first = self.query if ways[row] == Difference.QUERY else self._folder
            go[row] = is_first(shapes(skeleton(url)), host)
        return go

    def query(self, found: Shapes[str], host: int) -> bool:
        """Count a page of these shapes; return whether it is one of the first of its folder and name. False unless its
        query has one name only."""
        if len(found.names) != 1:
            return False
        return self._count(f"{found.first_folder}{found.names[0]}", host) <= TRIED

    def _folder(self, found: Shapes[str], host: int) -> bool:
        like_it = way_keys(first_folder(found, host))[Difference.FOLDERS]
        all_of_it = [shape_keys(found, host, 0, met_on_fresh=met_on).first_folder for met_on in (False, True)]
        of = self._yields.of(np.array([like_it, *all_of_it], np.uint64))
        if of["pages"][0] or not of["brought"][1:].any():
            return False
        return self._count(found.first_folder, host) <= 1 and self._count("folders", host) <= FOLDERS_TRIED

    def _count(self, what: str, host: int) -> int:
        if len(self._tried) >= MOST_TRIED:
            self._tried.clear()
        key = xxhash.xxh3_64_intdigest(what.encode(), host)
        self._tried[key] += 1
        return self._tried[key]
