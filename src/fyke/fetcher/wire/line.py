"""In which order do requests begin that libcurl was not told of yet?

libcurl begins all requests that it was told of in one call, and each over TLS takes a millisecond. So it is told of a
few at a time. A request needs no handshake if it uses no TLS, or if its host answered lately and is usually still
connected. Such requests do not wait for those with a handshake, nor these for them. Hosts whose certificates are large
have a line of their own, of which few are under way; one that takes long while others wait is `overdue`.

Called by `CurlClient`. Decides and does nothing. Invariant: every slot that joined is here, or was given by `next` or
`leave`, once. At most `MOST_ALONE` of the slots that are alone were given and have not `ended`.
"""

from collections import deque
from collections.abc import Iterator

from fyke.core.visits import Visit
from fyke.fetcher.wire.transfer import Slot, note

STARTS = 8  # requests with a handshake that begin in a turn of the loop
QUICK_STARTS = 32  # the same, without a handshake
MOST_ALONE = 8
ALONE_S = 5.0


class WaitingLine:
    """Slots that wait, hosts that answered, and hosts whose certificates are large."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()
        self._quick: deque[Slot] = deque()  # that need no handshake
        self._alone: deque[Slot] = deque()
        self._under_way: dict[Slot, float] = {}  # slots that are alone, since when (unix seconds), in that order
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
        """Note that the host with this key answered."""
        note(host, self._answered)

    def note_large(self, host: int) -> None:
        """Note that the host with this key sends much before it is asked."""
        note(host, self._large)

    def is_large(self, host: int) -> bool:
        """Return whether `note_large` was called for the host with this key, as far as is remembered."""
        return host in self._large

    def join(self, slot: Slot) -> None:
        """Let `slot` wait for its turn."""
        visit = slot.request.visit
        is_quick = not visit.url.startswith("https:") or visit.host in self._answered
        (self._alone if slot.alone else self._quick if is_quick else self._slots).append(slot)

    @property
    def may_begin(self) -> bool:
        """True if a slot may begin now."""
        return bool(self._slots or self._quick or (self._alone and len(self._under_way) < MOST_ALONE))

    def turn(self, now: float) -> Iterator[Slot]:
        """Yield the slots that begin in this turn of the loop, at `now` (unix seconds)."""
        for _ in range(min(len(self._quick), QUICK_STARTS)):
            yield self._quick.popleft()
        for _ in range(STARTS):
            if (slot := self.next(now)) is None:
                return
            yield slot

    def next(self, now: float) -> Slot | None:
        """Return the slot whose turn it is, or None."""
        if self._alone and len(self._under_way) < MOST_ALONE:
            slot = self._alone.popleft()
            self._under_way[slot] = now
            return slot
        slots = self._slots or self._quick
        return slots.popleft() if slots else None

    def ended(self, slot: Slot) -> None:
        """Note that a slot from `next` has ended."""
        self._under_way.pop(slot, None)

    def leave(self, visit: Visit) -> Slot | None:
        """Take out the slot that waits to make `visit`; None if there is none."""
        for slots in self._lines:
            for slot in slots:
                if slot.request.visit is visit:
                    slots.remove(slot)
                    return slot
        return None

    def overdue(self, now: float) -> list[Slot]:
        """Return the slots that are alone and for which others waited long enough."""
        return [slot for slot, since in self._under_way.items() if self._alone and now - since >= ALONE_S]
