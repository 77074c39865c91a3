"""From what was fetched to what is kept and what is told: harvest, barn and outbox in a row.

The loop hands in what the fetcher gave. Invariant: what came of a visit is kept before its outcome is in the outbox.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from fyke.core.batches import Kind, LinkKind, keep, url_batch, url_columns
from fyke.core.messages import DATED, Links
from fyke.core.outcomes import Outcome
from fyke.core.shapes import shapes, skeleton
from fyke.core.slices import Steps
from fyke.core.urls import Locator, locate
from fyke.core.visits import Purpose, Visit
from fyke.crawl.barn import Barn
from fyke.crawl.outbox import Outbox
from fyke.crawl.printing import Printing
from fyke.fetcher.faults import retry_after
from fyke.fetcher.returns import Fetched
from fyke.harvest.harvest import Harvest
from fyke.harvest.link_groups import NOT_FOLLOWED
from fyke.harvest.new_text import REDIRECTS, NewText, is_judged
from fyke.harvest.sheaf import NO_SHEAF, Pointers, Reaped, Sheaf

STEP_PAGES = 16  # kept, or told of, in a step; each takes a tenth of a millisecond
STRANGERS_WAIT_S = 3600.0


class Gathering:
    """Has exchanges read by `harvest` and stored in `barn`. If given, `new_text` says which pages are fresh, and
    `printing` what pages say that rewrite rules speak of."""

    def __init__(
        self,
        harvest: Harvest,
        barn: Barn,
        new_text: NewText | None,
        printing: Printing | None,
        *,
        listens: bool,
    ) -> None:
        """If it `listens`, it hands on what lists say of changes."""
        self._printing = printing
        self._harvest = harvest
        self._barn = barn
        self._new_text = new_text
        self._listens = listens

    def __repr__(self) -> str:
        return f"Gathering({self._harvest!r}, {self._barn!r})"

    @property
    def answered(self) -> bool:
        """True if any server has ever answered in this crawl."""
        return self._barn.answered

    @property
    def body_bytes(self) -> int:
        """Bytes of bodies received in the whole crawl."""
        return self._barn.body_bytes

    @property
    def waiting(self) -> int:
        """Number of exchanges that are still being read."""
        return self._harvest.waiting

    @property
    def crowded(self) -> bool:
        """True if too many exchanges wait to be read for more to be gathered."""
        return self._harvest.crowded

    @property
    def behind(self) -> bool:
        """True if there is more to gather at once."""
        return self._harvest.behind

    def gather(self, fetched: Fetched, outbox: Outbox) -> Steps[int]:
        """Keep the results of visits, and put what the frontier is to know into `outbox`.

        Returns how many visits were begun as pages and brought none: a sitemap, a feed, or nothing new.
        """
        without_page = 0
        for sheaf in self._harvest.reap(fetched.exchanges):
            if sheaf is NO_SHEAF:
                yield from self._barn.write_links()
                yield
            else:
                without_page += yield from self._keep(sheaf, outbox)
            del sheaf  # freed before the next is read, since each may be large
        for origin, rules, until in fetched.learned:
            outbox.put_learned(origin, rules, until)
        outbox.put_off(fetched.put_off)
        if fetched.sitemaps:  # as links from no page, with the depth of a seed
            sitemaps = [locate(url) for url in fetched.sitemaps]
            outbox.put_links(Links(url_batch(sitemaps, kind=Kind.LISTING), np.zeros(len(sitemaps), np.uint64)))
        yield from self._barn.write_links()
        return without_page

    def _keep(self, sheaf: Sheaf, outbox: Outbox) -> Steps[int]:
        """Keep what is in `sheaf`, then tell of it; return how many of its visits brought no page."""
        portions = [sheaf.reaped[start : start + STEP_PAGES] for start in range(0, len(sheaf.reaped), STEP_PAGES)]
        for portion in portions:
            self._barn.store(portion)
            if portion is not portions[-1]:
                yield
        self._barn.link(sheaf.pointers)
        for pointers in (sheaf.pointers, sheaf.beside):
            if len(pointers.via):
                outbox.put_links(self._links(pointers))
        if self._listens and sheaf.pointers.dated.any():
            outbox.put_dated(dates_of(sheaf.pointers))
        without_page = 0
        for portion in portions:
            without_page += sum(self._tell(reaped, outbox) for reaped in portion)
            if portion is not portions[-1]:
                yield
        return without_page

    def _links(self, pointers: Pointers) -> Links:
        links = links_to_follow(pointers)
        if self._printing is None:
            return links
        return replace(links, fixed=(pointers.link_kind == LinkKind.REDIRECT)[pointers.kind != NOT_FOLLOWED])

    def _tell(self, reaped: Reaped, outbox: Outbox) -> bool:
        exchange, visit, outcome = reaped.exchange, reaped.exchange.visit, reaped.exchange.outcome
        if visit.purpose is not Purpose.ROBOTS:
            answered_at = exchange.started_at + exchange.duration_s
            if reaped.redirect_to and (asked_s := retry_after(exchange, answered_at)):
                target = locate(reaped.redirect_to)
                outbox.put_delayed(visit, target, answered_at + target_wait_s(visit, target, asked_s))
            outbox.put_ended(visit, outcome)
            page = visit.purpose is Purpose.PAGE
            printed = self._printing.of(visit, outcome, reaped.page) if self._printing and page else None
            if printed is not None:
                outbox.put_printed(printed)
            if self._new_text is not None and is_judged(exchange):
                fresh = self._new_text.fresh(reaped.page)
                if outcome in REDIRECTS:
                    outbox.put_judged(visit, False if self._leads_nowhere(visit.url, reaped.redirect_to) else None)
                elif fresh is not None:
                    outbox.put_judged(visit, fresh)
        begun = outcome is Outcome.OK or (outcome is Outcome.UNCHANGED and exchange.status != 304)
        return visit.purpose is Purpose.PAGE and begun and not reaped.is_page

    def _leads_nowhere(self, url: str, target: str | None) -> bool:
        """Return whether a redirect from `url` to `target` shows nothing: it leads to its like, or to a page that
        came."""
        assert self._new_text is not None
        return target is not None and (leads_to_its_like(url, target) or self._new_text.was_asked(target))


def target_wait_s(visit: Visit, target: Locator, asked_s: float) -> float:
    """Return the seconds that the `target` of the redirect of `visit` waits if the redirect asks for `asked_s`: at most
    `STRANGERS_WAIT_S` at another domain, whose pages anybody may redirect to."""
    return asked_s if target.domain == visit.domain else min(asked_s, STRANGERS_WAIT_S)


def leads_to_its_like(url: str, target: str) -> bool:
    """Return whether a redirect from `url` to `target` leads to a URL of the same own shape and host, and so shows
    nothing."""
    one, other = skeleton(url), skeleton(target)
    return one.host == other.host and shapes(one).own == shapes(other).own


def dates_of(pointers: Pointers) -> pa.RecordBatch:
    """Return the dates of changes that lists among `pointers` give for pages of their own domains (schema `DATED`)."""
    said = (pointers.dated > 0) & (pointers.found.domain == pointers.source)
    columns = [pa.array(pointers.found.key[said]), pa.array(pointers.source[said]), pa.array(pointers.dated[said])]
    return pa.RecordBatch.from_arrays(columns, schema=DATED)


def links_to_follow(pointers: Pointers) -> Links:
    """Return the links of `pointers` that go to the frontier."""
    found, follow = pointers.found, pointers.kind != NOT_FOLLOWED
    urls = url_columns(
        found.url, found.key, found.host, found.domain, via=pointers.via, depth=pointers.depth, kind=pointers.kind
    )
    return Links(keep(urls, follow), pointers.source[follow])
