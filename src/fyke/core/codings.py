"""Undoes one layer of coding within a cap: gzip, deflate, br, zstd, chunked.

Used by `decoding`, which stacks the layers. Each decoder reads a stream of coded bytes from its beginning, and returns
the content that it could decode and the fault of the stream. Decoders are work in slices (`fyke.core.slices`), priced
by their input: a stream of empty blocks takes a third of a microsecond a byte, and gives no content.

Invariants:
- At most `cap` bytes and one `_STEP` are unfolded. The coded bytes are held in pieces.
- A stream is not read on after `MOST_IDLE_BYTES` of input that gave next to nothing.
- A cut or corrupt stream gives the content before the fault, also if that is a wrong sum behind all of it.
- Bytes that are not in the coding come back as they are, because headers often name a wrong coding.
"""

import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from io import SEEK_CUR, SEEK_END, BytesIO
from typing import Any, BinaryIO, NamedTuple

import brotli
from isal import isal_zlib

from fyke.core.memory import roomy, taken
from fyke.core.pace import breathe
from fyke.core.slices import Slices

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_IDLE_BYTES = 1 << 20  # input of a layer in pieces that give less than half of their size
BEYOND = "more than"  # in a fault: one of our limits left the rest out, the stream is sound
CUT, CORRUPT = "is cut", "is corrupt"  # faults after which the rest of the stream is lost
_PIECE = 8 << 10  # input taken at a time: copied when output reaches its limit, and a unit of work
_FIRST_PIECE = 1 << 10  # and at first, because a stream may be thousands of small members
_STEP = 256 << 10  # output taken at a time: the most that is lost to a corrupt stream
_MOST_MEMBERS = 1 << 12  # of gzip, or frames of zstd: each costs as much as 10 KB of content
_MOST_CHUNKS = 1 << 20  # of a body
_BREATH = 256  # chunks
_SIZE_BYTES = 16 << 10  # of the line with the size of a chunk, read at a time
_ZSTD_WINDOW_LOG = 23  # 8 MB: a client need not support more (RFC 9659)
_ZSTD_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): _ZSTD_WINDOW_LOG}

_GZIP_MAGIC = b"\x1f\x8b"
_HAS_SUM, _HAS_EXTRA, _HAS_NAME, _HAS_COMMENT = 2, 4, 8, 16  # flags in the header of a member
_ZLIB_HEAD, _ZLIB_MASK = 0x0800, 0x8F20  # deflate in a window of up to 32 KB, without a dictionary of its own
_ZSTD_MAGIC, _SKIPPABLE = b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"  # of a frame; of a skippable one, behind its first byte
ISAL_ERROR: Any = isal_zlib.error  # its stub takes the class for an instance
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})(?:[ \t;][^\n]*)?\r?\n")  # extensions as loosely as libcurl


class Layer(NamedTuple):
    """The content of one layer; `fault` is empty if the stream was sound."""

    content: bytes
    fault: str = ""


class _Cut(Exception):
    """The stream ended before its end."""


class _Corrupt(Exception):
    """The stream is not in its format, or a sum in it is wrong."""


class _TooMany(Exception):
    """The stream has more than `_MOST_MEMBERS` members."""


_CORRUPT = (_Corrupt, ISAL_ERROR, zlib.error, brotli.error, zstd.ZstdError)

Decoder = Callable[[BinaryIO, int], Slices[Layer]]
_Pieces = Iterator[tuple[int, bytes]]  # number of input bytes, and their output

# Input bytes of each coding that take a step of a microsecond at worst.
GZIP_STEP_BYTES, DEFLATE_STEP_BYTES, BROTLI_STEP_BYTES, ZSTD_STEP_BYTES, CHUNKED_STEP_BYTES = 2, 8, 1, 32, 4
_OUT_STEP_BYTES = 512


def gunzip(stream: BinaryIO, cap: int) -> Slices[Layer]:
    """Undo gzip, any number of members; bytes after the last one are ignored, as by browsers."""
    if _first(stream, 2) != _GZIP_MAGIC:
        return Layer(_first(stream, cap), "is not gzip")
    return (yield from _collect(_gunzip(stream), cap, GZIP_STEP_BYTES))


def inflate(stream: BinaryIO, cap: int) -> Slices[Layer]:
    """Undo deflate, in either of two formats: zlib's by the standard, raw from some servers."""
    head = int.from_bytes(_first(stream, 2))
    if head & _ZLIB_MASK == _ZLIB_HEAD and not head % 31:
        layer = yield from _collect(_unzlib(stream), cap, DEFLATE_STEP_BYTES)
        if layer.content or not layer.fault:
            return layer
    layer = yield from _collect(_inflate(stream), cap, DEFLATE_STEP_BYTES)
    return _or_plain(layer, stream, cap, "deflate")


