"""The room as a whole: any bytes give a page, plug-ins harm nothing, links are where they should be."""

import time
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical, key_of
from fyke.core.visits import Exchange
from fyke.harvest import Parser

Answer = Callable[..., Exchange]
LONG_S = 20  # of a processor: what else runs on the machine does not stretch it


class Counter:
    media_types = ("text/*",)

    def process(self, page: Page) -> None:
        page.findings["Counter"] = len(page.text)


class Breaker:
    media_types = ("*/*",)

    def process(self, page: Page) -> None:
        raise RuntimeError("a plug-in's bug")


def test_plugins_see_the_finished_page_and_harm_nobody(answer: Answer) -> None:
    parser = Parser([Breaker(), Counter()])
    page = parser.parse(answer(), b"<title>t</title><a href=x>")
    assert (page.title, page.links.pages, page.findings) == ("t", ["x"], {"Counter": 26})
    image = parser.parse(answer(media_type="image/png"), b"\x89PNG")
    assert (image.findings, image.charset, image.text) == ({}, "", "")
    assert parser.failures == {"Breaker": 2} and parser.pages == 2


def test_first_step_knows_kind_and_fingerprint_only(answer: Answer) -> None:
    parser = Parser()
    page = parser.page_of(answer(), b"<title>t</title><a href=x>")
    assert (page.media_type, page.fingerprint) == ("text/html", key_of(b"<title>t</title><a href=x>"))
    assert (page.title, page.links.pages, page.links.base) == ("", [], page.url)
    assert parser.pages == 0
    parser.process(page)
    assert (page.title, page.links.pages) == ("t", ["x"])


@pytest.mark.parametrize("outcome", [Outcome.REDIRECTED, Outcome.CLIENT_ERROR, Outcome.SERVER_ERROR, Outcome.THROTTLED])
def test_the_body_of_a_page_that_is_none_is_not_mined(answer: Answer, outcome: Outcome) -> None:
    page = Parser([Counter()]).parse(answer(outcome=outcome), b"<a href=x>")
    assert (page.links.pages, page.findings, page.charset) == ([], {}, "utf-8")


def test_what_was_cut_is_mined(answer: Answer) -> None:
    assert Parser().parse(answer(outcome=Outcome.TOO_LARGE), b"<a href=x><a hr").links.pages == ["x"]


def test_our_name_in_robots_directives(answer: Answer) -> None:
    html = b"<meta name=otterbot content=noindex>"
    assert Parser(product="OtterBot").parse(answer(), html).noindex
    assert Parser(product="OtterBot").parse(answer(fields="X-Robots-Tag: otterbot: nofollow"), b"").nofollow


def test_media_types_without_end_do_not_fill_the_memory(answer: Answer) -> None:
    parser = Parser()
    for number in range(3000):
        parser.parse(answer(media_type=f"text/x{number}"), b"")
    assert len(parser._kinds) <= 1000


_PIECES = [
    *[
        "<a href=",
        "<base href=",
        "<link rel=next href=",
        "<meta name=robots content=",
        "<meta http-equiv=refresh content=",
    ],
    *["<iframe src=", "<img srcset=", "<svg>", "<style>", "</style>", "<title>", "<frameset><frame src=", "<template>"],
    *[
        "x",
        "'",
        '"',
        ">",
        "/",
        "http://[",
        "//h/",
        "../",
        "?q",
        "#f",
        " ",
        "\t",
        "\x00",
        "é",
        "0;url=",
        "none",
        "&#xD800;",
    ],
    *[
        "url(",
        ")",
        "@import",
        "/*",
        "\\",
        "<![CDATA[",
        "<?xml version='1.0'?>",
        "<urlset><url><loc>",
        "<rss><channel><link>",
    ],
]
_documents = st.binary(max_size=200) | st.lists(st.sampled_from(_PIECES), max_size=30).map(
    lambda p: "".join(p).encode()
)
_types = st.sampled_from(
    [
        "",
        "text/html",
        "text/html; charset=utf-16",
        "text/html; charset=gbk",
        "text/xml",
        "text/css",
        "text/plain",
        "application/json",
        "application/gzip",
        "application/xhtml+xml",
        "application/atom+xml",
        "image/png",
        "x",
    ]
)
_fields = st.sampled_from(
    ["", "Link: <x>; rel=next", "Location: x", "Refresh: 0;url=\x01", "X-Robots-Tag: none", "Link: <<>;;"]
)


