"""The law of the scanner: what it reads of a page's bytes is what the page's tree says, or it says nothing."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from fyke.core.markup import TREE_OPTIONS, bounded
from fyke.core.pages import Page
from fyke.harvest import links
from fyke.harvest.links import MOST_LINKS, ReadLinks, fit, of_tree, scanned

FOLDER = Path("/usr/share/doc/python3.11/html")
PRODUCT = "fyke"

pytestmark = pytest.mark.skipif(links.scan is None, reason="the scanner was not compiled: there was no compiler")

NAMES = [
    *("a", "a", "a", "area", "base", "link", "meta", "title", "iframe", "TABLE", "A", "TiTle", "template", "math"),
    *("table", "tr", "td", "th", "tbody", "caption", "col", "colgroup", "thead", "select", "option", "optgroup"),
    *("script", "style", "textarea", "noscript", "xmp", "noframes", "noembed", "frame", "frameset", "plaintext"),
    *("svg", "path", "g", "circle", "desc", "foreignobject", "image", "p", "div", "b", "i", "font", "code", "nobr"),
    *("ul", "li", "h1", "form", "input", "button", "br", "html", "head", "body", "object", "marquee", "applet"),
]
ATTRIBUTES = [
    *("href=x", "href='y'", 'href="z?a=1&amp;b=2"', "HREF=#f", "href", "href=", "href=é", "href=\udcff", "href=u/"),
    *("href='a&copy;'", "href='a&copy'", "href='&#x41;'", "href='?a&b='", "href='a\r\nb'", "href=' t '", "href=&"),
    *("rel=nofollow", "rel='x NoFollow'", "rel", "rel='a\x0bnofollow'", "rel=next", "rel=stylesheet", "src=s"),
    *("name=robots content=nofollow", "name=fyke content='noindex,x'", "name=Robots content=none", "content=c"),
    *("srcdoc='<a href=d>'", 'srcdoc="<base href=/b/>"', "srcdoc='&lt;a href=d>'", "srcdoc", "SRCDOC=<a"),
    *("http-equiv=refresh content='0;url=r'", 'class="a\'b"', "title='>'", "xlink:href=l", "=x", "'", '"', "/"),
]
TEXTS = [
    *("text", " ", "<", "< a", "<!--", "-->", "--!>", "<!-->", "<!--->", "<!x>", "<?y>", "</>", "</ z>", "<![CDATA["),
    *("]]>", "&amp;", "\n", "<!DOCTYPE html>", "é", ">", "'", '"', "--", "-", "!", "\0", "\r", "\udc80"),
]

name = st.sampled_from(NAMES)
opening = st.builds(
    "<{}{}{}{}".format,
    name,
    st.sampled_from([" ", " ", " ", "\n", "/", "\t", ""]),
    st.lists(st.sampled_from(ATTRIBUTES), max_size=3).map(" ".join),
    st.sampled_from([">", ">", ">", ">", "/>", "", "/ >"]),
)
closing = st.builds("</{}{}".format, name, st.sampled_from([">", ">", ">", ">", " >", " x>", "", "/>"]))
pages = st.lists(st.one_of(opening, opening, closing, st.sampled_from(TEXTS)), max_size=40).map("".join)


def read_of_tree(content: bytes) -> ReadLinks:
    root = LexborHTMLParser(bounded(content), options=TREE_OPTIONS).root
    return of_tree(links._SelectorEngine().find, root, PRODUCT) if root is not None else ReadLinks([], [], [], "")


def comparable(found: ReadLinks) -> tuple[object, ...]:
    """What of it counts: links are given once, and what leads nowhere is none."""
    others = [other for other in found.others if other[1] or other[0] not in ("iframe", "frame")]
    return fit(found.pages), fit(found.shunned), others, found.title


def agrees(content: bytes) -> bool:
    """Whether the scanner was sure of `content`; if so, it must say what the tree says."""
    found = scanned(content, PRODUCT)
    if found is not None:
        assert comparable(found) == comparable(read_of_tree(content)), content
    return found is not None


def test_of_very_many_links_those_are_found_that_are_taken() -> None:
    said = ["#x" if n % 3 == 0 else f"/{n % 170_000}" for n in range(500_000)]
    for rel in ("", " rel=nofollow"):
        found = scanned("".join(f"<a{rel} href={href}>" for href in said).encode(), PRODUCT)
        links = found and (found.shunned if rel else found.pages)
        assert links is None or fit(links)[: MOST_LINKS + 1] == fit(said)[: MOST_LINKS + 1]


@given(pages)
@example("<a href=1><div><a href=2>x</a></div><a href=3>")
@example("<table><tr><td><a href=1><table><a href=2></table></td></tr><a href=3></table>")
@example("<script><!-- <script> </script> <a href=1> --></script><a href=2>")
@example("<svg><g></path><title>x</title></g></svg><title>y</title>")
@settings(max_examples=300)
def test_pages_at_random_are_read_as_their_trees(page: str) -> None:
    agrees(page.encode("utf-8", "surrogateescape"))


@given(st.binary(max_size=200))
def test_bytes_at_random_are_read_as_their_trees(content: bytes) -> None:
    agrees(content)
    agrees(b"<a href=x>" + content + b"<a href='y'>")


@pytest.mark.skipif(not FOLDER.is_dir(), reason="python3.11-doc is not installed")
def test_real_pages_are_read_as_their_trees_also_when_they_are_broken() -> None:
    """Whole, the scanner is sure of nearly all of them; then some bytes are cut, moved, or changed."""
    files = sorted(file for file in FOLDER.rglob("*.html") if file.exists())[::8]
    random = Random(1)
    sure = 0
    for file in files:
        content = file.read_bytes()
        sure += agrees(content)
        content = content[:40_000]
        for _ in range(3):
            at, size = random.randrange(len(content)), random.randrange(1, 40)
            put = random.choice(
                [b"", b"<", b">", b'"', b"<!--", content[at : at + 90], b"<table>", b"</td>", b"<script>"]
            )
            content = content[:at] + put + content[at + size :]
            agrees(content)
    assert sure >= 0.95 * len(files)


@pytest.mark.parametrize(
    "page",
    ["".join(f"<font size={number}><p>" for number in range(3_000)), "<div>" * 12_000, "<p title=x>" * 300_000],
)
def test_a_page_that_would_be_cut_for_its_tree_is_read_to_its_end(page: str) -> None:
    assert len(bounded(page.encode())) < len(page)
    found = scanned(page.encode() + b"<a href=last>", PRODUCT)
    assert found is not None and found.pages == ["last"]


@pytest.mark.parametrize(
    "page",
    ["<a " + "".join(f"a{number}=1 " for number in range(2_000)) + "href=x>", "<a href=z>\0", "<math><a href=m>"],
)
def test_what_it_is_not_sure_of_the_tree_decides(page: str) -> None:
    assert scanned(page.encode(), PRODUCT) is None


def test_of_ordinary_pages_it_is_sure() -> None:
    page = (
        "<!DOCTYPE html><html><head><meta charset=utf-8><title>A &amp; B</title><link rel=canonical href='/c'>"
        "<script>if (a < b) document.write('<a href=no>')</script><style>a{}</style></head><body><!-- <a href=no> -->"
        "<svg viewBox='0 0 1 1'><title>icon</title><g><path d='M0'/></g></svg><noscript><a href='/n'>n</a></noscript>"
        "<table><tr><td><a href='/t?a=1&amp;b=2' rel=nofollow>t</a></table><select><option>1</select>"
        "<form><textarea><a href=no></textarea><a href='/f&#8217;'>f</a></form></body></html>"
    )
    assert scanned(page.encode(), PRODUCT) == ReadLinks(
        ["/n", "/f’"], ["/t?a=1&b=2"], [("link", "/c", "canonical")], "A & B"
    )


@given(pages)
@example("<title>t</title><base href=/b/><a href=x><a href=y rel=nofollow><meta name=robots content=noindex>")
@example("<noframes><a href=x></noframes>")
def test_without_the_scanner_pages_are_read_the_same(read: Callable[..., Page], page: str) -> None:
    content = page.encode("utf-8", "surrogateescape")
    with_it = read(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "scan", None)
        without = read(content)
    assert (without.links, without.title, without.noindex) == (with_it.links, with_it.title, with_it.noindex)
