"""Resolves plain links with NumPy, if `joiner` was not compiled.

All hrefs become one text, and a few passes over its bytes find what `joiner` finds one by one, in three times the time.
Called by `fyke.core.resolve`.
"""

from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

from fyke.core.bases import LONGEST_ROOT, Base, Resolved, keys_of_bases, keys_of_root
from fyke.core.batches import Int, Mask
from fyke.core.urls import MAX_URL_BYTES, UNRESERVED

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
_ABSOLUTE, _ACROSS, _ROOTED, _RELATIVE, _QUERY = range(5)  # `http://h/x`; with a prefix: `//h/x`, `/x`, `x`, `?x`


def resolve_by_columns(bases: Sequence[Base], hrefs_of: Sequence[Sequence[str]], rooms: Sequence[int]) -> Resolved:
    """Resolve the plain links of pages, whose URLs may take as many bytes as `rooms` says for each."""
    hrefs = list(chain.from_iterable(hrefs_of))
    counts = np.array([len(hrefs) for hrefs in hrefs_of], np.int64)
    page = np.repeat(np.arange(len(bases)), counts)
    text = _text(hrefs)
    links = _read(text)
    links.plain &= np.array([bool(base.folder) for base in bases], np.bool_)[page]
    prefixes = _Prefixes(bases, links, page)
    keys = keys_of_bases(bases, hrefs_of)
    _read_roots(text, links, prefixes, keys)

    base_bytes = np.array([len(base.url) for base in bases], np.int64)[page]
    size = np.where(links.plain, prefixes.sizes() - links.begin, base_bytes - links.start) + links.end
    before = np.cumsum(size) - size
    room = np.array(rooms, np.int64)[page]
    within = before + size - before[(np.cumsum(counts) - counts)[page]] <= room
    urls = _joined(text, links, prefixes, links.plain & within & (size <= MAX_URL_BYTES))
    left = np.flatnonzero(~links.plain & within)
    others = [(at, hrefs[at], number) for at, number in zip(left.tolist(), page[left].tolist(), strict=True)]
    return urls, keys, others, set(page[~within].tolist())


class _Prefixes:
    """The prefixes of the plain links: link i has `texts[which[i]]` (`which`: int64[n])."""

    def __init__(self, bases: Sequence[Base], links: "_LinkText", page: Int) -> None:
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
    found = [keys_of_root(root) if len(root) <= LONGEST_ROOT else None for root in number]
    which = np.fromiter(map(number.__getitem__, roots), np.int64, len(roots))
    links.plain[named] = np.array([each is not None for each in found], np.bool_)[which]
    keys[named] = np.array([each or (0, 0) for each in found], np.uint64).reshape(-1, 2)[which]


def _joined(text: bytes, links: _LinkText, prefixes: _Prefixes, wanted: Mask) -> list[bytes]:
    """Return the URLs of the `wanted` links, and an empty one for each other link."""
    of, begin, end = (np.where(wanted, column, 0).tolist() for column in (prefixes.which, links.begin, links.end))
    texts = prefixes.texts
    return [texts[before] + text[first:last] for before, first, last in zip(of, begin, end, strict=True)]
