"""Own text: what a page says by itself, without text of other pages of its host and without notes.

`fyke.search.lots` uses it for sketches alone; search and exports hold the whole text. Menus and notices make copies at
two hosts unlike, and short pages of one host alike. Often nothing in a page tells what they are, but they come again.

- A piece (`fyke.search.pieces`) is *common* if it, or one of its form, stood on `LEAST_PAGES` pages of the host that
  were met and on one in `ONE_IN` of them. Only pages that said something new count. Otherwise a page under many
  addresses would be common, with nothing left to compare.
- A piece that is common at one host is left out at all hosts, because copies of a press release have what its agency
  writes below each. But pieces that are common elsewhere alone count if they are most of what a page says.
- *Notes* are pieces of a few words (an author, tags, a price), the title, and the words of links. Words are counted
  between blanks, so that an address, a file or a version is one, and without numbers. Notes are left out if they are
  few, as beside an article that has a sketch without them. In a reference of names, or a list of links, they are what
  the page says.
- Text of visitors, by the names of its elements, counts if the rest has no sketch: below a copy of an article stand
  comments of others.

Invariant: the answer for a text depends only on pages met before: all of its lot and of earlier ones. So a host's first
pages are read like its others. Bounded: one table of `PLACES` has all counts. A key that meets another at its place
takes one from its count, so frequent pieces stay. The indexer writes the table beside its lots and reads it to go on;
without it, hosts are met anew.
"""

from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from fyke.core.batches import NO_KEYS, U64, Mask
from fyke.core.mixing import GOLDEN
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
FEW_WORDS = 200  # words of notes that are left out, at most, or an eighth of all words; never more than the rest
ARTICLE_WORDS = 40  # of an article, at least, and four fifths of what its page says by itself and once
LEAST_OWN = 8  # shingles; a text that says less by itself has no sketch
SAMPLE = 16  # shingles of a page that tell whether it says something new
NEW_IN = 4  # it does if more than one in four of these is new
ANYWHERE = 0  # in place of the key of a host
_COUNT = np.uint32(255)  # the bits of a place that count; the others are of a hash
_FULL = np.dtype([("place", "<u4"), ("entry", "<u4")])  # a row of the file: a place that is not empty


