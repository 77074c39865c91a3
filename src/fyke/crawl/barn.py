"""Where the harvest goes: records into the archive, rows into the tables, pages to those who asked for them.

The loop hands in what was reaped, one by one, before it tells the frontier of the outcome. Invariant: when `store`
returns, record and rows are in files that the next checkpoint names, and the body is closed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from fyke.archive import LinksTable, PagesTable, WarcWriter
from fyke.archive.tables import ExtractedTable
from fyke.core.batches import Kind
from fyke.core.plugins import PageSink
from fyke.core.visits import Page, Purpose
from fyke.harvest.fields import Extractor
from fyke.harvest.worker import Reaped


class Barn:
    """The archive, the tables and the sinks of one crawl; counts what it stored."""

    def __init__(
        self,
        archive: WarcWriter,
        pages: PagesTable,
        links: LinksTable | None,
        sinks: Sequence[PageSink],
        extracts: Sequence[tuple[Extractor, ExtractedTable]] = (),
        *,
        outcomes: Mapping[str, int],
        listings: int,
        body_bytes: int,
    ) -> None:
        """`links` is None when nobody wants the table; the rest are counts of earlier runs."""
        self._archive = archive
        self._pages = pages
        self._links = links
        self._sinks = sinks
        self._extracts = extracts
        self.outcomes: Counter[str] = Counter(outcomes)  # of visits to pages
        self.listings = listings  # visits to sitemaps and feeds
        self.body_bytes = body_bytes
        self.sink_failures: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"Barn({self.outcomes.total()} visits, {self._archive!r})"

    @property
    def answered(self) -> bool:
        """Whether any server has ever answered in this crawl."""
        return self._archive.statistics().bytes > 0

    def store(self, reaped: Reaped) -> None:
        """Keep what came of one visit."""
        exchange, page = reaped.exchange, reaped.page
        if exchange.visit.purpose is Purpose.PAGE:
            self._page(reaped)
        elif exchange.outcome.answered:
            self._archive.write(exchange)
        self.body_bytes += exchange.body.size
        if reaped.is_page:
            for extractor, table in self._extracts if not page.duplicate else ():
                table.add(extractor.rows(page))
            self._give_to_sinks(page)
        exchange.body.close()

    def _page(self, reaped: Reaped) -> None:
        exchange, page = reaped.exchange, reaped.page
        place = None
        if exchange.outcome.answered:
            place = self._archive.write(
                exchange, media_type=page.media_type, charset=page.charset, duplicate=page.duplicate
            )
        if self._links is not None:
            for pointers in reaped.pointers:
                self._links.add(exchange.visit.key, pointers.found, pointers.row)
        count = sum(len(pointers.found) for pointers in reaped.pointers)
        self._pages.add(exchange, place, page, links=count, redirect_to=reaped.redirect_to)
        if exchange.visit.kind is Kind.LISTING:
            self.listings += 1
        else:
            self.outcomes[exchange.outcome] += 1

    def _give_to_sinks(self, page: Page) -> None:
        for sink in self._sinks:
            try:
                sink.page(page)
            except Exception:  # noqa: BLE001 - a plug-in may raise anything; it costs its page
                self.sink_failures[type(sink).__name__] += 1
