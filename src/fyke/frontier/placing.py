"""Which round is a new URL fetched in? Asks STAR for the budget of its domain, and BEAST for its place.

Both use merges that wait until they are worth it. If the crawl knows few domains, their records are looked up at once.
If the scope is a single domain, both have nothing to decide and cost nothing: URLs go through the `backlog`.
"""

from collections import Counter

import numpy as np
import pyarrow as pa

from fyke.core.batches import u64
from fyke.core.slices import Steps
from fyke.frontier.sizes import Sizes
from fyke.frontier.stages import Stages

SLICES = 8  # of URLs over budget, read again in one turn when visits run low
SLICES_BYTES = 6 << 20  # of one slice, and of all in a turn, about: with long URLs more would hold the loop for 0.2 s
LEAST_ROWS = 256


class Placing:
    """Lets new URLs wait in `stages` for their domains' records, and gives them rounds."""

    def __init__(self, stages: Stages, sizes: Sizes) -> None:
        self._stages = stages
        self._sizes = sizes
        self._row_bytes = 1  # of a URL over budget, in the latest slice

    def __repr__(self) -> str:
        return f"Placing({self._stages.star!r}, {self._stages.beast!r})"

    def put(self, urls: pa.RecordBatch, *, alone: bool) -> Steps[None]:
        """Take new `urls` (schema `URLS`). `alone`: the scope is a single domain."""
        if not urls.num_rows:
            return
        domains, counts = np.unique(u64(urls, "domain"), return_counts=True)
        records = self._stages.domains
        if alone:
            records.name_new(urls, domains)
            self._stages.backlog.put(urls, domains[:0])
        else:
            yield from self._ask(urls)
        records.add(domains, urls=counts)
        yield
        if records.full:  # a merge of URL-seen may yield more than this one may hold
            yield from self._place()

    def turn(self, *, may_merge: bool) -> Steps[bool]:
        """Give waiting URLs budgets and places, also some that were over budget. Returns whether there were any."""
        star, records, beast = self._stages.star, self._stages.domains, self._stages.beast
        moved = False
        read_bytes = 0
        for _ in range(SLICES if may_merge else 1):
            if beast.splitting and not records.full and read_bytes < SLICES_BYTES:
                rows = max(LEAST_ROWS, SLICES_BYTES // self._row_bytes)
                batch = beast.take_over_budget(min(rows, self._sizes.batch))
                if batch is not None:
                    yield from self._ask(batch)  # their domains' records may have changed
                    read_bytes += batch.nbytes
                    self._row_bytes = max(1, batch.nbytes // batch.num_rows)
                    yield
                moved = True
        if star.full or records.full or (may_merge and (star.pending or records.pending)):
            yield from self._place()
            moved = True
        return moved

    def _ask(self, urls: pa.RecordBatch) -> Steps[None]:
        """Give `urls` their places now if domains are few; otherwise let them wait for their domains' records."""
        star, records = self._stages.star, self._stages.domains
        if len(records) > self._sizes.looked_up:
            records.ask(urls)
            return
        yield from self._place()
        found = records.stored(urls)
        grown, by = self._stages.beast.put(star.weighed(urls, found), found["slot"])
        records.add(grown, slot=by)

    def _place(self) -> Steps[None]:
        """Give all waiting URLs STAR's budgets, and BEAST's rounds."""
        star, beast = self._stages.star, self._stages.beast
        if (yield from star.count()):
            beast.reconsider()
        planned: Counter[int] = Counter()  # what this merge adds to plans of its bucket; records have it at the next
        before = 0
        for urls, records, bucket in star.merge():
            if bucket != before:
                planned.clear()
                before = bucket
            slots = records["slot"].astype(np.uint64)
            if planned:
                domains, places = np.unique(u64(urls, "domain"), return_inverse=True)
                slots += np.fromiter((planned[domain] for domain in domains.tolist()), np.uint64, len(domains))[places]
            grown, by = beast.put(urls, slots)
            planned.update(dict(zip(grown.tolist(), by.tolist(), strict=True)))
            self._stages.domains.add(grown, slot=by)
            yield
