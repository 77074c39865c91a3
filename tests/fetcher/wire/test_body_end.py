"""A body ends where its last chunk does, or its length says, whatever other transfer codings the head names."""

import asyncio
import gzip
import zlib
from io import BytesIO

import pytest
from hypothesis import given, strategies
from tests.fetcher.wire.conftest import Client, saying, web

from fyke.core.codings import dechunk
from fyke.core.decoding import decode_body
from fyke.core.outcomes import Outcome
from fyke.core.slices import whole
from fyke.fetcher.wire import http
from fyke.fetcher.wire.body_end import MOST_LINE_BYTES, ChunkedEnd, LengthEnd, overlooked_end
from fyke.fetcher.wire.transfer import MOST_HEADS, MOST_LINES

PAGE = b"<p>A page of some length</p>" * 400
CODED = {
    b"gzip, chunked": gzip.compress(PAGE),
    b"GZIP ,\tChunked": gzip.compress(PAGE),
    b"deflate, chunked": zlib.compress(PAGE),
    b"gzip, deflate, chunked": zlib.compress(gzip.compress(PAGE)),
    b"identity, chunked": PAGE,
    b"gzip\r\nTransfer-Encoding: chunked": gzip.compress(PAGE),
    b"chunked": PAGE,
    b"chunked, chunked": PAGE,
}
EXTENSIONS = strategies.sampled_from([b"", b";a", b' ; a="b"', b"\t;" + b"x" * (3 * MOST_LINE_BYTES)])
CHUNKS = strategies.lists(strategies.tuples(strategies.binary(min_size=1, max_size=40), EXTENSIONS), max_size=8)
TRAILERS = strategies.lists(strategies.sampled_from([b"X: y", b"0", b"X: " + b"y" * 1000]), max_size=3)


def chunked(chunks: list[tuple[bytes, bytes]], trailers: list[bytes]) -> bytes:
    body = b"".join(b"%X%s\r\n%s\r\n" % (len(data), extension, data) for data, extension in chunks)
    return body + b"0\r\n" + b"".join(line + b"\r\n" for line in trailers) + b"\r\n"


def end_of(wire: bytes, sizes: list[int]) -> int | None:
    """Where the body ends in `wire`, if it comes in pieces of these sizes, and of one byte at last."""
    ending, at = ChunkedEnd(), 0
    while at < len(wire):
        piece = wire[at : at + (sizes.pop(0) if sizes else 1)]
        if (found := ending.within(piece)) is not None:
            return at + found
        at += len(piece)
    return None


@given(CHUNKS, TRAILERS, strategies.binary(max_size=20), strategies.lists(strategies.integers(1, 3000), max_size=9))
def test_the_end_is_found_wherever_the_wire_is_cut(
    chunks: list[tuple[bytes, bytes]], trailers: list[bytes], after: bytes, sizes: list[int]
) -> None:
    body = chunked(chunks, trailers)
    assert end_of(body + after, sizes) == len(body)
    assert end_of(body[:-1], sizes) is None


@given(strategies.binary(max_size=300), strategies.lists(strategies.integers(1, 300), max_size=9))
def test_an_end_is_found_only_where_a_decoder_finds_one(wire: bytes, sizes: list[int]) -> None:
    """Bytes in no chunks have none, so nothing of them is left out."""
    if end_of(wire, sizes) is not None:
        assert not whole(dechunk(BytesIO(wire), 1000)).fault


@pytest.mark.parametrize("fields", [b"", b"Content-Length: 5\r\n"])
@pytest.mark.parametrize("coding", CODED)
async def test_an_answer_in_more_codings_is_had_whole_on_a_connection_that_is_kept(
    coding: bytes, fields: bytes
) -> None:
    """The archive has the bytes of the wire, and nothing that came behind them."""
    coded = CODED[coding]
    wire = chunked([(coded[:50], b""), (coded[50:], b";x=y")], [b"X: y"])
    head = b"HTTP/1.1 200 OK\r\n%sTransfer-Encoding: %s\r\n\r\n" % (fields, coding)
    async with web(saying(head, wire, b"HTTP/1.1 200 OK\r\n")) as server, Client(timeout_s=20.0) as client:
        answer = await client.get(server.url())
        assert (answer.outcome, answer.detail, answer.truncated) == (Outcome.OK, "", "")
        assert answer.head == head
        assert answer.body.read() == wire
        decoded = decode_body(answer, 1 << 20)
        assert (decoded.content, decoded.fault) == (PAGE, "")


