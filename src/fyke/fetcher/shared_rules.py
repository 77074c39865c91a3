"""Answers to robots.txt visits that redirects led on, for the other origins that are led to the same URL.

A platform may lead the robots.txt of each of its sites to one file. `RulesDesk` asks for it once while the answer is
valid. Failures are not kept. Bounded: `MOST_ANSWERS` of at most `MOST_BYTES` each.
"""

from collections import OrderedDict
from dataclasses import replace

from fyke.core.visits import Visit
from fyke.fetcher.robots import MAX_REDIRECTS, MIN_TTL_S, RobotsRecord, RobotsState

MOST_ANSWERS = 64
MOST_BYTES = 64 << 10  # of a body; a longer one is fetched for each origin


class SharedRules:
    """The latest answers by URL: the record that each made, or where it redirects to."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[RobotsRecord | str, float]] = OrderedDict()

    def __repr__(self) -> str:
        return f"SharedRules({len(self._answers)})"

    def note_redirect(self, visit: Visit, target: str, now: float) -> None:
        """Note that the answer to `visit` redirects to `target`."""
        self._note(visit, target, now + MIN_TTL_S)

    def note(self, visit: Visit, record: RobotsRecord) -> None:
        """Note the `record` that the answer to `visit` made, with its text."""
        if record.state is not RobotsState.DISALLOW_ALL and len(record.body) <= MOST_BYTES:
            self._note(visit, replace(record), record.expires_at)

    def _note(self, visit: Visit, answer: RobotsRecord | str, until: float) -> None:
        if visit.led:
            self._answers[visit.url] = answer, until
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)

    def answer(self, visit: Visit, now: float) -> RobotsRecord | str | None:
        """Return the record of the origin that `visit` is made for, or where the visit is led on to; None if its URL
        must be asked for."""
        answer, until = self._answers.get(visit.url, (None, 0.0))
        if now >= until or not visit.led or visit.errand:
            return None
        if isinstance(answer, RobotsRecord):
            return replace(answer, origin=visit.robots_of, fetched_at=now)
        return answer if visit.depth < MAX_REDIRECTS else None
