"""How alike are the pages of a site that are not the same?

No page answers two questions by itself. Is a list of links in a `nav`, an `aside`, a `footer` a menu, or what the page
is for? A link that many pages with other text have is a menu's, even if the menu changes at every request; other links
count. And do pages that differ say much the same, as a page that changes by itself does, or are they several? Each page
has an outline: the least hash of its words in each of `BINS` bins (Li, Owen and Zhang, One permutation hashing, NIPS
2012), and what counts of the links beside it. The header, which most pages of the site say, is left out.

Bounded: memory holds `BINS` numbers a page, and `MOST_FRAME` of its links.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import xxhash

from fyke.core.batches import NO_KEYS, U64
from fyke.core.urls import key_of
from fyke.harvest.prints import Print
from fyke.search.sketch import word_hashes

BINS = 64
LEAST_LIKE = 0.5  # of the bins that either page has
MOST_COMPARED = 64  # pages, which stand for all if there are more
MENU_PAGES = 3, 0.02  # number and share of pages with other text; a link that more have is a menu's
Outline = U64  # uint64[BINS + 1]: words by bin, NONE for an empty bin; the key of links beside the page
Keys = U64
NONE = np.uint64((1 << 64) - 1)


def outline(words: Sequence[str]) -> Outline:
    """Return the outline of a page with these `words`, and nothing beside it."""
    hashes = word_hashes(" ".join(words))
    found = np.append(np.full(BINS, NONE), np.uint64(0))
    np.minimum.at(found, (hashes % np.uint64(BINS)).astype(np.intp), hashes)
    return found


def usual_words(outlines: Sequence[Outline]) -> Outline:
    """Return the outline of the words that at least half of the `outlines` have."""
    usual = np.full(BINS + 1, NONE)
    for place, column in enumerate(np.array(outlines).reshape(-1, BINS + 1).T[:BINS]):
        values, counts = np.unique(column, return_counts=True)
        if 2 * counts.max(initial=0) >= len(column) > 1:
            usual[place] = values[counts.argmax()]
    return usual


def without(outline: Outline, usual: Outline) -> Outline:
    """Return an `outline` without what is `usual`."""
    return np.where(outline == usual, NONE, outline)


def different(outlines: Sequence[Outline]) -> int:
    """Return how many of these pages, all different, do not say much the same either; at least 1."""
    rows, beside = np.split(np.stack(outlines[:MOST_COMPARED]), [BINS], axis=1)
    there = rows != NONE
    equal = (rows[:, None] == rows) & there
    either = (there[:, None] | there).sum(axis=2)
    like = (equal.sum(axis=2) >= LEAST_LIKE * np.maximum(either, 1)) & (beside == beside.T)
    kept: list[int] = []
    for row in range(len(rows)):
        if not like[row, kept].any():
            kept.append(row)
    return 1 + (len(kept) - 1) * (len(outlines) - 1) // max(1, len(rows) - 1)


class PrintsOfSite:
    """The prints of a site's pages, to join with the links beside them that are not of menus."""

    def __init__(self) -> None:
        self._prints: list[list[tuple[int, Keys]]] = []  # for each page, numbers with the keys of links
        self._outlines: list[Outline] = []

    def add(self, prints: Sequence[Print]) -> None:
        """Add the `prints` of the next page, the last one without its marks."""
        self._prints.append([(each.number, _keys(each.frame)) for each in prints])
        self._outlines.append(outline(prints[0].words))

    def pages(self) -> Iterator[tuple[list[int], Outline]]:
        """Yield the numbers of each page, its own first, and its outline."""
        menus = self._menus()
        for prints, said in zip(self._prints, self._outlines, strict=True):
            several = [(number, np.setdiff1d(links, menus)) for number, links in prints]
            said[BINS] = _joined(0, several[-1][1])
            yield [_joined(number, links) for number, links in several], said

    def _menus(self) -> Keys:
        """Return the links of menus, sorted."""
        plain = [page[-1] for page in self._prints]
        sizes = [len(links) for _, links in plain]
        rows = np.empty(sum(sizes), [("link", "u8"), ("number", "u8")])
        rows["link"] = np.concatenate([NO_KEYS, *(links for _, links in plain)])
        rows["number"] = np.repeat(np.array([number for number, _ in plain], np.uint64), sizes)
        links, pages = np.unique(np.unique(rows)["link"], return_counts=True)
        few, share = MENU_PAGES
        return links[pages > max(few, share * len({number for number, _ in plain}))]


def _keys(links: Iterable[str]) -> Keys:
    return np.unique(np.array([key_of(link) for link in links], np.uint64))


def _joined(number: int, links: Keys) -> int:
    return xxhash.xxh3_64_intdigest(links.tobytes(), number) if len(links) else number
