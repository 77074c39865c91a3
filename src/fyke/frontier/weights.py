"""Weights of pages, which a person asked for: what a visit is worth beside one to others.

A plan multiplies the index of each page by its weight (`revisit.worth`). Without weights each is 1. By in-degree it is
one more than the number of other domains that link to the page's own. From a list it is the number there, or 1 for
pages that are not in it. Invariant: weights are finite and not negative.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import NO_KEYS, U64, numbers, u64
from fyke.frontier.revisit.belief import Column


class Weights:
    """Weights by in-degree, or `weights` [m] of pages with `keys` (uint64[m]); 1 for other pages."""

    def __init__(
        self, *, by_in_degree: bool = False, keys: U64 = NO_KEYS, weights: npt.NDArray[np.float32] | None = None
    ) -> None:
        self.by_in_degree = by_in_degree
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._weights = np.empty(0, np.float32) if weights is None else weights[order]

    def __repr__(self) -> str:
        return f"Weights({'by in-degree' if self.by_in_degree else f'of {len(self._keys)} pages'})"

    def of(self, urls: pa.RecordBatch) -> Column:
        """Return the weights of `urls` (a batch with the columns of `URLS`), [n]."""
        if self.by_in_degree:
            return 1.0 + numbers(urls, "in_degree").astype(np.float64)
        if not len(self._keys):
            return np.ones(urls.num_rows)
        keys = u64(urls, "key")
        places = np.searchsorted(self._keys, keys, side="right") - 1  # the last, if a page is there twice
        met = self._keys[np.maximum(places, 0)] == keys
        return np.where(met, self._weights[np.maximum(places, 0)], 1.0)
