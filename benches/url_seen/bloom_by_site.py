"""A Bloom filter for every site: the Internet Archive (1997).

IRLbot's Table 1, after Burner, "Crawling Towards Eternity" (1997): each visited site has a bit array in memory that
marks the URLs met on it.

- Faithful: one filter a site, sized for the pages a site may have, no disk; a URL that the filter says was met is
  dropped. So a false positive is a lost URL.
- Simplified: all filters have one size, as all sites of the stream do. The probes are two halves of the 64-bit key,
  combined (Kirsch and Mitzenmacher, 2006). The links of a batch do not see each other's bits.

`BITS` bits a page and `PROBES` probes lose about 1 in 120 of the URLs of a full site. If memory does not suffice for
these bits, the filters are smaller and lose more.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import U64, Mask
from url_seen import Texts
from url_seen.stream import PAGES_PER_SITE, SITE_BYTES

BITS, PROBES = 10, 7


class BloomBySite:
    """Consecutive bit arrays, and the number of each site's array."""

    filled_by = "text"
    persistent = False

    def __init__(self, directory: Path, memory_bytes: int, capacity: int) -> None:
        sites = capacity // PAGES_PER_SITE + 1
        bits = min(BITS * PAGES_PER_SITE, memory_bytes * 8 // sites)
        self.site_bytes = max(1, bits // 8)
        self._bits = np.zeros(self.site_bytes * sites, np.uint8)
        self._sites: dict[bytes, int] = {}

    def fill(self, keys: U64, texts: Texts) -> None:
        self._mark(*self._probes(keys, texts()))

    def check_update(self, keys: U64, texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        at, bit = self._probes(keys, texts)
        new = np.flatnonzero(~self._marked(at, bit))
        _, first = np.unique(keys[new], return_index=True)
        new = new[np.sort(first)]
        self._mark(at[new], bit[new])
        yield texts.take(pa.array(new))

    def _probes(self, keys: U64, texts: pa.BinaryArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint8]]:
        """Return for each link the bytes to look at, intp[n, PROBES], and the bit in each, uint8[n, PROBES]."""
        sites = pc.binary_slice(texts, 0, SITE_BYTES).dictionary_encode()
        numbers = [self._sites.setdefault(site, len(self._sites)) for site in sites.dictionary.to_pylist()]
        start = np.array(numbers, np.uint64)[sites.indices.to_numpy()] * np.uint64(self.site_bytes)
        low, high = keys & np.uint64(0xFFFFFFFF), keys >> np.uint64(32) | np.uint64(1)
        probe = low[:, None] + np.arange(PROBES, dtype=np.uint64) * high[:, None]
        probe %= np.uint64(self.site_bytes * 8)
        bit = np.left_shift(1, probe & np.uint64(7), dtype=np.uint8, casting="unsafe")
        return (start[:, None] + (probe >> np.uint64(3))).astype(np.intp), bit

    def _marked(self, at: npt.NDArray[np.intp], bit: npt.NDArray[np.uint8]) -> Mask:
        marked: Mask = ((self._bits[at] & bit) != 0).all(axis=1)
        return marked

    def _mark(self, at: npt.NDArray[np.intp], bit: npt.NDArray[np.uint8]) -> None:
        np.bitwise_or.at(self._bits, at.ravel(), bit.ravel())

    def finish(self) -> Iterator[pa.BinaryArray]:
        yield from ()

    def close(self) -> None:
        self._bits = self._bits[:0]


def false_positives(pages: int, site_bytes: int) -> float:
    """Return the chance that a page is lost on a site that holds `pages` of them: (1 - e^(-kn/m))^k."""
    return float((1 - np.exp(-PROBES * pages / (site_bytes * 8))) ** PROBES)
