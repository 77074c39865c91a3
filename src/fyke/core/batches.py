"""URLs are columns: the record batches that travel between stages.

A batch is a `pyarrow.RecordBatch` with the schema `URLS`: fixed-width columns without nulls, and the
text in one byte buffer with offsets. So Python's cost is paid once a batch. `Visit`
(`fyke.core.visits`) is the same row as an object, for the few URLs that are about to be fetched.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.urls import Locator, key_of, split

U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Int = npt.NDArray[np.int64]


class Kind(IntEnum):
    """How a URL was linked to. LISTING also says what a URL turned out to be."""

    PAGE = 0  # a link to follow
    REQUISITE = 1  # needed to show a page: image, script, style, media
    SEED = 2  # asked for by a person: no filter but robots applies
    LISTING = 3  # a sitemap or feed: read for its links, as robots.txt is for its rules; not a page
    RULES = 4  # robots.txt, to learn what an origin allows
    PROBE = 5  # made up by the frontier: nothing should be there
    BEYOND = 6  # a requisite beyond the scope, once it is handed out
    SECOND = 7  # needed by a BEYOND, as fonts are by a stylesheet: wanted beyond the scope too
    THIRD = 8  # needed by a SECOND: wanted within the scope alone


class LinkKind(IntEnum):
    """The kind of a row of `links`."""

    PAGE = 0
    REQUISITE = 1
    NOFOLLOW = 2
    REDIRECT = 3


URLS = pa.schema(
    [
        ("key", pa.uint64()),  # of the canonical URL (`fyke.core.urls.key_of`)
        ("host", pa.uint64()),  # key of its host name
        ("domain", pa.uint64()),  # key of its pay-level domain
        ("via", pa.uint64()),  # key of the page it was found on, 0 for a seed; for a probe, of the place it tests
        ("depth", pa.uint16()),  # links from a seed
        ("kind", pa.uint8()),  # a `Kind`
        ("tries", pa.uint8()),  # visits that failed so far
        ("budget", pa.uint16()),  # URLs of its domain let through a round; 0 before STAR sets it
        ("in_degree", pa.uint32()),  # other domains known to link to its domain, when STAR set the budget
        ("url", pa.binary()),  # the canonical URL, ASCII
    ]
)

EMPTY = pa.RecordBatch.from_pylist([], URLS)
NO_KEYS: U64 = np.empty(0, np.uint64)


def u64(batch: pa.RecordBatch, column: str) -> U64:
    """Return a 64-bit column as a NumPy view, uint64[n]."""
    return batch.column(column).to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]


def numbers(batch: pa.RecordBatch, column: str) -> npt.NDArray[np.integer]:
    """Return any fixed-width column as a NumPy view, [n]."""
    return batch.column(column).to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]


def binary_array(texts: Sequence[bytes]) -> pa.BinaryArray:
    """Return byte strings as one Arrow array, by one join and one cumulative sum (six times as fast as `pa.array`)."""
    lengths = np.fromiter(map(len, texts), np.int32, len(texts))
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
    )


def url_batch(locators: Sequence[Locator], **columns: Iterable[int] | int) -> pa.RecordBatch:
    """Return a `URLS` batch of n locators; `columns` are the other columns by name, n values or one for all rows."""
    count = len(locators)
    if not count:
        return EMPTY
    url, *keys = (map(itemgetter(at), locators) for at in range(4))  # zip(*locators) is slow for thousands
    key, host, domain = (np.fromiter(column, np.uint64, count) for column in keys)
    return url_columns(binary_array(list(url)), key, host, domain, **columns)


def url_columns(  # noqa: PLR0913 - the columns of the schema
    url: pa.BinaryArray,
    key: U64,
    host: U64,
    domain: U64,
    *,
    via: Iterable[int] | int = 0,
    depth: Iterable[int] | int = 0,
    kind: Iterable[int] | int = Kind.PAGE,
    tries: Iterable[int] | int = 0,
    budget: Iterable[int] | int = 0,
    in_degree: Iterable[int] | int = 0,
) -> pa.RecordBatch:
    """Return a `URLS` batch of columns, as `url_batch` does of locators."""
    count = len(url)
    arrays = [
        *(pa.array(column) for column in (key, host, domain)),
        pa.array(_column(via, np.uint64, count)),
        pa.array(_column(depth, np.uint16, count)),
        pa.array(_column(kind, np.uint8, count)),
        pa.array(_column(tries, np.uint8, count)),
        pa.array(_column(budget, np.uint16, count)),
        pa.array(_column(in_degree, np.uint32, count)),
        url,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=URLS)


def _column(values: Iterable[int] | int, dtype: type, count: int) -> npt.NDArray[np.integer]:
    if isinstance(values, int):
        return np.full(count, values, dtype)
    if isinstance(values, np.ndarray):
        return values.astype(dtype, copy=False)
    return np.fromiter(values, dtype, count)


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches of the schema `URLS` into one, in order."""
    if not batches:
        return EMPTY
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def with_column(batch: pa.RecordBatch, name: str, values: npt.NDArray[np.integer]) -> pa.RecordBatch:
    """Return `batch` with `values` [n] as its fixed-width column `name`, cast to the column's type."""
    place = batch.schema.get_field_index(name)
    field = batch.schema.field(place)
    return batch.set_column(place, field, pa.array(values.astype(field.type.to_pandas_dtype(), copy=False)))


def keep(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    """Return the rows of `batch` for which `mask` (bool[n]) is true, in order."""
    if mask.all():
        return batch
    return batch.filter(pa.array(mask)) if mask.any() else batch.slice(0, 0)


def first_of_each_key(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the first row of each key in `batch`, in order."""
    keys = u64(batch, "key")
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return batch
    _, first = np.unique(keys, return_index=True)
    return batch.take(pa.array(np.sort(first)))


def domain_names(batch: pa.RecordBatch) -> list[str]:
    """Return the pay-level domain of each row, as text.

    It is found as the suffix of the host name that has the row's key; the Public Suffix List takes ten times as long.
    """
    urls, keys = batch.column("url").to_pylist(), u64(batch, "domain").tolist()
    return [_domain_name(url.split(b"/", 3)[2], key) for url, key in zip(urls, keys, strict=True)]


def _domain_name(authority: bytes, key: int) -> str:
    name = authority.partition(b":")[0].rstrip(b".")
    while name:
        if key_of(name) == key:
            return name.decode()
        name = name.partition(b".")[2]
    return split(f"http://{authority.decode()}/").host  # a literal address


def texts(batch: pa.RecordBatch) -> list[str]:
    """Return the URLs as Python strings: for the few rows that become objects."""
    return pc.cast(batch.column("url"), pa.string()).to_pylist()  # type: ignore[no-any-return]
