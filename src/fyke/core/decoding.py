"""From the bytes on the wire to the content: transfer coding, then content coding, within caps.

Called by the crawl for every answer that is to be parsed; the archive keeps the wire's bytes. No body raises: the
content that could be decoded is returned, and `fault` says what was wrong.

The size of a body in one coding bounds the time to decode it (`expected_steps`), so a caller that must not wait
can ask before.

Invariant: no layer unfolds to more than `most_bytes` or `MOST_RATIO` times the bytes on the wire.
"""

import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from math import inf
from typing import NamedTuple

from fyke.core.codings import (
    BEYOND,
    BROTLI_STEP_BYTES,
    CHUNKED_STEP_BYTES,
    CORRUPT,
    CUT,
    DEFLATE_STEP_BYTES,
    GZIP_STEP_BYTES,
    ZSTD_STEP_BYTES,
    Decoder,
    dechunk,
    gunzip,
    inflate,
    unbrotli,
    unzstd,
)
from fyke.core.document import Document
from fyke.core.slices import Slices, whole
from fyke.core.visits import Exchange

MAX_LAYERS = 3
ASKED_STEPS = 20_000
MOST_RATIO = 1000  # bytes that each byte on the wire may unfold to

_DECODERS: dict[str, Decoder] = {
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": inflate,
    "br": unbrotli,
    "zstd": unzstd,
    "chunked": dechunk,
}
_STEP_BYTES = {
    "gzip": GZIP_STEP_BYTES,
    "x-gzip": GZIP_STEP_BYTES,
    "deflate": DEFLATE_STEP_BYTES,
    "br": BROTLI_STEP_BYTES,
    "zstd": ZSTD_STEP_BYTES,
    "chunked": CHUNKED_STEP_BYTES,
}
_CODED = re.compile(rb"\n(?:transfer|content)-encoding:", re.IGNORECASE)
NO_CODING = frozenset({"", "identity", "none"})  # names that stand for none


class Decoded(NamedTuple):
    """The content, and the faults of its layers (empty if there were none)."""

    content: bytes
    fault: str
    is_cut: bool = False  # whether one of our limits left a part of a layer out
    is_broken: bool = False  # whether the rest of a layer is lost, because it is cut or corrupt


def accepted_codings() -> tuple[str, ...]:
    """Return the content codings to offer a server."""
    return ("gzip", "deflate", "br", "zstd")


def unfolds(exchange: Exchange) -> bool:
    """Return whether the content may be longer than the body, by its headers."""
    return any(coding != "chunked" for coding in _codings_of(exchange))


def expected_steps(exchange: Exchange) -> float:
    """Return the most steps (`fyke.core.slices`) that decoding an answer may take; infinite if that depends on its
    content."""
    body = exchange.body
    if not _CODED.search(exchange.head) or not body.size:
        return 0
    coded = _codings_of(exchange)
    if len(coded) - coded.count("chunked") > 1:
        return inf
    return sum(body.size / _STEP_BYTES.get(coding, inf) for coding in coded)


def decode_in_time(exchange: Exchange, most_bytes: int, is_late: Callable[[], bool]) -> Decoded | None:
    """Decode as `decode_body` does, but return None if it `is_late` before the end: for callers that must not wait.
    `is_late` is asked every `ASKED_STEPS` steps."""
    work, steps = decoding(exchange, most_bytes), 0
    try:
        while True:
            steps += next(work)
            if steps > ASKED_STEPS:
                steps = 0
                if is_late():
                    return None
    except StopIteration as end:
        decoded: Decoded = end.value
        return decoded


def decode_body(exchange: Exchange, most_bytes: int, most_ratio: int = MOST_RATIO) -> Decoded:
    """Return the content of an answer: its body after transfer and content coding, at most `most_bytes`."""
    return whole(decoding(exchange, most_bytes, most_ratio))


def decoding(exchange: Exchange, most_bytes: int, most_ratio: int = MOST_RATIO) -> Slices[Decoded]:
    """Decode in slices; the body must stay open.

    A coding that is unknown, or that the body is not in, is skipped: the bytes stay as they were, and `fault`
    says so.
    """
    body = exchange.body
    if not _CODED.search(exchange.head):
        return Decoded(body.read(most_bytes), "")
    coded = _codings_of(exchange)
    if not coded or not body.size:
        return Decoded(body.read(most_bytes), "")
    if len(coded) - coded.count("chunked") > MAX_LAYERS:
        return Decoded(body.read(most_bytes), f"more than {MAX_LAYERS} codings: {', '.join(coded)[:80]}")
    cap = min(most_bytes, most_ratio * body.size)
    faults = [f"unknown coding {coding[:20]!r}" for coding in reversed(coded) if coding not in _DECODERS]
    coded = [coding for coding in reversed(coded) if coding in _DECODERS]
    content = b"" if coded else body.read(most_bytes)
    is_cut = is_broken = False
    of = body
    with ExitStack() as held:
        for place, coding in enumerate(coded):
            if place:  # input and output of a layer may both be large: only one of them is in memory
                of, content = _beside(body, content), b""
                held.close()
                held.callback(of.close)
            content, fault = yield from _DECODERS[coding](of.open(), cap)
            is_cut = is_cut or BEYOND in fault
            is_broken = is_broken or fault in (CUT, CORRUPT)
            if fault:
                faults.append(f"{coding} {fault}" if not fault.startswith("is not") else f"body {fault}")
    return Decoded(content, "; ".join(faults), is_cut, is_broken)


def _beside(body: Document, content: bytes) -> Document:
    """Return `content`, decoded from `body`, held where `body` is, or in memory if the disk is full."""
    document = body.beside()
    with suppress(OSError):
        document.write(content)
    return document


def _codings_of(exchange: Exchange) -> list[str]:
    """Return the codings of a body in the order they were applied. `chunked` counts once, as the last, however often it
    is named (RFC 9112, 6.1): servers behind others name it again."""
    coded = _codings(exchange, "content-encoding") + _codings(exchange, "transfer-encoding")
    if coded.count("chunked") > 1:
        coded = [*(coding for coding in coded if coding != "chunked"), "chunked"]
    return coded


def _codings(exchange: Exchange, field: str) -> list[str]:
    """Return the codings named by header `field`, in the order they were applied."""
    names = (name.partition(";")[0].strip().lower() for value in exchange.headers(field) for name in value.split(","))
    return [name for name in names if name not in NO_CODING]
