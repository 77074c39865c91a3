"""Servers that speak HTTP/2 (RFC 9113), but not as they should.

`talk` serves one connection behind TLS: it reads frames, answers requests for robots.txt, and plays the host's script
for any other request. Frames are written byte by byte here, because no library would send them. `%ID%` in a frame
stands for the four bytes of the request's stream.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from fyke.lab.simweb.hostile.script import PAGE, Behaviour, Many, Pause, Reset, Script

DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
ALTSVC, ORIGIN = 10, 12
END_STREAM = ACK = 1
END_HEADERS = 4
NO_ERROR, PROTOCOL_ERROR, REFUSED, CANCEL, CALM, HTTP_1_1 = 0, 1, 7, 8, 11, 13
_PREFACE_BYTES = 24
_ROBOTS = bytes.fromhex("62c3c674a174f94f")  # "/robots.txt" as in a request, Huffman coded (RFC 7541, Appendix B)


def frame(kind: int, flags: int, payload: bytes = b"", stream: bytes = b"%ID%") -> bytes:
    """Return a frame; `stream` is four bytes."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream + payload


def _field(name: bytes, value: bytes) -> bytes:
    """Return a literal field, not indexed, not Huffman coded (RFC 7541, 6.2.2)."""
    return b"\0" + _length(len(name)) + name + _length(len(value)) + value


def _length(number: int) -> bytes:
    if number < 127:
        return bytes((number,))
    number, found = number - 127, bytearray((127,))
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


_WHOLE = b"\0" * 4  # the stream of frames about the connection
_OK = b"\x88" + _field(b"content-type", b"text/html")  # :status 200 is number 8 of the static table
_HEAD = frame(HEADERS, END_HEADERS, _OK)
_HINT = _field(b":status", b"103")
_DONE = frame(DATA, END_STREAM, PAGE)


def _settings(**values: int) -> bytes:
    numbers = {"table": 1, "push": 2, "streams": 3, "window": 4, "frame": 5, "list": 6}
    payload = b"".join(numbers[name].to_bytes(2) + value.to_bytes(4) for name, value in values.items())
    return frame(SETTINGS, 0, payload, _WHOLE)


def _goaway(last: bytes, code: int, said: bytes = b"") -> bytes:
    return frame(GOAWAY, 0, last + code.to_bytes(4) + said, _WHOLE)


def _reset(code: int) -> bytes:
    return frame(RST_STREAM, 0, code.to_bytes(4))


_BOMB = b"\x40\x01x" + _length(4000) + b"y" * 4000 + b"\xbe" * 12_000  # one field of 4 kB, named 12,000 times: 48 MB
_KB = b"\x00\x03x-y" + _length(1000) + b"z" * 1000
_MB_OF_FIELDS = (
    frame(HEADERS, 0, _OK),
    Many(frame(CONTINUATION, 0, _KB * 16), 64),
    frame(CONTINUATION, END_HEADERS),
)

