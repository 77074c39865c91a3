"""A server's behaviour as data: steps that are played in order on a connection whose request has come.

A script is a tuple of steps. Bytes are sent as they are; the other steps are named for what they do. After the last
step the connection is closed. In the bytes, `%NEXT%` stands for one more than the number at the end of the requested
path, `%HOST%` for the name of the host, `%PORT%` for the port.
"""

import struct
import zlib
from dataclasses import dataclass
from functools import reduce
from operator import xor

WITHOUT_END = 1 << 60
_PLACES = (b"%NEXT%", b"%HOST%", b"%PORT%")


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait of this many seconds."""

    seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Many:
    """`piece`, sent `times` times, with a pause before each."""

    piece: bytes
    times: int = WITHOUT_END
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Numbered:
    """`piece`, sent `times` times, with `%N%` counted from 0."""

    piece: bytes
    times: int


@dataclass(frozen=True, slots=True)
class Reset:
    """A reset of the connection instead of a close."""


Step = bytes | Pause | Many | Numbered | Reset
Script = tuple[Step, ...]


def head(*fields: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    """Return the head of an answer; the body ends with the connection, unless a field says otherwise."""
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {kind}"] if kind else []), *fields, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()


def whole(body: bytes, *fields: str, status: str = "200 OK", kind: str = "text/html") -> Script:
    """Return a proper answer. A body with placeholders has no length yet, so it ends with the connection."""
    length = () if any(place in body for place in _PLACES) else (f"Content-Length: {len(body)}",)
    return (head(*length, *fields, status=status, kind=kind) + body,)


def to(target: str, status: str = "302 Found") -> Script:
    """Return a redirect."""
    return whole(b"", f"Location: {target}", status=status)


def packed(piece: bytes, times: int, first: bytes = b"") -> bytes:
    """Return `first` and then `piece`, `times` times, in gzip; `piece` is packed and read once, however often it comes.

    A checksum over a piece is linear in the one before it, so what it makes of each bit says what it makes of all.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    begin = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum, of_nothing = zlib.crc32(first), zlib.crc32(piece)
    of_bits = [zlib.crc32(piece, 1 << bit) ^ of_nothing for bit in range(32)]
    for _ in range(times):
        checksum = reduce(xor, (of_bits[bit] for bit in range(32) if checksum >> bit & 1), of_nothing)
    trailer = struct.pack("<II", checksum, (len(first) + len(piece) * times) & 0xFFFFFFFF)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + begin + again * times + b"\x03\0" + trailer


NO_RULES = whole(b"", status="404 Not Found")
PAGE = b"<!doctype html><title>A page</title><p>Nothing to see"
GOOD = whole(PAGE)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behaviour of one host's servers: `answer` to every request, except `robots` to one for robots.txt.

    `resolving` is the behaviour of its name server (see `resolving`). If it `greets`, the answer is sent before any
    request.
    """

    name: str
    answer: Script = GOOD
    robots: Script = NO_RULES
    resolving: str = ""
    greets: bool = False
    scheme: str = "http"
    path: str = "/"
