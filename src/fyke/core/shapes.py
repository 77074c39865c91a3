"""Common forms of URLs: the shapes of a URL, from its own path to its whole host.

Programs make traps, so their URLs are alike: a calendar's differ in numbers, a list's in the order of its parameters, a
broken link's in how often a part repeats. A shape is the text that stays the same; hashed with the key of its host or
domain, it is a number (`shape_keys`). `fyke.frontier.guard` knows which shapes bring no new text.

The `skeleton` is a URL without the parts that no shape depends on. A trap has a million URLs and a few skeletons, so
shapes are computed seldom.

Pure. Bounded: only the first `MOST_CHARS` of a URL count, and in them the first `MOST_PARTS` parts of the path and
`MOST_NAMES` names in the query.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import xxhash

KEPT = 1024  # skeletons whose shapes are kept: URLs of one skeleton often follow each other
MOST_CHARS = 512
MOST_PARTS = 24
MOST_NAMES = 8
MOST_LEFT_OUT = 6  # names in a query that are left out, one at a time, to find variants
DEEP_PARTS = 8  # from here on a path is deep
MOST_LABELS = 5  # hosts with more labels share a shape
LONG_URL = 256  # characters, from here on a URL is long
_DIGITS = re.compile(r"[0-9]+")
# A value in a query, unless it is a short word, which may be one of a few. Forums and repositories part queries by `;`
# instead of `&` (HTML 4.01, B.2.2).
_VALUE = re.compile(r"=(?![a-z]{2,12}(?:[&;]|$))[^&;]*")
_PAIRS = re.compile(r"[&;]")
_MADE_UP = re.compile(r"(?<=/)[^/#]*+#[^/#]++#[^/#]++#[^/]*+")  # a part with three numbers and more
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # RFC 9562, 4
_HEX = rf"(?<![0-9A-Za-z])(?:{_UUID}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{8,}})(?![0-9A-Za-z])"
_DIGEST = re.compile(_HEX, re.IGNORECASE)
# A digest, with the text that means nothing without it: parameters of a path (RFC 3986, 3.3), brackets around it, its
# name in a query.
_OF_PATH = re.compile(rf";[^/?;=]+=[^/?;]*|/\([^/()?]*\({_HEX}\)+|{_HEX}", re.IGNORECASE)
_OF_QUERY = re.compile(rf"(?<=[?&;])[^=&;]*={_HEX}[^&;]*(?:[&;]|$)|{_HEX}", re.IGNORECASE)
_BETWEEN = re.compile(r"[/?&;]")
VARIANTS = ("what looks made up in it", "its query", "its folders", "the order of its parts, and how often they come")
DIGEST, QUERY, FOLDERS = 0, 1, 2  # places in `VARIANTS`; a URL without its query has no digests either
_A_DIGEST = "#.#.#"  # looks made up


class Shapes(NamedTuple):
    """The shapes of one URL, as readable text, with `#` for numbers and `*` for parts that look made up."""

    own: str  # its whole path, and the names in its query
    names: list[str]  # each name in its query
    words: list[str]  # each name with a short word as its value, if there are other names
    sharp: list[str]  # traits of few honest URLs: several names in the query, a part that repeats, depth, length
    coarse: list[str]  # its place: the kinds of parts in its path, its folders, its host
    hosts: str  # the number of labels of its host, a shape of its domain


class Skeleton(NamedTuple):
    """A canonical URL without the parts on which no shape depends."""

    host: str  # with scheme; a # for each number
    path: str  # a # for each number, a * for a part that looks made up
    query: str  # without values, except for short words
    is_long: bool


def skeleton(url: str) -> Skeleton:
    """Return the skeleton of a canonical URL."""
    place, _, query = url[:MOST_CHARS].partition("?")
    place = _DIGITS.sub("#", _DIGEST.sub(_A_DIGEST, place))
    end = place.find("/", place.find("://") + 3)
    path = _MADE_UP.sub("*", place[end:])
    return Skeleton(place[:end], path, _VALUE.sub("", query) if query else "", len(url) >= LONG_URL)


@lru_cache(KEPT)
def shapes(of: Skeleton) -> Shapes:
    """Return the shapes of the URLs that have this skeleton."""
    steps = [part[:64] for part in of.path.split("/", MOST_PARTS)[1:]]
    names = _names(of)
    sharp = [f"/{'/'.join(steps)}?…"] if len(names) > 1 else []
    named = [step for step in steps if step not in ("#", "*", "")]
    if len(set(named)) < len(named):
        sharp.append("a part that repeats")
    if len(steps) >= DEEP_PARTS:
        sharp.append(f"{DEEP_PARTS} parts and more")
    if of.is_long:
        sharp.append(f"{LONG_URL} characters and more")
    coarse = [kinds(of), *(f"/{'/'.join(steps[:depth])}/…" for depth in (1, 2) if depth < len(steps)), "/…"]
    labels = of.host.rpartition("/")[2].partition(":")[0].split(".")
    hosts = f"{min(len(labels), MOST_LABELS)} labels"
    words = [f"?{pair}" for pair in _pairs(of) if "=" in pair] if len(names) > 1 else []
    return Shapes(f"/{'/'.join(steps)}{_asked(names)}", [f"?{name}=" for name in names], words, sharp, coarse, hosts)


def kinds(of: Skeleton) -> str:
    """Return the kinds of parts in the path and the names in the query: the coarsest shape except folders and hosts."""
    steps = of.path.split("/", MOST_PARTS)[1:]
    return f"/{'/'.join(step if step in ('#', '*', '') else 'word' for step in steps)}{_asked(_names(of))}"


def _pairs(of: Skeleton) -> list[str]:
    return sorted({pair[:64] for pair in _PAIRS.split(of.query, MOST_NAMES)[:MOST_NAMES] if pair})


def _names(of: Skeleton) -> list[str]:
    return sorted({pair.partition("=")[0] for pair in _pairs(of)} - {""})


def _asked(names: list[str]) -> str:
    return f"?{'&'.join(names)}" if names else ""


@lru_cache(KEPT)
def variants(url: str) -> tuple[str, ...]:
    """Return a canonical URL without each of `VARIANTS`. Two URLs that have one in common are variants."""
    url = url[:MOST_CHARS]
    place, mark, query = url.partition("?")
    folder, _, name = place.removesuffix("/").rpartition("/")
    begin = url.find("/", url.find("://") + 3)
    parts = sorted({*_BETWEEN.split(url[begin:])})
    last = f"{name}{place[len(folder) + 1 + len(name) :]}{mark}{query}" if len(folder) >= begin else url
    bare = _without_session(url)
    return bare.rstrip("?&;") if bare != url else url, _OF_PATH.sub("", place), last, " ".join(parts)


def _without_session(url: str) -> str:
    """Return `url` without parts that look made up."""
    place, mark, query = url.partition("?")
    return _OF_PATH.sub("", place) + _OF_QUERY.sub("", mark + query)


@lru_cache(KEPT)
def without_names(url: str) -> tuple[tuple[str, str], ...]:
    """Return the names in the query of a canonical URL, if it has several, each with the URL without it."""
    place, _, query = url[:MOST_CHARS].partition("?")
    pairs = [pair for pair in _PAIRS.split(query, MOST_NAMES)[:MOST_NAMES] if pair]
    mark = "&" if "&" in query else ";"
    left = (f"{place}?{mark.join(pairs[:at] + pairs[at + 1 :])}" for at in range(len(pairs)))
    named = [(pair.partition("=")[0], url) for pair, url in zip(pairs, left, strict=True)]
    return tuple(named[-MOST_LEFT_OUT:]) if len(named) > 1 else ()


def lacks(url: str) -> list[int]:
    """Return which of `VARIANTS` a canonical URL lacks, as places: parts that look made up, and a query."""
    if _without_session(url[:MOST_CHARS]) != url[:MOST_CHARS]:
        return []
    return [DIGEST] if "?" in url else [DIGEST, QUERY]


def variant_keys(url: str, host: int) -> list[int]:
    """Return the keys of a canonical URL of `host` without each of `VARIANTS`."""
    return [xxhash.xxh3_64_intdigest(f"{at}{text}".encode(), host) for at, text in enumerate(variants(url))]


def name_keys(url: str, host: int) -> list[int]:
    """Return the keys of a canonical URL of `host` without each name in its query (`without_names`)."""
    return [xxhash.xxh3_64_intdigest(f"{name}={text}".encode(), host) for name, text in without_names(url)]


def name_of(shown: str) -> str:
    """Return the name in one of `Shapes.names` or `Shapes.words`."""
    return shown[1:].partition("=")[0]


def sharp_of(found: Shapes) -> list[str]:
    """Return the sharp shapes of a URL, in the order of `shape_keys`."""
    return [found.own, *found.names, *found.words, *found.sharp]


def first_folder(found: Shapes, host: int) -> int:
    """Return the key of the first folder of a URL, or of its host."""
    return xxhash.xxh3_64_intdigest(found.coarse[1].encode(), host)


def shape_keys(found: Shapes, host: int, domain: int, *, met_on_fresh: bool) -> tuple[list[int], list[int]]:
    """Return the keys of the sharp shapes of a URL (`sharp_of`), and of its coarse ones, the last of its domain.

    Coarse keys differ for URLs that were met on fresh pages.
    """
    met_on = "fresh" if met_on_fresh else ""
    sharp = [xxhash.xxh3_64_intdigest(text.encode(), host) for text in sharp_of(found)]
    coarse = [xxhash.xxh3_64_intdigest((met_on + text).encode(), host) for text in found.coarse]
    return sharp, [*coarse, xxhash.xxh3_64_intdigest((met_on + found.hosts).encode(), domain)]
