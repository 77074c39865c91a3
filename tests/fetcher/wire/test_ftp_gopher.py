"""What the answers of ftp and gopher servers mean."""

import asyncio
import socket
from itertools import product

import pytest
from tests.fetcher.wire.conftest import LOCAL, Client, listening
from tests.fetcher.wire.ftp_server import LISTING, FtpServer

from fyke.core.outcomes import Outcome
from fyke.core.urls import canonical

# gopher


@pytest.mark.parametrize(
    ("target", "sent", "body", "outcome"),
    [
        ("/0/about.txt", b"/about.txt\r\n", b"a text\r\n", Outcome.OK),
        ("/1/", b"/\r\n", b"1Home\t/\thost\t70\r\n.\r\n", Outcome.OK),
        ("/", b"\r\n", b"iHello\t\thost\t70\r\n.\r\n", Outcome.OK),
        ("/0/a%20b", b"/a b\r\n", b"x", Outcome.OK),
        ("/7/find%09word", b"/find\tword\r\n", b"1Hit\t/\thost\t70\r\n", Outcome.OK),
        ("/0/none", b"/none\r\n", b"", Outcome.CLIENT_ERROR),
        ("/1/none", b"/none\r\n", b".\r\n", Outcome.CLIENT_ERROR),
        ("/1/none", b"/none\r\n", b"3'/none' does not exist\terror.host\t1\r\n.\r\n", Outcome.CLIENT_ERROR),
        ("/0/none", b"/none\r\n", b"3not found\t\terror.host\t1\r\n", Outcome.CLIENT_ERROR),
        ("/0/three", b"/three\r\n", b"3 little pigs\r\n", Outcome.OK),
    ],
)
async def test_gopher(target, sent, body, outcome):
    received = []

    async def serve(reader, writer):
        received.append(await reader.readline())
        writer.write(body)
        writer.close()

    async with listening(serve) as port, Client() as client:
        answer = await client.get(canonical(f"gopher://site.test:{port}{target}"))
        assert (answer.outcome, answer.effective_protocol) == (outcome, "gopher"), answer.detail
        assert received == [sent]
        assert answer.body.read() == body
        assert (answer.request, answer.head) == (b"", b"")


@pytest.mark.parametrize("target", ["/0/a%0D%0AMAIL%20FROM:x", "/1%0AX", "/7/find%09a%0D%0Ab", "/0/a%00b"])
def test_a_gopher_selector_is_one_line(run, target):
    """A link cannot make us say lines to whatever server it names."""
    received = []

    async def serve(reader, writer):
        received.append(await reader.read(1000))
        writer.close()

    async def main():
        async with listening(serve) as port, Client() as client:
            answer = await client.get(canonical(f"gopher://site.test:{port}{target}"))
            assert answer.outcome is Outcome.UNSUPPORTED, answer.detail

    run(main())
    assert b"".join(received) == b""


# ftp


@pytest.mark.parametrize("extended", [True, False], ids=["EPSV", "PASV"])
async def test_ftp(extended):
    server = FtpServer(extended=extended)
    async with listening(server.serve) as port, Client() as client:
        site = f"ftp://site.test:{port}"
        answer = await client.get(f"{site}/pub/hello.txt")
        assert (answer.outcome, answer.status, answer.body.read()) == (Outcome.OK, 226, b"hello"), answer.detail
        assert (answer.request, answer.head, answer.effective_protocol) == (b"", b"", "ftp")
        answer = await client.get(f"{site}/pub/")
        assert (answer.outcome, answer.body.read()) == (Outcome.OK, LISTING.replace(b"\r\n", b"\n"))  # by libcurl
        answer = await client.get(f"{site}/pub/none")
        assert (answer.outcome, answer.status) == (Outcome.CLIENT_ERROR, 550)
        assert answer.detail == "550 no such file"
        answer = await client.get(f"{site}/none/none")
        assert (answer.outcome, answer.status) == (Outcome.CLIENT_ERROR, 550)
        users = [argument for command, argument in server.commands if command == "USER"]
        assert set(users) == {"anonymous"}
        assert ("PASS", "https://example.org/bot") in server.commands


