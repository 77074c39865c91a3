"""Lots: URLs that have all their shapes in common, so that they are judged once.

A trap has a million URLs and a few skeletons (`fyke.core.shapes`). The guard looks up shapes once for a lot, in one
array of the shapes of all lots, one lot behind the other.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from fyke.core.batches import U64, Mask, texts, u64
from fyke.core.shapes import Role, Skeleton, first_folder, shape_keys, shapes, skeleton
from fyke.frontier.traps.probes import place_key
from fyke.frontier.traps.yields import FERTILE, Counts, Yields

LEAST_PAGES = 3  # of a folder, before it is known to bring something
DOUBT = 0.5  # share of fresh first pages below which hosts of a domain are in doubt
Places = npt.NDArray[np.int64]
T = TypeVar("T", bound=np.generic)


class Lots:
    """The lots of n URLs. The shapes of all lots stand one lot behind the other, m in all, those of a lot in the order
    of their roles.

    - `keys`, `roles`: the key and the `Role` of each shape, uint64[m] and int64[m].
    - `which`: the lot of each URL, int64[n].
    - `starts`, `lengths`: the range of each lot's shapes, int64[lots]; its first is its own shape.
    - `places`: the key of the place of each URL, as `probes` defines it, uint64[n].
    """

    def __init__(self, urls: pa.RecordBatch, met_on_fresh: Mask) -> None:
        """Find the lots of `urls` (n > 0 rows), which were met on a fresh page or not (bool[n])."""
        number: dict[tuple[Skeleton, int, bool], int] = {}
        lots: list[list[tuple[Role, int]]] = []
        places: list[int] = []
        self.which = np.empty(urls.num_rows, np.int64)
        owners = u64(urls, "host").tolist(), u64(urls, "domain").tolist()
        for row, (url, host, domain, fresh) in enumerate(zip(texts(urls), *owners, met_on_fresh.tolist(), strict=True)):
            like = skeleton(url), host, fresh
            self.which[row] = number.setdefault(like, len(lots))
            if self.which[row] == len(lots):
                found = shapes(like[0])
                lots.append(shape_keys(found, host, domain, met_on_fresh=fresh).in_order())
                places.append(place_key(found, host))
        self.keys: U64 = np.array([key for lot in lots for _, key in lot], np.uint64)
        self.roles = np.array([role for lot in lots for role, _ in lot])
        self.places: U64 = np.array(places, np.uint64)[self.which]
        self.lengths = np.array([len(lot) for lot in lots])
        self.starts = np.cumsum(self.lengths) - self.lengths

    def __repr__(self) -> str:
        return f"Lots({len(self.starts)} of {len(self.which)} URLs)"

    @property
    def are_of_query(self) -> Mask:
        """Mask of the shapes of names in a query, with and without words: bool[m]."""
        of_query: Mask = (self.roles == Role.NAME) | (self.roles == Role.WORD)
        return of_query

    def are_known_mixes(self, counts: Counts) -> Mask:
        """Return which shapes, with these `counts`, are mixes (a path with several names in its query) whose names each
        bring something: bool[m]. If such a mix is barren, it says nothing of its URLs."""
        bring = (counts["pages"] > 0) & (counts["fresh"] * FERTILE >= 1)
        known: Mask = (self.roles == Role.MIX) & ~self._any_of_lot((self.roles == Role.NAME) & ~bring)
        return known

    def own(self, values: npt.NDArray[T]) -> npt.NDArray[T]:
        """Return for each URL the one of `values` ([m]) that belongs to its own shape: [n]."""
        own: npt.NDArray[T] = values[self.starts][self.which]
        return own

    def first(self, mask: Mask) -> Places:
        """Return for each URL the place (0 to m - 1) of the first shape of its lot for which `mask` (bool[m]) holds, -1
        if there is none: int64[n]."""
        places = np.where(mask, np.arange(len(mask)), len(mask))
        first = np.minimum.reduceat(places, self.starts)
        found: Places = np.where(first < len(mask), first, -1)[self.which]
        return found

    def any(self, mask: Mask) -> Mask:
        """Return for each URL whether `mask` (bool[m]) holds anywhere in its lot: bool[n]."""
        found: Mask = np.logical_or.reduceat(mask, self.starts)[self.which]
        return found

    def _any_of_lot(self, mask: Mask) -> Mask:
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


def sorts(urls: pa.RecordBatch) -> U64:
    """Return keys of what each of `urls` (n rows) is one of: first folder, inner folder, kinds of parts, own shape.
    uint64[n, 4]."""
    keys = np.empty((urls.num_rows, 4), np.uint64)
    for row, (url, host) in enumerate(zip(texts(urls), u64(urls, "host").tolist(), strict=True)):
        found = shapes(skeleton(url))
        inner = found.folders[-1] if found.folders else found.host
        of = found.first_folder, inner, found.kinds, found.own
        keys[row] = [xxhash.xxh3_64_intdigest(f"{at}{shape}".encode(), host) for at, shape in enumerate(of)]
    return keys


def have_fertile_folders(urls: pa.RecordBatch, yields: Yields) -> Mask:
    """Return which of `urls` (n rows) lie in a folder that brings something and in no barren one, wherever its pages
    were met: bool[n]."""
    owners = u64(urls, "host").tolist(), u64(urls, "domain").tolist()
    keys = np.zeros((urls.num_rows, 2, 2), np.uint64)
    for row, (url, host, domain) in enumerate(zip(texts(urls), *owners, strict=True)):
        found = shapes(skeleton(url))
        for met_on_fresh in (False, True):
            folders = shape_keys(found, host, domain, met_on_fresh=met_on_fresh).folders
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
            keys = [shape_keys(found, host, domain, met_on_fresh=met_on).hosts for met_on in (False, True)]
            counts = yields.of(np.array(keys, np.uint64))
            of_host[host] = bool(((counts["pages"] > 0) & (counts["fresh"] < DOUBT)).any())
    return np.array([of_host[host] for host in hosts], np.bool_)
