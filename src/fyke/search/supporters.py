"""Who stands behind those who link to a domain? That tells a link farm from a domain that others chose to link to.

Of 200 domains that link to each other, each has an in-degree of 200 and nobody behind it. So the supporters at each
distance are counted: Becchetti, Castillo, Donato, Leonardi, Baeza-Yates, "Link-based characterization and detection of
web spam", AIRWeb 2006, by probabilistic counting, the union of sketches along links. Differs: sketches are HyperLogLogs
(Flajolet et al. 2007) of `REGISTERS`; the in-degree is exact; nothing is trained. Instead the number at distance two is
compared with the one usual in the same graph (`independence`):

    expected = (L - d) · (1 - exp(-max(d · g, s) / L))

for an in-degree d, with L the nodes that link at all. This is the number behind d linkers drawn without regard to each
other, by the larger of two estimates:

- The linkers are as others are: g is the median of supporters at distance two for each at distance one. Then linkers
  that nobody links to count for little.
- The linkers are as they are: s is the sum of their in-degrees. Then linkers that link to each other count for little.

Called by `fyke.search.linkage`. Bounded: memory holds `memory_bytes` and a chunk; the rest is in files below `scratch`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64
from fyke.core.mixing import mixed
from fyke.disk.files import mapped_zeros
from fyke.disk.ranges import mapped
from fyke.search.graph import Block, Graph

REGISTERS = 128
LEAST_LINKERS = 2  # of a domain that counts for what is usual
MOST_ASKED = 1 << 20  # nodes that count for what is usual
SUPPORTERS = np.dtype(
    [
        ("linkers", "<u4"),  # nodes that link to it
        ("behind", "<f4"),  # nodes two links away and not one, estimated
        ("independence", "<f4"),  # `behind` by what is usual for as many linkers, at most 1; 1 for few linkers
    ]
)
_CHUNK_BYTES = 8 << 20  # of sketches in hand
_COUNTED_ROWS = _CHUNK_BYTES // (8 * REGISTERS)  # each register is a float64 when it is counted
_ALPHA = 0.7213 / (1 + 1.079 / REGISTERS)  # Flajolet et al. 2007, Figure 3

Table = npt.NDArray[Any]
Sketches = npt.NDArray[np.uint8]


def supporters(graph: Graph, scratch: Path, memory_bytes: int) -> Table:
    """Return the supporters of each node of `graph`: dtype `SUPPORTERS`, [nodes]."""
    nodes = graph.nodes
    found = _table(scratch / "supporters", (nodes,), SUPPORTERS, memory_bytes)
    if not nodes:
        return found
    near, far = (
        _table(scratch / f"sketches.{name}", (nodes, REGISTERS), np.uint8, memory_bytes // 2)
        for name in ("near", "far")
    )
    keys = np.memmap(graph.keys, np.uint64, "r")
    for part in _chunks(nodes):
        near[part] = _sketches(np.asarray(keys[part]))
    begin = 0
    for block in graph.blocks:
        found["linkers"][begin : begin + block.rows] = np.diff(np.fromfile(block.starts, np.int64))
        begin += block.rows
    linkers_in_degree = _linkers_of_linkers(
        graph, found, _table(scratch / "linkers_in_degree", (nodes,), np.float64, memory_bytes)
    )
    _spread(graph, near, far)
    _spread(graph, far, near)
    degree = np.memmap(graph.out_degree, np.float64, "r")
    linking = 0
    for part in _chunks(nodes):
        linkers = found["linkers"][part].astype(np.float64)
        found["behind"][part] = np.where(linkers > 0, np.maximum(_counted(near[part]) - linkers - 1, 0), 0)
        linking += int(np.count_nonzero(degree[part]))
    usual = usual_behind(found)
    for part in _chunks(nodes):
        found["independence"][part] = independence(found[part], linkers_in_degree[part], usual, linking)
    return found


def usual_behind(found: Table) -> float:
    """Return how many stand behind each linker: the median of nodes with several (dtype `SUPPORTERS`, [n])."""
    some = found[:: max(1, len(found) // MOST_ASKED)]
    some = some[some["linkers"] >= LEAST_LINKERS]
    return float(np.median(some["behind"] / some["linkers"])) if len(some) else 0.0


def independence(found: Table, linkers_in_degree: Table, usual: float, linking: int) -> Table:
    """Return the number behind (dtype `SUPPORTERS`, [n]) divided by that expected, at most 1: float64[n]. 1 for few
    linkers.

    `linkers_in_degree`: the sum of their linkers' in-degrees, float64[n]; `usual`: the number behind a linker;
    `linking`: nodes that link.
    """
    linkers, behind = found["linkers"].astype(np.float64), found["behind"].astype(np.float64)
    drawn = np.maximum(linkers * usual, linkers_in_degree)
    expected = np.maximum(linking - linkers, 0) * -np.expm1(-drawn / max(1, linking))
    known = (linkers >= LEAST_LINKERS) & (expected >= 1)
    share: Table = np.where(known, np.minimum(behind / np.maximum(expected, 1), 1.0), 1.0)
    return share


def _linkers_of_linkers(graph: Graph, found: Table, linkers_in_degree: Table) -> Table:
    """Fill `linkers_in_degree` with the sum of the in-degrees (in `found`) of each node's linkers, and return it:
    float64[nodes]."""
    begin = 0
    for block in graph.blocks:
        starts, sources = np.fromfile(block.starts, np.int64), mapped(block.sources, np.int64)
        total = np.zeros(block.links + 1)
        for first in range(0, block.links, _CHUNK_BYTES // REGISTERS):
            last = min(first + _CHUNK_BYTES // REGISTERS, block.links)
            total[first + 1 : last + 1] = total[first] + np.cumsum(
                found["linkers"][sources[first:last]], dtype=np.float64
            )
        linkers_in_degree[begin : begin + block.rows] = np.diff(total[starts])
        begin += block.rows
    return linkers_in_degree


def _sketches(keys: U64) -> Sketches:
    """Return a sketch of each key by itself, uint8[n, REGISTERS]: the place of the first bit that is set, in one
    register."""
    bits = mixed(keys)
    sketches = np.zeros((len(keys), REGISTERS), np.uint8)
    rest = (bits >> np.uint64(7)).astype(np.float64)  # 57 bits
    rank = 57 - np.floor(np.log2(np.maximum(rest, 1.0)))
    sketches[np.arange(len(keys)), (bits % np.uint64(REGISTERS)).astype(np.int64)] = rank.astype(np.uint8)
    return sketches


def _spread(graph: Graph, before: Sketches, after: Sketches) -> None:
    """Write into `after` the union of each node's own sketch and its linkers', as they were `before`."""
    begin = 0
    for block in graph.blocks:
        _spread_block(block, before, after, begin)
        begin += block.rows


def _spread_block(block: Block, before: Sketches, after: Sketches, begin: int) -> None:
    starts = np.fromfile(block.starts, np.int64)
    after[begin : begin + block.rows] = before[begin : begin + block.rows]
    sources = mapped(block.sources, np.int64)
    most, row = _CHUNK_BYTES // REGISTERS, 0
    while len(sources) and row < block.rows:
        end = max(row + 1, int(np.searchsorted(starts, starts[row] + most, side="right")) - 1)
        for first in range(int(starts[row]), int(starts[end]), most):  # several only for a single row that has many
            last = min(first + most, int(starts[end]))
            bounds = np.clip(starts[row : end + 1], first, last)
            there = np.flatnonzero(np.diff(bounds))
            found = np.maximum.reduceat(before[sources[first:last]], bounds[there] - first, axis=0)
            places = begin + row + there
            after[places] = np.maximum(after[places], found)
        row = end


def _counted(sketches: Sketches) -> Table:
    """Return how many different keys are in each sketch: float64[n]. Empty registers tell small numbers."""
    raw = _ALPHA * REGISTERS**2 / np.exp2(-sketches.astype(np.float64)).sum(axis=1)
    empty = (sketches == 0).sum(axis=1)
    linear = REGISTERS * np.log(REGISTERS / np.maximum(empty, 1))
    counted: Table = np.where((raw <= 2.5 * REGISTERS) & (empty > 0), linear, raw)
    return counted


def _chunks(nodes: int) -> Iterator[slice]:
    return (slice(begin, begin + _COUNTED_ROWS) for begin in range(0, nodes, _COUNTED_ROWS))


def _table(path: Path, shape: tuple[int, ...], dtype: Any, memory_bytes: int) -> Table:
    """Return zeros: in memory if they fit, otherwise in a file at `path`."""
    if not shape[0] or int(np.prod(shape)) * np.dtype(dtype).itemsize <= memory_bytes:
        return np.zeros(shape, dtype)
    return mapped_zeros(path, dtype, shape)
