"""What URLs have in common: the shapes of a URL, from its own path to its whole host.

Traps are made by programs, so their URLs are alike: a calendar's differ in numbers, a list's in the order of its
parameters, a broken link's in how often a part repeats. A shape is the text of what stays; with the key of its host,
or of its domain, it is a number (`shape_keys`). `fyke.frontier.traps` knows which of them bring nothing.

Pure, and bounded: of a URL the first `MOST_PARTS` parts of the path and names in the query count.
"""

import re
from typing import NamedTuple

import xxhash

from fyke.core.urls import split

MOST_PARTS = 24
MOST_NAMES = 8
DEEP_PARTS = 8  # from here on a path is deep
LONG_URL = 256  # characters, from here on a URL is long
_DIGITS = re.compile(r"[0-9]+")


class Shapes(NamedTuple):
    """The shapes of one URL, in words that a person can read, with `#` for numbers and `*` for what looks made up."""

    own: str  # its whole path, and the names in its query
    sharp: list[str]  # what only few honest URLs have: a name in the query, a part that repeats, depth, length
    coarse: list[str]  # where it lies: what kinds of parts its path has, its folders, its host
    hosts: str  # how its host is named, which is a shape of its domain


def shapes(url: str) -> Shapes:
    """The shapes of a canonical URL."""
    parts = split(url)
    path, _, query = parts.target.partition("?")
    steps = [_step(part) for part in path.split("/", MOST_PARTS)[1:]]
    names = sorted({pair.partition("=")[0][:64] for pair in query.split("&", MOST_NAMES)[:MOST_NAMES] if pair})
    asked = f"?{'&'.join(names)}" if names else ""
    sharp = [f"?{name}=" for name in names]
    if len(names) > 1:
        sharp.append(f"/{'/'.join(steps)}?…")
    words = [step for step in steps if step not in ("#", "*", "")]
    if len(set(words)) < len(words):
        sharp.append("a part that repeats")
    if len(steps) >= DEEP_PARTS:
        sharp.append(f"{DEEP_PARTS} parts and more")
    if len(url) >= LONG_URL:
        sharp.append(f"{LONG_URL} characters and more")
    kinds = "/".join(step if step in ("#", "*", "") else "word" for step in steps)
    coarse = [f"/{kinds}{asked}", *(f"/{'/'.join(steps[:depth])}/…" for depth in (1, 2) if depth < len(steps)), "/…"]
    labels = parts.host.split(".")
    hosts = f"{len(labels)} labels, the first {'with' if _DIGITS.search(labels[0]) else 'without'} numbers"
    return Shapes(f"/{'/'.join(steps)}{asked}", sharp, coarse, hosts)


def _step(part: str) -> str:
    """A part of a path without what may differ: numbers, and what looks made up."""
    step = _DIGITS.sub("#", part[:64])
    return "*" if step.count("#") > 2 else step


def shape_keys(found: Shapes, host: int, domain: int, met_on: str = "") -> tuple[list[int], list[int]]:
    """The keys of its sharp shapes, with its own first, and of its coarse ones, which are others for what was `met_on`
    another sort of page; the last is its domain's."""
    sharp = [xxhash.xxh3_64_intdigest(text.encode(), host) for text in (found.own, *found.sharp)]
    coarse = [xxhash.xxh3_64_intdigest((met_on + text).encode(), host) for text in found.coarse]
    return sharp, [*coarse, xxhash.xxh3_64_intdigest((met_on + found.hosts).encode(), domain)]
