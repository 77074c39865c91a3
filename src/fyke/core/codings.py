"""One layer of coding each: gzip, deflate, br, zstd, chunked, undone within a cap.

Used by `decoding`, which stacks them. Each is given the coded bytes and a cap and returns what could
be had with a word on what was wrong. Invariants: no more than `cap` bytes are ever unfolded, plus at
most one `_STEP`; a stream that is cut or corrupt gives what came before the fault; bytes that are not
in the coding at all come back as they are, since such headers often lie.
"""

import re
import zlib
from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import brotli
import zstandard
from isal import isal_zlib

from fyke.core.pace import breathe

_PIECE = 64 << 10  # input taken at a time: what is copied when output reaches its limit
_FIRST_PIECE = 1 << 10  # and at first, since a stream may be thousands of small members
_STEP = 256 << 10  # output taken at a time: the most that is lost to a corrupt stream
_MOST_MEMBERS = 1 << 12  # of a gzip stream that are unfolded, since each costs as much as 10 KB of content
_MOST_CHUNKS = 1 << 20  # that are joined, the same
_BREATH = 256  # chunks
_ZSTD_WINDOW = 8 << 20  # RFC 9659: no more may be asked of a client

_GZIP_MAGIC = b"\x1f\x8b"
_ISAL_ERROR: Any = isal_zlib.error  # its stub takes the class for an instance
_CORRUPT = (_ISAL_ERROR, zlib.error, brotli.error, zstandard.ZstdError)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})(?:[ \t;][^\n]*)?\r?\n")  # extensions as loosely as libcurl


class Layer(NamedTuple):
    """What one layer gave; `fault` is empty when it was sound."""

    content: bytes
    fault: str = ""


class _Cut(Exception):
    """The stream ended before its end."""


class _TooMany(Exception):
    """The stream has more members than are unfolded."""


Decoder = Callable[[bytes, int], Layer]


def gunzip(data: bytes, cap: int) -> Layer:
    """gzip, any number of members; what follows the last is ignored, as browsers do."""
    if data[:2] != _GZIP_MAGIC:
        return Layer(data, "is not gzip")
    return _collect(_gunzip(data), cap)


def inflate(data: bytes, cap: int) -> Layer:
    """deflate, which is two formats: zlib's by the standard, raw by the habit of some servers."""
    if len(data) >= 2 and data[0] & 15 == 8 and not (data[0] << 8 | data[1]) % 31:
        layer = _collect(_inflate(data, zlib.MAX_WBITS), cap)
        if layer.content or not layer.fault:
            return layer
    return _or_plain(_collect(_inflate(data, -zlib.MAX_WBITS), cap), data, "deflate")


def unbrotli(data: bytes, cap: int) -> Layer:
    """br."""
    return _or_plain(_collect(_unbrotli(data), cap), data, "br")


def unzstd(data: bytes, cap: int) -> Layer:
    """zstd, any number of frames. A cut is not noticed."""
    if data[:4] != zstandard.FRAME_HEADER and data[1:4] != b"\x2a\x4d\x18":
        return Layer(data, "is not zstd")
    return _collect(_unzstd(data), cap)


def dechunk(data: bytes, cap: int) -> Layer:
    """chunked (RFC 9112, 7.1); trailers are dropped, a missing last chunk is forgiven."""
    whole = BytesIO()
    position, fault, count = 0, "", 0
    while True:
        size_line = _CHUNK_SIZE.match(data, position)
        if size_line is None:
            fault = "is cut" if position >= len(data) else "is corrupt"
            break
        size = int(size_line[1], 16)
        if not size:
            break
        count += 1
        if count % _BREATH == 0:
            breathe()
        if count > _MOST_CHUNKS:
            fault = f"has more than {_MOST_CHUNKS} chunks"
            break
        start = size_line.end()
        whole.write(data[start : start + size])
        if start + size > len(data):
            fault = "is cut"
            break
        position = start + size
        position += 2 if data[position : position + 2] == b"\r\n" else data[position : position + 1] == b"\n"
    if fault and not count and data:
        return Layer(data, "is not chunked")
    return Layer(whole.getvalue(), fault)


def _collect(pieces: Iterator[bytes], cap: int) -> Layer:
    """What a stream of pieces yields up to `cap` bytes, and how it ended."""
    whole = BytesIO()  # it grows in place, and is given out as it is: to join pieces takes twice the memory
    room = cap
    fault = ""
    try:
        for piece in pieces:
            whole.write(piece[:room] if len(piece) > room else piece)
            if len(piece) > room:
                fault = f"unfolds to more than {cap} bytes"
                break
            room -= len(piece)
    except _Cut:
        fault = "is cut"
    except _TooMany:
        fault = f"has more than {_MOST_MEMBERS} members"
    except _CORRUPT:
        fault = "is corrupt"
    return Layer(whole.getvalue(), fault)


def _or_plain(layer: Layer, data: bytes, name: str) -> Layer:
    """Formats without a mark of their own: at fault, and with less in it than came, is something else."""
    corrupt = layer.fault == "is corrupt" and len(layer.content) <= len(data)
    if corrupt or (layer.fault == "is cut" and not layer.content):
        return Layer(data, f"is not {name}")
    return layer


def _stream(decoder: Any, data: bytes, start: int) -> Generator[bytes, None, int]:
    """The output of a zlib-like `decoder` fed with `data` from `start`, in pieces of at most `_STEP`.

    Returns where in `data` the stream ended. Raises _Cut when it did not.
    """
    view = memoryview(data)
    size = _FIRST_PIECE
    while not decoder.eof and start < len(data):
        piece: Any = view[start : start + size]
        start += len(piece)
        size = min(2 * size, _PIECE)
        while True:
            out = decoder.decompress(piece, _STEP)
            if out:
                yield out
            piece = decoder.unconsumed_tail
            if decoder.eof or (not piece and len(out) < _STEP):
                break
    if not decoder.eof:
        raise _Cut
    return start - len(decoder.unused_data)


def _gunzip(data: bytes) -> Iterator[bytes]:
    start = members = 0
    while data[start : start + 2] == _GZIP_MAGIC:
        members += 1
        if members > _MOST_MEMBERS:
            raise _TooMany
        start = yield from _stream(isal_zlib.decompressobj(16 + zlib.MAX_WBITS), data, start)


def _inflate(data: bytes, wbits: int) -> Iterator[bytes]:
    return _stream(zlib.decompressobj(wbits), data, 0)


def _unbrotli(data: bytes) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        while True:
            out = decoder.process(piece, output_buffer_limit=_STEP)
            if out:
                yield out
            # It accepts more while output of what it took is still to come.
            if decoder.is_finished() or (not out and decoder.can_accept_more_data()):
                break
            piece = b""
        if decoder.is_finished():
            return
    raise _Cut


def _unzstd(data: bytes) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    with decoder.stream_reader(data, read_across_frames=True) as reader:
        while piece := reader.read(_STEP):
            yield piece
