"""Which record has this content in full? A copy of it, at whatever URL, becomes a revisit record that names that one.

A Drum has, by the number of a page's content (`Page.fingerprint`), the place of the newest record that has it in full.
The Barn asks it for the pages of a step, and the writer reads at the place what the record is called. Whether it has
the same payload is for the digests to say (`fyke.archive.records.repeats`): where two contents have one number, or a
file is gone, a copy is archived in full.

Invariant: what was entered is found from then on, also after a restart from a later checkpoint.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fyke.core.closing import Closing
from fyke.disk.drum import Drum
from fyke.disk.store import Store

_PLACE = np.dtype([("serial", "<u4"), ("offset", "<u8"), ("length", "<u8")])
ENTRY_BYTES = 400  # of memory, until the Drum is told


class Place(NamedTuple):
    """Where a record lies: the number of its file, and its bytes there."""

    serial: int
    offset: int
    length: int


class Payloads(Closing):
    """The places of contents in the archive."""

    def __init__(self, store: Store, memory_bytes: int, state: dict[str, Any] | None = None) -> None:
        self._drum = Drum(store, "payloads", state, value=_PLACE, memory_bytes=memory_bytes)
        self._most = max(1, memory_bytes // ENTRY_BYTES)
        self._new: dict[int, Place] = {}  # since the drum was told

    def __repr__(self) -> str:
        return f"Payloads({self._drum!r})"

    def known(self, fingerprints: Sequence[int]) -> dict[int, Place]:
        """The places of those of these contents that were entered in the drum; what was entered since it was told,
        `entered` says."""
        if len(self._new) >= self._most:
            self._tell()
        values = self._drum.stored(np.array(fingerprints, np.uint64))
        return {key: Place(*place) for key, place in zip(fingerprints, values.tolist(), strict=True) if place[2]}

    def entered(self, fingerprint: int) -> Place | None:
        """The place of this content, if it was entered since the drum was told."""
        return self._new.get(fingerprint)

    def enter(self, fingerprint: int, place: Place) -> None:
        """The record at `place` has this content in full."""
        self._new[fingerprint] = place

    def _tell(self) -> None:
        places = np.array([*self._new.values()], _PLACE)
        self._drum.update(np.fromiter(self._new, np.uint64, len(self._new)), places)
        self._drum.settle()
        self._new.clear()

    def state(self) -> dict[str, Any]:
        self._tell()
        return self._drum.state()

    def close(self) -> None:
        self._drum.close()
