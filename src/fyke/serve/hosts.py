"""What is remembered of hosts: the host book, their robots.txt, and the last visits to them.

Asked by the dashboard and the API. It only reads, beside a running crawl. Invariant: work is bounded, whatever the size
of the tables. SQLite searches for hosts and returns the first that match. A host's last visits are looked for only
among the newest rows, and the answer says how many those were.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.directory import CrawlDirectory, crawl_clock
from fyke.archive.reading import segments
from fyke.core.errors import FykeError
from fyke.core.hidden import CONTROL, HIDDEN
from fyke.core.urls import split
from fyke.fetcher.host import Host
from fyke.fetcher.robots import RobotsRecord, RobotsState
from fyke.fetcher.shared_book import ReadBooks

NEWEST_FILES = 4
ROBOTS_CHARS = 20_000
_UNSEEN = re.compile(f"[{CONTROL}{HIDDEN}]")
COLUMNS = ["url", "fetched_at", "outcome", "status", "detail", "duration_s", "body_bytes", "tries"]


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A host, as the book has it; times are unix seconds, 0 for never."""

    crawl: str
    host: str
    domain: str
    addresses: list[str]
    pages: int
    failures: int  # in a row
    retired: str
    trouble: str  # outcome of its last request, if it rests for that
    rests_until: float
    crawl_delay_s: float | None
    first_seen: float
    last_seen: float


@dataclass(frozen=True, slots=True)
class HostRules:
    """The robots.txt of an origin."""

    origin: str
    state: str  # rules, allow all, disallow all
    reason: str
    fetched_at: float
    expires_at: float
    crawl_delay_s: float | None
    sitemaps: list[str]
    text: str  # beginning of the file


@dataclass(frozen=True, slots=True)
class HostVisits:
    """The last visits to a host, newest first, found among the `among` newest rows of the pages table."""

    rows: list[dict[str, Any]]
    among: int


def known_hosts(crawl: str, directory: CrawlDirectory, limit: int, within: str, failing: bool) -> list[KnownHost]:
    """Return at most `limit` hosts, in no order: with `within` in their names, and if `failing`, only those that
    fail."""
    ahead_s = _wall_ahead_s(directory)
    with ReadBooks(directory.host_books) as book:
        return [_known(crawl, host, ahead_s) for host in islice(book.hosts(within, failing), limit)]


def known_host(crawl: str, directory: CrawlDirectory, name: str) -> KnownHost | None:
    """Return what the book has of the host `name`."""
    with ReadBooks(directory.host_books) as book:
        host = book.host(name)
    return None if host is None else _known(crawl, host, _wall_ahead_s(directory))


def _wall_ahead_s(directory: CrawlDirectory) -> float:
    """Return by how much times to come are later on the wall clock than in the book; 0 if no checkpoint tells."""
    with suppress(FykeError):
        return crawl_clock(directory).wall_ahead_s
    return 0.0


def _known(crawl: str, host: Host, wall_ahead_s: float) -> KnownHost:
    return KnownHost(
        crawl, host.name, host.domain, list(host.addresses), host.pages, host.failures, host.retired, host.trouble,
        host.due and host.due + wall_ahead_s, host.crawl_delay_s, host.first_seen, host.last_seen,
    )  # fmt: skip


def rules_of(directory: CrawlDirectory, name: str, visits: HostVisits) -> list[HostRules]:
    """Return the robots.txt of each origin of the host `name`: those it was visited at, and the usual ones."""
    origins = {split(row["url"]).origin for row in visits.rows}
    origins |= {split(f"{scheme}://{name}/").origin for scheme in ("https", "http")}
    product = directory.config().agent.user_agent if directory.holds_crawl else "fyke"
    with ReadBooks(directory.host_books) as book:
        found = [record for origin in sorted(origins) if (record := book.robots(origin)) is not None]
    ahead_s = _wall_ahead_s(directory)
    return [_rules(record, product, ahead_s) for record in found]


def _rules(record: RobotsRecord, product: str, wall_ahead_s: float) -> HostRules:
    rules = record.rules(product)
    text = record.body.decode("utf-8", "replace")[:ROBOTS_CHARS] if record.state is RobotsState.RULES else ""
    text = _UNSEEN.sub("", text)
    return HostRules(
        record.origin,
        record.state.value,
        record.reason,
        record.fetched_at,
        record.expires_at + wall_ahead_s,
        rules.crawl_delay_s,
        list(rules.sitemaps)[:20],
        text,
    )


def last_visits(folder: Path, name: str, limit: int) -> HostVisits:
    """Return the last visits to the host `name`, at most `limit`."""
    rows: list[dict[str, Any]] = []
    among = 0
    for batch in _newest(folder):
        among += batch.num_rows
        own = batch.filter(pc.equal(batch.column("host"), name)).select(COLUMNS)
        rows += own.slice(max(0, own.num_rows - limit)).to_pylist()
    rows.sort(key=lambda row: row["fetched_at"], reverse=True)
    return HostVisits(rows[:limit], among)


def _newest(folder: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows still in journals, and those of the newest files."""
    there = segments(folder, "pages")
    sealed = [segment for segment in there if not segment.journal]
    for segment in [*(segment for segment in there if segment.journal), *sealed[-NEWEST_FILES:]]:
        yield from segment.batches([*COLUMNS, "host"])
