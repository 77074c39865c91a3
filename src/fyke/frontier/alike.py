"""Lots: URLs that have all their shapes in common, so that they are judged once.

A trap has a million URLs and a few skeletons (`fyke.core.shapes`). The guard looks up shapes once for a lot, in one
array of the shapes of all lots, one lot behind the other.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from fyke.core.batches import U64, Mask, texts, u64
from fyke.core.shapes import Skeleton, first_folder, shape_keys, shapes, skeleton
from fyke.frontier.probes import place_key
from fyke.frontier.yields import FERTILE, Counts, Yields

LEAST_PAGES = 3  # of a folder, before it is known to bring something
DOUBT = 0.5  # share of fresh first pages below which hosts of a domain are in doubt
Places = npt.NDArray[np.int64]


class AlikeUrls:
    """The lots of n URLs. `keys` (uint64[m]) has the keys of the shapes of all lots, one lot behind the other.

    - `which`: the lot of each URL, int64[n].
    - `places`: the key of the place of each URL, as `fyke.frontier.probes` defines it, uint64[n].
    - `starts`, `lengths`: the range of each lot's shapes, int64[lots]; its first is its own shape.
    - `at`: the position of each shape in its lot, int64[m].
    - `names`: number of names in the query, int64[lots]; `query_shapes`: the same plus names with words, int64[lots].
    - `kinds`, `hosts`, `domains`: for each URL, the position in its lot of the shape of the kinds of its path's parts,
      of its host, and of its domain, int64[n].
    """

    def __init__(self, urls: pa.RecordBatch, met_on_fresh: Mask) -> None:
        """Find the lots of `urls` (n > 0 rows), which were met on a fresh page or not (bool[n])."""
        number: dict[tuple[Skeleton, int, bool], int] = {}
        keys: list[list[int]] = []
        places: list[int] = []
        names: list[tuple[int, int, int]] = []
        self.which = np.empty(urls.num_rows, np.int64)
        owners = u64(urls, "host").tolist(), u64(urls, "domain").tolist()
        for row, (url, host, domain, fresh) in enumerate(zip(texts(urls), *owners, met_on_fresh.tolist(), strict=True)):
            like = skeleton(url), host, fresh
            found = number.setdefault(like, len(keys))
            if found == len(keys):
                of_lot = shapes(like[0])
                sharp, coarse = shape_keys(of_lot, host, domain, met_on_fresh=fresh)
                keys.append(sharp + coarse)
                names.append((len(of_lot.names), len(of_lot.names) + len(of_lot.words), len(sharp)))
                places.append(place_key(of_lot, host))
            self.which[row] = found
        self.keys: U64 = np.array([key for some in keys for key in some], np.uint64)
        self.places: U64 = np.array(places, np.uint64)[self.which]
        self.names, self.query_shapes, sharp_of_lots = np.array(names).T
        self.lengths = np.array([len(some) for some in keys])
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.kinds, self.domains = sharp_of_lots[self.which], self.lengths[self.which] - 1
        self.hosts = self.domains - 1
        self.at = np.arange(len(self.keys)) - np.repeat(self.starts, self.lengths)

    def __repr__(self) -> str:
        return f"AlikeUrls({len(self.which)} URLs in {len(self.starts)} lots)"

    @property
    def are_names(self) -> Mask:
        """Mask of the shapes of names in a query: bool[m]."""
        names: Mask = (self.at > 0) & (self.at <= np.repeat(self.names, self.lengths))
        return names

    @property
    def are_query_shapes(self) -> Mask:
        """Mask of the shapes of names in a query, with and without words: bool[m]."""
        of_query: Mask = (self.at > 0) & (self.at <= np.repeat(self.query_shapes, self.lengths))
        return of_query

    @property
    def are_words(self) -> Mask:
        """Mask of the shapes of names with words: bool[m]."""
        words: Mask = self.are_query_shapes & ~self.are_names
        return words

    @property
    def are_mixes(self) -> Mask:
        """Mask of the mixes, the shapes of a path with several names in its query: bool[m]."""
        mixes: Mask = np.repeat(self.names > 1, self.lengths) & (
            self.at == np.repeat(self.query_shapes + 1, self.lengths)
        )
        return mixes

    def are_known_mixes(self, counts: Counts) -> Mask:
        """Return which shapes, with these `counts`, are mixes (a path with several names in its query) whose names each
        bring something: bool[m]. If such a mix is barren, it says nothing of its URLs."""
        bring = (counts["pages"] > 0) & (counts["fresh"] * FERTILE >= 1)
        known: Mask = self.are_mixes & ~self.any_of_lot(self.are_names & ~bring)
        return known

    def least(self, values: Places) -> Places:
        """Return for each URL the least of `values` (int64[m]) of its lot: int64[n]."""
        least: Places = np.minimum.reduceat(values, self.starts)[self.which]
        return least

    def any(self, mask: Mask) -> Mask:
        """Return for each URL whether `mask` (bool[m]) holds anywhere in its lot: bool[n]."""
        found: Mask = np.logical_or.reduceat(mask, self.starts)[self.which]
        return found

    def any_of_lot(self, mask: Mask) -> Mask:
        """Return for each shape whether `mask` (bool[m]) holds anywhere in its lot: bool[m]."""
        found: Mask = np.repeat(np.logical_or.reduceat(mask, self.starts), self.lengths)
        return found


def own_shapes(urls: pa.RecordBatch) -> U64:
    """Return the keys of the own shapes of `urls` (n rows): uint64[n]."""
    rows = zip(texts(urls), u64(urls, "host").tolist(), strict=True)
    keys = (xxhash.xxh3_64_intdigest(shapes(skeleton(url)).own.encode(), host) for url, host in rows)
    return np.fromiter(keys, np.uint64, urls.num_rows)


def first_folders(urls: pa.RecordBatch) -> U64:
    """Return the keys of the first folders of `urls` (n rows): uint64[n]."""
    rows = zip(texts(urls), u64(urls, "host").tolist(), strict=True)
    keys = (first_folder(shapes(skeleton(url)), host) for url, host in rows)
    return np.fromiter(keys, np.uint64, urls.num_rows)


def have_fertile_folders(urls: pa.RecordBatch, yields: Yields) -> Mask:
    """Return which of `urls` (n rows) lie in a folder that brings something and in no barren one, wherever its pages
    were met: bool[n]."""
    owners = u64(urls, "host").tolist(), u64(urls, "domain").tolist()
    keys = np.zeros((urls.num_rows, 2, 2), np.uint64)
    for row, (url, host, domain) in enumerate(zip(texts(urls), *owners, strict=True)):
        found = shapes(skeleton(url))
        for met_on_fresh in (False, True):
            folders = shape_keys(found, host, domain, met_on_fresh=met_on_fresh)[1][1:-2]
            keys[row, int(met_on_fresh), : len(folders)] = folders
    counts = yields.of(keys.ravel()).reshape(keys.shape)
    fertile = (counts["pages"] >= LEAST_PAGES) & (counts["fresh"] * FERTILE >= 1)
    fertile, barren = (mask.reshape(-1, 4) for mask in (fertile, counts["barren"]))
    have: Mask = np.logical_or.reduce(fertile, axis=1) & ~np.logical_or.reduce(barren, axis=1)
    return have


def are_hosts_in_doubt(urls: pa.RecordBatch, yields: Yields) -> Mask:
    """Return which of `urls` (n rows) are at hosts in doubt: of similar hosts of the same domain, less than half of the
    pages lately counted were fresh. bool[n]."""
    of_host: dict[int, bool] = {}
    hosts = u64(urls, "host").tolist()
    for url, host, domain in zip(texts(urls), hosts, u64(urls, "domain").tolist(), strict=True):
        if host not in of_host:  # it may have thousands of ports
            found = shapes(skeleton(url))
            keys = [shape_keys(found, host, domain, met_on_fresh=met_on)[1][-1] for met_on in (False, True)]
            counts = yields.of(np.array(keys, np.uint64))
            of_host[host] = bool(((counts["pages"] > 0) & (counts["fresh"] < DOUBT)).any())
    return np.array([of_host[host] for host in hosts], np.bool_)
