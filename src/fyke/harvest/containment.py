"""Does one page hold all that another says and leads to?

A print view shows an article without menus, comments and related links. It is another page than the article, but holds
nothing that the article does not. So a page is taken as a set of keys: of its words, of where its links lead, and of
what it shows. A set that is large is a sample: the keys that end in as many zero bits as make it small enough (Broder,
On the resemblance and containment of documents, SEQUENCES 1997, section 4). Samples of any two pages can be compared.

Invariants: the sample of a page depends on its bytes, its URL and what rewrites it. Linear in the bytes, of at most
`MOST_TEXT_BYTES`.
"""

import re
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from itertools import islice

import numpy as np

from fyke.core.batches import NO_KEYS, U64
from fyke.core.markup import TakesLong, has_many_tags, tree_of
from fyke.core.pace import haste
from fyke.core.pages import HTML_TYPES
from fyke.core.urls import canonical, key_of
from fyke.harvest.prints import Place, leave_out
from fyke.harvest.same_text import MOST_TEXT_BYTES, NEVER

MOST_HELD = 512  # keys
MOST_LINKS = 2_000  # of a page that are resolved
MOST_MISSING = 0.2  # share of a part that its whole may lack: a print view has a word of its own here and there
LEAST_COMPARED = 8  # keys of a part; fewer prove nothing
_LEADING = "a[href],area[href],iframe[src],frame[src],img[src],amp-img[src],video[src],audio[src],source[src]"
_WORD = re.compile(r"\w+")
_ONE = np.uint64(1)


def held_by(
    content: bytes, media_type: str, url: str, rewrite: Callable[[str], str], without: Container[Place] = frozenset()
) -> U64:
    """Return keys of what the page `url` holds, given its decoded body (UTF-8): uint64[at most `MOST_HELD`], sorted.
    Links count as `rewrite` makes them from canonical URLs; those to the page itself do not, nor do numbers at the
    places `without`.

    Empty for what is not HTML, too large, or slow to parse.
    """
    if media_type not in HTML_TYPES or len(content) > MOST_TEXT_BYTES or has_many_tags(content):
        return NO_KEYS
    with suppress(TakesLong), haste():
        return _sample(np.unique(np.fromiter(map(key_of, _read(content, url, rewrite, without)), np.uint64)))
    return NO_KEYS


def words_of_url(url: str) -> U64:
    """Return the keys of the words in `url`, sorted: a page may name its own address."""
    return np.unique(np.fromiter(map(key_of, _words(url)), np.uint64))


def missing(part: U64, whole: U64) -> U64:
    """Return the keys of `part` that `whole` lacks, sorted, as far as samples tell."""
    few, other = _comparable(part, whole)
    return np.setdiff1d(few, other, assume_unique=True)


def is_part(part: U64, whole: U64) -> bool | None:
    """Return whether `whole` holds nearly all of `part`; None if too little is known of either."""
    few, other = _comparable(part, whole)
    if len(few) < LEAST_COMPARED or not len(other):
        return None
    return len(np.setdiff1d(few, other, assume_unique=True)) <= MOST_MISSING * len(few)


def _comparable(one: U64, other: U64) -> tuple[U64, U64]:
    """Return samples of both as small as the smaller share of the two."""
    mask = (_ONE << max(_level(one), _level(other))) - _ONE
    return one[one & mask == 0], other[other & mask == 0]


def _read(content: bytes, url: str, rewrite: Callable[[str], str], without: Container[Place]) -> Iterator[str]:
    """Yield the words of a page, and the rewritten URLs of what it leads to and shows."""
    tree = tree_of(content)
    if tree.body is None:
        return
    base = tree.css_first("base[href]")
    written = base.attributes.get("href") if base is not None else None
    root = (canonical(written, url) if written else None) or url
    for node in reversed(tree.body.css(NEVER)):  # inner nodes first
        node.decompose()
    words = tree.body.text(separator=" ").split()
    leave_out(words, without)
    yield from _words(" ".join(words))
    own = rewrite(url)
    for node in islice(tree.body.css(_LEADING), MOST_LINKS):
        link = node.attributes.get("href") or node.attributes.get("src")
        target = canonical(link, root) if link else None
        if target is not None and (made := rewrite(target)) != own:
            yield made


def _words(text: str) -> Iterator[str]:
    return (found[0].casefold() for found in _WORD.finditer(text))


def _sample(keys: U64) -> U64:
    mask = np.uint64(0)
    while len(keys) > MOST_HELD:
        mask = mask << _ONE | _ONE
        keys = keys[keys & mask == 0]
    return keys


def _level(keys: U64) -> np.uint64:
    """Return the number of zero bits in which all `keys` end."""
    together = np.bitwise_or.reduce(keys, initial=0)
    return np.uint64(0 if not together else (int(together) & -int(together)).bit_length() - 1)
