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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.batches import U64
from fyke.search.article import TextParts
from fyke.search.sketch import LONG, SHINGLE_WORDS, rolled, shingles, words_and_places

FORM_WORDS = 20  # of a piece that may have a form, at most
REPLY_WORDS = 2  # of a piece beside the title, at most
# A break is behind a sentence, a sign that parts headings, or a dateline. Each begins with a blank, found fast.
_BETWEEN = re.compile(r"\s(?:(?<=\n)|(?<=[.!?|·•]\s)|(?<=\)\s)[-–—]\s|(?<=\d\s)[–—]\s)")
_DENSE_ENDS = "。！？"  # behind which a sentence ends without a blank
_BEHIND_DENSE = re.compile(rf"([{_DENSE_ENDS}])\n?")
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
    texts = (text,) if isinstance(text, str) else text
    parts = [_split(one) for one in texts]
    shown = [piece for part in parts for piece in part]
    part = np.repeat(np.arange(len(parts), dtype=np.uint8), list(map(len, parts)))
    read = _LinesRead([*shown, title, *links])  # at once: most of the time would go into arrays of a few words
    count = len(shown)
    sizes = read.sizes[:count]
    keys = np.fromiter((xxhash.xxh3_64_intdigest(one.encode("utf-8", "replace")) for one in shown), np.uint64, count)
    forms = np.zeros(count, np.uint64)
    for at in np.flatnonzero(read.has_digits[:count] & (sizes <= FORM_WORDS)).tolist():
        if not _NUMBERED.fullmatch(shown[at]):
            forms[at] = xxhash.xxh3_64_intdigest(_form(shown[at]).encode("utf-8", "replace"))
    of_title = read.words_covered_by(count, count + 1)[:count]
    of_links = read.words_covered_by(count + 1, len(read.sizes))[:count]
    linked = (2 * of_links >= np.maximum(sizes, 1)) | (of_title > 0) & (of_title + REPLY_WORDS >= sizes)
    return Pieces(read.words[: sizes.sum()], sizes, read.spaced[:count], keys, forms, linked, part)


def _split(text: str) -> list[str]:
    if any(end in text for end in _DENSE_ENDS):
        text = _BEHIND_DENSE.sub(r"\1\n", text)
    return _BETWEEN.split(text)


class _LinesRead:
    """Some lines, and how they look."""

    def __init__(self, lines: Sequence[str]) -> None:
        joined = "\n".join(line.replace("\n", " ") for line in lines)
        data = np.frombuffer(joined.lower().encode("utf-8", "replace"), np.uint8)
        ends = np.append(np.flatnonzero(data == _LINE_END), len(data))
        self.words, places = words_and_places(data)
        self._behind = np.searchsorted(places, ends)  # the words up to the end of each line
        self.sizes = _apart(self._behind)
        self.has_digits = _apart(np.searchsorted(np.flatnonzero(_DIGITS[data]), ends)) > 0
        self.spaced = _spaced(data, places, self._behind)
        self._line = np.repeat(np.arange(len(ends)), self.sizes)  # of each word
        shingles = rolled(self.words)
        self._begins = np.flatnonzero(self._line[: len(shingles)] == self._line[len(self._line) - len(shingles) :])
        self._shingles = shingles[self._begins]  # those within one line

    def words_covered_by(self, start: int, end: int) -> npt.NDArray[np.int64]:
        """Return how many words of each line are in shingles of one of the lines from `start` to `end`: int64[n]."""
        first, last = np.searchsorted(self._begins, (self._behind[start - 1], self._behind[end - 1]))
        if first == last:
            return np.zeros(len(self.sizes), np.int64)
        begins = self._begins[np.isin(self._shingles, self._shingles[first:last])]
        covered = np.zeros(len(self.words), np.bool_)
        covered[begins[:, np.newaxis] + np.arange(SHINGLE_WORDS)] = True
        return np.bincount(self._line[covered], minlength=len(self.sizes))


def _apart(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how much each of `numbers` is more than the one before; the first, than 0."""
    apart = numbers.copy()
    apart[1:] -= numbers[:-1]
    return apart


def _spaced(
    data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], behind: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return `Pieces.spaced` of lines whose words begin at `places` of `data`, `behind[i]` of them up to the end of
    line i."""
    begins = data[places]
    blanks = np.cumsum(_BLANK[data], dtype=np.int32)[places]
    apart = np.append(True, blanks[1:] != blanks[:-1])[: len(places)]
    found = np.cumsum(np.append(False, (apart | (begins >= LONG)) & ~_DIGITS[begins]))
    return _apart(found[behind])


def _form(piece: str) -> str:
    """Return `piece` with "A" for each name and "0" for each number, or for two numbers around the name of a month."""
    signs = " ".join(
        "0" if word[0].isdigit() or word[-1].isdigit() else "A" if word[0].isupper() else word
        for word in _WORD.findall(piece)
    )
    return _MONTH.sub("0", signs)
