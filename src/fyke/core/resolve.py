"""Where do links lead? Resolves the links of many pages at once, as columns.

Called for each batch of pages with every href in it, some sixty a page: beside the HTML parser this is the hottest
code.

- Most links are *plain*: a URL parser would find nothing to normalise in them. The URL of a plain link is a prefix
  (nothing, or the root or a directory of the page's base) and the link without its fragment. `joiner`, in C, joins
  them. If it was not compiled, all hrefs become one text, and a few passes over its bytes do the same in three times
  the time.
- The other links go to the WHATWG parser one by one, at ten microseconds each; so does each host that was not met
  lately. A page may have thirty thousand of them. A caller that must not wait counts them first (`slow_links`).

No link is remembered, only the keys of hosts: a link costs the same however many different links there are.

Bounded: a short link below a long base is a long URL. The URLs of one page take at most `most_bytes`, or the size of
its links as written if that is more, up to `MOST_WRITTEN_BYTES`. Later links are dropped, and their pages are told
(`Located.cut`).

Invariant: within that bound, `resolve` gives exactly what `canonical` and `locate` of `fyke.core.urls` give for the
schemes that are fetched, in order, with repeats.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from fyke.core.batches import NO_KEYS, U64, Mask, binary_array
from fyke.core.pace import breathe
from fyke.core.urls import MAX_URL_BYTES, SCHEMES, UNRESERVED, Locator, canonical, host_keys, locate, split

try:
    from fyke.core.joiner import join
except ImportError:  # there was no compiler when Fyke was installed
    join = None  # type: ignore[assignment]

MOST_BYTES = 8 << 20
MOST_WRITTEN_BYTES = 12 << 20  # of links that are written out, as in a sitemap of 50,000 with 250 bytes each
PORTION = 256  # links looked at, or parsed, between two steps
SLACK = 8  # bytes by which a URL may be longer than its link as written, beside the root

Int = npt.NDArray[np.int64]

# Classes of bytes in a link; bytes of class 0 stand for themselves wherever they are.
_NEWLINE, _HASH, _ASK, _PERCENT, _QUOTE, _DOT, _COLON, _ODD = range(1, 9)
_CLASS = np.full(256, _ODD, np.uint8)
_CLASS[list(UNRESERVED | frozenset(b"!$&()*+,;=@/"))] = 0
_CLASS[list(b"\n#?%'.:")] = range(1, 8)
_MEANS_SOMETHING = bytes(map(bool, _CLASS))
_SLASH = ord("/")
_BEGINS_NAME = (_CLASS == 0) | (_CLASS == _PERCENT)  # bytes that begin a relative link with a file's or folder's name
_BEGINS_NAME[_SLASH] = False

# An escape has the value of its digits; other characters in it make the value an index beyond all escapes.
_DIGIT = np.full(256, 256, np.int64)
_DIGIT[list(b"0123456789ABCDEF")] = range(16)
_STAYS = np.zeros(256 * 17 + 1, np.bool_)
_STAYS[[value for value in range(256) if value not in UNRESERVED]] = True

_HTTP, _HTTPS = (int.from_bytes(start, "little") for start in (b"http://", b"https://"))
_SEVEN_BYTES = (1 << 56) - 1
_PADDING = 8  # bytes behind the last link, so that 8 can be read at any place
_UPS = 8  # folders that a plain link may leave
_LONGEST_ROOT = 255  # bytes; no name in the DNS is longer

# A base: its root, its path up to the last slash, and its file.
_BASE = re.compile(r"((([a-z][a-z0-9+.-]*):)//[^/?#\\]+)(/(?:[^?#\\]*/)?)([^/?#\\]*)(?:[?#][!-~]*)?")
# A canonical root: the last label of its host is not a number, and no label is encoded.
_PLAIN_ROOT = re.compile(r"https?://((?:(?!xn--)[a-z0-9][a-z0-9-]*\.)*(?!xn--)[a-z][a-z0-9-]*)")
_PLAIN_PATH = re.compile(r"(?:/(?!\.)[A-Za-z0-9_~!$&()*+,;=@.-]*)+")  # canonical below a canonical root


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
        bases = [_base(url, self._schemes) for url, _ in pages]
        urls, keys, others, cut = self._read(bases, [hrefs for _, hrefs in pages])
        room, of = MOST_WRITTEN_BYTES, 0
        for number, (at, href, page) in enumerate(others):
            if number % PORTION == 0:
                breathe()
            if page != of:
                room, of = MOST_WRITTEN_BYTES, page
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
        count, met = 0, _keys_of_root.cache_info().misses
        for url, hrefs in pages:
            base = _base(url, self._schemes)
            for first in range(0, len(hrefs), PORTION):
                count += len(self._read([base], [hrefs[first : first + PORTION]])[2])
                if count + _keys_of_root.cache_info().misses - met > most:
                    break
        return count + _keys_of_root.cache_info().misses - met

    def _read(self, bases: Sequence["_Base"], hrefs_of: Sequence[Sequence[str]]) -> "_Resolved":
        """Resolve the plain links of pages."""
        return self._by_columns(bases, hrefs_of) if join is None else self._one_by_one(bases, hrefs_of)

    def _one_by_one(self, bases: Sequence["_Base"], hrefs_of: Sequence[Sequence[str]]) -> "_Resolved":
        """Resolve them with `joiner`, in C, a page at a time."""
        urls: list[bytes] = []
        others: list[tuple[int, str, int]] = []
        cut: set[int] = set()
        named: list[tuple[int, tuple[int, int]]] = []
        known: dict[bytes, tuple[int, int] | None] = {}
        for page, (base, hrefs) in enumerate(zip(bases, hrefs_of, strict=True)):
            first, room = len(urls), self._room(base, hrefs)
            found, left, own, is_cut = join([*hrefs], base[1:5], len(base.url), room, known, _keys_of_root)
            urls += found
            others += [(first + at, hrefs[at], page) for at in left]
            if is_cut:
                cut.add(page)
            named += [(first + at, keys) for at, keys in own]
        keys = _keys_of_bases(bases, hrefs_of)
        if named:
            keys[[at for at, _ in named]] = [own for _, own in named]
        return urls, keys, others, cut

    def _by_columns(self, bases: Sequence["_Base"], hrefs_of: Sequence[Sequence[str]]) -> "_Resolved":
        """Resolve them with NumPy, all pages at once."""
        hrefs = list(chain.from_iterable(hrefs_of))
        counts = np.array([len(hrefs) for hrefs in hrefs_of], np.int64)
        page = np.repeat(np.arange(len(bases)), counts)
        text = _text(hrefs)
        links = _read(text)
        links.plain &= np.array([bool(base.folder) for base in bases], np.bool_)[page]
        prefixes = _Prefixes(bases, links, page)
        keys = _keys_of_bases(bases, hrefs_of)
        _read_roots(text, links, prefixes, keys)

        base_bytes = np.array([len(base.url) for base in bases], np.int64)[page]
        size = np.where(links.plain, prefixes.sizes() - links.begin, base_bytes - links.start) + links.end
        before = np.cumsum(size) - size
        room = np.array([self._room(*each) for each in zip(bases, hrefs_of, strict=True)], np.int64)[page]
        within = before + size - before[(np.cumsum(counts) - counts)[page]] <= room
        urls = _joined(text, links, prefixes, links.plain & within & (size <= MAX_URL_BYTES))
        left = np.flatnonzero(~links.plain & within)
        others = [(at, hrefs[at], number) for at, number in zip(left.tolist(), page[left].tolist(), strict=True)]
        return urls, keys, others, set(page[~within].tolist())

    def _room(self, base: "_Base", hrefs: Sequence[str]) -> int:
        """Return how many bytes the URLs of one page may take."""
        if len(hrefs) * MAX_URL_BYTES <= self._most_bytes:
            return self._most_bytes
        slack = SLACK + len(base.root)
        return max(self._most_bytes, min(sum(map(len, hrefs)) + slack * len(hrefs), MOST_WRITTEN_BYTES))

    def _parsed(self, href: str, base: str) -> Locator | None:
        """Return `href` by the WHATWG parser, None if it is not a URL that can be fetched."""
        url = canonical(href, base)
        return locate(url) if url is not None and url[: url.index(":")] in self._schemes else None


# -- bases --------------------------------------------------------------------------------------


class _Base(NamedTuple):
    """The base of a page's links. `folder` is empty if only a parser can resolve against it."""

    url: str
    scheme: bytes = b""
    root: bytes = b""
    folder: bytes = b""
    file: bytes = b""  # the whole URL without its query
    keys: tuple[int, int] = (0, 0)  # of host and domain

    def above(self, ups: int) -> bytes:
        """Return the folder `ups` levels up, or the root's."""
        folder = self.folder
        while ups and len(folder) > len(self.root) + 1:
            folder = folder[: folder.rindex(b"/", 0, -1) + 1]
            ups -= 1
        return folder


