"""Laws of the client over libcurl: one answer for each start, the wire's bytes, bounded handles, nothing leaks."""

import asyncio
import os
import socket
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from tests.fetcher.wire.conftest import AGENT, LOCAL, Client, saying, visit_to, web

from busy import note_busy
from fyke.core.clock import SystemClock, VirtualClock
from fyke.core.config import FetchSection
from fyke.core.errors import ConfigurationError, DiskFull
from fyke.core.outcomes import Outcome
from fyke.core.pace import PARTS, Pace
from fyke.core.visits import robots_visit
from fyke.fetcher.unfolding import WIRE_BYTES
from fyke.fetcher.wire.curl import CLOSED, CurlClient
from fyke.fetcher.wire.registry import build_registry
from fyke.fetcher.wire.transfer import MOST_HEAD_BYTES, TURN_BYTES

SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


async def stalling(head, _reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhi")
    await asyncio.sleep(60)


async def mute(_head, _reader, _writer):
    await asyncio.sleep(60)


async def aborting(_head, _reader, writer):
    writer.transport.abort()


async def endless(_head, _reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def header_bomb(_head, _reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-Field: " + b"a" * 200 + b"\r\n")
        await writer.drain()


async def one_long_line(_head, _reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nX-Field: ")
    while True:
        writer.write(b"a" * 4096)
        await writer.drain()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

MISBEHAVIOUR = {
    "stalls": (stalling, {"stall_s": 1}, Outcome.STALLED, "time"),
    "says nothing": (mute, {"timeout_s": 0.3}, Outcome.TIMED_OUT, ""),
    "takes too long": (stalling, {"timeout_s": 0.3}, Outcome.TIMED_OUT, "time"),
    "resets": (aborting, {}, Outcome.BROKEN_OFF, ""),
    "hangs up": (saying(close=True), {}, Outcome.BROKEN_OFF, ""),
    "short of its length": (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", close=True),
        {},
        Outcome.BROKEN_OFF,
        "disconnect",
    ),
    "no last chunk": (saying(CHUNKED + b"2\r\nhi\r\n", close=True), {}, Outcome.BROKEN_OFF, "disconnect"),
    "chunks that are none": (saying(CHUNKED + b"zz\r\nhi", close=True), {}, Outcome.BAD_ANSWER, "disconnect"),
    "garbage": (saying(b"\x00\x01\x02 what?\r\n\r\n", close=True), {}, Outcome.BAD_ANSWER, ""),
    "two lengths": (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", close=True),
        {},
        Outcome.BROKEN_OFF,
        "",
    ),
    "another protocol": (saying(b"HTTP/1.1 101 Switching\r\n\r\n", b"hi", close=True), {}, Outcome.BAD_ANSWER, ""),
    "no end of its head": (saying(b"HTTP/1.1 200 OK\r\nA: b\r\n\rB: c\r\nhi", close=True), {}, Outcome.BAD_ANSWER, ""),
    "no version": (saying(b"http/\r\n\r\nhi", close=True), {}, Outcome.BAD_ANSWER, ""),
    "header bomb": (header_bomb, {}, Outcome.BAD_ANSWER, ""),
    "header line bomb": (one_long_line, {}, Outcome.BAD_ANSWER, ""),
    "endless": (endless, {"max_body_bytes": 100_000}, Outcome.TOO_LARGE, "length"),
    "length beyond the limit": (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n", b"x" * 200_000),
        {"max_body_bytes": 100_000},
        Outcome.TOO_LARGE,
        "length",
    ),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
async def test_whatever_the_server_does_there_is_one_answer(name):
    script, limits, outcome, truncated = MISBEHAVIOUR[name]
    async with web(script) as server, Client(**limits) as client:
        for answer in await client.get_all([server.url(f"/{n}", f"h{n}.test") for n in range(3)]):
            assert (answer.outcome, answer.truncated) == (outcome, truncated), answer.detail
            assert answer.detail
            assert "\n" not in answer.detail
            if outcome is Outcome.TOO_LARGE:
                assert answer.body.size == limits["max_body_bytes"]
        assert client.curl.in_flight == 0


@pytest.mark.parametrize("most_bytes", [1000, 8 << 20])
async def test_of_rules_no_more_is_taken_than_is_read(most_bytes):
    """And no less, however short pages may be."""
    async with web(endless) as server, Client(max_body_bytes=most_bytes) as client:
        origin = server.url("", "h.test")
        came = asyncio.get_running_loop().create_future()
        client.registry.fetch(robots_visit(f"{origin}/robots.txt", origin), LOCAL, client._into(came))
        answer = await came
        assert (answer.outcome, answer.truncated, answer.body.size) == (Outcome.TOO_LARGE, "length", WIRE_BYTES)
        assert f"{WIRE_BYTES} bytes" in answer.detail


@pytest.mark.parametrize("lines", [8, 10, 30])
async def test_heads_are_short(lines):
    """A thousand servers may send one at a time: what is long is broken off, whatever would follow."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"".join(
        b"X-%d: %s\r\n" % (n, b"y" * 7200) for n in range(lines)
    )
    async with web(saying(head + b"\r\n", b"hi")) as server, Client() as client:
        answer = await client.get(server.url())
        fits = len(head) + 2 <= MOST_HEAD_BYTES
        assert answer.outcome is (Outcome.OK if fits else Outcome.BAD_ANSWER), answer.detail
        assert fits == (lines == 8)
        assert fits or "64 KB" in answer.detail


async def test_a_stalled_answer_on_a_kept_connection_is_no_connect_failure():
    async def second_stalls(head, reader, writer):
        if b"/second" in head:
            await mute(head, reader, writer)
        writer.write(SMALL)

    async with web(second_stalls) as server, Client(timeout_s=0.3) as client:
        await client.get(server.url("/first"))
        assert (await client.get(server.url("/second"))).outcome is Outcome.TIMED_OUT
        assert server.connections == 1


class RoundsDown:
    """The running loop, answering `call_at` as uvloop does for a moment that is now: by a handle with no time."""

    def __init__(self):
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name):
        return getattr(self._loop, name)

    def call_at(self, when, callback):
        return SimpleNamespace(cancel=self._loop.call_at(when, callback).cancel)


async def test_a_timer_need_not_know_its_time():
    async with web(saying(SMALL)) as server, Client(loop=RoundsDown()) as client:
        for turn in range(5):
            for answer in await client.get_all([server.url(f"/{turn}", f"h{n}.test") for n in range(3)]):
                assert answer.outcome is Outcome.OK


def test_nobody_listening(run):
    with socket.socket() as taken:  # bound, not listening: nobody else gets the port
        taken.bind((LOCAL, 0))
        url = f"http://site.test:{taken.getsockname()[1]}/"

        async def main():
            async with Client() as client:
                answer = await client.get(url)
                assert answer.outcome is Outcome.CONNECT_FAILED
                assert answer.address == LOCAL

        run(main())


def test_no_answer_to_the_connect_is_a_connect_failure(run):
    with socket.socket() as full:
        full.bind((LOCAL, 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:  # the queue is full: the kernel drops what comes next
            filler.setblocking(False)
            filler.connect_ex((LOCAL, port))

        async def main():
            async with Client(connect_timeout_s=0.3) as client:
                assert (await client.get(f"http://site.test:{port}/")).outcome is Outcome.CONNECT_FAILED

        run(main())
        for filler in fillers:
            filler.close()


async def test_a_url_libcurl_cannot_take_is_answered_later():
    async with Client() as client:
        answer = await client.get("http://a*b.test/")
        assert answer.outcome is Outcome.UNSUPPORTED
        assert answer.detail


@pytest.mark.parametrize("loop_factory", [None, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_close_answers_for_everything_in_flight(run, loop_factory):
    async def main():
        loop = asyncio.get_running_loop()
        async with web(mute) as server:
            curl = CurlClient(loop, FetchSection(), SystemClock())
            registry = build_registry(loop, curl, AGENT, SystemClock())
            answers = []
            for n in range(5):
                registry.fetch(visit_to(server.url(f"/{n}")), LOCAL, answers.append)
            registry.fetch(visit_to("http://a*b.test/"), LOCAL, answers.append)
            await asyncio.sleep(0.05)
            registry.fetch(visit_to(server.url("/last")), LOCAL, answers.append)
            curl.close()
            curl.close()
            assert curl.in_flight == 0
            assert [a.outcome for a in answers].count(Outcome.BROKEN_OFF) == 6
            assert sum(a.detail == CLOSED for a in answers) == 6
            await asyncio.sleep(0.05)
            assert len(answers) == 7
            with pytest.raises(RuntimeError):
                registry.fetch(visit_to(server.url("/more")), LOCAL, answers.append)

    run(main(), *([loop_factory] if loop_factory else []))


async def test_close_and_start_from_inside_done():
    loop = asyncio.get_running_loop()
    async with web(saying(SMALL)) as server:
        curl = CurlClient(loop, FetchSection(), SystemClock())
        registry = build_registry(loop, curl, AGENT, SystemClock())
        answers = []
        finished = loop.create_future()

        def done(exchange):
            answers.append(exchange)
            if len(answers) < 20:
                registry.fetch(exchange.visit, LOCAL, done)
            elif not finished.done():
                finished.set_result(None)
                curl.close()

        for n in range(4):
            registry.fetch(visit_to(server.url(f"/{n}")), LOCAL, done)
        await finished
        await asyncio.sleep(0.05)
        assert len(answers) == 4 + 19  # those that were under way as it was closed among them


async def test_an_owner_whose_done_raises_does_not_cost_the_others():
    loop = asyncio.get_running_loop()
    reported = []
    loop.set_exception_handler(lambda _loop, context: reported.append(context))
    async with web(saying(SMALL)) as server, Client() as client:

        def broken(_exchange):
            raise KeyError("an owner's bug")

        client.registry.fetch(visit_to(server.url("/a")), LOCAL, broken)
        assert (await client.get(server.url("/b"))).outcome is Outcome.OK
        assert (await client.get(server.url("/c"))).outcome is Outcome.OK
    assert [type(context["exception"]) for context in reported] == [KeyError]


async def test_large_body_goes_to_disk(tmp_path):
    body = os.urandom(3 << 20)
    script = saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body)
    async with web(script) as server, Client(folder=str(tmp_path)) as client:
        answer = await client.get(server.url())
        assert "on disk" in repr(answer.body)
        assert answer.body.read() == body


async def test_a_full_disk_is_our_fault_and_stops_the_engine(tmp_path):
    script = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n", b"x" * 3_000_000)
    async with web(script) as server, Client(folder=str(tmp_path / "gone")) as client:
        answer = await client.get(server.url())
        assert answer.outcome is Outcome.BROKEN_OFF
        assert "disk" in answer.detail
        with pytest.raises(DiskFull):
            client.registry.fetch(visit_to(server.url()), LOCAL, print)


async def test_idle_handles_and_connections_are_bounded():
    process = psutil.Process()
    async with web(saying(SMALL)) as server, Client(connections=8) as client:
        urls = [server.url("/", f"h{n}.test") for n in range(200)]
        before = process.num_fds()
        for start in range(0, 200, 40):
            await client.get_all(urls[start : start + 40])
        assert repr(client.curl) == "CurlClient(0 in flight, 8 idle)"
        # both ends of each connection are in this process
        assert process.num_fds() - before <= 2 * (2 * 8 + 4)
    descriptors = process.num_fds()
    for _ in range(3):
        async with Client() as client:
            await client.get(f"http://h.test:{server.port}/")
    assert process.num_fds() <= descriptors


async def test_the_address_is_ours_and_proxies_are_not_asked(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with web(saying(SMALL)) as server, Client() as client:
        for host in ("no-such-name.invalid", "localhost", "192.0.2.1", "[2001:db8::1]"):
            answer = await client.get(server.url("/", host))
            assert answer.outcome is Outcome.OK, answer.detail
            assert answer.request == server.heads[-1]


async def test_one_name_at_two_addresses():
    async def here(_head, _reader, writer):
        there = writer.get_extra_info("sockname")[0].encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(there), there))

    async with Client() as client, web(here) as first:

        async def serve(reader, writer):
            await first.serve(reader, writer)

        second = await asyncio.start_server(serve, "127.0.0.2", first.port)
        for address in ("127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"):
            answer = await client.get(first.url(), address)
            assert answer.body.read().decode() == answer.address == address
        second.close()


async def test_ipv6_address():
    served = saying(SMALL)

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await served(b"", reader, writer)
        writer.close()

    try:
        server = await asyncio.start_server(serve, "::1", 0)
    except OSError:
        pytest.skip("no IPv6 here")
    async with Client() as client:
        answer = await client.get(f"http://six.test:{server.sockets[0].getsockname()[1]}/", "::1")
        assert answer.outcome is Outcome.OK
    server.close()


async def test_started_at_is_the_clock_that_was_passed():
    loop = asyncio.get_running_loop()
    async with web(saying(SMALL)) as server:
        curl = CurlClient(loop, FetchSection(), VirtualClock(1234.5))
        answered = loop.create_future()
        build_registry(loop, curl, AGENT, SystemClock()).fetch(visit_to(server.url()), LOCAL, answered.set_result)
        answer = await answered
        assert answer.started_at == 1234.5
        assert 0 < answer.duration_s < 1
        curl.close()


async def test_a_ca_file_that_cannot_be_used(tmp_path):
    Path(tmp_path / "empty.pem").write_text("")
    for name in ("missing.pem", "empty.pem"):
        with pytest.raises(ConfigurationError, match="ca_file"):
            CurlClient(asyncio.get_running_loop(), FetchSection(ca_file=str(tmp_path / name)), SystemClock())


async def test_where_a_kept_connection_breaks_nothing_is_sent_twice():
    """libcurl would ask again at once, on a new connection: but a host rests after each request that it saw."""

    async def dies_when_kept(head, _reader, writer):
        if b"/second" in head and server_of[0].connections == 1:
            writer.transport.abort()
        writer.write(SMALL)

    server_of = []
    async with web(dies_when_kept) as server, Client() as client:
        server_of.append(server)
        await client.get(server.url("/first"))
        answer = await client.get(server.url("/second"))
        assert answer.outcome is Outcome.BROKEN_OFF and answer.kept_broke and answer.detail
        assert len(server.heads) == 2
        assert (await client.get(server.url("/second"))).outcome is Outcome.OK
        assert len(server.heads) == 3


def test_who_sends_much_takes_turns(monkeypatch, run):
    """However many send bodies without end: after its first turn each has as many as the others, one at a time, and
    none brings more in a turn than it may."""
    turns: Counter[str] = Counter()
    brought: list[int] = []
    go_on, act = CurlClient._go_on, CurlClient._act

    def noted(curl, slot):
        turns[slot.request.visit.url] += 1
        go_on(curl, slot)

    def measured(curl, fd, selected, **turn):
        before = {slot: slot.body.size for slot in curl._active.values()}
        act(curl, fd, selected, **turn)
        brought.extend(slot.body.size - before.get(slot, 0) for slot in curl._active.values())

    monkeypatch.setattr(CurlClient, "_go_on", noted)
    monkeypatch.setattr(CurlClient, "_act", measured)

    async def main():
        async with web(endless) as server, Client(max_body_bytes=8 << 20) as client:
            await client.get_all([server.url(f"/{number}") for number in range(12)])
            return {answer.body.size for answer in client.answers}

    assert run(main()) == {8 << 20}
    assert max(brought) < TURN_BYTES + (64 << 10)
    assert len(turns) == 12 and max(turns.values()) - min(turns.values()) <= 2


async def test_who_sends_much_has_a_share_of_the_time_while_others_go_on():
    """Light requests end all the while, and no time passes but that of turns, a millisecond each: so there is one, and
    none until so much time has passed as its share asks for."""
    clock = VirtualClock()
    pace = Pace(clock)
    turns: list[float] = []

    note_busy(pace)
    async with web(endless) as server, Client(max_body_bytes=2 << 20, pace=pace) as client:
        go_on = client.curl._go_on

        def timed(slot):
            turns.append(clock.now())
            clock.advance(0.001)
            go_on(slot)

        client.curl._go_on = timed
        answers = asyncio.ensure_future(client.get_all([server.url(f"/{number}") for number in range(3)]))
        while not answers.done():
            note_busy(pace)
            clock.advance(0.002)
            await asyncio.sleep(0.001)
    assert len(turns) > 20
    assert all(after - before >= 0.001 * PARTS - 1e-6 for before, after in pairwise(turns))


class Slow:
    """A multi handle of libcurl that takes 3 ms to go on, each time."""

    def __init__(self, multi, clock):
        self._multi, self._clock = multi, clock

    def socket_action(self, *what):
        self._clock.advance(0.003)
        return self._multi.socket_action(*what)

    def __getattr__(self, name):
        return getattr(self._multi, name)


async def test_who_takes_time_and_brings_nothing_takes_turns_as_well():
    """Fields of a head come without end: the transfer is paused, and between two turns there is as much time as its
    share asks for by what it took."""
    clock = VirtualClock()
    pace = Pace(clock)
    turns: list[float] = []

    async def telling(_head, _reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(b"Link: <a>\r\n")
            await writer.drain()
            await asyncio.sleep(0.005)

    note_busy(pace)
    async with web(telling) as server, Client(pace=pace, timeout_s=60) as client:
        curl = client.curl
        curl._multi, go_on = Slow(curl._multi, clock), curl._go_on

        def timed(slot):
            turns.append(clock.now())
            go_on(slot)

        curl._go_on = timed
        answer = asyncio.ensure_future(client.get(server.url("/")))
        while len(turns) < 5 and not answer.done():
            note_busy(pace)
            clock.advance(0.002)
            await asyncio.sleep(0.001)
        assert not answer.done(), answer.result().detail
        curl.cut(next(iter(curl._active.values())).request.visit, "enough was seen")
        assert (await answer).outcome is Outcome.STALLED
    assert all(after - before >= 0.003 * PARTS - 1e-6 for before, after in pairwise(turns))


async def test_one_that_is_cut_while_it_waits_for_its_turn_leaves_nothing_behind():
    """The handle that it had is used again at once."""
    clock = VirtualClock()
    pace = Pace(clock)
    note_busy(pace)  # and no time passes
    async with web(endless) as server, web(saying(SMALL)) as other, Client(pace=pace, connections=1) as client:
        with client.curl._share.taken():
            clock.advance(1000.0)
        note_busy(pace)
        future = asyncio.ensure_future(client.get(server.url("/much")))
        while not client.curl._paused:
            await asyncio.sleep(0.001)
        (slot,) = client.curl._paused
        client.curl.cut(slot.request.visit, "it waited")
        assert (await future).outcome is Outcome.STALLED
        for number in range(3):
            answer = await client.get(other.url(f"/{number}"))
            assert (answer.outcome, answer.body.read()) == (Outcome.OK, b"hi")
        assert repr(client.curl) == "CurlClient(0 in flight, 1 idle)"
