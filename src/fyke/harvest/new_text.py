"""Does a page bring text that its domain had not shown before? Traps do not, whatever their URLs look like.

`fyke.crawl.gathering` asks for every page. A page's text is cut at its tags into blocks. A block counts by its letters
alone, in lower case, so that the dates of a calendar and the prices of a list make nothing new. The text of a link says
something of another page, and the words of the page's own URL something of the request ("no page named so"): neither
counts. A page is *fresh* if its blocks bring `LEAST_LETTERS` letters, and one in `LEAST_SHARE` of all, that were not
met before at its domain.

A new block may still be met text: cut anew, as a search shows a part of each page that it found; joined anew; parted by
other tags; with a word before it. So each block's fingerprints are remembered by winnowing (Schleimer, Wilkerson and
Aiken, "Winnowing: local algorithms for document fingerprinting", SIGMOD 2003, section 3). Each run of `GRAM` letters
has a hash. The least of each `WINDOW` hashes in a row is kept, the last of equal ones. So met text of
`GRAM + WINDOW - 1` letters has a kept hash, wherever it stands. A block brings the letters that lie in no gram met at
its domain or earlier in the page, and nothing if these are less than one in `MET_SHARE`. A block of less than `GRAM`
letters has no grams, and brings all its letters. So a text put together from sentences with other names brings the
names, and nothing if they are those of its URL.

Some pages have next to nothing but numbers: the weather of a day, prices. So a page whose words were met is also fresh
if `LEAST_ROWS` of its *rows*, with `LEAST_DIGITS` digits, were not. A row is several numbers between two tags that
break lines. It leaves out numbers that count up (so a calendar has no rows), dates (so a list of files has none) and
the numbers in the page's own URL. A list in another order has the same rows. Other pages have next to nothing but a
picture: a page is also fresh if it shows one whose file name was not met, whatever folder and query stand beside it.

A page that is not there (404, 410) brings nothing new. A page visited again is not judged: after a small change its
text was met, which says nothing of others like it.

A *probe* asks for a page that cannot be there (`fyke.frontier.traps.probes`). The answer is made up if it is fresh, and
if none of its blocks that stand on no page was in the answer to an earlier probe: a server says "no such page" to every
probe, even beside other text.

Not every page is read. The first page of a domain is not. If all pages at a kind of place (`fyke.core.shapes.kinds`)
were fresh lately, only one in `ONE_IN` there is read. Kinds of places count apart, because the pages of a shop say
nothing of its calendar.

Bounded: a table of blocks, one of fingerprints and one of the URLs of pages. Newer entries take over places, and all
are lost at a restart. A forgotten text counts as new, which accuses nobody.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash
from numpy.lib.stride_tricks import sliding_window_view

from fyke.core.batches import U64, Kind
from fyke.core.mixing import GOLDEN
from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES, Page
from fyke.core.shapes import kinds, skeleton
from fyke.core.urls import key_of
from fyke.core.visits import Exchange, Purpose, Visit

try:
    from fyke.harvest.letters import letters, unmet_letters, without_words
except ImportError:  # no compiler when Fyke was installed
    letters = unmet_letters = without_words = None  # type: ignore[assignment]

PLACES = 1 << 20  # for blocks
PRINTS = 1 << 21  # for fingerprints, of nine million letters
DOMAINS = 1 << 16  # marks; more domains share them
KINDS = 1 << 18  # counters of kinds of places at domains; more kinds share them
PROVEN = 0.97  # share of fresh pages, the latest counting most, that proves a kind: some 60 in a row
WEIGHT = 1 / 16  # of the latest page in that share
ONE_IN = 8  # of this many pages of a proven kind, one is read
READ_BYTES = 1 << 15  # of a page
LEAST_LETTERS = 24
LEAST_SHARE = 50
LEAST_SAID = 8  # letters, at least, of a block by which an answer to every probe is recognised
MOST_WORDS = 16  # of a URL that are taken out
PAGES = 1 << 20  # for URLs of pages that came
NOT_THERE = (404, 410)
REDIRECTS = frozenset({Outcome.REDIRECTED, Outcome.REDIRECTED_TOO_OFTEN})
LEAST_ROWS = 4
LEAST_DIGITS = 32
LEAST_NUMBERS = 3  # of a row
GRAM = 18  # letters: a shorter sequence stands in other texts too
WINDOW = 8  # grams, one of them is kept; no more than `GRAM`, see `fingerprints_by_columns`
GONE = 0  # in place of a letter
MET_SHARE = 4  # if fewer than one letter in four of a block or page is new, they stand where met texts join
_LETTERS = frozenset(range(ord("a"), ord("z") + 1)) | frozenset(range(128, 256))
_DROPPED = bytes(byte for byte in range(256) if byte not in _LETTERS | {ord("\n")})
# All linear: a match ends where the next one may begin, and a failure at the next < or >.
_CODE = re.compile(rb"<(?:script|style)")
_LINK = re.compile(rb"<a\s[^<>]*>[^<>]*")
_TEXT = re.compile(rb">([^<>]+)")
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_ONE_LINE = bytes.maketrans(b"\n", b" ")
_NUMBERS_ALONE = bytes(byte if byte in b"0123456789\n" else ord(" ") for byte in range(256))
_TAG = re.compile(rb"<[^<>]*>?")
_BREAK = re.compile(rb"<(?:tr|li|p|div|dl|dt|h[1-6]|br|section|article)\b")
_NUMBER = re.compile(rb"[0-9]+")
_DATE = re.compile(  # 2024-05-04t13:20, 4/may/2024; 4. may 2024 13:20; may 4, 2024
    rb"(?:(?<![0-9])[0-9]{1,4}([-/.])(?:[0-9]{1,2}|[a-z]{3,9})\1[0-9]{1,4}"
    rb"|(?<![0-9])[0-9]{1,2}\.? [a-z\x80-\xff]{3,20}[.,]? [0-9]{4}|[a-z\x80-\xff]{3,20}\.? [0-9]{1,2}, [0-9]{4}"
    rb")(?:[t ,]{1,2}[0-9]{1,2}(?::[0-9]{2}){1,2})?(?![0-9:])"
)
_IMAGE = re.compile(rb"<img\s[^<>]*", re.IGNORECASE)
_SOURCE = re.compile(rb"\bsrc=[\"']?([^\"'\s?#]+)", re.IGNORECASE)
PICTURES = (b".jpg", b".jpeg", b".png", b".webp", b".avif")
_WORD = re.compile(r"[a-z]{2,}")
_PRINT = np.dtype([("key", np.uint64), ("at", np.int64)])  # the hash of a gram, and where it begins
# Of a polynomial hash of 64 bits (Karp and Rabin 1987): an odd number, and the code of each letter.
_BASE = np.uint64(0xD6E8FEB86659FD93)
_CODES = (np.arange(1, 257, dtype=np.uint64) * GOLDEN) ^ (np.arange(1, 257, dtype=np.uint64) * GOLDEN >> np.uint64(29))
_NONE = np.uint64((1 << 64) - 1)  # more than any hash that is kept


class NewText:
    """The blocks of text met at each domain, as far as memory goes."""

    def __init__(self) -> None:
        self._met = np.zeros(PLACES, np.uint32)
        self._met_prints = np.zeros(PRINTS, np.uint32)
        self._came = np.zeros(PAGES, np.uint32)
        self._is_known = np.zeros(DOMAINS, np.bool_)  # whether a page of the domain came
        self._share = np.zeros(KINDS, np.float32)  # of pages at a kind of place that were fresh

    def __repr__(self) -> str:
        return f"NewText({np.count_nonzero(self._met)} blocks)"

    def fresh(self, page: Page) -> bool | None:
        """Return whether `page`, of an exchange that `is_judged`, brought new text; None if it was not read."""
        visit = page.exchange.visit
        self._came[visit.key % PAGES] = visit.key >> 32
        has_text = page.exchange.outcome is Outcome.OK and page.media_type in HTML_TYPES
        if not has_text and page.exchange.status not in NOT_THERE:
            return None
        if visit.purpose is Purpose.PROBE:
            return self._is_made_up(page.beginning(READ_BYTES), visit) if has_text else None
        if not self._is_known[visit.domain % DOMAINS]:
            self._is_known[visit.domain % DOMAINS] = True
            return None
        place = xxhash.xxh3_64_intdigest(kinds(skeleton(visit.url)).encode(), visit.domain) % KINDS
        if has_text and self._share[place] >= PROVEN and visit.key % ONE_IN:
            return None
        fresh = has_text and not page.duplicate and self._is_new(page.beginning(READ_BYTES), visit)
        self._share[place] += WEIGHT * (fresh - self._share[place])
        return fresh

    def was_asked(self, url: str) -> bool:
        """Return whether the canonical `url` was judged by `fresh`, whatever the answer was, as far as remembered."""
        key = key_of(url)
        return int(self._came[key % PAGES]) == key >> 32

    def _is_new(self, content: bytes, visit: Visit) -> bool:
        """Remember the blocks of `content`, and return whether enough is new, also without the words of the URL."""
        text = blocks(content)
        new = self._remember_new(text, visit.domain)
        shows = self._remember_new(pictures(content), visit.domain ^ 4)
        brought = self._brought(new, _without_words_of(visit.url, new), visit.domain)
        return bool(shows) or brought >= _least(text) or self._has_new_rows(rows(content, visit.url), visit)

    def _is_made_up(self, content: bytes, visit: Visit) -> bool:
        """Return whether `content`, the answer to a probe, is text made for this request. Its blocks are not remembered
        as met, so that they do not count against pages of the domain."""
        text = blocks(content)
        new = [text[at] for at in _find_new(self._met, _hashes(text), visit.domain).tolist()]
        said = _without_words_of(visit.url, new)  # without the name asked for, a title may be like all others
        left = _left(said)
        unmet = _find_new(self._met, _hashes(left), visit.domain ^ 1).tolist()
        answer = [left[at] for at in unmet if len(left[at]) >= LEAST_SAID]
        said_before = len(self._remember_new(answer, visit.domain ^ 3)) < len(answer)
        return not said_before and self._brought(new, said, visit.domain, remember=False) >= _least(text)

    def _has_new_rows(self, found: Sequence[bytes], visit: Visit) -> bool:
        """Remember the rows of numbers `found`, and return whether enough of them are new."""
        new = self._remember_new(found, visit.domain ^ 2)
        return len(new) >= LEAST_ROWS and sum(map(len, new)) - b"".join(new).count(b" ") >= LEAST_DIGITS

    def _brought(self, new: Sequence[bytes], said: bytes, domain: int, *, remember: bool = True) -> int:
        """Return how many letters of the blocks `new` say something new. The others are letters of words of the URL
        (`GONE` in `said`), of met grams, or of blocks that were met before with other words of a URL."""
        if not new:
            return 0
        left = _left(said)
        unmet = (_remember_new if remember else _find_new)(self._met, _hashes(left), domain ^ 1).tolist()
        count = unmet_letters_by_columns if unmet_letters is None else unmet_letters
        new_of = count(b"\n".join(new), said, self._met_prints, domain, remember)
        brought = sum(new_of[at] for at in unmet if new_of[at] * MET_SHARE >= len(new[at]))
        return brought if brought * MET_SHARE >= sum(len(left[at]) for at in unmet) else 0

    def _remember_new(self, text: Sequence[bytes], domain: int) -> list[bytes]:
        """Remember the blocks `text`, and return those not met before."""
        return [text[at] for at in _remember_new(self._met, _hashes(text), domain).tolist()] if text else []


def _hashes(text: Sequence[bytes]) -> U64:
    return np.fromiter(map(xxhash.xxh3_64_intdigest, text), np.uint64, len(text))


def _without_words_of(url: str, text: Sequence[bytes]) -> bytes:
    """Return the blocks `text`, a line each, with `GONE` for each letter of a word in `url`."""
    words = sorted({word.encode() for word in _WORD.findall(url.lower())[-MOST_WORDS:]})
    without = without_words_by_columns if without_words is None else without_words
    return without(b"\n".join(text), words)


def without_words_by_columns(text: bytes, words: Sequence[bytes]) -> bytes:
    """Return `text` with `GONE` for each letter of a place where one of `words` stands. A place of a word does not
    overlap the one before."""
    left = np.frombuffer(text, np.uint8)
    for word in words:
        left = np.minimum(left, np.frombuffer(text.replace(word, bytes([GONE]) * len(word)), np.uint8))
    return left.tobytes()


def _left(said: bytes) -> list[bytes]:
    """Return the blocks in `said` without letters that are `GONE`."""
    return said.replace(bytes([GONE]), b"").split(b"\n") if said else []


def _least(text: Sequence[bytes]) -> float:
    """Return how many letters of a page with the blocks `text` must be new."""
    return max(LEAST_LETTERS, sum(map(len, text)) / LEAST_SHARE)


def _remember_new(met: npt.NDArray[np.uint32], hashes: U64, domain: int) -> npt.NDArray[np.intp]:
    """Remember `hashes` (uint64[n]) of texts of a domain in the table `met`, and return the places of the new ones."""
    places, marks = _entries(met, hashes, domain)
    new = np.flatnonzero(met[places] != marks)
    met[places] = marks
    return new


def _find_new(met: npt.NDArray[np.uint32], hashes: U64, domain: int) -> npt.NDArray[np.intp]:
    """Return what `_remember_new` returns, and remember nothing."""
    places, marks = _entries(met, hashes, domain)
    return np.flatnonzero(met[places] != marks)


def _entries(met: npt.NDArray[np.uint32], hashes: U64, domain: int) -> tuple[U64, npt.NDArray[np.uint32]]:
    keys = (hashes ^ np.uint64(domain)) * GOLDEN
    return keys & np.uint64(len(met) - 1), (keys >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


def unmet_letters_by_columns(
    text: bytes, said: bytes, met: npt.NDArray[np.uint32], domain: int, remember: bool
) -> list[int]:
    """Return for each block of `text`, a line each, how many letters are in no met gram, and are not `GONE` in `said`,
    which is as long. A gram is met if the table `met` (a power of two of places) has it for `domain`, or if it came
    before in the text. If told to `remember`, the grams are in the table from then on."""
    found = fingerprints_by_columns(text)
    is_met = _met_in_order(met, found["key"], domain, remember=remember)
    ends = np.append(np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")), len(text))
    starts = np.append(0, ends[:-1] + 1)
    says = (np.frombuffer(said, np.uint8) != GONE) & ~_covered(found["at"][is_met], starts, ends)
    before = np.append(0, np.cumsum(says))
    counts: list[int] = (before[ends] - before[starts]).tolist()
    return counts


def _met_in_order(met: npt.NDArray[np.uint32], keys: U64, domain: int, *, remember: bool) -> npt.NDArray[np.bool_]:
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


def fingerprints_by_columns(text: bytes) -> npt.NDArray[Any]:
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


def is_judged(exchange: Exchange) -> bool:
    """Return whether what `exchange` brought says something of URLs like its own. A listing only names others, and a
    page visited before may have changed but little."""
    visit = exchange.visit
    return visit.purpose is not Purpose.ROBOTS and visit.kind is not Kind.LISTING and visit.earlier is None


def blocks(content: bytes) -> list[bytes]:
    """Return the blocks of text in a page of HTML, each once, in order: their letters alone, in lower case."""
    read = letters_by_patterns if letters is None else letters
    return list(dict.fromkeys(read(content[:READ_BYTES]).split()))


def pictures(content: bytes) -> list[bytes]:
    """Return the file names of pictures in a page of HTML, each once, in order, in lower case."""
    sources = (source.lower() for image in _IMAGE.findall(content[:READ_BYTES]) for source in _SOURCE.findall(image))
    return list(dict.fromkeys(source.rpartition(b"/")[2] for source in sources if source.endswith(PICTURES)))


def rows(content: bytes, url: str) -> list[bytes]:
    """Return the rows of numbers in a page of HTML, each once, in order, without the numbers in its `url`."""
    content = content[:READ_BYTES]
    if len(content.translate(None, _NO_DIGITS)) < LEAST_DIGITS:
        return []
    own = set(_NUMBER.findall(url.encode()))
    text = _DATE.sub(b" ", _LINK.sub(b"", _without_code(content.lower().translate(_ONE_LINE))))
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
    """Return the letters of each text between tags of `content`, in lower case, a line or more for each."""
    text = _LINK.sub(b"", _without_code(content.lower()))
    return b"\n".join(_TEXT.findall(text)).translate(None, _DROPPED)


def _without_code(content: bytes) -> bytes:
    """Return `content`, which is lower case, without scripts and styles."""
    kept, end = [], 0
    while (code := _CODE.search(content, end)) is not None:
        kept.append(content[end : code.start()])
        end = content.find(b"</" + code[0][1:], code.end())
        if end < 0:
            return b"".join(kept)
    return b"".join([*kept, content[end:]]) if kept else content
