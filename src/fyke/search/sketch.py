"""What a text looks like in 144 bytes: by these alone it is told whether two texts nearly agree.

Made once a page of its own text (`fyke.search.own_text`), compared by `fyke.search.near`. A text is the set of its
*shingles*, the runs of `SHINGLE_WORDS` words; two texts resemble each other by the Jaccard coefficient J of their sets
(Broder, On the resemblance and containment of documents, 1997). The range of the shingles' hashes is cut into bins, and
of each bin the smallest hash counts: so two sets agree in a bin with probability J (Li, Owen and Zhang, One permutation
hashing, NIPS 2012). An empty bin takes what another one has that is drawn for it (Shrivastava, Optimal densification,
ICML 2017): what the next one has would count for all that are empty before it, and short texts be judged by a few of
their words. A sketch holds

- *bands*, the hashes of `BAND_BINS` bins each. One at least agrees with probability 1 - (1 - J^9)^10: 0.995 at J = 0.9,
  0.02 at 0.5. They find candidates by equality, which is what a Drum asks;
- *signs*, a bit of each of `SIGNS` other bins (Li and König, b-bit minwise hashing, WWW 2010), which confirm them: of
  these (1 - J) / 2 differ, so as many as `MOST_SIGNS` at J = 0.844. That is less than the 0.9 of near-duplicates, since
  what pages say beside their articles costs a few hundredths.

Signs take the place of the simhash that is usual here (Henzinger, SIGIR 2006): of pairs with J between 0.9 and 0.95 a
simhash of 64 bits, at a distance of 6, confirmed 37 and 72 in 100 on two sets of pages, and signs all
(`benches/near_duplicates.py`).

Words are runs of letters, their marks and digits, in small letters: quotes and dashes are signs between them in every
typeface. A letter of three bytes or more in UTF-8 is a word by itself, since many such scripts are written without
blanks.

Invariant: time and memory are linear in the text, of which the extraction lets through `TEXT_CHARS` at most.
"""

import unicodedata
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.batches import NO_KEYS, U64
from fyke.disk.ranges import Array

BANDS = 10
BAND_BINS = 9
SHINGLE_WORDS = 4
LEAST_SHINGLES = 30  # a text with fewer, however often it repeats them, says too little: it has no sketch
SIGNS = 512
MOST_SIGNS = 40  # that differ between near-duplicates
FAR_SIGNS = 55  # that differ between what is near another and the first text there at most

SKETCH = np.dtype([("bands", "<u8", (BANDS,)), ("signs", "u1", (SIGNS // 8,))])  # all zeros without a sketch


def mixed(numbers: Array) -> U64:
    """Each number as 64 bits that look random (splitmix64's last step), uint64[n]."""
    x = numbers.astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


_APART = np.uint64(0x9E3779B97F4A7C15)
ASKED = 64  # bins, by one that is empty, before it takes what the next one has
_POSITIONS = 64  # of a word that are told apart; 256 of them are a multiple
_BEYOND_ASCII = 0x80
LONG = 0xE0  # the first byte of a character of three bytes
_PLANE = 1 << 16  # what is beyond the first plane of Unicode is in words
_IN_WORD = np.array([unicodedata.category(chr(point))[0] in "LMN" for point in range(_PLANE)] + [True])
_TERMS = mixed(np.arange(1, 256 * _POSITIONS + 1))  # of a hash, by the place of a byte in its word and its value


def sketch_of(found: U64) -> Array:
    """The sketch of a text with the shingles `found`, SKETCH[]; all zeros where there are none."""
    out = np.zeros((), SKETCH)
    if len(found):
        rows = _least(found, BANDS * BAND_BINS).reshape(BANDS, BAND_BINS)
        out["bands"] = [xxhash.xxh3_64_intdigest(row.tobytes(), at) for at, row in enumerate(rows)]
        out["signs"] = np.packbits((mixed(_least(found, SIGNS)) & np.uint64(1)).astype(np.bool_))
    return out


def word_hashes(text: str) -> U64:
    """A hash for each word of `text`, in order, uint64[n]."""
    return words_and_places(np.frombuffer(text.lower().encode("utf-8", "replace"), np.uint8))[0]


def words_and_places(data: npt.NDArray[np.uint8]) -> tuple[U64, npt.NDArray[np.int64]]:
    """A hash for each word of `data`, UTF-8 in small letters, in order, uint64[n]; and where it begins, int64[n]."""
    inside = _in_word(data)
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    if len(data) and data.max() >= LONG:
        begins |= _after_a_break(data) & inside
    starts = np.flatnonzero(begins)
    if not len(starts):
        return NO_KEYS, starts
    lengths = np.diff(starts, append=len(data), prepend=0)
    place = np.arange(len(data)).astype(np.uint8)
    place -= np.repeat(np.append(0, starts).astype(np.uint8), lengths)  # in its word, and what is before the first word
    terms = _TERMS[(place % _POSITIONS).astype(np.uint16) << 8 | data] * inside
    return mixed(np.add.reduceat(terms, starts)), starts


def _in_word(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which bytes of UTF-8 are of letters, marks or digits, bool[n]."""
    if not len(data) or data.max() < _BEYOND_ASCII:
        return _IN_WORD[data]
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    sizes = np.ones(len(points), np.uint8)
    for first in (0x80, 0x800, _PLANE):
        sizes += points >= first
    return np.repeat(_IN_WORD[np.minimum(points, _PLANE)], sizes)


def _after_a_break(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which bytes begin a character of three bytes or more, or the one after it."""
    leads = (data & 0xC0) != 0x80
    long = leads & (data >= LONG)
    places = np.flatnonzero(leads)
    after = np.zeros(len(data), np.bool_)
    after[places[1:]] = long[places[:-1]]
    found: npt.NDArray[np.bool_] = long | after
    return found


def rolled(words: U64) -> U64:
    """The hash of each shingle of a text with the word hashes `words`, in order: uint64[n - SHINGLE_WORDS + 1]."""
    count = max(0, len(words) - SHINGLE_WORDS + 1)
    found = words[:count]
    for at in range(1, SHINGLE_WORDS):
        found = found * _APART + words[at : at + count]
    return mixed(found)


def shingles(words: U64) -> U64:
    """The hashes of the shingles of a text with the word hashes `words`, sorted, each once: uint64[n]."""
    ordered = np.sort(rolled(words))
    once: U64 = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return once


def _least(found: U64, bins: int) -> U64:
    """The smallest of sorted shingles in each of so many bins, uint64[bins]: a bin is a range of them."""
    edges = np.arange(bins, dtype=np.uint64) * np.uint64(-(-(1 << 64) // bins))
    first = np.searchsorted(found, edges)
    full = np.diff(np.append(first, len(found))) > 0
    taken, empty = np.arange(bins), np.flatnonzero(~full)
    if len(empty):
        asked = _asked(bins)[empty]
        answers = full[asked]
        taken[empty] = asked[np.arange(len(empty)), answers.argmax(axis=1)]
        none, there = empty[~answers.any(axis=1)], np.flatnonzero(full)
        taken[none] = there[
            np.searchsorted(there, none) % len(there)
        ]  # the next that is full, the first after the last
    return np.ascontiguousarray(found[first[taken]] + _APART * np.arange(bins, dtype=np.uint64))


@lru_cache
def _asked(bins: int) -> npt.NDArray[np.intp]:
    """The bins that each asks for what they have, in order: intp[bins, ASKED]."""
    drawn = mixed(np.arange(1, bins * ASKED + 1)) % np.uint64(bins)
    return drawn.astype(np.intp).reshape(bins, ASKED)
