"""Markdown keeps links, inline code and tables; what a page says stays text, and no mark of ours is left."""

import re
from html import escape

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from fyke.core.outcomes import Outcome
from fyke.core.pages import Page, PageLinks
from fyke.core.urls import canonical
from fyke.core.visits import Exchange, visit_to
from fyke.export.prose import markdown

URL = "http://h.example/d/p.html"
FILLING = (
    "<p>Words of a page, more and more of them, so that there is enough to be its main content, says the reader.</p>"
)
MARK = re.compile("[\ue000-\ue007]")


def markdown_of(html: str) -> str:
    exchange = Exchange(visit_to(URL), Outcome.OK, 0.0, 0.0)
    page = Page(exchange, "text/html", html.encode(), "utf-8", links=PageLinks(URL))
    return markdown(page)


def body_of(html: str) -> str:
    return markdown_of(f"<body><main>{FILLING}{html}{FILLING}</main></body>")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>See <a href=b.html>the <b>b</b> page</a> of.</p>", "See [the b page](http://h.example/d/b.html) of."),
        ("<p>See <a href='/x_(y)?a b'>[1]</a>.</p>", "See [\\[1\\]](http://h.example/x_%28y%29?a%20b)."),
        ("<p>A <a href='#here'>here</a> and <a href='javascript:f()'>there</a>.</p>", "A here and there."),
        ("<p>See <svg><a xlink:href=b><text>x</text></a></svg> of <a href=c>c</a>.</p>",
         "See of [c](http://h.example/d/c)."),
        ("<h2>On <a href=b><code>b_()</code></a> too</h2>", "## On [`b_()`](http://h.example/d/b) too"),
        ("<p>Say <code>a_b * [c] <i>d</i></code> now.</p>", "Say `a_b * [c] d` now."),
        ("<p>Say <kbd>`</kbd> now.</p>", "Say `` ` `` now."),
        ("<p>Say <code><a href=b>b_c</a></code> now.</p>", "Say [b_c](http://h.example/d/b) now."),
        ("<pre><code>x = <a href=b>1</a>\n  y</code></pre>", "```\nx = 1\n  y\n```"),
        (
            "<table><tr><th>A<th>B|C<tr><td>1 <a href=c>c</a><td><code>x|y</code><tr><td><td>last</table>",
            "| A | B\\|C |\n| --- | --- |\n| 1 [c](http://h.example/d/c) | `x\\|y` |\n|  | last |",
        ),
        ("<p><code># no</code> heading</p>", "`# no` heading"),
        ("<ul><li>first <a href=b>b</a> of many words here</li><li>and <code>second</code> item</li></ul>",
         "- first [b](http://h.example/d/b) of many words here\n- and `second` item"),
    ],
)  # fmt: skip
def test_what_is_kept(html: str, text: str) -> None:
    assert f"\n\n{text}\n\n" in body_of(html), body_of(html)


def rendered(markdown: str) -> LexborHTMLParser:
    return LexborHTMLParser(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([*"_*~`&#!|-+=.<>[]()1\\ ;", "amp;", "&lt;", "__", "~~", "a", "b ", "#x2f;"]), max_size=12
    ),
    st.sampled_from(["<p>{}</p>", "<h2>{}</h2>", "<p>say {}<a href=b>link</a></p>"]),
)
@example(["__", "a", "__"], "<p>{}</p>")
@example(["&", "amp;"], "<p>{}</p>")
@example(["a", "#"], "<h2>{}</h2>")
@example(["!"], "<p>say {}<a href=b>link</a></p>")
def test_signs_are_shown_as_they_were(signs: list[str], around: str) -> None:
    html = around.format(escape("".join(signs)))
    shown = rendered(body_of(html))
    assert shown.body is not None and shown.css_first("em,strong,s,code,img,hr,ul,ol,blockquote") is None
    filling = "".join(LexborHTMLParser(FILLING).root.text().split())
    said = "".join(LexborHTMLParser(html).root.text().split())
    assert "".join(shown.body.text().split()) == filling + said + filling


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("<tr><th colspan=2>AB<th>C<tr><td>1<td>2<td>3", [["AB", "", "C"], ["1", "2", "3"]]),
        ("<tr><td rowspan=2>A<td>B<tr><td>2<tr><td>3<td>4", [["A", "B"], ["", "2"], ["3", "4"]]),
        ("<tr><td>A<td rowspan=2 colspan=2>B<td>C<tr><td>1<td>4", [["A", "B", "", "C"], ["1", "", "", "4"]]),
        ("<tr><td rowspan=3>A<td>B<tr></tr><tr><td>2<tr><td>3<td>4", [["A", "B"], ["", "2"], ["3", "4"]]),
        ("<tr><td rowspan=9 colspan=0>A<td rowspan=x>B<tr><td>2", [["A", "B"], ["", "2"]]),
    ],
)
def test_a_cell_that_spans_leaves_its_places_empty(rows: str, text: list[list[str]]) -> None:
    """So that each value stands below its heading."""
    table = rendered(body_of(f"<table>{rows}</table>"))
    assert [[cell.text().strip() for cell in row.css("td,th")] for row in table.css("tr")] == text


