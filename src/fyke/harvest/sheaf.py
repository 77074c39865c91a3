"""What comes out of the harvest: exchanges, what is in each, and where their links lead, as columns.

Bound by `fyke.harvest.binder`; the crawl keeps them (`fyke.crawl.barn`) and tells the frontier of them
(`fyke.crawl.gathering`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fyke.core.batches import U64, Kind
from fyke.core.outcomes import Outcome
from fyke.core.resolve import NOWHERE, Int, Located
from fyke.core.visits import Exchange, Page, Purpose

Times = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pointers:
    """What the pages of a batch point at, in order: n rows."""

    found: Located
    via: U64  # keys of the pages
    source: U64  # and of their domains
    link_kind: Int  # a `LinkKind`
    depth: Int
    kind: Int  # a `Kind`, or NOT_FOLLOWED
    dated: Times  # unix seconds: when it changed, as the page says; 0: it does not


NO_POINTERS = Pointers(NOWHERE, NOWHERE.key, NOWHERE.key, NOWHERE.link, NOWHERE.link, NOWHERE.link, np.zeros(0))


@dataclass(frozen=True, slots=True)
class Reaped:
    """An exchange, and what is in it. One about robots.txt has no page to speak of."""

    exchange: Exchange
    page: Page
    links: int = 0
    redirect_to: str | None = None

    @property
    def is_page(self) -> bool:
        """Whether it brought a page: no errand of the crawler's own, and no failure."""
        visit = self.exchange.visit
        fetched = self.exchange.outcome is Outcome.OK and visit.purpose is Purpose.PAGE
        return fetched and visit.kind is not Kind.LISTING


@dataclass(frozen=True, slots=True)
class Sheaf:
    """Some exchanges, and all links in them."""

    reaped: Sequence[Reaped]
    pointers: Pointers


NO_SHEAF = Sheaf((), NO_POINTERS)
