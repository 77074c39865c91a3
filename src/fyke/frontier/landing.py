"""Where seeds lead: what they redirect to counts as a seed, and the scope moves along.

A person who says `example.org` means the site, also where it answers from `www.example.org`. A redirect of a seed comes
as a link of kind `SEED`, met on the page that is the seed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fyke.core.batches import Kind, keep, numbers, texts, u64
from fyke.core.urls import Locator, key_of, locate
from fyke.frontier.filters import Filters


class Landing:
    """The seeds that are known, and what they landed on; `filters` hear of both."""

    def __init__(self, filters: Filters, saved: Mapping[str, Any]) -> None:
        self._filters = filters
        self._seeds: dict[int, str] = {}  # URL by key, those that seeds redirect to among them
        self._unnamed = False  # whether there are seeds besides, of a list
        self._landed: dict[str, str] = {}  # where seeds redirect to
        self._unlanded = {int(via): target for via, target in saved.get("unlanded", {}).items()}
        for seed, target in saved.get("landed", {}).items():
            self._land(seed, target)

    def know(self, seeds: Sequence[Locator], *, named: bool) -> None:
        """The scope is that of `seeds` too. Not `named`: there are so many that their URLs stay in memory only where
        the scope is one of folders; else a redirect within the scope needs no more to be known."""
        self._filters.begin(seeds)
        if named or self._filters.by_folder:
            self._seeds.update((seed.key, seed.url.decode()) for seed in seeds)
        else:
            self._unnamed = True

    def follow(self, urls: pa.RecordBatch) -> None:
        """Take note of where seeds redirect to, if `urls` say so; they need not be of this shard."""
        redirects = keep(urls, (numbers(urls, "kind") == Kind.SEED) & (u64(urls, "via") != 0))
        for via, target in zip(u64(redirects, "via").tolist(), texts(redirects), strict=True):
            seed = self._seeds.get(via)
            if seed is None and self._unnamed:
                if self._filters.reaches(locate(target)):
                    continue
                seed = target
            if seed is None:
                self._unlanded[via] = target  # of another shard, from where it was not heard yet
            elif self._landed.get(seed) != target:
                self._land(seed, target)

    def _land(self, seed: str, target: str) -> None:
        """`seed` redirects to `target`, which counts as a seed from now on."""
        self._landed[seed] = target
        self._seeds[key_of(target)] = target
        self._filters.land(locate(seed), locate(target))
        further = self._unlanded.pop(key_of(target), None)
        if further is not None:
            self._land(target, further)

    def state(self) -> dict[str, Any]:
        return {"landed": self._landed, "unlanded": {str(via): target for via, target in self._unlanded.items()}}
