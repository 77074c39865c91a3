"""How much of a page's text was not met before at its domain?

A page's text is cut at its tags into blocks. A block counts by its letters alone, in lower case, so that the dates of a
calendar and the prices of a list make nothing new. The text of a link says something of another page, and the words of
the page's own URL something of the request ("no page named so"): neither counts.

A new block may still be met text: cut anew, as a search shows a part of each page that it found; joined anew; parted by
other tags; with a word before it. So each block's fingerprints are remembered by winnowing (Schleimer, Wilkerson and
Aiken, "Winnowing: local algorithms for document fingerprinting", SIGMOD 2003, section 3). Each run of `GRAM` letters
has a hash. The least of each `WINDOW` hashes in a row is kept, the last of equal ones. So met text of
`GRAM + WINDOW - 1` letters has a kept hash, wherever it stands. A block brings the letters that lie in no gram met at
its domain or earlier in the page, and nothing if these are less than one in `MET_SHARE`. A block of less than `GRAM`
letters has no grams, and brings all its letters. So a text put together from sentences with other names brings the
names, and nothing if they are those of its URL.

`weigh` is `weigh_by_columns`, or the same in C where it was compiled. The tables are the caller's: uint32, a power of
two of places, each with the mark of a text. Newer texts take over places.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash
from numpy.lib.stride_tricks import sliding_window_view

from fyke.core.batches import U64
from fyke.core.mixing import GOLDEN

try:
    from fyke.harvest.weigher import weigh as weigh_compiled
except ImportError:  # no compiler when Fyke was installed
    weigh_compiled = None  # type: ignore[assignment]

Table = npt.NDArray[np.uint32]

GRAM = 18  # letters: a shorter sequence stands in other texts too
WINDOW = 8  # grams, one of them is kept; no more than `GRAM`, see `fingerprints`
GONE = 0  # in place of a letter
MET_SHARE = 4  # if fewer than one letter in four of a block or page is new, they stand where met texts join
MOST_WORDS = 16  # of a URL that are taken out
_LETTERS = frozenset(range(ord("a"), ord("z") + 1)) | frozenset(range(128, 256))
_DROPPED = bytes(byte for byte in range(256) if byte not in _LETTERS | {ord("\n")})
# All linear: a match ends where the next one may begin, and a failure at the next < or >.
_CODE = re.compile(rb"<(?:script|style)")
LINK = re.compile(rb"<a\s[^<>]*>[^<>]*")
_TEXT = re.compile(rb">([^<>]+)")
_WORD = re.compile(r"[a-z]{2,}")
_PRINT = np.dtype([("key", np.uint64), ("at", np.int64)])  # the hash of a gram, and where it begins
# Of a polynomial hash of 64 bits (Karp and Rabin 1987): an odd number, and the code of each letter.
_BASE = np.uint64(0xD6E8FEB86659FD93)
_CODES = (np.arange(1, 257, dtype=np.uint64) * GOLDEN) ^ (np.arange(1, 257, dtype=np.uint64) * GOLDEN >> np.uint64(29))
_NONE = np.uint64((1 << 64) - 1)  # more than any hash that is kept


class Weight(NamedTuple):
    """How much a page says, and how much of it is new."""

    letters: int  # of its blocks, each once
    brought: int  # letters that say something new
    unmet: bytes  # what its unmet blocks say without words of its URL, a line each


class MetTexts:
    """The texts met at each domain, as far as memory goes: so many blocks, and so many fingerprints."""

    def __init__(self, blocks: int, prints: int) -> None:
        self._blocks = np.zeros(blocks, np.uint32)
        self._prints = np.zeros(prints, np.uint32)

    def __repr__(self) -> str:
        return f"MetTexts({np.count_nonzero(self._blocks)} blocks)"

    def weigh(self, content: bytes, url: str, domain: int, *, remember: bool = True) -> Weight:
        """Return how much of `content`, a page of HTML at `url`, was not met, and `remember` it from then on."""
        words = tuple(sorted({word.encode() for word in _WORD.findall(url.lower())[-MOST_WORDS:]}))
        weigh = weigh_by_columns if weigh_compiled is None else weigh_compiled
        return Weight(*weigh(content, words, self._blocks, self._prints, domain, remember))

    def find_unmet(self, texts: Sequence[bytes], domain: int) -> list[bytes]:
        """Remember `texts`, and return those that were not met. Their `domain` may be another for each purpose."""
        return [texts[at] for at in _find_unmet(self._blocks, texts, domain, remember=True)] if texts else []


def weigh_by_columns(
    content: bytes, words: Sequence[bytes], blocks: Table, grams: Table, domain: int, remember: bool
) -> tuple[int, int, bytes]:
    """Return the fields of a `Weight`. The table `blocks` has the blocks of a domain, and what they said without words
    of their URLs; the table `grams` has their fingerprints."""
    text = blocks_of(content)
    letters = sum(map(len, text))
    new = [text[at] for at in _find_unmet(blocks, text, domain, remember=remember)]
    if not new:
        return letters, 0, b""
    said = without_words(b"\n".join(new), words)
    left = said.replace(bytes([GONE]), b"").split(b"\n")
    unmet = _find_unmet(blocks, left, domain ^ 1, remember=remember)
    new_of = unmet_letters(b"\n".join(new), said, grams, domain, remember=remember)
    brought = sum(new_of[at] for at in unmet if new_of[at] * MET_SHARE >= len(new[at]))
    is_new = brought * MET_SHARE >= sum(len(left[at]) for at in unmet)
    return letters, brought if is_new else 0, b"".join(left[at] + b"\n" for at in unmet)


def _find_unmet(met: Table, texts: Sequence[bytes], domain: int, *, remember: bool) -> list[int]:
    """Return the places of those `texts` of a domain that the table `met` lacks, and `remember` all from then on."""
    places, marks = _entries(met, np.fromiter(map(xxhash.xxh3_64_intdigest, texts), np.uint64, len(texts)), domain)
    found: list[int] = np.flatnonzero(met[places] != marks).tolist()
    if remember:
        met[places] = marks
    return found


def _entries(met: Table, hashes: U64, domain: int) -> tuple[U64, npt.NDArray[np.uint32]]:
    keys = (hashes ^ np.uint64(domain)) * GOLDEN
    return keys & np.uint64(len(met) - 1), (keys >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


def without_words(text: bytes, words: Sequence[bytes]) -> bytes:
    """Return `text` with `GONE` for each letter of a place where one of `words` stands. A place of a word does not
    overlap the one before."""
    left = np.frombuffer(text, np.uint8)
    for word in words:
        left = np.minimum(left, np.frombuffer(text.replace(word, bytes([GONE]) * len(word)), np.uint8))
    return left.tobytes()


def unmet_letters(text: bytes, said: bytes, met: Table, domain: int, *, remember: bool) -> list[int]:
    """Return for each block of `text`, a line each, how many letters are in no met gram, and are not `GONE` in `said`,
    which is as long. A gram is met if the table `met` (a power of two of places) has it for `domain`, or if it came
    before in the text. If told to `remember`, the grams are in the table from then on."""
    found = fingerprints(text)
    is_met = _met_in_order(met, found["key"], domain, remember=remember)
    ends = np.append(np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")), len(text))
    starts = np.append(0, ends[:-1] + 1)
    says = (np.frombuffer(said, np.uint8) != GONE) & ~_covered(found["at"][is_met], starts, ends)
    before = np.append(0, np.cumsum(says))
    counts: list[int] = (before[ends] - before[starts]).tolist()
    return counts


def _met_in_order(met: Table, keys: U64, domain: int, *, remember: bool) -> npt.NDArray[np.bool_]:
    """Return which of `keys` (uint64[n]) of a domain the table `met` would have if those before were remembered."""
    places, marks = _entries(met, keys, domain)
    order = np.argsort(places, kind="stable")
    before = np.append(np.uint32(0), marks[order][:-1])
    is_first = np.append(True, places[order][1:] != places[order][:-1])[: len(keys)]
    is_met = np.empty(len(keys), np.bool_)
    is_met[order] = np.where(is_first, met[places[order]], before[: len(keys)]) == marks[order]
    if remember:
        met[places] = marks
    return is_met


def _covered(
    grams: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return which letters of a text count as met: bool, as long as the text, whose blocks have these `starts` and
    `ends` (int64[n]). Met grams begin at `grams` (int64[m], in order). Each also covers `WINDOW - 1` letters on both
    sides, which may be met without a kept gram."""
    of = np.searchsorted(ends, grams, "right")
    begin = np.maximum(grams - (WINDOW - 1), starts[of])
    end = np.minimum(grams + (GRAM + WINDOW - 1), ends[of])
    edges = np.bincount(begin, minlength=ends[-1] + 1) - np.bincount(end, minlength=ends[-1] + 1)
    covered: npt.NDArray[np.bool_] = np.cumsum(edges)[:-1] > 0
    return covered


