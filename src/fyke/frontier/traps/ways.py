"""In which one thing may two URLs differ? In a session, the query, a folder, the order, or one name of the query.

Each *way* of differing leaves something out of a URL. Two URLs of which the same is left are variants of each other
(`variants`).

Pure. Bounded like the shapes of URLs (`fyke.core.shapes`); of a query, at most `MOST_LEFT_OUT` names are left out.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache

import xxhash

from fyke.core.shapes import HEX, KEPT, MOST_CHARS, MOST_NAMES, PAIRS


class Difference(IntEnum):
    """A way in which two URLs may differ. The ways from `NAMES` on are the names in a query (`without_names`)."""

    DIGEST = 0
    QUERY = 1
    FOLDERS = 2
    ORDER = 3


_IN_WORDS = (
    "what looks made up in it",
    "its query",
    "its folders",
    "the order of its parts, and how often they come",
)
MOST_LEFT_OUT = 6  # names in a query that are left out, one at a time
NAMES = len(Difference)
WAYS = NAMES + MOST_LEFT_OUT
# A digest, with the text that means nothing without it: parameters of a path (RFC 3986, 3.3), brackets around it, its
# name in a query.
_OF_PATH = re.compile(rf";[^/?;=]+=[^/?;]*|/\([^/()?]*\({HEX}\)+|{HEX}", re.IGNORECASE)
_OF_QUERY = re.compile(rf"(?<=[?&;])[^=&;]*={HEX}[^&;]*(?:[&;]|$)|{HEX}", re.IGNORECASE)
_NEEDED = re.compile(r";|/\(|[0-9a-fA-F]{8}")  # for what looks made up: quick to find, and most URLs lack it
_BETWEEN = re.compile(r"[/?&;]")
_NUMBER = re.compile(r"\d+(?:\.\w{1,5})?")


@lru_cache(KEPT)
def leftovers(url: str) -> tuple[str, ...]:
    """Return what is left of a canonical URL for each `Difference`."""
    url = url[:MOST_CHARS]
    place = url.partition("?")[0]
    begin = url.find("/", url.find("://") + 3)
    parts = sorted({*_BETWEEN.split(url[begin:])})
    last = url[_name_begin(place, begin) :]
    bare = _without_session(url)
    path = _OF_PATH.sub("", place) if _NEEDED.search(place) else place
    return bare.rstrip("?&;") if bare != url else url, path, last, " ".join(parts)


def _name_begin(place: str, begin: int) -> int:
    """Return where the name of a page begins in `place`, whose path begins at `begin`. A number is a name only with
    what stands before it: `/map/3/7` and `/comic/7` are not one page in two folders."""
    end = len(place.removesuffix("/"))
    slash = place.rfind("/", begin, end)
    while slash > begin and _NUMBER.fullmatch(place, slash + 1, end):
        slash, end = place.rfind("/", begin, slash), slash
    return slash + 1


def _without_session(url: str) -> str:
    """Return `url` without parts that look made up."""
    if not _NEEDED.search(url):
        return url
    place, mark, query = url.partition("?")
    return _OF_PATH.sub("", place) + _OF_QUERY.sub("", mark + query)


@lru_cache(KEPT)
def without_names(url: str) -> tuple[tuple[str, str], ...]:
    """Return the names in the query of a canonical URL, if it has several, each with the URL without it."""
    if "?" not in url:
        return ()
    place, _, query = url[:MOST_CHARS].partition("?")
    pairs = [pair for pair in PAIRS.split(query, MOST_NAMES)[:MOST_NAMES] if pair]
    mark = "&" if "&" in query else ";"
    left = (f"{place}?{mark.join(pairs[:at] + pairs[at + 1 :])}" for at in range(len(pairs)))
    named = [(pair.partition("=")[0], url) for pair, url in zip(pairs, left, strict=True)]
    return tuple(named[-MOST_LEFT_OUT:]) if len(named) > 1 else ()


def bare_urls(url: str) -> list[tuple[int, str]]:
    """Return the URLs of pages that are left of a canonical URL, each with its way: without what looks made up, without
    its query, without each name."""
    left = leftovers(url)
    bare = [(int(way), left[way]) for way in (Difference.DIGEST, Difference.QUERY)]
    bare += [(NAMES + at, without) for at, (_, without) in enumerate(without_names(url))]
    return [(way, without) for way, without in bare if without != url]


def lacks(url: str) -> list[Difference]:
    """Return which of parts that look made up, and a query, a canonical URL lacks. Without a query it has no digests
    either."""
    if _without_session(url[:MOST_CHARS]) != url[:MOST_CHARS]:
        return []
    return [Difference.DIGEST] if "?" in url else [Difference.DIGEST, Difference.QUERY]


def ways_in_words(url: str) -> list[str]:
    """Return each way in which `url` may differ, as a person reads it."""
    return [*_IN_WORDS, *(f"?{name}=" for name, _ in without_names(url))]


def leftover_keys(url: str, host: int) -> list[int]:
    """Return the keys of what is left of a canonical URL of `host` for each way in which it may differ."""
    left = [f"{way}{text}" for way, text in enumerate(leftovers(url))]
    left += [f"{name}={text}" for name, text in without_names(url)]
    return [xxhash.xxh3_64_intdigest(text.encode(), host) for text in left]


def way_keys(owner: int, words: Sequence[str] = _IN_WORDS) -> list[int]:
    """Return the keys of variants of `owner`, a host or a shape: one for each way, in these words."""
    return [xxhash.xxh3_64_intdigest(f"but for {what}".encode(), owner) for what in words]
