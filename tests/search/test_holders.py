"""The holders of a page's texts, as a walk over the nodes of its tree finds them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from resiliparse.parse.html import HTMLTree, NodeType

from fyke.search.holders import HOLDERS, MOST_NODES, Holders

NO_TEXT = {"a", "script", "style", "template", "noscript", "textarea", "select", "button", "svg", "iframe", "object"}
TAGS = [
    "div", "p", "article", "td", "table", "tr", "main", "form", "a", "b", "h2", "ul", "li", "br", "img", "pre",
    "script", "style", "template", "noscript", "textarea", "select", "xmp", "iframe", "section",
]  # fmt: skip
ATTRIBUTES = ["", ' class="c1"', ' class="c22 x"', " title='a\"b<>c' class=d", ' data-class="no"']
TEXTS = ["river ", "boat.", " &amp; &lt;p&gt; ", "&nbsp;", "1 < 2 > 1", "\n", "<!-- <div> -->", "日本"]
HTML = st.lists(
    st.builds("<{}{}>".format, st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES))
    | st.builds("</{}>".format, st.sampled_from(TAGS))
    | st.sampled_from(TEXTS),
    max_size=40,
).map("".join)


def by_walk(html: str) -> tuple[list[tuple[int, str]], list[str]]:
    """Return the texts with their holders, and the path of tags and classes to each holder."""
    body = HTMLTree.parse(f"<body>{html}").body
    assert body is not None
    numbers = {one: at for at, one in enumerate([body, *body.query_selector_all(", ".join(HOLDERS))[:]])}
    found = []
    for node in body:
        if node.type == NodeType.TEXT:
            around = node.parent
            while around not in numbers and around.tag not in NO_TEXT:
                around = around.parent
            if around in numbers:
                found.append((numbers[around], node.text))
    paths = []
    for one in numbers:
        path = []
        while one != body:
            path.append(f"{one.tag}.{re.sub('[0-9]+', '0', one.class_name or '')}")
            one = one.parent
        paths.append("/".join(path))
    return found, paths


def by_holders(html: str) -> tuple[list[tuple[int, str]], list[int]]:
    body = HTMLTree.parse(f"<body>{html}").body
    assert body is not None
    holders = Holders()
    return list(holders.texts(body.html)), holders.looks


@given(HTML)
def test_texts_have_the_holders_of_the_tree(html: str) -> None:
    expected, paths = by_walk(html)
    found, looks = by_holders(html)
    assert found == expected
    assert [looks.index(look) for look in looks] == [paths.index(path) for path in paths]


@given(st.lists(st.sampled_from(["<svg>", "</svg>", "<math>", "<xmp>", "</xmp>", "<plaintext>"]) | HTML).map("".join))
def test_text_in_drawings_breaks_nothing(html: str) -> None:
    """A parser writes text of some elements in SVG as if it were HTML, so that their tree cannot be read again."""
    by_holders(html)


@pytest.mark.parametrize(
    "piece", ["<div>", "<p>a", "<a>b</a>", "<!---->", "<xmp>", "<br>", "</p>", "<script>", '<i class="']
)
def test_a_megabyte_is_read_as_far_as_the_limit(piece: str) -> None:
    found, looks = by_holders(piece * ((1 << 17) // len(piece)))
    assert len(found) <= MOST_NODES
    assert len(looks) <= MOST_NODES + 1
