"""Decode after encode is the identity; caps hold; cut, corrupt and lying bodies give what is in them."""

import gzip
import struct
import zlib
from io import BytesIO

import brotli
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from alone import traced
from fyke.core import codings
from fyke.core.codings import MOST_IDLE_BYTES
from fyke.core.decoding import MAX_LAYERS, MOST_RATIO, decode_body, decode_in_time, decoding, expected_steps
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit

LIMIT = 128 << 20


def raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


def members(data: bytes) -> bytes:
    return gzip.compress(data[: len(data) // 2]) + gzip.compress(b"") + gzip.compress(data[len(data) // 2 :])


def frames(data: bytes) -> bytes:
    skippable = b"\x50\x2a\x4d\x18\x02\x00\x00\x00??"
    coder = zstandard.ZstdCompressor(write_content_size=False)
    return skippable + coder.compress(data[: len(data) // 2]) + coder.compress(data[len(data) // 2 :])


ENCODERS = {
    ("gzip", "one member"): gzip.compress,
    ("GZIP", "many members"): members,
    ("x-gzip", "garbage after"): lambda data: gzip.compress(data) + b"\0\0\0 garbage",
    ("deflate", "zlib"): zlib.compress,
    ("deflate", "raw"): raw_deflate,
    ("br", ""): brotli.compress,
    ("zstd", ""): zstandard.compress,
    ("zstd", "many frames"): frames,
    ("identity", ""): bytes,
}
LAYERS = st.lists(st.sampled_from(sorted(ENCODERS)), max_size=MAX_LAYERS)
BODIES = st.one_of(
    st.binary(max_size=3000),
    st.binary(max_size=50).flatmap(lambda unit: st.integers(1, 20_000).map(lambda times: unit * times)),
    st.text(max_size=3000).map(str.encode),
)


def answer(body: bytes, *codings: str, transfer: str = "") -> Exchange:
    head = b"HTTP/1.1 200 OK\r\n"
    if codings:
        head += b"Content-Encoding: " + ", ".join(codings).encode() + b"\r\n"
    if transfer:
        head += b"Transfer-Encoding: " + transfer.encode() + b"\r\n"
    visit = Visit("http://site.test/", 0, 0, 0)
    return Exchange(visit, Outcome.OK, 0.0, 0.0, head=head + b"\r\n", body=Document(body))


def chunk(data: bytes, size: int) -> bytes:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    lines = [f"{len(piece):x};a=b\r\n".encode() + piece + b"\r\n" for piece in pieces]
    return b"".join(lines) + b"0\r\nTrailer: x\r\n\r\n"


@given(BODIES, LAYERS, st.integers(0, 5000))
@example(b"<p>the same again\n" * 60_000, [("br", "")], 0)
@example(b"<p>the same again\n" * 60_000, [("zstd", "")], 0)
def test_decode_undoes_encode(data, layers, chunk_size):
    coded = data
    for layer in layers:
        coded = ENCODERS[layer](coded)
    names = [name for name, _ in layers]
    exchange = answer(chunk(coded, chunk_size), *names, transfer="chunked") if chunk_size else answer(coded, *names)
    assert decode_body(exchange, LIMIT, 1_000_000)[:2] == (data, "")


@given(st.binary(max_size=400), LAYERS, st.sampled_from(["", "chunked", "gzip, chunked"]))
def test_nothing_a_server_sends_raises(data, layers, transfer):
    decoded = decode_body(answer(data, *(name for name, _ in layers), transfer=transfer), LIMIT)
    assert len(decoded.content) <= max(len(data) * MOST_RATIO, 1)


CODED = [key for key in ENCODERS if key[0] != "identity"]


@pytest.mark.parametrize("layer", CODED, ids="-".join)
@given(data=st.binary(min_size=200, max_size=3000), cut=st.floats(0.0, 0.99))
def test_a_cut_body_gives_its_beginning(layer, data, cut):
    coded = ENCODERS[layer](data)
    coded = coded[: int(len(coded) * cut)]
    content, *_ = decode_body(answer(coded, layer[0]), LIMIT)
    assert data.startswith(content) or content == coded


@pytest.mark.parametrize("layer", [("gzip", "one member"), ("deflate", "zlib"), ("br", ""), ("zstd", "")], ids="-".join)
@given(data=st.binary(min_size=1, max_size=300), cut=st.integers(1, 300))
def test_a_cut_is_told(layer, data, cut):
    """Of zstd it was not: what a server's robots.txt forbade at its end was asked for."""
    coded = ENCODERS[layer](data)
    coded = coded[: -(cut % len(coded)) or None]
    content, fault, _, is_broken = decode_body(answer(coded, layer[0]), LIMIT)
    assert bool(fault) == (coded != ENCODERS[layer](data))
    assert is_broken or content in (coded, data)


IDLE = {
    "skippable frames": b"\x50\x2a\x4d\x18\0\0\0\0",
    "frames": b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00",
    "long skippable frames": b"\x50\x2a\x4d\x18\0\0\1\0" + bytes(1 << 16),
}


@pytest.mark.parametrize("unit", IDLE.values(), ids=IDLE)
def test_zstd_that_brings_nothing_is_given_up(unit):
    """It was read to its end, in one slice."""
    stream = BytesIO(unit * ((4 << 20) // len(unit)))
    slices, before, most = codings.unzstd(stream, LIMIT), 0, 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            assert "more than" in end.value.fault
            break
        before, most = stream.tell(), max(most, stream.tell() - before)
    assert before <= MOST_IDLE_BYTES + (64 << 10) and most <= 64 << 10


@pytest.mark.parametrize("layer", CODED, ids="-".join)
def test_a_header_that_lies_gives_the_plain_bytes(layer):
    for body in (b"<!doctype html><title>plain</title>" + b"<p>text" * 50, b"plain", b'{"a": 1}', b"\xff\xfe\x00"):
        content, fault, *_ = decode_body(answer(body, layer[0]), LIMIT)
        assert content == body
        assert fault


@pytest.mark.parametrize("layer", [*CODED, ("chunked", "")], ids="-".join)
def test_an_empty_body_is_sound(layer):
    assert decode_body(answer(b"", layer[0]), LIMIT)[:2] == (b"", "")


@pytest.mark.parametrize("layer", CODED, ids="-".join)
@pytest.mark.parametrize("limit", [100_000, LIMIT])
def test_a_bomb_stops_at_the_cap(layer, limit):
    bomb = ENCODERS[layer](bytes(64 << 20))
    cap = min(limit, MOST_RATIO * len(bomb))
    (content, fault, is_cut, _), peak = traced(decode_body, answer(bomb, layer[0]), limit)
    assert content == bytes(cap)
    assert is_cut
    assert "more than" in fault
    assert peak < 2 * cap + (2 << 20)


def test_a_bomb_in_a_bomb_stops_at_the_cap():
    bomb = gzip.compress(brotli.compress(bytes(64 << 20)))
    content, fault, *_ = decode_body(answer(bomb, "br", "gzip"), 10_000, 1_000_000)
    assert content == bytes(10_000)
    assert "more than" in fault


def test_of_layers_as_large_as_their_content_one_is_in_memory():
    cap = 16 << 20
    stored = gzip.compress(gzip.compress(bytes(range(256)) * (cap >> 8), 0), 0)
    (content, fault, *_), peak = traced(decode_body, answer(stored, "gzip", "gzip"), cap + (64 << 10), 1_000_000)
    assert content == bytes(range(256)) * (cap >> 8) and not fault
    assert peak < 1.5 * cap


def test_a_corrupt_stream_gives_what_came_before():
    data = b"".join(b"%d " % n for n in range(400_000))
    coded = bytearray(gzip.compress(data))
    coded[len(coded) // 2] ^= 0xFF
    coded[len(coded) // 2 + 1] ^= 0xFF
    content, fault, *_ = decode_body(answer(bytes(coded), "gzip"), LIMIT)
    assert len(content) > len(data) // 4
    assert fault


SIZES = st.none() | st.sampled_from([0, 1, 3000, 0xFFFF])
HEADERS = st.tuples(SIZES, SIZES, SIZES, st.booleans())


def member(data: bytes, extra: int | None, name: int | None, comment: int | None, has_sum: bool) -> bytes:
    """A member of gzip whose header has parts of these sizes (RFC 1952, 2.3)."""
    has = has_sum << 1 | (extra is not None) << 2 | (name is not None) << 3 | (comment is not None) << 4
    head = b"\x1f\x8b\x08" + bytes([has]) + bytes(6)
    head += b"" if extra is None else struct.pack("<H", extra) + b"x" * extra
    head += b"".join(b"n" * size + b"\0" for size in (name, comment) if size is not None)
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF) if has_sum else b""
    return head + raw_deflate(data) + struct.pack("<LL", zlib.crc32(data), len(data))


@given(st.lists(st.tuples(BODIES, HEADERS), min_size=1, max_size=3), st.binary(max_size=3), st.floats(0.0, 1.0))
def test_gzip_is_read_whatever_its_headers_have(parts, after, cut):
    data = b"".join(data for data, _ in parts)
    coded = b"".join(member(data, *header) for data, header in parts)
    assert gzip.decompress(coded) == data
    assert decode_body(answer(coded + after, "gzip"), len(data), 1_000_000)[:2] == (data, "")
    coded = coded[: int(len(coded) * cut)]
    content, *_ = decode_body(answer(coded, "gzip"), len(data), 1_000_000)
    assert data.startswith(content) or content == coded


SUMS = {"gzip": 8, "deflate": 4}  # bytes behind the content: a sum, of gzip also the length


@pytest.mark.parametrize("coding", SUMS)
@given(BODIES.filter(bool), HEADERS, st.integers(0, 7), st.integers(1, 255))
@example(b"<p>the same again\n" * 60_000, (None, None, None, False), 0, 1)
def test_content_whose_sum_is_wrong_is_kept_and_the_damage_told(coding, data, header, place, wrong):
    """As browsers keep it: what a sum says comes after the page was shown. The end of the content was lost."""
    coded = bytearray(member(data, *header) if coding == "gzip" else zlib.compress(data))
    coded[-1 - place % SUMS[coding]] ^= wrong
    content, fault, is_cut, is_broken = decode_body(answer(bytes(coded), coding), len(data), 1_000_000)
    assert content == data
    assert (fault, is_cut, is_broken) == (f"{coding} is corrupt", False, True)


def test_so_is_content_whose_header_has_a_wrong_sum():
    coded = bytearray(member(b"hello", 5, 4, None, True))
    coded[12] ^= 1
    assert decode_body(answer(bytes(coded), "gzip"), LIMIT) == (b"hello", "gzip is corrupt", False, True)


def test_a_header_without_an_end_is_given_up():
    coded = b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (2 * MOST_IDLE_BYTES)
    content, fault, is_cut, _ = decode_body(answer(coded, "gzip"), LIMIT)
    assert content == b"" and is_cut
    assert "unfold to nothing" in fault


@pytest.mark.parametrize(
    ("body", "content", "fault"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello", ""),
        (b"5\nhello\n0\n\n", b"hello", ""),
        (b"  5  ; a\r\nhello\r\n000\r\n\r\n", b"hello", ""),
        (b"5 loose words\r\nhello\r\n0 more\r\n\r\n", b"hello", ""),
        (b"5\r\nhello\r\n", b"hello", "chunked is cut"),
        (b"5\r\nhel", b"hel", "chunked is cut"),
        (b"5\r\nhello\r\nzz\r\n", b"hello", "chunked is corrupt"),
        (b"5\r\nhello\r\n-1\r\n", b"hello", "chunked is corrupt"),
        (b"5;" + b"a" * 100_000 + b"\r\nhello\r\n0;" + b"b" * 100_000 + b"\r\n\r\n", b"hello", ""),
        (b"5;" + b"a" * (16384 - 2) + b"\nhello\n0\n\n", b"hello", ""),  # its end is the first of a piece
        (b"5\r\nhello\r\n5;" + b"a" * 100_000, b"hello", "chunked is corrupt"),
        (b"<html>not at all", b"<html>not at all", "body is not chunked"),
        (b"fffffffffffffff\r\nhi", b"hi", "chunked is cut"),
    ],
)
def test_chunks(body, content, fault):
    assert decode_body(answer(body, transfer="chunked"), LIMIT)[:2] == (content, fault)


@pytest.mark.parametrize(
    "transfer", ["chunked, chunked", "chunked\r\nTransfer-Encoding: chunked", "chunked, gzip, Chunked"]
)
def test_a_body_is_chunked_once_however_often_that_is_named(transfer):
    """Else the lines with the sizes of chunks stand in the middle of pages, and of rules of robots.txt."""
    body = gzip.compress(b"hello") if "gzip" in transfer else b"hello"
    exchange = answer(chunk(body, 2), transfer=transfer)
    assert decode_body(exchange, LIMIT) == (b"hello", "", False, False)
    assert expected_steps(exchange) < float("inf")


def test_layers_are_undone_in_order_and_limited():
    body = gzip.compress(b"hello")
    assert decode_body(answer(chunk(body, 3), transfer="gzip, chunked"), LIMIT)[:2] == (b"hello", "")
    too_many = decode_body(answer(body, *["gzip"] * (MAX_LAYERS + 1)), LIMIT)
    assert too_many.content == body
    assert "codings" in too_many.fault


def test_an_unknown_coding_is_passed_over():
    content, fault, *_ = decode_body(answer(gzip.compress(b"hello"), "utf-8", "gzip"), LIMIT)
    assert content == b"hello"
    assert "utf-8" in fault


@pytest.mark.parametrize("coding", ["gzip", "chunked"])
def test_a_stream_of_crumbs_is_cut(coding):
    """Each costs as much as kilobytes do, and a body has room for millions: what comes first is read."""
    crumb = gzip.compress(b"xy") if coding == "gzip" else b"2\r\nxy\r\n"
    most = codings._MOST_MEMBERS if coding == "gzip" else codings._MOST_CHUNKS
    exchange = answer(
        crumb * (most + 1), "gzip" if coding == "gzip" else "", transfer="" if coding == "gzip" else coding
    )
    content, fault, is_cut, _ = decode_body(exchange, LIMIT)
    assert content == b"xy" * most
    assert is_cut
    assert "has more than" in fault


# Four empty blocks of DEFLATE: they take work, and bring nothing.
FIXED = bytes.fromhex("0208208000")
GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"


def empties(size: int) -> bytes:
    return GZIP_HEAD + FIXED * (size // len(FIXED))


@pytest.mark.parametrize("names", [["gzip"], ["gzip", "gzip"], ["gzip", "gzip", "gzip"]], ids=len)
def test_what_brings_nothing_is_given_up(names):
    """However few bytes it is on the wire: work is bounded by what goes into a layer."""
    body = empties(16 << 20)
    for _ in names[1:]:
        body = gzip.compress(body)
    exchange = answer(body, *names)
    taken, work = [], decoding(exchange, LIMIT, 1_000_000)
    try:
        while True:
            taken.append(next(work))
    except StopIteration as end:
        decoded = end.value
    assert decoded.content == b"" and decoded.is_cut
    assert "unfold to nothing" in decoded.fault
    assert sum(taken) < 3 * (MOST_IDLE_BYTES + (16 << 20) // 512) + len(body)


def test_content_behind_a_little_that_brings_nothing_is_read():
    body = GZIP_HEAD + FIXED * 1000 + raw_deflate(b"hello")
    assert decode_body(answer(body, "gzip"), LIMIT).content == b"hello"


@pytest.mark.parametrize("layer", CODED, ids="-".join)
def test_work_comes_in_units_of_some_hundred_steps(layer):
    """None takes more than a slice may, and together they take no more than was expected."""
    data = bytes(range(256)) * 2000 + b"".join(b"%d " % number for number in range(100_000))
    exchange = answer(ENCODERS[layer](data), layer[0])
    steps = [*decoding(exchange, LIMIT)]
    assert len(steps) > 1
    assert max(steps) <= 1 + codings._PIECE + codings._STEP // 512
    assert sum(steps) <= expected_steps(exchange) + len(data) // 512 + len(steps)


def test_who_is_late_is_told_so():
    exchange = answer(empties(1 << 19), "gzip")
    asked = []
    assert decode_in_time(exchange, LIMIT, lambda: asked.append(1) or len(asked) == 3) is None
    assert len(asked) == 3
    assert decode_in_time(exchange, LIMIT, lambda: False) == decode_body(exchange, LIMIT)
    short = answer(gzip.compress(b"hello"), "gzip")
    assert decode_in_time(short, LIMIT, lambda: True).content == b"hello"


def test_what_a_body_may_take_is_known_before():
    body = b"x" * 8000
    assert expected_steps(answer(body)) == 0
    assert 0 < expected_steps(answer(body, "deflate")) < expected_steps(answer(body, "gzip")) <= len(body)
    assert expected_steps(answer(body, "gzip", "gzip")) == expected_steps(answer(body, "gzip", "br")) == float("inf")
    assert expected_steps(answer(b"", "gzip", "gzip")) == 0
