"""The change of each page since a date: new, changed, or gone.

Asked by the formats of lines for `fyke export --changes`. A program that keeps a copy of a crawl's pages applies the
result: new and changed pages come with their text, gone ones are to be deleted. The newest row of a page that has
content, a redirect or "gone" says what the page is; the newest such row before the date says what it was. A page has
changed if its bytes are others, or if they were read in another charset. It is gone if it has no content any more, also
if it now redirects or asks not to be indexed. A visit that found it as it was may find that its header asks so.
With a `Selection`, only what that takes is content, now and before the date; of exact copies, one. So a copy is new
when the page that stood for it goes, and gone when the page comes that they name as their own. Invariant: as in
`selection`; two changes of a page are one.
"""

from datetime import datetime
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import U64
from fyke.core.sorting import distinct
from fyke.core.urls import key_of
from fyke.core.visits import SAME_TEXT
from fyke.disk.ranges import Buckets, ranges_for
from fyke.export.selection import (
    RANGE_ROWS,
    Chosen,
    Selection,
    decides_state,
    finds_as_before,
    holds_content,
    keep_one,
    readable,
)
from fyke.export.source import Source
from fyke.export.staging import column_once

_COLUMNS = [
    "key", "outcome", "media_type", "noindex", "fingerprint", "charset", "fetched_at", "detail", "warc_file",
]  # fmt: skip
ROW = np.dtype(  # charset: key of its name, or 0
    [
        ("key", "<u8"),
        ("row", "<u8"),
        ("fingerprint", "<u8"),
        ("content", "?"),
        ("before", "?"),
        ("decides", "?"),
        ("charset", "<u8"),
    ]
)


class Change(IntEnum):
    """The change of a page that its row stands for."""

    NONE = 0
    NEW = 1
    CHANGED = 2
    GONE = 3


Changes = npt.NDArray[np.uint8]


def changes_since(
    source: Source, since: datetime, scratch: Path, rule: Selection | None, *, with_noindex: bool
) -> Changes:
    """Return a `Change` for each row of the pages table, as a file below `scratch` that is made once.

    Pages have the content that `rule` takes; without one, whatever came. A page that asks not to be indexed has none,
    unless `with_noindex`. Raises DiskFull.
    """

    def fill(found: Changes) -> None:
        buckets = Buckets(scratch, "changes", ROW, ranges_for(len(found), RANGE_ROWS))
        begin = 0
        for batch in source.rows("pages", _COLUMNS):
            some = _deciding(batch, since, begin, rule, with_noindex=with_noindex)
            buckets.add(some["key"].copy(), some)
            begin += batch.num_rows
        firsts = None
        if rule is not None and not rule.with_copies:
            firsts = (_firsts(source, buckets, scratch, "now"), _firsts(source, buckets, scratch, "before"))
        for some in buckets:
            last, change = of_pages(some, firsts)
            found[last["row"].astype(np.int64)] = change
        buckets.close()

    rows = source.until.pages
    changes: Changes = column_once(scratch / f"changes-{rows}", np.uint8, rows, fill)
    return changes


def _firsts(source: Source, buckets: Buckets, scratch: Path, when: str) -> Chosen:
    """Return the rows with the content of a page `when`, without exact copies: bool[rows]."""

    def fill(chosen: Chosen) -> None:
        for some in buckets:
            rows = np.sort(some, order=["key", "row"])
            states = _states(rows if when == "now" else rows[rows["before"]])
            chosen[states["row"][states["content"]].astype(np.int64)] = True
        keep_one(source, chosen, scratch)

    rows = source.until.pages
    firsts: Chosen = column_once(scratch / f"{when}-{rows}", np.bool_, rows, fill)
    return firsts


def _deciding(
    batch: pa.RecordBatch, since: datetime, begin: int, rule: Selection | None, *, with_noindex: bool
) -> npt.NDArray[np.void]:
    same = pc.equal(batch.column("detail").cast(pa.string()), SAME_TEXT).to_numpy(zero_copy_only=False)
    decides = decides_state(batch) & ~same
    again = finds_as_before(batch)
    content = (holds_content(batch) if rule is None else readable(batch, rule)) & (
        batch.column("fingerprint").to_numpy() != 0
    )
    asks = batch.column("noindex").to_numpy(zero_copy_only=False)
    content = (content | again) & (with_noindex | ~asks)
    wanted = decides | (again & (not with_noindex))
    rows = np.empty(int(wanted.sum()), ROW)
    rows["key"] = batch.column("key").to_numpy()[wanted]
    rows["row"] = begin + np.flatnonzero(wanted)
    rows["fingerprint"] = batch.column("fingerprint").to_numpy()[wanted]
    rows["charset"] = _keys_of(batch.column("charset"))[wanted]
    rows["content"] = content[wanted]
    rows["decides"] = decides[wanted]
    before = pc.less(batch.column("fetched_at"), pa.scalar(since, batch.schema.field("fetched_at").type))
    rows["before"] = before.to_numpy(zero_copy_only=False)[wanted]
    return rows


def _keys_of(charsets: pa.Array) -> U64:
    """Return the key of each of `charsets`, 0 for an empty one: uint64[n]."""
    encoded = charsets.cast(pa.string()).dictionary_encode()
    keys = np.array([key_of(name) if name else 0 for name in encoded.dictionary.to_pylist()], np.uint64)
    found: U64 = keys[encoded.indices.to_numpy(zero_copy_only=False)]
    return found


def of_pages(
    rows: npt.NDArray[np.void], firsts: tuple[Chosen, Chosen] | None = None
) -> tuple[npt.NDArray[np.void], Changes]:
    """Return the last row of each page that says what it is, and the page's `Change`: uint8[pages].

    `firsts`: the rows whose content counts, now and before the date; None for all.
    """
    rows = np.sort(rows, order=["key", "row"])
    last = _states(rows)
    earlier = _states(rows[rows["before"]])
    for states, first in zip((last, earlier), firsts or (), strict=False):
        states["content"] &= first[states["row"].astype(np.int64)]
    old = np.zeros(len(last), ROW)
    old[np.isin(last["key"], earlier["key"])] = earlier
    read_anew = (last["charset"] != old["charset"]) & (last["charset"] != 0) & (old["charset"] != 0)
    other = (last["fingerprint"] != old["fingerprint"]) | read_anew
    change = np.where(last["content"], np.where(old["content"], Change.CHANGED * other, Change.NEW), Change.NONE)
    change = np.where(~last["content"] & old["content"], Change.GONE, change)
    return last, change.astype(np.uint8)


def _states(rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the last row of each page that decides what it is, given rows in order. If the newest row of the page
    has no content, that one."""
    deciding = rows[rows["decides"]]
    last = deciding[np.searchsorted(deciding["key"], distinct(deciding["key"]), "right") - 1]
    newest = rows[np.searchsorted(rows["key"], last["key"], "right") - 1]
    states: npt.NDArray[np.void] = np.where(newest["content"], last, newest)
    return states
