"""What a page says by itself: its article without what stands on other pages of its host, and without notes.

Used by `fyke.search.lots` for sketches alone; what search shows and exports hold is the whole. Menus and notices make
copies at two hosts unlike and short pages of one host alike, and often nothing in a page tells what they are. What
tells is that they come again: a piece (`fyke.search.pieces`) is *common* that stood on `LEAST_PAGES` pages of the host
that were met, and on one in `ONE_IN` of them; or one of its form did. Only pages count that said something new: or else
what a site has under many addresses would be common, and nothing of it left to be compared.

What is common at one host is so at all: who copies a press release copies what its agency writes below each of them.
But what a page says mostly it says.

*Notes* are pieces of a few words, such as an author, tags or a price, the title, and the words of links. What stands
between blanks is a word of them, so that an address, a file or a version is one, and a number none. They are left out
where they are few, as beside an article that has a sketch without them. In a reference of names, or a list of
links, they are what the page says. What visitors wrote, by the names of its elements, counts where the rest has no
sketch: below a copy of an article stand the comments of others.

Invariant: the answer for a text depends on what was met before alone: all pages of its lot, and of those before it. So
a host's first pages are read as its others. All is in one table of `PLACES`, so that memory and the work for a piece
have a limit. Each time that something else meets its place takes one from the count of what is there: what comes often
stays. The indexer writes the table beside its lots and reads it when it goes on; without it hosts are met anew.
"""

from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from fyke.core.batches import NO_KEYS, U64
from fyke.disk.files import save_array, sync_file, writing
from fyke.disk.ranges import Array
from fyke.search.article import ARTICLE, REPEATED, VISITORS
from fyke.search.pieces import Pieces
from fyke.search.sketch import LEAST_SHINGLES, SHINGLE_WORDS, sketch_of

PLACE_BITS = 21
PLACES = 1 << PLACE_BITS
LEAST_PAGES = 3
ONE_IN = 8
NOTE_WORDS = 7  # a piece with fewer is a note
FEW_WORDS = 200  # of all notes of a page, or an eighth of what it says by itself; never more than the rest
ARTICLE_WORDS = 40  # an article says so many at least, and four fifths of what its page says by itself and once
LEAST_OWN = 8  # shingles; of a text that says less by itself there is no sketch
SAMPLE = 16  # shingles of a page by which it is told whether it says something new
NEW_IN = 4  # it does if one in so many of these is new
ANYWHERE = 0  # in place of the key of a host
_COUNT = np.uint32(255)  # of the 32 bits of a place; the others are of a hash
_FULL = np.dtype([("place", "<u4"), ("entry", "<u4")])  # of a file: the places that are not empty
_APART = np.uint64(0x9E3779B97F4A7C15)


