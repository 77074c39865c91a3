"""Pages that mean harm, or are broken: they are indexed as far as they are text, and steer nothing."""

import io
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from fyke.core.outcomes import Outcome
from fyke.core.pages import HTML_TYPES
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser
from fyke.search.dates import date_of
from fyke.search.extract import PLAIN_TYPES, TITLE_CHARS, TextExtractor
from fyke.search.printing import clean, show
from search.archives import Answer, archive, html, searched, urls

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
HOSTILE = {
    "script": html("<script>alert(1)</script>kiwi", "kiwi"),
    "escape": html("kiwi \x1b]0;owned\x07\x1b[31mred", "kiwi \x1b[2J\x9b31m"),
    "bidi": html("kiwi \u202egnp.exe\u2066", "kiwi \u200f\u061c"),
    "markup": html("[bold red]kiwi[/]", "kiwi [link=file:///etc/passwd]x[/link]"),
    "long": html("kiwi " * 200_000),
    "latin": Answer("<title>kiwi \xe9\xff\xfe</title>kiwi".encode("latin-1")),
    "utf-16": Answer("<title>kiwi</title>kiwi".encode("utf-16")),
    "not utf-8": Answer(b"<meta charset=utf-8><title>kiwi \xff\xc3\x28</title>kiwi", headers={}),
    "null": Answer(b"<title>ki\x00wi kiwi</title>\x00\x00kiwi"),
    "nested": Answer("<title>kiwi</title>kiwi" + "<div>" * 50_000 + "kiwi"),
    "tags": Answer("<title>kiwi</title>kiwi" + "<font size=1><p>" * 20_000),
    "gzip": Answer(b"<title>kiwi</title>kiwi", headers={"Content-Encoding": "gzip"}),
    "unclosed": Answer("<title>kiwi"),
    "surrogates": html("kiwi &#xD800;&#xDFFF;&#0;&#x110000;"),
    "dates": html("kiwi", head='<meta name="date" content="99999-99-99"><time datetime="0001-01-01">'),
    "empty": Answer(""),
    "base": html("kiwi", links={"http://[::1": "kiwi", "//": "kiwi", "javascript:kiwi": "kiwi"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    visits = [(f"http://{n}.example/", answer) for n, answer in enumerate(HOSTILE.values())]
    return archive(tmp_path_factory.mktemp("hostile") / "crawl", visits)


def test_all_are_found(folder: Path) -> None:
    with searched(folder) as searcher:
        found = urls(searcher, "kiwi")
        missing = [name for n, name in enumerate(HOSTILE) if f"http://{n}.example/" not in found]
        assert missing == ["empty"]
        for hit in searcher.search("kiwi", limit=50).hits:
            assert len(hit.title) <= TITLE_CHARS


@pytest.mark.parametrize(
    "opening", ["<div>", "<h1><div>", "<b><p>", "<ul><li>", "<table><tr><td>", '<a href="/x"><div>']
)
def test_deep_nesting_is_read_in_time(opening: str) -> None:
    exchange = Exchange(visit_to("http://a.example/"), Outcome.OK, 1e9, 0.1, status=200, head=HEAD)
    page = Parser().parse(exchange, (opening * 30_000 + "kiwi").encode())
    begun = time.process_time()
    assert TextExtractor().extract(page) is not None
    assert time.process_time() - begun < 5


def test_the_terminal_is_not_steered(folder: Path) -> None:
    with searched(folder) as searcher:
        results = searcher.search('kiwi OR "\x1b[31m"', limit=50)
    for terminal in (False, True):
        out = io.StringIO()
        show(results, Console(file=out, force_terminal=terminal, color_system=None, width=80, highlight=False))
        printed = out.getvalue()
        assert "[bold red]kiwi[/]" in printed
        assert printed == "\n".join(clean(line) for line in printed.split("\n"))
    assert "\x1b" not in clean("\x1b[1m\x9b\u202e")


@settings(
    max_examples=80,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(body=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"<title>{text}</title>{text}".encode()))
@example(b"\x1f\x8b\x08")
@example(b"PK\x03\x04")
@example(b"\x89PNG\r\n\x1a\n")
def test_any_bytes_are_read(body: bytes) -> None:
    """As text, unless they begin as files of another kind do."""
    exchange = Exchange(visit_to("http://a.example/"), Outcome.OK, 1e9, 0.1, status=200, head=HEAD)
    page = Parser().parse(exchange, body)
    found = TextExtractor().extract(page)
    assert (found is None) == (page.media_type not in HTML_TYPES | PLAIN_TYPES)
    if found is None:
        return
    for text in (found.title, found.headings, found.description, found.text):
        text.encode()
        assert clean(text).split() == text.split()


@settings(max_examples=200, deadline=None)
@given(told=st.lists(st.text() | st.sampled_from(["2024-02-30", "2024-02-03T10:00", "Mon, 99 Feb 2024"])))
def test_any_date_is_read(told: list[str]) -> None:
    assert 0 < date_of(told, 1.7e9) < 1.8e9


def test_dates() -> None:
    assert date_of(["2023-01-02T03:04:05+01:00"], 1.7e9) == 1672625045
    assert date_of(["", "nonsense", "Mon, 02 Jan 2023 02:04:05 GMT"], 1.7e9) == 1672625045
    assert date_of(["2123-01-01", "1066-10-14"], 1.7e9) == 1_700_000_000
