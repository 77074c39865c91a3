"""PageRank for merges: looked up by key, as a multiple of the mean.

Written by `fyke.search.linkage`, read by merges. A ranking is two raw files, sorted by key. Invariant: a key that is
not there has rank 0, so pages are indexed before their links are analysed.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from fyke.core.batches import NO_KEYS, U64
from fyke.core.sorting import looked_up
from fyke.search.folder import IndexFolder, IndexState

Floats = npt.NDArray[np.float64]


def rank_files(folder: IndexFolder, number: int, graph: str) -> tuple[Path, Path]:
    """Return the paths of the keys and the ranks of a `graph` (pages or domains)."""
    return folder.path / f"ranks-{number:06}.{graph}.keys", folder.path / f"ranks-{number:06}.{graph}.values"


class Ranks:
    """The ranks that `state` names, memory-mapped."""

    def __init__(self, folder: IndexFolder, state: IndexState) -> None:
        self._pages = _RankTable(*rank_files(folder, state.ranks, "pages"))
        self._domains = _RankTable(*rank_files(folder, state.ranks, "domains"))

    def of_pages(self, keys: U64) -> Floats:
        return self._pages.look_up(keys)

    def of_domains(self, keys: U64) -> Floats:
        return self._domains.look_up(np.ascontiguousarray(keys))


class _RankTable:
    def __init__(self, keys: Path, values: Path) -> None:
        there = keys.exists() and keys.stat().st_size > 0
        self._keys: U64 = np.memmap(keys, np.uint64, "r") if there else NO_KEYS
        self._values: Floats = np.memmap(values, np.float64, "r") if there else np.zeros(0)

    def look_up(self, keys: U64) -> Floats:
        places = looked_up(self._keys, keys)
        found = np.zeros(len(keys))
        found[places >= 0] = self._values[places[places >= 0]]
        return found
