"""Which round is a new URL fetched in? Asks STAR for the budget of its domain, and BEAST for its place.

Both by merges that wait until they are worth it, but for the URLs of a crawl that knows few domains: their records are
looked up at once. Where one domain is all that is in scope, they have nothing to decide and cost nothing: URLs go
through the `backlog`.
"""

from collections import Counter

import numpy as np
import pyarrow as pa

from fyke.core.batches import u64
from fyke.core.slices import Steps
from fyke.frontier.sizes import Sizes
from fyke.frontier.stages import Stages

SLICES = 8  # of what was over budget, read again in one turn that is in need
SLICES_BYTES = 6 << 20  # after which no further slice is, and of one: with long URLs more hold the loop for 0.2 s
LEAST_ROWS = 256


class Placing:
    """Lets new URLs wait in `stages` for what is known of their domains, and gives them rounds."""

    def __init__(self, stages: Stages, sizes: Sizes) -> None:
        self._stages = stages
        self._sizes = sizes
        self._row_bytes = 1  # of what was over budget, in the latest slice

    def __repr__(self) -> str:
        return f"Placing({self._stages.star!r}, {self._stages.beast!r})"

    def put(self, urls: pa.RecordBatch, *, alone: bool) -> Steps[None]:
        """Take new `urls` (schema `URLS`). `alone`: all that is in scope is one domain."""
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
        if records.full:  # a merge of the URLs seen lets go of more than this one may hold
            yield from self._place()

    def turn(self, *, hungry: bool) -> Steps[bool]:
        """Give URLs their budgets and places, those that were over budget too; whether there were any."""
        star, records, beast = self._stages.star, self._stages.domains, self._stages.beast
        moved = False
        read_bytes = 0
        for _ in range(SLICES if hungry else 1):
            if beast.splitting and not records.full and read_bytes < SLICES_BYTES:
                rows = max(LEAST_ROWS, SLICES_BYTES // self._row_bytes)
                batch = beast.failed(min(rows, self._sizes.batch))
                if batch is not None:
                    yield from self._ask(batch)  # how their domains stand now
                    read_bytes += batch.nbytes
                    self._row_bytes = max(1, batch.nbytes // batch.num_rows)
                    yield
                moved = True
        if star.full or records.full or (hungry and (star.pending or records.pending)):
            yield from self._place()
            moved = True
        return moved

    def _ask(self, urls: pa.RecordBatch) -> Steps[None]:
        """Give `urls` their places now where records are few; else let them wait for those of their domains."""
        star, records = self._stages.star, self._stages.domains
        if len(records) > self._sizes.looked_up:
            records.ask(urls)
            return
        yield from self._place()
        found = records.stored(urls)
        grown, by = self._stages.beast.put(star.weighed(urls, found), found["slot"])
        records.add(grown, slot=by)

    def _place(self) -> Steps[None]:
        """STAR's budgets for all that waits for one, and BEAST's rounds."""
        star, beast = self._stages.star, self._stages.beast
        if (yield from star.count()):
            beast.reconsider()
        planned: Counter[int] = Counter()  # what this merge adds to plans of its bucket; the records say it at the next
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
