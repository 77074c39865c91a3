"""Which documents must be written? The third phase of an increment.

Called by the indexer when there are new lots or new ranks. It finds the current pages (`catalogue`), what others call
them (`anchors`) and how much they count (`weights`). Documents whose signature differs from that of the written one
make the plan. Nothing is decided after that, so writing the plan can be repeated after each interruption.

Invariant: the plan's outcome, a document for each page that may be found, depends on the archive alone. Bounded: memory
holds one range of pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.archive.schemas import NEAR
from fyke.archive.summaries import write_near
from fyke.core.batches import U64
from fyke.core.mixing import mixed
from fyke.core.sorting import looked_up
from fyke.disk.files import sync_file, writing
from fyke.disk.ranges import RANGE_ROWS, Array, Buckets, append, mapped, sliced
from fyke.search.anchors import CurrentRows, digests, gathered, redirected, wordings
from fyke.search.catalogue import (
    CATALOGUE,
    find_aliases,
    find_firsts,
    mark_current,
    merge_catalogue,
    near_pages,
    ranges_of,
)
from fyke.search.folder import IndexFolder, IndexState
from fyke.search.lots import Fate, Lot
from fyke.search.ranks import Ranks
from fyke.search.sketch import SIGNS
from fyke.search.weights import factors

PLAN = pa.schema(
    [
        ("key", pa.uint64()),
        ("lot", pa.uint32()),
        ("text", pa.int32()),
        ("factor", pa.float64()),
        ("near", pa.uint64()),  # its cluster of near-duplicates: key of the first page, or 0
        ("anew", pa.bool_()),  # no document of this page was written before
        ("anchors", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class Merged:
    """Counts of a merge: pages that may be found, documents to write and to delete."""

    pages: int
    writes: int
    deletes: int


def merge(folder: IndexFolder, state: IndexState, number: int, range_rows: int = RANGE_ROWS) -> Merged:
    """Make the files of merge `number` from those of `state.merge` and all lots. Raises DiskFull, DirectoryError."""
    lots = [Lot(folder.lots, at) for at in range(state.lots)]
    ranges = ranges_of(lots, range_rows)
    path = folder.merge(number, "catalogue")
    before = mapped(folder.merge(state.merge, "catalogue"), CATALOGUE)
    with writing(folder.path):
        merge_catalogue(before, lots[state.merged_lots :], path, ranges)
    if not path.exists():
        append(path, np.zeros(0, CATALOGUE))
    catalogue = mapped(path, CATALOGUE)
    scratch = folder.scratch()
    aliases = find_aliases(catalogue, scratch, folder.merge(number, "aliases"), ranges)
    offsets = np.concatenate([[0], np.cumsum([len(lot.rows) for lot in lots])]).astype(np.int64)
    current_rows = CurrentRows(lots, offsets, mark_current(catalogue, offsets, scratch / "current", ranges))
    moved = redirected(current_rows, aliases, scratch, ranges)
    firsts = find_firsts(catalogue, scratch, ranges)
    write_near(folder.crawl, _near_batches(catalogue, firsts))
    evidence = _PageEvidence(current_rows, aliases, moved, firsts, Ranks(folder, state))
    with _PlanWriter(folder, number) as plan:
        for at in range(ranges):
            _plan_range(plan, evidence, sliced(catalogue, "key", at, ranges), at)
    moved.close()
    firsts.close()
    return plan.finish(path)


@dataclass(frozen=True, slots=True)
class _PageEvidence:
    """Facts about pages besides their own rows."""

    current_rows: CurrentRows
    aliases: Array
    moved: Buckets
    firsts: Buckets
    ranks: Ranks

    def is_alias(self, keys: Array, at: int) -> npt.NDArray[np.bool_]:
        """Return whether each of `keys`, of range `at`, leads to another page."""
        aliases = sliced(self.aliases, "key", at, self.moved.ranges)
        found: npt.NDArray[np.bool_] = looked_up(np.ascontiguousarray(aliases["key"]), keys) >= 0
        return found

    def anchors(self, keys: U64, at: int) -> Array:
        """Return COUNTED for the pages `keys`, of range `at`."""
        return gathered(self.current_rows, keys, self.moved.read(at), at, self.moved.ranges)


def _plan_range(plan: "_PlanWriter", evidence: _PageEvidence, rows: Array, at: int) -> None:
    """Plan for the catalogue's `rows` of range `at`."""
    shown = (rows["fate"] == Fate.SHOWN) & ~evidence.is_alias(rows["key"], at)
    pages = rows[shown]
    clusters = near_pages(pages, evidence.firsts.read(at))[1]
    keys = np.ascontiguousarray(pages["key"])
    anchors = evidence.anchors(keys, at)
    factor = factors(pages, evidence.ranks.of_pages(keys), evidence.ranks.of_domains(pages["domain"]))
    signatures = _signatures(pages, factor, digests(anchors, len(pages)) + mixed(clusters))
    changed = np.flatnonzero(signatures != pages["written"])
    anchors = anchors[np.isin(anchors["page"], changed)]
    anchors["page"] = np.searchsorted(changed, anchors["page"])
    texts = wordings(evidence.current_rows, anchors, len(changed))
    plan.write(pages[changed], factor[changed], clusters[changed], texts)
    plan.delete(rows["key"][~shown & (rows["written"] != 0)])
    written = np.zeros(len(rows), np.uint64)
    written[shown] = signatures
    plan.note(written, len(pages))


