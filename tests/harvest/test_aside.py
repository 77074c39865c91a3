"""Large pages come out as if they had been read with the others, only later."""

import gc
import gzip
import threading
import time
import weakref
from collections import deque
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from fyke.core import resolve
from fyke.core.batches import Kind
from fyke.core.clock import SystemClock, VirtualClock
from fyke.core.config import FetchSection
from fyke.core.document import Document
from fyke.core.extraction import ExtractSection, FieldSection
from fyke.core.outcomes import Outcome
from fyke.core.pace import LIGHT_S, PARTS, PIECE_S, Pace, breathe
from fyke.core.resolve import PORTION, LinkResolver
from fyke.core.urls import canonical
from fyke.core.visits import Exchange, Page, Purpose, visit_to
from fyke.disk.checkpoint import Checkpoint
from fyke.harvest import Parser, worker
from fyke.harvest.aside import BYTE_S, Aside
from fyke.harvest.binder import LINK_BYTES, Binder
from fyke.harvest.content_seen import ContentSeen
from fyke.harvest.fields import Extractor, Row
from fyke.harvest.named_sitemaps import NamedSitemaps
from fyke.harvest.sheaf import Sheaf
from fyke.harvest.worker import PACKED_BYTES, STORED_BYTE_S, TOGETHER_BYTES, TOGETHER_LINKS, TURN_BYTES, TURN_S, Harvest

PACE = Pace(SystemClock())  # nothing light is going on

BODIES = [b"<title>%d</title><a href=/%d>" % (number, number) + b"x" * 300 * (number % 3) for number in range(9)]


def exchanges() -> list[Exchange]:
    made = []
    for number, body in enumerate(BODIES):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
        visit = visit_to(f"http://h.example/a/{number}")
        made.append(Exchange(visit, Outcome.OK, 1e9, 0.1, status=200, head=head, body=Document(body)))
    return made


def facts(sheaves: list[Sheaf]) -> dict[str, tuple[str, int]]:
    return {one.page.url: (one.page.title, one.links) for sheaf in sheaves for one in sheaf.reaped}


def settle(aside: Aside[Any]) -> None:
    """Wait for what was begun, and for what began behind it."""
    while aside._under_way:
        assert aside._thread is not None
        aside._thread.join(timeout=60)


class _TickingClock(VirtualClock):
    """Whoever asks it takes time."""

    def now(self) -> float:
        self.advance(TURN_S / 2)
        return super().now()


@pytest.mark.parametrize(("end", "fault"), [(b"", "gzip is cut"), (bytes(8), "gzip is corrupt")])
def test_a_body_that_is_not_as_it_should_be_is_told(end: bytes, fault: str) -> None:
    """Else it would be a page without a word in it, and nobody knew why."""
    (exchange, *_) = exchanges()
    exchange.head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    exchange.body = Document(gzip.compress(b"<p>words")[:-8] + end)
    assert worker.opened(Parser(), 1 << 20, exchange).exchange.detail == fault


@pytest.mark.parametrize("clock", [VirtualClock(), _TickingClock()])
def test_a_turn_ends_when_it_took_long_enough(tmp_path, clock: VirtualClock) -> None:
    """What is left comes first in the next, and everything comes once, in order."""
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(
            Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), Aside(print, Pace(clock))
        )
        given = exchanges()
        turns = [[one.page.url for sheaf in harvest.reap(given[:5]) for one in sheaf.reaped]]
        turns += [[one.page.url for sheaf in harvest.reap(given[5:]) for one in sheaf.reaped]]
        while harvest.behind:
            assert harvest.waiting and harvest.crowded, "others that come meanwhile would fill the memory"
            turns.append([one.page.url for sheaf in harvest.reap([]) for one in sheaf.reaped])
        assert [url for turn in turns for url in turn] == [exchange.visit.url for exchange in given]
        assert all(turns)
        assert len(turns) == 2 if type(clock) is VirtualClock else len(turns) > 4
        seen.close()


def test_a_turn_ends_when_its_links_are_long_enough(tmp_path) -> None:
    """Few bytes may bring many, by links below a long URL."""
    base, body = f"http://h.example/{'a' * 2000}/", b"".join(b"<a href=?%d>" % number for number in range(1000))
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection())
        given = []
        for number in range(30):
            visit = visit_to(f"{base}{number}")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
            document = Document(body + b"<p>%d" % number)
            given.append(Exchange(visit, Outcome.OK, 1e9, 0.1, status=200, head=head, body=document))
        urls = []
        sheaves = list(harvest.reap(given))
        while sheaves:
            assert sum(sheaf.pointers.found.url.nbytes for sheaf in sheaves) < TURN_BYTES + 4 * TOGETHER_BYTES
            urls += [one.page.url for sheaf in sheaves for one in sheaf.reaped]
            sheaves = list(harvest.reap([]))
        assert urls == [exchange.visit.url for exchange in given]
        seen.close()


