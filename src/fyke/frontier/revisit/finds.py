"""Which pages bring links to new ones? That, too, makes a visit worth something.

A page that links to new pages at the rate d has, at age t, links to d t of them that nobody has met. Each costs as much
as `UNMET` copies that miss a change, because everything of it is missing. So the index of `worth` grows by `UNMET` d
t^2 / 2: its U for the cost D(t) = `UNMET` d t (a square-root rule, as for any cost that grows so). Only a link that
URL-seen lets pass is new: of many pages that link to the same page, only the first is credited. Rules by past yield
differ, as in Dasgupta et al. (The discoverability of the web, WWW 2007): they visit pages first that showed most new
links before, however lately these were visited.

The rate is the mean of a Gamma distribution: the page's own links, and a little of the rate of pages that brought none
before (`common`). Pages that brought none are not visited for links: that a page changes is reason enough.

Invariant: rates are finite and not negative. All arrays are float64[n]; times in any one unit.
"""

import numpy as np

from fyke.frontier.revisit.belief import Column

SHAPE = 0.15
UNMET = 10.0
KEPT = 0.95  # of what a page brought, from one visit to the next
MOST_LINKS = 32.0  # of one visit that count, so that made-up pages without end earn no visits


def rates(links: Column, time: Column, common: float) -> Column:
    """Return the new links in a unit of time of pages that brought `links` in `time`; 0 for none."""
    found: Column = np.where(links > 0, (links + SHAPE) / (time + SHAPE / common), 0.0)
    return found


def brought(links: Column, time: Column, new: Column, since: Column) -> tuple[Column, Column]:
    """Return links and time after visits, `since` after those before, that brought `new` more links."""
    return KEPT * links + np.minimum(new, MOST_LINKS), KEPT * time + since


def finding(rate: Column, age: Column) -> Column:
    """Return what a visit at `age` is worth for its new links."""
    return UNMET * rate * age**2 / 2
