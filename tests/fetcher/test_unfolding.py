"""Laws of robots.txt files that take long to unfold: nobody waits for them, and all that may wait come."""

import asyncio
import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import brotli
import pytest
import zstandard

from fyke.core.clock import SystemClock
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.pace import Pace
from fyke.core.slices import Slicer
from fyke.core.visits import Exchange, robots_visit
from fyke.fetcher import unfolding
from fyke.fetcher.unfolding import AT_ONCE, MOST_WAITING, WIRE_BYTES, Unfolding

EMPTY_BLOCKS = bytes.fromhex("0208208000")
RULES = b"User-agent: *\nDisallow: /\n"


def answer(number: int, body: bytes, *names: str) -> Exchange:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: " + ", ".join(names).encode() + b"\r\n\r\n"
    origin = f"http://h{number}.test:80"
    visit = robots_visit(f"{origin}/robots.txt", origin)
    return Exchange(visit, Outcome.OK, 0.0, 0.0, status=200, head=head, body=Document(body))


def heavy(number: int) -> Exchange:
    """Rules behind half a megabyte of blocks that bring nothing, which takes a fifth of a second."""
    body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + EMPTY_BLOCKS * 100_000 + gzip.compress(RULES, mtime=0)[10:]
    return answer(number, body, "gzip")


def short(number: int) -> Exchange:
    return answer(number, gzip.compress(RULES), "gzip")


def played(work: Callable[[Unfolding, Slicer], None]) -> None:
    async def run() -> None:
        slicer = Slicer(lambda: None, Pace(SystemClock()).share())
        work(Unfolding(slicer, 516 << 10), slicer)
        slicer.stop()

    asyncio.run(run())


def test_what_takes_long_is_done_in_slices() -> None:
    came: list[tuple[str, bytes]] = []

    def then(of: Exchange, content: bytes) -> None:
        came.append((of.visit.robots_of, content))

    def work(unfolding: Unfolding, slicer: Slicer) -> None:
        for number in range(3):
            exchange = heavy(number)
            assert unfolding.read(exchange, then)
            exchange.body.close()  # it is archived
        assert not came
        assert unfolding.read(short(3), then)
        assert [content for _, content in came] == [RULES]
        slices = 0
        while slicer:
            slicer._slice()
            slices += 1
        assert slices > 100
        assert sorted(came) == [(f"http://h{number}.test:80", RULES) for number in range(4)]

    played(work)


def test_rules_whose_rest_is_lost_in_their_coding_could_not_be_had() -> None:
    """It may forbid something. Plain text in the place of a coding is read, and so is as much as is ever read."""
    lines = b"".join(b"Disallow: /%x\n" % (number * 7919**3) for number in range(500)) + RULES
    packed = gzip.compress(lines)
    corrupt = packed[:1000] + bytes(byte ^ 255 for byte in packed[1000:1010]) + packed[1010:]
    met: list[tuple[Outcome, str, bytes]] = []

    def then(of: Exchange, content: bytes) -> None:
        met.append((of.outcome, of.detail, content))

    def work(unfolding: Unfolding, slicer: Slicer) -> None:
        for body in (packed[:-20], corrupt, lines, packed, b"\n", gzip.compress(lines + b"#" * (600 << 10))):
            assert unfolding.read(answer(0, body, "gzip"), then)
            while slicer:
                slicer._slice()
        cut_by_us = replace(answer(0, packed[:-20], "gzip"), outcome=Outcome.TOO_LARGE)
        assert unfolding.read(cut_by_us, then)
        while slicer:
            slicer._slice()

    played(work)
    assert met[0] == (Outcome.BROKEN_OFF, "gzip is cut", b"")
    assert met[1] == (Outcome.BROKEN_OFF, "gzip is corrupt", b"")
    assert met[2:4] == [(Outcome.OK, "", lines)] * 2
    assert met[4] == (Outcome.OK, "", b"\n")
    assert met[5][0] is Outcome.OK and met[5][2].startswith(lines)
    assert met[6] == (Outcome.BROKEN_OFF, "gzip is cut", b"")


FORBIDS = b"User-agent: *\nAllow: /a\n" * 20 + RULES
NOT_HAD = {
    "zstd, its end": ("zstd", zstandard.compress(FORBIDS)[:-1]),
    "zstd, all but its beginning": ("zstd", zstandard.compress(FORBIDS)[:3]),
    "br, all but its beginning": ("br", brotli.compress(FORBIDS)[:1]),
    "br with a large window, all but its beginning": ("br", b"["),
    "br, behind what brings nothing": ("br", bytes.fromhex("0b") + bytes.fromhex("0d0f00") + bytes(1 << 20)),
    "deflate, behind what brings nothing": ("deflate", b"\0\0\0\xff\xff" * 200_000 + zlib.compress(FORBIDS)),
    "zstd in gzip": ("zstd, gzip", gzip.compress(zstandard.compress(FORBIDS)[:-9])),
    "a skippable frame": ("zstd", b"\x50\x2a\x4d\x18\xff\xff\0\0" + zstandard.compress(FORBIDS)),
    "behind what brings nothing, in zstd": (
        "zstd",
        b"\x50\x2a\x4d\x18\0\0\0\0" * 200_000 + zstandard.compress(FORBIDS),
    ),
    "behind members without content": ("gzip", gzip.compress(b"") * 60_000 + gzip.compress(FORBIDS)),
    "in a coding that was not offered": ("xz", lzma.compress(FORBIDS)),
    "in another one": ("bzip2", bz2.compress(FORBIDS)),
}


