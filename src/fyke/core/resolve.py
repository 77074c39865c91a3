"""From what pages say to where it points: the links of many pages resolved at once, as columns.

Called for each batch of pages with every href in it, some sixty a page: beside the HTML parser this is the hottest
code. Most links are *plain*: a URL parser would find nothing to normalise in them. Such a link leads to what stands
before it (nothing, or the root or a directory of the page's base) and itself, without its fragment. `joiner`, in C,
reads and joins those; where it was not compiled, all hrefs become one text, and a few passes over its bytes do the
same, in three times the time. The others go to the WHATWG parser, one by one, at ten microseconds each; so does each
host that was not met lately. A page may have thirty thousand such links: who must not wait for them asks before how
many there are (`slow_links`). Nothing is remembered but the keys of hosts, so a link costs the same however many
different ones there are.

A short link below a long base is a long URL: what the links of one page come to is bounded by `most_bytes`, or by
what they are as written where that is more, up to `MOST_WRITTEN_BYTES`; links behind that are dropped, and it is said
of which pages.

Invariant: within that bound, `resolve` gives exactly what `canonical` and `locate` of `fyke.core.urls` give of the
schemes that are fetched, in order, repeats included.
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
MOST_WRITTEN_BYTES = 12 << 20  # of those that are written out, as in a sitemap of 50,000 with 250 bytes each
PORTION = 256  # links looked at, or parsed, between two steps
SLACK = 8  # bytes that a link written out may lack of its URL, beside the root

Int = npt.NDArray[np.int64]

# What a byte means in a link; those of class 0 stand for themselves wherever they are.
_NEWLINE, _HASH, _ASK, _PERCENT, _QUOTE, _DOT, _COLON, _ODD = range(1, 9)
_CLASS = np.full(256, _ODD, np.uint8)
_CLASS[list(UNRESERVED | frozenset(b"!$&()*+,;=@/"))] = 0
_CLASS[list(b"\n#?%'.:")] = range(1, 8)
_MEANS_SOMETHING = bytes(map(bool, _CLASS))
_SLASH = ord("/")
_BEGINS_NAME = (_CLASS == 0) | (_CLASS == _PERCENT)  # of a file or folder, at the beginning of a link
_BEGINS_NAME[_SLASH] = False

# The value of an escape is that of its digits; those of other characters make it too large for this table.
_DIGIT = np.full(256, 256, np.int64)
_DIGIT[list(b"0123456789ABCDEF")] = range(16)
_STAYS = np.zeros(256 * 17 + 1, np.bool_)
_STAYS[[value for value in range(256) if value not in UNRESERVED]] = True

_HTTP, _HTTPS = (int.from_bytes(start, "little") for start in (b"http://", b"https://"))
_SEVEN_BYTES = (1 << 56) - 1
_PADDING = 8  # bytes behind the last link, so that as many can be read at any place
_UPS = 8  # folders that a plain link may leave
_LONGEST_ROOT = 255  # bytes; no name in the DNS is longer

# Of a base: its root, its path up to the last slash, and its file.
_BASE = re.compile(r"((([a-z][a-z0-9+.-]*):)//[^/?#\\]+)(/(?:[^?#\\]*/)?)([^/?#\\]*)(?:[?#][!-~]*)?")
# A root that is canonical: the last part of its host is no number, and none is encoded.
_PLAIN_ROOT = re.compile(r"https?://((?:(?!xn--)[a-z0-9][a-z0-9-]*\.)*(?!xn--)[a-z][a-z0-9-]*)")
_PLAIN_PATH = re.compile(r"(?:/(?!\.)[A-Za-z0-9_~!$&()*+,;=@.-]*)+")  # canonical below a root that is


@dataclass(frozen=True, slots=True)
class Located:
    """Canonical URLs with their keys, a row each; `link` is the number of the link that a row came from, and `cut` has
    the numbers of the pages of which links were dropped."""

    urls: list[bytes]
    url: pa.BinaryArray  # the same
    key: U64
    host: U64
    domain: U64
    link: Int
    cut: frozenset[int] = frozenset()

    def locators(self) -> list[Locator]:
        """The rows as objects."""
        keys = (column.tolist() for column in (self.key, self.host, self.domain))
        return list(map(Locator, self.urls, *keys))


NOWHERE = Located([], binary_array([]), NO_KEYS, NO_KEYS, NO_KEYS, np.empty(0, np.int64))


class LinkResolver:
    """Resolves links against the pages they are on.

    What has none of `schemes` is no link to anything that can be fetched. Those of http and https always are.
    """

    def __init__(self, schemes: Collection[str] = SCHEMES, *, most_bytes: int = MOST_BYTES) -> None:
        self._schemes = frozenset(schemes)
        self._most_bytes = most_bytes

    def __repr__(self) -> str:
        return f"LinkResolver({', '.join(sorted(self._schemes))})"

    def resolve(self, pages: Sequence[tuple[str, Sequence[str]]]) -> Located:
        """Where the links of `pages` lead: of each page its base URL and its hrefs. Links count through all pages."""
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
        """How many links of `pages` must be parsed, or name a host that was not met lately; not counted far beyond
        `most`."""
        count, met = 0, _keys_of_root.cache_info().misses
        for url, hrefs in pages:
            base = _base(url, self._schemes)
            for first in range(0, len(hrefs), PORTION):
                count += len(self._read([base], [hrefs[first : first + PORTION]])[2])
                if count + _keys_of_root.cache_info().misses - met > most:
                    break
        return count + _keys_of_root.cache_info().misses - met

    def _read(self, bases: Sequence["_Base"], hrefs_of: Sequence[Sequence[str]]) -> "_Resolved":
        """The links of pages but for those that must be parsed."""
        return self._by_columns(bases, hrefs_of) if join is None else self._one_by_one(bases, hrefs_of)

    def _one_by_one(self, bases: Sequence["_Base"], hrefs_of: Sequence[Sequence[str]]) -> "_Resolved":
        """With `joiner`, in C: a page at a time."""
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
        """With NumPy: all pages at once."""
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
        """Bytes that the URLs of one page may come to."""
        if len(hrefs) * MAX_URL_BYTES <= self._most_bytes:
            return self._most_bytes
        slack = SLACK + len(base.root)
        return max(self._most_bytes, min(sum(map(len, hrefs)) + slack * len(hrefs), MOST_WRITTEN_BYTES))

    def _parsed(self, href: str, base: str) -> Locator | None:
        """`href` by the WHATWG parser; None when it is no URL that can be fetched."""
        url = canonical(href, base)
        return locate(url) if url is not None and url[: url.index(":")] in self._schemes else None


# -- bases --------------------------------------------------------------------------------------


class _Base(NamedTuple):
    """What the links of a page are relative to; without a folder when only a parser can tell."""

    url: str
    scheme: bytes = b""
    root: bytes = b""
    folder: bytes = b""
    file: bytes = b""  # with all before it
    keys: tuple[int, int] = (0, 0)  # of host and domain

    def above(self, ups: int) -> bytes:
        """The folder that many levels up, or the highest there is."""
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


# URLs, empty where there is none yet; keys of host and domain, a row each; what a parser must read: number, link, page;
# pages of which links were dropped.
_Resolved = tuple[list[bytes], npt.NDArray[np.uint64], list[tuple[int, str, int]], set[int]]


def _keys_of_bases(bases: Sequence[_Base], hrefs_of: Sequence[Sequence[str]]) -> npt.NDArray[np.uint64]:
    """For each link the keys of its page's host and domain."""
    keys = np.array([base.keys for base in bases], np.uint64).reshape(-1, 2)
    return np.repeat(keys, [len(hrefs) for hrefs in hrefs_of], axis=0)