@pytest.mark.parametrize(
    ("greeting", "refuse", "outcome", "status"),
    [
        (b"421 too many users", {}, Outcome.THROTTLED, 421),
        (b"220 hello", {"PASS": b"530 members only"}, Outcome.CLIENT_ERROR, 530),
        (b"220 hello", {"PASS": b"421 too many users"}, Outcome.THROTTLED, 421),
        (b"220 hello", {"RETR": b"450 busy"}, Outcome.SERVER_ERROR, 450),
        (b"300 what?", {}, Outcome.BAD_ANSWER, 300),
    ],
)
async def test_ftp_refusals(greeting, refuse, outcome, status):
    server = FtpServer(greeting, refuse=refuse)
    async with listening(server.serve) as port, Client(timeout_s=1, connect_timeout_s=1) as client:
        answer = await client.get(f"ftp://site.test:{port}/pub/hello.txt")
        assert (answer.outcome, answer.status) == (outcome, status), answer.detail


async def test_a_data_port_that_is_another_services_is_refused():
    """A server cannot have us connect to the mail server at its address, which may be somebody else's."""
    heard = []

    async def another(_reader, writer):
        heard.append(writer)
        writer.write(b"220 mail\r\n")
        writer.close()

    mail = next(port for port in (6667, 6566, 6697, 4190, 6668) if is_free(port))
    async with await asyncio.start_server(another, LOCAL, mail):
        for port, extended in product((0, 22, 25, 1023, mail), (True, False)):
            server = FtpServer(extended=extended, says_port=port)
            async with listening(server.serve) as control, Client(timeout_s=2, connect_timeout_s=2) as client:
                answer = await client.get(f"ftp://site.test:{control}/pub/hello.txt")
                assert (answer.outcome, answer.body.size) == (Outcome.BAD_ANSWER, 0), (port, answer.detail)
                assert f"port {port} for its data, which is for another service" in answer.detail or port == 0, (
                    answer.detail
                )
    assert not heard


def is_free(port):
    with socket.socket() as one:
        return one.connect_ex((LOCAL, port)) != 0


@pytest.mark.parametrize("target", ["/pub/a%0D%0ADELE%20hello.txt", "/pub%0ADELE%20x/hello.txt", "/pub/hello.txt%00"])
async def test_an_ftp_path_is_one_command(target):
    """A link cannot put commands of its own into what is said."""
    server = FtpServer()
    async with listening(server.serve) as port, Client(timeout_s=1, connect_timeout_s=1) as client:
        answer = await client.get(canonical(f"ftp://site.test:{port}{target}"))
        assert answer.outcome is not Outcome.OK
    assert not {"DELE", "RETR", "LIST"} & {command for command, _ in server.commands}


async def test_ftp_size_limit():
    server = FtpServer()
    async with listening(server.serve) as port, Client(max_body_bytes=1000) as client:
        answer = await client.get(f"ftp://site.test:{port}/pub/big")
        assert (answer.outcome, answer.truncated, answer.body.size) == (Outcome.TOO_LARGE, "length", 1000)


def test_a_greeting_without_end_is_broken_off(run):
    """libcurl counts the lines of no control connection: memory would hold all that come until the time is over."""
    sent = 0

    async def serve(reader, writer):
        nonlocal sent
        try:
            while sent < 1 << 26:
                writer.write(b"220-welcome\r\n" * 1000)
                sent += 13_000
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def main():
        async with listening(serve) as port, Client() as client:
            answer = await client.get(canonical(f"ftp://site.test:{port}/"))
            assert answer.outcome is Outcome.BAD_ANSWER, answer.detail
            assert "more than 64 KB before its body" in answer.detail

    run(main())
    assert sent < 1 << 24
