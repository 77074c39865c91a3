"""Tells the frontier what visits brought, out of the table of pages, before it plans the next ones.

The table has everything that the frontier must know of earlier visits, so a pass can begin over the directory of any
version. Of several agents each learns its own shard's rows out of the safe rows of all, because a visit is not always
made by the agent of its shard.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.arrivals import arrivals_by_agent
from fyke.archive.division import Division
from fyke.archive.reading import segments
from fyke.archive.reindexing import serial_of
from fyke.archive.turns import rows_by_part
from fyke.core.batches import U64, Kind, Mask, keep, u64, url_batch
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import SAME_TEXT
from fyke.crawl.past import file_number
from fyke.frontier.known_pages import KnownPages
from fyke.frontier.page_history import COPY, ENDED, News, Visited
from fyke.harvest.new_text import NOT_THERE

_COLUMNS = [
    "key", "url", "status", "outcome", "detail", "fetched_at", "depth", "via", "kind", "fingerprint", "warc_file",
    "warc_offset", "warc_length",
]  # fmt: skip
_KINDS = {kind.name.lower(): kind for kind in Kind}


def learn(pages: KnownPages, folder: Path) -> Iterator[None]:
    """Tell `pages` of the rows of the table of pages that it does not know, a batch at a time."""
    begin, position = pages.rows, 0
    for segment in segments(folder, "pages"):
        rows = segment.rows()
        if rows is not None and position + rows <= begin:
            position += rows
            continue
        for batch in segment.batches(_COLUMNS):
            known = min(max(0, begin - position), batch.num_rows)
            position += batch.num_rows
            _learn(pages, batch.slice(known), 0)
            yield


def learn_own(pages: KnownPages, folder: Path, division: Division, shard: int) -> Iterator[None]:
    """Do the same among several agents: tell `pages` of safe rows of all agents that are of this `shard`."""
    safe = sum(rows_by_part(folder, "pages").values())
    for part, batch in arrivals_by_agent(folder, "pages", _COLUMNS, pages.rows, safe):
        _learn(pages, batch, part, lambda domains: division.shards_of(domains) == shard)
        yield


def _learn(pages: KnownPages, batch: pa.RecordBatch, part: int, owned: Callable[[U64], Mask] | None = None) -> None:
    """Tell `pages` of visits that the agent `part` made, if their pages are `owned`; only count the others."""
    urls = _urls(batch)
    if owned is not None:
        mine = owned(u64(urls, "domain"))
        pages.pass_over(int((~mine).sum()))
        urls, batch = keep(urls, mine), keep(batch, mine)
    outcomes = np.array(batch.column("outcome").cast(pa.string()).to_pylist(), object)
    status = batch.column("status").to_numpy()
    length = pc.fill_null(batch.column("warc_length"), 0).to_numpy()
    away = (outcomes == Outcome.CLIENT_ERROR.value) & np.isin(status, NOT_THERE)
    visited = np.select([outcomes == Outcome.GONE.value, away], [Visited.GONE, Visited.MISSING], Visited.THERE)
    whole = np.isin(outcomes, (Outcome.OK.value, Outcome.TOO_LARGE.value)) & (status != 304)
    same = outcomes == Outcome.UNCHANGED.value
    held = (whole | (same & (status != 304))) & (length > 0)
    same |= whole & pc.equal(batch.column("detail").cast(pa.string()), SAME_TEXT).to_numpy(zero_copy_only=False)
    copies = np.zeros(batch.num_rows, COPY)
    names = batch.column("warc_file").cast(pa.string()).to_pylist()
    serials = {name: max(0, serial_of(name.rpartition("/")[2])[0]) for name in set(names) if name}
    copies["file"] = [file_number(part, serials.get(name, 0)) for name in names]
    copies["offset"] = pc.fill_null(batch.column("warc_offset"), 0).to_numpy()
    copies["length"] = length
    copies["fingerprint"] = batch.column("fingerprint").to_numpy()
    copies[~held] = np.zeros(1, COPY)
    forgotten = np.isin(outcomes, (Outcome.REDIRECTED.value, Outcome.GONE.value, Outcome.INCOMPLETE.value))
    news = np.select([same, whole], [News.SAME, News.CHANGED], News.NONE)
    at = batch.column("fetched_at").cast(pa.int64()).to_numpy() / 1e6
    columns = (visited.astype(np.uint8), news.astype(np.uint8), at)
    ended = pa.RecordBatch.from_arrays([*urls.columns, *map(pa.array, columns)], schema=ENDED)
    pages.learn(ended, held | forgotten, copies)


def _urls(batch: pa.RecordBatch) -> pa.RecordBatch:
    return url_batch(
        [locate(url) for url in batch.column("url").to_pylist()],
        via=batch.column("via").to_numpy(),
        depth=batch.column("depth").to_numpy(),
        kind=[_KINDS[kind] for kind in batch.column("kind").cast(pa.string()).to_pylist()],
    )
