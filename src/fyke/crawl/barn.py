"""Where the harvest goes: records into the archive, rows into the tables, pages to the sinks.

The loop hands in what was reaped, before it tells the frontier of the outcome. Invariant: when `store` returns, records
and rows are in files that the next checkpoint names, and bodies are closed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fyke.archive.payloads import Payloads, Place
from fyke.archive.records import Original
from fyke.archive.tables import ExtractedTable, LinksTable, PagesTable, links_batch
from fyke.archive.warc import WarcWriter
from fyke.core.batches import Kind
from fyke.core.errors import PluginError
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.plugins import PageSink
from fyke.core.slices import Steps
from fyke.core.visits import Exchange, Purpose
from fyke.crawl.passes import Passes
from fyke.harvest.sheaf import Pointers, Reaped


class Barn:
    """The archive, the tables and the sinks of one crawl. Counts what it stored."""

    def __init__(
        self,
        archive: WarcWriter,
        payloads: Payloads,
        pages: PagesTable,
        links: LinksTable | None,
        sinks: Sequence[PageSink],
        passes: Passes,
        extracted: Mapping[str, ExtractedTable],
        totals: Mapping[str, Any],
    ) -> None:
        """`links` is None if nobody wants the table. `totals` are the counts of earlier runs."""
        self._archive = archive
        self._payloads = payloads
        self._pages = pages
        self._links = links
        self._sinks = sinks
        self._passes = passes
        self._extracted = extracted
        self.outcomes: Counter[str] = Counter(totals.get("outcomes", {}))  # of visits to pages
        self.listings = int(totals.get("listings", 0))  # visits to sitemaps and feeds
        self.cut = int(totals.get("cut", 0))  # pages that were not read to their end
        self.body_bytes = int(totals.get("bytes", 0))
        self.sink_failures: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"Barn({self.outcomes.total()} visits, {self._archive!r})"

    @property
    def answered(self) -> bool:
        """True if any server has ever answered in this crawl."""
        return self._archive.size_bytes > 0

    def store(self, reaped: Sequence[Reaped]) -> None:
        """Keep the results of some visits, except for their links."""
        known = self._payloads.known([one.page.fingerprint for one in reaped])
        for one in reaped:
            self._store(one, known)

    def link(self, pointers: Pointers) -> None:
        """Keep the links of some pages."""
        if self._links is not None and len(pointers.via):
            self._links.add(links_batch(pointers.via, pointers.found.key, pointers.found.url, pointers.link_kind))

    def write_links(self) -> Steps[None]:
        """Hand the links that memory should not hold to the journal, a portion in a step."""
        while self._links is not None and self._links.write():
            yield

    def _store(self, reaped: Reaped, known: Mapping[int, Place]) -> None:
        exchange, page = reaped.exchange, reaped.page
        if exchange.visit.purpose is Purpose.PAGE:
            self._page(reaped, self._payloads.entered(page.fingerprint) or known.get(page.fingerprint))
        elif exchange.outcome.answered:
            self._archive.write(exchange)
        self.body_bytes += exchange.body.size
        self._passes.count(reaped)
        if reaped.is_page:
            for name, rows in page.rows.items():
                self._extracted[name].add(rows)
            self._give_to_sinks(page)
        exchange.body.close()

    def _page(self, reaped: Reaped, known: Place | None) -> None:
        exchange, page = reaped.exchange, reaped.page
        place = None
        if exchange.outcome.answered:
            original = _copy_of(exchange) or (known and self._archive.original_at(*known))
            serial = self._archive.serial
            place = self._archive.write(
                exchange,
                media_type=page.media_type,
                charset=page.encoding,
                duplicate=page.duplicate,
                refers_to=original,
            )
            is_full = exchange.head and not exchange.truncated and (original is None or original.digest != place.digest)
            if page.fingerprint and is_full:
                self._payloads.enter(page.fingerprint, Place(serial, place.offset, place.length))
        self._pages.add(exchange, place, page, links=reaped.links, redirect_to=reaped.redirect_to)
        self.cut += page.cut
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

    def close_sinks(self) -> None:
        """Tell all sinks that no more pages come. Raises PluginError, which names those that failed."""
        failed: dict[str, Exception] = {}
        for sink in self._sinks:
            try:
                sink.close()
            except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
                failed[f"{type(sink).__name__}: {error!r}"] = error
        if failed:
            raise PluginError(
                f"a sink failed as it was closed ({'; '.join(failed)}): fix it, then resume; the crawl goes on from"
                " its last checkpoint"
            ) from next(iter(failed.values()))


def _copy_of(exchange: Exchange) -> Original | None:
    """Return the record that an answer without news stands for, if there is one."""
    earlier = exchange.visit.earlier
    if earlier is None or earlier.original is None or exchange.outcome is not Outcome.UNCHANGED:
        return None
    return Original(*earlier.original)
