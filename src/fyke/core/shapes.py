"""What URLs have in common: the shapes of a URL, from its own path to its whole host.

Traps are made by programs, so their URLs are alike: a calendar's differ in numbers, a list's in the order of its
parameters, a broken link's in how often a part repeats. A shape is the text of what stays; with the key of its host,
or of its domain, it is a number (`shape_keys`). `fyke.frontier.traps` knows which of them bring nothing.

What no shape depends on goes first (`skeleton`): a trap has a million URLs and a few skeletons, so that shapes are
worked out for few of them.

Pure, and bounded: of a URL the first `MOST_CHARS` count, and of these the first `MOST_PARTS` parts of the path and
`MOST_NAMES` names in the query.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import xxhash

KEPT = 1024  # skeletons of which the shapes are kept: of most, many URLs follow each other
MOST_CHARS = 512
MOST_PARTS = 24
MOST_NAMES = 8
MOST_LEFT_OUT = 6  # names in a query, without each of which a URL may be another's like
DEEP_PARTS = 8  # from here on a path is deep
MOST_LABELS = 5  # hosts with more are alike
LONG_URL = 256  # characters, from here on a URL is long
_DIGITS = re.compile(r"[0-9]+")
# Of a name in a query; a short word may be one of a few. `;` parts a query as `&` does, as forums and repositories have
# it (HTML 4.01, B.2.2).
_VALUE = re.compile(r"=(?![a-z]{2,12}(?:[&;]|$))[^&;]*")
_PAIRS = re.compile(r"[&;]")
_MADE_UP = re.compile(r"(?<=/)[^/#]*+#[^/#]++#[^/#]++#[^/]*+")  # a part with three numbers and more
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # RFC 9562, 4
_HEX = rf"(?<![0-9A-Za-z])(?:{_UUID}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{8,}})(?![0-9A-Za-z])"
_DIGEST = re.compile(_HEX, re.IGNORECASE)
# A digest, with what stands for nothing without it: parameters of a path (RFC 3986, 3.3), and the brackets around it;
# its name in a query.
_OF_PATH = re.compile(rf";[^/?;=]+=[^/?;]*|/\([^/()?]*\({_HEX}\)+|{_HEX}", re.IGNORECASE)
_OF_QUERY = re.compile(rf"(?<=[?&;])[^=&;]*={_HEX}[^&;]*(?:[&;]|$)|{_HEX}", re.IGNORECASE)
_BETWEEN = re.compile(r"[/?&;]")
VARIANTS = ("what looks made up in it", "its query", "its folders", "the order of its parts, and how often they come")
DIGEST, QUERY, FOLDERS = 0, 1, 2  # places among these; with a query goes what looks made up
_A_DIGEST = "#.#.#"  # looks made up


class Shapes(NamedTuple):
    """The shapes of one URL, in words that a person can read, with `#` for numbers and `*` for what looks made up."""

    own: str  # its whole path, and the names in its query
    names: list[str]  # each name in its query: of what differs by that from another URL
    words: list[str]  # the same, where a short word stands with it and there are other names
    sharp: list[str]  # what only few honest URLs have: many names in the query, a part that repeats, depth, length
    coarse: list[str]  # where it lies: what kinds of parts its path has, its folders, its host
    hosts: str  # how its host is named, which is a shape of its domain


class Skeleton(NamedTuple):
    """A canonical URL without what its shapes do not depend on."""

    host: str  # with scheme; a # for each number
    path: str  # the same, and a * for a part that looks made up
    query: str  # without values, but for short words
    is_long: bool


def skeleton(url: str) -> Skeleton:
    """The skeleton of a canonical URL."""
    place, _, query = url[:MOST_CHARS].partition("?")
    place = _DIGITS.sub("#", _DIGEST.sub(_A_DIGEST, place))
    end = place.find("/", place.find("://") + 3)
    path = _MADE_UP.sub("*", place[end:])
    return Skeleton(place[:end], path, _VALUE.sub("", query) if query else "", len(url) >= LONG_URL)


@lru_cache(KEPT)
def shapes(of: Skeleton) -> Shapes:
    """The shapes of the URLs that have this skeleton."""
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
    """What kinds of parts the path has, and the names in the query: the coarsest shape but for folders and hosts."""
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
    """What is left of a canonical URL without each of `VARIANTS`: two that have it in common are variants."""
    url = url[:MOST_CHARS]
    place, mark, query = url.partition("?")
    folder, _, name = place.removesuffix("/").rpartition("/")
    begin = url.find("/", url.find("://") + 3)
    parts = sorted({*_BETWEEN.split(url[begin:])})
    last = f"{name}{place[len(folder) + 1 + len(name) :]}{mark}{query}" if len(folder) >= begin else url
    bare = _without_session(url)
    return bare.rstrip("?&;") if bare != url else url, _OF_PATH.sub("", place), last, " ".join(parts)


def _without_session(url: str) -> str:
    """`url` without what looks made up in it."""
    place, mark, query = url.partition("?")
    return _OF_PATH.sub("", place) + _OF_QUERY.sub("", mark + query)


@lru_cache(KEPT)
def without_names(url: str) -> tuple[tuple[str, str], ...]:
    """The names in the query of a canonical URL, where it has several, each with what is left of the URL without it."""
    place, _, query = url[:MOST_CHARS].partition("?")
    pairs = [pair for pair in _PAIRS.split(query, MOST_NAMES)[:MOST_NAMES] if pair]
    mark = "&" if "&" in query else ";"
    left = (f"{place}?{mark.join(pairs[:at] + pairs[at + 1 :])}" for at in range(len(pairs)))
    named = [(pair.partition("=")[0], url) for pair, url in zip(pairs, left, strict=True)]
    return tuple(named[-MOST_LEFT_OUT:]) if len(named) > 1 else ()


def lacks(url: str) -> list[int]:
    """Which of `VARIANTS` a canonical URL has nothing of, as places: the query, and what looks made up."""
    if _without_session(url[:MOST_CHARS]) != url[:MOST_CHARS]:
        return []
    return [DIGEST] if "?" in url else [DIGEST, QUERY]


def variant_keys(url: str, host: int) -> list[int]:
    """The keys of what is left of a canonical URL of `host` without each of `VARIANTS`."""
    return [xxhash.xxh3_64_intdigest(f"{at}{text}".encode(), host) for at, text in enumerate(variants(url))]


def name_keys(url: str, host: int) -> list[int]:
    """The same without each name in its query, as `without_names` has them."""
    return [xxhash.xxh3_64_intdigest(f"{name}={text}".encode(), host) for name, text in without_names(url)]


def name_of(shown: str) -> str:
    """The name of which `Shapes` has one of its `names`, or of its `words`."""
    return shown[1:].partition("=")[0]


def sharp_of(found: Shapes) -> list[str]:
    """Its sharp shapes, in the order that `shape_keys` has."""
    return [found.own, *found.names, *found.words, *found.sharp]


def first_folder(found: Shapes, host: int) -> int:
    """The key of the first folder, or the host, of what was `found` of a URL."""
    return xxhash.xxh3_64_intdigest(found.coarse[1].encode(), host)


def shape_keys(found: Shapes, host: int, domain: int, *, met_on_fresh: bool) -> tuple[list[int], list[int]]:
    """The keys of its sharp shapes, its own first, then the names in its query and those with words, and of its coarse
    ones, which are others for what was met on fresh pages; the last is its domain's."""
    met_on = "fresh" if met_on_fresh else ""
    sharp = [xxhash.xxh3_64_intdigest(text.encode(), host) for text in sharp_of(found)]
    coarse = [xxhash.xxh3_64_intdigest((met_on + text).encode(), host) for text in found.coarse]
    return sharp, [*coarse, xxhash.xxh3_64_intdigest((met_on + found.hosts).encode(), domain)]