def _base(url: str, schemes: frozenset[str]) -> _Base:
    match = _BASE.fullmatch(url) if url.isascii() and len(url) <= MAX_URL_BYTES else None
    if match is None:
        return _Base(url)
    root, scheme, name, path, file = match.groups()
    whole = f"{root}{path}{file}"
    keys = _keys_of_root(root.encode()) if len(root) <= _LONGEST_ROOT else None
    tidy = keys is not None and (_PLAIN_PATH.fullmatch(whole, len(root)) or canonical(whole) == whole)
    if name not in schemes or keys is None or not tidy:
        return _Base(url)
    return _Base(url, scheme.encode(), root.encode(), f"{root}{path}".encode(), whole.encode(), keys)


# URLs, empty if not resolved yet; keys of host and domain, a row each; links for a parser: number, link, page; pages
# whose last links were dropped.
_Resolved = tuple[list[bytes], npt.NDArray[np.uint64], list[tuple[int, str, int]], set[int]]


def _keys_of_bases(bases: Sequence[_Base], hrefs_of: Sequence[Sequence[str]]) -> npt.NDArray[np.uint64]:
    """Return for each link the keys of its page's host and domain."""
    keys = np.array([base.keys for base in bases], np.uint64).reshape(-1, 2)
    return np.repeat(keys, [len(hrefs) for hrefs in hrefs_of], axis=0)


