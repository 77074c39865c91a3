"""PageRank: how likely is a reader who follows links at random to be at a node?

Brin and Page, "The anatomy of a large-scale hypertextual Web search engine", section 2.1.1: with damping `d`, `N` nodes
and the nodes `u` that link to `v`,

    rank(v) = (1 - d) / N + d · (sum over u of rank(u) / out(u) + dangling / N)

found by iteration from 1 / N. Differs: a reader at a node without links (*dangling*: every URL not fetched yet) goes
anywhere next, so the ranks sum to 1. Called by `fyke.search.linkage`.

The matrix comes in blocks of rows, which scipy multiplies one after the other. Blocks stay in memory if they fit into
`memory_bytes`; otherwise they are read again each round. Vectors that do not fit are memory-mapped files. Invariant:
the result is the same bit by bit either way, because each row is summed by itself, in order.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from fyke.disk.files import mapped_zeros
from fyke.search.graph import Block, Graph

DAMPING = 0.85
TOLERANCE = 1e-9  # of the sum of all changes in a round
MAX_ROUNDS = 100
CHUNK_NODES = 1 << 20

_BYTES_PER_LINK = 16
_BYTES_PER_NODE = 8

Floats = npt.NDArray[np.float64]


def pagerank(graph: Graph, scratch: Path, memory_bytes: int) -> Floats:
    """Return the rank of each node in order of number: float64[nodes], with the sum 1. Empty for an empty graph."""
    nodes = graph.nodes
    if not nodes:
        return np.zeros(0)
    blocks = _Blocks(graph, memory_bytes)
    make = _vectors(nodes, scratch, memory_bytes)
    rank, following, given = make("rank"), make("following"), make("given")
    degree = np.memmap(graph.out_degree, np.float64, "r")
    rank[:] = 1 / nodes
    for _ in range(MAX_ROUNDS):
        dangling = _give(rank, degree, given)
        change = _follow(blocks, given, (1 - DAMPING + DAMPING * dangling) / nodes, rank, following)
        rank, following = following, rank
        if change < TOLERANCE:
            break
    return rank


def _give(rank: Floats, degree: Floats, given: Floats) -> float:
    """Write what each node gives along each of its links into `given`; return what nodes without links hold."""
    dangling = 0.0
    for begin in range(0, len(rank), CHUNK_NODES):
        part = slice(begin, begin + CHUNK_NODES)
        out = degree[part]
        given[part] = rank[part] / np.maximum(out, 1.0)
        dangling += float(rank[part][out == 0].sum())
    return dangling


def _follow(blocks: "_Blocks", given: Floats, base: float, rank: Floats, following: Floats) -> float:
    """Write the next ranks into `following`; return the sum of all changes."""
    change, begin = 0.0, 0
    for matrix in blocks:
        end = begin + matrix.shape[0]
        following[begin:end] = base + DAMPING * (matrix @ given)
        change += float(np.abs(following[begin:end] - rank[begin:end]).sum())
        begin = end
    return change


class _Blocks:
    """The blocks as matrices, again in each round."""

    def __init__(self, graph: Graph, memory_bytes: int) -> None:
        self._graph = graph
        fits = graph.links * _BYTES_PER_LINK <= memory_bytes
        self._kept = [self._matrix(block) for block in graph.blocks] if fits else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._kept) if self._kept is not None else map(self._matrix, self._graph.blocks)

    def _matrix(self, block: Block) -> Any:
        starts = np.fromfile(block.starts, np.int64)
        sources = np.fromfile(block.sources, np.int64)
        return csr_matrix((np.ones(block.links), sources, starts), shape=(block.rows, self._graph.nodes))


def _vectors(nodes: int, scratch: Path, memory_bytes: int) -> Callable[[str], Floats]:
    """Return a maker of vectors: in memory if three of them fit, otherwise in files."""
    if 3 * nodes * _BYTES_PER_NODE <= memory_bytes:
        return lambda name: np.zeros(nodes)
    return lambda name: mapped_zeros(scratch / f"vector.{name}", np.float64, (nodes,))
