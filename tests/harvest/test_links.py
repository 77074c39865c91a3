"""What an HTML page links to, asks of robots, and is called."""

import gzip
from collections.abc import Callable

import pytest
from hypothesis import given, strategies

from fyke.core.markup import MAX_BYTES
from fyke.core.pages import Page
from fyke.core.resolve import MOST_WRITTEN_BYTES
from fyke.harvest import Parser
from fyke.harvest.large_pages import opened
from fyke.harvest.links import MOST_TREES
from harvest.conftest import make_answer

Read = Callable[..., Page]


@pytest.mark.parametrize(
    ("html", "pages"),
    [
        ("<a href=x>", ["x"]),
        ("<A HREF='x'>y</A>", ["x"]),
        ("<a href=x><a href=y><a href=x>", ["x", "y"]),
        ("<a name=x><a href><a href=''>", []),
        ("<a href='x&amp;y=1&copy=2'>", ["x&y=1&copy=2"]),
        ("<a href='/é'>", ["/é"]),
        ("<area href=x>", ["x"]),
        ("<iframe src=x></iframe>", ["x"]),
        ("<frameset><frame src=x><frame src=y></frameset>", ["x", "y"]),
        ("<noscript><a href=x></a></noscript>", ["x"]),
        ("<frameset><frame src=x><noframes><body><a href='y&amp;z'>y</a></body></noframes></frameset>", ["x", "y&z"]),
        ("<base href=/b/><a href=x><a href=''>", ["x", "http://example.com/b/"]),
        ("<base href=/b/><a href='' rel=nofollow><link href=''><!-- <a href=''> -->", []),
        ("<base href=''><a href=x><a href=''>", ["x"]),
        ("<base href=/b/><a href=x><a href=#y>", ["x", "http://example.com/b/"]),
        ("<base href=/b/><area href = '#y'><a href>", ["http://example.com/b/"]),
        ("<base href=/b/><a href=#y rel=nofollow><a href=x#y>", ["x#y"]),
        ("<base href=page.html><a href=x><a href=#y>", ["x"]),
        ("<svg><a xlink:href=x></a><a href=y /></svg>", ["x", "y"]),
        ("<template><a href=x></template>", []),
        ("<!-- <a href=x> --><script>'<a href=y>'</script>", []),
        ("<a href='#top'><a href='javascript:f()'><a href='MAILTO:a@b'><a href='data:,'><a href='tel:1'>", []),
        ("<a href=' #top'><a href='\tJavaScript:f()'><a href='  '>", []),
        (
            "<a href='tell.html'><a href='data.html'><a href='Javascript.html'>",
            ["tell.html", "data.html", "Javascript.html"],
        ),
        ("<meta http-equiv=Refresh content='0; URL=x'>", ["x"]),
        ("<meta http-equiv=refresh content=\"5;url='x y'\">", ["x y"]),
        ("<meta http-equiv=refresh content='5, x'>", ["x"]),
        ("<meta http-equiv=refresh content='5 x'>", ["x"]),
        ("<meta http-equiv=refresh content='30'><meta http-equiv=refresh content='x; url=y'>", []),
        ("<link rel=canonical href=x><link rel='next foo' href=y><link rel=PREV href=z>", ["x", "y", "z"]),
        ("<link rel=alternate type=application/rss+xml href=x>", ["x"]),
        ("<link rel='alternate stylesheet' href=x><link rel=stylesheet href=y><link href=z><link rel=next>", []),
    ],
)
def test_links_to_pages(read: Read, html: str, pages: list[str]) -> None:
    assert read(html).links.pages == pages


ITEMS = [
    "<a href=x>",
    "<p>text</p>",
    "<a href='y&amp;z=1' rel=nofollow>",
    "<iframe src=f></iframe>",
    "<link rel=next href=n>",
]
ITEMS += [
    "<img src=i srcset='j 2x'>",
    "<meta http-equiv=refresh content='0;url=r'>",
    "<!-- <a href=no> -->",
    "<script>'<a href=no>'</script>",
]


@given(strategies.lists(strategies.sampled_from(ITEMS), max_size=6).map("".join), strategies.sampled_from("\"'"))
@pytest.mark.parametrize("requisites", [False, True])
def test_a_document_in_a_frame_gives_the_links_that_it_would_give_as_a_page(
    read: Read, requisites: bool, html: str, quote: str
) -> None:
    """They are relative to the base of the page, and nothing else of it is the page's: title, what robots are asked."""
    text = "<title>no</title>" + html
    framed = text.replace("&", "&amp;").replace(quote, f"&#{ord(quote)};")
    page = read(
        f"<base href=/b/><title>t</title><iframe srcdoc={quote}{framed}{quote}></iframe>", requisites=requisites
    )
    alone = read(f"<base href=/b/>{html}", requisites=requisites)
    assert page.links == alone.links
    assert (page.title, page.noindex, page.nofollow) == ("t", False, False)


