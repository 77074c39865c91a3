"""What of a page is HTML, and what is of an image or a formula in it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from fyke.core.foreign import ForeignParts

TAGS = (
    *("svg", "math", "foreignObject", "desc", "title", "mi", "mo", "mtext", "annotation-xml", "g", "p", "a", "div"),
    *("annotation-xml encoding=Text/HTML", "annotation-xml encoding=x", "base", "base /", "/svg", "/math", "/p", "/mi"),
)


def told(html: str) -> list[bool]:
    root = LexborHTMLParser(html).root
    assert root is not None
    foreign = ForeignParts()
    return [foreign.is_html(node) for node in root.css("base")]


@given(st.lists(st.sampled_from(TAGS), max_size=30))
def test_it_is_as_the_parser_has_it(tags: list[str]) -> None:
    """It tells so when it writes a tree for tests of parsers."""
    html = "".join(f"<{tag}>" for tag in tags)
    root = LexborHTMLParser(html).root
    assert root is not None
    written = root.html_pretty(html5test=True) or ""
    assert told(html) == [not kind for kind in re.findall(r"<(svg |math )?base>", written)]


@pytest.mark.parametrize("tag", ["svg", "math"])
def test_a_deep_tree_takes_linear_time(tag: str) -> None:
    assert told(f"<{tag}>" + "<base>" * 20_000) == [False] * 20_000
