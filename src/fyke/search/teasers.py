"""How much of what a page says is said of the pages that it links to?

Asked once a page while indexing. A front page has teasers of articles, a contents page names chapters. Their words are
those of other pages, which should be found for them (`fyke.search.weights`).

A line that is the words of a link names another page. What stands between two such lines introduces one, if it is no
longer than `TEASER_CHARS`. What stands behind the last is the page's own: one link may stand at the top of any article.
A link around several lines names a page by the first of them.

Invariant: work is linear in the text, and bounded by the limits of texts and links.
"""

from bisect import bisect_left
from collections.abc import Iterable

TEASER_CHARS = 400


def teased(text: str, wordings: Iterable[str], longest: int) -> float:
    """Return the share of `text` (lines) that names or introduces other pages, by the `wordings` of links to these,
    which were cut to the `longest`."""
    known = sorted(set(wordings))
    of_others, since_last = 0, TEASER_CHARS + 1
    for line in text.split("\n") if known else ():
        if _names(line[:longest].rstrip(), known):
            of_others += len(line) + (since_last if since_last <= TEASER_CHARS else 0)
            since_last = 0
        else:
            since_last += len(line)
    return of_others / max(1, len(text))


def _names(line: str, known: list[str]) -> bool:
    """Return whether `line` is one of the wordings `known` (sorted), or begins one and has several words."""
    at = bisect_left(known, line)
    return at < len(known) and (known[at] == line or (" " in line and known[at].startswith(line)))
