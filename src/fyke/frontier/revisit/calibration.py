"""Are copies as fresh as is believed? Visits compare changes found with changes expected.

A belief takes changes for a Poisson process. Pages that change in bursts are quiet for long, and believed fresh, until
they are not; and a page with few visits is believed to be like others. A visit to a copy believed fresh with the chance
p expects a change with the chance 1 - p. If visits find `factor` times as many changes as expected, changes come that
much more often than believed, and the copy is fresh with the chance p ^ factor. A visit counts by the time since the
one before, as its page does among all copies; otherwise fast-changing pages would speak for all.

The factor corrects what people are told, not which pages are visited, and only downwards: visits go where changes seem
most likely, so that a little fewer are found than expected, even if beliefs are right on the whole.

Invariant: the factor is 1 or more, and made of the visits that lately expected `MOST` changes.
"""

from collections.abc import Sequence

from fyke.core.batches import Mask
from fyke.frontier.revisit.belief import Column

MOST = 100.0
BEFORE = 10.0  # changes taken as expected and found before the first visit


class Calibration:
    """Changes found and expected, as `saved` by `state`."""

    def __init__(self, saved: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        self._found, self._expected, self._changes = saved

    def __repr__(self) -> str:
        return f"Calibration({self.factor:.2f})"

    @property
    def factor(self) -> float:
        """Number of changes found for each expected one."""
        found = self._changes * self._found / self._expected if self._expected else 0.0
        return max(1.0, (found + BEFORE) / (self._changes + BEFORE))

    def note(self, fresh: Column, change: Mask, since: Column) -> None:
        """Note visits, `since` after those before, that found pages changed where `change`. `fresh`: the believed
        chance that their copies were fresh. All [n]."""
        stale = 1.0 - fresh
        self._found += float(since[change].sum())
        self._expected += float(since @ stale)
        self._changes += float(stale.sum())
        kept = min(1.0, MOST / max(self._changes, 1.0))
        self._found, self._expected, self._changes = (
            part * kept for part in (self._found, self._expected, self._changes)
        )

    def fresh(self, believed: Column) -> Column:
        """Return the corrected chance of copies to be fresh, given the `believed` one."""
        found: Column = believed**self.factor
        return found

    def state(self) -> list[float]:
        return [self._found, self._expected, self._changes]
