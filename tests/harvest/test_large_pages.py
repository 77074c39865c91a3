"""Large pages come out as if they had been read with the others, only later."""

import gzip
import threading
import time
from collections import deque
from itertools import pairwise

import pytest

from busy import note_busy
from fyke.core import bases, resolve
from fyke.core.batches import Kind
from fyke.core.clock import SystemClock, VirtualClock
from fyke.core.extraction import ExtractSection, FieldSection
from fyke.core.outcomes import Outcome
from fyke.core.pace import PARTS, Pace
from fyke.core.pages import Page
from fyke.core.resolve import PORTION
from fyke.core.urls import canonical
from fyke.core.visits import Exchange
from fyke.harvest import Parser, large_pages
from fyke.harvest.binder import LINK_BYTES, PendingPage
from fyke.harvest.fields import Extractor, Row
from fyke.harvest.harvest import TOGETHER_LINKS
from fyke.harvest.large_pages import PACKED_BYTES, STORED_BYTE_S
from fyke.harvest.slow_lane import LARGE_BYTES, MOST_BYTES, SlowLane
from harvest.reaping import PACE, all_reaped, answer, facts, harvest_with, reaped, reaped_later, settle, urls_of
from harvest.test_harvest import TickingClock

BODIES = [b"<title>%d</title><a href=/%d>" % (number, number) + b"x" * 300 * (number % 3) for number in range(9)]
LARGE = sum(len(body) >= 400 for body in BODIES)


def exchanges() -> list[Exchange]:
    return [answer(f"http://h.example/a/{number}", body) for number, body in enumerate(BODIES)]


def lane_of(large_bytes: int = 400, most_bytes: int = MOST_BYTES, pace: Pace = PACE) -> SlowLane[PendingPage]:
    return SlowLane(lambda: None, pace, large_bytes, most_bytes)


def urls(came: list[Exchange]) -> list[str]:
    return [exchange.visit.url for exchange in came]


def is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize(("end", "fault"), [(b"", "gzip is cut"), (bytes(8), "gzip is corrupt")])
def test_a_body_that_is_not_as_it_should_be_is_told(end: bytes, fault: str) -> None:
    """Else it would be a page without a word in it, and nobody knew why."""
    body = gzip.compress(b"<p>words")[:-8] + end
    exchange = answer("http://h.example/", body, "Content-Encoding: gzip\r\n")
    assert large_pages.opened(Parser(), 1 << 20, exchange).exchange.detail == fault


def test_large_pages_come_later_and_are_the_same() -> None:
    parser = Parser()
    with harvest_with() as harvest:
        wanted = facts(reaped(harvest, exchanges()))
    with harvest_with(lane_of(), parser) as harvest:
        at_once = reaped(harvest, exchanges())
        assert len(at_once) == len(BODIES) - LARGE
        assert harvest.waiting == LARGE
        later = [one for some in reaped_later(harvest) for one in some]
        assert harvest.waiting == 0
    assert facts(at_once + later) == wanted
    assert parser.pages == len(BODIES)


def test_what_unfolds_to_a_large_page_is_unfolded_beside_the_loop() -> None:
    """However few bytes came: on the loop no more is unfolded than a page has that is read there."""
    opened_here = []

    class Watched(Parser):
        def page_of(self, exchange: Exchange, content: bytes) -> Page:
            if is_main():
                opened_here.append(len(content))
            return super().page_of(exchange, content)

    bodies = [b"<title>%d</title>" % size + b"x" * size for size in (10, 900, 1000, 5000, 3 << 20)]
    came = [
        answer(f"http://h.example/{size}", gzip.compress(body), "Content-Encoding: gzip\r\n")
        for size, body in enumerate(bodies)
    ]
    with harvest_with(lane_of(large_bytes=1000), Watched()) as harvest:
        found = reaped(harvest, came)
        assert len(found) == 2 and harvest.waiting == 3
        found += [one for some in reaped_later(harvest) for one in some]
    assert [one.page.title for one in found] == ["10", "900", "1000", "5000", str(3 << 20)]
    assert max(opened_here) < 1000


