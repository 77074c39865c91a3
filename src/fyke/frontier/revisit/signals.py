"""What do lists say of changes, and how far is that believed?

Sitemaps and feeds say when pages were changed last. A date later than the last visit is a *signal*. Of a page whose
host announces a share `recall` of all changes, and tells `false` signals in a unit of time besides, the changes that
nobody announces come at the rate (1 - recall) r, and a signal is true with the chance (Busa-Fekete et al., WWW 2025)

    credit = recall r / (recall r + false)

so that a copy of age t with n signals misses (1 - recall) r t + n credit changes, as is expected. That number is what
the index is made of (`worth`), so a signal counts as the age at which as many changes would be missed: signals go
through the index and never around it. Fetching at each signal, as lists invite to, costs more than not to listen.

Both numbers are learned of each host from its visits. Signals before a visit that found no change were false. Where
pages change without a signal as often as with one, for the time they had, nothing was announced: so a host whose
dates are made up is believed to announce nothing, also where it announces everything. The share of changes that had a
signal would not tell: visits come sooner after a signal, and what came without one is found together.

Invariant: recall is in [0, `MOST_RECALL`], false positive and finite. All arrays are [n]; times in any one unit.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fyke.core.batches import Mask
from fyke.frontier.revisit.belief import LEAST, Belief, Column, changed, unchanged

MOST_RECALL = 0.9  # so that what is not announced is found, also where everything seems to be
MOST_VISITS = 500.0  # of a host that count; what was before fades
EVIDENCE = np.dtype(
    [
        ("visits", "<f4"),
        ("changed", "<f4"),  # of these, that found a change
        ("announced", "<f4"),  # of the changed ones, after a signal
        ("silent", "<f4"),  # changes in times without a signal: as many as are likely where a visit found any
        ("expected", "<f4"),  # and as many as were believed to come in these times, if none are announced
        ("found", "<f4"),  # the same two, of all times
        ("believed", "<f4"),
        ("quiet", "<f4"),  # time before the first change after a visit, of all visits
        ("false", "<f4"),  # signals before visits that found no change
    ]
)
Evidence = npt.NDArray[Any]  # dtype `EVIDENCE`


class Trust(NamedTuple):
    """How far signals are believed of n pages, by their hosts."""

    recall: Column  # share of the changes that are announced
    false: Column  # signals without a change in a unit of time


def trust(evidence: Evidence) -> Trust:
    """What `evidence` of n hosts comes to, doubts taken off: as if one signal more had been false, and two standard
    deviations more of silent changes found. Where visits find more or fewer changes than were believed to come, with
    signals and without, it is the belief that was wrong."""
    of = {name: evidence[name].astype(np.float64) for name in EVIDENCE.names or ()}
    right = (of["found"] + 1.0) / (of["believed"] + 1.0)
    silent = (of["silent"] + 2.0 * np.sqrt(of["silent"] + 1.0)) / (right * of["expected"] + 1.0)
    announced = of["announced"] / (of["changed"] + 2.0)
    recall = np.clip(np.minimum(1.0 - silent, announced), 0.0, MOST_RECALL)
    return Trust(recall, (of["false"] + 1.0) / np.maximum(of["quiet"], LEAST))


def no_trust(count: int) -> Trust:
    """That of hosts that announce nothing."""
    return Trust(np.zeros(count), np.ones(count))


def credit(belief: Belief, trusted: Trust) -> Column:
    """The chance that a signal is true."""
    real = trusted.recall * belief.mean
    chance: Column = real / (real + trusted.false)
    return chance


def counted_age(belief: Belief, trusted: Trust, signals: Column, age: Column) -> Column:
    """The age at which a copy without signals would miss as much as one that is `age` old, with so many `signals`."""
    found: Column = (1.0 - trusted.recall) * age + signals * credit(belief, trusted) / belief.mean
    return found


def fresh_chance(belief: Belief, trusted: Trust, signals: Column, age: Column) -> Column:
    """The chance that copies of this `age` are as their pages: that none of the changes came that nobody announces, the
    mean of e^-(rate age) over what is believed of the rate, and that all signals are false."""
    silent = belief.shape * np.log1p((1.0 - trusted.recall) * age / belief.time)
    chance: Column = np.exp(all_false(belief, trusted, signals) - silent)
    return chance


def all_false(belief: Belief, trusted: Trust, signals: Column) -> Column:
    """The logarithm of the chance that all signals are false."""
    found: Column = signals * np.log1p(-credit(belief, trusted))
    return found


def seen(belief: Belief, trusted: Trust, signals: Column, change: Mask, since: Column) -> Belief:
    """After visits `since` after those before, with so many `signals` meanwhile, which found pages changed where
    `change`. That there was none says the same with signals as without. An announced change is one that was counted; a
    silent one came in what is left of the time without those that would have been announced."""
    chance = credit(belief, trusted)
    some = 1.0 - (1.0 - chance) ** signals
    told = Belief(belief.shape + np.maximum(1.0, signals * chance), belief.time + since)
    silent = changed(Belief(belief.shape, belief.time + trusted.recall * since), (1.0 - trusted.recall) * since)
    same = unchanged(belief, since)
    columns = zip(told, silent, same, strict=True)
    return Belief(*(np.where(change, some * one + (1.0 - some) * other, no) for one, other, no in columns))


def learned(evidence: Evidence, belief: Belief, signals: Column, change: Mask, since: Column) -> Evidence:
    """What each of n visits adds to the `evidence` [n] that there is of its host. The others are as in `seen`, `belief`
    as before the visit."""
    gap = np.maximum(since, LEAST)
    missed = np.clip(belief.mean * gap, 1e-6, 700.0)  # changes, as is expected; e^700 is the greatest there is
    without = signals == 0
    rest = np.maximum(np.where(without, 1.0 - trust(evidence).recall, 1.0) * missed, 1e-6)
    added = np.zeros(len(gap), EVIDENCE)
    added["visits"] = 1.0
    added["changed"] = change
    added["announced"] = change & ~without
    added["found"] = np.where(change, rest / -np.expm1(-rest), 0.0)
    added["believed"] = missed
    added["silent"], added["expected"] = added["found"] * without, missed * without
    quiet = np.where(change, 1.0 / missed - 1.0 / np.expm1(missed), 1.0)
    added["false"] = np.where(change, 0.0, signals)
    added["quiet"] = gap * quiet
    return added


def added_up(evidence: Evidence, added: Evidence, of: npt.NDArray[np.intp]) -> Evidence:
    """The `evidence` of m hosts with what n visits add to it, each to that `of` a host."""
    total = evidence.copy()
    visits = total["visits"] + np.bincount(of, added["visits"], len(total))
    kept = np.minimum(1.0, MOST_VISITS / np.maximum(visits, 1.0))
    for name in EVIDENCE.names or ():
        total[name] = (total[name] + np.bincount(of, added[name], len(total))) * kept
    return total
