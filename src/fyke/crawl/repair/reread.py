"""Rows of the tables out of the archive, as the harvest wrote them.

Used by `fyke.crawl.repair` for lost rows of a table. The archive has the order of the tables, so rows between two whole
ones are found by their places. A row says of a page what it said before, because the same rooms read it; only
`duration_s` is rounded to milliseconds. A visit without an answer has no record, and so no row. Invariant: memory holds
one page and one batch.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from fyke.archive.captures import Captures, original_of
from fyke.archive.reindexing import REPLAYABLE, serial_of
from fyke.archive.schemas import SCHEMAS
from fyke.archive.tables import PAGE_ROWS, page_row, rows_batch
from fyke.archive.warc import FOLDER, RecordPlace
from fyke.archive.warc_reading import Broken, Record, metadata_of, read_block, read_records, taken_apart
from fyke.core.batches import Kind
from fyke.core.config import Config
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.plugins import named, schemes_of
from fyke.core.resolve import LinkResolver
from fyke.core.seeds import seeds_of
from fyke.core.urls import Locator
from fyke.core.visits import Exchange, Visit, visit_to
from fyke.fetcher.wire.http import BY_HEAD, last_outcome, outcome_of
from fyke.harvest import Parser
from fyke.harvest.large_pages import TO_PARSE, opened
from fyke.harvest.link_groups import groups_of

BATCH_ROWS = 500

_PROBE = Kind.PROBE.name.lower()
_UNREADABLE = (Broken, OSError, ValueError, zlib.error)


class RecordPosition(NamedTuple):
    """The place where a record begins; places are ordered as the records were written."""

    serial: tuple[int, str]
    offset: int


def position_of(file: str, offset: int) -> RecordPosition:
    """Return the place that a row of the pages table names."""
    return RecordPosition(serial_of(file.rpartition("/")[2]), offset)


class Rereader:
    """Reads the archive of the crawl in `folder`; `ends` says how many bytes of each file count."""

    def __init__(self, folder: Path, config: Config, ends: dict[Path, int]) -> None:
        self._folder = folder
        self._captures = Captures(folder)
        self._ends = ends
        self._most_bytes = config.fetch.max_body_bytes
        processors = named(config.plugins, "processors")
        self._parser = Parser(processors, config.crawl.requisites, product=config.agent.user_agent)
        self._links = LinkResolver(schemes_of(named(config.plugins, "protocols")))
        self._seeds = frozenset(seed.url.decode() for seed in seeds_of(config.crawl.seeds))
        self.other_links = 0  # pages with other links than when they were crawled

    def __repr__(self) -> str:
        return f"Rereader({str(self._folder)!r}, {len(self._ends)} files)"

    # --- pages

    def pages(self, after: RecordPosition | None, before: RecordPosition | None) -> Iterator[pa.RecordBatch]:
        """Yield rows of the pages whose records lie between two places."""
        rows = (row for row in map(self._page_row, self._records(after, before)) if row is not None)
        while some := list(islice(rows, BATCH_ROWS)):
            yield rows_batch(some, PAGE_ROWS)

    def _records(
        self, after: RecordPosition | None, before: RecordPosition | None
    ) -> Iterator[tuple[Path, Record, Record | None]]:
        """Yield each record that can be replayed, and the metadata beside it."""
        for path, end in self._ends.items():
            serial = serial_of(path.name)
            if (after and serial < after.serial) or (before and serial > before.serial):
                continue
            begin = after.offset if after and serial == after.serial else 0
            answer: Record | None = None
            for record in read_records(path, end, begin):
                position = RecordPosition(serial, record.offset)
                if before and position >= before:
                    break
                kind = record.get("warc-type")
                if answer is not None and (kind in REPLAYABLE or kind == "metadata"):
                    yield path, answer, record if kind == "metadata" and not record.faults else None
                    answer = None
                if kind in REPLAYABLE and not record.faults and not (after and position <= after):
                    answer = record
            if answer is not None:
                yield path, answer, None

    def _page_row(self, found: tuple[Path, Record, Record | None]) -> tuple[object, ...] | None:
        path, record, beside = found
        try:
            facts = metadata_of(path, beside) if beside is not None else {}
            url = record.get("warc-target-uri")
            if "outcome" not in facts and (url.endswith("/robots.txt") or facts.get("kind") == _PROBE):
                return None
            exchange = self._exchange(path, record.offset, record.length, facts)
        except _UNREADABLE:
            return None
        page = self._opened(exchange)
        page.duplicate = "duplicate" in facts
        links, _ = self._pointed(page)
        moved = exchange.outcome is Outcome.REDIRECTED and links
        file, date = f"{FOLDER}/{path.name}", record.get("warc-date")
        place = RecordPlace(file, record.offset, record.length, record.digest, date)
        return page_row(exchange, place, page, len(links), links[0].url.decode() if moved else None)

    def _opened(self, exchange: Exchange) -> Page:
        """Return a page as it was before it was compared with its copy."""
        outcome = exchange.outcome
        if outcome is Outcome.UNCHANGED and exchange.status != 304:
            exchange.outcome = Outcome.OK
        page = opened(self._parser, self._most_bytes, exchange)
        exchange.outcome = outcome
        return page

    def _exchange(self, path: Path, offset: int, length: int, facts: dict[str, str]) -> Exchange:
        """Return the exchange of a record, with what its metadata says. Raises `_UNREADABLE`."""
        fields, block = read_block(path, offset, length)
        head, body = taken_apart(block) if "application/http" in fields.get("content-type", "") else (b"", block)
        if fields.get("warc-type") == "revisit":
            head, body = self._message(fields, head, facts)
        visit = visit_to(fields["warc-target-uri"])
        visit.depth, visit.tries, visit.via = (int(facts.get(name, 0)) for name in ("depth", "tries", "viaKey"))
        visit.kind = Kind[facts["kind"].upper()] if "kind" in facts else self._kind(visit, facts)
        words = head[:200].split(b"\n")[0].split()
        exchange = Exchange(
            visit,
            Outcome.OK,
            datetime.fromisoformat(fields["warc-date"]).timestamp(),
            int(facts.get("fetchTimeMs", 0)) / 1000,
            address=fields.get("warc-ip-address", ""),
            detail=facts.get("detail", ""),
            status=int(words[1]) if len(words) > 1 and words[1].isdigit() else 0,
            head=head,
            body=Document(body),
            truncated=fields.get("warc-truncated", ""),
        )
        exchange.outcome = Outcome(facts["outcome"]) if "outcome" in facts else _outcome(exchange)
        return exchange

    def _message(self, revisit: dict[str, str], head: bytes, facts: dict[str, str]) -> tuple[bytes, bytes]:
        """Return the answer that a revisit record with these fields stands for; without a body if its original is
        lost."""
        if not head:  # a 304
            return (facts["answered"] + "\r\n\r\n").encode("latin-1") if "answered" in facts else b"", b""
        original = self._captures.original(original_of(revisit))
        if original is None:
            return head, b""
        _, block = read_block(self._folder / original.file, original.offset, original.length)
        return head, taken_apart(block)[1]

    def _kind(self, visit: Visit, facts: dict[str, str]) -> Kind:
        """Return how the URL was linked to, if the archive does not say."""
        if visit.url in self._seeds:
            return Kind.SEED
        return Kind.REQUISITE if facts.get("hopsFromSeed", "").endswith("E") else Kind.PAGE

    # --- links

    def links(self, rows: Iterable[dict[str, Any]], skip: int, leave: int) -> Iterator[pa.RecordBatch]:
        """Yield the link rows of pages, given their rows, without the first `skip` and the last `leave`."""
        first = True
        batch: pa.RecordBatch | None = None
        for row in rows:
            if batch is not None:
                yield batch
            batch = self._link_rows(row)
            if first:
                batch, first = batch.slice(min(skip, batch.num_rows)), False
        if batch is not None:
            yield batch.slice(0, max(0, batch.num_rows - leave))

    def _link_rows(self, row: dict[str, Any]) -> pa.RecordBatch:
        try:
            exchange = self._exchange(self._folder / row["warc_file"], row["warc_offset"], row["warc_length"], {})
            if exchange.visit.url != row["url"]:
                raise Broken("another page")
            exchange.outcome = Outcome(row["outcome"])
            found, kinds = self._pointed(opened(self._parser, self._most_bytes, exchange))
        except _UNREADABLE:
            found, kinds = [], []
        else:
            self.other_links += len(found) != row["links"]
        told = [(row["key"], at.key, at.url.decode(), kind) for at, kind in zip(found, kinds, strict=True)]
        return rows_batch(told, SCHEMAS["links"])

    def _pointed(self, page: Page) -> tuple[list[Locator], list[int]]:
        """Return what a page points at, in the order of the table of links, and the kind of each link."""
        if page.exchange.outcome in TO_PARSE and not page.duplicate:
            self._parser.process(page)
        elif page.exchange.outcome is Outcome.UNCHANGED or page.duplicate:
            self._parser.read_robots(page)
        groups = groups_of(page)
        found = self._links.resolve([(page.links.base, group.hrefs) for group in groups])
        kinds = [int(group.link_kind) for group in groups for _ in group.hrefs]
        return found.locators(), [kinds[link] for link in found.link.tolist()]


def _outcome(exchange: Exchange) -> Outcome:
    """Return how the visit ended, if the archive does not say."""
    by_head = outcome_of(exchange.status, exchange) if exchange.status >= 300 else Outcome.OK
    if not exchange.truncated or by_head in BY_HEAD:
        return by_head
    cut = {"disconnect": Outcome.BROKEN_OFF, "time": Outcome.STALLED, "unspecified": Outcome.MEDIA_REFUSED}
    return last_outcome(replace(exchange, outcome=cut.get(exchange.truncated, Outcome.TOO_LARGE)))
