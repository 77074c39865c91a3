"""The output of the harvest: exchanges, what is in each, and where their links lead, as columns.

Bound by `fyke.harvest.binder`. The crawl keeps it (`fyke.crawl.barn`) and tells the frontier of it
(`fyke.crawl.gathering`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Int, Kind
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.resolve import NOWHERE, Located
from fyke.core.visits import Exchange, Purpose

Times = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pointers:
    """The links of a batch of pages, in order: n rows."""

    found: Located
    via: U64  # keys of the pages
    source: U64  # keys of their domains
    link_kind: Int  # a `LinkKind`
    depth: Int
    kind: Int  # a `Kind`, or NOT_FOLLOWED
    dated: Times  # when the target changed, as the page says, unix seconds; 0 if it does not say


NO_POINTERS = Pointers(NOWHERE, NOWHERE.key, NOWHERE.key, NOWHERE.link, NOWHERE.link, NOWHERE.link, np.zeros(0))


@dataclass(frozen=True, slots=True)
class Reaped:
    """An exchange and its contents. For robots.txt the page is empty."""

    exchange: Exchange
    page: Page
    links: int = 0
    redirect_to: str | None = None

    @property
    def is_page(self) -> bool:
        """True if the exchange brought a page: no listing, no errand of the crawler, no failure."""
        visit = self.exchange.visit
        fetched = self.exchange.outcome is Outcome.OK and visit.purpose is Purpose.PAGE
        return fetched and visit.kind is not Kind.LISTING


@dataclass(frozen=True, slots=True)
class Sheaf:
    """Some exchanges, and all their links."""

    reaped: Sequence[Reaped]
    pointers: Pointers
    beside: Pointers = NO_POINTERS  # new links in heads of 304s: followed, but the table has those of the copy


NO_SHEAF = Sheaf((), NO_POINTERS)
