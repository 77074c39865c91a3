"""Redirects of robots.txt: what came of them lately, and which of them wait.

A platform may lead the robots.txt of each of its sites to one file. `RulesDesk` asks for it once while the answer is
valid. Failures are not kept. A redirect may also ask to wait before its target is requested (RFC 9110, 10.2.3).
Bounded: `MOST_ANSWERS` answers of at most `MOST_BYTES` each, and `MOST_DELAYED` visits.
"""

from collections import OrderedDict
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from fyke.core.visits import Visit
from fyke.fetcher.robots import MAX_REDIRECTS, MIN_TTL_S, RobotsRecord, RobotsState

MOST_ANSWERS = 64
MOST_BYTES = 64 << 10  # of a body; a longer one is fetched for each origin
MOST_DELAYED = 1 << 10


class RobotsRedirects:
    """The latest answers by URL: the record that each made, or where it redirects to. Beside them, visits whose
    redirects asked to wait."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[RobotsRecord | str, float]] = OrderedDict()
        self._delayed: list[tuple[float, int, Visit]] = []  # a heap
        self._order = count()

    def __repr__(self) -> str:
        return f"RobotsRedirects({len(self._answers)}, {len(self._delayed)} delayed)"

    def delay(self, visit: Visit, until: float) -> bool:
        """Keep `visit`, to which a redirect leads, until then (unix seconds). Returns False if too many wait."""
        if len(self._delayed) >= MOST_DELAYED:
            return False
        heappush(self._delayed, (until, next(self._order), visit))
        return True

    @property
    def next_due(self) -> float | None:
        """When the first delayed visit may be made (unix seconds); None if there is none."""
        return self._delayed[0][0] if self._delayed else None

    def take_due(self, now: float) -> list[Visit]:
        """Take the delayed visits that may be made now."""
        due = []
        while self._delayed and self._delayed[0][0] <= now:
            due.append(heappop(self._delayed)[2])
        return due

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
