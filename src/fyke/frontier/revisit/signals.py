"""What do lists say of changes, and how far is that believed?

Sitemaps and feeds say when pages were changed last. A date later than the last visit is a *signal*. Suppose a host
announces a share `recall` of all changes, and tells `false` other signals in a unit of time. Then unannounced changes
of a page that changes at the rate r come at the rate (1 - recall) r, and a signal is true with the chance (Busa-Fekete
et al., WWW 2025)

    credit = recall r / (recall r + false)

A copy of age t with n signals is expected to miss (1 - recall) r t + n credit changes. The index (`worth`) is computed
from that number: the copy counts as one without signals of the age at which as many changes would be missed. So signals
change the index, and never bypass it. Fetching at each signal, as lists invite to, costs more than not to listen.

Both numbers are learned of each host from its visits. Signals before a visit that found no change were false. If pages
change as often in times without a signal as in times with one, no change was announced. So a host whose dates are made
up is believed to announce nothing, even if it announces everything. The share of changes that had a signal would not
tell: visits come sooner after a signal, and changes without one are found together.

Invariant: recall is in [0, `MOST_RECALL`], false positive and finite. All arrays are [n]; times in any one unit.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fyke.core.batches import Mask
from fyke.frontier.revisit.belief import LEAST, Belief, Column, changed, unchanged

MOST_RECALL = 0.9  # so that unannounced changes are found even if all seem announced
MOST_VISITS = 500.0  # of a host that count; earlier ones fade
EVIDENCE = np.dtype(
    [
        ("visits", "<f4"),
        ("changed", "<f4"),  # visits that found a change
        ("announced", "<f4"),  # of these, after a signal
        ("silent", "<f4"),  # changes in times without a signal: the likely number if a visit found any
        ("expected", "<f4"),  # changes believed to come in these times, if none are announced
        ("found", "<f4"),  # the same two, of all times
        ("believed", "<f4"),
        ("quiet", "<f4"),  # time before the first change after a visit, of all visits
        ("false", "<f4"),  # signals before visits that found no change
    ]
)
Evidence = npt.NDArray[Any]  # dtype `EVIDENCE`


class Trust(NamedTuple):
    """The trust in signals of n pages, by their hosts."""

    recall: Column  # share of the changes that are announced
    false: Column  # signals without a change in a unit of time


def trust(evidence: Evidence) -> Trust:
    """Return the trust that `evidence` of n hosts gives, with doubts taken off: one more false signal, and two standard
    deviations more of silent changes. If visits find more or fewer changes than believed, with signals and without, the
    belief was wrong and not the host."""
    of = {name: evidence[name].astype(np.float64) for name in EVIDENCE.names or ()}
    right = (of["found"] + 1.0) / (of["believed"] + 1.0)
    silent = (of["silent"] + 2.0 * np.sqrt(of["silent"] + 1.0)) / (right * of["expected"] + 1.0)
    announced = of["announced"] / (of["changed"] + 2.0)
    recall = np.clip(np.minimum(1.0 - silent, announced), 0.0, MOST_RECALL)
    return Trust(recall, (of["false"] + 1.0) / np.maximum(of["quiet"], LEAST))


def no_trust(count: int) -> Trust:
    """Return the trust in hosts that announce nothing."""
    return Trust(np.zeros(count), np.ones(count))


def credit(belief: Belief, trusted: Trust) -> Column:
    """Return the chance that a signal is true."""
    real = trusted.recall * belief.mean
    chance: Column = real / (real + trusted.false)
    return chance


def counted_age(belief: Belief, trusted: Trust, signals: Column, age: Column) -> Column:
    """Return the age at which a copy without signals would miss as much as one of this `age` and `signals`."""
    found: Column = (1.0 - trusted.recall) * age + signals * credit(belief, trusted) / belief.mean
    return found


def fresh_chance(belief: Belief, trusted: Trust, signals: Column, age: Column) -> Column:
    """Return the chance that copies of this `age` are as their pages: all signals are false, and no unannounced change
    came, which is the mean of e^-(rate age) over the belief of the rate."""
    silent = belief.shape * np.log1p((1.0 - trusted.recall) * age / belief.time)
    chance: Column = np.exp(all_false(belief, trusted, signals) - silent)
    return chance


def all_false(belief: Belief, trusted: Trust, signals: Column) -> Column:
    """Return the logarithm of the chance that all signals are false."""
    found: Column = signals * np.log1p(-credit(belief, trusted))
    return found


def seen(belief: Belief, trusted: Trust, signals: Column, change: Mask, since: Column) -> Belief:
    """Return the belief after visits, `since` after those before, with `signals` meanwhile, that found a change where
    `change`. No change says the same with signals as without. An announced change counts as one; a silent one came in
    the time left without announced ones."""
    chance = credit(belief, trusted)
    some = 1.0 - (1.0 - chance) ** signals
    told = Belief(belief.shape + np.maximum(1.0, signals * chance), belief.time + since)
    silent = changed(Belief(belief.shape, belief.time + trusted.recall * since), (1.0 - trusted.recall) * since)
    same = unchanged(belief, since)
    columns = zip(told, silent, same, strict=True)
    return Belief(*(np.where(change, some * one + (1.0 - some) * other, no) for one, other, no in columns))


def learned(evidence: Evidence, belief: Belief, signals: Column, change: Mask, since: Column) -> Evidence:
    """Return what each of n visits adds to the `evidence` [n] of its host. `belief` is that before the visit; the other
    arguments are as in `seen`."""
    gap = np.maximum(since, LEAST)
    missed = np.clip(belief.mean * gap, 1e-6, 700.0)  # expected changes; e^700 is the greatest float
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
    """Return the `evidence` of m hosts plus what n visits add, each to the host `of` it."""
    total = evidence.copy()
    visits = total["visits"] + np.bincount(of, added["visits"], len(total))
    kept = np.minimum(1.0, MOST_VISITS / np.maximum(visits, 1.0))
    for name in EVIDENCE.names or ():
        total[name] = (total[name] + np.bincount(of, added[name], len(total))) * kept
    return total