class _Prefixes:
    """What stands before the plain links: `of` (int64[n]) says which of `texts`."""

    def __init__(self, bases: Sequence[_Base], links: "_LinkText", page: Int) -> None:
        self.texts = [b"", *chain.from_iterable(base[1:5] for base in bases)]
        self.of = 4 * page + links.kind
        self.of[~links.plain | links.absolute] = 0
        leaving = np.flatnonzero(links.ups * links.plain)
        if len(leaving):
            pairs, which = np.unique(page[leaving] * (_UPS + 1) + links.ups[leaving], return_inverse=True)
            self.of[leaving] = len(self.texts) + which
            self.texts += [bases[pair // (_UPS + 1)].above(pair % (_UPS + 1)) for pair in pairs.tolist()]

    def sizes(self) -> Int:
        """Bytes that stand before each link."""
        sizes: Int = np.fromiter(map(len, self.texts), np.int64, len(self.texts))[self.of]
        return sizes


# -- links --------------------------------------------------------------------------------------

_ABSOLUTE, _ACROSS, _ROOTED, _RELATIVE, _QUERY = range(5)  # `http://h/x`; others by prefix: `//h/x`, `/x`, `x`, `?x`


class _LinkText:
    """n links in one text: what of them is part of the URL, and how that begins."""

    def __init__(self, start: Int, begin: Int, query: Int, end: Int, ups: Int, kind: Int, plain: Mask) -> None:
        self.start = start  # of what is written
        self.begin = begin  # of what stands for itself
        self.query = query  # its question mark, or its end
        self.end = end
        self.ups = ups  # folders to leave
        self.kind = kind
        self.plain = plain

    @property
    def absolute(self) -> Mask:
        return np.equal(self.kind, _ABSOLUTE)


def _text(hrefs: Sequence[str]) -> bytes:
    """The links, a line each; those that only a parser can read are empty lines."""
    text = "\n".join([*hrefs, ""])
    if not text.isascii() or text.count("\n") != len(hrefs):
        text = "\n".join([*(href if href.isascii() and "\n" not in href else "" for href in hrefs), ""])
    return text.encode() + bytes(_PADDING)


def _read(text: bytes) -> _LinkText:
    """What the links in `text` are. A link that is not plain has a character that stands for something else."""
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
    """The place of the first mark of each link that is one of `which`."""
    found = otherwise.copy()
    found[link[which][::-1]] = at[which][::-1]
    return found


def _after_dots(data: npt.NDArray[np.uint8], start: Int) -> tuple[Int, Int]:
    """Where each link goes on behind its `./` and `../`, and how many of the latter it has."""
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
    """How each link begins; -1 where it begins as none that is plain."""
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
    """Put the keys of hosts that links name into `keys`; a link whose root is not canonical is not plain."""
    named = np.flatnonzero(links.plain & (links.kind <= _ACROSS))
    starts = links.start[named].tolist()
    hosts = np.where(links.absolute[named], 8, 2) + links.start[named]
    slashes = map(text.find, repeat(b"/"), hosts.tolist(), links.query[named].tolist())
    roots = [text[start:slash] for start, slash in zip(starts, slashes, strict=True)]  # nearly all, without a slash
    for at in np.flatnonzero(links.kind[named] == _ACROSS).tolist():
        roots[at] = prefixes.texts[prefixes.of[named[at]]] + roots[at]
    number = {root: place for place, root in enumerate(dict.fromkeys(roots))}
    found = [_keys_of_root(root) if len(root) <= _LONGEST_ROOT else None for root in number]
    which = np.fromiter(map(number.__getitem__, roots), np.int64, len(roots))
    links.plain[named] = np.array([each is not None for each in found], np.bool_)[which]
    keys[named] = np.array([each or (0, 0) for each in found], np.uint64).reshape(-1, 2)[which]


@lru_cache(maxsize=1 << 14)
def _keys_of_root(root: bytes) -> tuple[int, int] | None:
    """The keys of host and domain; None when `root` is no canonical scheme, host and port."""
    text = root.decode()
    if plain := _PLAIN_ROOT.fullmatch(text):
        return host_keys(plain[1])
    return host_keys(split(url).host) if canonical(url := f"{text}/") == url else None


def _joined(text: bytes, links: _LinkText, prefixes: _Prefixes, wanted: Mask) -> list[bytes]:
    """The URLs of the `wanted` links, and nothing for the others."""
    of, begin, end = (np.where(wanted, column, 0).tolist() for column in (prefixes.of, links.begin, links.end))
    texts = prefixes.texts
    return [texts[before] + text[first:last] for before, first, last in zip(of, begin, end, strict=True)]


def _located(urls: list[bytes], keys: npt.NDArray[np.uint64], cut: frozenset[int]) -> Located:
    link = np.arange(len(urls))
    if b"" in urls:
        link = np.flatnonzero(np.fromiter(map(len, urls), np.int64, len(urls)))
        urls = list(filter(None, urls))
    key = np.fromiter(map(xxh3_64_intdigest, urls), np.uint64, len(urls))
    return Located(urls, binary_array(urls), key, keys[link, 0], keys[link, 1], link, cut)
