"""What a crawl fetched, site by site: the rows of its pages from which rules are learned.

A site is a host with those that differ from it by `www.`, `m.` or `mobile.` before the name. The table of pages is in
the order of the crawl, so it is read once and put into parts on disk by site, which are then read one by one.

Invariant: memory holds a part, of `PART_ROWS` or so, whatever the size of the table; of a site the first `SITE_ROWS`
pages are read.
"""

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.reading import scan_table
from fyke.core.outcomes import Outcome
from fyke.core.urls import key_of, split

PREFIXES = ("www.", "m.", "mobile.")
SITE_ROWS = 1 << 15
PART_ROWS = 1 << 16
MOST_PARTS = 256
PLACES = 1 << 20  # counters of pages by site, which sites share when there are more
COLUMNS = (
    "url", "host", "outcome", "kind", "status", "fingerprint", "fetched_at", "warc_file", "warc_offset", "warc_length",
)  # fmt: skip
_WHOLE = (Outcome.OK, Outcome.UNCHANGED)
_ANSWERED = pa.array([outcome.value for outcome in Outcome if outcome.answered and outcome is not Outcome.THROTTLED])


class Fetched(NamedTuple):
    """A page that answered: `row` as the table has it; `fingerprint` 0 for redirects, errors and what has no body."""

    url: str
    host: str
    fingerprint: int
    row: dict[str, Any]


def main_name(host: str) -> str:
    """The name of the site of `host`."""
    for prefix in PREFIXES:
        if host.startswith(prefix) and "." in host[len(prefix) :]:
            return host[len(prefix) :]
    return host


def sites(folder: Path) -> Iterator[tuple[str, list[Fetched]]]:
    """The sites of the crawl directory `folder`, each with its pages. Raises NotACrawl, StateDamaged."""
    count = sum(batch.num_rows for batch in scan_table(folder, "pages", ["kind"]))
    parts = min(MOST_PARTS, 1 + count // PART_ROWS)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".rewrite-") as place:
        schema = _spill(folder, Path(place), parts)
        for part in range(parts):
            path = Path(place) / str(part)
            if path.exists() and schema is not None:
                yield from _sites_of(path)


def _spill(folder: Path, place: Path, parts: int) -> pa.Schema | None:
    """Put the rows into files in `place`, named by the numbers of parts."""
    met = np.zeros(PLACES, np.uint32)
    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    schema: pa.Schema | None = None
    try:
        for batch in scan_table(folder, "pages", COLUMNS):
            table = pa.table(batch)
            table = table.filter(pc.is_in(table.column("outcome").cast(pa.string()), value_set=_ANSWERED))
            plain = [
                field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in table.schema
            ]
            table, schema = table.cast(pa.schema(plain)), pa.schema(plain)
            keys = [key_of(main_name(host)) for host in table.column("host").to_pylist()]
            wanted = np.zeros(len(keys), bool)
            for number, key in enumerate(keys):
                met[key % PLACES] += 1
                wanted[number] = met[key % PLACES] <= SITE_ROWS
            of = np.array([key >> 40 for key in keys], np.int64) % parts
            for part in np.unique(of[wanted]).tolist():
                if part not in writers:
                    writers[part] = pa.ipc.new_stream(str(place / str(part)), schema)
                writers[part].write_table(table.filter(pa.array((of == part) & wanted)))
    finally:
        for writer in writers.values():
            writer.close()
    return schema


def _sites_of(path: Path) -> Iterator[tuple[str, list[Fetched]]]:
    """The sites of one part."""
    with pa.ipc.open_stream(str(path)) as stream:
        table = stream.read_all()
    names = np.array([key_of(main_name(host)) for host in table.column("host").to_pylist()], np.uint64)
    order = np.argsort(names, kind="stable")
    ends = np.flatnonzero(np.diff(names[order], append=~names[order[-1:]])) + 1
    for begin, end in pairwise([0, *ends.tolist()]):
        rows = table.take(pa.array(order[begin:end])).to_pylist()
        latest = {row["url"]: row for row in sorted(rows, key=itemgetter("fetched_at")) if _says_something(row)}
        yield main_name(rows[0]["host"]), list(map(_fetched, latest.values()))


def _says_something(row: dict[str, Any]) -> bool:
    """Whether `row` is that of a page, and its body was read if it has one."""
    if row["kind"] == "listing" or split(row["url"]).scheme not in ("http", "https"):
        return False
    return bool(row["fingerprint"]) or row["outcome"] not in _WHOLE


def _fetched(row: dict[str, Any]) -> Fetched:
    return Fetched(row["url"], row["host"], row["fingerprint"] if row["outcome"] in _WHOLE else 0, row)
