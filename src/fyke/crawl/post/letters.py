"""Letters between agents: numbered, kept until they are safe where they went, applied once. No clock, socket or file.

Each pair of agents has two lanes in each direction:

- **Kept** letters (links, outcomes) are numbered within a *life* of their sender, one run of its process. They are kept
  until a checkpoint of the receiver has them, and are in the sender's checkpoints, so they outlive both.
- **Passing** letters (visits) are numbered for one life of the sender and one of the receiver. They are kept until
  applied, and end with either life: the lender of a visit hands it out again.

Letters are sent at once, before a checkpoint of the sender has them. A sender that dies may thus forget letters that
were applied. Each envelope says how many letters of each life are `safe`. For earlier lives that number is final: later
letters told of work that will be done again. Links may be applied twice without harm, because URL-seen forgets nothing.
Outcomes need more: see `handed`.

Why not send after the checkpoint? Then nothing would have to be taken back, but each step of a crawl would last until
the next checkpoint, ten seconds away, or need one of its own. A small crawl is many steps of few pages.

Invariants. A letter is applied when all before it in its lane were, and never twice within what survives of its reader.
A kept letter that a checkpoint of its sender has is applied in the end, whoever dies. No letter is applied if its
sender does not know the reader's present life: the reader went back since, and must first be told what it lost.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

AHEAD = 16  # letters on their way to an agent, in each lane
AGAIN_S = 1.0  # after which letters without an answer are sent again


class Letter(NamedTuple):
    """A letter. `body` is anything the sender gave; of a kept letter, something JSON can hold."""

    life: int  # of its sender, when it was sealed
    lane: int  # 0: kept; otherwise the receiver's life that it is for
    number: int  # in its lane, from 1
    kind: int
    body: Any


@dataclass(frozen=True, slots=True)
class Envelope:
    """One agent's message to another: at most one letter, and how far it has come with the other's letters."""

    sender: int
    life: int
    reader: int  # the receiver's life, as the sender knows it; 0: not at all
    read: Mapping[int, int]  # kept letters of the receiver that were applied, by their life
    durable: Mapping[int, int]  # those that a checkpoint of the sender has
    passed: int  # passing letters of the receiver that were applied
    safe: Mapping[int, int]  # kept letters of the sender that its own checkpoint has, by their life
    settled: int  # lives of the receiver before this are over for the sender, also after a restart
    letter: Letter | None = None


class Taken(NamedTuple):
    """`is_new_life`: the sender of an envelope, in its present life, is heard for the first time in ours. `letter` is
    to be applied after that was dealt with."""

    is_new_life: bool
    letter: Letter | None


@dataclass(slots=True)
class _Lane:
    """Letters of one life to one agent, in one lane."""

    letters: deque[Letter] = field(default_factory=deque)
    base: int = 0  # number of the last that was dropped
    sent: int = 0
    read: int = 0

    def tell(self, read: int) -> None:
        """Note that letters up to `read` were applied there."""
        self.read = max(self.read, read)
        self.sent = max(self.sent, self.read)

    def drop(self, number: int) -> list[Letter]:
        """Drop letters up to `number`; return them."""
        dropped = []
        while self.letters and self.letters[0].number <= number:
            dropped.append(self.letters.popleft())
        self.base = max(self.base, number)
        return dropped

    def rewind(self) -> None:
        """Send again all letters that are not safe there: the reader may have forgotten them."""
        self.sent = self.read = self.base

    def next(self) -> list[Letter]:
        """Return the letters to be sent now."""
        last = self.read + AHEAD
        return [letter for letter in self.letters if self.sent < letter.number <= last]

    @property
    def waiting(self) -> bool:
        """True if there are letters that were not sent."""
        return bool(self.letters) and self.letters[-1].number > self.sent

    @property
    def unread(self) -> bool:
        """True if there are letters that were not applied."""
        return bool(self.letters) and self.letters[-1].number > self.read


@dataclass(slots=True)
class _Peer:
    """Everything that is known of another agent."""

    life: int = 0
    heard: int = 0  # its life that we heard from in our present one
    knows: int = 0  # our life that it knows
    # What we write.
    kept: dict[int, _Lane] = field(default_factory=dict)  # by our lives
    last: int = 0  # number of our last kept letter in this life
    ends: dict[int, int] = field(default_factory=dict)  # the last kept letter of our earlier lives
    safe: dict[int, int] = field(default_factory=dict)  # as our newest checkpoint has it
    passing: _Lane = field(default_factory=_Lane)
    last_passing: int = 0
    # What we read.
    read: dict[int, int] = field(default_factory=dict)  # by its lives
    durable: dict[int, int] = field(default_factory=dict)
    passed: int = 0
    told_safe: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)  # its earlier lives from which letters may come
    settled: int = 0  # as our newest checkpoint has it
    # What is owed.
    answer: bool = True
    waited_since: float = -inf

    def lanes(self) -> list[_Lane]:
        lives = sorted(self.kept) if len(self.kept) > 1 else self.kept
        return [*(self.kept[life] for life in lives), self.passing]


class Letters:
    """The letters of agent `me` in its present `life`, a number above those of all its earlier lives."""

    def __init__(self, me: int, others: Iterable[int], life: int, saved: Mapping[str, Any] | None) -> None:
        """`saved` is a `state` of an earlier life."""
        self.me = me
        self.life = life
        self._dropped: list[Any] = []
        there = (saved or {}).get("peers", {})
        self._peers = {other: self._restored(there.get(str(other), {})) for other in others}
        self._snapshot: dict[int, tuple[dict[int, int], dict[int, int], int]] = {}

    def __repr__(self) -> str:
        kept = sum(len(lane.letters) for peer in self._peers.values() for lane in peer.kept.values())
        return f"Letters(agent {self.me}, life {self.life}, {kept} kept)"

    def _restored(self, saved: Mapping[str, Any]) -> _Peer:
        peer = _Peer(life=saved.get("life", 0))
        for life, letters in saved.get("kept", []):
            peer.kept[life] = _Lane(deque(Letter(life, 0, *letter) for letter in letters))
            peer.kept[life].base = letters[0][0] - 1 if letters else 0
            peer.kept[life].rewind()
        peer.ends = dict(saved.get("ends", []))
        peer.safe = dict(peer.ends)
        peer.read = dict(saved.get("read", []))
        peer.durable = dict(peer.read)
        peer.open = set(saved.get("open", []))
        peer.settled = saved.get("settled", 0)
        peer.kept[self.life] = _Lane()
        return peer

    # --- writing

    def seal(self, to: int, kind: int, body: Any, *, passing: bool = False) -> None:
        """Add a letter to the agent `to`. A passing letter is for its present life, which must be known."""
        peer = self._peers[to]
        if passing:
            peer.last_passing += 1
            peer.passing.letters.append(Letter(self.life, peer.life, peer.last_passing, kind, body))
        else:
            peer.last += 1
            peer.kept[self.life].letters.append(Letter(self.life, 0, peer.last, kind, body))

    def knows(self, other: int) -> int:
        """Return the life of `other` that is known; 0 before it was heard."""
        return self._peers[other].life

    def post(self, to: int, now: float) -> list[Envelope]:
        """Return the envelopes to send to the agent `to` now (seconds of any clock): letters, an answer, or a sign of
        life."""
        peer = self._peers[to]
        lanes = peer.lanes()
        overdue = now - peer.waited_since >= AGAIN_S
        if overdue:
            peer.waited_since = now
            for lane in lanes:
                lane.sent = lane.read
        envelopes = []
        for lane in lanes if peer.life else ():
            for letter in lane.next() if lane.waiting else ():
                envelopes.append(self._envelope(to, letter))
                lane.sent = letter.number
                peer.waited_since = now
        if not envelopes and (peer.answer or (overdue and peer.knows != self.life)):
            envelopes.append(self._envelope(to, None))
        peer.answer = peer.answer and not envelopes
        return envelopes

    def _envelope(self, to: int, letter: Letter | None) -> Envelope:
        peer = self._peers[to]
        return Envelope(
            self.me, self.life, peer.life, dict(peer.read), dict(peer.durable), peer.passed, dict(peer.safe),
            peer.settled, letter,
        )  # fmt: skip

    @property
    def quiet(self) -> bool:
        """True if all letters were applied, as far as present lives go: an agent that died may have lost letters it had
        applied."""
        unread = any(lane.unread for peer in self._peers.values() for lane in peer.lanes())
        return not unread and all(map(self.settled, self._peers))

    def bodies(self) -> list[Any]:
        """Return the bodies of the letters that are kept."""
        return [letter.body for peer in self._peers.values() for lane in peer.kept.values() for letter in lane.letters]

    def dropped(self) -> list[Any]:
        """Return the bodies of letters that were dropped since the last call."""
        dropped, self._dropped = self._dropped, []
        return dropped

    # --- reading

    def take(self, envelope: Envelope) -> Taken:
        """Take in an envelope."""
        peer = self._peers[envelope.sender]
        if envelope.life < peer.life:
            return Taken(False, None)  # from before it died
        if envelope.life > peer.life:
            self._reborn(peer, envelope.life, envelope.safe)
        is_new_life, peer.heard = peer.heard != envelope.life, envelope.life
        self._hear(peer, envelope)
        letter = envelope.letter
        if letter is not None:
            peer.answer = True
            if envelope.reader != self.life or not self._is_next(peer, letter):
                letter = None
        return Taken(is_new_life, letter)

    def _reborn(self, peer: _Peer, life: int, safe: Mapping[int, int]) -> None:
        peer.open |= {before for before in (peer.life, *safe) if 0 < before < life and before >= peer.life}
        peer.life = life
        peer.knows = 0
        peer.passing, peer.last_passing, peer.passed = _Lane(), 0, 0
        peer.told_safe = {}
        peer.answer = True
        for lane in peer.kept.values():
            lane.rewind()

    def _hear(self, peer: _Peer, envelope: Envelope) -> None:
        for life, lane in peer.kept.items():
            lane.tell(envelope.read.get(life, 0))
            self._dropped += [letter.body for letter in lane.drop(envelope.durable.get(life, 0))]
        if envelope.reader == self.life:
            peer.knows = self.life
            peer.passing.tell(envelope.passed)
            peer.passing.drop(envelope.passed)
        for life, number in envelope.safe.items():
            peer.told_safe[life] = max(number, peer.told_safe.get(life, 0))
        for life in [life for life in peer.ends if life < envelope.settled]:
            del peer.ends[life]
        for life in [life for life, lane in peer.kept.items() if life != self.life and not lane.letters]:
            del peer.kept[life]
        over = {life for life in peer.read if life < min(peer.open, default=peer.life)} - envelope.safe.keys()
        for life in over:
            del peer.read[life]

    def _is_next(self, peer: _Peer, letter: Letter) -> bool:
        if letter.lane:
            if letter.lane != self.life or letter.number != peer.passed + 1:
                return False
            peer.passed += 1
            return True
        if letter.number != peer.read.get(letter.life, 0) + 1:
            return False  # a repeat, or one before it is missing
        peer.read[letter.life] = letter.number
        return True

    def safe(self, other: int) -> Mapping[int, int]:
        """Return how many kept letters of `other` its checkpoint has, by its lives."""
        return self._peers[other].told_safe

    def settle(self, other: int) -> list[tuple[int, int]]:
        """Return earlier lives of `other` from which nothing more comes, each once, with the number of its last letter
        that counts. What later letters told will be done, and told, again."""
        peer = self._peers[other]
        if not peer.knows and peer.open:
            return []  # what it says was not said to us
        ends = {life: peer.told_safe.get(life, 0) for life in peer.open}
        over = sorted((life, end) for life, end in ends.items() if peer.read.get(life, 0) >= end)
        peer.open -= {life for life, _ in over}
        return over

    def is_safe(self, other: int, life: int, number: int) -> bool:
        """Return whether an applied letter of `other` is safe with it; so are all of a settled life."""
        peer = self._peers[other]
        if life < peer.life and life not in peer.open:
            return True
        return number <= peer.told_safe.get(life, 0)

    def settled(self, other: int) -> bool:
        """Return whether all earlier lives of `other` are settled, and it knows our present one."""
        peer = self._peers[other]
        return bool(peer.life) and peer.knows == self.life and not peer.open

    # --- checkpoints

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps. Call `committed` once it is safe."""
        self._snapshot = {}
        saved = {}
        for other, peer in self._peers.items():
            ends = {**peer.ends, self.life: peer.last} if peer.last else dict(peer.ends)
            settled = min(peer.open, default=peer.life)
            self._snapshot[other] = dict(peer.read), ends, settled
            saved[str(other)] = {
                "life": peer.life,
                "kept": [[life, [list(letter[2:]) for letter in lane.letters]] for life, lane in peer.kept.items()],
                "ends": [list(end) for end in ends.items()],
                "read": [list(number) for number in peer.read.items()],
                "open": sorted(peer.open),
                "settled": settled,
            }
        return {"life": self.life, "peers": saved}

    def committed(self) -> None:
        """Note that the checkpoint with the last `state` is safe."""
        for other, (durable, safe, settled) in self._snapshot.items():
            peer = self._peers[other]
            peer.durable, peer.safe, peer.settled, peer.answer = durable, safe, settled, True
        self._snapshot = {}
