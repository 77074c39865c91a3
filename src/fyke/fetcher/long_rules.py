"""Rules that are long: few are read at a time, and few are in memory.

A robots.txt of 30 KB becomes a megabyte when it is read, and any server may send one. While it waits to be read, only
its origin is in memory; the host book has the file. The shortest are read first, so that long ones do not hold up the
others. Rules that were read stay, up to `KEPT_BYTES`. The least recently asked are forgotten first, and read again when
they are asked. The few lines that most servers send are read at once, and stay.

Invariant: at most `AT_ONCE` long files are being read. Bounded: the rules in memory that are not small take
`KEPT_BYTES` together, or are one.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import count

from fyke.core.slices import Slicer
from fyke.fetcher.book import HostBook
from fyke.fetcher.host import OriginRules
from fyke.fetcher.robots import RobotsRecord, RobotsState

LINE_BYTES = 256  # of memory for a line that is read, besides its characters
LONG_BYTES = 12 << 10  # of memory: a file that takes less is read in `FIRST_STEPS`
SMALL_BYTES = 4 << 10  # of memory: rules that take less are small
KEPT_BYTES = 16 << 20  # of memory
AT_ONCE = 2


class LongRules:
    """The rules of `book`, read by `slicer` for the product token `product`."""

    def __init__(self, book: HostBook, slicer: Slicer, product: str) -> None:
        self._book = book
        self._slicer = slicer
        self._product = product
        # To be read: bytes, order of arrival, origin, receiver.
        self._waiting: list[tuple[int, int, str, Callable[[RobotsRecord], None]]] = []
        self._came = count()
        self._reading = 0
        self._kept: OrderedDict[str, tuple[OriginRules, int]] = OrderedDict()  # by origin: holder and bytes
        self._kept_bytes = 0

    def __repr__(self) -> str:
        return f"LongRules({len(self._kept)} in memory, {self._reading + len(self._waiting)} to be read)"

    def read(self, record: RobotsRecord, then: Callable[[RobotsRecord], None]) -> None:
        """Give `record`, which is in the book, to `then` once it is read: before this returns, if it is short."""
        size = _reading_bytes(record.body)
        if size < LONG_BYTES:
            self._slicer.run(record.read(self._product), then)
        elif self._reading < AT_ONCE:
            self._reading += 1
            self._slicer.run(record.read(self._product), partial(self._ended, then))
        else:
            heapq.heappush(self._waiting, (size, next(self._came), record.origin, then))

    def _ended(self, then: Callable[[RobotsRecord], None], record: RobotsRecord) -> None:
        self._reading -= 1
        then(record)
        while self._waiting and self._reading < AT_ONCE:
            _, _, origin, next_then = heapq.heappop(self._waiting)
            waited = self._book.robots(origin)
            assert waited is not None, f"{origin}: what is to be read was saved"
            self._reading += 1
            self._slicer.line_up(waited.read(self._product), partial(self._ended, next_then))

    def keep(self, known: OriginRules, record: RobotsRecord) -> None:
        """Remember that `known` holds the rules of `record`. If all take too much memory, the oldest go."""
        self._forget(record.origin)
        size = record.rules(self._product).size_bytes
        if record.state is not RobotsState.RULES or size < SMALL_BYTES:
            return
        self._kept[record.origin] = known, size
        self._kept_bytes += size
        while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
            origin, (oldest, _) = next(iter(self._kept.items()))
            oldest.robots = None
            self._forget(origin)

    def _forget(self, origin: str) -> None:
        _, size = self._kept.pop(origin, (None, 0))
        self._kept_bytes -= size

    def used(self, origin: str) -> None:
        """Note that the rules of `origin` were asked."""
        if origin in self._kept:
            self._kept.move_to_end(origin)


def _reading_bytes(body: bytes) -> int:
    """Return about how much memory it takes to read `body`, at most."""
    return len(body) + LINE_BYTES * (body.count(b"\n") + body.count(b"\r"))
