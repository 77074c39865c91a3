"""An even sample of the distinct URLs discovered, of bounded size: how many are spam's?

The frontier counts the URLs it has met, but does not know their owners. Keys are uniform hashes, so the keys below a
threshold are an even sample. When they are too many, the threshold is halved (adaptive sampling, Flajolet 1990, after
Wegman). The tally feeds it with every link and reads it.

Invariant: holds exactly the distinct keys below its threshold of all that were added.
"""

from typing import Any

import numpy as np

from fyke.core.batches import U64, Mask

MOST_KEYS = 1 << 15  # so a share is known to half a per cent
GATHERED = 1 << 14


class DistinctSample:
    """Distinct keys below `threshold`, and which of them are spam's."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        saved = state or {}
        self._threshold = int(saved.get("threshold", 1 << 64))
        self._keys = np.array(saved.get("keys", []), np.uint64)
        self._spam = np.array(saved.get("spam", []), np.bool_)
        self._new: list[tuple[U64, Mask]] = []
        self._gathered = 0

    def add(self, keys: U64, spam: Mask) -> None:
        """Add links to pages with these keys: uint64[n], bool[n]."""
        if self._threshold < 1 << 64:
            below = keys < np.uint64(self._threshold)
            keys, spam = keys[below], spam[below]
        self._new.append((keys, spam))
        self._gathered += len(keys)
        if self._gathered >= GATHERED:
            self._settle()

    def _settle(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._new)])
        spam = np.concatenate([self._spam, *(spam for _, spam in self._new)])
        self._new, self._gathered = [], 0
        self._keys, first = np.unique(keys, return_index=True)
        self._spam = spam[first]
        while len(self._keys) > MOST_KEYS:
            self._threshold //= 2
            count = int(np.searchsorted(self._keys, np.uint64(self._threshold)))
            self._keys, self._spam = self._keys[:count], self._spam[:count]

    @property
    def distinct(self) -> float:
        """Estimated number of distinct keys that were added."""
        self._settle()
        return len(self._keys) * (2.0**64 / self._threshold)

    @property
    def spam_share(self) -> float:
        """Share of spam among the distinct keys."""
        self._settle()
        return float(self._spam.mean()) if len(self._spam) else 0.0

    def state(self) -> dict[str, Any]:
        self._settle()
        return {"threshold": self._threshold, "keys": self._keys.tolist(), "spam": self._spam.tolist()}