@pytest.mark.parametrize(("coding", "body"), NOT_HAD.values(), ids=NOT_HAD)
def test_rules_that_did_not_come_whole_could_not_be_had(coding: str, body: bytes) -> None:
    met: list[Outcome] = []

    def work(unfolding: Unfolding, slicer: Slicer) -> None:
        assert unfolding.read(answer(0, body, coding), lambda of, content: met.append(of.outcome))
        while slicer:
            slicer._slice()

    played(work)
    assert met == [Outcome.BROKEN_OFF]


def test_rules_that_are_packed_and_do_not_say_so_could_not_be_had() -> None:
    """They may forbid something, and as text they say nothing."""
    lines = b"".join(b"Disallow: /%x\n" % number for number in range(500)) + RULES
    in_zstd = zstandard.compress(lines)
    zipped = BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("robots.txt", lines)
    bodies = [
        (gzip.compress(lines), ()),
        (gzip.compress(gzip.compress(lines)), ("gzip",)),
        (gzip.compress(lines), ("identity",)),
        (gzip.compress(lines), ("br",)),
        (gzip.compress(lines), ("gzip", "gzip", "gzip", "gzip")),
        (in_zstd, ()),
        (b"\x1f\x9d\x90" + lines, ("compress",)),
        (zipped.getvalue(), ()),
        (bz2.compress(lines), ()),
        (lzma.compress(lines), ()),
        (b"7z\xbc\xaf\x27\x1c\0\4" + bytes(100), ()),
    ]
    met: list[tuple[Outcome, str, bytes]] = []

    def then(of: Exchange, content: bytes) -> None:
        met.append((of.outcome, of.detail, content))

    def work(unfolding: Unfolding, slicer: Slicer) -> None:
        for body, names in bodies:
            for outcome in (Outcome.OK, Outcome.TOO_LARGE):
                assert unfolding.read(replace(answer(0, body, *names), outcome=outcome), then)
                while slicer:
                    slicer._slice()
        assert met == [(Outcome.BROKEN_OFF, "it is packed, but does not say how", b"")] * 2 * len(bodies)
        met.clear()
        for body, names in [(gzip.compress(gzip.compress(lines)), ("gzip", "gzip")), (in_zstd, ("zstd",)), (b"", ())]:
            assert unfolding.read(answer(0, body, *names), then)
            while slicer:
                slicer._slice()
        assert [content for _, _, content in met] == [lines, lines, b""]
        missing = replace(answer(0, gzip.compress(b"none"), ""), outcome=Outcome.CLIENT_ERROR, status=404)
        assert unfolding.read(missing, then)
        assert met[-1][0] is Outcome.CLIENT_ERROR

    played(work)


def test_few_are_unfolded_beside_each_other_those_first_that_take_least() -> None:
    came: list[bytes] = []

    def then(of: Exchange, content: bytes) -> None:
        came.append(content)

    def work(unfolding: Unfolding, slicer: Slicer) -> None:
        for number in range(AT_ONCE + 2):
            assert unfolding.read(heavy(number), then)
        lines = b"".join(b"Disallow: /%x\n" % (number * 7919**3) for number in range(2000))
        assert unfolding.read(answer(99, gzip.compress(lines), "gzip"), then)
        assert len(slicer) == AT_ONCE
        while slicer:
            slicer._slice()
        assert came.index(lines) <= AT_ONCE and len(came) == AT_ONCE + 3

    played(work)


def test_of_too_many_it_is_said_that_they_cannot_be_had(monkeypatch) -> None:
    monkeypatch.setattr(unfolding, "MOST_WAITING", 3)
    monkeypatch.setattr(unfolding, "MEMORY_BYTES", 1)  # they wait on disk

    def work(unfolding: Unfolding, slicer: Slicer) -> None:
        came: list[bytes] = []
        read = [unfolding.read(heavy(number), lambda _, content: came.append(content)) for number in range(AT_ONCE + 5)]
        assert read == [True] * (AT_ONCE + 3) + [False] * 2
        while slicer:
            slicer._slice()
        assert came == [RULES] * (AT_ONCE + 3)

    played(work)


def test_bounds() -> None:
    assert WIRE_BYTES >= 2 * (500 << 10)  # RFC 9309, 2.5, in any coding
    assert MOST_WAITING * WIRE_BYTES <= 1 << 30  # on disk
