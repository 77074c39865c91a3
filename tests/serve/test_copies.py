"""What a copy shows is what the crawl has fetched for it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser
from fyke.serve import copies
from fyke.serve.copies import CUT, copy_of
from serve.hostile import CALL, LINKS

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=windows-1251\r\n\r\n"


def test_parts_are_looked_for_under_the_addresses_they_were_fetched_from() -> None:
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    html = "<link rel=stylesheet href='/стиль?я'><img src='i?ж&amp;x'>"
    page = Parser(requisites=True).parse(exchange, html.encode("cp1251"))
    asked: list[str] = []

    def find(url: str) -> Page | None:
        asked.append(url)
        return None

    copy_of(page, find)
    assert asked == ["http://example.com/%D1%81%D1%82%D0%B8%D0%BB%D1%8C?%FF", "http://example.com/i?%E6&x"]


@pytest.mark.parametrize("name", LINKS)
def test_links_lead_nowhere(name: str) -> None:
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    copy = copy_of(Parser().parse(exchange, LINKS[name].encode()), lambda _: None)
    for node in LexborHTMLParser(copy.content).css("*"):
        for attribute, value in node.attributes.items():
            assert attribute == "title" or CALL not in (value or ""), node.html


LINK = f"<a href='{CALL}'>x</a>"
ESCAPED = LINK.replace("<", "&lt;")
TOKENS = [
    "<svg>", "<math>", "<mtext>", "<mglyph>", "<annotation-xml>", "<desc>", "<foreignObject>", "<style>", "<xmp>",
    "<noembed>", "<noframes>", "<noscript>", "<plaintext>", "<title>", "<textarea>", "<form>", "<table>", "<td>",
    "<select>", "<p>", "<b>", "<a>", "<pre>", "<br>", "<template>", "<iframe>", "<script>", "<head>", "<body>",
    "</svg>", "</math>", "</style>", "</form>", "</table>", "</title>", "</xmp>", "</noscript>", "</noframes>",
    "</head>", "<!--", "-->", "<![CDATA[", "]]>", LINK, ESCAPED, "&amp;lt;!--", "&lt;!--", "&lt;/style>",
    "<link rel=stylesheet href=s>",
    f'<p title="</style>{LINK}">', f'<p title="--&gt;{LINK}">', f'<p title="</title>{LINK}">',
]  # fmt: skip


@given(
    st.lists(st.sampled_from(TOKENS), min_size=1, max_size=9), st.sampled_from([LINK, f"-->{LINK}", f"</style>{LINK}"])
)
@example(["<svg>", "<style>", ESCAPED], "")
@example(["<math>", "<xmp>", ESCAPED], "")
@example(["<svg>", "<style>", "&lt;!--", ESCAPED.replace("&", "&amp;")], "")
@example(["<link rel=stylesheet href=s>", "<style>", "</head>", LINK], "")
@example(["<link rel=stylesheet href=s>", "<head>", "<!--", "</head>", LINK], f"-->{LINK}")
def test_links_lead_nowhere_as_a_browser_reads_them(tokens: list[str], sheet: str) -> None:
    """What we write is read anew: text that was read as text may not be a link then."""
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css; charset=utf-8\r\n\r\n"
    style = Exchange(visit_to("http://example.com/s"), Outcome.OK, 0.0, 0.0, status=200, head=head)
    copy = copy_of(
        Parser(requisites=True).parse(exchange, "".join(tokens).encode()),
        lambda _: Parser().parse(style, sheet.encode()),
    )
    for node in LexborHTMLParser(copy.content).css("*"):
        for attribute, value in node.attributes.items():
            assert attribute == "title" or CALL not in (value or ""), copy.content


def test_a_style_sheet_means_what_it_meant() -> None:
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    css = "a>b{color:red} @media (width<9px){a{content:'&lt;'}}"
    page = Parser().parse(exchange, f"<style>{css}</style><svg><style>c>d{{}}</style></svg>".encode())
    copy = copy_of(page, lambda _: None)
    assert [node.text() for node in LexborHTMLParser(copy.content).css("style")] == [css, "c>d{}"]
    page = Parser().parse(exchange, b"<style><!-- a{content:'<b>'} --></style>")
    assert b"<style>  a{content:'\\3c b>'} --></style>" in copy_of(page, lambda _: None).content


def test_parts_that_are_too_many_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of images are read only while images may still be put in."""
    read: list[str] = []
    monkeypatch.setattr(copies, "canonical", lambda href, base: read.append(href))
    monkeypatch.setattr(copies, "PARTS_S", 0.0)
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    copy_of(Parser().parse(exchange, b"<img src=x>" * 1000), lambda _: None)
    assert not read


def test_what_stays_in_the_page_stays() -> None:
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    picture = "data:image/png;base64,AA=="
    html = f"<svg><use xlink:href='#x'></use><image href='{picture}'></image></svg><a href='#y'>y</a>".replace("'", '"')
    assert html.encode() in copy_of(Parser().parse(exchange, html.encode()), lambda _: None).content


@pytest.mark.parametrize("kind", ["text/html", "text/plain"])
@pytest.mark.parametrize("lines", [10, 800_000])
def test_a_copy_that_lacks_the_end_says_so(kind: str, lines: int) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=head)
    copy = copy_of(Parser().parse(exchange, b"a line\n" * lines + b"the end"), lambda _: None)
    assert (b"the end" in copy.content) != (CUT.encode() in copy.content)


def test_a_shadow_tree_is_shown_and_nothing_is_said_to_be_cut() -> None:
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    html = "<my-app><template shadowrootmode=open><p>within</p></template>the end</my-app>"
    copy = copy_of(Parser().parse(exchange, html.encode()), lambda _: None)
    assert b"within" in copy.content and b"the end" in copy.content and CUT.encode() not in copy.content
