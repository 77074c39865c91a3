"""In which order requests are begun: those that libcurl was not told of yet.

libcurl begins all that it was told of in one call, and each over TLS takes a millisecond: so they are told a
few at a time. Hosts whose certificates are large have a line of their own, of which few are under way; one that takes
long while others wait is `overdue`.

Called by `CurlEngine`. Decides and does nothing. Invariant: every slot that joined is here, or was given by `next` or
`leave`, once; of those that are alone, `MOST_ALONE` at most were given and have not `ended`.
"""

from collections import deque

from fyke.core.visits import Visit
from fyke.fetcher.wire.transfer import Slot

MOST_ALONE = 8
ALONE_S = 5.0
MOST_NOTED = 10_000  # hosts remembered


class WaitingLine:
    """Slots that wait, and hosts whose certificates are large."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()
        self._alone: deque[Slot] = deque()
        self._under_way: dict[Slot, float] = {}  # of those, since when (unix seconds), in that order
        self._large: set[int] = set()

    def __repr__(self) -> str:
        return f"WaitingLine({len(self)} wait)"

    def __len__(self) -> int:
        return len(self._slots) + len(self._alone)

    def note_large(self, host: int) -> None:
        """What the host with this key sends before it is asked is large."""
        if len(self._large) >= MOST_NOTED:
            self._large.clear()
        self._large.add(host)

    def is_large(self, host: int) -> bool:
        """Whether it was noted so."""
        return host in self._large

    def join(self, slot: Slot) -> None:
        """Let `slot` wait for its turn."""
        (self._alone if slot.alone else self._slots).append(slot)

    @property
    def may_begin(self) -> bool:
        """Whether there is one whose turn it is."""
        return bool(self._slots or (self._alone and len(self._under_way) < MOST_ALONE))

    def next(self, now: float) -> Slot | None:
        """Whose turn it is, if anybody's."""
        if self._alone and len(self._under_way) < MOST_ALONE:
            slot = self._alone.popleft()
            self._under_way[slot] = now
            return slot
        return self._slots.popleft() if self._slots else None

    def ended(self, slot: Slot) -> None:
        """What `next` gave is over."""
        self._under_way.pop(slot, None)

    def leave(self, visit: Visit) -> Slot | None:
        """The slot that waits to make `visit`, taken out; None where none does."""
        for slots in (self._slots, self._alone):
            for slot in slots:
                if slot.request.visit is visit:
                    slots.remove(slot)
                    return slot
        return None

    def overdue(self, now: float) -> list[Slot]:
        """Those that are alone and for whom others waited long enough."""
        return [slot for slot, since in self._under_way.items() if self._alone and now - since >= ALONE_S]
