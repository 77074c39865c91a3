"""Does a page bring text that its domain had not shown before? What traps lack, whatever their URLs look like.

A page's text is cut at its tags into blocks; of each block only the letters count, in small, so that the dates of a
calendar and the prices of a list make nothing new. What is written in a link says something of another page, and the
words of the page's own URL something of whoever asked ("no page named so"): neither counts. A page is *fresh* when
blocks with `LEAST_LETTERS` letters, and with one in `LEAST_SHARE` of all, were not met before at its domain; unless
these are met text cut anew, as a search shows a piece of each page that it found. To see that, they are cut into pieces
at places that their letters choose (Manber, "Finding similar files in a large file system", USENIX 1994), which
are the same wherever a block begins. Where most pieces were met, the page is not fresh.

Some pages have next to nothing but numbers: the weather of a day, what things cost. So a page whose words were met is
fresh as well when `LEAST_ROWS` of its *rows*, with `LEAST_DIGITS` digits, were not: a row is what several numbers make
together that stand between two tags that break lines. Who counts makes no row, so that a calendar has none, nor do the
numbers in the page's own URL; what a list shows in another order has the same rows.

A *probe* asks for a page that cannot be there (`fyke.frontier.probes`). What is shown for it is made up when it is
fresh, and of what no page says nothing was said to a probe before: "no such page" is said to everyone, also where other
things are shown beside it.

It is asked for every page (`fyke.crawl.gathering`), and reads few of them: not the first ones of a domain, and one in
`ONE_IN` while all were fresh lately. Its memory is one table of places that newer blocks take over (bounded, and
lost at a restart), and one of pieces: what was forgotten counts as new, which accuses nobody.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from fyke.core.batches import U64, Kind
from fyke.core.outcomes import Outcome
from fyke.core.visits import HTML_TYPES, Page, Purpose, Visit

try:
    from fyke.harvest.letters import letters, pieces
except ImportError:  # there was no compiler when Fyke was installed
    letters = pieces = None  # type: ignore[assignment]

PLACES = 1 << 20  # blocks remembered, at most
DOMAINS = 1 << 16  # counters, which domains share when there are more
SMALL_DOMAIN = 4  # pages of a domain that are not read
PROVEN = 0.97  # share of fresh pages, the latest counting most, from which on a domain is: some 60 in a row
WEIGHT = 1 / 16  # of the latest page in that
ONE_IN = 8  # pages of a proven domain that is read
READ_BYTES = 1 << 15  # of a page
LEAST_LETTERS = 24
LEAST_SHARE = 50
LEAST_SAID = 8  # letters of a block that tells of what is said to every probe
MOST_WORDS = 16  # of a URL
LEAST_ROWS = 4
LEAST_DIGITS = 32
LEAST_NUMBERS = 3  # of a row
LEAST_PIECE = 8  # letters of a piece: what is shorter stands in other texts too
JUDGED_SHARE = 3  # one in so many letters of new blocks must be in pieces, for these to say something
MET_SHARE = 4  # all but one in so many letters of pieces met: the text is cut anew
FIRST_PART = 8  # times the letters that are enough: so many new ones are read before the others
_LETTERS = frozenset(range(ord("a"), ord("z") + 1)) | frozenset(range(128, 256))
_DROPPED = bytes(byte for byte in range(256) if byte not in _LETTERS | {ord("\n")})
# Linear, all: a match ends where the next one may begin, and a failure at the next < or >.
_CODE = re.compile(rb"<(?:script|style)")
_LINK = re.compile(rb"<a\s[^<>]*>[^<>]*")
_TEXT = re.compile(rb">([^<>]+)")
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_ONE_LINE = bytes.maketrans(b"\n", b" ")
_NUMBERS_ALONE = bytes(byte if byte in b"0123456789\n" else ord(" ") for byte in range(256))
_TAG = re.compile(rb"<[^<>]*>?")
_BREAK = re.compile(rb"<(?:tr|li|p|div|dl|dt|h[1-6]|br|section|article)\b")
_NUMBER = re.compile(rb"[0-9]+")
_WORD = re.compile(r"[a-z]{2,}")
_ENDS, _BEGINS = np.arange(256) % 5 < 2, np.arange(256) % 5 == 2  # letters between which there is a cut: one in 12
_ENDS[ord("\n")] = False  # a block begins there, and no piece
_MIX = np.uint64(0x9E3779B97F4A7C15)
_NONE = np.zeros(1, np.uint64)
_Sought = Callable[[npt.NDArray[np.uint32], U64, int], npt.NDArray[np.intp]]
_PIECE = np.dtype([("key", np.uint64), ("length", np.int64)])
# Of a polynomial hash of 64 bits (Karp and Rabin 1987): the code of each letter, and the powers of an odd number.
_BASE = 0xD6E8FEB86659FD93
_CODES = (np.arange(1, 257, dtype=np.uint64) * _MIX) ^ (np.arange(1, 257, dtype=np.uint64) * _MIX >> np.uint64(29))
_POWERS, _INVERSES = (np.cumprod(np.full(READ_BYTES, base, np.uint64)) for base in (_BASE, pow(_BASE, -1, 1 << 64)))


class NewText:
    """The blocks of text met at each domain, as far as memory goes."""

    def __init__(self) -> None:
        self._met = np.zeros(PLACES, np.uint32)
        self._met_pieces = np.zeros(PLACES, np.uint32)
        self._of_domain = np.zeros(DOMAINS, np.uint8)  # pages met, up to `SMALL_DOMAIN`
        self._share = np.zeros(DOMAINS, np.float32)  # of its pages that were fresh

    def __repr__(self) -> str:
        return f"NewText({np.count_nonzero(self._met)} blocks)"

    def fresh(self, page: Page) -> bool | None:
        """Whether `page` brought new text; None for what was not read."""
        visit = page.exchange.visit
        if page.exchange.outcome is not Outcome.OK or visit.purpose is Purpose.ROBOTS or visit.kind is Kind.LISTING:
            return None
        if page.media_type not in HTML_TYPES:
            return None
        if visit.purpose is Purpose.PROBE:
            return self._is_made_up(page.content, visit)
        if not self._wants(visit.domain):
            return None
        place = visit.domain % DOMAINS
        if self._share[place] >= PROVEN and visit.key % ONE_IN:
            return None
        fresh = not page.duplicate and self._is_new(page.content, visit)
        self._share[place] += WEIGHT * (fresh - self._share[place])
        return fresh

    def _wants(self, domain: int) -> bool:
        place = domain % DOMAINS
        if self._of_domain[place] >= SMALL_DOMAIN:
            return True
        self._of_domain[place] += 1
        return False

    def _is_new(self, content: bytes, visit: Visit) -> bool:
        """Remember the blocks of `content`; whether enough of them is new, also without the words of the URL."""
        text = blocks(content)
        new = self._enter(text, visit.domain)
        cut_anew = self._is_cut_anew(new, visit.domain, _enter)
        words = _words_of(visit.url)
        least, brought = _least(text), 0.0
        middle = _behind(new, FIRST_PART * least)
        for part in (new[:middle], new[middle:]):
            if brought < least:
                # Apart from the others: most have none of those words.
                brought += sum(map(len, self._enter(_without(words, part), visit.domain ^ 1)))
        return not cut_anew and (brought >= least or self._has_new_rows(rows(content, visit.url), visit))

    def _is_made_up(self, content: bytes, visit: Visit) -> bool:
        """Whether `content`, which is shown where nothing should be, is text that is made for the one who asks. Pages
        of the domain are not held against it afterwards."""
        text = blocks(content)
        unmet = [text[at] for at in _unmet(self._met, _hashes(text), visit.domain).tolist()]
        left = _without(_words_of(visit.url), unmet)  # without the name that was asked for, a title may be as all are
        new = [left[at] for at in _unmet(self._met, _hashes(left), visit.domain ^ 1).tolist()]
        said = [block for block in new if len(block) >= LEAST_SAID]
        said_before = len(self._enter(said, visit.domain ^ 3)) < len(said)
        return not (said_before or self._is_cut_anew(new, visit.domain, _unmet)) and sum(map(len, new)) >= _least(text)

    def _has_new_rows(self, found: Sequence[bytes], visit: Visit) -> bool:
        """Remember the rows of numbers `found`; whether enough of them are new."""
        new = self._enter(found, visit.domain ^ 2)
        return len(new) >= LEAST_ROWS and sum(map(len, new)) - b"".join(new).count(b" ") >= LEAST_DIGITS

    def _is_cut_anew(self, new: Sequence[bytes], domain: int, sought: _Sought) -> bool:
        """Whether most of the pieces of the blocks `new` were met, as `sought` finds them."""
        text = b"\n".join(new)[:READ_BYTES]
        found = pieces_by_columns(text) if pieces is None else np.frombuffer(pieces(text), _PIECE)
        there = int(found["length"].sum())
        unmet = int(found["length"][sought(self._met_pieces, found["key"], domain)].sum())
        return there * JUDGED_SHARE >= sum(map(len, new)) > 0 and unmet * MET_SHARE < there

    def _enter(self, text: Sequence[bytes], domain: int) -> list[bytes]:
        """Remember the blocks `text`; those that were not met before."""
        return [text[at] for at in _enter(self._met, _hashes(text), domain).tolist()]


def _hashes(text: Sequence[bytes]) -> U64:
    return np.fromiter(map(xxhash.xxh3_64_intdigest, text), np.uint64, len(text))


def _words_of(url: str) -> list[bytes]:
    """The last words in a URL, the long ones first, since one may begin another."""
    words = sorted({word.encode() for word in _WORD.findall(url.lower())[-MOST_WORDS:]})
    return sorted(words, key=len, reverse=True)


def _without(words: Sequence[bytes], text: Sequence[bytes]) -> list[bytes]:
    """The blocks `text` without these words."""
    said = b"\n".join(text)
    for word in words:
        said = said.replace(word, b"")
    return said.split()


def _least(text: Sequence[bytes]) -> float:
    """How many letters of a page with the blocks `text` must be new."""
    return max(LEAST_LETTERS, sum(map(len, text)) / LEAST_SHARE)


def _enter(met: npt.NDArray[np.uint32], hashes: U64, domain: int) -> npt.NDArray[np.intp]:
    """Remember `hashes` (uint64[n]) of texts of a domain in the table `met`; the places of those not met before."""
    places, marks = _entries(met, hashes, domain)
    new = np.flatnonzero(met[places] != marks)
    met[places] = marks
    return new


def _unmet(met: npt.NDArray[np.uint32], hashes: U64, domain: int) -> npt.NDArray[np.intp]:
    """The same, and nothing is remembered."""
    places, marks = _entries(met, hashes, domain)
    return np.flatnonzero(met[places] != marks)


def _entries(met: npt.NDArray[np.uint32], hashes: U64, domain: int) -> tuple[U64, npt.NDArray[np.uint32]]:
    keys = (hashes ^ np.uint64(domain)) * _MIX
    return keys & np.uint64(len(met) - 1), (keys >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


def _behind(text: Sequence[bytes], most: float) -> int:
    """How many of the first blocks have `most` letters together, or more."""
    for count, block in enumerate(text, 1):
        most -= len(block)
        if most <= 0:
            return count
    return len(text)


def pieces_by_columns(text: bytes) -> npt.NDArray[Any]:
    """The pieces of blocks of letters, a line each, without what lies before the first cut of a block and behind its
    last (dtype `_PIECE`, each once). At most `READ_BYTES` are read."""
    read = np.frombuffer(text, np.uint8)
    cuts = np.flatnonzero(_ENDS[read[:-1]] & _BEGINS[read[1:]]) + 1
    breaks = np.cumsum(read == ord("\n"))
    begins, ends = cuts[:-1], cuts[1:]
    whole = (ends - begins >= LEAST_PIECE) & (breaks[begins] == breaks[ends - 1])
    begins, ends = begins[whole], ends[whole]
    sums = np.concatenate([_NONE, np.cumsum(_CODES[read] * _POWERS[: len(read)])])
    keys, first = np.unique((sums[ends] - sums[begins]) * _INVERSES[begins], return_index=True)
    found = np.empty(len(keys), _PIECE)
    found["key"], found["length"] = keys, (ends - begins)[first]
    return found


def blocks(content: bytes) -> list[bytes]:
    """The blocks of text in a page of HTML, each once, in order: their letters alone, in small."""
    read = letters_by_patterns if letters is None else letters
    return list(dict.fromkeys(read(content[:READ_BYTES]).split()))


def rows(content: bytes, url: str) -> list[bytes]:
    """The rows of numbers in a page of HTML, each once, in order, without those in its `url`."""
    content = content[:READ_BYTES]
    if len(content.translate(None, _NO_DIGITS)) < LEAST_DIGITS:
        return []
    own = set(_NUMBER.findall(url.encode()))
    text = _LINK.sub(b"", _without_code(content.lower().translate(_ONE_LINE)))
    found: dict[bytes, None] = {}
    for line in _TAG.sub(b" ", _BREAK.sub(b"\n<", text)).translate(_NUMBERS_ALONE).split(b"\n"):
        numbers = line.split()
        if len(numbers) >= LEAST_NUMBERS:
            numbers = [number for number in numbers if number not in own]
            told = [number for before, number in pairwise([b"", *numbers]) if not _counts_on(before, number)]
            if len(told) >= LEAST_NUMBERS:
                found[b" ".join(told)] = None
    return list(found)


def _counts_on(before: bytes, number: bytes) -> bool:
    return 0 < len(before) <= 9 and len(number) <= 10 and int(number) == int(before) + 1


def letters_by_patterns(content: bytes) -> bytes:
    """The letters of each text between the tags of `content`, in small, a line or more for each."""
    text = _LINK.sub(b"", _without_code(content.lower()))
    return b"\n".join(_TEXT.findall(text)).translate(None, _DROPPED)


def _without_code(content: bytes) -> bytes:
    """`content`, in small letters, without scripts and styles."""
    kept, end = [], 0
    while (code := _CODE.search(content, end)) is not None:
        kept.append(content[end : code.start()])
        end = content.find(b"</" + code[0][1:], code.end())
        if end < 0:
            return b"".join(kept)
    return b"".join([*kept, content[end:]]) if kept else content
