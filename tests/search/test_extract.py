"""What a page says of others is said of the URLs that the crawl fetches."""

import pytest

from fyke.core.outcomes import Outcome
from fyke.core.resolve import LinkResolver
from fyke.core.urls import key_of
from fyke.core.visits import Exchange, Page, visit_to
from fyke.export.prose import plain
from fyke.harvest import Parser
from fyke.search.extract import TextExtractor, main_text

PAGE = "<link rel=canonical href='/?ы'><a href='/s?q=поиск#x'>слова</a><a href='/путь'>другие</a>"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=windows-1251\r\n\r\n"


def page(html: str) -> Page:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=head)
    return Parser(shared=True).parse(exchange, html.encode())


@pytest.mark.parametrize(
    "said",
    [
        "春天的河水慢慢地流过古老的石桥，" * 6,
        "はるのかわはしずかにはしをくぐり、" * 6,
        "봄의 강은 조용히 다리를 지나고 " * 6,
    ],
)
def test_a_short_text_without_an_alphabet_is_a_main_text(said: str) -> None:
    """It says as much in a third of the characters: what stands beside it is no part of it."""
    beside = f"<div class=sidebar><p>{'Other news of the day. ' * 20}</p></div>"
    short = page(f"<body><article><p>{said}</p></article>{beside}</body>")
    assert main_text(short) == said.strip()
    assert plain(short) == said.strip()


@pytest.mark.parametrize("said", ["River. " * 20, "Река. " * 20, "桥。" * 5])
def test_where_the_main_text_is_little_all_is_taken(said: str) -> None:
    beside = f"<div class=sidebar><p>{'Other news of the day. ' * 40}</p></div>"
    assert "Other news" in main_text(page(f"<body><article><p>{said}</p></article>{beside}</body>"))


@pytest.mark.parametrize("said", ["River. " * 20, "River. " * 200])
@pytest.mark.parametrize("name", ["class='left widget-area'", "class=related", "id=related", "class='related-posts x'"])
def test_what_leads_elsewhere_by_its_name_is_no_main_text(name: str, said: str) -> None:
    """Also where the main text is little, and all is taken else."""
    beside = f"<div {name}><h3>New</h3><p>{'Other news of the day. ' * 40}</p></div>"
    assert main_text(page(f"<body><div><p>{said}</p></div>{beside}</body>")) == said.strip()


def test_anchors_point_where_the_crawl_goes() -> None:
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    read = Parser(shared=True).parse(exchange, PAGE.encode("cp1251"))
    *followed, own = LinkResolver().resolve([(read.links.base, read.links.pages)]).locators()
    found = TextExtractor().extract(read)
    assert found is not None
    assert {anchor.target for anchor in found.anchors} == {at.key for at in followed}
    assert (found.canonical, own.url) == (own.key, b"http://example.com/?%FB")
    assert key_of("http://example.com/s?q=%EF%EE%E8%F1%EA") in {anchor.target for anchor in found.anchors}
