"""The stream of links on which every structure is measured.

A table of `table` URLs was met before. `MET` of the `links` incoming links point to a URL that was met (89 %, as
IRLbot's p of 0.11, section 7.1): to the r-th most popular with a chance of 1/r, and one in ten to a URL that is new
in this stream. With that, Mercator's cache of 2^18 popular URLs would hit 68 % at a table of 100 million; its authors
report 66 %, and 9.5 % in the table of recent ones. With `popularity="uniform"` all URLs of the table are equally
popular, the worst case of every cache. URLs have a title of made-up words, so that LZ4 packs a few thousand of them
2.4 to 1; those of real pages pack a little better. With `text="random"` nothing packs them.

Invariant: a link is a number; number, key and URL are one to one, and the stream depends on its fields alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64

MET = 0.89
RECENT = 0.1  # of the links to URLs that were met
PAGES_PER_SITE = 1000
BATCH = 1 << 16
URL = b"https://www.site-########.example/articles/########/title-title-title-title.html"
URL_BYTES = len(URL)
SITE_BYTES = URL.index(b"/articles")
SITE_AT, PAGE_AT = URL.index(b"#"), URL.rindex(b"########")
HEX = np.array([f"{byte:02x}" for byte in range(256)], "S2").view(np.uint16)
TITLE_AT, WORDS = URL.index(b"title"), 4
SPREAD = 2_654_435_761  # a prime, so that popular URLs are not neighbours


def _vocabulary(count: int) -> npt.NDArray[np.uint8]:
    """Return words of five letters: uint8[count, 5]."""
    consonants, vowels = np.frombuffer(b"bcdfghklmnprstvz", np.uint8), np.frombuffer(b"aeiou", np.uint8)
    place = np.arange(count) * 7919
    letters = []
    for alphabet in (consonants, vowels, consonants, vowels, consonants):
        letters.append(alphabet[place % len(alphabet)])
        place = place // len(alphabet)
    return np.stack(letters, axis=1)


VOCABULARY = _vocabulary(1 << 12)


@dataclass(frozen=True, slots=True)
class Stream:
    """`links` links over a table of `table` URLs, `batch` at a time."""

    table: int
    links: int
    popularity: Literal["web", "uniform"] = "web"
    text: Literal["words", "random"] = "words"
    seed: int = 1
    batch: int = BATCH

    @property
    def sites(self) -> int:
        return max(1, self.table // PAGES_PER_SITE)

    def keys(self, numbers: U64) -> U64:
        """Return uniform and distinct keys, uint64[n]; in the table they grow with the number, to fill it fast."""
        mixed = _mixed(numbers)
        step = np.uint64((1 << 64) // max(1, self.table) - 1)
        return np.where(numbers < self.table, numbers * step + mixed % step, mixed)

    def texts(self, numbers: U64) -> pa.BinaryArray:
        """Return URLs of `URL_BYTES` each; numbers with the same remainder modulo `sites` share a site."""
        rows = np.empty((len(numbers), URL_BYTES), np.uint8)
        fill = self._write_random if self.text == "random" else self._write_urls
        fill(rows, numbers)
        offsets = np.arange(0, (len(numbers) + 1) * URL_BYTES, URL_BYTES, dtype=np.int32)
        return pa.BinaryArray.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(rows)])

    def _write_urls(self, rows: npt.NDArray[np.uint8], numbers: U64) -> None:
        rows[:] = np.frombuffer(URL, np.uint8)
        for at, field in ((SITE_AT, numbers % np.uint64(self.sites)), (PAGE_AT, numbers // np.uint64(self.sites))):
            rows[:, at : at + 8] = HEX[field.astype(">u4").view(np.uint8)].view(np.uint8).reshape(-1, 8)
        words = _mixed(numbers)
        for at in range(TITLE_AT, TITLE_AT + 6 * WORDS, 6):
            rows[:, at : at + 5] = VOCABULARY[(words & np.uint64(len(VOCABULARY) - 1)).astype(np.intp)]
            words >>= np.uint64(16)

    def _write_random(self, rows: npt.NDArray[np.uint8], numbers: U64) -> None:
        for at in range(0, URL_BYTES, 8):
            rows[:, at : at + 8] = _mixed(numbers * np.uint64(URL_BYTES) + np.uint64(at)).view(np.uint8).reshape(-1, 8)

    def filling(self, order: Literal["key", "text"], batch: int) -> Iterator[U64]:
        """Yield the numbers of the table, sorted by their key or by their URL, `batch` at a time."""
        if order == "key":
            for start in range(0, self.table, batch):
                yield np.arange(start, min(self.table, start + batch), dtype=np.uint64)
            return
        sites = self.sites
        at_a_time = max(1, batch * sites // max(1, self.table))
        for first in range(0, sites, at_a_time):
            site = np.arange(first, min(sites, first + at_a_time), dtype=np.uint64)
            pages = np.arange(-(-self.table // sites), dtype=np.uint64) * np.uint64(sites)
            numbers = (site[:, None] + pages).ravel()
            yield numbers[numbers < self.table]

    def batches(self) -> Iterator[tuple[U64, pa.BinaryArray, int]]:
        """Yield keys and URLs of the links, and how many of them are new."""
        random = np.random.default_rng(self.seed)
        after = self.table
        for start in range(0, self.links, self.batch):
            numbers, after_this = self._links(random, after, min(self.batch, self.links - start))
            yield self.keys(numbers), self.texts(numbers), after_this - after
            after = after_this

    def _links(self, random: np.random.Generator, after: int, count: int) -> tuple[U64, int]:
        """Return the numbers of `count` links if the numbers below `after` were met, and the next `after`."""
        chance = random.random(count)
        numbers = self._popular(random.random(count))
        if after > self.table:
            recent = chance < MET * RECENT
            numbers[recent] = random.integers(self.table, after, int(recent.sum()), np.uint64)
        new = chance >= MET if self.table else np.ones(count, np.bool_)
        made = int(new.sum())
        numbers[new] = np.arange(after, after + made, dtype=np.uint64)
        return numbers, after + made

    def _popular(self, chance: npt.NDArray[np.float64]) -> U64:
        """Return URLs of the table by popularity, for `chance` uniform in [0, 1)."""
        if self.popularity == "uniform":
            return (chance * self.table).astype(np.uint64)
        rank = np.exp(chance * np.log(max(1, self.table))).astype(np.uint64) - np.uint64(1)
        return rank * np.uint64(SPREAD) % np.uint64(max(1, self.table))


def _mixed(numbers: U64) -> U64:
    """Return splitmix64: distinct numbers to distinct keys that look random."""
    key = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
