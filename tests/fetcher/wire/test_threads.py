"""An FTP server that falls silent, at whatever moment, keeps nobody else waiting."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from tests.fetcher.wire.conftest import LOCAL, Client, listening, saying, web
from tests.fetcher.wire.ftp_server import FILES, FtpServer

from fyke.core.errors import DiskFull
from fyke.core.outcomes import Outcome
from fyke.core.visits import visit_to
from fyke.fetcher.wire import threads
from fyke.fetcher.wire.curl import CLOSED

OK = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
STAGES = ["GREETING", "USER", "PASS", "PWD", "CWD", "EPSV", "TYPE", "SIZE", "RETR", "DATA", "226", "226 dribbled"]
LONG_S = 60  # no bound of time ends what is tested here
WAIT_S = 20


def url(port):
    return f"ftp://site.test:{port}/pub/hello.txt"


def begun(client, port):
    """A visit under way, and its answers."""
    answers = []
    visit = visit_to(url(port))
    client.registry.fetch(visit, LOCAL, answers.append)
    return visit, answers


async def until(event):
    await asyncio.wait_for(event.wait(), WAIT_S)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("ending", ["close", "cut"])
async def test_who_is_silent_holds_up_nobody(stage, ending):
    server = FtpServer(silent_at=stage)
    limits = {"timeout_s": LONG_S, "connect_timeout_s": LONG_S, "stall_s": LONG_S}
    async with listening(server.serve) as port, web(OK) as other, Client(**limits) as client:
        visit, answers = begun(client, port)
        await until(server.silent)
        assert (await client.get(other.url())).outcome is Outcome.OK
        assert not answers
        if ending == "cut":
            client.curl.cut(visit, "for a reason")
            assert (await client.get(other.url())).outcome is Outcome.OK
            assert [(answer.outcome, answer.detail) for answer in answers] == [(Outcome.STALLED, "for a reason")]
        else:
            client.curl.close()
            assert [(answer.outcome, answer.detail) for answer in answers] == [(Outcome.BROKEN_OFF, CLOSED)]
        assert client.curl.in_flight == 0
        if "dribbled" not in stage:  # what is dribbled is waited for as a reply is
            await until(server.left)
        assert len(answers) == 1


@pytest.mark.parametrize("stage", ["226", "226 dribbled"])
async def test_a_transfer_whose_end_is_not_said_is_over_in_time(stage):
    server = FtpServer(silent_at=stage)
    async with listening(server.serve) as port, Client(timeout_s=LONG_S, stall_s=1) as client:
        answer = await client.get(url(port))
        assert (answer.outcome, answer.truncated, answer.body.read()) == (Outcome.TIMED_OUT, "time", b"hello")


async def test_who_does_not_take_leave_is_left():
    server = FtpServer(silent_at="QUIT")
    async with listening(server.serve) as port, web(OK) as other, Client(timeout_s=LONG_S) as client:
        _, answers = begun(client, port)
        await until(server.silent)
        assert (await client.get(other.url())).outcome is Outcome.OK
        await until(server.left)
        while not answers:
            await asyncio.sleep(0)
        assert [(answer.outcome, answer.body.read()) for answer in answers] == [(Outcome.OK, b"hello")]


async def test_silent_servers_by_the_dozen_keep_others_waiting_for_so_long(monkeypatch):
    """They have all threads; they are cut once others wait."""
    monkeypatch.setattr(threads, "MOST_THREADS", 2)
    monkeypatch.setattr(threads, "LONG_S", 0.1)
    silent, honest = [FtpServer(silent_at=stage) for stage in ("226", "USER", "PWD", "DATA")], FtpServer()
    async with AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(listening(server.serve)) for server in [*silent, honest]]
        client = await stack.enter_async_context(Client(timeout_s=LONG_S, connect_timeout_s=LONG_S, stall_s=2))
        *others, last = [begun(client, port)[1] for port in ports]
        await until(silent[0].silent)
        assert honest.connections == 0
        while not last:
            assert sum(1 for server in silent if server.silent.is_set() and not server.left.is_set()) <= 2
            await asyncio.sleep(0.01)
        assert last[0].outcome is Outcome.OK
        ended = [answers[0].outcome for answers in others if answers]
        assert len(ended) >= 3  # before there was a thread for the last
        assert set(ended) == {Outcome.STALLED}


@pytest.mark.parametrize("ending", ["close", "cut"])
async def test_what_waits_for_a_thread_is_never_asked(monkeypatch, ending):
    monkeypatch.setattr(threads, "MOST_THREADS", 1)
    silent, other = FtpServer(silent_at="USER"), FtpServer()
    async with (
        listening(silent.serve) as silent_port,
        listening(other.serve) as port,
        Client(timeout_s=LONG_S, connect_timeout_s=LONG_S) as client,
    ):
        begun(client, silent_port)
        visit, answers = begun(client, port)
        await until(silent.silent)
        assert client.curl.in_flight == 2
        if ending == "cut":
            client.curl.cut(visit, "for a reason")
            assert client.curl.in_flight == 2
        client.curl.close()
        assert len(answers) == 1
        await until(silent.left)
    assert other.connections == 0


async def test_a_body_that_no_disk_takes(tmp_path):
    server = FtpServer()
    async with listening(server.serve) as port, Client(folder=str(tmp_path / "none")) as client:
        answer = await client.get(f"ftp://site.test:{port}/pub/big")
        assert (answer.outcome, answer.detail[:8]) == (Outcome.BROKEN_OFF, "our disk")
        with pytest.raises(DiskFull):
            await client.get(url(port))


async def test_a_long_body_takes_its_time(monkeypatch):
    """Else threads would have the interpreter when the loop wants it."""
    slept = []
    monkeypatch.setattr(threads.time, "sleep", slept.append)
    monkeypatch.setitem(FILES, "long", bytes(range(256)) * 10_000)
    server = FtpServer()
    async with listening(server.serve) as port, Client() as client:
        answer = await client.get(f"ftp://site.test:{port}/pub/long")
        assert (answer.outcome, answer.body.read()) == (Outcome.OK, FILES["long"])
    assert sum(slept) >= len(FILES["long"]) / threads.RATE_BYTES_S
    assert min(slept) >= threads.PIECE_S
