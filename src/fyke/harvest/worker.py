"""What is in an exchange? Decodes its body, asks content-seen, parses it, and resolves its links.

Called by `fyke.crawl.gathering` in each turn; it keeps nothing of an exchange that came out. Content-seen says whether
the same body was read at the same place. If so, its links are known and it is not parsed again. The place counts
because relative links mean something else elsewhere: by the body alone (Mercator, section 3.5) pages would be lost. The
place is the folder, or the whole path if links like `?page=2` keep the page's own name.

While light work is going on, at most one large page is handed on in a turn, no sooner than its share of the time allows
(`fyke.core.pace`). So archiving it does not hold up the others. Otherwise all that are ready are handed on. A turn ends
after `TURN_S`, or when its links are `TURN_BYTES` written out; the next begins with the rest. The loop never waits for
work beside it. While `MOST_LATER` large pages wait for room there, no more exchanges should be handed in (`crowded`).

Invariant: every exchange that goes in comes out once, whatever its bytes, though one with a large page comes out later.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from math import inf

from fyke.core.batches import Kind
from fyke.core.config import FetchSection
from fyke.core.decoding import Decoded, decode_body, decode_in_time, expected_steps, unfolds
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Page, Purpose
from fyke.harvest import Parser
from fyke.harvest.aside import Aside, FairLine
from fyke.harvest.binder import Binder, PendingPage, links_bytes, written_bytes
from fyke.harvest.content_seen import ContentSeen, keys_of
from fyke.harvest.same_text import CopyOf, compare
from fyke.harvest.sheaf import NO_SHEAF, Reaped, Sheaf
from fyke.harvest.sitemap import most_bytes

BATCH_PAGES = 64
BATCH_BYTES = 4 << 20  # of bodies and their pages, so that a batch of large ones does not fill the memory
TOGETHER_BYTES = 2 << 20  # of links, written out, that are resolved together; a page with more is large
TOGETHER_LINKS = 2_000  # links that take ten microseconds each, resolved together; a page with more is large
STEP_BYTES = 1 << 16  # of pages read in a step
PAGE_BYTES = 1 << 12  # that each page adds to a step, beside its own size
TURN_BYTES = 4 << 20
TURN_S = 0.05
MOST_LATER = 512  # exchanges with large pages that wait for room aside: each may hold a file
DECODE_S = 0.02  # of time to decode a body on the loop
PACKED_BYTES = 1 << 20  # of a body: packing more for the archive would hold up the loop
STORED_BYTE_S = 5e-9  # expected to archive a byte of a large page
SLOW_BYTES = 2 << 20  # what a page that `takes_long` counts for in time, at least
LINKS_BYTES = 16 << 20  # the same in memory: a short document may bring as much in links
TO_PARSE = frozenset({Outcome.OK, Outcome.REDIRECTED, Outcome.TOO_LARGE})


class Harvest:
    """Turns exchanges into pages and links."""

    def __init__(
        self,
        parser: Parser,
        content_seen: ContentSeen,
        binder: Binder,
        limits: FetchSection,
        aside: Aside[PendingPage] | None = None,
        copy_of: CopyOf | None = None,
        pack: Callable[[Exchange], None] = lambda _: None,
    ) -> None:
        """Without `aside`, large pages are read like all others and a turn has no time limit. `pack` makes the body of
        a large exchange ready for the archive; it may raise OSError."""
        self._parser = parser
        self._content_seen = content_seen
        self._binder = binder
        self._most_bytes = limits.max_body_bytes
        self._aside = aside
        self._later: FairLine[Exchange] = FairLine()  # large pages that wait for room aside, by domain
        self._copy_of = copy_of
        self._pack = pack
        self._turn_ends_at = 0.0
        self._turn_bytes = 0  # of links written out
        self._next: list[tuple[Exchange, Page | None]] = []  # left of the last turn, some already opened

    def __repr__(self) -> str:
        return f"Harvest({self._parser!r})"

    @property
    def waiting(self) -> int:
        """Number of exchanges that came in and are not out yet."""
        return len(self._next) + len(self._later) + (len(self._aside) if self._aside is not None else 0)

    @property
    def crowded(self) -> bool:
        """True if the last turn left exchanges, or so many large pages wait, that no more should come in."""
        return bool(self._next) or len(self._later) >= MOST_LATER

    @property
    def behind(self) -> bool:
        """True if there is more to reap at once."""
        return bool(self._next)

    @property
    def _late(self) -> bool:
        """True if this turn has used up its time or its bytes of links."""
        is_late = self._aside is not None and self._aside.pace.now() >= self._turn_ends_at
        return is_late or self._turn_bytes >= TURN_BYTES

    def reap(self, exchanges: Sequence[Exchange]) -> Iterator[Sheaf]:
        """Yield what is in `exchanges`, and in large ones of earlier turns. Their bodies are still open, for the
        archive. `NO_SHEAF` in between lets others have their turns."""
        self._turn_ends_at = self._aside.pace.now() + TURN_S if self._aside is not None else 0.0
        self._turn_bytes = 0
        to_parse = deque(self._next)
        to_parse.extend((exchange, None) for exchange in exchanges if exchange.outcome in TO_PARSE)
        self._next = []
        yield from self._hand_on()
        yield from self._sheaves_without_pages([exchange for exchange in exchanges if exchange.outcome not in TO_PARSE])
        self._open_later()
        batch: list[tuple[Exchange, Page]] = []
        size_bytes = 0
        while to_parse and not self._next:
            exchange, page = to_parse.popleft()
            if page is None:
                page = self._opened_here(exchange)
            aside_bytes = self._aside_bytes(exchange, page)
            if aside_bytes and not self._has_room(aside_bytes):
                del page
                self._put_later(exchange, aside_bytes)
            elif page is None:
                self._open_aside(exchange, aside_bytes)
            else:
                batch.append((exchange, page))
                size_bytes += exchange.body.size + page.size_bytes
                del page
                if aside_bytes or len(batch) >= BATCH_PAGES or size_bytes >= BATCH_BYTES:
                    yield from self._read_batch(batch)
                    batch, size_bytes = [], 0
            if self._late:
                break
        yield from self._read_batch(batch)
        self._next += to_parse
        if self._aside is not None:
            if self._turn_bytes > TOGETHER_BYTES:
                self._aside.trimmer.trim()
            self._aside.go_on(hurry=len(self._later) > MOST_LATER // 2)

    def _hand_on(self) -> Iterator[Sheaf]:
        """Yield the large pages that were read by now, as far as there is time for them."""
        if self._aside is None:
            return
        share = self._aside.handing_on
        if not share.wait_s(self._aside.next_bytes * STORED_BYTE_S):
            yield from self._read_aside(most=1 if share.busy else None)

    def _open_later(self) -> None:
        """Begin to open the waiting exchanges with large pages, in turn, while there is room for them."""
        while self._later and self._aside is not None and self._aside.has_room(self._later.next_bytes):
            self._open_aside(*self._later.take())

    def _put_later(self, exchange: Exchange, size_bytes: int) -> None:
        """Let `exchange` wait for room aside; its page takes `size_bytes` there."""
        with suppress(OSError):  # it stays in memory; the archive meets the full disk too, and handles it
            exchange.body.to_disk()
        self._later.put(exchange, size_bytes, exchange.visit.domain)

    def _has_room(self, size_bytes: int) -> bool:
        """Return whether a page of that size may be read aside now. No page overtakes those that wait."""
        return not self._later and self._aside is not None and self._aside.has_room(size_bytes)

    def _open_aside(self, exchange: Exchange, size_bytes: int) -> None:
        assert self._aside is not None
        self._aside.put(partial(self._opened_aside, exchange), size_bytes, self._body_bytes(exchange))

    def _aside_bytes(self, exchange: Exchange, page: Page | None) -> int:
        """Return the bytes that the page of `exchange` takes aside; 0 if it is read here. `page` is None before it is
        opened."""
        if page is not None:
            return self._held_bytes(page) if self._is_large(page) else 0
        return self._body_bytes(exchange)

    def _body_bytes(self, exchange: Exchange) -> int:
        """Return how many bytes the body of `exchange` has at most when it is decoded."""
        return max(exchange.body.size, self._most_bytes if unfolds(exchange) else 0)

    def _held_bytes(self, page: Page) -> int:
        """Return the most bytes held of `page` while it is read aside, or, if it was read, while its links are
        resolved."""
        if of_links := links_bytes(page):
            return page.size_bytes + of_links
        return max(most_bytes(page), LINKS_BYTES if self._parser.takes_long(page) else 0)

    def _read_bytes(self, page: Page) -> int:
        """Return the bytes that `page` counts for in time."""
        return max(page.size_bytes, SLOW_BYTES if self._parser.takes_long(page) else 0)

    def _opened_here(self, exchange: Exchange) -> Page | None:
        """Return the page of `exchange`; None if it must be opened aside: it is large, unfolds to much, or does so
        slowly."""
        if self._aside is None or not _brings_page(exchange):
            return opened(self._parser, self._most_bytes, exchange)
        if exchange.body.size >= self._aside.large_bytes or expected_steps(exchange) == inf:
            return None
        now = self._aside.pace.now
        late_at = now() + DECODE_S
        decoded = decode_in_time(exchange, min(self._most_bytes, self._aside.large_bytes), lambda: now() >= late_at)
        return None if decoded is None or decoded.is_cut else _page_with(self._parser, exchange, decoded)

    def _opened_aside(self, exchange: Exchange) -> PendingPage:
        self._make_ready(exchange)
        return PendingPage(exchange, opened(self._parser, self._most_bytes, exchange), (), 0, is_opened=True)

    def _is_large(self, page: Page) -> bool:
        """Return whether `page`, if it is read, is read aside."""
        return self._aside is not None and (page.size_bytes >= self._aside.large_bytes or self._parser.takes_long(page))

    def _sheaves_without_pages(self, exchanges: Sequence[Exchange]) -> Iterator[Sheaf]:
        """Yield visits that brought nothing to read. Those with large bodies come once these are packed, unless too
        many wait already: each holds a file."""
        at_once = []
        for exchange in exchanges:
            if self._aside is None or exchange.body.size < PACKED_BYTES or len(self._aside) >= MOST_LATER:
                at_once.append(exchange)
            else:
                self._aside.put(partial(self._packed_aside, exchange), 1)  # it is on disk
        if at_once:
            yield self._sheaf_without_pages(at_once)

    def _packed_aside(self, exchange: Exchange) -> PendingPage:
        self._make_ready(exchange)
        return PendingPage(exchange, Page(exchange, "", b""), (), 0, is_packed=True)

    def _make_ready(self, exchange: Exchange) -> None:
        """Pack the body of `exchange` if it is large."""
        if exchange.body.size >= PACKED_BYTES:
            with suppress(OSError):  # the archive meets the same error, and handles it
                self._pack(exchange)

    def _sheaf_without_pages(self, exchanges: Sequence[Exchange]) -> Sheaf:
        """Return the sheaf of visits that brought nothing to read: half of all if robots.txt forbids much."""
        reaped = [Reaped(exchange, Page(exchange, "", b"")) for exchange in exchanges]
        for each in reaped:
            compare(each.page, self._copy_of, self._most_bytes)
            if each.exchange.outcome is Outcome.UNCHANGED:
                self._parser.read_robots(each.page)
        return self._binder.without_pages(reaped)

    def _sheaf(self, together: Sequence[PendingPage]) -> Sheaf:
        sheaf = self._binder.sheaf(together)
        self._turn_bytes += sheaf.pointers.found.url.nbytes
        return sheaf

    def _read_aside(self, *, most: int | None = None) -> Iterator[Sheaf]:
        """Yield what work aside has finished, at most `most` results."""
        done = [] if self._aside is None else self._aside.take(most)
        while done:
            pending = done.pop(0)
            if pending.is_packed:
                yield from self._owing([self._sheaf_without_pages([pending.exchange])])
            elif pending.is_opened:
                yield from self._owing(self._read_batch([(pending.exchange, pending.page)]))
            elif pending.found is not None:
                yield from self._owing([self._sheaf([pending])])
            else:
                self._parser.run_plugins(pending.page, pending.redirect)
                self._do_aside(self._resolved, pending)
            del pending
            yield NO_SHEAF

    def _owing(self, sheaves: Iterable[Sheaf]) -> Iterator[Sheaf]:
        """Yield `sheaves` of large pages; the time until each is stored counts against their share."""
        assert self._aside is not None
        for sheaf in sheaves:
            with self._aside.handing_on.taken(
                sum(reaped.exchange.body.size for reaped in sheaf.reaped) * STORED_BYTE_S
            ):
                yield sheaf

    def _read_batch(self, batch: Sequence[tuple[Exchange, Page]]) -> Iterator[Sheaf]:
        """Read the pages of `batch`, and resolve the links of many together, within what memory may hold and the loop
        may wait for. Pages that look alike are kept apart: whether the second is read depends on the links of the
        first."""
        keys_of_pages = [keys_of(page) for _, page in batch]
        known = self._content_seen.known([key for keys in keys_of_pages for key in keys])
        together: list[PendingPage] = []
        waiting: set[int] = set()
        together_bytes = together_links = step_bytes = 0
        for at, ((exchange, page), keys) in enumerate(zip(batch, keys_of_pages, strict=True)):
            if at and self._late:
                self._next = list(batch[at:])
                break
            if step_bytes >= STEP_BYTES:
                yield NO_SHEAF
                step_bytes = 0
            step_bytes += page.size_bytes + PAGE_BYTES
            compare(page, self._copy_of, self._most_bytes)
            if exchange.outcome is Outcome.UNCHANGED:  # the links are known
                self._parser.read_robots(page)
                together.append(PendingPage(exchange, page, (), 0))
                continue
            is_much = together_bytes > TOGETHER_BYTES or together_links > TOGETHER_LINKS
            if is_much or not waiting.isdisjoint(keys):
                yield self._sheaf(together)
                together, waiting, together_bytes, together_links = [], set(), 0, 0
            page.duplicate = any(key in known or self._content_seen.entered(key) for key in keys)
            if page.duplicate:
                self._parser.read_robots(page)
            pending = self._begun(exchange, page, keys)
            to_read = exchange.outcome in TO_PARSE and exchange.visit.purpose is Purpose.PAGE and not page.duplicate
            if to_read and self._parse_aside(pending):
                continue
            page_bytes, slow_links = written_bytes(page), self._binder.slow_links(pending, TOGETHER_LINKS)
            if self._aside is not None and (page_bytes > TOGETHER_BYTES or slow_links > TOGETHER_LINKS):
                self._do_aside_or_later(self._resolved, pending)
                continue
            together.append(pending)
            waiting.update(keys)
            together_bytes += page_bytes
            together_links += slow_links
        if together:
            yield self._sheaf(together)

    def _begun(self, exchange: Exchange, page: Page, keys: tuple[int, ...]) -> PendingPage:
        """Return the PendingPage of a page that is not read yet; content-seen was asked for its `keys`."""
        level = exchange.visit.depth + 1 if exchange.visit.kind is Kind.LISTING else 0
        _judge_kind(page)
        return PendingPage(exchange, page, keys, level, self._binder.hops(exchange))

    def _parse_aside(self, pending: PendingPage) -> bool:
        """Have a page read aside if necessary; return whether it is."""
        if self._is_large(pending.page):
            self._do_aside(self._parsed, pending)
        elif not self._processed_here(pending.page):
            self._do_aside_or_later(self._parsed, pending)
        else:
            return False
        return True

    def _processed_here(self, page: Page) -> bool:
        """Return whether `page` was read at once."""
        if self._aside is not None:
            return self._parser.process_in_haste(page)
        self._parser.process(page)
        return True

    def _do_aside(self, work: Callable[[PendingPage], PendingPage], pending: PendingPage) -> None:
        assert self._aside is not None
        read_bytes = self._read_bytes(pending.page) + links_bytes(pending.page)
        self._aside.put(partial(work, pending), self._held_bytes(pending.page), read_bytes)

    def _do_aside_or_later(self, work: Callable[[PendingPage], PendingPage], pending: PendingPage) -> None:
        """Have `work` done aside for a page whose size alone did not show that it takes long. If there is no room for
        it now, a plain page is opened again later. Other pages, which are few and cannot be read twice, go aside in any
        case."""
        assert self._aside is not None
        exchange, size_bytes = pending.exchange, self._held_bytes(pending.page)
        is_plain = exchange.outcome is Outcome.OK and exchange.visit.kind in (Kind.PAGE, Kind.SEED)
        if not is_plain or self._aside.has_room(size_bytes):  # it had its turn; behind others it might never get one
            self._do_aside(work, pending)
        else:
            self._put_later(exchange, size_bytes)

    def _parsed(self, pending: PendingPage) -> PendingPage:
        return pending._replace(redirect=self._parser.read_links(pending.page))

    def _resolved(self, pending: PendingPage) -> PendingPage:
        if not pending.page.rows:  # only now: rows may be longer than the page, and wait for no other step here
            self._parser.make_rows(pending.page)
        return self._binder.resolved(pending)


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


def _judge_kind(page: Page) -> None:
    """Set the kind of the visit by what the answer is, not by who named it: a page that some robots.txt, maybe a
    stranger's, calls a sitemap is a page. A requisite beyond the scope stays one at later visits too, so that no more
    hops lead from there."""
    visit = page.exchange.visit
    if page.exchange.outcome is not Outcome.OK or visit.purpose is not Purpose.PAGE or visit.beyond:
        return
    if page.listing:
        visit.kind = Kind.LISTING
    elif visit.kind is Kind.LISTING and page.size_bytes:
        visit.kind = Kind.PAGE
