"""No page costs a parser more than it may, however it is made; and it takes much for a page to be cut."""

import resource
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from fyke.core import walk as walking
from fyke.core.markup import MAX_BYTES, TakesLong, bounded, parts
from fyke.core.outcomes import Outcome
from fyke.core.pace import haste
from fyke.core.pages import Page
from fyke.core.visits import Exchange, visit_to
from fyke.core.walk import MAX_ATTRIBUTES, walk, walked

MOST_MB = 160
NAMES = [
    *("a", "b", "i", "font", "p", "div", "style", "script", "title", "svg", "math", "select", "textarea", "plaintext"),
    *("frameset", "iframe", "xmp", "html", "body", "noembed", "noframes", "noscript", "template", "table", "tr", "td"),
    *(
        "path",
        "g",
        "desc",
        "foreignObject",
        "mi",
        "mtext",
        "annotation-xml",
        "input",
        "object",
        "head",
        "caption",
        "x" * 20,
    ),
]
ATTRIBUTES = ["href=x", "c='y'", 'd="z>"', "e", "=x", "'", '"', "/", "f=<", "g= h", 'i="<b"', "x/", "CLASS = 'a\nb'"]
TEXTS = [
    *("text", "<", "< a", "<!--", "-->", "--!>", "<!-->", "<!--->", "<!x>", "<?y>", "</>", "</ z>", "<![CDATA[", "]]>"),
    *(">", "'", '"', "--", "-", "\0", "<!---->", "<!--!>", "</", "<!", "&lt;", "<!--<script>", "</script", "</style "),
]
name = st.sampled_from(NAMES)
opening = st.builds(
    "<{}{}{}{}".format,
    name,
    st.sampled_from([" ", "\n", "/", "", "\t", "\0"]),
    st.lists(st.sampled_from(ATTRIBUTES), max_size=3).map(" ".join),
    st.sampled_from([">", ">", ">", "/>", "", "/ >"]),
)
closing = st.builds("</{}{}".format, name, st.sampled_from([">", ">", " >", " x>", "", "/>"]))
junk = st.lists(st.one_of(opening, closing, st.sampled_from(TEXTS)), max_size=30).map("".join).map(str.encode)

