"""Rules that are long: few are read at a time, and few are in memory.

A robots.txt of 500 KB becomes some megabytes when it is read, and any server may send one. So of those that wait to be
read only the origin is in memory, since the host book has the file; and of those that were read `KEPT_BYTES` stay: what
was not asked for longest is forgotten first, and read anew when it is.

Invariant: `AT_ONCE` long files at most are being read, and those in memory had `KEPT_BYTES` together, or are one.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial

from fyke.core.slices import Slicer
from fyke.fetcher.book import HostBook
from fyke.fetcher.host import OriginRules
from fyke.fetcher.robots import RobotsRecord

LONG_BYTES = 32 << 10  # from this size on a file is long
KEPT_BYTES = 4 << 20
AT_ONCE = 4


class LongRules:
    """The long ones of those in `book`, read by `slicer` for the product token `product`."""

    def __init__(self, book: HostBook, slicer: Slicer, product: str) -> None:
        self._book = book
        self._slicer = slicer
        self._product = product
        self._waiting: deque[tuple[str, Callable[[RobotsRecord], None]]] = deque()
        self._reading = 0
        self._kept: OrderedDict[str, tuple[OriginRules, int]] = OrderedDict()  # by origin: where, and of how many bytes
        self._kept_bytes = 0

    def __repr__(self) -> str:
        return f"LongRules({len(self._kept)} in memory, {self._reading + len(self._waiting)} to be read)"

    def read(self, origin: str, then: Callable[[RobotsRecord], None]) -> None:
        """Give the record of `origin`, which is in the book, to `then` when it is read."""
        self._waiting.append((origin, then))
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and self._reading < AT_ONCE:
            origin, then = self._waiting.popleft()
            record = self._book.robots(origin)
            assert record is not None, f"{origin}: what is to be read was saved"
            self._reading += 1
            self._slicer.run(record.read(self._product), partial(self._ended, then))

    def _ended(self, then: Callable[[RobotsRecord], None], record: RobotsRecord) -> None:
        self._reading -= 1
        then(record)
        self._go_on()

    def keep(self, known: OriginRules, record: RobotsRecord) -> None:
        """`record` is with `known` from now on: others may have to go."""
        self._forget(record.origin)
        if record.size < LONG_BYTES:
            return
        self._kept[record.origin] = known, record.size
        self._kept_bytes += record.size
        while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
            origin, (oldest, _) = next(iter(self._kept.items()))
            oldest.robots = None
            self._forget(origin)

    def _forget(self, origin: str) -> None:
        _, size = self._kept.pop(origin, (None, 0))
        self._kept_bytes -= size

    def used(self, origin: str) -> None:
        """The rules of `origin` were asked."""
        if origin in self._kept:
            self._kept.move_to_end(origin)
