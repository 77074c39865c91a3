"""What a page says of others is said of the URLs that the crawl fetches."""

import pytest

from fyke.core.outcomes import Outcome
from fyke.core.resolve import LinkResolver
from fyke.core.urls import key_of
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser
from fyke.search.extract import TextExtractor

PAGE = "<link rel=canonical href='/?ы'><a href='/s?q=поиск#x'>слова</a><a href='/путь'>другие</a>"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=windows-1251\r\n\r\n"


def test_anchors_point_where_the_crawl_goes() -> None:
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    read = Parser(shared=True).parse(exchange, PAGE.encode("cp1251"))
    *followed, own = LinkResolver().resolve([(read.links.base, read.links.pages)]).locators()
    found = TextExtractor().extract(read)
    assert found is not None
    assert {anchor.target for anchor in found.anchors} == {at.key for at in followed}
    assert (found.canonical, own.url) == (own.key, b"http://example.com/?%FB")
    assert key_of("http://example.com/s?q=%EF%EE%E8%F1%EA") in {anchor.target for anchor in found.anchors}


@pytest.mark.parametrize(
    ("path", "media_type", "text", "title"),
    [
        ("a", "text/markdown", "# Reading the tide gauge\n\nIt stands at Dover.", "Reading the tide gauge"),
        ("a.md", "text/plain", "\n---\n  ## Reading the *tide* gauge ##\nIt stands.", "Reading the *tide* gauge"),
        ("README.MD?raw", "text/plain", "# C#\n", "C#"),
        ("a", "text/markdown", "#hashtag\n", "#hashtag"),
        ("a", "text/plain", "# A comment of a script\n", "# A comment of a script"),
    ],
)
def test_the_sign_of_a_heading_is_not_of_the_title(path: str, media_type: str, text: str, title: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b; charset=utf-8\r\n\r\n" % media_type.encode()
    exchange = Exchange(visit_to(f"http://example.com/{path}"), Outcome.OK, 0.0, 0.0, status=200, head=head)
    found = TextExtractor().extract(Parser().parse(exchange, text.encode()))
    assert found is not None and found.title == title
