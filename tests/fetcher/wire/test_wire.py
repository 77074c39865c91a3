"""What was sent and what was received are kept byte for byte."""

import asyncio
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fetcher.wire.conftest import Client, saying, web

from fyke.core.outcomes import Outcome
from fyke.core.urls import canonical

SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

TARGETS = st.text(string.ascii_letters + string.digits + string.punctuation, max_size=60).filter(
    lambda text: "#" not in text
)


async def test_request_is_recorded_exactly_as_sent():
    async with web(saying(SMALL)) as server, Client() as client:
        loop = asyncio.get_running_loop()

        async def check(url):
            answer = await client.get(url)
            assert answer.outcome is Outcome.OK, answer.detail
            assert answer.request == server.heads[-1]

        for host in ("site.test", "a-b.test", "a_b.test", "site.test.", "127.0.0.1", "xn--mnchen-3ya.test"):
            await check(canonical(server.url("/x/../y/%7e?q=1&%20", host)))
        await check(canonical(server.url("/a/%2e%2e/b//c/.")))

        seen = []

        @settings(max_examples=60, deadline=None, database=None)
        @given(TARGETS)
        def collect(target):
            seen.append(canonical(server.url("/" + target)))

        await loop.run_in_executor(None, collect)
        for url in seen:
            if url is not None:
                await check(url)


async def test_request_is_recorded_as_sent_after_an_old_answer():
    async def old(head, _reader, writer):
        version = b"HTTP/1.0" if b"/old" in head else b"HTTP/1.1"
        writer.write(version + b" 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi")

    async with web(old) as server, Client() as client:
        for target in ("/old", "/old", "/new", "/new", "/old", "/new"):
            answer = await client.get(server.url(target))
            assert answer.request == server.heads[-1]
            assert answer.effective_protocol == ("http/1.0" if target == "/old" else "http/1.1")
        assert server.connections == 1


CHUNKED_BODY = b"3;x=y\r\nabc\r\n05\r\ndefgh\r\n0\r\nTrailer: yes\r\n\r\n"
GZIPPED = b"\x1f\x8b\x08\x00" + bytes(range(40))
ANSWERS = {
    "plain": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd:  two  \r\nx-odd:\t3\r\n\r\n", b"hi"),
    "chunked": (b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNKED_BODY),
    "coded": (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 44\r\n\r\n", GZIPPED),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\n", b"hi"),
    "latin-1": (b"HTTP/1.1 200 \xe9\r\nX-B\xfcn: \xff\xfe\r\nContent-Length: 0\r\n\r\n", b""),
    "no reason": (b"HTTP/1.1 404\r\nContent-Length: 1\r\n\r\n", b"\0"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n", b""),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(
    "interim", [b"", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"]
)
async def test_answer_is_kept_exactly_as_received(name, interim):
    head, body = ANSWERS[name]
    for pieces in ((interim + head + body,), [bytes([byte]) for byte in interim + head + body]):
        async with web(saying(*pieces)) as server, Client() as client:
            for _ in range(3):
                answer = await client.get(server.url())
                assert answer.head == head
                assert answer.body.read() == body
                assert answer.truncated == ""
            assert server.connections == 1  # so the end was seen, transfer decoding or not


async def test_folded_fields_are_unfolded_by_libcurl():
    """Known and documented: the one change between the wire and `Exchange.head`."""
    script = saying(b"HTTP/1.1 200 OK\r\nX-Long: a\r\n  b\r\nContent-Length: 0\r\n\r\n")
    async with web(script) as server, Client() as client:
        assert (await client.get(server.url())).head == (b"HTTP/1.1 200 OK\r\nX-Long: a b\r\nContent-Length: 0\r\n\r\n")


async def test_body_until_the_connection_closes():
    async with web(saying(b"HTTP/1.0 200 OK\r\n\r\n", b"to the end", close=True)) as server, Client() as client:
        answer = await client.get(server.url())
        assert answer.body.read() == b"to the end"
        assert answer.outcome is Outcome.OK
