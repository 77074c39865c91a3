"""The rewindable stream: a body that is in memory while small and on disk when large.

Mercator's RewindInputStream (section 3.4): a protocol module writes it once, then the archive and
any number of processing modules read it, each from the beginning. Differs: no subclass by source,
and the disk copy is an unnamed temporary file, so that a crash leaves nothing behind.
"""

import io
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

MEMORY_BYTES = 1 << 20
PIECE_BYTES = 1 << 20  # read at a time
SMALL_BYTES = 128 << 10
SMALL_SHARE = 4  # small documents have one part in 4 of the shared memory for themselves


class SharedMemory:
    """Memory that many documents share. A part is reserved for small ones, so that large ones cannot fill it."""

    __slots__ = ("_kept_bytes", "left_bytes")

    def __init__(self, most_bytes: int) -> None:
        self.left_bytes = most_bytes
        self._kept_bytes = most_bytes // SMALL_SHARE

    def has_room(self, size_bytes: int) -> bool:
        """Return whether a document that has grown to `size_bytes`, and is counted, may stay."""
        return self.left_bytes >= (0 if size_bytes <= SMALL_BYTES else self._kept_bytes)


class Document:
    """Bytes written once and read as often as needed.

    They are in memory up to `memory_bytes` and while `shared` has room, then in an unnamed file in `folder` (the
    system's temporary folder if None).
    """

    __slots__ = ("_chunks", "_file", "_folder", "_held_bytes", "_memory_bytes", "_shared", "packed", "size")

    def __init__(
        self,
        data: bytes = b"",
        *,
        memory_bytes: int = MEMORY_BYTES,
        folder: str | None = None,
        shared: SharedMemory | None = None,
    ) -> None:
        self._chunks: list[bytes] = [data] if data else []
        self._file: BinaryIO | None = None
        self._memory_bytes = memory_bytes
        self._folder = folder
        self._shared = shared
        self._held_bytes = 0  # of the shared memory
        self.size = len(data)
        self.packed: Packed | None = None  # set if it was made ready for the archive

    def __repr__(self) -> str:
        return f"Document({self.size} bytes {'on disk' if self._file else 'in memory'})"

    def write(self, chunk: bytes) -> None:
        """Append `chunk`. Raises OSError when the disk is full."""
        self.size += len(chunk)
        if self._file is not None:
            self._file.write(chunk)
            self._file.flush()  # so that the writer, and no reader, meets a full disk
            return
        self._chunks.append(chunk)
        if self._shared is not None:
            self._shared.left_bytes -= len(chunk)
            self._held_bytes += len(chunk)
        if self.size > self._memory_bytes or (self._shared is not None and not self._shared.has_room(self.size)):
            self.to_disk()

    def to_disk(self) -> None:
        """Move it to disk, whatever its size. Raises OSError when the disk is full."""
        if self._file is None:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by `close`
            try:
                file.writelines(self._chunks)
                file.flush()
            except OSError:
                with suppress(OSError):  # closing flushes again, and fails again
                    file.close()
                raise
            self._file = file
            self._let_go()

    def read(self, limit: int = -1) -> bytes:
        """Return the first `limit` bytes, or all."""
        if self._file is not None:
            self._file.seek(0)
            data = self._file.read(self.size if limit < 0 else min(limit, self.size))  # unsized it holds two copies
            self._file.seek(0, io.SEEK_END)
            return data
        if len(self._chunks) > 1:
            self._chunks = [b"".join(self._chunks)]
        data = self._chunks[0] if self._chunks else b""
        return data if limit < 0 else data[:limit]

    def open(self) -> BinaryIO:
        """Return a stream at the first byte; on disk there is only one stream at a time."""
        if self._file is None:
            return io.BytesIO(self.read())
        self._file.seek(0)
        return self._file

    def beside(self) -> "Document":
        """Return an empty document that is held where this one is."""
        return Document(memory_bytes=self._memory_bytes, folder=self._folder)

    def close(self) -> None:
        """Free the memory or the file."""
        self._let_go()
        files = [self._file] if self.packed is None else [self._file, self.packed.deflated]
        self._file = self.packed = None
        for file in files:
            if file is not None:
                with suppress(OSError):  # closing flushes again, and fails again
                    file.close()

    def _let_go(self) -> None:
        self._chunks = []
        if self._shared is not None:
            self._shared.left_bytes += self._held_bytes
            self._held_bytes = 0

    def __del__(self) -> None:
        """Give back its shared memory and its file if it was not closed."""
        self.close()


def first(content: bytes | Document, most_bytes: int = -1) -> bytes:
    """Return the first `most_bytes` of `content`, or all."""
    if isinstance(content, Document):
        return content.read(most_bytes)
    return content if most_bytes < 0 else content[:most_bytes]


def read_on(stream: BinaryIO) -> Iterator[bytes]:
    """Yield `stream` from its beginning, in pieces of `PIECE_BYTES`."""
    at = 0
    while stream.seek(at) == at and (piece := stream.read(PIECE_BYTES)):  # others may read it meanwhile
        at += len(piece)
        yield piece


@dataclass(frozen=True, slots=True)
class Packed:
    """A body made ready for an archive, whatever stands around it in a record."""

    digest: str  # of the bytes, as in records
    deflated: Document  # the bytes as raw DEFLATE, ending at a byte, to be followed by more (RFC 1951)
    checksum: int  # CRC-32 of the bytes, xor that of as many zeros