def fingerprints(text: bytes) -> npt.NDArray[Any]:
    """Return the fingerprints of blocks of letters, a line each (dtype `_PRINT`, in order). Each run of `GRAM` letters
    has a hash; the least in each `WINDOW`, the last of equal ones, counts once for each place in `text` where it
    begins."""
    read = np.frombuffer(text, np.uint8)
    grams = len(read) - GRAM + 1
    if grams <= 0:
        return np.zeros(0, _PRINT)
    keys = np.zeros(grams, np.uint64)
    for at in range(GRAM):
        keys = keys * _BASE + _CODES[read[at : at + grams]]
    # Letters with a line's end among them are no gram. `GRAM` of these part two blocks, so that no window has both.
    lines = np.cumsum(read == ord("\n"))
    line = np.where((lines[:grams] == lines[GRAM - 1 :]) & (read[:grams] != ord("\n")), lines[:grams], -1)
    windows = sliding_window_view(np.append(np.where(line >= 0, keys, _NONE), np.full(WINDOW - 1, _NONE)), WINDOW)
    is_whole = line == np.append(line, np.full(WINDOW - 1, -1))[WINDOW - 1 :]
    begins = np.flatnonzero((line >= 0) & (is_whole | (line != np.append(-1, line[:-1]))))
    places = np.unique(begins + WINDOW - 1 - windows[begins, ::-1].argmin(1))
    found = np.empty(len(places), _PRINT)
    found["key"], found["at"] = keys[places], places
    return found


def blocks_of(content: bytes) -> list[bytes]:
    """Return the blocks of text in a page of HTML, each once, in order: their letters alone, in lower case."""
    text = LINK.sub(b"", without_code(content.lower()))
    return list(dict.fromkeys(b"\n".join(_TEXT.findall(text)).translate(None, _DROPPED).split()))


def without_code(content: bytes) -> bytes:
    """Return `content`, which is lower case, without scripts and styles."""
    kept, end = [], 0
    while (code := _CODE.search(content, end)) is not None:
        kept.append(content[end : code.start()])
        end = content.find(b"</" + code[0][1:], code.end())
        if end < 0:
            return b"".join(kept)
    return b"".join([*kept, content[end:]]) if kept else content
