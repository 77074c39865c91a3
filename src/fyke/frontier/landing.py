"""Redirects of seeds: the target counts as a seed, and the scope moves along.

A person who says `example.org` means the site, even if it answers from `www.example.org`. A redirect of a seed comes as
a link of kind `SEED`, met on the page that is the seed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fyke.core.batches import Kind, Mask, keep, numbers, texts, u64
from fyke.core.urls import Locator, key_of, locate
from fyke.frontier.filters import Filters


def are_landings(urls: pa.RecordBatch) -> Mask:
    """Return which of `urls` are where a seed redirects to: bool[n]."""
    landings: Mask = (numbers(urls, "kind") == Kind.SEED) & (u64(urls, "via") != 0)
    return landings


class Landing:
    """The known seeds, and where they landed. `filters` are told of both."""

    def __init__(self, filters: Filters, saved: Mapping[str, Any]) -> None:
        self._filters = filters
        self._seeds: dict[int, str] = {}  # URL by key, with the targets of seeds
        self._unnamed = False  # whether there are more seeds, of a list
        self._landed: dict[str, str] = {}  # where seeds redirect to
        self._unlanded = {int(via): target for via, target in saved.get("unlanded", {}).items()}
        for seed, target in saved.get("landed", {}).items():
            self._land(seed, target)

    def know(self, seeds: Sequence[Locator], *, named: bool) -> None:
        """Take `seeds` into the scope. If not `named`, the seeds are too many to keep their URLs in memory, except in
        scopes by folder; then only redirects out of the scope are noted."""
        self._filters.begin(seeds)
        if named or self._filters.by_folder:
            self._seeds.update((seed.key, seed.url.decode()) for seed in seeds)
        else:
            self._unnamed = True

    def follow(self, urls: pa.RecordBatch) -> None:
        """Note where seeds redirect to, if `urls` say so. The URLs need not be of this shard."""
        redirects = keep(urls, are_landings(urls))
        for via, target in zip(u64(redirects, "via").tolist(), texts(redirects), strict=True):
            seed = self._seeds.get(via)
            if seed is None and self._unnamed:
                if self._filters.reaches(locate(target)):
                    continue
                seed = target
            if seed is None:
                self._unlanded[via] = target  # of another shard, which has not told yet
            elif self._landed.get(seed) != target:
                self._land(seed, target)

    def _land(self, seed: str, target: str) -> None:
        """Count `target`, to which `seed` redirects, as a seed from now on."""
        self._landed[seed] = target
        self._seeds[key_of(target)] = target
        self._filters.land(locate(seed), locate(target))
        further = self._unlanded.pop(key_of(target), None)
        if further is not None:
            self._land(target, further)

    def state(self) -> dict[str, Any]:
        return {"landed": self._landed, "unlanded": {str(via): target for via, target in self._unlanded.items()}}
