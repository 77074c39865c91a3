"""In which order requests are begun: those that libcurl was not told of yet.

libcurl begins all that it was told of in one call, and each over TLS takes a millisecond: so they are told a few at a
time. What needs no handshake, since it goes over no TLS or its host answered lately and is connected still as a rule,
does not wait for those that do, nor these for it. Hosts whose certificates are large have a line of their own, of which
few are under way; one that takes long while others wait is `overdue`.

Called by `CurlEngine`. Decides and does nothing. Invariant: every slot that joined is here, or was given by `next` or
`leave`, once; of those that are alone, `MOST_ALONE` at most were given and have not `ended`.
"""

from collections import deque
from collections.abc import Iterator

from fyke.core.visits import Visit
from fyke.fetcher.wire.transfer import Slot, note

STARTS = 8  # that begin in a turn of the loop, and shake hands
QUICK_STARTS = 32  # the same, of those without a handshake
MOST_ALONE = 8
ALONE_S = 5.0


class WaitingLine:
    """Slots that wait, hosts that answered, and those whose certificates are large."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()
        self._quick: deque[Slot] = deque()  # that need no handshake
        self._alone: deque[Slot] = deque()
        self._under_way: dict[Slot, float] = {}  # of those, since when (unix seconds), in that order
        self._large: set[int] = set()
        self._answered: set[int] = set()

    def __repr__(self) -> str:
        return f"WaitingLine({len(self)} wait)"

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    @property
    def _lines(self) -> tuple[deque[Slot], ...]:
        return self._slots, self._quick, self._alone

    def note_answered(self, host: int) -> None:
        """The host with this key answered."""
        note(host, self._answered)

    def note_large(self, host: int) -> None:
        """What the host with this key sends before it is asked is large."""
        note(host, self._large)

    def is_large(self, host: int) -> bool:
        """Whether `note_large` was called for the host with this key, as far as is remembered."""
        return host in self._large

    def join(self, slot: Slot) -> None:
        """Let `slot` wait for its turn."""
        visit = slot.request.visit
        is_quick = not visit.url.startswith("https:") or visit.host in self._answered
        (self._alone if slot.alone else self._quick if is_quick else self._slots).append(slot)

    @property
    def may_begin(self) -> bool:
        """Whether there is one whose turn it is."""
        return bool(self._slots or self._quick or (self._alone and len(self._under_way) < MOST_ALONE))

    def turn(self, now: float) -> Iterator[Slot]:
        """Those that begin in this turn of the loop, at `now` (unix seconds)."""
        for _ in range(min(len(self._quick), QUICK_STARTS)):
            yield self._quick.popleft()
        for _ in range(STARTS):
            if (slot := self.next(now)) is None:
                return
            yield slot

    def next(self, now: float) -> Slot | None:
        """Whose turn it is, if anybody's."""
        if self._alone and len(self._under_way) < MOST_ALONE:
            slot = self._alone.popleft()
            self._under_way[slot] = now
            return slot
        slots = self._slots or self._quick
        return slots.popleft() if slots else None

    def ended(self, slot: Slot) -> None:
        """What `next` gave is over."""
        self._under_way.pop(slot, None)

    def leave(self, visit: Visit) -> Slot | None:
        """The slot that waits to make `visit`, taken out; None where none does."""
        for slots in self._lines:
            for slot in slots:
                if slot.request.visit is visit:
                    slots.remove(slot)
                    return slot
        return None

    def overdue(self, now: float) -> list[Slot]:
        """Those that are alone and for whom others waited long enough."""
        return [slot for slot, since in self._under_way.items() if self._alone and now - since >= ALONE_S]
