"""Feeds in the formats that are found in the wild."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fyke.core.batches import Kind
from fyke.core.pages import Page
from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical
from fyke.harvest import Parser
from fyke.harvest.links import MOST_LINKS
from harvest.conftest import make_answer

Read = Callable[..., Page]

RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<title> The  title </title><link>http://h/</link><atom:link rel="self" href="http://h/self"/>
<atom:link rel="next" href="http://h/feed?2"/><image><title>i</title><link>http://h/image</link></image>
<item><title>one</title><link>http://h/1</link><guid>http://h/guid1</guid><comments>http://h/c</comments></item>
<item><link><![CDATA[http://h/2?a&b]]></link><guid isPermaLink="false">http://h/no</guid>
<enclosure url="http://h/e.mp3"/></item><item><guid>tag:x</guid><description>&lt;a href=z></description></item>
</channel></rss>"""
RSS_LINKS = ["http://h/", "http://h/feed?2", "http://h/1", "http://h/guid1", "http://h/2?a&b"]
RSS_091 = """<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"
"http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel><title>caf&eacute;</title>
<link>http://h/</link><item><link>http://h/1</link></item></channel></rss>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="http://h/x"><title>t</title><link>http://h/</link></channel>
<item rdf:about="http://h/1"><link>http://h/1</link></item></rdf:RDF>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://h/blog/"><title>t</title>
<link rel="self" href="feed"/><link href="."/><link rel="hub" href="http://hub/"/>
<entry><title>not this</title><link rel="alternate" href="1"/><link rel="enclosure" href="e"/>
<link rel="edit" href="x"/><id>http://h/id</id></entry><entry><link href="2"/>
<content type="html">&lt;a href=no></content></entry></feed>"""


@pytest.mark.parametrize(
    ("feed", "links", "title"),
    [
        (RSS, RSS_LINKS, "The title"),
        (RSS_091, ["http://h/", "http://h/1"], "café"),
        (RDF, ["http://h/", "http://h/1"], "t"),
        (ATOM, ["http://h/blog/", "http://h/blog/1", "http://h/blog/2"], "t"),
    ],
)
@pytest.mark.parametrize("media_type", ["application/rss+xml", "text/xml", "", "text/html"])
def test_xml_feeds(read: Read, feed: str, links: list[str], title: str, media_type: str) -> None:
    if media_type in ("", "text/html") and not feed.startswith("<?xml"):
        feed = f"<?xml version='1.0'?>{feed}"
    page = read(feed, media_type=media_type)
    assert (page.links.pages, page.title) == (links, title)
    assert page.links.base == page.url


@pytest.mark.parametrize(
    ("feed", "links"),
    [
        (RSS.replace("</title><link>", "</title>&nbsp;<link>"), RSS_LINKS),
        (RSS[:-30], RSS_LINKS),
        (ATOM.replace("</feed>", ""), ["http://h/blog/", "http://h/blog/1", "http://h/blog/2"]),
        (RDF.replace("xmlns:rdf", "xmlns:foo").replace("</item>", ""), ["http://h/", "http://h/1"]),
    ],
)
def test_broken_feeds(read: Read, feed: str, links: list[str]) -> None:
    assert set(links) <= set(read(feed, media_type="application/xml").links.pages)


bases = st.sampled_from(["", "http://o/", "a/", "../", "/r/s", "?q", "//x/y/", "mailto:x", "http://[", "a" * 9000])
trees = st.recursive(st.just(["link"]), lambda inner: st.lists(st.tuples(bases, inner), max_size=4), max_leaves=12)


@given(trees)
@example([("http://o/a/", [("b/", ["link"]), ("", [("../c/", ["link"])])]), ("", ["link"])])
def test_a_base_counts_for_what_is_below_it(read: Read, tree: list[Any]) -> None:
    """Whether the document is whole or broken; a base that is none changes nothing."""
    expected: list[str] = []

    def written(children: list[Any], base: str) -> str:
        text = ""
        for child in children:
            if child == "link":
                name = f"x{len(expected)}"
                expected.append(f"{canonical(name, base)}")
                text += f"<entry><link href='{name}'/></entry>"
            else:
                own, inner = child
                below = canonical(own, base) if own else None
                usable = below is not None and len(below) < 256
                attribute = f" xml:base='{own}'" if own else ""
                text += f"<div{attribute}>{written(inner, below if usable and below else base)}</div>"
        return text

    document = f"<feed>{written(tree, 'http://example.com/dir/page.html')}</feed>"
    for whole in (document, document.replace("</feed>", "")):
        page = read(whole, media_type="application/atom+xml")
        found = LinkResolver().resolve([(page.links.base, page.links.pages)]).locators()
        assert [at.url.decode() for at in found] == expected


