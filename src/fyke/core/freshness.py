"""How fresh the copies of a crawl are that never ends: told by the frontier, read by statistics and people."""

from typing import NamedTuple


class Freshness(NamedTuple):
    """How fresh the copies of a crawl that never ends were at its last plan, told by the frontier."""

    at: float = 0.0  # unix seconds; 0: there was no plan
    pages: int = 0  # that rest
    fresh: float = 0.0  # share of pages, as believed and corrected by visits
    due: int = 0
    chosen: int = 0
    next_at: float = 0.0  # unix seconds: when the next plan is made
