"""Carries letters: seals them with their bodies in the drawer, and has the transport send them when they are due.

Each of the office's parts puts its letters in here. Invariant: a kept letter's body is in the drawer as long as the
letter is kept.
"""

from collections.abc import Iterable
from typing import Protocol

from fyke.crawl.post import columns
from fyke.crawl.post.dealings import Mail
from fyke.crawl.post.drawer import Drawer
from fyke.crawl.post.letters import Letter, Letters
from fyke.disk.store import Store


class Transport(Protocol):
    """Carries envelopes. It may lose them, repeat them and put them out of order."""

    def send(self, to: int, frame: bytes) -> None:
        """Carry the frame to the agent `to`, if that can be done now."""


class Mailbag:
    """The letters of an agent to `others`."""

    def __init__(self, letters: Letters, others: Iterable[int], transport: Transport, store: Store) -> None:
        self._letters = letters
        self._others = tuple(others)
        self._transport = transport
        self._drawer = Drawer(store, letters.bodies())

    def __repr__(self) -> str:
        return f"Mailbag({self._letters!r}, {self._drawer!r})"

    def keep(self, to: int, kind: Mail, body: bytes) -> None:
        """Seal a letter to the agent `to`, kept until a checkpoint there has it."""
        self._letters.seal(to, kind, self._drawer.put(body))

    def pass_on(self, to: int, kind: Mail, body: bytes) -> None:
        """Seal a letter to the agent `to` in its present life."""
        self._letters.seal(to, kind, body, passing=True)

    def send(self, now: float) -> None:
        """Send the envelopes that are due."""
        for other in self._others:
            for envelope in self._letters.post(other, now):
                self._transport.send(other, columns.envelope_sealed(envelope, self._body(envelope.letter)))

    def _body(self, letter: Letter | None) -> bytes:
        if letter is None:
            return b""
        body: bytes = letter.body if letter.lane else self._drawer.get(letter.body)
        return body

    def forget_dropped(self) -> None:
        """Let go of the bodies of letters that are no longer kept."""
        self._drawer.drop(self._letters.dropped())

    def close(self) -> None:
        """Give the files back."""
        self._drawer.close()
