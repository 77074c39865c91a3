"""From what was fetched to what is kept and what is told: harvest, barn and outbox in a row.

The loop hands in what the fetcher gave. Invariant: what came of a visit is kept before its outcome is in the outbox.
"""

from fyke.core.batches import Kind
from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Purpose
from fyke.crawl.barn import Barn
from fyke.crawl.mail import Outbox
from fyke.fetcher.engine import Fetched
from fyke.harvest.worker import Harvest, Reaped


class Gathering:
    """Reads exchanges by `harvest` and stores them in `barn`."""

    def __init__(self, harvest: Harvest, barn: Barn) -> None:
        self._harvest = harvest
        self._barn = barn

    def __repr__(self) -> str:
        return f"Gathering({self._harvest!r}, {self._barn!r})"

    @property
    def answered(self) -> bool:
        """Whether any server has ever answered in this crawl."""
        return self._barn.answered

    def gather(self, fetched: Fetched, outbox: Outbox) -> int:
        """Keep what came of visits, and put what the frontier is to know into `outbox`.

        Returns how many visits that were begun as pages turned out to be sitemaps or feeds.
        """
        errands = 0
        for reaped in self._harvest.reap(fetched.exchanges):
            self._barn.store(reaped)
            errands += self._tell(reaped, outbox)
        for origin, rules, until in fetched.learned:
            outbox.put_learned(origin, rules, until)
        outbox.put_off(fetched.put_off)
        if fetched.sitemaps:  # links from nowhere, as near as a seed
            sitemaps = [locate(url) for url in fetched.sitemaps]
            outbox.put_links(sitemaps, via=0, domain=0, depth=0, kind=Kind.LISTING)
        return errands

    def _tell(self, reaped: Reaped, outbox: Outbox) -> bool:
        visit, outcome = reaped.exchange.visit, reaped.exchange.outcome
        for links in reaped.pointers:
            if links.kind is not None:
                outbox.put_links(links.found, via=visit.key, domain=visit.domain, depth=links.depth, kind=links.kind)
        if visit.purpose is Purpose.PAGE:
            outbox.put_ended(visit, outcome)
        return visit.purpose is Purpose.PAGE and outcome is Outcome.OK and not reaped.is_page
