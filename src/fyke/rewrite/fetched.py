"""The pages that a crawl fetched, site by site: rows from which rules are learned.

A site is a host with those that differ from it by `www.`, `m.` or `mobile.` before the name. The table of pages is in
the order of the crawl. So it is read once and divided by site into parts on disk, which are then read one by one.

Bounded: memory holds one part, of about `PART_ROWS`, whatever the size of the table. The first `SITE_ROWS` pages of a
site are read.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.directory import CrawlDirectory
from fyke.archive.lost import require_rows
from fyke.archive.reading import scan_table
from fyke.core.outcomes import Outcome
from fyke.core.rewrite_rules import FILE
from fyke.core.urls import key_of, main_name, split
from fyke.disk.files import writing
from fyke.disk.scratch import scratch

SITE_ROWS = 1 << 15
PART_ROWS = 1 << 16
MOST_PARTS = 256
PLACES = 1 << 20  # counters of pages by site; more sites share them
COLUMNS = (
    "url", "host", "outcome", "kind", "status", "fingerprint", "fetched_at", "media_type",
    "warc_file", "warc_offset", "warc_length",
)  # fmt: skip
_WHOLE = (Outcome.OK, Outcome.UNCHANGED)
_ANSWERED = pa.array([outcome.value for outcome in Outcome if outcome.answered and outcome is not Outcome.THROTTLED])


class AnsweredPage(NamedTuple):
    """A page that answered, and its `row` in the table; `fingerprint` is 0 for redirects, errors and empty pages."""

    url: str
    host: str
    fingerprint: int
    row: dict[str, Any]


def sites(folder: Path) -> Iterator[tuple[str, list[AnsweredPage]]]:
    """Yield the sites of the crawl directory `folder` with their pages. Raises NotACrawl, StateDamaged."""
    with _beside(folder) as place:
        for path in _parts(folder, place, _by_site, SITE_ROWS):
            yield from _sites_of(path)


def places(folder: Path) -> Iterator[dict[str, dict[str, AnsweredPage]]]:
    """Yield pages of the crawl directory `folder` by path with query, then by host, part by part: those fetched whole,
    at paths of several hosts. Raises NotACrawl, StateDamaged."""
    with _beside(folder) as place:
        for path in _parts(folder, place, _by_target, None):
            yield _places_of(path)


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """Make a folder for the parts in `folder`. If `folder` is not writable, the error names the file of rules, written
    last."""
    with ExitStack() as held:
        with writing(folder / FILE):
            place = held.enter_context(scratch(".rewrite-", folder))
        yield place


def _places_of(path: Path) -> dict[str, dict[str, AnsweredPage]]:
    """Return the places of one part."""
    with pa.ipc.open_stream(str(path)) as stream:
        table = stream.read_all()
    columns = (table.column(name).to_pylist() for name in ("url", "host", "outcome", "fingerprint"))
    rows: dict[str, dict[str, int]] = {}
    for row, (url, host, outcome, fingerprint) in enumerate(zip(*columns, strict=True)):
        if fingerprint and outcome in _WHOLE:
            rows.setdefault(_target(url), {})[host] = row
    shared = [row for hosts in rows.values() if len(hosts) > 1 for row in hosts.values()]
    found: dict[str, dict[str, AnsweredPage]] = {}
    for page in map(_fetched, table.take(pa.array(shared, pa.int64())).to_pylist()):
        found.setdefault(_target(page.url), {})[page.host] = page
    return found


def _parts(folder: Path, place: Path, keys_of: Callable[[pa.Table], list[int]], most: int | None) -> Iterator[Path]:
    """Yield files in `place` with the rows of the table, each with those of some keys, at most `most` of a key."""
    require_rows(CrawlDirectory(folder), "pages")
    count = sum(batch.num_rows for batch in scan_table(folder, "pages", ["kind"]))
    parts = min(MOST_PARTS, 1 + count // PART_ROWS)
    met = np.zeros(PLACES, np.uint32)
    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    with writing(folder / FILE), ExitStack() as opened:
        for batch in scan_table(folder, "pages", COLUMNS):
            table = _plain(pa.table(batch))
            keys = keys_of(table)
            wanted = np.ones(len(keys), bool)
            for number, key in enumerate(keys) if most is not None else ():
                met[key % PLACES] += 1
                wanted[number] = met[key % PLACES] <= most
            of = np.array([key >> 40 for key in keys], np.int64) % parts
            for part in np.unique(of[wanted]).tolist():
                if part not in writers:
                    stream = pa.ipc.new_stream(str(place / str(part)), table.schema)
                    writers[part] = opened.enter_context(stream)
                writers[part].write_table(table.filter(pa.array((of == part) & wanted)))
    yield from (place / str(part) for part in sorted(writers))


def _plain(table: pa.Table) -> pa.Table:
    """Return the rows of pages that answered, with dictionaries as plain strings."""
    table = table.filter(pc.is_in(table.column("outcome").cast(pa.string()), value_set=_ANSWERED))
    plain = [field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in table.schema]
    return table.cast(pa.schema(plain))


def _by_site(table: pa.Table) -> list[int]:
    return [key_of(main_name(host)) for host in table.column("host").to_pylist()]


def _by_target(table: pa.Table) -> list[int]:
    return [key_of(_target(url)) for url in table.column("url").to_pylist()]


def _target(url: str) -> str:
    """Return path and query of a canonical URL."""
    return url.split("/", 3)[3]


def _sites_of(path: Path) -> Iterator[tuple[str, list[AnsweredPage]]]:
    """Yield the sites of one part."""
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
    """Return whether `row` is of a page, and its body was read if it has one."""
    if row["kind"] == "listing" or split(row["url"]).scheme not in ("http", "https"):
        return False
    return bool(row["fingerprint"]) or row["outcome"] not in _WHOLE


def _fetched(row: dict[str, Any]) -> AnsweredPage:
    return AnsweredPage(row["url"], row["host"], row["fingerprint"] if row["outcome"] in _WHOLE else 0, row)