class OwnText:
    """The pieces met at each host, as far as memory goes."""

    def __init__(self) -> None:
        self._table = np.zeros(PLACES, np.uint32)

    def __repr__(self) -> str:
        return f"OwnText({np.count_nonzero(self._table)} of {PLACES} places)"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the table written to `path`; an empty one if the file is not there, or damaged."""
        out = cls()
        with suppress(OSError, ValueError, EOFError):
            full = np.load(path, allow_pickle=False)
            if full.dtype == _FULL:
                out._table[full["place"] % PLACES] = full["entry"]
        return out

    def write(self, path: Path) -> None:
        """Write the table and make it safe. Raises DiskFull or DirectoryError."""
        places = np.flatnonzero(self._table)
        full = np.empty(len(places), _FULL)
        full["place"], full["entry"] = places, self._table[places]
        with writing(path):
            save_array(path, full)
            sync_file(path)
            sync_file(path.parent)

    def meet(self, host: int, pieces: Pieces) -> None:
        """Remember the `pieces` of a page at its host (key `host`), if they say something new."""
        sample, here = _keys(self._own(host, pieces)[:SAMPLE], host), _keys(np.zeros(1, np.uint64), host)
        if np.count_nonzero(self._counts(sample) == 0) * NEW_IN > len(sample):
            forms = np.unique(pieces.forms[pieces.forms > 0])
            self._count(np.concatenate([here, _keys(pieces.keys, host), _keys(forms, host), sample]))

    def spread(self, host: int, pieces: Pieces) -> None:
        """Count the pieces of a met page that are common at its host (key `host`) as common anywhere."""
        common = self._common(pieces, host)
        self._count(_keys(pieces.keys[common & (pieces.sizes >= SHINGLE_WORDS)], ANYWHERE))

    def sketch(self, host: int, pieces: Pieces) -> Array:
        """Return the sketch of what a met page with `pieces` says by itself at its host: SKETCH[], all zeros if this or
        the whole is too little."""
        found = self._own(host, pieces)
        if len(found) >= LEAST_SHINGLES:
            return sketch_of(found)
        says_enough = len(found) >= LEAST_OWN and len(pieces.shingles()) >= LEAST_SHINGLES
        return sketch_of(found if says_enough else NO_KEYS)

    def _own(self, host: int, pieces: Pieces) -> U64:
        """Return the shingles of `pieces` that are neither common nor notes."""
        said = ~self._common(pieces, host)
        found = self._shingles(pieces, said & (pieces.part != VISITORS))
        return found if len(found) >= LEAST_SHINGLES else self._shingles(pieces, said)

    def _shingles(self, pieces: Pieces, said: Mask) -> U64:
        """Return the shingles of those of the pieces `said` (bool[p]) that tell what the page is."""
        own = _of_article(pieces, self._here_alone(pieces, said))
        without_notes = own & ~pieces.linked & (pieces.spaced >= NOTE_WORDS)
        words, rest = int(pieces.sizes[own].sum()), int(pieces.sizes[without_notes].sum())
        if words - rest <= min(rest, max(FEW_WORDS, words // 8)):
            found = pieces.shingles(without_notes)
            if len(found) >= LEAST_SHINGLES:
                return found
        return pieces.shingles(own)

    def _here_alone(self, pieces: Pieces, said: Mask) -> Mask:
        """Return those of the pieces `said` (bool[p]) that are common nowhere, unless these are the lesser part:
        bool[p]."""
        here_alone = said & (self._counts(_keys(pieces.keys, ANYWHERE)) == 0)
        return here_alone if 2 * pieces.sizes[here_alone].sum() >= pieces.sizes[said].sum() else said

    def _common(self, pieces: Pieces, host: int) -> Mask:
        """Return which of `pieces`, or their forms, are common at the host: bool[p]."""
        pages = self._counts(_keys(np.zeros(1, np.uint64), host))
        by_itself, by_form = (self._counts(_keys(hashes, host)) for hashes in (pieces.keys, pieces.forms))
        counts = np.maximum(by_itself, by_form * (pieces.forms > 0))
        common: Mask = (counts >= LEAST_PAGES) & (counts * ONE_IN >= pages)
        return common

    def _counts(self, keys: U64) -> npt.NDArray[np.uint32]:
        """Return how often each of `keys` was counted: uint32[n], 0 if it is not there."""
        there = self._table[_places(keys)]
        counts: npt.NDArray[np.uint32] = np.where((there ^ _marks(keys)) <= _COUNT, there & _COUNT, 0)
        return counts

    def _count(self, keys: U64) -> None:
        """Add one for each of `keys`, once if it is there twice; take one from another key at its place."""
        places, marks = _places(keys), _marks(keys)
        there = self._table[places]
        counts = there & _COUNT
        more = there + (counts < _COUNT)
        less = np.where(counts > 1, there - 1, marks + 1)
        self._table[places] = np.where(((there ^ marks) <= _COUNT) & (counts > 0), more, less)


def _of_article(pieces: Pieces, own: Mask) -> Mask:
    """Return those of the pieces `own` (bool[p]) that are of an article, if it is most of what stands there once; all
    of them if it is not: bool[p]."""
    article, once = own & (pieces.part == ARTICLE), own & (pieces.part != REPEATED)
    words = int(pieces.sizes[article].sum())
    return article if words >= ARTICLE_WORDS and 5 * words >= 4 * pieces.sizes[once].sum() else own


def _keys(hashes: U64, host: int) -> U64:
    return (hashes ^ np.uint64(host)) * GOLDEN


def _places(keys: U64) -> U64:
    return keys >> np.uint64(64 - PLACE_BITS)


def _marks(keys: U64) -> npt.NDArray[np.uint32]:
    return keys.astype(np.uint32) & ~_COUNT