def test_json_feed(read: Read) -> None:
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": " t  t ",
        "home_page_url": "http://h/",
        "feed_url": "http://h/feed.json",
        "next_url": "http://h/feed.json?2",
        "items": [{"id": "1", "url": "http://h/1", "external_url": "http://o/"}, {"id": 2, "url": 3}, "x"],
    }
    for media_type in ("application/feed+json", "application/json"):
        page = read(json.dumps(feed), media_type=media_type)
        assert page.links.pages == ["http://h/", "http://h/feed.json?2", "http://h/1", "http://o/"]
        assert page.title == "t t"


def test_a_number_that_python_does_not_read_costs_no_link(read: Read) -> None:
    text = '{"version": "https://jsonfeed.org/version/1", "items": [{"id": %s, "url": "http://h/1"}]}' % ("9" * 5000)
    assert read(text, media_type="application/feed+json").links.pages == ["http://h/1"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"jsonfeed.org"',
        '{"a":"jsonfeed.org"}',
        '{"version":"jsonfeed.org","items":7,"title":[]}',
        '{"version":"jsonfeed.org","items":' + "[" * 100_000,
    ],
)
def test_other_json_is_left_alone(read: Read, text: str) -> None:
    assert read(text, media_type="application/json").links.pages == []


_PIECES = [
    "<rss>",
    "<channel>",
    "<item>",
    "<link>",
    "</link>",
    "<link href='",
    "<a xlink:href='",
    "'>",
    "<feed xml:base='http://[",
    "<title>",
    "\x00",
    "]]>",
]


@given(
    st.lists(st.sampled_from(_PIECES)).map("".join),
    st.sampled_from(["<rss>", "<feed>", "<rdf:RDF>", "<svg>", '{"version":"jsonfeed.org"']),
)
def test_never_raises(answer: Callable[..., object], tail: str, root: str) -> None:
    kind = "application/json" if root.startswith("{") else "text/xml"
    Parser().parse(answer(media_type=kind), (root + tail).encode())  # type: ignore[arg-type]


NAMED = "xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'"
ANCHORS = """<title> A
drawing </title><g><a xlink:href='/a?x=1&amp;y=2'><text>a<title>no</title></text></a></g><a href="b"/><a/><a href=''/>
<a href='#top' /><a xlink:href='javascript:x()'/><use xlink:href='/no'/><image href='/no.png'/>
<a rel='x NoFollow' href='/n'/>
<g xml:base='/sub/'><a xlink:href='c' href='d'/></g><script>x = "&lt;a href='/no'>"</script><!-- <a href='/no'/> -->"""
DRAWINGS = [
    f"<?xml version='1.0'?><svg {NAMED}>{ANCHORS}</svg>",
    f"<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'svg11.dtd' [<!ENTITY ns 'x'>]><svg {NAMED}>{ANCHORS}</svg>",
    f"<svg {NAMED}>{ANCHORS}",  # breaks off
    f"<s:svg xmlns:s='http://www.w3.org/2000/svg' {NAMED}>{ANCHORS}</s:svg>",
]


@pytest.mark.parametrize("drawing", DRAWINGS)
@pytest.mark.parametrize("media_type", ["image/svg+xml", "text/xml", "image/svg+xml; charset=utf-8"])
def test_a_drawing(read: Read, drawing: str, media_type: str) -> None:
    page = read(drawing, "http://h/dir/plan.svg", media_type)
    assert page.links.pages == ["/a?x=1&y=2", "b", "http://h/sub/d"]
    assert page.links.nofollow == ["/n"] and page.title == "A drawing" and not page.listing


def test_of_a_drawing_that_a_page_shows_no_link_is_read() -> None:
    exchange = make_answer("http://h/plan.svg", "image/svg+xml")
    exchange.visit.kind = Kind.REQUISITE
    assert not len(Parser().parse(exchange, DRAWINGS[0].encode()).links)


def test_of_a_drawing_no_more_links_are_taken_than_of_a_page(read: Read) -> None:
    page = read("<svg>" + "".join(f"<a href='{n}'/>" for n in range(MOST_LINKS + 9)), media_type="image/svg+xml")
    assert len(page.links.pages) == MOST_LINKS and page.cut
