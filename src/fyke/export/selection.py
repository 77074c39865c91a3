"""The rows of the pages table whose text is exported: one entry a page, exact copies once.

Asked by the formats that hold text. A row can be read if the page came whole, is HTML or plain text and has a record in
the archive. From these rows a `Selection` leaves out three kinds:

- pages that ask not to be indexed;
- exact copies of another page (the same bytes, by fingerprint): the one stays that they name as their own address
  (`<link rel=canonical>`), or else the first;
- rows that a later answer has replaced: other content, a redirect, or that the page is gone.

A later visit that found a page as it was may still find that its header now asks not to index it.

Invariant: the result is a function of the rows, of what copies name, and of the settings, a file of a byte a row;
memory holds one range of keys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES, Page
from fyke.disk.ranges import Buckets, ranges_for
from fyke.export.source import Source
from fyke.export.staging import column_once
from fyke.search.archived import COLUMNS as ARCHIVED
from fyke.search.archived import ArchiveReader
from fyke.search.extract import CANONICAL, PLAIN_TYPES, canonical_of

RANGE_ROWS = 1 << 20

_COLUMNS = ["key", "outcome", "media_type", "noindex", "fingerprint", "warc_file"]
_DECIDING = pa.array([Outcome.OK, Outcome.TOO_LARGE, Outcome.REDIRECTED, Outcome.GONE], pa.string())
_CONTENT = pa.array([Outcome.OK, Outcome.TOO_LARGE], pa.string())
_READABLE = pa.array(sorted(HTML_TYPES | PLAIN_TYPES))
_COPY = np.dtype([("fingerprint", "<u8"), ("row", "<u8"), ("key", "<u8"), ("other", "?")])
_READ = 1  # marks a row whose page is to be read
_STATE = np.dtype([("key", "<u8"), ("row", "<u8"), ("decides", "?"), ("hides", "?")])

Chosen = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Selection:
    """The kinds of readable rows that are left out, unless they are asked for."""

    with_noindex: bool = False  # pages that ask not to be indexed too
    with_copies: bool = False  # pages with the same bytes as one before them
    versions: bool = False  # visits to a URL that is visited again later
    since: datetime | None = None  # leave out earlier visits, as the last step


def select(source: Source, rule: Selection, scratch: Path) -> Chosen:
    """Return the rows that `rule` takes, bool[rows], as a file below `scratch` that is made once. Raises DiskFull."""

    def fill(chosen: Chosen) -> None:
        for at, batch in _placed(source, _COLUMNS):
            chosen[at] = readable(batch, rule) if rule.versions else decides_state(batch)
        if not rule.versions:
            _keep_last(source, chosen, rule, scratch)
            for at, batch in _placed(source, _COLUMNS):
                chosen[at] &= readable(batch, rule)
        if not rule.with_copies:
            keep_one(source, chosen, scratch)
        if rule.since is not None:
            for at, batch in _placed(source, ["fetched_at"]):
                chosen[at] &= fetched_since(batch.column(0), rule.since)

    rows = source.until.pages
    chosen: Chosen = column_once(scratch / f"chosen-{rows}", np.bool_, rows, fill)
    return chosen


def _placed(source: Source, columns: Sequence[str]) -> Iterator[tuple[slice, pa.RecordBatch]]:
    """Yield the rows of the pages table in batches, each with its place in the table."""
    begin = 0
    for batch in source.rows("pages", columns):
        yield slice(begin, begin + batch.num_rows), batch
        begin += batch.num_rows


def fetched_since(times: pa.Array, since: datetime) -> Chosen:
    """Return which of `times` are `since` or later."""
    return pc.greater_equal(times, pa.scalar(since, times.type)).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def decides_state(batch: pa.RecordBatch) -> Chosen:
    """Return the rows that say what a page is from then on: an answer with content, a redirect, or that it is gone."""
    return pc.is_in(batch.column("outcome").cast(pa.string()), _DECIDING).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def finds_as_before(batch: pa.RecordBatch) -> Chosen:
    """Return the rows of visits that found a page as it was."""
    outcomes = batch.column("outcome").cast(pa.string())
    return pc.equal(outcomes, Outcome.UNCHANGED).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def holds_content(batch: pa.RecordBatch) -> Chosen:
    """Return the rows of answers with content, whole or cut."""
    return pc.is_in(batch.column("outcome").cast(pa.string()), _CONTENT).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def readable(batch: pa.RecordBatch, rule: Selection) -> Chosen:
    """Return the rows that have text to read, and do not ask to be left out."""
    types = batch.column("media_type").cast(pa.string())
    mask = pc.and_(pc.equal(batch.column("outcome").cast(pa.string()), Outcome.OK), pc.is_in(types, _READABLE))
    mask = pc.and_(mask, pc.is_valid(batch.column("warc_file")))
    if not rule.with_noindex:
        mask = pc.and_not(mask, batch.column("noindex"))
    return mask.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _keep_last(source: Source, chosen: Chosen, rule: Selection, scratch: Path) -> None:
    """Keep the last of the chosen rows of each page; none if a later visit found that it asks to be left out."""
    buckets = Buckets(scratch, "key", _STATE, ranges_for(source.until.pages, RANGE_ROWS))
    for at, batch in _placed(source, ["key", "outcome", "noindex"]):
        decides = chosen[at].copy()
        again = finds_as_before(batch)
        wanted = decides | (again & (not rule.with_noindex))
        rows = np.empty(int(wanted.sum()), _STATE)
        rows["key"] = batch.column("key").to_numpy()[wanted]
        rows["row"] = at.start + np.flatnonzero(wanted)
        rows["decides"] = decides[wanted]
        rows["hides"] = (again & batch.column("noindex").to_numpy(zero_copy_only=False))[wanted]
        buckets.add(rows["key"].copy(), rows)
    for some in buckets:
        rows = np.sort(some, order=["key", "row"])
        deciding = rows[rows["decides"]]
        chosen[deciding["row"][:-1][deciding["key"][1:] == deciding["key"][:-1]]] = False
        newest = rows[np.append(rows["key"][1:] != rows["key"][:-1], True)[: len(rows)]]
        hidden = newest["key"][newest["hides"]]
        chosen[deciding["row"][np.isin(deciding["key"], hidden)]] = False
    buckets.close()


def keep_one(source: Source, chosen: Chosen, scratch: Path) -> None:
    """Keep one of the chosen rows with the same fingerprint: that of the page which they name, or else the first."""
    named = _named(source, scratch)
    buckets = Buckets(scratch, "fingerprint", _COPY, ranges_for(source.until.pages, RANGE_ROWS))
    for at, batch in _placed(source, ["key", "fingerprint"]):
        rows = _copies(batch, chosen[at], at.start)
        rows["other"] = rows["key"] != named[rows["row"].astype(np.intp)]
        buckets.add(rows["fingerprint"].copy(), rows)
    for some in buckets:
        rows = np.sort(some, order=["fingerprint", "other", "row"])
        chosen[rows["row"][1:][rows["fingerprint"][1:] == rows["fingerprint"][:-1]]] = False
    buckets.close()


def _copies(batch: pa.RecordBatch, wanted: Chosen, begin: int) -> npt.NDArray[np.void]:
    """Return the `wanted` rows of `batch`, whose first is row `begin`, that have a fingerprint: _COPY[n]."""
    prints = batch.column("fingerprint").to_numpy()
    places = np.flatnonzero(wanted & (prints != 0))
    rows = np.zeros(len(places), _COPY)
    rows["fingerprint"], rows["row"] = prints[places], begin + places
    rows["key"] = batch.column("key").to_numpy()[places]
    return rows


def _named(source: Source, scratch: Path) -> npt.NDArray[np.uint64]:
    """Return the key of the page that each row with the content of several pages names as its own, or 0: uint64[rows].

    A file below `scratch` that is made once. Of each content one page is read.
    """

    def fill(column: npt.NDArray[np.uint64]) -> None:
        buckets = Buckets(scratch, "copies", _COPY, ranges_for(source.until.pages, RANGE_ROWS))
        for at, batch in _placed(source, _COLUMNS):
            rows = _copies(batch, readable(batch, Selection(with_noindex=True)), at.start)
            buckets.add(rows["fingerprint"].copy(), rows)
        for some in buckets:
            rows, firsts, group = _grouped(some)
            several = np.zeros(len(firsts), np.bool_)
            several[group[rows["key"] != rows["key"][firsts][group]]] = True
            column[rows["row"][firsts][several]] = _READ
        with ArchiveReader(source.path, source.product) as reader:
            for at, batch in _placed(source, ARCHIVED):
                for place in np.flatnonzero(column[at] == _READ).tolist():
                    column[at.start + place] = _named_by(reader.read(batch.slice(place, 1).to_pylist()[0]))
        for some in buckets:
            rows, firsts, group = _grouped(some)
            column[rows["row"]] = column[rows["row"][firsts]][group]
        buckets.close()

    rows = source.until.pages
    named: npt.NDArray[np.uint64] = column_once(scratch / f"named-{rows}", np.uint64, rows, fill)
    return named


def _grouped(some: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return `some` (_COPY) sorted by content, where each content begins, and the number of the content of each row."""
    rows = np.sort(some, order=["fingerprint", "row"])
    begins = np.append(True, rows["fingerprint"][1:] != rows["fingerprint"][:-1])[: len(rows)]
    return rows, np.flatnonzero(begins), np.cumsum(begins) - 1


def _named_by(page: Page | None) -> int:
    root = page.tree.root if page is not None and page.media_type in HTML_TYPES else None
    return 0 if page is None or root is None else canonical_of(page, root.css(CANONICAL))
