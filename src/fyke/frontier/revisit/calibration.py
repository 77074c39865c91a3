"""Are copies as fresh as is believed? What visits find says it.

A belief takes changes for a Poisson process. Pages that change in bursts are quiet for long, and believed to be fresh,
until they are not; and what was seen little is believed by others. Each visit compares: with the chance 1 - p a change
was expected. Where visits find `factor` times as many changes as were expected, changes come that much more often than
is believed, and a copy believed fresh with the chance p is so with the chance p ^ factor. A visit counts by the time
since the one before, as its page does among all copies: else those that change fast would speak for all.

It corrects what people are told and not what is visited, and only downwards: visits go where changes are thought most
likely, so a little fewer are found than were expected, also by beliefs that are right on the whole.

Invariant: the factor is 1 or more, and made of the visits that lately expected `MOST` changes.
"""

from collections.abc import Sequence

from fyke.core.batches import Mask
from fyke.frontier.revisit.belief import Column

MOST = 100.0
BEFORE = 10.0  # changes that were expected and found before the first visit


class Calibration:
    """Changes found and expected, as `saved` by `state`."""

    def __init__(self, saved: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        self._found, self._expected, self._changes = saved

    def __repr__(self) -> str:
        return f"Calibration({self.factor:.2f})"

    @property
    def factor(self) -> float:
        """How many changes there are for each that is expected."""
        found = self._changes * self._found / self._expected if self._expected else 0.0
        return max(1.0, (found + BEFORE) / (self._changes + BEFORE))

    def note(self, fresh: Column, change: Mask, since: Column) -> None:
        """Visits `since` after those before found pages changed where `change`, of which the chance to be `fresh` had
        been believed, [n]."""
        stale = 1.0 - fresh
        self._found += float(since[change].sum())
        self._expected += float(since @ stale)
        self._changes += float(stale.sum())
        kept = min(1.0, MOST / max(self._changes, 1.0))
        self._found, self._expected, self._changes = (
            part * kept for part in (self._found, self._expected, self._changes)
        )

    def fresh(self, believed: Column) -> Column:
        """The chance to be fresh of copies that are `believed` to be so."""
        found: Column = believed**self.factor
        return found

    def state(self) -> list[float]:
        return [self._found, self._expected, self._changes]
