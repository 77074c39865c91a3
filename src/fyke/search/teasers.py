"""How much of what a page says is said of the pages that it links to?

Asked once a page while indexing. A front page has teasers of articles, a contents page names chapters. Their words are
those of other pages, which should be found for them (`fyke.search.weights`).

A line that is the words of a link names another page. The lines behind it introduce that page, up to the next such line
and as far as they fit into `TEASER_CHARS`; a longer paragraph is the page's own. A link around several lines names a
page by the first of them.

Invariant: work is linear in the text, and bounded by the limits of texts and links.
"""

from bisect import bisect_left
from collections.abc import Iterable

TEASER_CHARS = 400


def teased(text: str, wordings: Iterable[str]) -> float:
    """Return the share of `text` (lines) that names or introduces other pages, by the `wordings` of links to these."""
    known = sorted(set(wordings))
    chars = room = 0
    for line in text.split("\n") if known else ():
        if _names(line, known):
            chars += len(line)
            room = TEASER_CHARS
        else:
            room = max(0, room - len(line))
            chars += len(line) if room else 0
    return chars / max(1, len(text))


def _names(line: str, known: list[str]) -> bool:
    """Return whether `line` is one of the wordings `known` (sorted), or begins one and has several words."""
    at = bisect_left(known, line)
    return at < len(known) and (known[at] == line or (" " in line and known[at].startswith(line)))
