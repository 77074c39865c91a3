"""Law: reading a body takes bounded memory beside it, whatever a server wrote.

What one page may take decides what a crawl takes, since large ones are read one at a time. Measured is the most
memory of this process, which the kernel counts anew for each body.
"""

import gzip
import re
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest

from fyke.core.config import build
from fyke.core.document import read_on
from fyke.core.memory import Trimmer
from fyke.harvest import Parser
from fyke.harvest.fields import Extractor
from fyke.harvest.links import scanned
from fyke.harvest.xmlscan import Read, scan
from harvest.conftest import make_answer

MOST_MB = 160
SIZE = 12 << 20
LIST = b"<urlset>"
WIDE = "utf-16-le"
FEED = b'{"version":"https://jsonfeed.org/version/1","items":['

BODIES: dict[str, tuple[str, bytes, bytes]] = {  # media type, how it begins, and what follows again and again
    "a list of nothing but depth": ("text/xml", LIST, b"<a>"),
    "a broken list of empty tags": ("text/xml", LIST + b"<", b"<a/>"),
    "a broken list of entities": ("text/xml", LIST + b"<", b"&a;"),
    "a list in wide letters": ("text/xml", LIST.decode().encode("utf-16"), "<loc>/\U0001f600</loc>".encode(WIDE)),
    "a list in Thai": ("text/xml; charset=windows-874", LIST + b"<url><loc>", b"\xa1"),
    "a feed of objects": ("application/feed+json", FEED, b'{"":{}},'),
    "text with a smile": ("text/plain", "\U0001f600".encode(), b"words and more "),
    "a page with a smile": ("text/html", "\U0001f600".encode(), b"words and more "),
    "a page of empty tags": ("application/xhtml+xml", b"", b"<a b='c'/>"),
    "a page of anchors": ("text/html", b"", b"<a href=/%d>"),
    "a page of links not to follow": ("text/html", b"", b"<a rel=nofollow href=/%d>"),
    "a page of what comes next": ("text/html", b"", b"<link rel=next href=/%d>"),
    "a feed of long defaults": (
        "text/xml", b"<!DOCTYPE rss [<!ATTLIST link href CDATA '%b'>]><rss><channel>" % (b"a" * 30_000), b"<link/>",
    ),
    "attributes on every tag": ("text/html", b"<template>", b"<p " + b" ".join(b"x%x" % n for n in range(240)) + b">"),
    "formatting made again": ("text/html", b"", b"<b><i><a></b></i>"),
    "attributes with values": ("text/html", b"", b"<p id=i%d name=n>"),
    "a page and its parts without frames": (
        "text/html", b"", b"%b<noframes>%b</noframes>" % (2 * (b"<p id=i name=n>" * 190_000,)),
    ),
    "documents in frames": (
        "text/html", b"", b'<iframe srcdoc="%b"></iframe>' % (b"&lt;p id=i name=n>" * 40_000),
    ),
    "a page and a document in its frame": (
        "text/html", b"", b'%b<iframe srcdoc="%b"></iframe>' % (2 * (b"<p id=i name=n>" * 190_000,)),
    ),
    "fonts made again": ("text/html", b"".join(b"<font size=%d>" % size for size in range(900)), b"<p>"),
}  # fmt: skip

EXTRACTOR = Extractor(build({"extract": [{"table": "things", "fields": {"name": "h1"}}]}, "test").extract[0])


def memory_mb(name: str) -> float:
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]


def body_of(begin: bytes, piece: bytes) -> bytes:
    if b"%d" in piece:
        return begin + b"".join(piece % number for number in range(SIZE // (len(piece) + 4)))
    return begin + piece * (SIZE // len(piece))


@pytest.mark.parametrize("extractors", [[], [EXTRACTOR]], ids=["links", "fields"])
@pytest.mark.parametrize("name", BODIES)
def test_memory_is_bounded(name: str, extractors: list[Extractor]) -> None:
    media_type, begin, piece = BODIES[name]
    body = body_of(begin, piece)
    Trimmer().trim()  # or what was freed before hides what is taken now
    before = memory_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew: proc_pid_clear_refs(5)
    Parser(extractors=extractors).parse(make_answer(media_type=media_type), body)
    assert memory_mb("VmHWM") - before < MOST_MB


LATE = b"<p>%b<meta charset=utf-8>" % (b" " * 1024)
LONG: dict[str, tuple[str, bytes, bytes]] = {
    "a page": ("text/html; charset=utf-8", b"", b"<p>words and "),
    "a page that says late what its charset is": ("text/html", LATE, b"words and more "),
    "a list": ("text/xml; charset=utf-8", LIST, b"<url><loc>/</loc>%b</url>" % (b"words " * 500)),
    "a list in Thai": ("text/xml; charset=windows-874", LIST, b"<url>%b\xa1</url>" % (b"words " * 500)),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_body_is_not_in_memory_while_it_is_read_nor_later(name: str) -> None:
    media_type, begin, piece = LONG[name]
    parser = Parser()
    page = parser.page_of(make_answer(media_type=media_type), begin + piece * (4 * SIZE // len(piece)) + b"</urlset>")
    tracemalloc.start()
    parser.process(page)
    left_bytes, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert left_bytes < 1 << 20 and most_bytes < 2.5 * SIZE < page.size_bytes / 1.5


def test_a_list_in_gzip_is_not_in_memory_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    held_bytes = []

    def begun(read: Read, *_: object) -> None:
        assert next(read()).startswith(LIST)
        held_bytes.append(tracemalloc.get_traced_memory()[0])

    monkeypatch.setattr("fyke.harvest.sitemap.scan", begun)
    content = gzip.compress(LIST + b"<url><loc>/</loc></url>" * (SIZE // 20))
    tracemalloc.start()
    Parser().parse(make_answer(media_type="application/gzip"), content)
    tracemalloc.stop()
    assert max(held_bytes) < SIZE / 3


@pytest.mark.parametrize("piece", [b"<a href=/a>", b"<a href=/%d>", b"<a rel=nofollow href=/%d>"])
def test_of_very_many_links_few_are_held(piece: bytes) -> None:
    body = body_of(b"", piece)
    scanned(b"<p>", "fyke")
    tracemalloc.start()
    found = scanned(body, "fyke")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None and most_bytes < 3 * SIZE


@pytest.mark.parametrize(
    ("begin", "end"),
    [(LIST + b"<loc>", b"</loc></urlset>"), (b"<!DOCTYPE urlset [<!ELEMENT a (b)>]><urlset><", b"")],
    ids=["one long text", "broken, behind a DOCTYPE"],
)
def test_a_list_is_not_held_another_time(begin: bytes, end: bytes) -> None:
    content = begin + b"words and\n" * (4 * SIZE // 10) + end
    tracemalloc.start()
    scan(lambda: read_on(BytesIO(content)), "http://h.example/", lambda *_: None)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 3 * SIZE < len(content)
