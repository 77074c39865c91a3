"""What an agent has to do about each envelope: its letters and the visits it has handed out, kept in step.

The office (`office`) acts on it with columns, sockets and files; the simulator that judges the protocol acts on it with
toys. So what is judged is what runs. Pure, as `letters` and `handed` are, which say why things are as they are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from fyke.crawl.post.handed import Handed, ToldIn
from fyke.crawl.post.letters import Envelope, Letter, Letters


class Mail(IntEnum):
    """What a letter holds."""

    LINKS = 0  # kept: what pages point at, to the shard of the links' domains
    OUTCOMES = 1  # kept: how visits ended, to the shard that lent them
    HOLDS = 2  # kept, for one life of the receiver: what of its shard is under way
    VISITS = 3  # passing: to the agent that owns the server's address
    RETURNED = 4  # kept, so that it comes in turn with HOLDS: visits that were not made, to the shard that lent them
    ERRAND = 5  # passing: a robots.txt that another led to, to the shard of its host
    ANSWER = 6  # passing: what came of that, by the same shard to the agent that wants it
    GIVEN = 7  # kept: links that rewrite rules leave alone, else as LINKS


@dataclass(slots=True)
class Deeds:
    """What is to be done now, in this order."""

    met: bool = False  # let go of what waits of the sender's shard, then say what it `holds`
    letter: Letter | None = None  # to be applied
    done: list[Any] = field(default_factory=list)  # rows that ended and are safe
    again: list[Any] = field(default_factory=list)  # rows that ended, and must be visited again
    lost: list[int] = field(default_factory=list)  # keys of visits that are out, and must be handed out again


class Dealings:
    """The letters of agent `me`, in its present `life`, and what of its shard is with others."""

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
        """What is to be done about `envelope`."""
        sender = envelope.sender
        met, letter = self.letters.take(envelope)
        if met:
            self.handed.met(sender, now)
        return Deeds(met, letter)

    def holding(self, other: int, under_way: list[tuple[int, int]], resting: list[tuple[int, float]]) -> list[Any]:
        """What to write to `other`, which was just met, in a letter HOLDS: visits of its shard that are under way here
        (key and host each), and hosts that rest, for how many seconds."""
        return [self.letters.knows(other), under_way, resting]

    def held(self, sender: int, letter: Letter, now: float) -> None:
        """What the letter HOLDS of `sender` says."""
        life, under_way, resting = letter.body
        if life == self.letters.life and letter.life == self.letters.knows(sender):
            self.handed.holds(sender, letter.life, map(tuple, under_way), map(tuple, resting), now)

    def after(self, sender: int, now: float) -> Deeds:
        """What is to be done now that the letter of `sender` was applied."""
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
        """Whether visits may be handed to `other` now."""
        return other == self.me or (self.handed.reachable(other) and self.letters.settled(other))

    @property
    def ready(self) -> bool:
        """Whether all others have said, in this life of ours, what they hold and what ended before: then hosts may be
        asked. Who dies later leaves its hosts pinned, so that it is not waited for."""
        self._ready = self._ready or (self.handed.ready and all(map(self.letters.settled, self._others)))
        return self._ready

    def told(
        self, sender: int, letter: Letter, keys: Sequence[int], row_of: Callable[[int], Any], now: float
    ) -> list[int]:
        """Outcomes in a letter of `sender`: the keys of visits that were out, which now ended and are not safe yet.
        `row_of` is asked for the rows, by their places, of those that were not."""
        told = ToldIn(sender, letter.life, letter.number)
        were_out = [self.handed.told(sender, key, now) for key in keys]
        for place, key in enumerate(keys) if not all(were_out) else ():
            if not were_out[place]:
                self.handed.note_early(told, key, row_of(place))
        return [key for key, out in zip(keys, were_out, strict=True) if out]

    def early(self, key: int) -> tuple[ToldIn, Any, bool] | None:
        """Where it was told that the visit `key`, about to be handed out, has ended; its row; whether that is safe."""
        found = self.handed.early(key)
        return None if found is None else (*found, self.letters.is_safe(*found[0]))
