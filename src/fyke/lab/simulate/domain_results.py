"""The result of each domain: in-degree, URLs met, pages fetched, honest or not.

The report and the benches read it from the frontier's own table of domains, during or after a simulation. It is
IRLbot's Figure 6(b) (Lee et al., WWW 2008, section 7.2).

Invariant: one row for each domain met; URLs are exact, not sampled.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fyke.core.batches import Mask
from fyke.lab.simulate.chance import F64, I64
from fyke.lab.simulate.simulation import Simulation

_NUMBER = slice(1, 11)  # the digits of "d0000001234.sim"


@dataclass(frozen=True, slots=True)
class Standings:
    """The domains met, [n] each."""

    in_degree: I64
    urls: I64  # distinct URLs met
    fetched: I64
    spam: Mask

    @property
    def spam_share_of_urls(self) -> float:
        """Share of all distinct URLs met that is in farms."""
        return float(self.urls[self.spam].sum() / max(1, self.urls.sum()))


@dataclass(frozen=True, slots=True)
class Bins:
    """Domains by in-degree, in bins that double: [n] each, without empty bins."""

    in_degree: F64  # mean
    pages: F64  # mean fetched
    most_pages: I64
    domains: I64


def standings(simulation: Simulation) -> Standings:
    """Return the standings of all domains met so far."""
    columns: list[tuple[npt.NDArray[np.integer], ...]] = [tuple(np.zeros(0, np.int64) for _ in range(4))]
    for names, records in simulation.frontier.domains.named():
        numbers = np.fromiter((int(name[_NUMBER]) for name in names), np.int64, len(names))
        columns.append((numbers, records["in_degree"], records["urls"], records["fetched"]))
    number, in_degree, urls, fetched = (
        np.concatenate(column).astype(np.int64) for column in zip(*columns, strict=True)
    )
    return Standings(in_degree, urls, fetched, simulation.web.domains.is_spam(number))


def by_in_degree(of: Standings, which: Mask) -> Bins:
    """Return the domains `which` (bool[n]) among `of` that have in-links, binned by in-degree."""
    linked = which & (of.in_degree > 0)
    degree, fetched = of.in_degree[linked], of.fetched[linked]
    if not len(degree):
        return Bins(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    place = np.floor(np.log2(degree)).astype(np.int64)
    count = np.bincount(place)
    most = np.zeros(len(count), np.int64)
    np.maximum.at(most, place, fetched)
    filled = np.flatnonzero(count)
    divisor = count[filled]
    return Bins(
        np.bincount(place, degree)[filled] / divisor,
        np.bincount(place, fetched)[filled] / divisor,
        most[filled],
        divisor,
    )