def test_large_bodies_are_packed_beside_the_loop() -> None:
    """Also those of errors, which nobody reads; what cannot be packed comes out as it is."""
    packed = []

    def pack(exchange: Exchange) -> None:
        assert not is_main()
        packed.append(exchange.visit.url)
        raise OSError("the disk is full")

    outcomes = [Outcome.OK, Outcome.TOO_LARGE, Outcome.SERVER_ERROR, Outcome.CLIENT_ERROR, Outcome.STALLED]
    came = [
        answer(f"http://h.example/{outcome}-{size}", b"x" * size, outcome=outcome)
        for outcome in outcomes
        for size in (10, PACKED_BYTES)
    ]
    with harvest_with(pack=pack) as harvest:
        found = urls_of(all_reaped(harvest, came))
    assert sorted(found) == sorted(urls(came))
    assert sorted(packed) == sorted(url for url in found if url.endswith(f"-{PACKED_BYTES}"))


def test_rows_that_take_long_are_made_beside_the_loop() -> None:
    """Of however small a page; those of others at once, and of a page met before none."""
    made_here: dict[str, bool] = {}

    class Watched(Extractor):
        def rows(self, page: Page) -> list[Row]:
            made = super().rows(page)
            made_here[page.url] = is_main()
            return made

    extractor = Watched(ExtractSection(table="things", each="div", fields={"text": FieldSection(select="::text")}))
    bodies = [b"<div>a", b"<div>some words " * 500, b"<div>a"]
    came = [answer(f"http://h.example/{number}", body) for number, body in enumerate(bodies)]
    with harvest_with(parser=Parser(extractors=[extractor])) as harvest:
        rows = {one.page.url: one.page.rows for one in all_reaped(harvest, came)}
    first, second, third = urls(came)
    assert rows[first] == {"things": [(first, "a")]} and rows[third] == {}
    assert len(rows[second]["things"]) == 500
    assert made_here[first] and not made_here[second]


def test_while_there_is_no_room_for_large_pages_small_ones_go_on() -> None:
    """Nothing waits for the thread, which is busy here until it is let go."""
    lane = lane_of(most_bytes=500)
    with harvest_with(lane) as harvest:
        lane._under_way = True
        assert len(reaped(harvest, exchanges())) == len(BODIES) - LARGE
        assert harvest.waiting == LARGE and not lane.has_room(400)
        assert reaped(harvest) == []
        lane._under_way = False
        lane.go_on()
        later = [one for some in reaped_later(harvest) for one in some]
    for one in later:
        one.exchange.body.close()
    assert len(later) == LARGE


def test_pages_whose_links_are_long_wait_for_room_too() -> None:
    """They are small until they are parsed: nobody asked whether there is room for them."""
    clock = VirtualClock()
    lane = lane_of(LARGE_BYTES, pace=Pace(clock))
    body = b"<base href='http://one.example/%s/'>" % (b"x" * 1900)
    body += b"".join(b"<a href=%d>a</a>" % number for number in range(1500))
    came = [answer(f"http://one.example/{n}", body + b"%d" % n) for n in range(40)]
    with harvest_with(lane) as harvest:
        lane._under_way = True
        found = urls_of(reaped(harvest, came))
        assert harvest.waiting == len(came), "the loop goes on while another page is read"
        lane._under_way = False
        while harvest.waiting:
            note_busy(lane.pace)
            found += urls_of(reaped(harvest))
            assert len(lane) <= (16 << 20) // (1500 * 1900) + 1
            settle(lane)
            clock.advance(60.0)
    for exchange in came:
        exchange.body.close()
    assert sorted(found) == sorted(urls(came))


@pytest.mark.parametrize("kind", [Kind.PAGE, Kind.SEED])
def test_pages_with_many_links_wait_for_room_as_well(kind) -> None:
    """Short ones, which take many times as much as they are written out."""
    most_bytes, links = 4 << 20, 3000
    lane = lane_of(LARGE_BYTES, most_bytes)
    came = []
    for n in range(40):
        body = "".join(f"<a href=//é{n}x{number:x}>" for number in range(links))
        came.append(answer(f"http://one.example/{n}", body.encode()))
        came[-1].visit.kind = kind
    with harvest_with(lane) as harvest:
        found = urls_of(reaped(harvest, came))
        for some in reaped_later(harvest):
            found += urls_of(some)
            assert len(lane) <= most_bytes // (links * LINK_BYTES) + 1
    for exchange in came:
        exchange.body.close()
    assert sorted(found) == sorted(urls(came))


