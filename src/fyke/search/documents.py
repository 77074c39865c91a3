"""Documents written: the fourth phase of an increment carries out the plan of a merge.

The indexer calls it, again from the group where it was interrupted. Lots are read in order, each compressed block once.
Invariant: a document is written only after the one before it was deleted in the same commit. So a plan carried out
twice, or half and then whole, gives the same index.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tantivy

from fyke.archive.table_files import as_file
from fyke.core.urls import key_of, pay_level_domain, split
from fyke.disk.ranges import mapped
from fyke.search.folder import IndexFolder, IndexState
from fyke.search.lots import Lot
from fyke.search.schema import (
    NAMES,
    SHOWN,
    Analysis,
    address_words,
    engine_at,
    open_engine,
    prepared,
    schema,
    stem_field,
)
from fyke.search.weights import as_field

LOTS_TOGETHER = 16  # of a group, which is one commit
HEAP_BYTES = 96 << 20


class Writing:
    """The engine of `state`, open for writing. Raises DirectoryError."""

    def __init__(self, folder: IndexFolder, state: IndexState) -> None:
        self._folder = folder
        self._state = state
        self._engine = folder.engine(state)
        self._analysis = Analysis()
        with engine_at(self._engine):
            self._writer = open_engine(self._engine, self._analysis).writer(HEAP_BYTES, 1)

    def carry_out(self, written: int, on_group: Callable[[int], None], *, again: bool) -> int:
        """Write the plan from group `written` on; return the number of documents.

        `on_group` is told how many groups are safe. With `again`, an earlier run may have begun this plan.
        """
        with engine_at(self._engine):
            return self._carry_out(written, on_group, again)

    def _carry_out(self, written: int, on_group: Callable[[int], None], again: bool) -> int:
        documents = 0
        if not written:
            self._delete(mapped(self._folder.merge(self._state.merge, "deletes"), np.uint64).tolist())
        groups = -(-self._state.lots // LOTS_TOGETHER)
        for group in range(written, groups):
            documents += self._group(range(group * LOTS_TOGETHER, (group + 1) * LOTS_TOGETHER), again)
            if documents or group == groups - 1:
                self._writer.commit()
                on_group(group + 1)
        return documents

    def _group(self, numbers: range, again: bool) -> int:
        plan = _part(self._folder, self._state, numbers)
        lots = plan.column("lot").to_numpy()
        bounds = np.searchsorted(lots, np.arange(numbers.start, numbers.stop + 1))
        for number, begin, end in zip(numbers, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if end > begin:
                self._lot(Lot(self._folder.lots, number), plan.slice(begin, end - begin), again)
        return int(plan.num_rows)

    def _lot(self, lot: Lot, plan: pa.Table, again: bool) -> None:
        keys, factors = plan.column("key").to_pylist(), plan.column("factor").to_numpy()
        self._delete(
            [key for key, anew in zip(keys, plan.column("anew").to_pylist(), strict=True) if again or not anew]
        )
        near, anchors_of = plan.column("near").to_pylist(), plan.column("anchors").to_pylist()
        rows = zip(keys, as_field(factors).tolist(), near, anchors_of, strict=True)
        for block in lot.texts(plan.column("text").to_numpy()):
            for text, (key, weight, cluster, anchors) in zip(block.to_pylist(), rows, strict=False):
                self._add(_document(self._analysis, text, key, weight, cluster, anchors))

    def _add(self, document: tantivy.Document) -> None:
        try:
            self._writer.add_document(document)
        except ValueError:  # the thread that writes has ended, and only a commit says why
            self._writer.commit()
            raise

    def _delete(self, keys: list[int]) -> None:
        for key in keys:  # by query, because the call for a term takes every number as signed and finds nothing
            self._writer.delete_documents_by_query(tantivy.Query.term_query(schema(), "key", key))

    def close(self) -> None:
        """Wait until all is written, and let all readers of the folder read its files."""
        with engine_at(self._engine):
            self._writer.wait_merging_threads()
            for path in self._engine.iterdir():  # the engine makes some for this user alone
                path.chmod(self._engine.stat().st_mode & 0o666)


def _part(folder: IndexFolder, state: IndexState, lots: range) -> pa.Table:
    """Return the rows of the plan for `lots`, in the order of lots and texts."""
    with pa.memory_map(as_file(folder.merge(state.merge, "plan"))) as file:
        reader = pa.ipc.open_file(file)
        found = [reader.schema.empty_table()]
        for at in range(reader.num_record_batches):
            batch = reader.get_batch(at)
            column = batch.column("lot")
            wanted = pc.and_(pc.greater_equal(column, lots.start), pc.less(column, lots.stop))
            found.append(pa.table(batch.filter(wanted)))
    return pa.concat_tables(found).sort_by([("lot", "ascending"), ("text", "ascending")]).combine_chunks()


def _document(
    analysis: Analysis, text: dict[str, Any], key: int, weight: float, near: int, anchors: list[str]
) -> tantivy.Document:
    """Return the page with this `key` as the engine's document; `text` is its row of TEXTS."""
    out = tantivy.Document()
    out.add_unsigned("key", key)
    out.add_float("weight", weight)
    out.add_unsigned("fingerprint", text["fingerprint"])
    out.add_unsigned("near", near)
    out.add_integer("date_s", text["date_s"])
    out.add_integer("fetched_at", text["fetched_at"])
    host = split(text["url"]).host
    out.add_unsigned("host", key_of(host))
    for name in ("url", "language"):
        out.add_text(name, text[name])
    for site in sites(host):
        out.add_text("site", site)
    for anchor in anchors:
        out.add_text("anchors", prepared(anchor))
    searched = {name: prepared(text[name]) for name in ("title", "headings", "description", "text")}
    for name, value in searched.items():
        out.add_text(name, value)
    address = address_words(text["url"])
    out.add_text("address", address)
    stems = stem_field(text["language"])
    whole = " ".join(searched.values())
    out.add_text(stems, " ".join([whole, *analysis.without_accents(stems, whole)]))
    for name, values in zip(NAMES, ([text["title"]], [text["headings"]], anchors, [address]), strict=True):
        for value in values:
            said = " ".join([value, *analysis.without_accents(stems, prepared(value))])
            out.add_text(f"{name}_stems", " ".join(analysis.stems(stems, said)))
    for name in SHOWN:
        out.add_bytes(f"shown_{name}", text[name].encode())
    return out


def sites(host: str) -> list[str]:
    """Return what `site:` may say to mean a page of `host`: the host and its ends, down to its domain."""
    domain = pay_level_domain(host)
    found = [host]
    while host != domain and "." in host:
        host = host.partition(".")[2]
        found.append(host)
    return found
