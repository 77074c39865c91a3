"""What did pages say by which rewrite rules are tried?

The number of each page's content is kept on disk, by the key of its URL. What a page holds (`harvest/containment`) is
large, and only rules for views ask for it. Most views are linked to by their page, so it is kept for the latest pages.

Bounded: memory holds what the drum takes, and what `MOST_RECENT` pages hold. A restart forgets the latter.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fyke.core.batches import NO_KEYS, U64
from fyke.disk.late import LateDrum
from fyke.disk.store import Store
from fyke.harvest.containment import is_part

CONTENT_BYTES = 400  # of memory for each content before the drum has it: two Python integers in a dictionary
MOST_RECENT = 1024


class Contents(LateDrum):
    """Contents of pages by key, as last fetched; 0 for a URL that is no page."""

    def __init__(self, store: Store, memory_bytes: int, saved: dict[str, Any] | None) -> None:
        super().__init__(
            store, "rewrite-contents", saved, value=np.uint64, memory_bytes=memory_bytes, entry_bytes=CONTENT_BYTES
        )
        self._held: OrderedDict[int, U64] = OrderedDict()

    def enter(self, key: int, content: int, held: Sequence[int] = ()) -> None:
        """Note the `content` of the page with `key`, and what it holds, if that was read."""
        self._new[key] = content
        self._make_room()
        if held:
            self._held[key] = np.array(held, np.uint64)
            self._held.move_to_end(key)
            if len(self._held) > MOST_RECENT:
                self._held.popitem(last=False)

    def of(self, key: int) -> tuple[bool, int]:
        """Return whether the page with `key` was fetched, and its content."""
        if key in self._new:
            return True, self._new[key]
        found, content = self._drum.get(key)
        return found, int(content) if found else 0

    def can_be_compared(self, key: int) -> bool:
        """Return whether it is known what the page with `key` holds, or will be once it is fetched."""
        return key in self._held or not self.of(key)[0]

    def is_part(self, part: int, whole: int) -> bool | None:
        """Return whether one page holds what another does, by their keys; None if that is not known."""
        return is_part(self._held.get(part, NO_KEYS), self._held.get(whole, NO_KEYS))
