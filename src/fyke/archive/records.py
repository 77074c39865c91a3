"""One exchange as WARC/1.1 records (ISO 28500:2017): bytes in, bytes out, no files.

`fyke.archive.warc` calls it for every exchange and writes the result. Each record is one gzip member. The block of a
response is the head and the body as the wire had them. The payload digest is the SHA-1 of the body *with* its chunk
framing and content coding. The standard's "payload" would be the entity inside, but warcio and fastwarc both digest the
bytes after the header's blank line, and a digest that no tool can confirm is worth nothing. The tools differ in two
points, and we follow the standard and warcio in both:

- Revisit records: the standard wants the payload digest of the original. warcio knows that it cannot be checked;
  `fastwarc check -p` calls it a failure.
- Heads with lines that end in a bare line feed: fastwarc misses their end.

One digest is enough, because readers identify and confirm a body by the payload's. The checksum of the gzip member,
which every reader verifies, guards the rest of a record.

Speed: request and metadata records have a few hundred bytes, and Huffman tables cost more than they save. They are
compressed with isal's level 0 (0.8 µs against 4.6 µs, a third larger), the response with level 2. A body that came
compressed is stored as it is. Headers stay text until they are complete, because f-strings are made faster than bytes.

Invariant: a record's Content-Length and digest speak of exactly the bytes given.
"""

import os
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha1
from itertools import count
from time import gmtime, strftime
from typing import NamedTuple

from isal import isal_zlib

from fyke.core.batches import Kind
from fyke.core.document import Document, Packed
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Purpose

OCTETS = "application/octet-stream"  # the media type of unknown content
GZIP = 31  # zlib's window bits for "gzip, largest window"
BODY_LEVEL = 2
SMALL_LEVEL = 0
CHUNK_BYTES = 1 << 18
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
MAX_HOPS = 64  # for longer paths only `depth` is written

KINDS = {int(kind): kind.name.lower() for kind in Kind}

_END = b"\r\n\r\n"
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE32 = [
    first + second for first in _DIGITS for second in _DIGITS
]  # two at a time; `base64` takes five times as long
_PLACES = range(150, -1, -10)  # of 160 bits
# Characters that end a line, or a text, for some reader of a record's fields.
_CONTROL = re.compile(r"[\0-\x08\n-\x1f\x7f]")
# Heads of bodies that came compressed: by their content encoding, or by their media type.
_CODED = re.compile(
    rb"\n(?:content-encoding:[ \t]*(?:gzip|x-gzip|deflate|br|zstd)"
    rb"|content-type:[ \t]*(?:image/(?:jpeg|png|gif|webp|avif)|video/|font/woff|application/(?:zip|gzip|x-gzip)))",
    re.IGNORECASE,
)
_MEMBER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # the header of a gzip member, with no name and no time
_STORED = struct.Struct("<BHH")  # last block or not, size, size inverted
_TRAILER = struct.Struct("<II")
_MOST_STORED = 0xFFFF
_ZEROS = bytes(CHUNK_BYTES)


class Original(NamedTuple):
    """The earlier record that a revisit stands for: its URL, its WARC-Date, the digest of its payload."""

    url: str
    date: str
    digest: str


class RecordIds:
    """Unique record names, made without asking for randomness each time.

    A name is 64 random bits of this process and a counter, laid out as a version 4 UUID. A crawl that starts again is a
    new process with new bits.
    """

    __slots__ = ("_numbers", "_prefix")

    def __init__(self) -> None:
        random = os.urandom(8).hex()
        self._prefix = f"<urn:uuid:{random[:8]}-{random[8:12]}-4{random[12:15]}-8"
        self._numbers = count()

    def three(self) -> tuple[str, str, str]:
        """Return names for a request, its response and its metadata."""
        number = next(self._numbers)
        stem = f"{self._prefix}{number >> 44 & 0xFFF:03x}-{number & 0xFFFFFFFFFFF:011x}"
        return f"{stem}0>", f"{stem}1>", f"{stem}2>"


