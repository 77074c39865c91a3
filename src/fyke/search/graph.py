"""Who links to whom: a graph on disk, made from links that come in any order, as rows of its matrix.

`fyke.search.linkage` makes it, `fyke.search.pagerank` multiplies it. Links go into ranges by their source, where
repeats fall away and sources become numbers. Then they go into ranges by their target, where each range becomes a block
of rows in compressed form (CSR), sorted. A *group* is what a node belongs to, as a page to its domain; links between
groups can be had on the way.

Invariant: the graph depends on the set of links alone; a page's number is its place among the sorted keys. Bounded:
memory holds one range of links, as many bytes as `memory_bytes` allows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fyke.core.batches import NO_KEYS, U64
from fyke.core.sorting import distinct
from fyke.disk.files import writing
from fyke.disk.ranges import Array, Buckets, append, mapped, ranges_for

BYTES_PER_LINK = 160  # of memory while a range is sorted

_LINKS = np.dtype([("source", "<u8"), ("target", "<u8")])
_NODES = np.dtype([("key", "<u8"), ("group", "<u8")])
_INCOMING = np.dtype([("target", "<u8"), ("source", "<i8"), ("group", "<u8")])

OnLinks = Callable[[U64, U64], None]  # the groups of sources and of targets


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of the matrix: the nodes that link to each of some neighbouring nodes. Files of int64."""

    starts: Path  # [rows + 1], into `sources`
    sources: Path  # numbers of nodes
    rows: int
    links: int


@dataclass(frozen=True, slots=True)
class Graph:
    """`nodes` nodes in `blocks`; `keys` (uint64, sorted) and `out_degree` (float64) are files, [nodes]."""

    keys: Path
    out_degree: Path
    blocks: tuple[Block, ...]

    @property
    def nodes(self) -> int:
        return sum(block.rows for block in self.blocks)

    @property
    def links(self) -> int:
        return sum(block.links for block in self.blocks)


class GraphBuilder:
    """Maker of a graph in files below `folder`, from about `links` links at most."""

    def __init__(self, folder: Path, name: str, links: int, memory_bytes: int) -> None:
        self._folder = folder
        self._name = name
        ranges = ranges_for(links, max(1, memory_bytes // BYTES_PER_LINK))
        self._links = Buckets(folder, f"{name}-links", _LINKS, ranges)
        self._nodes = Buckets(folder, f"{name}-nodes", _NODES, ranges)
        self._incoming = Buckets(folder, f"{name}-incoming", _INCOMING, ranges)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"GraphBuilder({self._name}, {self._links!r})"

    def add_nodes(self, keys: U64, groups: U64) -> None:
        """Add nodes and their groups. Both ends of every link must be added."""
        nodes = np.unique(_together(_NODES, key=keys, group=groups))
        self._nodes.add(nodes["key"], nodes)

    def add_links(self, sources: U64, targets: U64) -> None:
        """Add links, except those of a node to itself."""
        links = np.unique(_together(_LINKS, source=sources, target=targets))
        links = links[links["source"] != links["target"]]
        self._links.add(links["source"], links)

    def build(self, on_links: OnLinks | None = None) -> Graph:
        """Return the graph. `on_links` gets the groups at both ends of every link."""
        keys, degree = self._file("keys"), self._file("degree")
        for path in (keys, degree):
            path.unlink(missing_ok=True)
        sizes = [self._number(at, keys) for at in range(self._links.ranges)]
        begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        nodes = mapped(keys, np.uint64)
        for at in range(self._links.ranges):
            self._leave(at, nodes[begins[at] : begins[at + 1]], int(begins[at]), degree)
        self._links.close()
        blocks = tuple(
            self._arrive(at, nodes[begins[at] : begins[at + 1]], on_links) for at in range(self._links.ranges)
        )
        for buckets in (self._nodes, self._incoming):
            buckets.close()
        return Graph(keys, degree, blocks)

    def _number(self, at: int, keys: Path) -> int:
        """Append the sorted nodes of range `at` to `keys`; return how many."""
        nodes = distinct(self._nodes.read(at)["key"])
        append(keys, nodes)
        return len(nodes)

    def _groups(self, at: int, keys: U64) -> U64:
        """Return the group of each of the range's nodes."""
        nodes = self._nodes.read(at)
        nodes = nodes[np.argsort(nodes["key"], kind="stable")]
        return np.ascontiguousarray(nodes["group"][np.searchsorted(nodes["key"], keys)])

    def _leave(self, at: int, keys: U64, begin: int, degree: Path) -> None:
        """Write the links of range `at` as seen from their sources: numbers instead of keys."""
        links = np.unique(self._links.read(at))
        places = np.searchsorted(keys, links["source"])
        append(degree, np.bincount(places, minlength=len(keys)).astype(np.float64))
        groups = self._groups(at, keys)[places] if len(links) else NO_KEYS
        rows = _together(_INCOMING, target=links["target"], source=begin + places, group=groups)
        self._incoming.add(rows["target"], rows)

    def _arrive(self, at: int, keys: U64, on_links: OnLinks | None) -> Block:
        """Return the links of range `at` as seen from their targets: a block of the matrix."""
        links = self._incoming.read(at)
        places = np.searchsorted(keys, links["target"])
        if on_links is not None and len(links):
            on_links(np.ascontiguousarray(links["group"]), self._groups(at, keys)[places])
        order = np.lexsort((links["source"], places))
        starts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(keys)))]).astype(np.int64)
        block = Block(self._file(f"{at:05}.starts"), self._file(f"{at:05}.sources"), len(keys), len(links))
        for path, values in ((block.starts, starts), (block.sources, links["source"][order])):
            path.unlink(missing_ok=True)
            append(path, values)
        return block

    def _file(self, what: str) -> Path:
        return self._folder / f"{self._name}.{what}"


def _together(dtype: np.dtype[np.void], **columns: npt.NDArray[np.integer]) -> Array:
    out = np.zeros(len(next(iter(columns.values()))), dtype)
    for name, values in columns.items():
        out[name] = values
    return out
