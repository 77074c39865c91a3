"""Where do links lead? Resolves the links of many pages at once, as columns.

Called for each batch of pages with every href in it, some sixty a page: beside the HTML parser this is the hottest
code.

- Most links are *plain*: a URL parser would find nothing to normalise in them. The URL of a plain link is a prefix
  (nothing, or the root or a directory of the page's base) and the link without its fragment. `joiner`, in C, joins
  them.
- The other links go to the WHATWG parser one by one, at ten microseconds each; so does each host that was not met
  lately. If `joiner` was not compiled, all links go there. A page may have thirty thousand of them. A caller that must
  not wait counts them first (`slow_links`).

No link is remembered, only the keys of hosts: a link costs the same however many different links there are.

Bounded: a short link below a long base is a long URL. The URLs of one page take at most `most_bytes`, or the size of
its links as written if that is more, up to `MOST_WRITTEN_BYTES`. Later links are dropped, and their pages are told
(`Located.cut`).

Invariant: within that bound, `resolve` gives exactly what `canonical` and `locate` of `fyke.core.urls` give for the
schemes that are fetched, in order, with repeats.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.bases import Base, Joined, base_of, keys_of_bases, keys_of_root
from fyke.core.batches import NO_KEYS, U64, Int, binary_array
from fyke.core.pace import breathe
from fyke.core.urls import MAX_URL_BYTES, SCHEMES, Locator, canonical, keys_of, locate

try:
    from fyke.core.joiner import join
except ImportError:  # there was no compiler when Fyke was installed
    join = None  # type: ignore[assignment]

MOST_BYTES = 8 << 20
MOST_WRITTEN_BYTES = 12 << 20  # of links that are written out, as in a sitemap of 50,000 with 250 bytes each
PORTION = 256  # links looked at, or parsed, between two steps
SLACK = 8  # bytes by which a URL may be longer than its link as written, beside the root


@dataclass(frozen=True, slots=True)
class Located:
    """Canonical URLs with their keys, a row each. `link` is the number of the link that a row came from; `cut` has the
    numbers of the pages whose last links were dropped."""

    urls: list[bytes]
    url: pa.BinaryArray  # the same
    key: U64
    host: U64
    domain: U64
    link: Int
    cut: frozenset[int] = frozenset()

    def locators(self) -> list[Locator]:
        """Return the rows as objects."""
        keys = (column.tolist() for column in (self.key, self.host, self.domain))
        return list(map(Locator, self.urls, *keys))


NOWHERE = Located([], binary_array([]), NO_KEYS, NO_KEYS, NO_KEYS, np.empty(0, np.int64))


class LinkResolver:
    """Resolves links against their pages. Leaves out schemes not in `schemes`, which has http and https at least."""

    def __init__(self, schemes: Collection[str] = SCHEMES, *, most_bytes: int = MOST_BYTES) -> None:
        self._schemes = frozenset(schemes)
        self._most_bytes = most_bytes

    def __repr__(self) -> str:
        return f"LinkResolver({', '.join(sorted(self._schemes))})"

    def resolve(self, pages: Sequence[tuple[str, Sequence[str]]]) -> Located:
        """Return where the links of `pages` (base URL and hrefs of each) lead. Links are numbered through all pages."""
        bases = [base_of(url, self._schemes) for url, _ in pages]
        hrefs_of = [hrefs for _, hrefs in pages]
        urls, keys, others, cut = self._read(bases, hrefs_of)
        room, of = 0, -1
        for number, (at, href, page) in enumerate(others):
            if number % PORTION == 0:
                breathe()
            if page != of:
                room, of = self._room(bases[page], hrefs_of[page]) if join is None else MOST_WRITTEN_BYTES, page
            found = self._parsed(href, bases[page].url) if room >= 0 else None
            if found is not None:
                room -= len(found.url)
                if room >= 0:  # a letter of another alphabet becomes nine bytes
                    urls[at] = found.url
                    keys[at] = found[2:]
            if room < 0:
                cut.add(page)
        return _located(urls, keys, frozenset(cut))

    def slow_links(self, pages: Sequence[tuple[str, Sequence[str]]], most: int) -> int:
        """Return how many links of `pages` must be parsed or name a host that was not met lately. Counting stops soon
        after `most`."""
        count, met = 0, keys_of_root.cache_info().misses
        for url, hrefs in pages:
            base = base_of(url, self._schemes)
            for first in range(0, len(hrefs), PORTION):
                count += len(self._read([base], [hrefs[first : first + PORTION]]).others)
                if count + keys_of_root.cache_info().misses - met > most:
                    break
        return count + keys_of_root.cache_info().misses - met

    def _read(self, bases: Sequence[Base], hrefs_of: Sequence[Sequence[str]]) -> Joined:
        """Resolve the plain links of pages with `joiner`, a page at a time. Without it every link is for the parser."""
        others: list[tuple[int, str, int]] = []
        if join is None:
            links = [(href, page) for page, hrefs in enumerate(hrefs_of) for href in hrefs]
            others = [(at, *link) for at, link in enumerate(links)]
            return Joined([b""] * len(links), keys_of_bases(bases, hrefs_of), others, set())
        urls: list[bytes] = []
        cut: set[int] = set()
        named: list[tuple[int, tuple[int, int]]] = []
        known: dict[bytes, tuple[int, int] | None] = {}
        for page, (base, hrefs) in enumerate(zip(bases, hrefs_of, strict=True)):
            first, room = len(urls), self._room(base, hrefs)
            found, left, own, is_cut = join([*hrefs], base[1:5], len(base.url), room, known, keys_of_root)
            urls += found
            others += [(first + at, hrefs[at], page) for at in left]
            if is_cut:
                cut.add(page)
            named += [(first + at, keys) for at, keys in own]
        keys = keys_of_bases(bases, hrefs_of)
        if named:
            keys[[at for at, _ in named]] = [own for _, own in named]
        return Joined(urls, keys, others, cut)

    def _room(self, base: Base, hrefs: Sequence[str]) -> int:
        """Return how many bytes the URLs of one page may take."""
        if len(hrefs) * MAX_URL_BYTES <= self._most_bytes:
            return self._most_bytes
        slack = SLACK + len(base.root)
        return max(self._most_bytes, min(sum(map(len, hrefs)) + slack * len(hrefs), MOST_WRITTEN_BYTES))

    def _parsed(self, href: str, base: str) -> Locator | None:
        """Return `href` by the WHATWG parser, None if it is not a URL that can be fetched."""
        url = canonical(href, base)
        return locate(url) if url is not None and url[: url.index(":")] in self._schemes else None


def _located(urls: list[bytes], keys: npt.NDArray[np.uint64], cut: frozenset[int]) -> Located:
    link = np.arange(len(urls))
    if b"" in urls:
        link = np.flatnonzero(np.fromiter(map(len, urls), np.int64, len(urls)))
        urls = list(filter(None, urls))
    key = np.frombuffer(keys_of(urls), "<u8")
    return Located(urls, binary_array(urls), key, keys[link, 0], keys[link, 1], link, cut)