_SCRIPTS: dict[str, Script] = {
    "h2-good": (_HEAD, _DONE),
    "h2-refuses-each-stream": (_reset(REFUSED),),
    "h2-resets-each-stream": (_reset(PROTOCOL_ERROR),),
    "h2-cancels-each-stream": (_reset(CANCEL),),
    "h2-asks-for-http-1": (_reset(HTTP_1_1),),
    "h2-goes-away-at-once": (_goaway(_WHOLE, NO_ERROR), b""),
    "h2-goes-away-and-closes": (_goaway(_WHOLE, NO_ERROR), Reset()),
    "h2-goes-away-calmly": (_goaway(b"\x7f\xff\xff\xff", CALM, b"enhance\x1b[2Jyour calm"),),
    "h2-goes-away-without-end": (Many(_goaway(b"\x7f\xff\xff\xff", NO_ERROR)),),
    "h2-goes-away-with-words": (Many(_goaway(b"\x7f\xff\xff\xff", NO_ERROR, b"w" * 16_000)),),
    "h2-says-goodbye-in-body": (_HEAD, _goaway(b"\x7f\xff\xff\xff", NO_ERROR), Pause(0.2), _DONE),
    "h2-resets-in-body": (_HEAD, frame(DATA, 0, b"<html>"), _reset(PROTOCOL_ERROR)),
    "h2-closes-in-body": (_HEAD, frame(DATA, 0, b"<html>"), Reset()),
    "h2-stops-after-head": (_HEAD, Pause()),
    "h2-silent": (Pause(),),
    "h2-resets-without-end": (Many(_reset(CANCEL)),),
    "h2-resets-streams-not-opened": (Many(frame(RST_STREAM, 0, CANCEL.to_bytes(4), b"\0\0\x7f\xff")),),
    "h2-pings-without-end": (Many(frame(PING, 0, b"12345678", _WHOLE)),),
    "h2-ping-answers-without-end": (Many(frame(PING, ACK, b"12345678", _WHOLE) * 500),),
    "h2-a-letter-among-pings": (
        _HEAD,
        Many(frame(PING, 0, b"12345678", _WHOLE) * 700 + frame(DATA, 0, b"a")),
    ),
    "h2-a-letter-among-window-updates": (
        _HEAD,
        Many(frame(WINDOW_UPDATE, 0, b"\0\0\0\1", _WHOLE) * 700 + frame(DATA, 0, b"a")),
    ),
    "h2-settings-without-end": (Many(_settings(window=65_535)),),
    "h2-settings-of-16-kb": (Many(frame(SETTINGS, 0, b"\0\x63\0\0\0\1" * 2700, _WHOLE)),),
    "h2-settings-of-no-sense": (_settings(window=0xFFFFFFFF, frame=1),),
    "h2-no-streams-allowed": (_settings(streams=0),),
    "h2-window-of-zero": (_settings(window=0), _HEAD, Pause()),
    "h2-window-too-large": (_HEAD, *[frame(WINDOW_UPDATE, 0, b"\x7f\xff\xff\xff", _WHOLE)] * 2, _DONE),
    "h2-window-updates-without-end": (Many(frame(WINDOW_UPDATE, 0, b"\0\0\0\1", _WHOLE)),),
    "h2-window-update-of-zero": (_HEAD, frame(WINDOW_UPDATE, 0, bytes(4)), _DONE),
    "h2-windows-to-and-fro": (_HEAD, Many(_settings(window=0) + _settings(window=0x7FFFFFFF))),
    "h2-continues-without-end": (frame(HEADERS, 0, _OK), Many(frame(CONTINUATION, 0, _KB * 8))),
    "h2-continues-with-nothing": (frame(HEADERS, 0, _OK), Many(frame(CONTINUATION, 0))),
    "h2-continues-another": (frame(HEADERS, 0, _OK), frame(CONTINUATION, END_HEADERS, b"", b"\0\0\0\x63"), _DONE),
    "h2-head-of-1-mb": (*_MB_OF_FIELDS, _DONE),
    "h2-head-twice": (_HEAD, _HEAD, _DONE),
    "h2-heads-without-end": (Many(frame(HEADERS, END_HEADERS, _HINT)),),
    "h2-heads-of-15-kb-without-end": (Many(frame(HEADERS, END_HEADERS, _HINT + _KB * 15)),),
    "h2-hint-that-ends": (frame(HEADERS, END_HEADERS | END_STREAM, _HINT), _HEAD, _DONE),
    "h2-trailers-of-1-mb": (_HEAD, frame(DATA, 0, PAGE), *_MB_OF_FIELDS[:2], frame(CONTINUATION, END_HEADERS)),
    "h2-trailers-without-end": (_HEAD, frame(DATA, 0, PAGE), Many(frame(HEADERS, END_HEADERS, _KB * 15))),
    "h2-trailers-with-a-status": (_HEAD, frame(DATA, 0, PAGE), frame(HEADERS, END_HEADERS | END_STREAM, b"\x8d")),
    "h2-hpack-bomb": (
        frame(HEADERS, 0, _OK),
        frame(CONTINUATION, END_HEADERS, _BOMB),
        _DONE,
    ),
    "h2-hpack-bombs-without-end": (Many(frame(HEADERS, END_HEADERS, _HINT + _BOMB)),),
    "h2-hpack-nonsense": (frame(HEADERS, END_HEADERS, b"\xff\xff\xff\xff\xff\xff\xff"),),
    "h2-hpack-huge-table": (frame(HEADERS, END_HEADERS, b"\x3f\xff\xff\xff\xff\x07" + _OK), _DONE),
    "h2-hpack-tables-without-end": (Many(frame(HEADERS, END_HEADERS, b"\x20\x3f\xe1\x1f" * 4000 + _HINT)),),
    "h2-status-missing": (frame(HEADERS, END_HEADERS, _field(b"content-type", b"text/html")), _DONE),
    "h2-status-of-words": (frame(HEADERS, END_HEADERS, _field(b":status", b"abc")), _DONE),
    "h2-status-twice": (frame(HEADERS, END_HEADERS, b"\x88\x8d"), _DONE),
    "h2-field-with-newline": (frame(HEADERS, END_HEADERS, _OK + _field(b"x", b"a\r\nset-cookie: b")), _DONE),
    "h2-field-in-capitals": (frame(HEADERS, END_HEADERS, _OK + _field(b"X-Y", b"a")), _DONE),
    "h2-field-of-the-connection": (frame(HEADERS, END_HEADERS, _OK + _field(b"transfer-encoding", b"chunked")), _DONE),
    "h2-length-that-differs": (frame(HEADERS, END_HEADERS, _OK + _field(b"content-length", b"7")), _DONE),
    "h2-length-of-4000-digits": (frame(HEADERS, END_HEADERS, _OK + _field(b"content-length", b"9" * 4000)), _DONE),
    "h2-pushes": (
        frame(PUSH_PROMISE, END_HEADERS, b"\0\0\0\2" + b"\x82\x87\x84" + _field(b":authority", b"x")),
        _HEAD,
        _DONE,
    ),
    "h2-pushes-without-end": (Many(frame(PUSH_PROMISE, END_HEADERS, b"\0\0\0\2" + b"\x82\x87\x84")),),
    "h2-data-of-nothing-without-end": (_HEAD, Many(frame(DATA, 0))),
    "h2-data-of-padding-without-end": (_HEAD, Many(frame(DATA, 8, b"\xff" + bytes(255)))),
    "h2-padding-beyond-its-frame": (_HEAD, frame(DATA, 8, b"\xffabc"), _DONE),
    "h2-data-without-end": (_HEAD, Many(frame(DATA, 0, b"<p>word " * 2000))),
    "h2-data-before-head": (_DONE,),
    "h2-data-after-end": (_HEAD, _DONE, _DONE),
    "h2-data-on-another-stream": (frame(DATA, 0, b"x", b"\0\0\0\x63"),),
    "h2-frame-too-long": (_HEAD, frame(DATA, END_STREAM, bytes(1 << 20))),
    "h2-frames-of-no-kind": (Many(frame(0xEE, 0xFF, b"x" * 100)),),
    "h2-priority-without-end": (Many(frame(2, 0, b"\0\0\0\1\x10")),),
    "h2-alternatives-without-end": (Many(frame(ALTSVC, 0, b'\0\0h2=":443"; ma=99999999, ' + b"x" * 4000)),),
    "h2-origins-without-end": (Many(frame(ORIGIN, 0, b"\0\x15https://other.example" * 500, _WHOLE)),),
    "h2-is-http-1": (b"HTTP/1.1 200 OK\r\n\r\nhi",),
    "h2-is-zeros": (Many(bytes(100_000)),),
    "h2-two-answers": (_HEAD, _DONE, _HEAD, _DONE),
    "h2-fails": (frame(HEADERS, END_HEADERS | END_STREAM, b"\x8e"),),
}

_NO_RULES = (frame(HEADERS, END_HEADERS | END_STREAM, b"\x8d"),)  # :status 404

BEHAVIOURS = [Behaviour(name, script, _NO_RULES, scheme="https") for name, script in _SCRIPTS.items()]


def tls() -> ssl.SSLContext:
    """Return a context with one untrusted certificate for all, and HTTP/2 alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("nobody.pem"))
    context.set_alpn_protocols(["h2"])
    return context


async def talk(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    play: Callable[[str, bytes], Awaitable[bool]],
) -> None:
    """Call `play` with path and stream of each request, until the client goes or `play` returns False."""
    await reader.readexactly(_PREFACE_BYTES)
    writer.write(_settings())
    while True:
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3]))
        kind, flags, stream = head[3], head[4], head[5:]
        if kind == SETTINGS and not flags & ACK:
            writer.write(frame(SETTINGS, ACK, b"", _WHOLE))
        asked = "/robots.txt" if _ROBOTS in payload else "/"
        if kind == GOAWAY or (kind == HEADERS and not await play(asked, stream)):
            return
        await writer.drain()
