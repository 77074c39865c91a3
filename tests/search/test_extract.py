"""What a page says of others is said of the URLs that the crawl fetches."""

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
