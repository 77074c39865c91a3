"""What must an agent do about each envelope? Keeps its letters and the visits it handed out in step.

The office (`office`) acts on the answers with columns, sockets and files. The simulator that judges the protocol acts
on them with toys, so that the code that is judged is the code that runs. Pure, as are `letters` and `handed`, which
give the reasons.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from fyke.crawl.post.handed import Handed, ToldIn
from fyke.crawl.post.letters import Envelope, Letter, Letters


class Mail(IntEnum):
    """The kinds of letters."""

    LINKS = 0  # kept: links of pages, to the shard of the links' domains
    OUTCOMES = 1  # kept: how visits ended, to the shard that lent them
    HOLDS = 2  # kept, for one life of the receiver: visits of its shard that are under way
    VISITS = 3  # passing: to the agent that owns the server's address
    RETURNED = 4  # kept, so that it stays in order with HOLDS: visits not made, to the shard that lent them
    ERRAND = 5  # passing: a robots.txt to which another redirects, to the shard of its host
    ANSWER = 6  # passing: the answer to an errand, by the same shard to the agent that wants it
    FIXED = 7  # kept: as LINKS, but rewrite rules leave them alone


@dataclass(slots=True)
class Deeds:
    """What is to be done now, in this order."""

    is_new_life: bool = False  # let go of waiting visits of the sender's shard, then write HOLDS
    letter: Letter | None = None  # to be applied
    done: list[Any] = field(default_factory=list)  # rows that ended and are safe
    again: list[Any] = field(default_factory=list)  # rows that ended, and must be visited again
    lost: list[int] = field(default_factory=list)  # keys of visits that are out, and must be handed out again


class Dealings:
    """The letters of agent `me`, in its present `life`, and the visits of its shard that are with others."""

    def __init__(
        self, me: int, others: Iterable[int], life: int, rest_s: float, saved: Mapping[str, Any] | None = None
    ) -> None:
        """`saved` is what `Letters.state` gave."""
        there = frozenset(others)
        self.me = me
        self.letters = Letters(me, there, life, saved)
        self.handed = Handed(there, rest_s)
        self._others = there
        self._ready = False

    def __repr__(self) -> str:
        return f"Dealings({self.letters!r}, {self.handed!r})"

    def take(self, envelope: Envelope, now: float) -> Deeds:
        """Take in `envelope`; return what is to be done about it."""
        sender = envelope.sender
        is_new_life, letter = self.letters.take(envelope)
        if is_new_life:
            self.handed.await_holds(sender, now)
        return Deeds(is_new_life, letter)

    def holding(self, other: int, under_way: list[tuple[int, int]], resting: list[tuple[int, float]]) -> list[Any]:
        """Return the body of a letter HOLDS to `other` in its new life: visits of its shard under way here (key and
        host each), and hosts that rest, with the seconds left."""
        return [self.letters.knows(other), under_way, resting]

    def held(self, sender: int, letter: Letter, now: float) -> None:
        """Note what the letter HOLDS of `sender` says."""
        life, under_way, resting = letter.body
        if life == self.letters.life and letter.life == self.letters.knows(sender):
            self.handed.holds(sender, letter.life, map(tuple, under_way), map(tuple, resting), now)

    def after(self, sender: int, now: float) -> Deeds:
        """Return what is to be done now that the letter of `sender` was applied."""
        deeds = Deeds()
        for life, end in self.letters.settle(sender):
            done, again = self.handed.settle(sender, life, end)
            deeds.done += done
            deeds.again += again
        for life, number in self.letters.safe(sender).items():
            deeds.done += self.handed.safe(sender, life, number)
        if self.letters.settled(sender):
            deeds.lost = self.handed.lost(sender, self.letters.knows(sender), now)
        return deeds

    def reachable(self, other: int) -> bool:
        """Return whether visits may be handed to `other` now."""
        return other == self.me or (self.handed.reachable(other) and self.letters.settled(other))

    @property
    def ready(self) -> bool:
        """True if all others have said, in our present life, what they hold and what ended before: hosts may be asked.
        It stays true: an agent that dies later leaves its hosts pinned, so it is not waited for."""
        self._ready = self._ready or (self.handed.ready and all(map(self.letters.settled, self._others)))
        return self._ready

    def told(
        self, sender: int, letter: Letter, keys: Sequence[int], row_of: Callable[[int], Any], now: float
    ) -> list[int]:
        """Note that a letter of `sender` told the ends of the visits `keys`. Return the keys of those that were out:
        they are not safe yet. `row_of` gives the rows of the others, by place."""
        told = ToldIn(sender, letter.life, letter.number)
        were_out = [self.handed.told(sender, key, now) for key in keys]
        for place, key in enumerate(keys) if not all(were_out) else ():
            if not were_out[place]:
                self.handed.note_early(told, key, row_of(place))
        return [key for key, out in zip(keys, were_out, strict=True) if out]

    def early(self, key: int) -> tuple[ToldIn, Any, bool] | None:
        """Return the letter that told early that the visit `key`, about to be handed out, ended; its row; and whether
        it is safe."""
        found = self.handed.early(key)
        return None if found is None else (*found, self.letters.is_safe(*found[0]))
