"""Which URLs of a host without an end in sight go ahead of its others? Those of folders from which few were put back.

A host that makes up pages leads to more of them than are ever read. In the order in which they were met, the next page
of a story, to which only the page before it leads, would come behind all made-up pages that were met by then, and each
further one behind as many again. So it goes ahead as long as its folder has few of the host's URLs. A folder that is
made up for one URL goes ahead too, and then all is as before.

Bounded: `MOST` counts; lost at a restart.
"""

from collections import Counter

import numpy as np
import pyarrow as pa

from fyke.core.batches import Mask, u64
from fyke.frontier.traps.alike import first_folders

SHARE = 8  # a folder is rare if at most one in so many of a host's URLs are of it
MOST = 1 << 14


class Rare:
    """Counts of the URLs put back of hosts without an end in sight, by host and by first folder."""

    def __init__(self) -> None:
        self._put_back: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"Rare({len(self._put_back)} hosts and folders)"

    def of(self, urls: pa.RecordBatch, endless: Mask) -> Mask:
        """Count `urls` (n rows), which are put back, of hosts that are `endless` or not. Returns which go ahead:
        bool[n]."""
        ahead: Mask = np.zeros(urls.num_rows, np.bool_)
        rows = np.flatnonzero(endless)
        if not len(rows):
            return ahead
        some = urls.take(pa.array(rows))
        hosts, folders = u64(some, "host").tolist(), first_folders(some).tolist()
        if len(self._put_back) > MOST:
            self._put_back.clear()
        self._put_back.update(hosts)
        self._put_back.update(folders)
        pairs = zip(hosts, folders, strict=True)
        ahead[rows] = [SHARE * self._put_back[folder] <= self._put_back[host] for host, folder in pairs]
        return ahead
