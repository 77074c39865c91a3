"""Undoes the codings of a robots.txt: at once if it is short, otherwise in slices, a few at a time.

Any number of servers may send half a megabyte that takes half a second to unfold. Long ones therefore wait in line.
`AT_ONCE` are unfolded side by side, those first that are expected to take least. Copies of waiting ones are in memory
up to `MEMORY_BYTES`, then on disk. Called by `fyke.fetcher.rules_desk`.

Invariants: rules count as not to be had, and are asked for again, if their rest is lost in their coding or behind data
that bring nothing, as if the answer had broken off. The same holds for rules that are packed, or no text, after the
named codings are undone: they may forbid something. Bounded: at most `MOST_WAITING` wait; further ones count as not to
be had.
"""

import heapq
import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count

from fyke.core.decoding import Decoded, decode_body, decoding, expected_steps
from fyke.core.document import Document, SharedMemory
from fyke.core.outcomes import Outcome
from fyke.core.slices import Slicer
from fyke.core.visits import Exchange

WIRE_BYTES = 1 << 20  # taken of a robots.txt: enough for the part that is read, in any coding or chunks
NOW_STEPS = 2_000  # a robots.txt that takes fewer is unfolded at once, as nearly all are
AT_ONCE = 8
MEMORY_BYTES = 8 << 20
MOST_WAITING = 512  # each may hold a file
# How gzip, compress, zstd, ZIP, bzip2, xz and 7z begin, and no rules.
_PACKED = (b"\x1f\x8b", b"\x1f\x9d", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c")
_UTF8 = getincrementaldecoder("utf-8")
LEAST_CHARS = 16  # with fewer no rule is whole: `Disallow:/` and its user agent
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")

Then = Callable[[Exchange, bytes], None]


class Unfolding:
    """Undoes codings by `slicer`, to `most_bytes` of content each."""

    def __init__(self, slicer: Slicer, most_bytes: int) -> None:
        self._slicer = slicer
        self._most_bytes = most_bytes
        self._memory = SharedMemory(MEMORY_BYTES)
        self._waiting: list[tuple[float, int, Exchange, Then]] = []
        self._came = count()
        self._going_on = 0

    def __repr__(self) -> str:
        return f"Unfolding({self._going_on} going on, {len(self._waiting)} wait)"

    def read(self, exchange: Exchange, then: Then) -> bool:
        """Give `exchange` and its content to `then`: before this returns if it is short, otherwise later, without its
        body. Returns False if too many wait."""
        steps = expected_steps(exchange)
        if steps <= NOW_STEPS:
            self._give(exchange, decode_body(exchange, self._most_bytes), then)
            return True
        if len(self._waiting) >= MOST_WAITING:
            return False
        body = Document(shared=self._memory)
        body.write(exchange.body.read(WIRE_BYTES))
        heapq.heappush(self._waiting, (steps, next(self._came), replace(exchange, body=body), then))
        self._go_on()
        return True

    def _go_on(self) -> None:
        while self._waiting and self._going_on < AT_ONCE:
            _, _, exchange, then = heapq.heappop(self._waiting)
            self._going_on += 1
            self._slicer.line_up(decoding(exchange, self._most_bytes), partial(self._unfolded, exchange, then))

    def _unfolded(self, exchange: Exchange, then: Then, decoded: Decoded) -> None:
        self._going_on -= 1
        exchange.body.close()
        self._give(exchange, decoded, then)
        self._go_on()

    def _give(self, exchange: Exchange, decoded: Decoded, then: Then) -> None:
        is_meant = exchange.outcome in (Outcome.OK, Outcome.TOO_LARGE)
        if is_meant and (why := _what_lacks(exchange, decoded, self._most_bytes)):
            then(replace(exchange, outcome=Outcome.BROKEN_OFF, detail=why), b"")
        else:
            then(exchange, decoded.content)


def _what_lacks(exchange: Exchange, decoded: Decoded, most_bytes: int) -> str:
    """Return why `exchange` may hold other rules than were `decoded`, of at most `most_bytes`; empty if it does not."""
    if decoded.content.startswith(_PACKED):
        return "it is packed, but does not say how"
    is_as_it_came = decoded.fault and not decoded.is_broken and not decoded.is_cut
    if is_as_it_came and not _is_text(decoded.content):
        return decoded.fault
    if len(decoded.content) >= most_bytes:
        return ""
    if exchange.outcome is Outcome.TOO_LARGE or decoded.is_broken or decoded.is_cut:
        return decoded.fault or f"its first {WIRE_BYTES} bytes unfold to too little"
    return ""


def _is_text(content: bytes) -> bool:
    """Return whether `content` is text, as far as it goes, and not the beginning of packed data."""
    if not content.strip(b" \t\r\n"):
        return True
    try:
        text = _UTF8().decode(content)
    except UnicodeDecodeError:
        return False
    return len(text) >= LEAST_CHARS and not _NO_TEXT.search(content)