def unbrotli(stream: BinaryIO, cap: int) -> Slices[Layer]:
    """Undo br."""
    layer = yield from _collect(_unbrotli(stream), cap, BROTLI_STEP_BYTES)
    return _or_plain(layer, stream, cap, "br")


def unzstd(stream: BinaryIO, cap: int) -> Slices[Layer]:
    """Undo zstd, any number of frames."""
    first = _first(stream, len(_ZSTD_MAGIC))
    if not _ZSTD_MAGIC.startswith(first) and first[1:] != _SKIPPABLE:
        return Layer(_first(stream, cap), "is not zstd")
    return (yield from _collect(_unzstd(stream), cap, ZSTD_STEP_BYTES))


def dechunk(stream: BinaryIO, cap: int) -> Slices[Layer]:
    """Undo chunked (RFC 9112, 7.1); trailers are dropped. Without a last chunk the fault is `CUT`."""
    whole = roomy(min(stream.seek(0, SEEK_END), cap))
    stream.seek(0)
    fault, count, room = "", 0, cap
    while not fault:
        line = _size_line(stream)
        size_line = _CHUNK_SIZE.fullmatch(line)
        if size_line is None:
            fault = CORRUPT if line else CUT
            break
        size = int(size_line[1], 16)
        if not size:
            break
        count += 1
        if count % _BREATH == 0:
            breathe()
            yield _BREATH
        if count > _MOST_CHUNKS:
            fault = f"has {BEYOND} {_MOST_CHUNKS} chunks"
            break
        copied = _copied(stream, whole, min(size, room))
        room -= copied
        if copied < size:
            fault = CUT if room else _too_long(cap)
        else:
            _skip_line_end(stream)
    if fault and not count and (plain := _first(stream, cap)):
        return Layer(plain, "is not chunked")
    return Layer(taken(whole), fault)


def _size_line(stream: BinaryIO) -> bytes:
    """Read the line with the size of a chunk; skip the rest of a long extension."""
    line = rest = stream.readline(_SIZE_BYTES)
    while len(rest) == _SIZE_BYTES and not rest.endswith(b"\n"):
        rest = stream.readline(_SIZE_BYTES)
        breathe()
    return line if rest is line else line[:-1] + rest[-1:]


def _copied(stream: BinaryIO, whole: BytesIO, size: int) -> int:
    """Copy up to `size` bytes, and return how many there were."""
    left = size
    while left and (piece := stream.read(min(left, _STEP))):
        left -= whole.write(piece)
    return size - left


def _skip_line_end(stream: BinaryIO) -> None:
    end = stream.read(2)
    if end != b"\r\n":
        stream.seek((end[:1] == b"\n") - len(end), SEEK_CUR)


def _first(stream: BinaryIO, size: int) -> bytes:
    stream.seek(0)
    return stream.read(size)


def _too_long(cap: int) -> str:
    return f"unfolds to {BEYOND} {cap} bytes"


def _collect(pieces: _Pieces, cap: int, step_bytes: int) -> Slices[Layer]:
    """Collect up to `cap` bytes of the output of `pieces`, and how it ended; `step_bytes` of input take a step."""
    whole = roomy(cap)  # joining pieces would take twice the memory
    room, idle_bytes = cap, 0
    fault = ""
    try:
        for size, piece in pieces:
            whole.write(piece[:room] if len(piece) > room else piece)
            if len(piece) > room:
                fault = _too_long(cap)
                break
            room -= len(piece)
            idle_bytes += size if size > 2 * len(piece) else 0
            if idle_bytes > MOST_IDLE_BYTES:
                fault = f"has {BEYOND} {MOST_IDLE_BYTES} bytes that unfold to nothing"
                break
            breathe()
            yield 1 + size // step_bytes + len(piece) // _OUT_STEP_BYTES
    except _Cut:
        fault = CUT
    except _TooMany:
        fault = f"has {BEYOND} {_MOST_MEMBERS} members"
    except _CORRUPT:
        fault = CORRUPT
    return Layer(taken(whole), fault)


def _or_plain(layer: Layer, stream: BinaryIO, cap: int, name: str) -> Layer:
    """Return the plain bytes if a coding without a magic number failed and gave no more bytes than it took."""
    if layer.fault == CORRUPT or (layer.fault == CUT and not layer.content):
        plain = _first(stream, cap)
        if len(layer.content) <= len(plain):
            return Layer(plain, f"is not {name}")
    return layer


def _stream(decoder: Any, stream: BinaryIO) -> _Pieces:
    """Yield the output of a zlib-like `decoder` fed with `stream`, in pieces of at most `_STEP`. Leaves the stream
    behind the bytes that it used. Raises _Cut if it did not end."""
    size = _FIRST_PIECE
    while not decoder.eof and (piece := stream.read(size)):
        size = min(2 * size, _PIECE)
        new_bytes = len(piece)
        while True:
            out = decoder.decompress(piece, _STEP)
            yield new_bytes - len(decoder.unused_data), out
            new_bytes = 0
            piece = decoder.unconsumed_tail
            if decoder.eof or (not piece and len(out) < _STEP):
                break
    if not decoder.eof:
        raise _Cut
    stream.seek(-len(decoder.unused_data), SEEK_CUR)


