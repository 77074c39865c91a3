"""Items of a list have the numbers that a browser shows."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.export.numbering import numbered
from fyke.export.prose import markdown, plain
from search.test_main_text import PROSE, page

NUMBERS = st.none() | st.integers(0, 30) | st.integers(999_999_990, 999_999_999)  # the most that are read
ITEMS = st.lists(NUMBERS, min_size=1, max_size=5)


def shown(start: int | None, reverse: bool, said: Sequence[int | None]) -> list[int]:
    """By the HTML Standard (4.4.5, 4.4.8)."""
    number = start if start is not None else len(said) if reverse else 1
    found = []
    for value in said:
        number = number if value is None else value
        found.append(number)
        number += -1 if reverse else 1
    return found


@settings(deadline=None, max_examples=100)
@given(NUMBERS, st.booleans(), ITEMS, st.sampled_from(["{}", "'{}'", '"{}"']))
def test_numbers_are_those_of_a_browser(start: int | None, reverse: bool, said: list[int | None], quoted: str) -> None:
    attributes = "" if start is None else f" start={quoted.format(start)}"
    values = ["" if value is None else f" value={quoted.format(value)}" for value in said]
    items = "".join(f"<li{value}>item{at}<ul><li>in it</ul>" for at, value in enumerate(values))
    found = page(f"<body><main>{PROSE}<ol{attributes}{' reversed' * reverse}>{items}</ol>{PROSE}</main>")
    expected = [f"{number}. item{at}" for at, number in enumerate(shown(start, reverse, said)) if number >= 0]
    for text in (plain(found), markdown(found)):
        lines = [line.strip() for line in text.split("\n") if "item" in line]
        assert [line for line in lines if line in expected] == expected
        assert not any("\ue000" <= character <= "\uf8ff" for character in text)


@pytest.mark.parametrize(
    "html", ["<ol><li>a</ol>", "<ol start=2><li>\ue008", "<ol start=2><li>&#xE008;", "<li value=2>"]
)
def test_other_pages_stay_as_they_are(html: str) -> None:
    assert numbered(html) == html