def test_large_pages_come_later_and_are_the_same(tmp_path) -> None:
    done = threading.Semaphore(0)
    aside = Aside(done.release, PACE, large_bytes=400)
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        plain = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection())
        wanted = facts(list(plain.reap(exchanges())))
        seen.close()
    with Checkpoint(tmp_path / "other") as checkpoint:
        seen, parser = ContentSeen(checkpoint.store, 1 << 16), Parser()
        harvest = Harvest(parser, seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        at_once = list(harvest.reap(exchanges()))
        large = sum(len(body) >= 400 for body in BODIES)
        assert len(facts(at_once)) == len(BODIES) - large
        assert harvest.waiting == large
        later = []
        while harvest.waiting:
            assert done.acquire(timeout=60)
            later += harvest.reap([])
        seen.close()
    aside.close()
    assert harvest.waiting == 0
    assert facts(at_once + later) == wanted
    assert parser.pages == len(BODIES)


def test_what_unfolds_to_a_large_page_is_unfolded_beside_the_loop(tmp_path) -> None:
    """However few bytes came: on the loop no more is unfolded than a page has that is read there."""
    opened_here = []

    class Watched(Parser):
        def page_of(self, exchange: Exchange, content: bytes) -> Page:
            if threading.current_thread() is threading.main_thread():
                opened_here.append(len(content))
            return super().page_of(exchange, content)

    done = threading.Semaphore(0)
    aside = Aside(done.release, PACE, large_bytes=1000)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    bodies = [b"<title>%d</title>" % size + b"x" * size for size in (10, 900, 1000, 5000, 3 << 20)]
    came = [
        Exchange(
            visit_to(f"http://h.example/{size}"), Outcome.OK, 1e9, 0.1, status=200, head=head,
            body=Document(gzip.compress(body)),
        )
        for size, body in enumerate(bodies)
    ]  # fmt: skip
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Watched(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        found = facts(list(harvest.reap(came)))
        assert len(found) == 2 and harvest.waiting == 3
        while harvest.waiting:
            assert done.acquire(timeout=60)
            found |= facts(list(harvest.reap([])))
        seen.close()
    aside.close()
    for exchange in came:
        exchange.body.close()
    assert [title for title, _ in found.values()] == ["10", "900", "1000", "5000", str(3 << 20)]
    assert max(opened_here) < 1000


def test_large_bodies_are_packed_beside_the_loop(tmp_path) -> None:
    """Also those of errors, which nobody reads; what cannot be packed comes out as it is."""
    packed = []

    def pack(exchange: Exchange) -> None:
        assert threading.current_thread() is not threading.main_thread()
        packed.append(exchange.visit.url)
        raise OSError("the disk is full")

    done = threading.Semaphore(0)
    aside = Aside(done.release, PACE)
    outcomes = [Outcome.OK, Outcome.TOO_LARGE, Outcome.SERVER_ERROR, Outcome.CLIENT_ERROR, Outcome.STALLED]
    came = [
        Exchange(visit_to(f"http://h.example/{outcome}-{size}"), outcome, 1e9, 0.1, status=200,
                 head=b"HTTP/1.1 200 OK\r\n\r\n", body=Document(b"x" * size))
        for outcome in outcomes for size in (10, PACKED_BYTES)
    ]  # fmt: skip
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(
            Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside, pack=pack
        )  # fmt: skip
        found = facts(list(harvest.reap(came)))
        while harvest.waiting:
            assert done.acquire(timeout=60)
            found |= facts(list(harvest.reap([])))
        seen.close()
    aside.close()
    assert sorted(found) == sorted(exchange.visit.url for exchange in came)
    assert sorted(packed) == sorted(url for url in found if url.endswith(f"-{PACKED_BYTES}"))


def test_rows_that_take_long_are_made_beside_the_loop(tmp_path) -> None:
    """Of however small a page; those of others at once, and of a page met before none."""

    class Watched(Extractor):
        def rows(self, page: Page) -> list[Row]:
            made = super().rows(page)
            made_by[page.url] = threading.current_thread()
            return made

    made_by: dict[str, threading.Thread] = {}
    extractor = Watched(ExtractSection(table="things", each="div", fields={"text": FieldSection(select="::text")}))
    done = threading.Semaphore(0)
    aside = Aside(done.release, PACE)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    bodies = [b"<div>a", b"<div>some words " * 500, b"<div>a"]
    came = [
        Exchange(visit_to(f"http://h.example/{number}"), Outcome.OK, 1e9, 0.1, head=head, body=Document(body))
        for number, body in enumerate(bodies)
    ]
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        parser = Parser(extractors=[extractor])
        harvest = Harvest(parser, seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        reaped = [one for sheaf in harvest.reap(came) for one in sheaf.reaped]
        while harvest.waiting:
            assert done.acquire(timeout=60)
            reaped += [one for sheaf in harvest.reap([]) for one in sheaf.reaped]
        seen.close()
    aside.close()
    rows = {one.page.url: one.page.rows for one in reaped}
    urls = [exchange.visit.url for exchange in came]
    assert rows[urls[0]] == {"things": [(urls[0], "a")]} and rows[urls[2]] == {}
    assert len(rows[urls[1]]["things"]) == 500
    assert made_by[urls[0]] is threading.main_thread() and made_by[urls[1]] is not threading.main_thread()


def test_while_there_is_no_room_for_large_pages_small_ones_go_on(tmp_path) -> None:
    """Nothing waits for the thread, which is busy here until it is let go."""
    done = threading.Semaphore(0)
    aside = Aside(done.release, PACE, large_bytes=400, most_bytes=500)
    small = sum(len(body) < 400 for body in BODIES)
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        aside._under_way = True
        at_once = list(harvest.reap(exchanges()))
        assert len(facts(at_once)) == small
        assert harvest.waiting == len(BODIES) - small and not aside.has_room(400)
        assert list(harvest.reap([])) == []
        aside._under_way = False
        aside.go_on()
        later = []
        while harvest.waiting:
            assert done.acquire(timeout=60)
            later += harvest.reap([])
        assert len(facts(later)) == len(BODIES) - small
        for sheaf in later:
            for reaped in sheaf.reaped:
                reaped.exchange.body.close()
        seen.close()
    aside.close()


def test_pages_whose_links_are_long_wait_for_room_too(tmp_path) -> None:
    """They are small until they are parsed: nobody asked whether there is room for them."""
    clock = VirtualClock()
    pace = Pace(clock)
    aside = Aside(lambda: None, pace, most_bytes=16 << 20)
    body = b"<base href='http://one.example/%s/'>" % (b"x" * 1900)
    body += b"".join(b"<a href=%d>a</a>" % number for number in range(1500))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    pages = [
        Exchange(visit_to(f"http://one.example/{n}"), Outcome.OK, 1e9, 0.1, status=200, head=head,
                 body=Document(body + b"%d" % n))
        for n in range(40)
    ]  # fmt: skip
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        aside._under_way = True
        came = [reaped.exchange.visit.url for sheaf in harvest.reap(pages) for reaped in sheaf.reaped]
        assert harvest.waiting == len(pages), "the loop goes on while another page is read"
        aside._under_way = False
        while harvest.waiting:
            pace.note_busy()
            came += [reaped.exchange.visit.url for sheaf in harvest.reap([]) for reaped in sheaf.reaped]
            assert len(aside) <= (16 << 20) // (1500 * 1900) + 1
            settle(aside)
            clock.advance(60.0)
        assert sorted(came) == sorted(page.visit.url for page in pages)
        seen.close()
    aside.close()
    for page in pages:
        page.body.close()


@pytest.mark.parametrize("kind", [Kind.PAGE, Kind.SEED])
def test_pages_with_many_links_wait_for_room_as_well(tmp_path, kind) -> None:
    """Short ones, which take many times as much as they are written out."""
    most_bytes, links = 4 << 20, 3000
    done = threading.Semaphore(0)
    aside = Aside(done.release, PACE, most_bytes=most_bytes)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    pages = []
    for n in range(40):
        visit = visit_to(f"http://one.example/{n}")
        visit.kind = kind
        body = Document("".join(f"<a href=//é{n}x{number:x}>" for number in range(links)).encode())
        pages.append(Exchange(visit, Outcome.OK, 1e9, 0.1, status=200, head=head, body=body))
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        came: list[str] = []
        to_come = pages
        while to_come or harvest.waiting:
            came += [reaped.exchange.visit.url for sheaf in harvest.reap(to_come) for reaped in sheaf.reaped]
            assert len(aside) <= most_bytes // (links * LINK_BYTES) + 1
            to_come = []
            assert harvest.behind or not harvest.waiting or done.acquire(timeout=60)
        assert sorted(came) == sorted(page.visit.url for page in pages)
        seen.close()
    aside.close()
    for page in pages:
        page.body.close()


def test_nobody_waits_for_large_pages_and_no_more_come_while_many_wait(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may hold a file: pages that turned out to be large, and errors with large bodies. What is done beside the
    loop may take however long."""
    monkeypatch.setattr(worker, "MOST_LATER", 3)
    aside = Aside(lambda: None, PACE, most_bytes=4 << 20)
    aside._under_way = True
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    long = (
        b"<base href='http://one.example/%s/'>" % (b"x" * 1900)
        + b"<a href=a>" * 8
        + b"".join(b"<a href=%d>a</a>" % number for number in range(1500))
    )
    came = [
        Exchange(visit_to(f"http://one.example/{outcome}-{n}"), outcome, 1e9, 0.1, status=200, head=head,
                 body=Document(body + b"%d" % n))
        for n in range(12) for outcome, body in ((Outcome.OK, long), (Outcome.CLIENT_ERROR, b"x" * PACKED_BYTES))
    ]  # fmt: skip
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        found, left = {}, deque(came)
        while left and not harvest.crowded:  # the thread stands still meanwhile
            found |= facts(list(harvest.reap([left.popleft()])))
        assert harvest.crowded and len(harvest._later) == 3 and len(aside) <= 2 * 3
        aside._under_way = False
        while harvest.waiting or left:
            more = [] if harvest.crowded or not left else [left.popleft()]
            found |= facts(list(harvest.reap(more)))
            assert len(harvest._later) <= 3
        seen.close()
    aside.close()
    for exchange in came:
        exchange.body.close()
    assert sorted(found) == sorted(exchange.visit.url for exchange in came)


def test_a_domain_with_many_large_pages_keeps_others_waiting_for_few(tmp_path) -> None:
    """Else who brings hundreds that take seconds each would have all the time there is; and nobody waits for ever."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    urls = [f"http://many.example/{number}" for number in range(40)]
    urls += [f"http://{name}.example/{number}" for number in range(2) for name in "abcde"]
    came = [
        Exchange(visit_to(url), Outcome.OK, 1e9, 0.1, status=200, head=head, body=Document(url.encode() * 100))
        for url in urls
    ]
    aside = Aside(lambda: None, PACE, large_bytes=100, most_bytes=100)
    order: list[str] = []
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        order += facts(list(harvest.reap(came)))
        while harvest.waiting:
            settle(aside)
            order += facts(list(harvest.reap([])))
        seen.close()
    aside.close()
    for exchange in came:
        exchange.body.close()
    assert sorted(order) == sorted(urls)
    others = [at for at, url in enumerate(order) if "many" not in url]
    assert others[4] < 10 and others[-1] < 20, others
    assert len([url for url in order[:15] if "many" in url]) > 3, "who came first has its turns too"


@pytest.mark.parametrize("packed", [1, 2, 3])
def test_what_may_take_long_to_unfold_is_unfolded_beside_the_loop(tmp_path, packed: int) -> None:
    """However little comes of it, and however few bytes came: blocks that bring nothing take work by themselves."""
    body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + bytes.fromhex("0208208000") * 100_000
    for _ in range(packed - 1):
        body = gzip.compress(body, mtime=0)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: %s\r\n\r\n" % b", ".join(
        [b"gzip"] * packed
    )
    came = [
        Exchange(visit_to(f"http://h.example/{number}"), Outcome.OK, 1e9, 0.1, status=200, head=head,
                 body=Document(body + b"%d" % number))
        for number in range(8)
    ]  # fmt: skip
    aside = Aside(lambda: None, PACE)
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        began = time.thread_time()
        found = facts(list(harvest.reap(came)))
        assert not found and harvest.waiting == len(came)
        while harvest.waiting:
            settle(aside)
            found |= facts(list(harvest.reap([])))
        assert time.thread_time() - began < 0.8  # it would be twice as much of one packed once, and more of others
        seen.close()
    aside.close()
    for exchange in came:
        exchange.body.close()
    assert sorted(found) == [exchange.visit.url for exchange in came]


@pytest.mark.parametrize("link", ["//\u00e9%x", "//1.%d", "//%%61%x", "//xn--%x", "http://h.example:%d/", "/%%2d%x"])
def test_links_that_take_long_are_resolved_a_few_in_a_turn(tmp_path, monkeypatch, link: str) -> None:
    """A page with many of them beside the loop, and few such pages together."""
    parsed: list[int] = []

    def watched(url: str, base: str | None = None) -> str | None:
        if threading.current_thread() is threading.main_thread():
            parsed[-1] += 1
        return canonical(url, base)

    monkeypatch.setattr(resolve, "canonical", watched)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    counts = [20_000, *[1_500] * 6, 0]
    came = [
        Exchange(visit_to(f"http://h.example/{page}"), Outcome.OK, 1e9, 0.1, status=200, head=head,
                 body=Document("".join(f"<a href={link % (number + page)}>" for number in range(count)).encode()))
        for page, count in enumerate(counts)
    ]  # fmt: skip
    aside = Aside(lambda: None, Pace(_TickingClock()))
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        resolve._keys_of_root.cache_clear()
        parsed.append(0)
        found = facts(list(harvest.reap(came)))
        while harvest.waiting:
            settle(aside)
            parsed.append(0)
            found |= facts(list(harvest.reap([])))
        seen.close()
    aside.close()
    assert max(parsed) <= 3 * (TOGETHER_LINKS + PORTION)
    with Checkpoint(tmp_path / "other") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        plain = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection())
        parsed.append(0)
        assert facts(list(plain.reap(came))) == found
        seen.close()


def test_who_fetches_rules_reads_them_and_nobody_else(tmp_path, monkeypatch) -> None:
    for name in ("decode_body", "decode_in_time"):
        monkeypatch.setattr(worker, name, lambda *_: pytest.fail("it was decoded once more"))
    exchange = exchanges()[0]
    exchange.visit.purpose = Purpose.ROBOTS
    aside = Aside(lambda: None, PACE)
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        for beside in (aside, None):
            binder = Binder(LinkResolver(), NamedSitemaps({}), seen)
            harvest = Harvest(Parser(), seen, binder, FetchSection(), beside)
            assert facts(list(harvest.reap([exchange]))) == {exchange.visit.url: ("", 0)}
        seen.close()
    aside.close()


def test_large_pages_take_their_share_of_the_time(tmp_path) -> None:
    """However many are read: while light work is going on one is handed on, and the next not before the time that is
    expected of it is one part in so many of what has passed; once none is, all are."""
    clock = VirtualClock()
    pace = Pace(clock)
    small, large = exchanges()[::3], exchanges()[1::3]
    aside = Aside(lambda: None, pace, large_bytes=300)
    for exchange in large:
        exchange.body = Document(exchange.body.read() + b" " * 100_000)
    with Checkpoint(tmp_path / "shard") as checkpoint:
        seen = ContentSeen(checkpoint.store, 1 << 16)
        harvest = Harvest(Parser(), seen, Binder(LinkResolver(), NamedSitemaps({}), seen), FetchSection(), aside)
        assert list(harvest.reap(large)) == []
        handed_on = []
        for _ in range(3000):
            clock.advance(0.001)
            pace.note_busy()
            settle(aside)
            got = facts(list(harvest.reap(small)))
            handed_on += [clock.now()] * (len(got) - len(small))
        assert len(handed_on) > 1
        assert all(after - before > 100_000 * STORED_BYTE_S * (PARTS - 1) for before, after in pairwise(handed_on))
        clock.advance(1.0)
        while harvest.waiting:
            settle(aside)
            handed_on += [clock.now()] * len(facts(list(harvest.reap([]))))
        assert len(handed_on) == len(large)
        seen.close()
    aside.close()


def test_while_light_work_is_going_on_large_pages_are_read_one_by_one() -> None:
    """Each once so much time has passed that what is expected of it is its share, by what is read and not by what may
    be held; in a hurry, and when there is none, all at once."""
    clock = VirtualClock()
    pace = Pace(clock)
    aside: Aside[int] = Aside(lambda: None, pace)
    for number in range(6):
        aside.put(partial(int, number), 2_000_000, 1_000_000)
    for begun in (0, 1, 2):
        pace.note_busy()
        aside.go_on()
        settle(aside)
        assert sum(work.result.done() for work in aside._untaken) == begun
        clock.advance(1_000_000 * BYTE_S * PARTS)
    pace.note_busy()
    aside.go_on(hurry=True)
    settle(aside)
    assert aside.take() == list(range(6))
    aside.close()


def test_what_waits_is_not_begun_once_light_work_goes_on_again() -> None:
    """A moment without light work, since the loop was held up maybe, begins one piece and not all that wait."""
    clock = VirtualClock()
    pace = Pace(clock)
    aside: Aside[None] = Aside(lambda: None, pace)
    for _ in range(6):
        aside.put(pace.note_busy, 1)
    aside.go_on()
    settle(aside)
    assert len(aside.take()) == 1
    clock.advance(LIGHT_S)
    aside.go_on(hurry=True)
    settle(aside)
    assert len(aside.take()) == 5
    aside.close()


def test_long_work_takes_its_share_piece_by_piece() -> None:
    """Among its pieces it waits as long as others do before they begin; in a hurry it waits no more."""
    clock = VirtualClock()
    pace = Pace(clock)
    aside: Aside[None] = Aside(lambda: None, pace)
    breaths, goes_on = threading.Semaphore(0), threading.Semaphore(0)

    def long() -> None:
        for _ in range(4):
            assert goes_on.acquire(timeout=60)
            clock.advance(2 * PIECE_S)
            pace.note_busy()
            breathe()
            breaths.release()

    aside.put(long, 1)
    aside.go_on()
    for _ in range(3):
        goes_on.release()
        assert not breaths.acquire(timeout=0.3), "it did not wait"
        clock.advance(2 * PIECE_S * PARTS)
        assert breaths.acquire(timeout=60)
    goes_on.release()
    aside.go_on(hurry=True)
    assert breaths.acquire(timeout=60)
    settle(aside)
    assert len(aside.take()) == 1
    aside.close()


def test_who_closes_does_not_wait_for_long_work() -> None:
    """It ends where it would have made room for others; nobody takes what it made so far."""
    aside: Aside[None] = Aside(lambda: None, PACE)
    begun, steps = threading.Event(), []

    def endless() -> None:
        while True:
            begun.set()
            steps.append(1)
            breathe()

    aside.put(endless, 1)
    aside.go_on()
    assert begun.wait(timeout=60)
    aside.close()
    assert steps


def test_no_more_is_made_than_may_wait_to_be_taken() -> None:
    """However little of it there was before: results may be larger than what they are made of."""
    made: list[int] = []
    aside = Aside(lambda: None, PACE, most_bytes=100)
    for number in range(5):
        aside.put(partial(made.append, number), 60)
    for most in (2, 4, 5):
        aside.go_on()
        settle(aside)
        assert made == list(range(most))
        aside.take()
    aside.close()


def test_what_waits_is_bounded() -> None:
    """While it is full, what is done first is taken first; what was not taken counts, done or not."""
    aside: Aside[int] = Aside(lambda: None, PACE, most_bytes=10)
    aside.put(lambda: 1, 6)
    assert aside.has_room(4) and not aside.has_room(5)
    aside.put(lambda: 2, 4)
    taken: list[int] = []
    while not aside.has_room(11):  # more than there ever is: alone
        assert not aside.has_room(1 if len(taken) == 0 else 11)
        aside.go_on()
        settle(aside)
        taken += aside.take(1)
    taken += aside.take()
    assert taken == [1, 2]
    aside.close()


def test_a_fault_of_ours_is_not_hidden() -> None:
    aside: Aside[None] = Aside(lambda: None, PACE)

    def fail() -> None:
        raise ZeroDivisionError

    aside.put(fail, 1)
    aside.go_on()
    settle(aside)
    with pytest.raises(ZeroDivisionError):
        aside.take()
    aside.close()


def test_each_piece_of_work_has_a_thread_that_ends_with_it() -> None:
    """glibc gives nothing back of a heap in which it keeps blocks for a thread."""
    done = threading.Semaphore(0)
    aside: Aside[threading.Thread] = Aside(done.release, PACE)
    for _ in range(3):
        aside.put(threading.current_thread, 1)
    aside.go_on()
    assert all(done.acquire(timeout=60) for _ in range(3))
    threads = aside.take()
    aside.close()
    assert len(set(threads)) == 3
    assert not any(thread.is_alive() for thread in threads)


def test_nothing_is_kept_of_work_that_was_given_up() -> None:
    begun = threading.Event()
    aside: Aside[None] = Aside(lambda: None, PACE)

    class Page:
        pass

    def read(page: Page) -> None:
        begun.set()
        while page:
            breathe()

    page = Page()
    aside.put(partial(read, page), 1)
    aside.go_on()
    assert begun.wait(timeout=60)
    kept = weakref.ref(page)
    del page
    gc.disable()
    try:
        aside.close()
        assert kept() is None
    finally:
        gc.enable()