class Dates:
    """Unix seconds as WARC-Date, with the last whole second remembered."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def warc(self, at: float) -> str:
        """Return `at` to the microsecond: 2026-01-31T12:00:00.000001Z."""
        micros = round(at * 1e6)
        second, rest = divmod(micros, 1_000_000)
        if second != self._second:
            self._text = strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))
            self._second = second
        return f"{self._text}.{rest:06d}Z"


def digest_text(digest: bytes) -> str:
    """Return `sha1:` and the Base32 of the SHA-1 `digest`, as archives write it."""
    number = int.from_bytes(digest)
    return f"sha1:{''.join([_BASE32[number >> place & 1023] for place in _PLACES])}"


def small_member(header: str, block: bytes) -> bytes:
    """Return a whole short record as a gzip member; `header` lacks length and blank line."""
    return isal_zlib.compress(
        b"".join((f"{header}Content-Length: {len(block)}\r\n\r\n".encode(), block, _END)), SMALL_LEVEL, GZIP
    )


def warcinfo_member(record_id: str, date: str, file_name: str, fields: Mapping[str, str]) -> bytes:
    """Return the record that opens a file and says who wrote it, and how."""
    header = (
        f"WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: {record_id}\r\nWARC-Date: {date}\r\n"
        f"WARC-Filename: {file_name}\r\nContent-Type: application/warc-fields\r\n"
    )
    return small_member(header, _fields(fields))


def request_member(common: str, ids: tuple[str, str, str], request: bytes) -> bytes:
    """Return the request as it was sent; `common` is from `common_header`."""
    header = (
        f"WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: {ids[0]}\r\nWARC-Concurrent-To: {ids[1]}\r\n{common}"
        "Content-Type: application/http; msgtype=request\r\n"
    )
    return small_member(header, request)


def metadata_member(common: str, ids: tuple[str, str, str], block: bytes) -> bytes:
    """Return the metadata record; `block` is from `metadata_fields`."""
    header = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {ids[2]}\r\nWARC-Concurrent-To: {ids[1]}\r\n{common}"
        "Content-Type: application/warc-fields\r\n"
    )
    return small_member(header, block)


def metadata_fields(exchange: Exchange, via: str, charset: str, duplicate: bool = False) -> bytes:
    """Return the block of the metadata record: `via`, `hopsFromSeed` and `fetchTimeMs` as Heritrix has them.

    Every hop is an L (link), except a last hop to a requisite, an E (embed); `depth` is their number. Fields from
    `outcome` on are for pages alone: with them the archive holds all that the table of pages says of an answer. Each
    line of the head of a 304 is a field `answered`.
    """
    visit = exchange.visit
    text = f"depth: {visit.depth}\r\nfetchTimeMs: {round(exchange.duration_s * 1000)}\r\n"
    if via:
        text = f"via: {via}\r\n{text}"
    if 0 < visit.depth <= MAX_HOPS:
        text += f"hopsFromSeed: {'L' * (visit.depth - 1)}{'E' if visit.kind == Kind.REQUISITE else 'L'}\r\n"
    if visit.purpose is Purpose.PAGE:
        text += f"outcome: {exchange.outcome}\r\nkind: {KINDS[visit.kind]}\r\n"
        text += f"tries: {visit.tries}\r\n" if visit.tries else ""
        text += f"viaKey: {visit.via}\r\n" if visit.via else ""
        text += "duplicate: yes\r\n" if duplicate else ""
    elif visit.purpose is Purpose.PROBE:
        text += f"kind: {KINDS[visit.kind]}\r\n"
    if not_modified(exchange):
        text += "".join(f"answered: {line}\r\n" for line in _lines(exchange.head))
    if charset:
        text += f"charset: {charset}\r\n"
    if exchange.detail:
        text += f"detail: {' '.join(exchange.detail.split())}\r\n"
    return text.encode("utf-8", "replace")


def _lines(head: bytes) -> Iterator[str]:
    """Yield the lines of a message head that are not blank, as Latin-1, split as `fyke.core.visits.headers_of` splits
    them.

    Control characters become blanks, so that a server cannot write our fields.
    """
    for line in head.decode("latin-1").split("\n"):
        plain = _CONTROL.sub(" ", line.rstrip("\r"))
        if plain.strip():
            yield plain


def common_header(url: str, date: str) -> str:
    """Return the fields that all records of one exchange share."""
    return f"WARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"


def wire_header(exchange: Exchange) -> str:
    """Return the fields of request and response about the connection between them."""
    address = f"WARC-IP-Address: {exchange.address}\r\n" if exchange.address else ""
    protocol = f"WARC-Protocol: {exchange.effective_protocol}\r\n" if exchange.effective_protocol else ""
    return address + protocol


def response_header(exchange: Exchange, record_id: str, common: str, media_type: str) -> str:
    """Return the first fields of a `response`, or of a `resource` for protocols without a message head."""
    if exchange.head:
        what, content_type = "response", "application/http; msgtype=response"
    else:
        what, content_type = "resource", media_type or OCTETS
    truncated = f"WARC-Truncated: {exchange.truncated}\r\n" if exchange.truncated else ""
    return (
        f"WARC/1.1\r\nWARC-Type: {what}\r\nWARC-Record-ID: {record_id}\r\n{common}"
        f"Content-Type: {content_type}\r\n{truncated}"
    )


def has_payload_of(exchange: Exchange, original: Original) -> bool:
    """Return whether the answer has the payload of `original`: the digests agree, or it is a 304 that was asked for.

    An answer without a head, or one that was cut, never has it, because a revisit record could not say so.
    """
    if not exchange.head or exchange.truncated:
        return False
    same = exchange.body.size > 0 and _digest(exchange.body) == original.digest
    return same or not_modified(exchange)


def not_modified(exchange: Exchange) -> bool:
    """Return whether the answer is a 304 that was asked for."""
    return exchange.status == 304 and exchange.outcome is Outcome.UNCHANGED


def revisit_header(exchange: Exchange, record_id: str, common: str, original: Original) -> str:
    """Return the first fields of a `revisit` record; its payload digest is that of `original`.

    A 304 has that digest too (WARC 1.1, 5.9: of the payload "referred to or contained by the record"). With URL, date
    and digest every replay tool finds the original, whichever it looks for.
    """
    profile = NOT_MODIFIED if not_modified(exchange) else SAME_PAYLOAD
    return (
        f"WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: {record_id}\r\n{common}"
        f"Content-Type: application/http; msgtype=response\r\nWARC-Profile: {profile}\r\n"
        f"WARC-Refers-To-Target-URI: {original.url}\r\nWARC-Refers-To-Date: {original.date}\r\n"
        f"WARC-Payload-Digest: {original.digest}\r\n"
    )


def revisit_block(exchange: Exchange) -> bytes:
    """Return the block of a `revisit` record: the head of the answer, but empty for a 304.

    Replay tools (pywb, wabac.js) show the block's head with the original's body, and cannot show a page with the status
    304. Without a block they take the original's head. The metadata record has the head of the 304.
    """
    return b"" if not_modified(exchange) else exchange.head


def body_member(header: str, head: bytes, body: bytes) -> tuple[bytes, str]:
    """Return the gzip member and the payload digest of a response or resource whose body is in memory."""
    payload = digest_text(sha1(body, usedforsecurity=False).digest())
    start = _start(header, head, payload, len(body))
    if _CODED.search(head):
        return b"".join(_with_stored(start, body)), payload
    return isal_zlib.compress(b"".join((start, body, _END)), BODY_LEVEL, GZIP), payload


def _with_stored(start: bytes, body: bytes) -> Iterator[bytes]:
    """Yield a member with `start` compressed and `body` as it is."""
    yield _begun(start)
    yield from _stored(body)
    yield from _stored(_END, last=True)
    checksum = isal_zlib.crc32(_END, isal_zlib.crc32(body, isal_zlib.crc32(start)))
    yield _TRAILER.pack(checksum, (len(start) + len(body) + len(_END)) & 0xFFFFFFFF)


def pack(exchange: Exchange) -> None:
    """Prepare a body on disk for its record: do all slow work that does not depend on the record's header. Raises
    OSError."""
    body = exchange.body
    sha, checksum, of_zeros = sha1(usedforsecurity=False), 0, 0
    deflated = body.beside()
    packer = isal_zlib.compressobj(BODY_LEVEL, isal_zlib.DEFLATED, -15)
    came_coded = _CODED.search(exchange.head)
    for chunk in _chunks(body):
        sha.update(chunk)
        checksum = isal_zlib.crc32(chunk, checksum)
        of_zeros = isal_zlib.crc32(_ZEROS[: len(chunk)], of_zeros)
        for piece in _stored(chunk) if came_coded else [packer.compress(chunk)]:
            deflated.write(piece)
    deflated.write(packer.flush(isal_zlib.Z_SYNC_FLUSH))
    body.packed = Packed(digest_text(sha.digest()), deflated, checksum ^ of_zeros)


def packed_member(header: str, exchange: Exchange) -> tuple[Iterator[bytes], str]:
    """As `body_member` for a body on disk, in pieces, never held whole; fast if `pack` was called before."""
    if exchange.body.packed is None:
        pack(exchange)
    packed, exchange.body.packed = exchange.body.packed, None
    assert packed is not None
    start = _start(header, exchange.head, packed.digest, exchange.body.size)
    return _around(start, packed, exchange.body.size), packed.digest


def _around(start: bytes, packed: Packed, size: int) -> Iterator[bytes]:
    """Yield a member (RFC 1952) with `start`, then the packed body of `size` bytes, then the end of a record.

    The checksum is combined without unpacking: CRC-32 of A and B is that of A and as many zeros as B has bytes, xor
    that of B, xor that of the zeros alone. The last two are in `packed.checksum`.
    """
    yield _begun(start)
    with closing(packed.deflated):
        yield from _chunks(packed.deflated)
    checksum = isal_zlib.crc32(start)
    for at in range(0, size, CHUNK_BYTES):
        checksum = isal_zlib.crc32(_ZEROS[: size - at], checksum)
    checksum = isal_zlib.crc32(_END, checksum ^ packed.checksum)
    yield b"".join(_stored(_END, last=True)) + _TRAILER.pack(checksum, (len(start) + size + len(_END)) & 0xFFFFFFFF)


def _start(header: str, head: bytes, payload: str, size: int) -> bytes:
    """Return everything before the body. Without a head the block is the payload, and fastwarc wants the digest named
    so."""
    what = "Payload" if head else "Block"
    return f"{header}WARC-{what}-Digest: {payload}\r\nContent-Length: {len(head) + size}\r\n\r\n".encode() + head


def _begun(start: bytes) -> bytes:
    """Begin a member (RFC 1952): `start` compressed, ending at a whole byte, so that more can follow."""
    packer = isal_zlib.compressobj(SMALL_LEVEL, isal_zlib.DEFLATED, -15)
    return _MEMBER + packer.compress(start) + packer.flush(isal_zlib.Z_SYNC_FLUSH)


def _stored(data: bytes, *, last: bool = False) -> Iterator[bytes]:
    """Yield `data` uncompressed, in blocks of its own (RFC 1951, 3.2.4); the `last` block is the end of the stream."""
    for at in range(0, len(data), _MOST_STORED):
        piece = data[at : at + _MOST_STORED]
        yield _STORED.pack(last and at + _MOST_STORED >= len(data), len(piece), len(piece) ^ 0xFFFF)
        yield piece


def _digest(body: Document) -> str:
    if body.packed is not None:  # digested before, beside the loop, because it takes long
        return body.packed.digest
    payload = sha1(usedforsecurity=False)
    for chunk in _chunks(body):
        payload.update(chunk)
    return digest_text(payload.digest())


def _chunks(body: Document) -> Iterator[bytes]:
    stream = body.open()
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _fields(fields: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode("utf-8", "replace")
