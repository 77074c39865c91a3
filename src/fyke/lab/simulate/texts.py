"""URLs of the virtual web as text: written and read by the column.

    http://h00000012.d0000001234.sim/p/0000000000123
           host 12 of domain 1234           page 123

`VirtualWeb` calls it for every link and every visit. Every URL has the same layout of 48 bytes, so a batch is one
matrix of digits. Table look-ups write four digits at a time; a few multiplications read the numbers back.

Invariant: each URL is canonical already, and its keys are those of `fyke.core.urls.locate`.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64
from fyke.core.urls import keys_of
from fyke.lab.simulate.chance import I64

TEMPLATE = b"http://h00000000.d0000000000.sim/p/0000000000000"
URL_BYTES = len(TEMPLATE)
HOST = slice(7, 32)
DOMAIN = slice(17, 32)
MOST_DOMAINS = 10**8
MOST_HOSTS = 10**8
MOST_PAGES = 10**12

Text = npt.NDArray[np.uint8]  # uint8[n, URL_BYTES]

_WORDS = np.frombuffer(TEMPLATE, "<u4")
_HOST_WORDS, _DOMAIN_WORDS, _PAGE_WORDS = (2, 3), (5, 6), (9, 10, 11)
_FOUR_DIGITS = np.frombuffer(b"".join(b"%04d" % number for number in range(10_000)), "<u4")
_TEN_THOUSAND = np.uint64(10_000)
_DIGITS = np.uint64(0x0F0F0F0F0F0F0F0F)
_LAST_FOUR = np.uint64(0x0F0F0F0F00000000)


def written(domain: I64, host: I64, page: I64) -> Text:
    """Return the URLs of pages, by number of the domain, of the host in it and of the page in the domain."""
    words = np.empty((len(page), len(_WORDS)), "<u4")
    words[:] = _WORDS
    _write(words, _HOST_WORDS, host)
    _write(words, _DOMAIN_WORDS, domain)
    _write(words, _PAGE_WORDS, page)
    return words.view(np.uint8)


def _write(words: npt.NDArray[np.uint32], places: tuple[int, ...], numbers: I64) -> None:
    rest = numbers.view(np.uint64)
    for place in reversed(places[1:]):
        quotient = rest // _TEN_THOUSAND
        words[:, place] = _FOUR_DIGITS[rest - quotient * _TEN_THOUSAND]
        rest = quotient
    words[:, places[0]] = _FOUR_DIGITS[rest]


def read(text: Text) -> tuple[I64, I64, I64]:
    """Return the numbers of domain, host and page of each URL: the inverse of `written`."""
    words = text.view("<u8")
    domain = _number(np.ascontiguousarray(text[:, 20:28]).view("<u8")[:, 0] & _DIGITS)
    page = _number(words[:, 4] & _LAST_FOUR) * 10**8 + _number(words[:, 5] & _DIGITS)
    return domain, _number(words[:, 1] & _DIGITS), page


def _number(digits: U64) -> I64:
    """Read eight decimal digits, the first in the lowest byte, as one number: in pairs, fours, eights."""
    pairs = (digits * np.uint64(10 * 2**8 + 1) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100 * 2**16 + 1) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return (fours * np.uint64(10_000 * 2**32 + 1) >> np.uint64(32)).view(np.int64)


def keys(text: Text) -> U64:
    """Return each URL's key: uint64[n]."""
    return _keys(text, slice(0, URL_BYTES))


def host_keys(text: Text) -> U64:
    """Return each URL's host key: uint64[n]."""
    return _keys(text, HOST)


def domain_keys(domain: I64) -> U64:
    """Return each pay-level domain's key: uint64[n]."""
    nothing = np.zeros_like(domain)
    return _keys(written(domain, nothing, nothing), DOMAIN)


def _keys(text: Text, span: slice) -> U64:
    rows = np.ascontiguousarray(text[:, span]).view(f"S{span.stop - span.start}")
    return np.frombuffer(keys_of(rows.ravel().tolist()), "<u8")


def binary(text: Text) -> pa.BinaryArray:
    """Return the URLs as an Arrow column, without copying the text."""
    offsets = np.arange(0, text.size + 1, URL_BYTES, dtype=np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(text), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text))]
    )


def of_column(urls: pa.BinaryArray) -> Text:
    """Return the text of a column of such URLs."""
    offsets = np.frombuffer(urls.buffers()[1], np.int32, len(urls) + 1, urls.offset * 4)
    start, end = (int(offsets[0]), int(offsets[-1])) if len(urls) else (0, 0)
    return np.frombuffer(urls.buffers()[2], np.uint8, end - start, start).reshape(-1, URL_BYTES)


def of_strings(urls: list[str]) -> Text:
    """Return the text of such URLs given as strings."""
    return np.frombuffer("".join(urls).encode(), np.uint8).reshape(-1, URL_BYTES)
