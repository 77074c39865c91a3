"""Law: reading a body takes time in proportion to its size, or no more than a cap, whatever a server wrote.

Each reader of outside bytes gets a quarter of a megabyte and a megabyte of what is worst for it: long runs of one
byte, openings that are never closed, separators without words. Four times the bytes may take eight times the
processor's time of this thread, so that a busy machine passes and work that grows with the square does not.
"""

import gc
import gzip
import time
from collections.abc import Callable

import pytest

from fyke.core.pages import Page
from fyke.export.prose import markdown, plain
from fyke.fetcher.robots_rules import RobotsRules
from fyke.harvest import Parser
from fyke.search.main_text import main_text
from fyke.serve.copies import copy_of
from harvest.conftest import make_answer

SHORT = 1 << 18
SLACK_S = 0.3  # a cold cache, a busy machine; what grows with the square takes minutes
Reader = Callable[[bytes], object]


def document(media_type: str, url: str = "http://example.com/a", before: bytes = b"") -> Reader:
    parser = Parser(requisites=True)
    return lambda body: parser.parse(make_answer(url, media_type), before + body)


def attribute(name: bytes) -> Reader:
    read = document("text/html; charset=utf-8")
    return lambda body: read(b'<img %b="%b">' % (name, body.replace(b'"', b"'")))


def header(body: bytes) -> None:
    value = body.replace(b"\n", b" ").decode("latin-1")
    for field in ("Link", "Refresh", "X-Robots-Tag", "Content-Type", "Location"):
        Parser(requisites=True).parse(make_answer(fields=f"{field}: {value}"), b"")


def read_aloud(of: Callable[[Page], object], media_type: str) -> Reader:
    parser = Parser()
    return lambda body: of(parser.parse(make_answer(media_type=media_type), body))


def shown_with(body: bytes) -> None:
    """A page in a frame, with `body` for its style sheet."""
    sheet = Parser().parse(make_answer(media_type="text/css"), body)
    copy_of(Parser().parse(make_answer(), b"<link rel=stylesheet href=/a>"), lambda url: sheet)


def declared(body: bytes) -> None:
    """A list of as many elements, and attributes that each has by default."""
    defaults = b"".join(b'b%d CDATA "" ' % number for number in range(len(body) // 100))
    read = document("text/xml", before=b"<!DOCTYPE urlset [<!ATTLIST z " + defaults + b">]><urlset>")
    read(body + b"</urlset>")


def rules(body: bytes) -> None:
    RobotsRules.parse(body, "fyke").verdict(f"/{'a' * 1000}")


READERS: dict[str, tuple[Reader, list[bytes]]] = {
    "css": (
        document("text/css"),
        [b"url( ", b"url(", b"@import ", b"@import url(", b"/*", b"'", b"\\", b"url('", b"("],
    ),
    "css blank": (document("text/css", before=b"url("), [b" ", b"\n", b"a", b"\\ "]),
    "style": (attribute(b"style"), [b"url( ", b"url('", b"/*"]),
    "srcset": (attribute(b"srcset"), [b" ", b", ", b"a,", b"a (", b"("]),
    "ftp": (
        document("", "ftp://h/a/"),
        [b"drwxr-xr-x 1 a" + b" 1" * 2000 + b"\n", b"-rw-r--r-- 1 " + b"Jan 1 " * 600 + b"\n", b"a=b;" * 1000 + b"\n"],
    ),
    "gopher": (document("", "gopher://h/1/"), [b"\t", b"1a\tb\tc\t70\n", b"hURL:\t", b"\n"]),
    "text sitemap": (document("text/plain", "http://h/sitemap.txt"), [b" ", b"http://", b"http://a/ \n", b"\n"]),
    "sitemap": (
        document("text/xml", before=b"<urlset><url>"),
        [b"<loc>", b"<loc>http://a/", b"&a", b"&", b"<![CDATA["],
    ),
    "feed": (document("text/xml", before=b"<rss>"), [b"<item><link>", b"]]>", b"<!--", b"<!DOCTYPE [", b"<?", b"'"]),
    "gzip": (document("application/gzip", "http://h/sitemap.xml.gz"), [gzip.compress(b"", mtime=0), b"\x1f\x8b"]),
    "html": (document("text/html"), [b"<", b"<!--", b"<a href=x>", b"<x a ", b"<meta charset=", b"&", b"\xc3", b"\0"]),
    "frames": (
        document("text/html"),
        [b"<iframe srcdoc='<a href=x>'></iframe>", b"<iframe srcdoc=x>", b"<iframe srcdoc='"],
    ),
    "framed": (document("text/html", before=b"<iframe srcdoc='"), [b"&lt;", b"&lt;a href=x>", b"&", b"<option>"]),
    "options": (document("text/html", before=b"<select>"), [b"<option>", b"<option>a</option>"]),
    "options in no charset": (
        document("text/html", before=b"<meta a=charset>" + b"x" * 2000 + b"<select>"),
        [b"<option>"],
    ),
    "options of a list": (document("text/xml", before=b"<urlset>\xff<select>"), [b"<option>"]),
    "declared": (declared, [b"<z/>"]),
    "json": (document("application/json", before=b'"jsonfeed.org"'), [b"[", b'{"a":', b"1", b'"']),
    "header": (header, [b"<", b"<>;", b"<>;a=", b" ", b",", b"<a>;a=b", b";charset="]),
    "shown": (
        read_aloud(lambda page: copy_of(page, lambda url: None), "text/html"),
        [b"<!---->", b"<!--", b" ", b"<a href=x>", b"<link href=x>", b"<img src=x>"],
    ),
    "shown with": (shown_with, [b"@import url(", b"@import a", b"@import ", b" "]),
    "text as markdown": (read_aloud(markdown, "text/plain"), [b" ", b"\n", b"\n ", b"\t\r", b"_", b"`", b"1", b"# "]),
    "indexed": (
        read_aloud(main_text, "text/html"),
        [b"<nav>x</nav>", b"<h2>x y</h2>", b"<p class=pager>a</p>", b"<option>"],
    ),
    "markdown": (
        read_aloud(markdown, "text/html"),
        [b"<option>x", b"<p>a", b"<a href=x>a", b"<br> ", b"<li>", b"&amp;"],
    ),
    "robots": (rules, [b"*", b"a*", b"Disallow: /*a*\n", b"Disallow: a", b" ", b"\r", b"%", b"User-agent: *\n"]),
}


@pytest.mark.parametrize(("name", "piece"), [(name, piece) for name in READERS for piece in READERS[name][1]])
def test_work_grows_with_the_size(name: str, piece: bytes) -> None:
    read = READERS[name][0]

    def seconds(size: int) -> float:
        body = piece * (size // len(piece))
        gc.disable()  # it walks over all that tests before this one left
        began = time.thread_time()
        try:
            read(body)
            return time.thread_time() - began
        finally:
            gc.enable()

    short, long = seconds(SHORT), seconds(4 * SHORT)
    for _ in range(6):
        if long <= 8 * short + SLACK_S:
            return
        short, long = min(short, seconds(SHORT)), min(long, seconds(4 * SHORT))
    assert long <= 8 * short + SLACK_S, f"{short:.3f} s for {SHORT} bytes, {long:.3f} s for four times as many"


@pytest.mark.parametrize("opening", ["<ul><li>", "<ul><li>a", "<ol><li>", "<div>", "<blockquote>", "<pre>"])
def test_what_is_nested_deeply_is_still_text(opening: str) -> None:
    page = Parser().parse(make_answer(), f"{opening * 5000}some words".encode())
    assert "some words" in markdown(page) and "some words" in plain(page)
