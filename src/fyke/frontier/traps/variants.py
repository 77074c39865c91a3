"""Which URLs differ in one thing only from one that was read? The guard counts what these bring, for each host.

A session, a campaign or another order makes another URL of the same page. So does a relative link that lacks its first
slash, below each folder it is met in. Shapes (`fyke.core.shapes`) do not tell such a URL from pages that nobody has
read. So a page that was read leaves *marks*: what is left of its URL for each way of differing (`ways`). So a session
is found however it looks, also beside the number of the page. A URL with the same rest is a variant. If hardly any
variant that differs in a way was fresh at a host, other URLs that differ only in that way are traps (`waiting`). The
first URL met of several variants is no trap, even if it looks like one.

A URL with a query or a session is a variant as soon as the URL without it was found, because that will be read some
time. So variants that bring nothing are found earlier. A variant that was read first, and was fresh, does not count.

Bounded: `MET`, `COMING` and `FOUND` marks; newer ones replace older ones, and a forgotten page accuses nobody.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, Mask, texts, u64
from fyke.core.urls import key_of
from fyke.disk.store import Store
from fyke.frontier.traps.ways import WAYS, Difference, bare_urls, lacks, leftover_keys, way_keys, ways_in_words

MET = 1 << 18
COMING = 1 << 16
FOUND = 1 << 20
_MARK = np.dtype([("place", "<u4"), ("mark", "<u4")])
_COMING = np.dtype([("mark", "<u8"), ("url", "<u8")])  # the rest of a URL, and its key


class Variants:
    """Marks of pages that were read, for each way of differing, on a file of `store`."""

    def __init__(self, store: Store, state: Mapping[str, Any] | None = None) -> None:
        saved = state or {}
        self._store = store
        self._file = str(saved.get("file", ""))
        self._marks = np.zeros(MET, np.uint32)
        known = store.array(self._file, _MARK, int(saved.get("marks", 0)))
        self._marks[known["place"]] = known["mark"]
        self._coming = np.zeros(COMING, _COMING)
        self._found = np.zeros(FOUND, np.uint32)
        self._changed = False

    def __repr__(self) -> str:
        return f"Variants({np.count_nonzero(self._marks)} marks)"

    def note_found(self, keys: U64) -> None:
        """Note that URLs with these keys (uint64[n]) were found, and will be visited some time."""
        self._found[keys % np.uint64(FOUND)] = keys >> np.uint64(32)

    def note_read(self, url: str, host: int, *, fresh: bool) -> list[int]:
        """Note that the page `url` of `host` was read, fresh or not. Returns the ways in which it differs from earlier
        ones."""
        keys = leftover_keys(url, host)
        differs = self._differs(url, keys, also_found=not fresh)
        for way in _told(url):
            self._marks[keys[way] % MET] = keys[way] >> 32 | 1
        self._changed = True
        return differs

    def differs(self, url: str, host: int) -> list[int]:
        """Return the ways in which `url` of `host` differs from a page that was read or only found."""
        return self._differs(url, leftover_keys(url, host), also_found=True)

    def _differs(self, url: str, keys: Sequence[int], *, also_found: bool) -> list[int]:
        """Return the ways in which a URL with these `keys`, one for each way, differs. If a part of it looks made up
        and explains it, only that counts, so that it says nothing of other URLs with a query."""
        met = {way for way, key in enumerate(keys) if int(self._marks[key % MET]) == key >> 32 | 1}
        differs = sorted(met.union(self._found_bare(url)) if also_found else met)
        return [Difference.DIGEST] if Difference.DIGEST in differs and Difference.DIGEST not in lacks(url) else differs

    def _found_bare(self, url: str) -> list[int]:
        """Return the ways in which `url` differs from the URL of a page that was found."""
        return [way for way, bare in bare_urls(url) if self._was_found(bare)]

    def _was_found(self, url: str) -> bool:
        key = key_of(url)
        return int(self._found[key % FOUND]) == key >> 32

    def ways_of_differing(self, urls: pa.RecordBatch) -> Mask:
        """Return the ways in which each of `urls` (n rows) differs from a page that was read or is on its way: bool[n,
        WAYS]."""
        keys = _keys_of(urls)
        coming = self._coming[keys % np.uint64(COMING)]
        marks = (keys >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        found: Mask = self._marks[keys % np.uint64(MET)] == marks
        found |= (coming["mark"] == keys) & (coming["url"] != u64(urls, "key")[:, None])
        found &= keys > 0
        for row, url in enumerate(texts(urls)):
            found[row, self._found_bare(url)] = True
            found[row, lacks(url)] = False
        return found

    def admit_first(self, urls: pa.RecordBatch, barren: Mask) -> Mask:
        """Return which of `urls` (n rows) go out, because no URL on its way differs from them only in a way that is
        `barren` (bool[n, WAYS]): bool[n]. They are on their way from now on."""
        first = np.ones(urls.num_rows, np.bool_)
        for row, (url, key, keys) in enumerate(zip(texts(urls), u64(urls, "key"), _keys_of(urls), strict=True)):
            coming = self._coming[keys % np.uint64(COMING)]
            first[row] = not ((coming["mark"] == keys) & (coming["url"] != key) & barren[row]).any()
            if first[row]:
                told = keys[_told(url)]
                self._coming["mark"][told % np.uint64(COMING)] = told
                self._coming["url"][told % np.uint64(COMING)] = key
        return first

    def state(self) -> dict[str, Any]:
        places = np.flatnonzero(self._marks)
        if self._changed:
            marks = np.empty(len(places), _MARK)
            marks["place"], marks["mark"] = places, self._marks[places]
            self._file = self._store.write_array("trap-variants", marks, self._file)
            self._changed = False
        return {"file": self._file, "marks": len(places)}


def shapes_of_ways(owners: U64, urls: pa.RecordBatch) -> tuple[U64, list[int]]:
    """Return the keys of variants (`way_keys`) for each way in which `urls` (n rows) may differ, of these `owners`
    (uint64[n]; hosts or own shapes): uint64[m, WAYS], 0 for names that a URL lacks. Returns also the row, 0 to m - 1,
    of each URL."""
    number: dict[tuple[int, tuple[str, ...]], int] = {}
    rows = zip(owners.tolist(), map(ways_in_words, texts(urls)), strict=True)
    which = [number.setdefault((owner, tuple(words)), len(number)) for owner, words in rows]
    keys = np.zeros((len(number), WAYS), np.uint64)
    for row, (owner, words) in enumerate(number):
        keys[row, : len(words)] = way_keys(owner, words)
    return keys, which


def _told(url: str) -> list[int]:
    """Return the ways for which `url` leaves marks: all, or two if a part of it looks made up."""
    return (
        [*range(len(ways_in_words(url)))] if Difference.DIGEST in lacks(url) else [Difference.DIGEST, Difference.QUERY]
    )


def _keys_of(urls: pa.RecordBatch) -> U64:
    """Return the keys of n URLs, uint64[n, WAYS], 0 for names that a URL lacks."""
    keys = np.zeros((urls.num_rows, WAYS), np.uint64)
    for row, (url, host) in enumerate(zip(texts(urls), u64(urls, "host").tolist(), strict=True)):
        of_url = leftover_keys(url, host)
        keys[row, : len(of_url)] = of_url
    return keys
