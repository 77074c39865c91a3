"""What a copy shows is what the crawl has fetched for it."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Page, visit_to
from fyke.harvest import Parser
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
