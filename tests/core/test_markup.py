"""Pages that would cost too much are cut, all others are not touched."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from fyke.core.markup import LONG_BYTES, MAX_BYTES, bounded, has_many_tags, parts, pieces, tree_of
from fyke.core.xhtml import written_out


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
        b"<p>" * 1000 + b"<a " + b"".join(b"a%d=b " % n for n in range(100_000)) + b">",
        b"<a " + b"".join(b"a%d='>' " % n for n in range(100_000)) + b">",
        b"<a/" + b"".join(b"a%d/" % n for n in range(100_000)),
    ],
)
def test_hostile_pages_are_cut(html: bytes) -> None:
    assert len(bounded(html)) < len(html)


def test_what_has_very_many_tags_has_many_tags() -> None:
    for tags in (0, 999, 25_000):
        assert not has_many_tags(b"<p>" * tags + b"word " * 50_000)
    assert has_many_tags(b"<div>" * 100_000)
    assert has_many_tags("<p>".encode("utf-16") * 100_000)


@pytest.mark.parametrize("size", [0, 5, MAX_BYTES, MAX_BYTES + 1, 3 * MAX_BYTES])
@pytest.mark.parametrize("tag", [b"", b"<p>word", b"<"])
def test_pieces_are_the_whole(tag: bytes, size: int) -> None:
    content = (tag * (size // max(len(tag), 1)) if tag else b"x" * size) + b"<a href=x>"
    found = list(pieces(BytesIO(content)))
    assert b"".join(found) == content and max(map(len, found)) <= MAX_BYTES
    assert all(piece.startswith(b"<") for piece in found[1:]) or not tag


@pytest.mark.parametrize("line", [b"a line of a log\n", "中文".encode(), b"<"])
@pytest.mark.parametrize("before", [b"<title>x</title><pre>", b"<p title='a tag'>", b"<!-- -->"])
def test_a_piece_ends_before_a_tag_and_yet_has_what_it_may_have_of_long_text(before: bytes, line: bytes) -> None:
    content = before + line * (MAX_BYTES * 2 // len(line)) + b"<p>end"
    found = list(pieces(BytesIO(content)))
    assert b"".join(found) == content
    assert all(len(piece) > MAX_BYTES - LONG_BYTES for piece in found[:-1])


def test_a_long_tag_is_in_one_piece() -> None:
    tag = b"<img src='data:" + b"x" * (MAX_BYTES // 2) + b"'>"
    assert list(pieces(BytesIO(tag * 2))) == [tag, tag]


@given(
    st.lists(
        st.sampled_from([b"<div>", b"<b>", b"x", b"\0", b"<a href=1>", b"</div>", b"<font size=2><p>"]), max_size=50
    )
)
def test_parts_are_all_that_is_safe(words: list[bytes]) -> None:
    content = b"".join(words) * 400
    found = list(parts(content))
    assert b"".join(found).replace(b"\0", b"") == content.replace(b"\0", b"")
    assert all(bounded(part) == part for part in found)


@pytest.mark.parametrize(
    ("xhtml", "html"),
    [
        (b"<script/>x", b"<script></script>x"),
        (b"<a id='x' />", b"<a id='x'></a>"),
        (b'<svg:path d="M0 0"/>', b'<svg:path d="M0 0"></svg:path>'),
        (b"<br/><hr /><img src='a/b'/>", b"<br/><hr /><img src='a/b'/>"),
        (b"<a href=x/>", b"<a href=x/>"),
        (b"<p title='a>b'>x</p>", b"<p title='a>b'>x</p>"),
        (b"a < b /> c", b"a < b /> c"),
    ],
)
def test_empty_elements_are_written_out(xhtml: bytes, html: bytes) -> None:
    assert written_out(xhtml) == html


SHADOW = b'<template shadowrootmode="open">'
WITHIN = b"<style>p { color: red }</style><main><p>said <a href=/there>there</a></p></main>"


def read(html: bytes) -> tuple[str, list[str | None]]:
    """All text and links of `html`, as each of its readers finds them."""
    trees = [tree_of(html), *(LexborHTMLParser(part) for part in (bounded(html), *parts(html)))]
    found = [(" ".join(tree.text().split()), [node.attributes["href"] for node in tree.css("a")]) for tree in trees]
    assert found.count(found[0]) == len(found)
    return found[0]


@pytest.mark.parametrize(
    "html",
    [
        b"<my-app>%s%s</template> lit</my-app>" % (SHADOW, WITHIN),
        b"<my-app><TEMPLATE id=x\nShadowRootMode = closed>%s</TEMPLATE > lit</my-app>" % WITHIN,
        b"<a-b>%s<c-d>%s%s</template></c-d></template> lit</a-b>" % (SHADOW, SHADOW, WITHIN),
        b"<template>no<p>no</template><a-b>%s%s<template>no</template></template> lit</a-b>" % (SHADOW, WITHIN),
        b"<script>'%s'</script><!-- %s --><a-b>%s%s</template> lit" % (SHADOW, SHADOW, SHADOW, WITHIN),
        b"</template><a-b>%s%s</template> lit<!-- %s" % (SHADOW, WITHIN, SHADOW),
    ],
)
def test_what_a_browser_shows_of_templates_is_read(html: bytes) -> None:
    """A template that is a shadow tree stands where it is written, all others are aside (HTML, 4.12.3)."""
    said, links = read(html.replace(b"<style>p { color: red }</style>", b""))
    assert said.removeprefix(f"'{SHADOW.decode()}'").split() == ["said", "there", "lit"]
    assert links == ["/there"]


@given(st.lists(st.sampled_from([b"<template>", b"</template>", b"<b>", b"x", b"<p>", b"<!--", b"-->", b"<script>"])))
def test_other_templates_stay_as_they_are(words: list[bytes]) -> None:
    html = b"".join(words)
    assert bounded(html) == html and bounded(html + b"<!-- shadowrootmode -->").startswith(html)


@pytest.mark.parametrize(
    "worst", [b"<template ", b"<template shadowrootmode", b"<script ", b"<!--", SHADOW, b"<template a='", b"</template"]
)
def test_the_worst_templates_are_looked_at_once(worst: bytes) -> None:
    bounded(b"shadowrootmode" + worst * (1_000_000 // len(worst)))


@pytest.mark.parametrize(
    "worst", [b"<a ", b"<a b='", b"<a b=\"<a b='", b"<a b='' ", b"<a" + b" b=''" * 1000, b"<a b='' c=\"\" "]
)
def test_the_worst_of_a_megabyte_is_looked_at_once(worst: bytes) -> None:
    """The tests have a time limit, which a look that begins again at each tag would not keep."""
    assert written_out(worst * (1_000_000 // len(worst)))
