"""How does one know at once what a Drum is told later? A small dictionary before it.

A turn cannot wait for a merge. So what is entered is held in memory, and the Drum is told of it by the batch: when
there is no more room, and at each checkpoint.

Invariant: what was entered is known from then on, also after a restart from a later checkpoint.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fyke.core.closing import Closing
from fyke.disk.drum import Drum
from fyke.disk.store import Store


class LateDrum(Closing):
    """A Drum, and what was entered since it was told. Who inherits says how it is asked."""

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
        """Of values of this dtype, or of keys alone. What waits takes `entry_bytes` each, and `memory_bytes` at most;
        the table of the Drum as much again."""
        self._drum = Drum(store, name, state, value=value, memory_bytes=memory_bytes)
        self._value = value
        self._most = max(1, memory_bytes // entry_bytes)
        self._new: dict[int, Any] = {}  # since the drum was told

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._drum!r})"

    def __len__(self) -> int:
        return len(self._drum) + len(self._new)

    def _make_room(self) -> None:
        """Tell the Drum, if as much was entered as may wait."""
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