def test_nobody_waits_for_large_pages_and_no_more_come_while_many_wait(monkeypatch) -> None:
    """Each may hold a file: pages that turned out to be large, and errors with large bodies. What is done beside the
    loop may take however long."""
    monkeypatch.setattr(large_pages, "MOST_LATER", 3)
    lane = lane_of(LARGE_BYTES, 4 << 20)
    lane._under_way = True
    long = b"<base href='http://one.example/%s/'>" % (b"x" * 1900) + b"<a href=a>" * 8
    long += b"".join(b"<a href=%d>a</a>" % number for number in range(1500))
    came = [
        answer(f"http://one.example/{outcome}-{n}", body + b"%d" % n, outcome=outcome)
        for n in range(12)
        for outcome, body in ((Outcome.OK, long), (Outcome.CLIENT_ERROR, b"x" * PACKED_BYTES))
    ]
    with harvest_with(lane) as harvest:
        found, left = [], deque(came)
        while left and not harvest.crowded:  # the thread stands still meanwhile
            found += urls_of(reaped(harvest, [left.popleft()]))
        assert harvest.crowded and len(harvest._large._later) == 3 and len(lane) <= 2 * 3
        lane._under_way = False
        while harvest.waiting or left:
            found += urls_of(reaped(harvest, [] if harvest.crowded or not left else [left.popleft()]))
            assert len(harvest._large._later) <= 3
    for exchange in came:
        exchange.body.close()
    assert sorted(found) == sorted(urls(came))


def test_a_host_is_held_back_while_a_large_page_of_it_waits_for_room() -> None:
    """Otherwise one host with hundreds would fill all places, and then no host could be asked."""
    came = [answer(f"http://{name}.example/{n}", b"%d" % n * 100) for n in range(4) for name in ("one", "two")]
    keys = {exchange.visit.host for exchange in came}
    small = answer("http://three.example/", b"a")
    lane = lane_of(100, 100)
    lane._under_way = True
    with harvest_with(lane) as harvest:
        reaped(harvest, [*came, small])
        assert all(map(harvest.holds_back, keys)) and not harvest.holds_back(small.visit.host)
        lane._under_way = False
        while harvest.waiting:
            reaped(harvest, [])
            waiting = {one.visit.host for one, _, _ in harvest._large._later._line}
            assert {key for key in keys if harvest.holds_back(key)} == waiting
    for exchange in [*came, small]:
        exchange.body.close()


def test_while_many_large_pages_wait_only_hosts_with_light_pages_are_asked(monkeypatch) -> None:
    """Otherwise hundreds of hosts with a large page each would fill all places, and then no host could be asked."""
    monkeypatch.setattr(large_pages, "MOST_LATER", 8)
    monkeypatch.setattr(large_pages, "LIGHT_HOSTS", 2)
    light = [answer(f"http://light{n}.example/", b"%d" % n) for n in range(3)]
    large = [answer(f"http://large{n}.example/", b"%d" % n * 100) for n in range(6)]
    late = answer("http://light2.example/large", b"large" * 100)
    new = answer("http://new.example/", b"new").visit.host
    lane = lane_of(100, 100)
    lane._under_way = True
    with harvest_with(lane) as harvest:
        reaped(harvest, light)
        reaped(harvest, large[:5])  # one of them has the room
        assert len(harvest._large._later) == 4 and not harvest.holds_back(new)
        reaped(harvest, large[5:])
        held = {exchange.visit.url: harvest.holds_back(exchange.visit.host) for exchange in light}
        assert list(held.values()) == [True, False, False], "of the hosts with light pages the latest are known"
        assert harvest.holds_back(new)
        reaped(harvest, [late])
        lane._under_way = False
        while len(harvest._large._later) > 4:
            reaped(harvest, [])
        assert not harvest.holds_back(new), "as soon as half of the places are free"
        while harvest.waiting:
            reaped(harvest, [])
    for exchange in [*light, *large, late]:
        exchange.body.close()


