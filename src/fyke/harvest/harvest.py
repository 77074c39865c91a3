"""What is in an exchange? Decodes its body, asks content-seen, parses it, and resolves its links.

Called by `fyke.crawl.gathering` in each turn; it keeps nothing of an exchange that came out. Content-seen says whether
the same body was read at the same place. If so, its links are known and it is not parsed again. The place counts
because relative links mean something else elsewhere: by the body alone (Mercator, section 3.5) pages would be lost. The
place is the folder, or the whole path if links like `?page=2` keep the page's own name.

A turn ends after `TURN_S`, or when its links are `TURN_BYTES` written out; the next begins with the rest. What would
hold up the loop is done beside it (`large_pages`), and the loop never waits for that.

Invariant: every exchange that goes in comes out once, whatever its bytes, though one with a large page comes out later.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from fyke.core.batches import Kind
from fyke.core.config import FetchSection
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.visits import Exchange, Purpose
from fyke.harvest import Parser
from fyke.harvest.binder import Binder, PendingPage, written_bytes
from fyke.harvest.content_seen import ContentSeen, keys_of
from fyke.harvest.large_pages import TO_PARSE, LargePages
from fyke.harvest.same_text import CopyOf, compare
from fyke.harvest.sheaf import NO_SHEAF, Reaped, Sheaf
from fyke.harvest.slow_lane import SlowLane

BATCH_PAGES = 64
BATCH_BYTES = 4 << 20  # of bodies and their pages, so that a batch of large ones does not fill the memory
TOGETHER_BYTES = 2 << 20  # of links, written out, that are resolved together; a page with more is large
TOGETHER_LINKS = 2_000  # links that take ten microseconds each, resolved together; a page with more is large
STEP_BYTES = 1 << 16  # of pages read in a step
PAGE_BYTES = 1 << 12  # that each page adds to a step, beside its own size
TURN_BYTES = 4 << 20
TURN_S = 0.05


class Harvest:
    """Turns exchanges into pages and links."""

    def __init__(
        self,
        parser: Parser,
        content_seen: ContentSeen,
        binder: Binder,
        limits: FetchSection,
        lane: SlowLane[PendingPage],
        copy_of: CopyOf | None = None,
        pack: Callable[[Exchange], None] = lambda _: None,
    ) -> None:
        """`pack` makes the body of a large exchange ready for the archive; it may raise OSError."""
        self._parser = parser
        self._content_seen = content_seen
        self._binder = binder
        self._most_bytes = limits.max_body_bytes
        self._large = LargePages(parser, binder, lane, limits.max_body_bytes, pack)
        self._copy_of = copy_of
        self._now = lane.pace.now
        self._turn_ends_at = 0.0
        self._turn_bytes = 0  # of links written out
        self._next: list[tuple[Exchange, Page | None]] = []  # left of the last turn, some already opened

    def __repr__(self) -> str:
        return f"Harvest({self._parser!r})"

    @property
    def waiting(self) -> int:
        """Number of exchanges that came in and are not out yet."""
        return len(self._next) + len(self._large)

    @property
    def crowded(self) -> bool:
        """True if the last turn left exchanges, or so many large pages wait, that no more should come in."""
        return bool(self._next) or self._large.crowded

    def holds_back(self, host: int) -> bool:
        """Return whether the host with this key should not be asked yet, because of large pages that wait."""
        return self._large.holds_back(host)

    @property
    def behind(self) -> bool:
        """True if there is more to reap at once."""
        return bool(self._next)

    @property
    def _late(self) -> bool:
        """True if this turn has used up its time or its bytes of links."""
        return self._now() >= self._turn_ends_at or self._turn_bytes >= TURN_BYTES

    def reap(self, exchanges: Sequence[Exchange]) -> Iterator[Sheaf]:
        """Yield what is in `exchanges`, and in large ones of earlier turns. Their bodies are still open, for the
        archive. `NO_SHEAF` in between lets others have their turns."""
        self._turn_ends_at = self._now() + TURN_S
        self._turn_bytes = 0
        to_parse = deque(self._next)
        to_parse.extend((exchange, None) for exchange in exchanges if exchange.outcome in TO_PARSE)
        self._next = []
        yield from self._read_large()
        yield from self._sheaves_without_pages([exchange for exchange in exchanges if exchange.outcome not in TO_PARSE])
        self._large.open_later()
        batch: list[tuple[Exchange, Page]] = []
        size_bytes = 0
        while to_parse and not self._next:
            exchange, page = to_parse.popleft()
            if page is None:
                page = self._large.open_here(exchange)
            large_bytes = self._large.size_bytes(exchange, page)
            if large_bytes and not self._large.has_room(large_bytes):
                del page
                self._large.put_later(exchange, large_bytes)
            elif page is None:
                self._large.open(exchange, large_bytes)
            else:
                if not large_bytes:
                    self._large.note_light(exchange.visit.host)
                batch.append((exchange, page))
                size_bytes += exchange.body.size + page.size_bytes
                del page
                if large_bytes or len(batch) >= BATCH_PAGES or size_bytes >= BATCH_BYTES:
                    yield from self._read_batch(batch)
                    batch, size_bytes = [], 0
            if self._late:
                break
        yield from self._read_batch(batch)
        self._next += to_parse
        self._large.go_on(trim=self._turn_bytes > TOGETHER_BYTES)

    def _sheaves_without_pages(self, exchanges: Sequence[Exchange]) -> Iterator[Sheaf]:
        """Yield visits that brought nothing to read. Those with large bodies come once these are packed."""
        if at_once := [exchange for exchange in exchanges if not self._large.pack(exchange)]:
            yield self._sheaf_without_pages(at_once)

    def _sheaf_without_pages(self, exchanges: Sequence[Exchange]) -> Sheaf:
        """Return the sheaf of visits that brought nothing to read: half of all if robots.txt forbids much."""
        reaped = [Reaped(exchange, Page(exchange, "", b"")) for exchange in exchanges]
        for each in reaped:
            compare(each.page, self._copy_of, self._most_bytes)
            if each.exchange.outcome is Outcome.UNCHANGED:
                self._parser.read_news(each.page)
        return self._binder.without_pages(reaped)

    def _sheaf(self, together: Sequence[PendingPage]) -> Sheaf:
        sheaf = self._binder.sheaf(together)
        self._turn_bytes += sheaf.pointers.found.url.nbytes
        return sheaf

    def _read_large(self) -> Iterator[Sheaf]:
        """Go on with large pages of which a step is done beside the loop."""
        for pending in self._large.take():
            if pending.is_packed:
                yield from self._large.owing([self._sheaf_without_pages([pending.exchange])])
            elif pending.is_opened:
                yield from self._large.owing(self._read_batch([(pending.exchange, pending.page)]))
            elif pending.found is not None:
                yield from self._large.owing([self._sheaf([pending])])
            else:
                self._parser.run_plugins(pending.page, pending.redirect)
                self._large.resolve(pending)
            del pending
            yield NO_SHEAF

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
            if to_read and not self._large.parse(pending):
                continue
            page_bytes, slow_links = written_bytes(page), self._binder.slow_links(pending, TOGETHER_LINKS)
            if page_bytes > TOGETHER_BYTES or slow_links > TOGETHER_LINKS:
                self._large.resolve_or_later(pending)
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
