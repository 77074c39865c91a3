"""Numbers by which pages are the same to those who learn and verify rewrite rules.

A token in a script, a hidden field, an advertisement, a menu make other bytes of the same page at every request. So an
HTML page has the number of what it says and shows: its title and words as `same_text` reads them, what it shows
(`src`), where it leads (`href`), and data in it. One with few words, and what is no HTML, has that of its bytes.

Invariant: pages of the same bytes have the same numbers; linear in the bytes.
"""

from collections.abc import Iterator
from contextlib import suppress

import xxhash

from fyke.core.markup import TakesLong, has_many_tags, tree_of
from fyke.core.own_marks import without_marks
from fyke.core.pace import haste
from fyke.core.visits import HTML_TYPES
from fyke.harvest.same_text import FRAME, MOST_TEXT_BYTES

LEAST_WORDS = 20
_DATA = 'script[type$="json"]'
_SHOWN = ("src", "srcset", "data", "poster", "href")


def prints_of(content: bytes, media_type: str, url: str) -> list[int]:
    """Numbers for the decoded body of `url`, and for it without the marks of that URL (`core/own_marks`).

    The first is the page's own. Two pages are alike that have a number in common.
    """
    return [number_of(each, media_type) for each in (content, *without_marks(content, url))]


def number_of(content: bytes, media_type: str) -> int:
    """The xxh3-64 of what a page says and shows, or of its bytes, where it takes long to parse."""
    if media_type in HTML_TYPES and len(content) <= MOST_TEXT_BYTES and not has_many_tags(content):
        with suppress(TakesLong), haste():
            said = list(_said(content))
            if len(said) > LEAST_WORDS:
                return xxhash.xxh3_64_intdigest("\0".join(said).encode("utf-8", "surrogatepass"))
    return xxhash.xxh3_64_intdigest(content)


def _said(content: bytes) -> Iterator[str]:
    """Words, and in their order then what is shown and linked; nothing where there are few words."""
    tree = tree_of(content)
    if tree.body is None:
        return
    title = tree.css_first("title")
    data = [node.text() for node in tree.css(_DATA)]
    for node in reversed(tree.body.css(FRAME)):  # what is within others first
        node.decompose()
    words = tree.body.text(separator=" ").split()
    if len(words) < LEAST_WORDS:
        return
    yield from (title.text() if title is not None else "", *words, *data)
    for node in tree.body.css("[src],[srcset],[data],[poster],[href]"):
        yield from (value for name in _SHOWN if (value := node.attributes.get(name)))
