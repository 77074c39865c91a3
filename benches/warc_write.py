"""CPU time to archive one page: Fyke's WarcWriter against warcio's, on the same exchange.

Run: python benches/warc_write.py. Both write a request, a response and a metadata record, each a gzip member with
block and payload digests, to a real file. The page is 21 KB of synthetic HTML.
"""

import random
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from usage import arguments
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from fyke.archive.warc import WarcWriter
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit

PAGES = 3000
ROUNDS = 5
URL = "http://www.example.org/articles/2026/some-page.html"
REQUEST_FIELDS = [("Host", "www.example.org"), ("User-Agent", "fyke (+http://example.org/bot)"), ("Accept", "*/*")]
FIELDS = [
    ("Date", "Sat, 21 Nov 2026 05:00:00 GMT"),
    ("Server", "nginx"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Length", "21000"),
    ("ETag", '"5f3e-62a"'),
    ("Cache-Control", "max-age=600"),
]


def page() -> bytes:
    """Return 21 KB of HTML with about 60 links, the same each time."""
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(2000)]
    lines = (
        f'<p class="x">{" ".join(dice.choices(words, k=55))} <a href="/p/{dice.randint(1, 99999)}">more</a></p>\n'
        for _ in range(60)
    )
    return f"<html><body>{''.join(lines)}".encode()[:21000]


def head(first: str, fields: list[tuple[str, str]]) -> bytes:
    return (first + "\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n").encode()


def exchange(body: bytes) -> Exchange:
    return Exchange(
        Visit(URL, key=1, host=2, domain=3, via=4, depth=3),
        Outcome.OK,
        1_795_000_000.25,
        0.125,
        address="192.0.2.7",
        status=200,
        request=head("GET /articles/2026/some-page.html HTTP/1.1", REQUEST_FIELDS),
        head=head("HTTP/1.1 200 OK", FIELDS),
        body=Document(body),
        effective_protocol="http/1.1",
    )


def by_fyke(folder: Path, body: bytes) -> Callable[[], object]:
    writer, one = WarcWriter(folder, 1 << 40, "bench"), exchange(body)
    return lambda: writer.write(one, via="http://www.example.org/")


def by_warcio(folder: Path, body: bytes) -> Callable[[], object]:
    writer = WARCWriter((folder / "warcio.warc.gz").open("wb"), gzip=True, warc_version="1.1")

    def write() -> None:
        response = writer.create_warc_record(
            URL,
            "response",
            payload=BytesIO(body),
            http_headers=StatusAndHeaders("200 OK", list(FIELDS), protocol="HTTP/1.1"),
            warc_headers_dict={"WARC-IP-Address": "192.0.2.7"},
        )
        request = writer.create_warc_record(
            URL,
            "request",
            payload=BytesIO(b""),
            http_headers=StatusAndHeaders(
                "/articles/2026/some-page.html HTTP/1.1", list(REQUEST_FIELDS), protocol="GET", is_http_request=True
            ),
        )
        writer.write_request_response_pair(request, response)
        facts = b"via: http://www.example.org/\r\ndepth: 3\r\nfetchTimeMs: 125\r\nhopsFromSeed: LLL\r\n"
        writer.write_record(
            writer.create_warc_record(
                URL,
                "metadata",
                payload=BytesIO(facts),
                length=len(facts),
                warc_content_type="application/warc-fields",
            )
        )

    return write


def microseconds(work: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - start) / count * 1e6


def main() -> None:
    arguments(__doc__)
    body = page()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, theirs = by_fyke(folder, body), by_warcio(folder, body)
        fyke = min(microseconds(ours, PAGES) for _ in range(ROUNDS))
        warcio = min(microseconds(theirs, PAGES // 10) for _ in range(ROUNDS))
    print(f"page of {len(body)} bytes, best of {ROUNDS} rounds, CPU time a page")
    print(f"fyke    {fyke:7.1f} µs")
    print(f"warcio  {warcio:7.1f} µs   {warcio / fyke:.1f} times fyke's")


if __name__ == "__main__":
    main()