def _gunzip(stream: BinaryIO) -> _Pieces:
    stream.seek(0)
    members = 0
    while stream.read(2) == _GZIP_MAGIC:
        members += 1
        if members > _MOST_MEMBERS:
            raise _TooMany
        yield from _member(stream)


def _member(stream: BinaryIO) -> _Pieces:
    """Yield a member of gzip (RFC 1952, 2.3) from behind its magic number. Its sums are checked here: isal would keep
    the last piece back if they are wrong, and takes some of headers for wrong that come in pieces."""
    head = _exactly(stream, 8)
    if head[0] != zlib.DEFLATED:
        raise _Corrupt
    head_sum, content_sum, size = isal_zlib.crc32(_GZIP_MAGIC + head), 0, 0
    for piece in _fields(stream, head[1]):
        head_sum = isal_zlib.crc32(piece, head_sum)
        yield len(piece), b""
    is_sound = not head[1] & _HAS_SUM or _exactly(stream, 2) == struct.pack("<H", head_sum & 0xFFFF)
    for used_bytes, piece in _stream(isal_zlib.decompressobj(-zlib.MAX_WBITS), stream):
        content_sum, size = isal_zlib.crc32(piece, content_sum), size + len(piece)
        yield used_bytes, piece
    if _exactly(stream, 8) != struct.pack("<LL", content_sum, size & 0xFFFFFFFF) or not is_sound:
        raise _Corrupt


def _fields(stream: BinaryIO, has: int) -> Iterator[bytes]:
    """Yield the fields of a member's header that it may have or not, in pieces."""
    if has & _HAS_EXTRA:
        yield (field := _exactly(stream, 2))
        size = int.from_bytes(field, "little")
        for at in range(0, size, _PIECE):
            yield _exactly(stream, min(_PIECE, size - at))
    for text in (_HAS_NAME, _HAS_COMMENT):
        has_more = bool(has & text)
        while has_more:
            piece, end, behind = (stream.read(_FIRST_PIECE) or _exactly(stream, 1)).partition(b"\0")
            stream.seek(-len(behind), SEEK_CUR)
            yield piece + end
            has_more = not end


def _exactly(stream: BinaryIO, size: int) -> bytes:
    piece = stream.read(size)
    if len(piece) < size:
        raise _Cut
    return piece


def _unzlib(stream: BinaryIO) -> _Pieces:
    """Yield what is in the format of zlib (RFC 1950), whose sum is checked here for the same reason."""
    content_sum = 1
    for used_bytes, piece in _inflate(stream, 2):
        content_sum = zlib.adler32(piece, content_sum)
        yield used_bytes, piece
    if _exactly(stream, 4) != struct.pack(">L", content_sum):
        raise _Corrupt


def _inflate(stream: BinaryIO, begins_at: int = 0) -> _Pieces:
    stream.seek(begins_at)
    return _stream(zlib.decompressobj(-zlib.MAX_WBITS), stream)


def _unbrotli(stream: BinaryIO) -> _Pieces:
    stream.seek(0)
    decoder = brotli.Decompressor()
    while piece := stream.read(_PIECE):
        new_bytes = len(piece)
        while True:
            out = decoder.process(piece, output_buffer_limit=_STEP)
            yield new_bytes, out
            new_bytes = 0
            # It accepts more input while output of earlier input is still to come.
            if decoder.is_finished() or (not out and decoder.can_accept_more_data()):
                break
            piece = b""
        if decoder.is_finished():
            return
    raise _Cut


def _unzstd(stream: BinaryIO) -> _Pieces:
    stream.seek(0)
    frames = 0
    while frames == 0 or stream.read(1):
        stream.seek(-min(frames, 1), SEEK_CUR)
        frames += 1
        if frames > _MOST_MEMBERS:
            raise _TooMany
        yield from _frame(zstd.ZstdDecompressor(options=_ZSTD_OPTIONS), stream)


def _frame(decoder: zstd.ZstdDecompressor, stream: BinaryIO) -> _Pieces:
    """Yield the output of a `decoder` with the interface of `lzma`, as `_stream` does."""
    size = _FIRST_PIECE
    while not decoder.eof:
        piece = stream.read(size) if decoder.needs_input else b""
        if decoder.needs_input and not piece:
            raise _Cut
        size = min(2 * size, _PIECE)
        out = decoder.decompress(piece, _STEP)
        yield len(piece) - len(decoder.unused_data), out
    stream.seek(-len(decoder.unused_data), SEEK_CUR)
