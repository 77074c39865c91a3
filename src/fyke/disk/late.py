"""A Drum with a small dictionary before it, whose entries are known at once.

A turn cannot wait for a merge. So new entries are held in memory and given to the Drum in batches: when memory is full,
and at each checkpoint.

Invariant: an entry is known from then on, also after a restart from a later checkpoint.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.closing import Closing
from fyke.disk.drum import Drum
from fyke.disk.store import Store


class LateDrum(Closing):
    """A Drum, and the entries that it was not given yet. Subclasses add the look-ups."""

    def __init__(
        self,
        store: Store,
        name: str,
        state: dict[str, Any] | None,
        *,
        value: npt.DTypeLike | None = None,
        memory_bytes: int,
        entry_bytes: int,
    ) -> None:
        """`value` is the dtype of the values, None for keys alone. Waiting entries take `entry_bytes` each and at most
        `memory_bytes`; the Drum takes as much again."""
        self._drum = Drum(store, name, state, value=value, memory_bytes=memory_bytes)
        self._value = value
        self._most = max(1, memory_bytes // entry_bytes)
        self._new: dict[int, Any] = {}  # entries that the drum was not given yet

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._drum!r})"

    def __len__(self) -> int:
        return len(self._drum) + len(self._new)

    def _make_room(self) -> None:
        """Give the entries to the Drum if memory is full."""
        if len(self._new) >= self._most:
            self._tell()

    def _tell(self) -> None:
        values = None if self._value is None else np.array([*self._new.values()], self._value)
        self._drum.update(np.fromiter(self._new, np.uint64, len(self._new)), values)
        self._drum.settle()
        self._new.clear()

    def state(self) -> dict[str, Any]:
        self._tell()
        return self._drum.state()

    def close(self) -> None:
        self._drum.close()
