"""The rows of the pages table whose text is exported: one entry a page, exact copies once.

Asked by the formats that hold text. A row can be read if the page came whole, is HTML or plain text and has a record in
the archive. From these rows a `Selection` leaves out three kinds:

- pages that ask not to be indexed;
- exact copies of an earlier page (the same bytes, by fingerprint);
- rows that a later answer has replaced: other content, a redirect, or that the page is gone.

A later visit that found a page as it was may still find that its header now asks not to index it.

Invariant: the result is a function of the rows and the settings, a file of a byte a row; memory holds one range of
keys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES
from fyke.disk.ranges import Buckets, ranges_for
from fyke.export.source import Source
from fyke.export.staging import column_once
from fyke.search.extract import PLAIN_TYPES

RANGE_ROWS = 1 << 20

_COLUMNS = ["key", "outcome", "media_type", "noindex", "fingerprint", "warc_file"]
_DECIDING = pa.array([Outcome.OK, Outcome.TOO_LARGE, Outcome.REDIRECTED, Outcome.GONE], pa.string())
_CONTENT = pa.array([Outcome.OK, Outcome.TOO_LARGE], pa.string())
_READABLE = pa.array(sorted(HTML_TYPES | PLAIN_TYPES))
_ROW = np.dtype([("key", "<u8"), ("row", "<u8")])
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
            keep_first(source, chosen, scratch)
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


def keep_first(source: Source, chosen: Chosen, scratch: Path) -> None:
    """Keep the first of the chosen rows with the same fingerprint."""
    buckets = Buckets(scratch, "fingerprint", _ROW, ranges_for(source.until.pages, RANGE_ROWS))
    for at, batch in _placed(source, ["fingerprint"]):
        prints = batch.column("fingerprint").to_numpy()
        wanted = chosen[at] & (prints != 0)
        rows = np.empty(int(wanted.sum()), _ROW)
        rows["key"], rows["row"] = prints[wanted], at.start + np.flatnonzero(wanted)
        buckets.add(rows["key"].copy(), rows)
    for some in buckets:
        rows = np.sort(some, order=["key", "row"])
        chosen[rows["row"][1:][rows["key"][1:] == rows["key"][:-1]]] = False
    buckets.close()