@pytest.mark.parametrize(
    ("html", "pages"),
    [
        ("<iframe srcdoc='<a href=x>' src=y></iframe><a href=z>", ["z", "y", "x"]),
        ("<iframe srcdoc='<iframe srcdoc=&quot;<a href=x>&quot;></iframe><a href=y>'></iframe>", ["y"]),
        ("<iframe srcdoc='<base href=/b/><a href=x>'></iframe><a href=y>", ["y"]),
        ("<iframe srcdoc='<meta name=robots content=none><a href=x>'></iframe><a href=y>", ["y"]),
        ("<iframe srcdoc='<base target=_top><a href=x>'></iframe>", ["x"]),
        ("<iframe srcdoc='' src=y></iframe><iframe srcdoc></iframe><a srcdoc='<a href=x>'>", ["y"]),
    ],
)
def test_documents_in_frames(read: Read, html: str, pages: list[str]) -> None:
    """Those with a base of their own, and those that ask something of robots, are not read."""
    page = read(html)
    assert (page.links.pages, page.links.base) == (pages, "http://example.com/dir/page.html")
    assert not (page.noindex or page.nofollow)


def test_of_documents_in_frames_some_are_read(read: Read) -> None:
    for count in (MOST_TREES, MOST_TREES + 1, 100_000):
        page = read("".join(f"<iframe srcdoc='<a href={n}>'></iframe>" for n in range(count)))
        assert page.links.pages[:MOST_TREES] == [str(n) for n in range(MOST_TREES)]
        assert len(page.links.pages) <= MOST_TREES**2 and page.cut == (count > MOST_TREES)


def test_all_kinds_at_once_are_in_order_by_kind_and_once(read: Read) -> None:
    html = "<link rel=next href=n><a href=x><area href=y><iframe src=z></iframe><a href=n>"
    assert read(html).links.pages == ["x", "y", "n", "z"]


@pytest.mark.parametrize(
    ("html", "base"),
    [
        ("<a href=x>", "http://example.com/dir/page.html"),
        ("<base href=/other/>", "http://example.com/other/"),
        ("<base target=x><base href=../a#b><base href=/c>", "http://example.com/a"),
        ("<body><p><base href='//example.org'>", "http://example.org/"),
        ("<base href='javascript:x'>", "http://example.com/dir/page.html"),
        ("<base href='http://['><base href=/b>", "http://example.com/dir/page.html"),
        ("<svg><base href=/a/></svg><math><base href=/a/></math>", "http://example.com/dir/page.html"),
        ("<svg><g><base href=/a/></g></svg><base href=/b/>", "http://example.com/b/"),
        ("<svg><foreignObject><base href=/b/></foreignObject></svg>", "http://example.com/b/"),
        ("<svg><p><base href=/b/>", "http://example.com/b/"),
    ],
)
def test_the_base(read: Read, html: str, base: str) -> None:
    assert read(html).links.base == base


def test_nofollow_links(read: Read) -> None:
    html = "<a href=x rel='external NoFollow'><a href=y rel=me><a href=z rel=ugc><a href=w rel>"
    html += "<link rel='next nofollow' href=v>"
    links = read(html).links
    assert (links.pages, links.nofollow) == (["y", "z", "w"], ["x", "v"])


@pytest.mark.parametrize(
    ("html", "noindex", "nofollow"),
    [
        ("<meta name=robots content=noindex>", True, False),
        ("<meta name=ROBOTS content='NoIndex, NOFOLLOW'>", True, True),
        ("<meta name=robots content=none>", True, True),
        ("<meta name=robots content='NOINDEX;nofollow'>", True, True),
        ("<meta name=robots content='noindex nofollow'>", True, True),
        ("<meta name=robots content='max-snippet:9;bot:noindex'>", False, False),
        ("<meta name=robots content='bot: noindex'>", True, False),
        ("<meta name=robots content='index;follow'>", False, False),
        ("<meta name=robots content='index,follow'>", False, False),
        ("<meta name=Fyke content=nofollow>", False, True),
        ("<meta name=googlebot content=none>", False, False),
        ("<meta name=robots><meta content=none>", False, False),
    ],
)
def test_what_the_page_asks_of_robots(read: Read, html: str, noindex: bool, nofollow: bool) -> None:
    page = read(f"{html}<a href=x>")
    assert (page.noindex, page.nofollow) == (noindex, nofollow)
    assert (page.links.pages, page.links.nofollow) == (([], ["x"]) if nofollow else (["x"], []))


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A \n\t title&amp;more </title>", "A title&more"),
        ("<title></title>", ""),
        ("no title", ""),
        ("<svg><title>not this</title></svg><title>this</title>", "this"),
        ("<svg><title>not this</title></svg>", ""),
        ("<title>first</title><title>second</title>", "first"),
        ("<title>" + "x" * 9000 + "</title>", "x" * 512),
    ],
)
def test_the_title(read: Read, html: str, title: str) -> None:
    assert read(html).title == title