SIX = b" ".join(b"%x" % number for number in range(6))
MANY = b" ".join(b"%x" % number for number in range(256, 256 + MAX_ATTRIBUTES))
TOO_MANY = b" ".join(b"x%d" % number for number in range(5_000))
HOSTILE = {
    "formatting left open": b"".join(b"<font size=%d><p>" % number for number in range(30_000)),
    "formatting with attributes": b"<p><font %b><b %b><i %b>" % (MANY, MANY, MANY) + b"<p>x" * 100_000,
    "a few attributes": b"<p><font %b><b %b><i %b>" % (SIX, SIX, SIX) + b"<p>x" * 100_000,
    "an anchor with attributes": b"<p><a %b>" % MANY + b"<p>x" * 100_000,
    "a long value": b"<p><a href='%b'>" % (b"x" * 100_000) + b"<p>x" * 100_000,
    "adopted": (b"<b %b>" % MANY + b"<div>" * 8 + b"</b>") * 8_000,
    "adopted, of few attributes": (b"<b 1 2 3 4>" + b"<div>" * 8 + b"</b>") * 80_000,
    "adopted among others": b"".join(b"<i %d>" % n for n in range(500)) + b"<b %b><div>" % MANY + b"</i>" * 500,
    "attributes everywhere": (b"<p %b>" % MANY) * 10_000,
    "attributes added to the body": b"".join(b"<body x%d=1 y%d z%d>" % (n, n, n) for n in range(200_000)),
    "nested": b"<div>" * 1_000_000,
    "misnested": b"<b><p><i></b></p></i>" * 100_000,
    "anchors in anchors": b"<a 1 2 3 4 5><p>" * 100_000,
    "void elements in a formula": b"<math>" + b"<col>" * 200_000,
    "void elements behind what was broken out of": b"<svg><desc><p></p></desc>" + b"<source>" * 200_000,
    "items of two kinds": b"<dd><li>" * 100_000,
    "comments": b"<!>" * 2_000_000,
    "lists in lists": b"<dl><dd><dl>" * 100_000,
}
HIDDEN = {
    "in quotes": b"<p %b>" % b" ".join(b'x%d="<"' % number for number in range(100_000)),
    "in quotes with an end": b"<p %b>" % b" ".join(b"x%d='>'" % number for number in range(100_000)),
    "behind a style of an SVG": b'<svg><style><a x="</style><p %b>' % TOO_MANY,
    "in a style of an SVG": b"<svg><style><p %b></style></svg>" % TOO_MANY,
    "in a title of a formula": b"<math><title><p %b></title></math>" % TOO_MANY,
    "behind CDATA": b'<svg><p><![CDATA[<a x=">]]><p %b>' % TOO_MANY,
    "behind a plain text that is none": b"<select><plaintext><p %b>" % TOO_MANY,
    "behind a name with a NUL": b"<plaintext\0><p %b>" % TOO_MANY,
    "behind a script in a script": b"<script><!--<script></script><p %b>" % TOO_MANY + b"--></script>",
}
KNOWN = {
    "names without end": b"".join(b"<n%d></o%d></n%d><n%d>" % (n, n, n // 2, n) for n in range(2_000)),
    "kinds without end": b"".join(b"<i %d>" % number for number in range(3_000)) + b"<p>" * 3_000,
    "kinds that are closed": b"".join(b"<i %d></i>" % number for number in range(30_000)),
    "CDATA where no more tags may be": b"<svg>" + b"<!>" * 199_990 + b"<![CDATA[" * 20,
    "long names": b"<%b></%b>" % (b"n" * 16, b"n" * 16) + b"<%b></%b>" % (b"n" * 17, b"n" * 17),
}
PARSE = """
import sys
from selectolax.lexbor import LexborHTMLParser
from fyke.core.memory import peak_memory_bytes
html = sys.stdin.buffer.read()
before = peak_memory_bytes()
LexborHTMLParser(html)
print(peak_memory_bytes() - before)
"""


@pytest.mark.skipif(walk is walked, reason="the walker was not compiled: there was no compiler")
@given(junk, st.sampled_from([1, 1, 1, 30]))
def test_both_walks_find_the_same(page: bytes, times: int) -> None:
    assert walk(page * times) == walked(page * times)


@pytest.mark.skipif(walk is walked, reason="the walker was not compiled: there was no compiler")
@pytest.mark.parametrize("what", [*HOSTILE, *HIDDEN, *KNOWN])
def test_both_walks_end_at_the_same_place(what: str) -> None:
    page = {**HOSTILE, **HIDDEN, **KNOWN}[what][: MAX_BYTES // 8]
    assert walk(page) == walked(page)


@pytest.mark.parametrize("what", HOSTILE)
def test_no_page_takes_much_memory(what: str) -> None:
    part = bounded(HOSTILE[what])
    assert 0 < len(part) < len(HOSTILE[what])
    limit = (2 << 30,) * 2
    parsed = subprocess.run(
        [sys.executable, "-c", PARSE],
        input=part,
        capture_output=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    assert int(parsed.stdout) < MOST_MB << 20


@pytest.mark.parametrize("what", HIDDEN)
def test_tags_that_hide_are_found(what: str) -> None:
    for part in parts(HIDDEN[what]):
        assert all(len(node.attributes) <= MAX_ATTRIBUTES for node in LexborHTMLParser(part).css("*"))


@given(junk, junk, st.integers(0, 2**32))
def test_no_tag_of_too_many_attributes_gets_through(before: bytes, after: bytes, seed: int) -> None:
    names = [b"x%d" % number for number in range(300)]
    Random(seed).shuffle(names)
    page = before + b"<q " + b" ".join(names) + b">" + after
    for part in parts(page):
        assert all(len(node.attributes) < MAX_ATTRIBUTES + 20 for node in LexborHTMLParser(part).css("*"))


@pytest.mark.parametrize(
    "html",
    [
        b"<svg viewBox='0 0 1 1'><style>.a{}</style><path d=M0/></svg><script>if (a<b) c()</script><p>text",
        b"<svg>" + b"<path d=M0 /><g><circle r=1 /></g>" * 20_000 + b"</svg>",
        b"<math><mi>x</mi><mo>&lt;</mo></math><textarea>a</textarea>" * 100,
        b"<script>document.write('<script><\\/script>')</script>" * 1000,
        b"<!--<script>--><p>text</p>",
        b"<p><a href=x class=y><span>word</span></a> <b><i>word</i></b>, <font color=red>word</font>" * 10_000,
        b"".join(b"<font color=#%06x>x</font>" % number for number in range(20_000)),
        b"<a href=x %b><img src=y></a>" % b" ".join(b"data-%d=z" % number for number in range(20)) * 5_000,
    ],
)
def test_honest_pages_are_whole_and_soon_read(html: bytes) -> None:
    with haste():
        part = bounded(html)
    assert part.replace(rb"\u003c", b"<") == html


def test_bytes_that_are_no_text_part_no_tags() -> None:
    page = b"<\xffq %b><\xff/q>text" % TOO_MANY
    exchange = Exchange(visit_to("http://a.example/"), Outcome.OK, 0.0, 0.0)
    html = Page(exchange, "text/html", page, charset="utf-8").safe_html(MAX_BYTES)
    assert all(len(node.attributes) <= MAX_ATTRIBUTES for node in LexborHTMLParser(html).css("*"))


def test_what_takes_long_is_not_parsed_in_haste() -> None:
    for html in (b"".join(b"<font size=%d><p>" % number for number in range(400)), HOSTILE["nested"]):
        assert bounded(html)
        with haste(), pytest.raises(TakesLong):
            bounded(html)
        assert bounded(html)


def test_a_text_where_it_may_hold_tags_means_the_same_both_ways() -> None:
    page = b'<svg></svg><script type="application/ld+json">{"name": "a<b"}</script><style>a<b</style><p>text'
    tree = LexborHTMLParser(bounded(page))
    script = tree.css_first("script")
    assert script is not None and script.text() == '{"name": "a\\u003cb"}'
    assert tree.body is not None and tree.body.text(separator=" ").endswith("text")


def test_the_worst_of_a_megabyte_is_looked_at_once() -> None:
    """The tests have a time limit, which a look that begins again at each tag would not keep."""
    for worst in (
        b"<a ",
        b"<a b='",
        b"<a b=\"<a b='",
        b"<!--",
        b"<script><!--",
        b"<",
        b"</",
        b"<a" + b" b=''" * 200,
        b"<svg>",
    ):
        page = worst * (1_000_000 // len(worst))
        assert walking.walk(page)[1] >= 0 and walked(page)[1] >= 0
