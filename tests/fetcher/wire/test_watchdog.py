"""A server that keeps OpenSSL reading holds the loop for a moment; what is only slow loses no connection."""

import asyncio
import socket
import time
from contextlib import contextmanager
from math import ceil

import pytest
from tests.fetcher.wire.conftest import LOCAL, Client, saying, tls, web
from tests.fetcher.wire.tls13 import DATA, speaking

from fyke.core.outcomes import Outcome
from fyke.fetcher.wire.transfer import ANY, ENDLESS, NO_CALL, PIECE_BYTES, Calls, Slot
from fyke.fetcher.wire.watchdog import CALLBACK_S, LOOK_S, MOST_BUSY_S, Watchdog

HELD_S = 8  # as long as the server would hold the loop
LOOKS = ceil(MOST_BUSY_S / LOOK_S)
BUSY_MACHINE_S = 3  # for all that else wants the processor
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\nhi"


def endlessly(kind, first=b""):
    """Sends `first`, then what is for the protocol alone."""

    def script(client, records):
        if first:
            client.sendall(records.record(first, DATA))
        deadline = time.monotonic() + HELD_S
        while time.monotonic() < deadline:
            client.sendall(getattr(records, kind)())

    return script


async def longest_turn(turns):
    """What each turn of the loop took of a processor: that, what else runs on the machine does not stretch."""
    while True:
        begin = time.thread_time()
        await asyncio.sleep(0.01)
        turns.append(time.thread_time() - begin)


@pytest.mark.parametrize("kind", ["tickets", "new_keys"])
async def test_messages_without_end_in_place_of_an_answer_are_left(authority, kind):
    """Their connection is not used again, and others go on."""
    issuer, ca_file = authority
    calm = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    turns = []
    async with (
        web(calm, ssl=tls(issuer, "site.test", "http/1.1")) as other,
        Client(ca_file=ca_file, timeout_s=30) as client,
    ):
        with speaking(issuer.issue_cert("site.test"), endlessly(kind)) as port:
            heartbeat = asyncio.create_task(longest_turn(turns))
            url = f"https://site.test:{port}/"
            answers = await client.get_all([url, other.url().replace("http:", "https:"), url])
            heartbeat.cancel()
    assert answers[1].outcome is Outcome.OK
    assert max(turns) < BUSY_MACHINE_S / 2
    if kind == "tickets":  # new keys cost our side more than a slow server: it waits for them, and holds nobody
        assert [(answer.outcome, answer.detail) for answer in answers[::2]] == [(Outcome.BAD_ANSWER, ENDLESS)] * 2


@pytest.mark.parametrize("field", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
async def test_messages_without_end_after_an_answer_hold_nobody(authority, field):
    """Not when the connection would be used again, not when it is closed, not when the client is."""
    issuer, ca_file = authority
    begin = time.monotonic()
    with speaking(issuer.issue_cert("site.test"), endlessly("tickets", ANSWER % field)) as port:
        async with Client(ca_file=ca_file, timeout_s=30) as client:
            for expected in ({Outcome.OK}, {Outcome.OK, Outcome.BROKEN_OFF}):
                answer = await client.get(f"https://site.test:{port}/")
                assert answer.outcome in expected, answer.detail
    assert time.monotonic() - begin < 2 * BUSY_MACHINE_S


async def test_a_callback_that_takes_long_ends_nothing(authority, monkeypatch):
    issuer, ca_file = authority
    write = Slot.write

    def slowly(self, chunk):
        busy_until = time.thread_time() + 3 * (MOST_BUSY_S + LOOK_S)
        while time.thread_time() < busy_until:
            pass
        return write(self, chunk)

    monkeypatch.setattr(Slot, "write", slowly)
    body = b"x" * 4 * PIECE_BYTES
    page = saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), *[body[:PIECE_BYTES]] * 4)
    async with (
        web(page, ssl=tls(issuer, "site.test", "http/1.1")) as server,
        Client(ca_file=ca_file, timeout_s=100) as client,
    ):
        answer = await client.get(server.url().replace("http:", "https:"))
        assert (answer.outcome, answer.body.size) == (Outcome.OK, len(body)), answer.detail


# by hand: what it looks at, and what it then does


@contextmanager
def connection():
    """Two ends of a connection over TCP."""
    with socket.create_server((LOCAL, 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        with theirs:
            yield ours, theirs


def read_on(ours, theirs):
    theirs.sendall(b"x" * 1000)
    ours.recv(1000, socket.MSG_WAITALL)


def lives(ours, theirs):
    theirs.sendall(b"y")
    return ours.recv(1) == b"y"


@pytest.mark.parametrize("about", ["descriptor", "any", "another"])
def test_what_is_read_and_read_in_one_call_is_ended_with_all_that_waits_in_it(about):
    with connection() as (ours, theirs), connection() as (calm, far):
        calls = Calls(count=1, sockets={ours.fileno(), calm.fileno()})
        calls.about = {"descriptor": ours.fileno(), "any": ANY, "another": calm.fileno()}[about]
        dog = Watchdog(calls)
        looks = LOOKS if about == "descriptor" else LOOKS + 1
        for look in range(looks):
            dog.look(look * LOOK_S)
            read_on(ours, theirs)
        theirs.sendall(b"z" * 100_000)
        dog.look(looks * LOOK_S + 0.001)
        assert dog.ended(ours.getsockname()[1]) and not dog.ended(calm.getsockname()[1])
        assert ours.recv(100) == b"" and lives(calm, far)


@pytest.mark.parametrize(
    "honest",
    ["idle processor", "nothing read", "now and then", "callbacks", "another call", "no call", "a file"],
)
def test_what_is_only_slow_is_not_ended(honest, tmp_path):
    with connection() as (ours, theirs), (tmp_path / "file").open("w+b") as file:
        fd = file.fileno() if honest == "a file" else ours.fileno()
        calls = Calls(count=1, about=fd, sockets={fd})
        dog = Watchdog(calls)
        for look in range(4 * LOOKS):
            dog.look(0.0 if honest == "idle processor" else look * LOOK_S)
            if honest != "nothing read" and (honest != "now and then" or look % 5 == 0):
                read_on(ours, theirs)
            if honest == "callbacks":
                calls.heard += round(2 * LOOK_S / CALLBACK_S)
            if honest == "another call":
                calls.count += 1
            if honest == "no call":
                calls.about = NO_CALL
        assert lives(ours, theirs)
