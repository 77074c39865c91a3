"""Does a page bring text that its domain had not shown before? Traps do not, whatever their URLs look like.

`fyke.crawl.gathering` asks for every page. A page is *fresh* if its text brings `LEAST_LETTERS` letters, and one in
`LEAST_SHARE` of all, that were not met before at its domain (`fyke.harvest.met_text` says what is met).

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

import numpy as np
import xxhash

from fyke.core.batches import Kind
from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES, Page
from fyke.core.shapes import kinds, skeleton
from fyke.core.urls import key_of
from fyke.core.visits import Exchange, Purpose, Visit
from fyke.harvest.met_text import LINK, MetTexts, without_code

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
PAGES = 1 << 20  # for URLs of pages that came
NOT_THERE = (404, 410)
REDIRECTS = frozenset({Outcome.REDIRECTED, Outcome.REDIRECTED_TOO_OFTEN})
LEAST_ROWS = 4
LEAST_DIGITS = 32
LEAST_NUMBERS = 3  # of a row
# All linear: a match ends where the next one may begin, and a failure at the next < or >.
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_ONE_LINE = bytes.maketrans(b"\n", b" ")
_NUMBERS_ALONE = bytes(byte if byte in b"0123456789\n" else ord(" ") for byte in range(256))
_TAG = re.compile(rb"<[^<>]*>?")
_NO_SPACE = b"\t"  # in place of a tag: no date goes on behind it
_BREAK = re.compile(rb"<(?:tr|li|p|div|dl|dt|h[1-6]|br|section|article)\b")
_NUMBER = re.compile(rb"[0-9]+")
# 2024-05-04t13:20, 4/may/2024; 4. may 2024 13:20; may 4, 2024 without its month. Search is fast for what begins so.
_DATE = re.compile(
    rb"[0-9](?<![0-9]{2})(?:[0-9]{0,3}([-/.])(?:[0-9]{1,2}|[a-z]{3,9})\1[0-9]{1,4}"
    rb"|[0-9]?\.? [a-z\x80-\xff]{3,20}[.,]? [0-9]{4}"
    rb"|(?:(?<=[a-z\x80-\xff]{3} [0-9])|(?<=[a-z\x80-\xff]{3}\. [0-9]))[0-9]?, [0-9]{4}"
    rb")(?:[t ,]{1,2}[0-9]{1,2}(?::[0-9]{2}){1,2})?(?![0-9:])"
)
_IMAGE = re.compile(rb"<img\s[^<>]*", re.IGNORECASE)
_SOURCE = re.compile(rb"\bsrc=[\"']?([^\"'\s?#]+)", re.IGNORECASE)
_ROWS, _ANSWERS, _PICTURES = 2, 3, 4  # what is remembered beside blocks, by domain ^ this
PICTURES = (b".jpg", b".jpeg", b".png", b".webp", b".avif")


class NewText:
    """What was met at each domain, as far as memory goes."""

    def __init__(self) -> None:
        self._met = MetTexts(PLACES, PRINTS)
        self._came = np.zeros(PAGES, np.uint32)
        self._is_known = np.zeros(DOMAINS, np.bool_)  # whether a page of the domain came
        self._share = np.zeros(KINDS, np.float32)  # of pages at a kind of place that were fresh

    def __repr__(self) -> str:
        return f"NewText({self._met})"

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
        """Remember the text of `content`, and return whether enough is new."""
        text = self._met.weigh(content, visit.url, visit.domain)
        shows = self._met.find_unmet(pictures(content), visit.domain ^ _PICTURES)
        is_new = bool(shows) or text.brought >= _least(text.letters)
        return is_new or self._has_new_rows(rows(content, visit.url), visit)

    def _is_made_up(self, content: bytes, visit: Visit) -> bool:
        """Return whether `content`, the answer to a probe, is text made for this request. Its blocks are not remembered
        as met, so that they do not count against pages of the domain."""
        text = self._met.weigh(content, visit.url, visit.domain, remember=False)
        # Without the name asked for, a title may be like all others.
        answer = [block for block in text.unmet.split() if len(block) >= LEAST_SAID]
        said_before = len(self._met.find_unmet(answer, visit.domain ^ _ANSWERS)) < len(answer)
        return not said_before and text.brought >= _least(text.letters)

    def _has_new_rows(self, found: Sequence[bytes], visit: Visit) -> bool:
        """Remember the rows of numbers `found`, and return whether enough of them are new."""
        new = self._met.find_unmet(found, visit.domain ^ _ROWS)
        return len(new) >= LEAST_ROWS and sum(map(len, new)) - b"".join(new).count(b" ") >= LEAST_DIGITS


def _least(letters: int) -> float:
    """Return how many of the letters of a page must be new."""
    return max(LEAST_LETTERS, letters / LEAST_SHARE)


def is_judged(exchange: Exchange) -> bool:
    """Return whether what `exchange` brought says something of URLs like its own. A listing only names others, and a
    page visited before may have changed but little."""
    visit = exchange.visit
    return visit.purpose is not Purpose.ROBOTS and visit.kind is not Kind.LISTING and visit.earlier is None


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
    text = LINK.sub(b"", without_code(content.lower().translate(_ONE_LINE)))
    found: dict[bytes, None] = {}
    for line in _TAG.sub(_NO_SPACE, _BREAK.sub(b"\n<", text)).split(b"\n"):
        if len(line.translate(_NUMBERS_ALONE).split()) < LEAST_NUMBERS:
            continue  # dates are slow to find
        numbers = [number for number in _DATE.sub(b" ", line).translate(_NUMBERS_ALONE).split() if number not in own]
        told = [number for before, number in pairwise([b"", *numbers]) if not _counts_on(before, number)]
        if len(told) >= LEAST_NUMBERS:
            found[b" ".join(told)] = None
    return list(found)


def _counts_on(before: bytes, number: bytes) -> bool:
    return 0 < len(before) <= 9 and len(number) <= 10 and int(number) == int(before) + 1
