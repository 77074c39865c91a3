"""Which URLs are like one that was read, but for one thing? Whether such bring anything is counted for each host.

A session, a campaign, an order of sorting makes another URL of the same page; so does a link without its slash, below
whatever folder it is met in. What they have in common with others (`fyke.core.shapes`) does not tell them from pages
that nobody has read. So it is remembered what was read, without each of `VARIANTS`: a URL of which the same is left is
a variant. The same holds for each name of a query that has several (`names_left_out`), so that a session is told
however it looks, beside the number of the page. A *way* in which URLs differ is the place of one of `VARIANTS`, or,
behind these, of a name. Where hardly a variant of a host was fresh, others that only differ so
are traps (`fyke.frontier.traps`), and what is met for the first time is none, also where its URL looks the same.

Who has a query, or a session, is a variant as soon as the page without was found, which is read some time; so one that
brings nothing is told before, and one that was read first, and brought something, is not counted.

Bounded: `MET`, `COMING` and `FOUND` marks, of which newer ones take the place of older ones; what was forgotten accuses
nobody.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from fyke.core.batches import U64, Mask, texts, u64
from fyke.core.shapes import (
    DIGEST,
    MOST_LEFT_OUT,
    QUERY,
    VARIANTS,
    lacks,
    name_keys,
    variant_keys,
    variants,
    without_names,
)
from fyke.core.urls import key_of
from fyke.disk.store import Store

MET = 1 << 18
COMING = 1 << 16
FOUND = 1 << 20
WAYS = len(VARIANTS) + MOST_LEFT_OUT  # in which a URL may differ: these, then one name of its query
BARE = 2  # the first of `VARIANTS` whose pages have URLs that are like what is left
_MARK = np.dtype([("place", "<u4"), ("mark", "<u4")])
_COMING = np.dtype([("mark", "<u8"), ("url", "<u8")])  # what is left of a URL, and its key


class Variants:
    """What was read, without each of `VARIANTS`: marks on a file of `store`."""

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

    def found(self, keys: U64) -> None:
        """URLs with these keys (uint64[n]) are visited some time."""
        self._found[keys % np.uint64(FOUND)] = keys >> np.uint64(32)

    def read(self, url: str, host: int, *, fresh: bool) -> list[int]:
        """The page `url` of `host` was read, and brought new text or not: the ways in which it differs from one
        before."""
        keys = _keys(url, host)
        differs = self._differs(url, keys, also_found=not fresh)
        for at in _told(url):
            self._marks[keys[at] % MET] = keys[at] >> 32 | 1
        self._changed = True
        return differs

    def differs(self, url: str, host: int) -> list[int]:
        """The ways in which `url` of `host` differs from a page that was read, or was only found."""
        return self._differs(url, _keys(url, host), also_found=True)

    def _differs(self, url: str, keys: Sequence[int], *, also_found: bool) -> list[int]:
        """The same of a URL with these keys, one a way. What looks made up in it is reason enough, so that it says
        nothing of others with a query."""
        met = {at for at, key in enumerate(keys) if int(self._marks[key % MET]) == key >> 32 | 1}
        differs = sorted(met.union(self._found_bare(url)) if also_found else met)
        return [DIGEST] if DIGEST in differs and DIGEST not in lacks(url) else differs

    def _found_bare(self, url: str) -> list[int]:
        """The ways in which `url` differs from one that was found, which has no query, nothing that looks made up, or
        a name less."""
        bares = [*variants(url)[:BARE], *["" for _ in VARIANTS[BARE:]], *(left for _, left in without_names(url))]
        return [at for at, bare in enumerate(bares) if bare and bare != url and self._was_found(bare)]

    def _was_found(self, url: str) -> bool:
        key = key_of(url)
        return int(self._found[key % FOUND]) == key >> 32

    def met(self, urls: pa.RecordBatch) -> Mask:
        """The ways in which each of `urls` (n rows) differs from one that was read or comes: bool[n, WAYS]."""
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

    def come(self, urls: pa.RecordBatch, barren: Mask) -> Mask:
        """Which of `urls` (n rows), which go out unless others come that only differ in a way that is `barren`
        (bool[n, WAYS]), have no such: bool[n]. They are on their way from now on."""
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


def variant_shapes(host: int, names: Sequence[str] = ()) -> list[int]:
    """The keys of the shapes of what differs from others of `host` in each of `VARIANTS`, and in each of `names`."""
    return [xxhash.xxh3_64_intdigest(f"but for {what}".encode(), host) for what in (*VARIANTS, *names)]


def shapes_of_ways(owners: U64, urls: pa.RecordBatch) -> tuple[U64, list[int]]:
    """The same for each way in which `urls` (n rows) may differ, of these hosts, or own shapes (uint64[n]): uint64[m,
    WAYS], 0 where a URL has not so many names; and which of the m rows is that of each URL."""
    number: dict[tuple[int, tuple[str, ...]], int] = {}
    rows = zip(owners.tolist(), map(names_left_out, texts(urls)), strict=True)
    which = [number.setdefault((owner, tuple(names)), len(number)) for owner, names in rows]
    keys = np.zeros((len(number), WAYS), np.uint64)
    for row, (owner, names) in enumerate(number):
        of_owner = variant_shapes(owner, names)
        keys[row, : len(of_owner)] = of_owner
    return keys, which


def _told(url: str) -> list[int]:
    """The ways in which others may differ from `url`, so that it counts."""
    return [*range(len(VARIANTS) + len(without_names(url)))] if DIGEST in lacks(url) else [DIGEST, QUERY]


def names_left_out(url: str) -> list[str]:
    """What a URL may differ in besides `VARIANTS`: the names in its query, as a person reads them."""
    return [f"?{name}=" for name, _ in without_names(url)]


def _keys(url: str, host: int) -> list[int]:
    return variant_keys(url, host) + name_keys(url, host)


def _keys_of(urls: pa.RecordBatch) -> U64:
    """Of n URLs: uint64[n, WAYS], 0 where a URL has not so many names."""
    keys = np.zeros((urls.num_rows, WAYS), np.uint64)
    for row, (url, host) in enumerate(zip(texts(urls), u64(urls, "host").tolist(), strict=True)):
        of_url = _keys(url, host)
        keys[row, : len(of_url)] = of_url
    return keys