@given(strategies.integers(0, 2000), strategies.lists(strategies.integers(0, 1000), max_size=9))
def test_the_end_by_length_is_found_wherever_the_wire_is_cut(length: int, sizes: list[int]) -> None:
    ending, at = LengthEnd(length), 0
    for size in [*sizes, 3000]:
        if (found := ending.within(bytes(size))) is not None:
            assert at + found == length
            return
        at += size
        assert at < length


NO_CODINGS = [b"identity", b"Identity , identity", b"", b"none", b"identity\r\nTransfer-Encoding: identity"]


@pytest.mark.parametrize("size", [0, 1, len(PAGE)])
@pytest.mark.parametrize("coding", NO_CODINGS)
async def test_an_answer_in_no_coding_ends_at_its_length_on_a_connection_that_is_kept(coding: bytes, size: int) -> None:
    """libcurl waits for the end of the connection, browsers do not."""
    fields = [b"Content-Length: %d\r\n" % size, b"Transfer-Encoding: %s\r\n" % coding]
    for some in (fields, fields[::-1], [*fields, fields[0]]):
        head = b"HTTP/1.1 200 OK\r\n%s\r\n" % b"".join(some)
        async with web(saying(HINT, head, PAGE[:size], b"HTTP/1.1 200 OK\r\n")) as server, Client() as client:
            answer = await client.get(server.url())
            assert (answer.outcome, answer.detail, answer.truncated) == (Outcome.OK, "", "")
            assert (answer.head, answer.body.read()) == (head, PAGE[:size])


@pytest.mark.parametrize(
    "fields",
    [
        *("Transfer-Encoding: identity", "Content-Length: 5", "Transfer-Encoding: gzip\r\nContent-Length: 5"),
        *(
            "Transfer-Encoding: identity\r\nContent-Length: " + said
            for said in ("+5", "5x", "", "5\r\nContent-Length: 6")
        ),
        "Transfer-Encoding: identity\r\nContent-Length: " + "9" * 10_000,
    ],
)
def test_without_one_length_libcurl_decides(fields: str) -> None:
    assert overlooked_end(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode()) is None


async def test_its_limits_are_those_of_every_answer() -> None:
    wire = chunked([(b"x" * 5000, b"")], [])
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    for limit in (1000, len(wire) - 1, len(wire)):
        async with web(saying(head, wire)) as server, Client(timeout_s=20.0, max_body_bytes=limit) as client:
            answer = await client.get(server.url())
            assert answer.outcome is (Outcome.OK if limit == len(wire) else Outcome.TOO_LARGE)
            assert answer.body.read() == wire[:limit]


async def test_a_body_that_is_in_no_chunks_is_had_to_the_end_of_its_connection() -> None:
    async def script(_head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + gzip.compress(PAGE))
        await writer.drain()
        writer.close()

    async with web(script) as server, Client(timeout_s=20.0) as client:
        answer = await client.get(server.url())
        assert (answer.outcome, answer.body.read()) == (Outcome.OK, gzip.compress(PAGE))


HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.parametrize("many", [HINT, b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_a_flood_of_heads_is_read_a_few_times_at_most(many: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all that came were read at the end of each head, work would grow with its square."""
    read: list[int] = []
    reading = http._ending
    monkeypatch.setattr(http, "_ending", lambda lines: (read.append(len(lines)), reading(lines))[1])
    async with web(saying(many * 5000)) as server, Client(timeout_s=20.0) as client:
        answer = await client.get(server.url())
        assert answer.outcome is Outcome.BAD_ANSWER
    assert len(read) <= MOST_HEADS and sum(read) < MOST_HEADS * MOST_LINES // 10


@pytest.mark.parametrize("heads", [0, 1, MOST_HEADS - 1, MOST_HEADS])
async def test_an_answer_is_announced_a_few_times_at_most(heads: int) -> None:
    wire = chunked([(gzip.compress(PAGE), b"")], [])
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    async with web(saying(HINT * heads, head, wire)) as server, Client(timeout_s=20.0) as client:
        answer = await client.get(server.url())
        if heads < MOST_HEADS:
            assert (answer.outcome, answer.head, answer.body.read()) == (Outcome.OK, head, wire)
        else:
            assert (answer.outcome, answer.detail) == (
                Outcome.BAD_ANSWER,
                f"more than {MOST_HEADS} heads without an answer",
            )
