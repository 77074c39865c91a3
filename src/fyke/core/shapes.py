"""Common forms of URLs: the shapes of a URL, from its own path to its whole host.

Programs make traps, so their URLs are alike: a calendar's differ in numbers, a list's in the order of its parameters, a
broken link's in how often a part repeats. A shape is the text that stays the same; hashed with the key of its host or
domain, it is a number (`shape_keys`). `fyke.frontier.traps.guard` knows which shapes bring no new text.

The `skeleton` is a URL without the parts that no shape depends on. A trap has a million URLs and a few skeletons, so
shapes are computed seldom.

Pure. Bounded: only the first `MOST_CHARS` of a URL count, and in them the first `MOST_PARTS` parts of the path and
`MOST_NAMES` names in the query.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

import xxhash

T = TypeVar("T")

KEPT = 1024  # skeletons whose shapes are kept: URLs of one skeleton often follow each other
MOST_CHARS = 512
MOST_PARTS = 24
MOST_NAMES = 8
DEEP_PARTS = 8  # from here on a path is deep
MOST_LABELS = 5  # hosts with more labels share a shape
LONG_URL = 256  # characters, from here on a URL is long
_DIGITS = re.compile(r"[0-9]+")
# A value in a query, unless it is a short word, which may be one of a few.
_VALUE = re.compile(r"=(?![a-z]{2,12}(?:[&;]|$))[^&;]*")
PAIRS = re.compile(r"[&;]")  # forums and repositories part queries by `;` instead of `&` (HTML 4.01, B.2.2)
_MADE_UP = re.compile(r"(?<=/)[^/#]*+#[^/#]++#[^/#]++#[^/]*+")  # a part with three numbers and more
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # RFC 9562, 4
HEX = rf"(?<![0-9A-Za-z])(?:{_UUID}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{8,}})(?![0-9A-Za-z])"  # looks made up
_DIGEST = re.compile(HEX, re.IGNORECASE)
_EIGHT = re.compile(r"[0-9a-fA-F]{8}")  # a digest has them: quick to find, and most URLs lack them
_A_DIGEST = "#.#.#"  # looks made up


class Role(IntEnum):
    """What a shape is made of: first the sharp ones, then the coarse ones."""

    OWN = 0
    NAME = 1
    WORD = 2
    MIX = 3
    TRAIT = 4
    KINDS = 5
    FOLDER = 6
    HOST = 7
    HOSTS = 8


@dataclass(frozen=True, slots=True)
class Shapes(Generic[T]):
    """The shapes of one URL: as readable text, with `#` for numbers and `*` for parts that look made up, or as keys
    (`shape_keys`)."""

    own: T  # its whole path, and the names in its query
    names: list[T]  # each name in its query
    words: list[T]  # each name with a short word as its value, if there are other names
    mixes: list[T]  # its path with any query, if it has several names in its own
    traits: list[T]  # of few honest URLs: a part that repeats, depth, length
    kinds: T  # the kinds of parts in its path, and the names in its query
    folders: list[T]  # at most two, the outermost first
    host: T
    hosts: T  # the number of labels of its host, a shape of its domain

    @property
    def first_folder(self) -> T:
        """The outermost folder, or the host if there is none."""
        return self.folders[0] if self.folders else self.host

    @property
    def sharp(self) -> list[T]:
        """The shapes before `kinds`, all of the host."""
        return [self.own, *self.names, *self.words, *self.mixes, *self.traits]

    def in_order(self) -> list[tuple[Role, T]]:
        """Return each shape with its role, in the order of the roles."""
        of_role = [
            (Role.OWN, [self.own]),
            (Role.NAME, self.names),
            (Role.WORD, self.words),
            (Role.MIX, self.mixes),
            (Role.TRAIT, self.traits),
            (Role.KINDS, [self.kinds]),
            (Role.FOLDER, self.folders),
            (Role.HOST, [self.host]),
            (Role.HOSTS, [self.hosts]),
        ]
        return [(role, shape) for role, some in of_role for shape in some]


class Skeleton(NamedTuple):
    """A canonical URL without the parts on which no shape depends."""

    host: str  # with scheme; a # for each number
    path: str  # a # for each number, a * for a part that looks made up
    query: str  # without values, except for short words
    is_long: bool


def skeleton(url: str) -> Skeleton:
    """Return the skeleton of a canonical URL."""
    place, _, query = url[:MOST_CHARS].partition("?")
    place = _DIGITS.sub("#", _DIGEST.sub(_A_DIGEST, place) if _EIGHT.search(place) else place)
    end = place.find("/", place.find("://") + 3)
    path = _MADE_UP.sub("*", place[end:]) if place.count("#", end) >= 3 else place[end:]
    return Skeleton(place[:end], path, _VALUE.sub("", query) if query else "", len(url) >= LONG_URL)


@lru_cache(KEPT)
def shapes(of: Skeleton) -> Shapes[str]:
    """Return the shapes of the URLs that have this skeleton."""
    steps = [part[:64] for part in of.path.split("/", MOST_PARTS)[1:]]
    names = _names(of)
    labels = of.host.rpartition("/")[2].partition(":")[0].split(".")
    return Shapes(
        own=f"/{'/'.join(steps)}{_asked(names)}",
        names=[f"?{name}=" for name in names],
        words=[f"?{pair}" for pair in _pairs(of) if "=" in pair] if len(names) > 1 else [],
        mixes=[f"/{'/'.join(steps)}?…"] if len(names) > 1 else [],
        traits=_traits(steps, is_long=of.is_long),
        kinds=kinds(of),
        folders=[f"/{'/'.join(steps[:depth])}/…" for depth in (1, 2) if depth < len(steps)],
        host="/…",
        hosts=f"{min(len(labels), MOST_LABELS)} labels",
    )


def _traits(steps: list[str], *, is_long: bool) -> list[str]:
    """Return the traits of URLs with these parts of the path."""
    named = [step for step in steps if step not in ("#", "*", "")]
    traits = (
        (len(set(named)) < len(named), "a part that repeats"),
        (len(steps) >= DEEP_PARTS, f"{DEEP_PARTS} parts and more"),
        (is_long, f"{LONG_URL} characters and more"),
    )
    return [trait for holds, trait in traits if holds]


def kinds(of: Skeleton) -> str:
    """Return the kinds of parts in the path and the names in the query: the coarsest shape except folders and hosts."""
    steps = of.path.split("/", MOST_PARTS)[1:]
    return f"/{'/'.join(step if step in ('#', '*', '') else 'word' for step in steps)}{_asked(_names(of))}"


def _pairs(of: Skeleton) -> list[str]:
    return sorted({pair[:64] for pair in PAIRS.split(of.query, MOST_NAMES)[:MOST_NAMES] if pair})


def _names(of: Skeleton) -> list[str]:
    return sorted({pair.partition("=")[0] for pair in _pairs(of)} - {""})


def _asked(names: list[str]) -> str:
    return f"?{'&'.join(names)}" if names else ""


def name_of(shown: str) -> str:
    """Return the name in one of `Shapes.names` or `Shapes.words`."""
    return shown[1:].partition("=")[0]


def first_folder(found: Shapes[str], host: int) -> int:
    """Return the key of the first folder of a URL with these shapes at `host`, wherever it was met."""
    return xxhash.xxh3_64_intdigest(found.first_folder.encode(), host)


def shape_keys(found: Shapes[str], host: int, domain: int, *, met_on_fresh: bool) -> Shapes[int]:
    """Return the keys of the shapes of a URL at `host` of `domain`.

    Keys of coarse shapes differ for URLs that were met on fresh pages.
    """
    met_on = "fresh" if met_on_fresh else ""

    def sharp(shape: str) -> int:
        return xxhash.xxh3_64_intdigest(shape.encode(), host)

    def coarse(shape: str) -> int:
        return xxhash.xxh3_64_intdigest((met_on + shape).encode(), host)

    return Shapes(
        own=sharp(found.own),
        names=[*map(sharp, found.names)],
        words=[*map(sharp, found.words)],
        mixes=[*map(sharp, found.mixes)],
        traits=[*map(sharp, found.traits)],
        kinds=coarse(found.kinds),
        folders=[*map(coarse, found.folders)],
        host=coarse(found.host),
        hosts=xxhash.xxh3_64_intdigest((met_on + found.hosts).encode(), domain),
    )
