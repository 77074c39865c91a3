"""Which bodies were read before: a Drum.

The harvest asks it for the pages of a turn. It answers at once, because a page that waits for a merge would have to
be read again from the archive: a look-up in the table, and a bounded set for what was entered since the drum was told.

Invariant: a key that was entered is known from then on, also after a restart from a later checkpoint.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fyke.disk.drum import Drum
from fyke.disk.store import Store


class ContentSeen:
    """Every body read, by a key made of its bytes and of the place where the same bytes mean the same links."""

    def __init__(self, store: Store, memory_bytes: int, state: dict[str, Any] | None = None) -> None:
        self._drum = Drum(store, "content", state, memory_bytes=memory_bytes)
        self._limit = max(1, memory_bytes // 200)  # a Python integer in a set costs about half of that
        self._new: set[int] = set()  # since the drum was last told

    def __repr__(self) -> str:
        return f"ContentSeen({self._drum!r})"

    def __len__(self) -> int:
        return len(self._drum) + len(self._new)

    def known(self, keys: Sequence[int]) -> set[int]:
        """Those of `keys` that were entered in the drum; what was entered since it was told, `entered` says."""
        if len(self._new) >= self._limit:
            self._tell()
        held = self._drum.contains(np.array(keys, np.uint64)).tolist()
        return {key for key, there in zip(keys, held, strict=True) if there}

    def entered(self, key: int) -> bool:
        """Whether `key` was entered since the drum was told."""
        return key in self._new

    def enter(self, key: int) -> None:
        """The body with `key` was read."""
        self._new.add(key)

    def _tell(self) -> None:
        self._drum.update(np.fromiter(self._new, np.uint64, len(self._new)))
        self._drum.settle()
        self._new.clear()

    def state(self) -> dict[str, Any]:
        self._tell()
        return self._drum.state()

    def close(self) -> None:
        self._drum.close()