class _Prefixes:
    """The prefixes of the plain links: link i has `texts[which[i]]` (`which`: int64[n])."""

    def __init__(self, bases: Sequence[_Base], links: "_LinkText", page: Int) -> None:
        self.texts = [b"", *chain.from_iterable(base[1:5] for base in bases)]
        self.which = 4 * page + links.kind
        self.which[~links.plain | links.absolute] = 0
        leaving = np.flatnonzero(links.ups * links.plain)
        if len(leaving):
            pairs, pair_of = np.unique(page[leaving] * (_UPS + 1) + links.ups[leaving], return_inverse=True)
            self.which[leaving] = len(self.texts) + pair_of
            self.texts += [bases[pair // (_UPS + 1)].above(pair % (_UPS + 1)) for pair in pairs.tolist()]

    def sizes(self) -> Int:
        """Return the length of each link's prefix in bytes."""
        sizes: Int = np.fromiter(map(len, self.texts), np.int64, len(self.texts))[self.which]
        return sizes


# -- links --------------------------------------------------------------------------------------

_ABSOLUTE, _ACROSS, _ROOTED, _RELATIVE, _QUERY = range(5)  # `http://h/x`; with a prefix: `//h/x`, `/x`, `x`, `?x`


class _LinkText:
    """n links in one text: places in the text, [n] each, and the kind of each link."""

    def __init__(self, start: Int, begin: Int, query: Int, end: Int, ups: Int, kind: Int, plain: Mask) -> None:
        self.start = start  # of the link as written
        self.begin = begin  # of the part that goes into the URL, behind `./` and `../`
        self.query = query  # of the question mark, or the end
        self.end = end
        self.ups = ups  # folders to leave
        self.kind = kind
        self.plain = plain

    @property
    def absolute(self) -> Mask:
        return np.equal(self.kind, _ABSOLUTE)


def _text(hrefs: Sequence[str]) -> bytes:
    """Return the links, a line each; a link that only a parser can read is an empty line."""
    text = "\n".join([*hrefs, ""])
    if not text.isascii() or text.count("\n") != len(hrefs):
        text = "\n".join([*(href if href.isascii() and "\n" not in href else "" for href in hrefs), ""])
    return text.encode() + bytes(_PADDING)


def _read(text: bytes) -> _LinkText:
    """Find the parts of the links in `text`. A character that does not stand for itself makes a link not plain."""
    data = np.frombuffer(text, np.uint8)
    marked = text.translate(_MEANS_SOMETHING)  # five times as fast as NumPy's way
    at = np.flatnonzero(np.frombuffer(marked, np.bool_)[:-_PADDING])
    what = _CLASS[data[at]]
    newline = what == _NEWLINE
    link = np.cumsum(newline) - newline
    stop = at[newline]
    start = np.concatenate((np.zeros(1, np.int64), stop + 1))[:-1]
    end = _first(at, link, what == _HASH, stop)
    query = _first(at, link, (what == _ASK) & (at < end[link]), end)
    begin, ups = _after_dots(data, start)
    kind = _kinds(data, start, begin)
    relative = kind == _RELATIVE

    odd = what == _ODD
    odd |= (what == _QUOTE) & (at > query[link])
    odd |= (what == _DOT) & (data[at - 1] == _SLASH) & (at < query[link])
    odd |= (what == _COLON) & (relative & (begin == start))[link]  # it may end the name of a scheme
    odd &= (at < end[link]) & (at >= begin[link])
    escape = np.flatnonzero(what == _PERCENT)
    value = 16 * _DIGIT[data[at[escape] + 1]] + _DIGIT[data[at[escape] + 2]]
    odd[escape] |= ~_STAYS[value] & (at[escape] < end[link[escape]])
    plain = (kind >= 0) & (query + 1 != end)
    plain[link[odd]] = False
    return _LinkText(start, begin, query, end, ups, kind, plain)


def _first(at: Int, link: Int, which: Mask, otherwise: Int) -> Int:
    """Return the place of the first mark in `which` of each link, `otherwise` for a link without one."""
    found = otherwise.copy()
    found[link[which][::-1]] = at[which][::-1]
    return found


def _after_dots(data: npt.NDArray[np.uint8], start: Int) -> tuple[Int, Int]:
    """Return the place behind the leading `./` and `../` of each link, and how many `../` it has."""
    begin, ups = start.copy(), np.zeros_like(start)
    dotted = np.flatnonzero(data[start] == ord("."))
    begin[dotted[data[start[dotted] + 1] == _SLASH]] += 2
    for _ in range(_UPS):
        here = begin[dotted]
        dotted = dotted[(data[here] == ord(".")) & (data[here + 1] == ord(".")) & (data[here + 2] == _SLASH)]
        if not len(dotted):
            break
        begin[dotted] += 3
        ups[dotted] += 1
    return begin, ups


def _kinds(data: npt.NDArray[np.uint8], start: Int, begin: Int) -> Int:
    """Return the kind of each link by its beginning, -1 if no plain link begins that way."""
    word = data[start[:, None] + np.arange(_PADDING)].view("<u8").ravel()
    first, second = data[start], data[start + 1]
    kind = np.full(len(start), -1)
    kind[(begin > start) & (data[begin] != ord(".")) | _BEGINS_NAME[first]] = _RELATIVE
    kind[first == ord("?")] = _QUERY
    kind[first == _SLASH] = _ROOTED
    kind[(first == _SLASH) & (second == _SLASH)] = _ACROSS
    kind[(word & _SEVEN_BYTES == _HTTP) | (word == _HTTPS)] = _ABSOLUTE
    return kind


def _read_roots(text: bytes, links: _LinkText, prefixes: _Prefixes, keys: npt.NDArray[np.uint64]) -> None:
    """Put the keys of the hosts that links name into `keys`. A link whose root is not canonical is not plain."""
    named = np.flatnonzero(links.plain & (links.kind <= _ACROSS))
    starts = links.start[named].tolist()
    hosts = np.where(links.absolute[named], 8, 2) + links.start[named]
    slashes = map(text.find, repeat(b"/"), hosts.tolist(), links.query[named].tolist())
    roots = [text[start:slash] for start, slash in zip(starts, slashes, strict=True)]  # nearly all, without a slash
    for at in np.flatnonzero(links.kind[named] == _ACROSS).tolist():
        roots[at] = prefixes.texts[prefixes.which[named[at]]] + roots[at]
    number = {root: place for place, root in enumerate(dict.fromkeys(roots))}
    found = [_keys_of_root(root) if len(root) <= _LONGEST_ROOT else None for root in number]
    which = np.fromiter(map(number.__getitem__, roots), np.int64, len(roots))
    links.plain[named] = np.array([each is not None for each in found], np.bool_)[which]
    keys[named] = np.array([each or (0, 0) for each in found], np.uint64).reshape(-1, 2)[which]


@lru_cache(maxsize=1 << 14)
def _keys_of_root(root: bytes) -> tuple[int, int] | None:
    """Return the keys of host and domain, None if `root` is not canonical scheme, host and port."""
    text = root.decode()
    if plain := _PLAIN_ROOT.fullmatch(text):
        return host_keys(plain[1])
    return host_keys(split(url).host) if canonical(url := f"{text}/") == url else None


def _joined(text: bytes, links: _LinkText, prefixes: _Prefixes, wanted: Mask) -> list[bytes]:
    """Return the URLs of the `wanted` links, and an empty one for each other link."""
    of, begin, end = (np.where(wanted, column, 0).tolist() for column in (prefixes.which, links.begin, links.end))
    texts = prefixes.texts
    return [texts[before] + text[first:last] for before, first, last in zip(of, begin, end, strict=True)]


def _located(urls: list[bytes], keys: npt.NDArray[np.uint64], cut: frozenset[int]) -> Located:
    link = np.arange(len(urls))
    if b"" in urls:
        link = np.flatnonzero(np.fromiter(map(len, urls), np.int64, len(urls)))
        urls = list(filter(None, urls))
    key = np.fromiter(map(xxh3_64_intdigest, urls), np.uint64, len(urls))
    return Located(urls, binary_array(urls), key, keys[link, 0], keys[link, 1], link, cut)