def test_a_byte_order_mark_is_not_text(read: Read) -> None:
    page = read(b"\xef\xbb\xbf<!doctype html><title>x</title><base href=/b/><a href=y>")
    assert (page.title, page.links.base, page.links.pages) == ("x", "http://example.com/b/", ["y"])


def test_utf16_and_latin1(read: Read) -> None:
    html = "<title>Œuvre é</title><a href='é'>"
    page = read(html.encode("utf-16"), media_type="text/html")
    assert (page.title, page.links.pages) == ("Œuvre é", ["é"])
    page = read(html.encode("cp1252"), media_type="text/html; charset=ISO-8859-1")
    assert (page.title, page.links.pages) == ("Œuvre é", ["é"])


def test_xhtml_by_any_type(read: Read) -> None:
    html = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">'
    html += '<head><title>t</title></head><a href="x"/></html>'
    for media_type in ("application/xhtml+xml", "text/xml", "application/xml", "text/html"):
        page = read(html, media_type=media_type)
        assert (page.title, page.links.pages) == ("t", ["x"])


@pytest.mark.parametrize("media_type", ["application/xhtml+xml", "text/xml"])
def test_what_is_empty_in_xhtml_swallows_nothing(read: Read, media_type: str) -> None:
    """To a parser of HTML all these begin something that ends with the page."""
    head = '<html xmlns="http://www.w3.org/1999/xhtml"><head><script src="a.js"/><title/><style id="x" /></head>'
    body = '<body><iframe src="f"/><textarea/><a id="top"/><br/><img alt="1 &lt; 2"/><a href="next">n</a></body>'
    page = read(f"{head}{body}</html>", media_type=media_type)
    assert (page.title, sorted(page.links.pages)) == ("", ["f", "next"])
    assert [node.text() for node in page.tree.css("a[href]")] == ["n"]
    assert page.text == f"{head}{body}</html>"


@pytest.mark.parametrize(
    "before",
    [
        b"word " * 2_000_000,
        b"<p>lorem" * 790_000,
        b"<div>" * 20_000,
        b"<a " + b"".join(b"a%d=b " % n for n in range(20_000)) + b">",
        "слово ".encode("koi8-r") * 2_000_000,
    ],
)
def test_links_at_the_end_of_a_page_that_is_too_much_for_one_tree(read: Read, before: bytes) -> None:
    page = read(before + b"<a href=last>", media_type="text/html; charset=koi8-r")
    assert page.links.pages == ["last"] and not page.cut
    assert page._tree is None


def test_of_long_links_as_many_are_read_as_are_resolved(read: Read) -> None:
    """Beside a page of 64 MB its links are not held once more."""
    page = read("".join(f"<a href=/{number:01990}>" for number in range(16_000)))
    assert page.cut
    written = sum(map(len, page.links.pages))
    assert MOST_WRITTEN_BYTES < written < MOST_WRITTEN_BYTES + MAX_BYTES


def test_what_is_not_read_of_a_page_is_said(read: Read) -> None:
    page = read(b"<template>" + b"<div><a href=first></a>" * 300_000 + b"<a href=last>")
    assert page.links.pages == ["first"] and page.cut


@pytest.mark.parametrize("requisites", [False, True])
def test_links_before_the_cut_are_read_however_the_page_was_cut(requisites: bool) -> None:
    """Of one that unfolds to too much, none was if trees were asked for."""
    exchange = make_answer(fields="Content-Encoding: gzip")
    exchange.body.write(gzip.compress(b"<a href=first><math><a href=second>" + b"x" * 9000))
    page = opened(Parser(requisites=requisites), 5000, exchange)
    Parser(requisites=requisites).process(page)
    assert (page.links.pages, page.cut) == (["first", "second"], True)


def test_relations_that_lead_to_pages(read: Read) -> None:
    links = [("license", "l"), ("author", "a"), ("amphtml", "m"), ("help", "h"), ("dns-prefetch", "d")]
    page = read("".join(f"<link rel='{rel}' href='{href}'>" for rel, href in links))
    assert page.links.pages == ["l", "a", "m", "h"]
