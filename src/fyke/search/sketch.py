"""A sketch: 144 bytes of a text that tell whether it nearly agrees with another.

One is made for each page, of its own text (`fyke.search.own_text`). `fyke.search.near` compares them. A text is the set
of its *shingles*, the runs of `SHINGLE_WORDS` words. Two texts resemble each other by the Jaccard coefficient J of
their sets (Broder, On the resemblance and containment of documents, 1997). The range of the shingles' hashes is cut
into bins, and the smallest hash of each counts. So two sets agree in a bin with probability J (Li, Owen and Zhang, One
permutation hashing, NIPS 2012). An empty bin takes the hash of another one that is drawn for it (Shrivastava, Optimal
densification, ICML 2017). If it took that of the next full bin, one hash would count for all empty bins before it, and
short texts would be judged by a few of their words. A sketch holds

- *bands*, the hashes of `BAND_BINS` bins each. One at least agrees with probability 1 - (1 - J^9)^10: 0.995 at J = 0.9,
  0.02 at 0.5. They find candidates by equality, as a Drum can;
- *signs*, a bit of each of `SIGNS` other bins (Li and König, b-bit minwise hashing, WWW 2010), which confirm
  candidates. A share (1 - J) / 2 of them differs, which is `MOST_SIGNS` at J = 0.844. This J is less than the 0.9 of
  near-duplicates, because text beside the articles costs a few hundredths.

Signs take the place of the usual simhash (Henzinger, SIGIR 2006). Of pairs with J between 0.9 and 0.95, a simhash of 64
bits at a distance of 6 confirmed 37 and 72 in 100 on two sets of pages, signs all (`benches/near_duplicates.py`).

Words are runs of letters, their marks and digits, in small letters, so quotes and dashes of every typeface part them. A
letter of three bytes or more in UTF-8 is a word by itself, because many such scripts have no blanks.

Invariant: time and memory are linear in the text, which the extraction cuts at `TEXT_CHARS`.
"""

import unicodedata
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.batches import NO_KEYS, U64
from fyke.core.mixing import GOLDEN, mixed
from fyke.disk.ranges import Array

BANDS = 10
BAND_BINS = 9
SHINGLE_WORDS = 4
LEAST_SHINGLES = 30  # a text with fewer different ones says too little for a sketch
SIGNS = 512
MOST_SIGNS = 40  # that differ between near-duplicates, at most
FAR_SIGNS = 55  # that differ between a text and the first of its cluster, at most

SKETCH = np.dtype([("bands", "<u8", (BANDS,)), ("signs", "u1", (SIGNS // 8,))])  # all zeros: no sketch


ASKED = 64  # bins that an empty one asks before it takes the next full one
_POSITIONS = 64  # places in a word that are told apart; divides 256, at which a place wraps
_BEYOND_ASCII = 0x80
LONG = 0xE0  # the first byte of a character of three bytes
_PLANE = 1 << 16  # characters beyond the first plane of Unicode count as letters
_IN_WORD = np.array([unicodedata.category(chr(point))[0] in "LMN" for point in range(_PLANE)] + [True])
_TERMS = mixed(np.arange(1, 256 * _POSITIONS + 1))  # of a hash, by the place of a byte in its word and the byte


def sketch_of(found: U64) -> Array:
    """Return the sketch of a text with the shingles `found` (sorted, each once): SKETCH[], all zeros without any."""
    out = np.zeros((), SKETCH)
    if len(found):
        rows = _least(found, BANDS * BAND_BINS).reshape(BANDS, BAND_BINS)
        out["bands"] = [xxhash.xxh3_64_intdigest(row.tobytes(), at) for at, row in enumerate(rows)]
        out["signs"] = np.packbits((mixed(_least(found, SIGNS)) & np.uint64(1)).astype(np.bool_))
    return out


def word_hashes(text: str) -> U64:
    """Return a hash for each word of `text`, in order: uint64[n]."""
    return words_and_places(np.frombuffer(text.lower().encode("utf-8", "replace"), np.uint8))[0]


def words_and_places(data: npt.NDArray[np.uint8]) -> tuple[U64, npt.NDArray[np.int64]]:
    """Return a hash for each word of `data` (UTF-8 in small letters), uint64[n], and where it begins, int64[n], in
    order."""
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
    place -= np.repeat(np.append(0, starts).astype(np.uint8), lengths)  # in its word, or in the text before the first
    terms = _TERMS[(place % _POSITIONS).astype(np.uint16) << 8 | data] * inside
    return mixed(np.add.reduceat(terms, starts)), starts


def _in_word(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return which bytes of UTF-8 are of letters, marks or digits: bool[n]."""
    if not len(data) or data.max() < _BEYOND_ASCII:
        return _IN_WORD[data]
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    sizes = np.ones(len(points), np.uint8)
    for first in (0x80, 0x800, _PLANE):
        sizes += points >= first
    return np.repeat(_IN_WORD[np.minimum(points, _PLANE)], sizes)


def _after_a_break(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return which bytes begin a character of three bytes or more, or the character after one: bool[n]."""
    leads = (data & 0xC0) != 0x80
    long = leads & (data >= LONG)
    places = np.flatnonzero(leads)
    after = np.zeros(len(data), np.bool_)
    after[places[1:]] = long[places[:-1]]
    found: npt.NDArray[np.bool_] = long | after
    return found


def rolled(words: U64) -> U64:
    """Return the hash of each shingle of a text with the word hashes `words`, in order: uint64[n - SHINGLE_WORDS +
    1]."""
    count = max(0, len(words) - SHINGLE_WORDS + 1)
    found = words[:count]
    for at in range(1, SHINGLE_WORDS):
        found = found * GOLDEN + words[at : at + count]
    return mixed(found)


def shingles(words: U64) -> U64:
    """Return the hashes of the shingles of a text with the word hashes `words`, sorted, each once: uint64[n]."""
    ordered = np.sort(rolled(words))
    once: U64 = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return once


def _least(found: U64, bins: int) -> U64:
    """Return the smallest of the sorted shingles `found` in each of `bins` ranges of hashes: uint64[bins]."""
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
        ]  # the next bin that is full, the first after the last
    return np.ascontiguousarray(found[first[taken]] + GOLDEN * np.arange(bins, dtype=np.uint64))


@lru_cache
def _asked(bins: int) -> npt.NDArray[np.intp]:
    """Return the bins that each bin asks if it is empty, in order: intp[bins, ASKED]."""
    drawn = mixed(np.arange(1, bins * ASKED + 1)) % np.uint64(bins)
    return drawn.astype(np.intp).reshape(bins, ASKED)
