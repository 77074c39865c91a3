"""Large pages: which these are, what is done with them beside the loop, and which wait for room there.

Used by `fyke.harvest.harvest` alone. A page may turn out to be large as it comes, as it is opened, as it is parsed, or
by its links. What is not done on the loop is done in the slow lane: a body is packed or opened, a page parsed, its
links resolved. After each of these steps the harvest goes on with it.

While light work is going on, at most one large page is handed on in a turn, no sooner than its share of the time allows
(`fyke.core.pace`). So archiving it does not hold up the others. Otherwise all that are ready are handed on.

A host whose page waits for room should not be asked for more meanwhile (`holds_back`): one host with hundreds of large
pages would fill all places, and then no host could be asked. While half of the places are taken, hosts of which no
light page is known are not asked either: hundreds of hosts with a large page each would fill the others.

Invariant: a page that is brought is handed on once. Bounded: the slow lane has its own bounds; while `MOST_LATER`
exchanges wait for room there, no more should come (`crowded`), because each may hold a file.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from math import inf

from fyke.core.batches import Kind
from fyke.core.decoding import Decoded, decode_body, decode_in_time, expected_steps, unfolds
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.visits import Exchange, Purpose
from fyke.harvest import Parser
from fyke.harvest.binder import Binder, PendingPage, links_bytes
from fyke.harvest.sheaf import Sheaf
from fyke.harvest.sitemap import most_bytes
from fyke.harvest.slow_lane import FairLine, SlowLane

MOST_LATER = 512
LIGHT_HOSTS = 10_000  # that are remembered
DECODE_S = 0.02  # of time to decode a body on the loop
PACKED_BYTES = 1 << 20  # of a body: packing more for the archive would hold up the loop
STORED_BYTE_S = 5e-9  # expected to archive a byte of a large page
SLOW_BYTES = 2 << 20  # what a page that `takes_long` counts for in time, at least
LINKS_BYTES = 16 << 20  # the same in memory: a short document may bring as much in links
TO_PARSE = frozenset({Outcome.OK, Outcome.REDIRECTED, Outcome.TOO_LARGE, Outcome.INCOMPLETE})


class LargePages:
    """Large pages that came and were not handed on yet."""

    def __init__(
        self,
        parser: Parser,
        binder: Binder,
        lane: SlowLane[PendingPage],
        most_bytes: int,
        pack: Callable[[Exchange], None],
    ) -> None:
        """A body may unfold to `most_bytes`. `pack` makes the body of a large exchange ready for the archive; it may
        raise OSError."""
        self._parser = parser
        self._binder = binder
        self._lane = lane
        self._most_bytes = most_bytes
        self._pack = pack
        self._later: FairLine[Exchange] = FairLine()  # those that wait for room, by domain
        self._hosts: Counter[int] = Counter()  # the same, by host
        self._light: dict[int, None] = {}  # hosts that brought a light page, the latest last

    def __repr__(self) -> str:
        return f"LargePages({len(self)} waiting)"

    def __len__(self) -> int:
        return len(self._later) + len(self._lane)

    @property
    def crowded(self) -> bool:
        """True if so many wait that no more should come in."""
        return len(self._later) >= MOST_LATER

    @property
    def _hurried(self) -> bool:
        return len(self._later) > MOST_LATER // 2

    def holds_back(self, host: int) -> bool:
        """Return whether a page of the host with this key waits for room, or may be large while many wait."""
        return host in self._hosts or (self._hurried and host not in self._light)

    def note_light(self, host: int) -> None:
        """Note that the host with this key brought a light page."""
        self._light.pop(host, None)
        self._light[host] = None
        if len(self._light) > LIGHT_HOSTS:
            del self._light[next(iter(self._light))]

    # --- what is large

    def size_bytes(self, exchange: Exchange, page: Page | None) -> int:
        """Return the bytes that the page of `exchange` takes in the slow lane; 0 if it is read on the loop. `page` is
        None before it is opened."""
        if page is None:
            return self._body_bytes(exchange)
        return self._held_bytes(page) if self._is_large(page) else 0

    def _is_large(self, page: Page) -> bool:
        return page.size_bytes >= self._lane.large_bytes or self._parser.takes_long(page)

    def _body_bytes(self, exchange: Exchange) -> int:
        """Return how many bytes the body of `exchange` has at most when it is decoded."""
        return max(exchange.body.size, self._most_bytes if unfolds(exchange) else 0)

    def _held_bytes(self, page: Page) -> int:
        """Return the most bytes held of `page` while it is read, or, if it was read, while its links are resolved."""
        if of_links := links_bytes(page):
            return page.size_bytes + of_links
        return max(most_bytes(page), LINKS_BYTES if self._parser.takes_long(page) else 0)

    def _read_bytes(self, page: Page) -> int:
        """Return the bytes that `page` counts for in time."""
        return max(page.size_bytes, SLOW_BYTES if self._parser.takes_long(page) else 0) + links_bytes(page)

    # --- what comes

    def has_room(self, size_bytes: int) -> bool:
        """Return whether a page of that size may go into the slow lane now. No page overtakes those that wait."""
        return not self._later and self._lane.has_room(size_bytes)

    def put_later(self, exchange: Exchange, size_bytes: int) -> None:
        """Let `exchange` wait until there is room for its page."""
        with suppress(OSError):  # it stays in memory; the archive meets the full disk too, and handles it
            exchange.body.to_disk()
        self._later.put(exchange, size_bytes, exchange.visit.domain)
        self._hosts[exchange.visit.host] += 1
        self._light.pop(exchange.visit.host, None)

    def open_later(self) -> None:
        """Begin to open the pages that wait, in turn, while there is room for them."""
        while self._later and self._lane.has_room(self._later.next_bytes):
            exchange, size_bytes = self._later.take()
            self._hosts[exchange.visit.host] -= 1
            self._hosts = +self._hosts
            self.open(exchange, size_bytes)

    def open_here(self, exchange: Exchange) -> Page | None:
        """Return the page of `exchange`; None if it is large, unfolds to much, or does so slowly."""
        if not _brings_page(exchange):
            return Page(exchange, "", b"")
        if exchange.body.size >= self._lane.large_bytes or expected_steps(exchange) == inf:
            return None
        now = self._lane.pace.now
        late_at = now() + DECODE_S
        decoded = decode_in_time(exchange, min(self._most_bytes, self._lane.large_bytes), lambda: now() >= late_at)
        return None if decoded is None or decoded.is_cut else _page_with(self._parser, exchange, decoded)

    def open(self, exchange: Exchange, size_bytes: int) -> None:
        """Have the page of `exchange` opened, and its body packed."""
        self._lane.put(partial(self._opened, exchange), size_bytes, self._body_bytes(exchange))

    def pack(self, exchange: Exchange) -> bool:
        """Have the body of an exchange packed that brought no page, if it is large. Returns whether it is; no more are
        taken while many wait, because each holds a file."""
        is_large = exchange.body.size >= PACKED_BYTES and len(self._lane) < MOST_LATER
        if is_large:
            self._lane.put(partial(self._packed, exchange), 1)  # it is on disk
        return is_large

    def parse(self, pending: PendingPage) -> bool:
        """Parse a page on the loop, or have it parsed if it is large or turns out to take long. Returns whether it was
        parsed."""
        if self._is_large(pending.page):
            self._put(self._parsed, pending)
        elif not self._parser.process_in_haste(pending.page):
            self._put_or_later(self._parsed, pending)
        else:
            return True
        return False

    def resolve(self, pending: PendingPage) -> None:
        """Have the links of a page resolved that was parsed in the slow lane."""
        self._put(self._resolved, pending)

    def resolve_or_later(self, pending: PendingPage) -> None:
        """Have the links of a page resolved that was parsed on the loop."""
        self._put_or_later(self._resolved, pending)

    def _put(self, work: Callable[[PendingPage], PendingPage], pending: PendingPage) -> None:
        self._lane.put(partial(work, pending), self._held_bytes(pending.page), self._read_bytes(pending.page))

    def _put_or_later(self, work: Callable[[PendingPage], PendingPage], pending: PendingPage) -> None:
        """Have `work` done for a page whose size alone did not show that it takes long. If there is no room for it now,
        a plain page is opened again later. Other pages, which are few and cannot be read twice, go in in any case."""
        exchange, size_bytes = pending.exchange, self._held_bytes(pending.page)
        is_plain = exchange.outcome is Outcome.OK and exchange.visit.kind in (Kind.PAGE, Kind.SEED)
        if not is_plain or self._lane.has_room(size_bytes):  # it had its turn; behind others it might never get one
            self._put(work, pending)
        else:
            self.put_later(exchange, size_bytes)

    # --- what is done with it, in a thread

    def _packed(self, exchange: Exchange) -> PendingPage:
        self._make_ready(exchange)
        return PendingPage(exchange, Page(exchange, "", b""), (), 0, is_packed=True)

    def _opened(self, exchange: Exchange) -> PendingPage:
        self._make_ready(exchange)
        return PendingPage(exchange, opened(self._parser, self._most_bytes, exchange), (), 0, is_opened=True)

    def _make_ready(self, exchange: Exchange) -> None:
        if exchange.body.size >= PACKED_BYTES:
            with suppress(OSError):  # the archive meets the same error, and handles it
                self._pack(exchange)

    def _parsed(self, pending: PendingPage) -> PendingPage:
        return pending._replace(redirect=self._parser.read_links(pending.page))

    def _resolved(self, pending: PendingPage) -> PendingPage:
        if not pending.page.rows:  # only now: rows may be longer than the page, and wait for no other step here
            self._parser.make_rows(pending.page)
        return self._binder.resolved(pending)

    # --- what goes on

    def take(self) -> Iterator[PendingPage]:
        """Yield those of which a step is done, as far as there is time for them."""
        share = self._lane.handing_on
        if not share.wait_s(self._lane.next_bytes * STORED_BYTE_S):
            done = self._lane.take(1 if share.busy else None)
            while done:
                yield done.pop(0)

    def owing(self, sheaves: Iterable[Sheaf]) -> Iterator[Sheaf]:
        """Yield `sheaves` of large pages; the time until each is stored counts against their share."""
        for sheaf in sheaves:
            size_bytes = sum(reaped.exchange.body.size for reaped in sheaf.reaped)
            with self._lane.handing_on.taken(size_bytes * STORED_BYTE_S):
                yield sheaf

    def go_on(self, *, trim: bool) -> None:
        """Let the slow lane go on; `trim` memory if much was given back in it."""
        if trim:
            self._lane.trimmer.trim()
        self._lane.go_on(hurry=self._hurried)


def opened(parser: Parser, most_bytes: int, exchange: Exchange) -> Page:
    """Return the page of `exchange` before it is parsed."""
    if not _brings_page(exchange):
        return Page(exchange, "", b"")
    return _page_with(parser, exchange, decode_body(exchange, most_bytes))


def _brings_page(exchange: Exchange) -> bool:
    """Return whether the body of `exchange` is to be opened. That of a robots.txt is not: the fetcher reads it."""
    return exchange.outcome in TO_PARSE and exchange.visit.purpose is not Purpose.ROBOTS


def _page_with(parser: Parser, exchange: Exchange, decoded: Decoded) -> Page:
    """Return the page with what was decoded. Its fingerprint is 0 if it has no body to compare."""
    page = parser.page_of(exchange, decoded.content)
    page.cut |= decoded.is_cut
    if decoded.fault and not decoded.is_cut and not exchange.detail:
        exchange.detail = decoded.fault
    if not page.size_bytes or exchange.outcome is not Outcome.OK or exchange.visit.purpose is Purpose.PROBE:
        page.fingerprint = 0
    return page
