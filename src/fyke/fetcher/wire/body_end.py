"""Where does a body end, if libcurl does not look for that?

A server may name several transfer codings, as in `gzip, chunked` (RFC 9112, 6.1). libcurl, told to decode nothing,
looks only at the first of a field. If that is not `chunked`, it takes the body for one that ends with its connection,
and waits on a kept connection until the transfer counts as stalled. `Http` has the slot ask a `ChunkedEnd` instead.

A server may also name no coding, as `identity` (RFC 2616, 3.6). libcurl waits then too, even if there is a
Content-Length. Browsers go by that, so the slot asks a `LengthEnd`.

Invariant: bytes are looked at and never changed; time is linear in them. Bounded: of a line whose end did not come yet,
`MOST_LINE_BYTES` are kept.
"""

import re
from collections.abc import Iterable
from typing import Protocol

from fyke.core.decoding import NO_CODING
from fyke.core.visits import headers_of

MOST_LINE_BYTES = 256  # of the line with the size of a chunk: the rest is an extension
_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})(?:[ \t;].*)?", re.DOTALL)
_LENGTH = re.compile(r"[0-9]{1,18}")


class BodyEnd(Protocol):
    """Finds the end of a body that is fed to it in pieces."""

    def within(self, piece: bytes) -> int | None:
        """Return how many bytes of the next `piece` are the body's if it ends there; None if it does not."""
        ...


class LengthEnd:
    """Finds the end of a body of `size_bytes`."""

    def __init__(self, size_bytes: int) -> None:
        self._rest_bytes = size_bytes

    def __repr__(self) -> str:
        return f"LengthEnd({self._rest_bytes} bytes to come)"

    def within(self, piece: bytes) -> int | None:
        """Do as `BodyEnd` says."""
        at, self._rest_bytes = self._rest_bytes, self._rest_bytes - len(piece)
        return at if at <= len(piece) else None


class ChunkedEnd:
    """Finds the end of a body in chunks (RFC 9112, 7.1)."""

    def __init__(self) -> None:
        self._rest_bytes = 0  # of a chunk, with its line end
        self._line = b""  # the beginning of one that is not whole
        self._in_trailers = self._lost = False

    def __repr__(self) -> str:
        return f"ChunkedEnd({'lost' if self._lost else f'{self._rest_bytes} bytes of a chunk to come'})"

    def within(self, piece: bytes) -> int | None:
        """Do as `BodyEnd` says. A body that turns out to be in no chunks has no end."""
        at = 0
        while not self._lost:
            at, self._rest_bytes = at + self._rest_bytes, max(0, at + self._rest_bytes - len(piece))
            end = piece.find(b"\n", at)
            if end < 0:
                self._line += piece[at : at + MOST_LINE_BYTES - len(self._line)]
                return None
            line, self._line, at = (self._line + piece[at:end])[:MOST_LINE_BYTES].rstrip(b"\r"), b"", end + 1
            if self._in_trailers:
                if not line:
                    return at
                continue
            size = _SIZE.fullmatch(line)
            self._lost = size is None
            self._rest_bytes = int(size[1], 16) if size else 0
            self._in_trailers = not self._rest_bytes
            if self._rest_bytes:
                self._rest_bytes += len(b"\r\n")
        return None


def overlooked_end(head: bytes) -> BodyEnd | None:
    """Return what finds the end of the body behind `head`; None if libcurl does, or only the connection's end is it."""
    fields = [field.lower().strip(" \t,") for field in headers_of(head, "transfer-encoding")]
    if fields and is_uncoded(fields):
        lengths = set(headers_of(head, "content-length"))
        said = lengths.pop() if len(lengths) == 1 else ""
        return LengthEnd(int(said)) if _LENGTH.fullmatch(said) else None
    first = [field.partition(",")[0].strip() for field in fields]
    last = ",".join(fields).rpartition(",")[2].strip()
    return ChunkedEnd() if last == "chunked" and "chunked" not in first else None


def is_uncoded(fields: Iterable[str]) -> bool:
    """Return whether the values of Transfer-Encoding `fields` name no coding."""
    return NO_CODING.issuperset(name.strip().lower() for field in fields for name in field.split(","))
