"""Which record has this content in full? A copy of it, at any URL, becomes a revisit record that names that record.

A Drum maps the number of a page's content (`Page.fingerprint`) to the place of the newest record that has it in full.
The Barn asks it for the pages of a step, and the writer reads at the place what the record is called. Digests decide
whether the payload is the same (`fyke.archive.records.has_payload_of`): if two contents have one number, or a file is
gone, a copy is archived in full.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fyke.disk.late import LateDrum
from fyke.disk.store import Store

_PLACE = np.dtype([("serial", "<u4"), ("offset", "<u8"), ("length", "<u8")])
ENTRY_BYTES = 400  # of memory, until the Drum has it


class Place(NamedTuple):
    """Place of a record: the number of its file, and its bytes there."""

    serial: int
    offset: int
    length: int


class Payloads(LateDrum):
    """The places of contents in the archive."""

    def __init__(self, store: Store, memory_bytes: int, state: dict[str, Any] | None = None) -> None:
        super().__init__(store, "payloads", state, value=_PLACE, memory_bytes=memory_bytes, entry_bytes=ENTRY_BYTES)

    def known(self, fingerprints: Sequence[int]) -> dict[int, Place]:
        """Return the places of these contents, as far as the drum has them; `entered` has later ones."""
        self._make_room()
        values = self._drum.stored(np.array(fingerprints, np.uint64))
        return {key: Place(*place) for key, place in zip(fingerprints, values.tolist(), strict=True) if place[2]}

    def entered(self, fingerprint: int) -> Place | None:
        """Return the place of this content, if it was entered since the last update of the drum."""
        return self._new.get(fingerprint)

    def enter(self, fingerprint: int, place: Place) -> None:
        """Enter the record at `place`, which has this content in full."""
        self._new[fingerprint] = place
