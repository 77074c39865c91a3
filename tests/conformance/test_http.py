"""llhttp's responses, sent raw by a socket on loopback: an error where it sees one, else its status and body."""

import asyncio
import re

from tests.fetcher.wire.conftest import Client, web

from conformance.oracles import ORACLES, judge
from fyke.core.config import FetchSection
from fyke.core.decoding import decode_body
from fyke.core.visits import Exchange

_CASE = re.compile(
    r"^#+ (?P<title>[^\n]*)\n(?:(?!^#+ ).)*?<!-- meta=(?P<meta>[^\n]*?) ?-->\n"
    r"```http\n(?P<http>.*?)\n```\n(?:(?!```).)*?```log\n(?P<log>.*?)```",
    re.MULTILINE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([rntf])|x([0-9a-fA-F]{2}))")
_CONTROL = {"r": "\r", "n": "\n", "t": "\t", "f": "\f"}
_HEADERS = re.compile(r"headers complete status=(\d+) v=\S+ flags=([0-9a-f]+)")
_CHUNKED, _COUNTED = 0x8, 0x20  # llhttp's flags: the head says where the body ends
_EVENT = re.compile(r"off=(\d+) (?:len=(\d+) )?(.*)")

_LENIENT = "libcurl reads it all the same"
_REFUSED = "libcurl takes it for no HTTP"
_NOT_LAST = "libcurl holds it to the chunks it promised"
_UNASKED = "nobody asked whether anything changed"
_BY_HEAD = "where a redirect leads is in its head, which is whole"
POLICY = {
    "connection.md: HTTP 304 with Content-Length": _UNASKED,
    "connection.md: HTTP 304 with Transfer-Encoding": _UNASKED,
    "connection.md: HTTP 100 first, then 400": _REFUSED,
    "invalid.md: Tab after HTTP version": _LENIENT,
    "sample.md: RTSP response": _REFUSED,
    "sample.md: ICE response": _REFUSED,
    "sample.md: Google 301": _BY_HEAD,
    "sample.md: Spaces in header name": _LENIENT,
    "sample.md: HTTP version 0.9": _REFUSED,
    "sample.md: Response starting with CRLF": _REFUSED,
    "transfer-encoding.md: Trailing space on chunked body": _LENIENT,
    "transfer-encoding.md: `chunked` before other transfer-encoding": _NOT_LAST,
    "transfer-encoding.md: multiple transfer-encoding where chunked is not the last one": _NOT_LAST,
    "transfer-encoding.md: No semicolon before chunk extensions": _LENIENT,
    "transfer-encoding.md: No extension after semicolon": _LENIENT,
}


Result = tuple[int, bytes]  # status and body; no status for an error, and for an answer that is not all there
NO_ANSWER: Result = (0, b"")


def raw_of(block: str) -> bytes:
    """The bytes of a block: lines end in CRLF but where the end is escaped."""
    text = block.replace("\\\n", "").replace("\n", "\r\n")
    return _ESCAPE.sub(lambda m: _CONTROL[m[1]] if m[1] else chr(int(m[2], 16)), text).encode("latin-1", "replace")


def result_of(raw: bytes, log: str) -> Result:
    """The first message in `log` that is no interim answer."""
    status, flags, body = 0, 0, b""
    for offset, length, event in _EVENT.findall(log):
        if event.startswith("error"):
            return NO_ANSWER
        if found := _HEADERS.match(event):
            status, flags, body = int(found[1]), int(found[2], 16), b""
        elif event.startswith("span[body]"):
            body += raw[int(offset) : int(offset) + int(length)]
        elif event.startswith("message complete") and status >= 200:
            return status, body
    whole = status >= 200 and not flags & (_CHUNKED | _COUNTED)  # it ends where the connection does
    return (status, body) if whole else NO_ANSWER


def cases() -> dict[str, tuple[bytes, Result]]:
    """By name: what a server sends, and what llhttp makes of it."""
    found = {}
    for path in sorted((ORACLES / "http-llhttp" / "response").glob("*.md")):
        for match in _CASE.finditer(path.read_text()):
            if "skipBody" not in match["meta"]:  # the answer to a HEAD, which a crawler does not send
                raw = raw_of(match["http"])
                found[f"{path.name}: {match['title']}"] = (raw, result_of(raw, match["log"]))
    return found


async def exchanges(raws: list[bytes]) -> list[tuple[Exchange, bytes]]:
    """The answers of a server that sends `raws` and hangs up, each with its content."""

    async def script(head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raws[int(head.split()[1][1:])])
        await writer.drain()
        writer.close()

    async with web(script) as server, Client(connections=4) as client:
        answers = await client.get_all([server.url(f"/{number}") for number in range(len(raws))])
        return [(answer, decode_body(answer, FetchSection().max_body_bytes).content) for answer in answers]


def test_responses() -> None:
    """Where llhttp has a strict and a lenient reading of the same bytes, either will do."""
    every = cases()
    assert len(every) > 75
    readings: dict[bytes, list[Result]] = {}
    for raw, result in every.values():
        readings.setdefault(raw, []).append(result)
    answers = asyncio.run(exchanges([raw for raw, _ in every.values()]))
    problems = {}
    for (name, (raw, _)), (answer, content) in zip(every.items(), answers, strict=True):
        ours = (answer.status, content) if answer.outcome.answered and answer.head else NO_ANSWER
        said = f"{ours} ({answer.outcome} {answer.detail}) where {readings[raw]} is expected of {raw!r}"
        problems[name] = "" if ours in readings[raw] else said
    judge(problems, POLICY)
