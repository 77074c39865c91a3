"""Which pages bring links to new ones? Another thing that a visit is worth.

A page that links to new pages at the rate d has, at age t, links to d t of them that nobody has met. Each of these
costs as much as `UNMET` copies that miss a change, since of it everything is missing. So the index of `worth` grows by
`UNMET` d t^2 / 2: its U for the cost D(t) = `UNMET` d t (a square-root rule, as for any cost that grows so). What
counts as new is what URL-seen lets pass, so of many pages that link to the same one only the first to say so is paid.
That sets it apart from rules by past yield, as in Dasgupta et al. (The discoverability of the web, WWW 2007), by which
pages that showed most new links before are visited first, however lately they were.

The rate is the mean of a Gamma distribution: what the page brought, and a little of what pages bring that never brought
anything (`common`). Those themselves are not visited for it: that a page changes is reason enough.

Invariant: rates are finite and not negative. All arrays are float64[n]; times in any one unit.
"""

import numpy as np

from fyke.frontier.revisit.belief import Column

SHAPE = 0.15
UNMET = 10.0
KEPT = 0.95  # of what a page brought, from one visit to the next
MOST_LINKS = 32.0  # of one visit that count: who makes up pages without end is not visited for that


def rates(links: Column, time: Column, common: float) -> Column:
    """New links in a unit of time, of pages that brought `links` in `time`; 0 where they brought none."""
    found: Column = np.where(links > 0, (links + SHAPE) / (time + SHAPE / common), 0.0)
    return found


def brought(links: Column, time: Column, new: Column, since: Column) -> tuple[Column, Column]:
    """The same after visits `since` after those before that brought `new` links more."""
    return KEPT * links + np.minimum(new, MOST_LINKS), KEPT * time + since


def finding(rate: Column, age: Column) -> Column:
    """What a visit at `age` is worth for its new links."""
    return UNMET * rate * age**2 / 2