def _near_batches(catalogue: Array, firsts: Buckets) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the table of near-duplicates."""
    for at in range(firsts.ranges):
        near, _ = near_pages(sliced(catalogue, "key", at, firsts.ranges), firsts.read(at))
        distance = near["apart"].astype(np.float32) * np.float32(2 / SIGNS)
        yield pa.RecordBatch.from_arrays(
            [pa.array(near["key"]), pa.array(near["near_of"]), pa.array(distance)], schema=NEAR
        )


def _signatures(pages: Array, factor: Array, others: U64) -> U64:
    """Return a number for each document that changes when the document does, never 0: uint64[n]. `others`: numbers for
    facts of other pages."""
    place = pages["lot"].astype(np.uint64) << np.uint64(32) | pages["text"].astype(np.uint64)
    signatures: U64 = mixed(mixed(mixed(place) + others) + factor.view(np.uint64)) | np.uint64(1)
    return signatures


class _PlanWriter:
    """Writer of `plan`, `deletes`, and the catalogue's signatures."""

    def __init__(self, folder: IndexFolder, number: int) -> None:
        self._paths = {what: folder.merge(number, what) for what in ("plan", "deletes", "written")}
        self._file: Any = None
        self._writer: Any = None
        self._pages = self._writes = self._deletes = 0

    def __enter__(self) -> "_PlanWriter":
        for path in self._paths.values():
            path.unlink(missing_ok=True)
        self._file = pa.OSFile(str(self._paths["plan"]), "wb")
        self._writer = pa.ipc.new_file(self._file, PLAN)
        return self

    def __exit__(self, *_: object) -> None:
        with writing(self._paths["plan"]):
            self._writer.close()
            self._file.close()

    def write(self, pages: Array, factor: Array, clusters: U64, anchors: list[list[str]]) -> None:
        """Add documents to write, in the order of lots."""
        self._writes += len(pages)
        order = np.lexsort((pages["text"], pages["lot"]))
        pages = pages[order]
        columns = [pa.array(pages[name]) for name in ("key", "lot", "text")]
        columns += [pa.array(factor[order]), pa.array(clusters[order]), pa.array(pages["written"] == 0)]
        columns.append(pa.array([anchors[at] for at in order.tolist()], pa.list_(pa.string())))
        with writing(self._paths["plan"]):
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=PLAN))

    def delete(self, keys: U64) -> None:
        """Add documents to delete."""
        self._deletes += len(keys)
        append(self._paths["deletes"], np.ascontiguousarray(keys))

    def note(self, written: U64, pages: int) -> None:
        """Note the signatures of the next rows of the catalogue; `pages` of these may be found."""
        self._pages += pages
        append(self._paths["written"], written)

    def finish(self, catalogue: Path) -> Merged:
        """Put the signatures into the catalogue, make all files safe, and return the counts."""
        signatures = mapped(self._paths["written"], np.uint64)
        with writing(catalogue):
            if len(signatures):
                rows = np.memmap(catalogue, CATALOGUE, "r+")
                rows["written"] = signatures
                rows.flush()
            self._paths.pop("written").unlink(missing_ok=True)
            for path in (catalogue, *self._paths.values(), catalogue.parent):
                if path.exists():
                    sync_file(path)
        return Merged(self._pages, self._writes, self._deletes)