class OwnText:
    """The pieces met at each host, as far as memory goes."""

    def __init__(self) -> None:
        self._table = np.zeros(PLACES, np.uint32)

    def __repr__(self) -> str:
        return f"OwnText({np.count_nonzero(self._table)} of {PLACES} places)"

    @classmethod
    def read(cls, path: Path) -> Self:
        """What was written to `path`; nothing met where that is not there, or damaged."""
        out = cls()
        with suppress(OSError, ValueError, EOFError):
            full = np.load(path, allow_pickle=False)
            if full.dtype == _FULL:
                out._table[full["place"] % PLACES] = full["entry"]
        return out

    def write(self, path: Path) -> None:
        """All that is remembered, made safe. Raises DiskFull or DirectoryError."""
        places = np.flatnonzero(self._table)
        full = np.empty(len(places), _FULL)
        full["place"], full["entry"] = places, self._table[places]
        with writing(path):
            save_array(path, full)
            sync_file(path)
            sync_file(path.parent)

    def meet(self, host: int, pieces: Pieces) -> None:
        """Remember what a page with `pieces` says, at the host with the key `host`."""
        sample, here = _keys(self._own(host, pieces)[:SAMPLE], host), _keys(np.zeros(1, np.uint64), host)
        if np.count_nonzero(self._counts(sample) == 0) * NEW_IN > len(sample):
            forms = np.unique(pieces.forms[pieces.forms > 0])
            self._count(np.concatenate([here, _keys(pieces.keys, host), _keys(forms, host), sample]))

    def spread(self, host: int, pieces: Pieces) -> None:
        """Remember what of a page with `pieces`, which was met, is common at the host of key `host`."""
        common = self._common(pieces, host)
        self._count(_keys(pieces.keys[common & (pieces.sizes >= SHINGLE_WORDS)], ANYWHERE))

    def sketch(self, host: int, pieces: Pieces) -> Array:
        """The sketch, SKETCH[], of what a page with `pieces`, which was met, says by itself at the host of key `host`;
        all zeros where this or the whole is too little."""
        found = self._own(host, pieces)
        if len(found) >= LEAST_SHINGLES:
            return sketch_of(found)
        says_enough = len(found) >= LEAST_OWN and len(pieces.shingles()) >= LEAST_SHINGLES
        return sketch_of(found if says_enough else NO_KEYS)

    def _own(self, host: int, pieces: Pieces) -> U64:
        """The shingles of those of `pieces` that are neither common nor notes."""
        said = ~self._common(pieces, host)
        found = self._article(pieces, said & (pieces.part != VISITORS))
        return found if len(found) >= LEAST_SHINGLES else self._article(pieces, said)

    def _article(self, pieces: Pieces, own: npt.NDArray[np.bool_]) -> U64:
        """The shingles of those of the pieces `own`, bool[p], that are of an article."""
        here_alone = own & (self._counts(_keys(pieces.keys, ANYWHERE)) == 0)
        if 2 * pieces.sizes[here_alone].sum() >= pieces.sizes[own].sum():
            own = here_alone
        article, once = own & (pieces.part == ARTICLE), own & (pieces.part != REPEATED)
        words = int(pieces.sizes[article].sum())
        if words >= ARTICLE_WORDS and 5 * words >= 4 * pieces.sizes[once].sum():
            own = article
        article = own & ~pieces.linked & (pieces.spaced >= NOTE_WORDS)
        words, rest = int(pieces.sizes[own].sum()), int(pieces.sizes[article].sum())
        if words - rest <= min(rest, max(FEW_WORDS, words // 8)):
            without = pieces.shingles(article)
            if len(without) >= LEAST_SHINGLES:
                return without
        return pieces.shingles(own)

    def _common(self, pieces: Pieces, host: int) -> npt.NDArray[np.bool_]:
        """Which of `pieces` are, or their form is, at the host with the key `host`."""
        pages = self._counts(_keys(np.zeros(1, np.uint64), host))
        by_itself, by_form = (self._counts(_keys(hashes, host)) for hashes in (pieces.keys, pieces.forms))
        counts = np.maximum(by_itself, by_form * (pieces.forms > 0))
        common: npt.NDArray[np.bool_] = (counts >= LEAST_PAGES) & (counts * ONE_IN >= pages)
        return common

    def _counts(self, keys: U64) -> npt.NDArray[np.uint32]:
        """How often each of `keys` was counted, uint32[n]; 0 for those that are not there."""
        there = self._table[_places(keys)]
        counts: npt.NDArray[np.uint32] = np.where((there ^ _marks(keys)) <= _COUNT, there & _COUNT, 0)
        return counts

    def _count(self, keys: U64) -> None:
        """One more for each of `keys`, also where it is there twice; one less for what is at their places instead."""
        places, marks = _places(keys), _marks(keys)
        there = self._table[places]
        counts = there & _COUNT
        more = there + (counts < _COUNT)
        less = np.where(counts > 1, there - 1, marks + 1)
        self._table[places] = np.where(((there ^ marks) <= _COUNT) & (counts > 0), more, less)


def _keys(hashes: U64, host: int) -> U64:
    return (hashes ^ np.uint64(host)) * _APART


def _places(keys: U64) -> U64:
    return keys >> np.uint64(64 - PLACE_BITS)


def _marks(keys: U64) -> npt.NDArray[np.uint32]:
    return keys.astype(np.uint32) & ~_COUNT