def test_a_domain_with_many_large_pages_keeps_others_waiting_for_few() -> None:
    """Else who brings hundreds that take seconds each would have all the time there is; and nobody waits for ever."""
    given = [f"http://many.example/{number}" for number in range(40)]
    given += [f"http://{name}.example/{number}" for number in range(2) for name in "abcde"]
    came = [answer(url, url.encode() * 100) for url in given]
    with harvest_with(lane_of(100, 100)) as harvest:
        order = urls_of(all_reaped(harvest, came))
    for exchange in came:
        exchange.body.close()
    assert sorted(order) == sorted(given)
    others = [at for at, url in enumerate(order) if "many" not in url]
    assert others[4] < 10 and others[-1] < 20, others
    assert len([url for url in order[:15] if "many" in url]) > 3, "who came first has its turns too"


@pytest.mark.parametrize("packed", [1, 2, 3])
def test_what_may_take_long_to_unfold_is_unfolded_beside_the_loop(packed: int) -> None:
    """However little comes of it, and however few bytes came: blocks that bring nothing take work by themselves."""
    body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + bytes.fromhex("0208208000") * 100_000
    for _ in range(packed - 1):
        body = gzip.compress(body, mtime=0)
    fields = f"Content-Encoding: {', '.join(['gzip'] * packed)}\r\n"
    came = [answer(f"http://h.example/{number}", body + b"%d" % number, fields) for number in range(8)]
    with harvest_with(lane_of(LARGE_BYTES, pace=Pace(SystemClock()))) as harvest:
        began = time.thread_time()
        assert not reaped(harvest, came) and harvest.waiting == len(came)
        found = [one for some in reaped_later(harvest) for one in some]
        assert time.thread_time() - began < 0.8  # it would be twice as much of one packed once, and more of others
    for exchange in came:
        exchange.body.close()
    assert sorted(urls_of(found)) == urls(came)


@pytest.mark.parametrize("link", ["//\u00e9%x", "//1.%d", "//%%61%x", "//xn--%x", "http://h.example:%d/", "/%%2d%x"])
def test_links_that_take_long_are_resolved_a_few_in_a_turn(monkeypatch, link: str) -> None:
    """A page with many of them beside the loop, and few such pages together."""
    parsed = [0]

    def watched(url: str, base: str | None = None) -> str | None:
        if is_main():
            parsed[-1] += 1
        return canonical(url, base)

    for module in (bases, resolve):
        monkeypatch.setattr(module, "canonical", watched)
    counts = [20_000, *[1_500] * 6, 0]
    came = [
        answer(f"http://h.example/{page}", "".join(f"<a href={link % (page + n)}>" for n in range(count)).encode())
        for page, count in enumerate(counts)
    ]
    with harvest_with(lane_of(LARGE_BYTES, pace=Pace(TickingClock()))) as harvest:
        bases.keys_of_root.cache_clear()
        found = facts(reaped(harvest, came))
        parsed.append(0)
        for some in reaped_later(harvest):
            parsed.append(0)
            found |= facts(some)
    assert max(parsed) <= 3 * (TOGETHER_LINKS + PORTION)
    assert {url: links for url, (_, links) in found.items()} == dict(zip(urls(came), counts, strict=True))


def test_large_pages_take_their_share_of_the_time() -> None:
    """However many are read: while light work is going on one is handed on, and the next not before the time that is
    expected of it is one part in so many of what has passed; once none is, all are."""
    clock = VirtualClock()
    lane = lane_of(300, pace=Pace(clock))
    small = exchanges()[::3]
    large = [answer(one.visit.url, one.body.read() + b" " * 100_000) for one in exchanges()[1::3]]
    with harvest_with(lane) as harvest:
        assert not reaped(harvest, large)
        handed_on = []
        for _ in range(3000):
            clock.advance(0.001)
            note_busy(lane.pace)
            settle(lane)
            handed_on += [clock.now()] * (len(reaped(harvest, small)) - len(small))
        assert len(handed_on) > 1
        assert all(after - before > 100_000 * STORED_BYTE_S * (PARTS - 1) for before, after in pairwise(handed_on))
        clock.advance(1.0)
        for some in reaped_later(harvest):
            handed_on += [clock.now()] * len(some)
        assert len(handed_on) == len(large)
