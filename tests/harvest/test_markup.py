"""Pages that would cost too much are cut, all others are not touched."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from fyke.harvest.markup import MAX_BYTES, MAX_ELEMENTS, bounded


@pytest.mark.parametrize(
    "html",
    [
        b"",
        b"<p>text" * 100_000,
        b"<div><ul><li><a href=x><b>text</b></a><br></ul></div>" * 20_000,
        b"<tr><td><font color=red>x</font>" * 20_000,
        b"".join(b"<a href=%d>" % n for n in range(50_000)),
        b"<p>" + b"long text a=b > " * 10_000 + b"<p title='%b'>" % (b"long text " * 10_000),
        b"<div class=x><img src=y></div>" * 30_000,
    ],
)
def test_ordinary_pages_are_whole(html: bytes) -> None:
    assert bounded(html) == html


@pytest.mark.parametrize(
    "html",
    [
        b"x" * (MAX_BYTES + 1),
        b"<div>" * 100_000,
        b"<DIV class=x>" * 50_000 + b"</div>" * 50_000,
        b"".join(b"<font size=%d><p>" % n for n in range(10_000)),
        b"".join(b"<i %d><p></i><b>" % n for n in range(10_000)),
        b"<p>text" * 1_000 + b"<a %b>" % b" ".join(b"a%d" % n for n in range(5_000)),
        b"<p>text<a %b" % b"/".join(b"a%d='>'" % n for n in range(5_000)),
    ],
)
def test_hostile_pages_are_cut(html: bytes) -> None:
    assert len(bounded(html)) < len(html)


def test_what_is_left_makes_no_more_elements_than_promised() -> None:
    html = bounded(b"".join(b"<font size=%d><p>" % n for n in range(10_000)))
    tree = LexborHTMLParser(html)
    assert len(tree.tags("font")) <= MAX_ELEMENTS
