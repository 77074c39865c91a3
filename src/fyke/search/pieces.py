"""Pieces: the sentences and lines of a text, and what each looks like; read once, for `fyke.search.own_text`.

A *piece* is a sentence or a line; sentences, because a notice often shares its line with a date or a name. Its *form*
is its text without names and numbers. It recognises pieces that stand on each page of a host with another date, price
or count.

A piece is *linked* if at least half of its words are of its page's links, which say what is elsewhere. It is also
linked if all its words but `REPLY_WORDS` are of the title: above each answer in a thread stands what it answers, behind
"Re:". A longer sentence that begins with the title is not linked.

Invariant: time and memory are linear in the text and in the words of its links.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.batches import U64
from fyke.search.article import TextParts
from fyke.search.sketch import LONG, SHINGLE_WORDS, rolled, shingles, words_and_places

FORM_WORDS = 20  # of a piece that may have a form, at most
REPLY_WORDS = 2  # of a piece beside the title, at most
# A break is behind a sentence, a sign that parts headings, or a dateline.
_BETWEEN = re.compile(r"\n|(?<=[.!?|·•])\s|(?<=[。！？])\n?|(?<=\))\s[-–—]\s|(?<=\d)\s[–—]\s")
_WORD = re.compile(r"\w+")
_MONTH = re.compile(r"\b0 (?:[^ 0A]+ ){1,3}0\b")  # as in 7 de enero de 2009
_NUMBERED = re.compile(r"\d+(?:\.\d+)*\.?")  # the number of a heading or a list
_LINE_END = ord("\n")
_BLANK = np.array([chr(byte).isspace() and byte < 0x80 for byte in range(256)])
_DIGITS = np.array([chr(byte).isdigit() and byte < 0x80 for byte in range(256)])


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text of n words in p pieces."""

    words: U64  # [n], a hash each, in order
    sizes: npt.NDArray[np.int64]  # [p], words of each
    spaced: npt.NDArray[np.int64]  # [p], words of each that begin with a letter; behind a blank if blanks part words
    keys: U64  # [p], a hash of what each says
    forms: U64  # [p], a hash of its form; 0 if it has none
    linked: npt.NDArray[np.bool_]  # [p]
    part: npt.NDArray[np.uint8]  # [p], its place in `TextParts`

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        return sum(
            one.nbytes for one in (self.words, self.sizes, self.spaced, self.keys, self.forms, self.linked, self.part)
        )

    def shingles(self, some: npt.NDArray[np.bool_] | None = None) -> U64:
        """Return the shingles of the pieces `some` (bool[p]) one after the other, by default of all: sorted, each
        once."""
        return shingles(self.words if some is None else self.words[np.repeat(some, self.sizes)])


def pieces_of(text: str | TextParts, links: Iterable[str] = (), title: str = "") -> Pieces:
    """Return the pieces of `text`; a plain text is all article. `links` has the words of each of its links."""
    parts = [_BETWEEN.split(one) for one in ((text,) if isinstance(text, str) else text)]
    shown = [piece for part in parts for piece in part]
    part = np.repeat(np.arange(len(parts), dtype=np.uint8), list(map(len, parts)))
    lines = "\n".join(shown)
    data, words, places, sizes = _counted(lines)
    ends = np.append(np.flatnonzero(data == _LINE_END), len(data))
    digits = np.diff(np.searchsorted(np.flatnonzero(_DIGITS[data]), ends), prepend=0) > 0
    keys = np.fromiter(
        (xxhash.xxh3_64_intdigest(one.encode("utf-8", "replace")) for one in shown), np.uint64, len(shown)
    )
    forms = np.zeros(len(shown), np.uint64)
    for at in np.flatnonzero(digits & (sizes <= FORM_WORDS)).tolist():
        if not _NUMBERED.fullmatch(shown[at]):
            forms[at] = xxhash.xxh3_64_intdigest(_form(shown[at]).encode("utf-8", "replace"))
    of_links, of_title = (_words_covered_by(texts, words, sizes) for texts in (links, [title]))
    linked = (2 * of_links >= np.maximum(sizes, 1)) | (of_title > 0) & (of_title + REPLY_WORDS >= sizes)
    return Pieces(words, sizes, _spaced(data, places, sizes), keys, forms, linked, part)


def _counted(lines: str) -> tuple[npt.NDArray[np.uint8], U64, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return `lines` in UTF-8 and small letters, the hashes of all words, where each word begins, and how many words
    each line has."""
    data = np.frombuffer(lines.lower().encode("utf-8", "replace"), np.uint8)
    ends = np.append(np.flatnonzero(data == _LINE_END), len(data))
    words, places = words_and_places(data)
    return data, words, places, np.diff(np.searchsorted(places, ends), prepend=0)


def _spaced(
    data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return `Pieces.spaced` of lines with `sizes` words each, which begin at `places` of `data`."""
    begins = data[places]
    apart = np.diff(np.cumsum(_BLANK[data], dtype=np.int32)[places], prepend=-1) > 0
    found = np.cumsum(np.append(False, (apart | (begins >= LONG)) & ~_DIGITS[begins]))
    return np.diff(found[np.cumsum(sizes)], prepend=0)


def _form(piece: str) -> str:
    """Return `piece` with "A" for each name and "0" for each number, or for two numbers around the name of a month."""
    signs = " ".join(
        "0" if word[0].isdigit() or word[-1].isdigit() else "A" if word[0].isupper() else word
        for word in _WORD.findall(piece)
    )
    return _MONTH.sub("0", signs)


def _words_covered_by(texts: Iterable[str], words: U64, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many words of each piece are in shingles of one of `texts`: int64[p]."""
    covered = np.zeros(len(words), bool)
    if lines := "\n".join(one.replace("\n", " ") for one in texts):
        found, places = _within(words, sizes)
        _, others, _, lengths = _counted(lines)
        also, _ = _within(others, lengths)
        begins = places[np.isin(found, also)]
        covered[begins[:, np.newaxis] + np.arange(SHINGLE_WORDS)] = True
    of_piece = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(of_piece[covered], minlength=len(sizes))


def _within(words: U64, sizes: npt.NDArray[np.int64]) -> tuple[U64, npt.NDArray[np.int64]]:
    """Return the shingles that lie within one piece, and where each begins among `words`."""
    found = rolled(words)
    of_piece = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.flatnonzero(of_piece[: len(found)] == of_piece[len(words) - len(found) :])
    return found[inside], inside
