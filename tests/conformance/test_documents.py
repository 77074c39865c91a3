"""Sitemaps, feeds and pages from the tests of other crawlers: what Python's own parsers find in them is found."""

import gzip
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree

from conformance.oracles import ORACLES, judge
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser

SITEMAPS = ORACLES / "sitemaps" / "files"
PAGES = ORACLES / "stormcrawler-pages"
TYPES = {
    ".xml": "application/xml", ".rss": "application/rss+xml", ".txt": "text/plain", ".gz": "application/gzip",
    ".html": "text/html",
}  # fmt: skip


def parsed(path: Path) -> Page:
    """The page that `path` would be at the root of a host."""
    url = f"http://h/{path.name}"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {TYPES[path.suffix]}\r\n\r\n".encode()
    exchange = Exchange(visit_to(url), Outcome.OK, 0.0, 0.0, status=200, head=head)
    return Parser().parse(exchange, path.read_bytes())


def links(page: Page) -> set[str]:
    """What `page` leads to, pages and further sitemaps."""
    hrefs = page.links.pages + page.links.listings
    return {at.url.decode() for at in LinkResolver().resolve([(page.links.base, hrefs)]).locators()}


def in_xml(data: bytes) -> Iterator[str]:
    """Locations and their alternates, links of entries, as ElementTree reads them."""
    root = ElementTree.fromstring(data.strip())
    for parent in root.iter():
        for node in parent:
            name, above = (each.tag.rpartition("}")[2] for each in (node, parent))
            text = (node.text or "").strip()
            if name in ("link", "loc", "sitemap") and above not in ("image", "video"):
                yield text or (node.get("href", "") if node.get("rel", "alternate") == "alternate" else "")
            elif name == "guid" and text.startswith("http") and node.get("isPermaLink") != "false":
                yield text


def expected(path: Path) -> set[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if data.lstrip().startswith(b"<"):
        found = list(in_xml(data))
    else:
        found = data.decode("utf-8-sig").split() if "sitemap" in path.name else []
    return {str(canonical(url)) for url in found if url}


def test_sitemaps_and_feeds() -> None:
    problems = {}
    files = [path for path in SITEMAPS.rglob("*") if path.is_file()]
    for path in [*files, *PAGES.glob("*.xml*"), *PAGES.glob("*.rss")]:
        ours, theirs = links(parsed(path)), expected(path)
        problems[path.name] = "" if ours == theirs else f"more {ours - theirs}, less {theirs - ours}"
    judge(problems)


class Anchors(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag in ("a", "area") and "nofollow" not in (given.get("rel") or "").split():
            self.hrefs.append(given.get("href") or "")


def test_every_anchor_of_a_page() -> None:
    problems = {}
    for path in PAGES.glob("*.html"):
        page = parsed(path)
        hrefs = Anchors(page.text).hrefs
        joined = {canonical(urljoin(page.url, href.strip())) for href in hrefs if href and not href.startswith("#")}
        missing = joined - links(page) - {None}
        problems[path.name] = f"less {missing}" if missing else ""
    judge(problems)


def test_pages_about_one_thing_each() -> None:
    assert links(parsed(PAGES / "redir.html")) == {"http://www.somesite.com/site"}
    assert links(parsed(PAGES / "duplicateLinks.html")) == {"http://stormcrawler.net/"}
    assert links(parsed(PAGES / "javascriptLinks.html")) == {"http://h/mylink"}
