"""Which URLs of a host without an end in sight go ahead of its others? Those of sorts of which few were put back.

A host that makes up pages leads to more of them than are ever read. In the order in which they were met, the next page
of a story, to which only the page before it leads, would come behind all made-up pages that were met by then, and each
further one behind as many again. So it goes ahead as long as few of the host's URLs are of its sort: of its folder, or
alike. Where that holds for many URLs, as in folders made up for one URL each, it tells nothing: nothing goes ahead by
it, except sorts that recur, if these are not many.

Bounded: `MOST` counts; lost at a restart.
"""

from collections import Counter

import numpy as np
import pyarrow as pa

from fyke.core.batches import Mask, u64
from fyke.frontier.traps.alike import sorts

SHARE = 8  # a sort is rare if at most one in so many of a host's URLs are of it; rare sorts tell something likewise
MOST = 1 << 15


class Rare:
    """Counts of the URLs put back of hosts without an end in sight, by sort, and of those that were of a rare sort."""

    def __init__(self) -> None:
        self._put_back: Counter[int] = Counter()  # by host, and by sort
        self._rare: Counter[tuple[int, int, bool]] = Counter()  # by host, by which way to sort, and whether it recurs

    def __repr__(self) -> str:
        return f"Rare({len(self._put_back)} hosts and sorts)"

    def of(self, urls: pa.RecordBatch, endless: Mask) -> Mask:
        """Count `urls` (n rows), which are put back, of hosts that are `endless` or not. Returns which go ahead:
        bool[n]."""
        ahead: Mask = np.zeros(urls.num_rows, np.bool_)
        rows = np.flatnonzero(endless)
        if not len(rows):
            return ahead
        some = urls.take(pa.array(rows))
        hosts, keys = u64(some, "host").tolist(), sorts(some).tolist()
        if len(self._put_back) > MOST:
            self._put_back.clear()
            self._rare.clear()
        ahead[rows] = [self._is_rare(host, of) for host, of in zip(hosts, keys, strict=True)]
        return ahead

    def _is_rare(self, host: int, sorts_of: list[int]) -> bool:
        self._put_back[host] += 1
        self._put_back.update(sorts_of)
        most = self._put_back[host] / SHARE
        found = False
        for way, key in enumerate(sorts_of):
            if (count := self._put_back[key]) <= most:
                recurs = count > 1
                self._rare[host, way, recurs] += 1
                found |= self._rare[host, way, recurs] <= most
        return found