def test_pieces_of_code_side_by_side_stay_code() -> None:
    assert "Press `Ctrl+C` now." in body_of("<p>Press <kbd>Ctrl+</kbd><kbd>C</kbd> now.</p>")


def test_menus_are_left_out_as_before() -> None:
    menu = "<ul><li><a href=a>Home page</a></li><li><a href=b>About us</a></li></ul>"
    words = "<ul><li>Imprint and address</li></ul>"
    html = f"<body>{menu}<nav>{menu}</nav><main>{3 * FILLING}</main><footer>{words}</footer><nav>{words}</nav></body>"
    assert markdown_of(html) == "\n\n".join([re.sub("<.*?>", "", FILLING)] * 3)


LIST = "<ul><li><a href=b>First chapter</a></li><li><a href=c>Second chapter</a></li></ul>"
AS_TEXT = "- [First chapter](http://h.example/d/b)\n- [Second chapter](http://h.example/d/c)"


@pytest.mark.parametrize(
    "html",
    [
        f"<main>{FILLING}<h2>Chapters</h2><div class=toctree-wrapper>{LIST}</div>{FILLING}</main>",
        f"<div role=main>{FILLING}{LIST}{FILLING}</div>",
        f"<article>{FILLING}<section><div>{LIST}</div></section>{FILLING}</article>",
        f"<div>{FILLING}{LIST}{FILLING}</div>",
        f"<div>{FILLING}<table><tr><td>{LIST}</td></tr></table>{FILLING}</div>",
    ],
)
def test_lists_of_links_that_are_content_are_kept(html: str) -> None:
    """What a page says is its main part has no menus; nor is a list one that follows a paragraph."""
    menu = "<ul><li><a href=a>Home page</a></li></ul>"
    text = markdown_of(f"<body><div>{menu}</div>{html}<div>{menu}</div></body>")
    assert AS_TEXT in text and "Home page" not in text


@pytest.mark.parametrize(
    "html",
    [
        f"<nav>{LIST}</nav>",
        f"<div class=related>{LIST}</div>",
        LIST.replace("<ul>", "<ul class='post-tags'>"),
        f"<aside>{FILLING}{LIST}</aside>",
        re.sub("href=", "href=#", LIST),
        f"<div id=side_menu><div>{LIST}</div></div>",
    ],
)
def test_menus_within_the_content_are_left_out(html: str) -> None:
    assert "chapter" not in body_of(html)


def test_a_base_counts() -> None:
    html = f"<head><base href=/other/></head><body><main>{FILLING}<p>See <a href=b>b</a> there.</p></main></body>"
    assert "[b](http://h.example/other/b)" in markdown_of(html)


def test_a_base_in_an_image_does_not_count() -> None:
    bases = "<svg><base href=/no/></svg><base href=/other/>"
    html = f"<body>{bases}<main>{FILLING}<p>See <a href=b>b</a> there.</p></main></body>"
    assert "[b](http://h.example/other/b)" in markdown_of(html)


PIECES = st.sampled_from([
    "<a href=b>", "</a>", "<code>", "</code>", "<table>", "<tr>", "<td>", "</table>", "<pre>", "</pre>", "<p>", "<li>",
    "<svg><a xlink:href=b>", "</svg>", "<ul>", "</ul>", "<base xlink:href=x>",
    "\ue000", "\ue0050\ue001", "\ue006", "\ue007", "&#xE006;", "&#57344;0&#xe001;", "`", "|", "[x](http://evil.example/)",
    "<a href='javascript:x'>", "<a href='http://h.example/) evil'>", "&lt;script&gt;", "# x", "\n\n", " words ", "\\",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
@example("`<code>[x](http://evil.example/)")  # a sign, then code
def test_no_mark_is_left_and_links_lead_where_the_page_says(html: str) -> None:
    text = markdown_of(f"<body><main>{FILLING}{html}</main></body>")
    if not MARK.search(html) and "&#" not in html:
        assert not MARK.search(text)
    bare = re.sub(r"(\\.)|```.*?(?:```|$)|`[^`\n]*`", lambda found: found[1] or "", text, flags=re.DOTALL)
    for target in re.findall(r"(?<!\\)\]\(([^)]*)\)", bare):
        assert canonical(target) is not None and "evil.example" not in target
    assert not re.search(r"(?<!\\)<script", bare)


def test_work_is_linear() -> None:
    """Counted in characters that are written: what is long is cut, and the marks with it."""
    for html in ("<a href=b>x</a>" * 100_000, "<code>x</code>" * 100_000, "<table><tr><td>x<td>y<tr><td>z" * 20_000):
        assert not MARK.search(body_of(html))