@settings(max_examples=300, deadline=None)
@given(_documents, _types, _fields)
def test_any_bytes_give_a_page_and_its_links_resolve_to_canonical_urls(
    answer: Answer, content: bytes, media_type: str, fields: str
) -> None:
    parser = Parser(requisites=True)
    page = parser.parse(answer(media_type=media_type, fields=fields), content)
    assert len(page.title) <= 512
    assert canonical(page.links.base) == page.links.base
    found = page.links.pages + page.links.nofollow + page.links.requisites
    for at in LinkResolver().resolve([(page.links.base, found)]).locators():
        assert canonical(at.url.decode()) == at.url.decode()
    if page.nofollow:
        assert page.links.pages == []


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("text/html", "<meta http-equiv=refresh content='" + "1" * 200_000 + "'>"),
        ("text/html", "<a rel=nofollow href=x>" * 5_000),
        ("text/html", "<img srcset='" + "a(" * 50_000 + "'>"),
        ("text/html", "<div>" * 500_000),
        ("text/html", "<ul><li>" * 100_000),
        ("text/html", "".join(f"<font size={n}><p>" for n in range(100_000))),
        ("text/html", "".join(f"<font size={n}><p></p></font>" for n in range(20_000))),
        ("text/xml", "<rss>" + "".join(f"<font size={n}><p>" for n in range(10_000))),
        ("text/css", "url('" + "\\'" * 100_000),
        ("text/css", "url(" + "\\a" * 100_000),
        ("text/css", "url(" * 50_000),
        ("text/css", "/*" * 100_000),
        ("text/html", "<??>" * 20_000),
        ("text/html; charset=", "x" * 2000 + "<meta charset=x>" * 100_000),
        ("text/html; charset=", "<p a=" * 200 + "<meta charset='" + "'" * 100_000),
        ("text/html; charset=windows-1251", "<a href='?" + "ж" * 2_000_000 + "'>"),
        ("text/html; charset=iso-2022-jp", "<a href='?" + "\x1b$B8!:w" * 200_000 + "'>"),
        ("text/xml", "<urlset>" + "<url xml:base='a/'><loc>x</loc>" * 20_000),
        ("text/xml", "<?x?>" * 50_000),
        ("text/xml", "<urlset>" + "<url><loc>" * 20_000),
    ],
)
def test_nothing_a_page_says_makes_it_slow(answer: Answer, media_type: str, content: str) -> None:
    begun = time.thread_time()
    Parser(requisites=True).parse(answer(media_type=media_type), content.encode())
    assert time.thread_time() - begun < LONG_S


def test_nothing_a_header_or_link_says_makes_it_slow(answer: Answer) -> None:
    begun = time.thread_time()
    fields = "\n".join(["Link: " + "<" * 50_000, "Link: <x>" + ";  " * 20_000, "X-Robots-Tag: " + "a:" * 20_000])
    Parser().parse(answer(fields=fields, media_type="text/html;" + " " * 30_000), b"")
    slow = ["\t" * 16_000 + "x", "/a" * 8_000, "/" * 16_000, "../" * 5_000 + " ", "a%20" * 4_000 + " "]
    LinkResolver().resolve([("http://h/a/b", slow)]).locators()
    LinkResolver().resolve([("http://h/" + "/a" * 10_000 + " ", ["x"])]).locators()
    assert time.thread_time() - begun < LONG_S


def test_the_tree_stays_with_a_page_when_somebody_shares_it(answer: Answer) -> None:
    body = b"<title>t</title><a href=x>x</a><template></template>"  # of which only the tree can tell
    assert Parser([Counter()]).parse(answer(), body)._tree is not None
    assert Parser(shared=True).parse(answer(), body)._tree is not None
    alone = Parser().parse(answer(), body)
    assert alone._tree is None and alone.tree.css_first("a") is not None
    long = Parser().parse(answer(), b"<div>" * 20_000 + b"<a href=x>x</a>")
    assert long.links.pages == ["x"]
    assert long.tree.css_first("a") is None  # whoever asks gets no more than is safe


LONG = {  # how it begins, what follows again and again
    "text/html; charset=utf-8": (b"<title>t</title><base href=/b/>", b"<a href=%d>x</a><select><a href=/s%d>"),
    "text/html; charset=windows-1251": (b"<title>t</title>", b"<a href=%d?\xe0>\xe0</a><svg><a href=''>"),
    "text/html; charset=utf-16": (b"", "<a href=x>".encode("utf-16-le")),
    "application/xhtml+xml": (b"<title>t</title>", b"<a href='%d'/><script/>"),
    "text/xml; charset=windows-1251": (b"<urlset>", b"<url><loc>http://h/%d/\xe0</loc></url>"),
    "text/xml": (b"<urlset><", b"<url><loc>http://h/%d</loc></url>"),
    "text/plain": (b"", b"http://h/%d\n"),
}


@pytest.mark.parametrize("media_type", LONG)
@pytest.mark.parametrize("is_full", [False, True])
def test_what_is_read_on_disk_is_the_same(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, media_type: str, is_full: bool
) -> None:
    begin, again = LONG[media_type]
    content = begin + b"".join(again.replace(b"%d", b"%d" % number) for number in range(2000))
    url = "http://h.example/sitemap.txt"
    expected = Parser().parse(answer(url, media_type), content)
    monkeypatch.setattr("fyke.harvest.parser.HELD_BYTES", 1000)
    if is_full:
        monkeypatch.setattr("fyke.core.document.Document.to_disk", Mock(side_effect=OSError))
    for shared in (False, True):
        page = Parser(shared=shared).parse(answer(url, media_type), content)
        assert (page.links, page.title, page.charset) == (expected.links, expected.title, expected.charset)
        assert page.content == content and len(page.links) > 0


def test_what_is_large_is_not_held_while_it_is_read_nor_later(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    monkeypatch.setattr("fyke.harvest.parser.HELD_BYTES", 1000)
    page_of = Parser().page_of(answer(), b"<p>word" * 1000)
    monkeypatch.setattr("fyke.harvest.links.HtmlLinks.process", lambda _, page: held.append(type(page.source)))
    Parser().process(page_of)
    assert [*held, type(page_of.source)] == [Document] * 2 and page_of.content == b"<p>word" * 1000
