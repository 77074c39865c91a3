"""Laws: a number is read as people write it, and what is no number is none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.harvest.numerals import decimal, parts_by_points

BLANKS = st.sampled_from([" ", *"\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"])
MARKS = st.sampled_from([".", ",", "'", "\u2019"])
WHOLE = st.integers(1_000_000, 10**18)


def grouped(value: int, mark: str) -> str:
    return f"{value:,}".replace(",", mark)


@given(WHOLE, BLANKS | MARKS, st.sampled_from(["{}", "about {} km", "{}.", "{},-", "-{}"]))
def test_equal_separators_part_thousands(value: int, mark: str, around: str) -> None:
    assert abs(int(decimal(around.format(grouped(value, mark))))) == value


@given(st.integers(1_000, 10**12), BLANKS | MARKS, st.sampled_from(".,"), st.integers(0, 99_999))
def test_another_mark_behind_them_parts_decimals(value: int, mark: str, point: str, decimals: int) -> None:
    if mark != point:
        assert decimal(f"{grouped(value, mark)}{point}{decimals}") == f"{value}.{decimals}"


@given(
    st.integers(1, 10**12), BLANKS | MARKS,
    st.sampled_from([",-", ".-", ",–", ",—", ",--", " ,-", ".–", ",\u2212", "\u00a0,–"]),
    st.sampled_from(["", " EUR", " €", "*", "\n"]),
)  # fmt: skip
def test_a_dash_stands_for_no_decimals(value: int, mark: str, dash: str, behind: str) -> None:
    """1.299,– €: a whole number, so its point parts thousands."""
    assert decimal(f"€ {grouped(value, mark)}{dash}{behind}") == str(value)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.299,-5", "1.299"), ("1.299, - or more", "1.299"), ("1.299 - 1.399", "1.299"), ("12.50,-", "12.50"),
        ("1.299,-x", "1.299"), ("0.299,-", "0.299"),
    ],
)  # fmt: skip
def test_not_every_dash_does(text: str, number: str) -> None:
    assert decimal(text) == number


@given(st.lists(st.integers(0, 9_999).map(str), min_size=3, max_size=6), MARKS)
def test_what_has_other_groups_is_no_number(groups: list[str], mark: str) -> None:
    """A date, an address or a version."""
    text = mark.join(groups)
    parts_thousands = len(groups[0]) <= 3 and groups[0] != "0" and all(len(group) == 3 for group in groups[1:])
    indian = mark == "," and all(len(group) == 2 for group in groups[1:-1]) and len(groups[-1]) == 3
    if not indian:
        assert decimal(text) == ("".join(groups) if parts_thousands else "")


@pytest.mark.parametrize(
    "text",
    [
        "31.12.2024", "01.02.2025", "10.0.0.1", "1.2.3", "1,2,3", "2024.01.02", "v 1.0.0", "0.123.456", "36,38,40",
        "5'11", "1.23,456,7", "12.34,56", "1,299.000,5", "none", "", ".", "-", ",-", ".5.5",
    ],
)  # fmt: skip
def test_no_numbers(text: str) -> None:
    assert decimal(text) == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("₹1,29,999", "129999"), ("12,34,56,789.50", "123456789.50"), ("5...10", "5"), ("3, 4, 5", "3"),
        ("12:30", "12"), ("1/2", "1"), ("1.299", "1.299"), ("1,299", "1299"), ("7'", "7"),
    ],
)  # fmt: skip
def test_numbers(text: str, number: str) -> None:
    assert decimal(text) == number


@given(st.integers(1_000, 10**12), st.integers(0, 99_999))
def test_where_points_part_thousands_one_point_does(value: int, decimals: int) -> None:
    german = grouped(value, ".")
    assert decimal(f"{german} km", by_points=True) == str(value)
    assert decimal(f"{german},{decimals} km", by_points=True) == f"{value}.{decimals}"
    assert decimal(f"{grouped(value, ',')}.{decimals}", by_points=True) == f"{value}.{decimals}", "as others write"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,299", "1.299"), ("1,299.00", "1299.00"), ("1,299,000", "1299000"), ("1,299,–", "1299"), ("12.5", "12.5"),
        ("0.299", "0.299"), ("1299.500", "1299.500"), ("1 299,500", "1299.500"), ("31.12.2024", ""), ("1.5e3", "1.5e3"),
    ],
)  # fmt: skip
def test_other_numbers_where_points_part_thousands(text: str, number: str) -> None:
    assert decimal(text, by_points=True) == number


@pytest.mark.parametrize(
    ("language", "by_points"),
    [
        ("de", True), ("DE-at", True), ("pt_BR", True), ("es-ES", True), ("es-AR", True), (" nl ", True), ("id", True),
        ("sr-Latn-RS", True), ("tr", True), ("da", True), ("it", True), ("de-CH", False), ("de-Latn-CH", False),
        ("es-MX", False), ("es-419", False), ("it-CH", False), ("en", False), ("en-DE", False), ("fr", False),
        ("ja", False), ("", False), ("-", False), ("deutsch", False), ("x" * 100, False), ("-" * 100_000, False),
        ("en," * 100_000, False),
    ],
)  # fmt: skip
def test_in_some_languages_points_part_thousands(language: str, by_points: bool) -> None:
    assert parts_by_points(language) is by_points


@given(st.text(max_size=50))
def test_any_language_may_be_declared(language: str) -> None:
    parts_by_points(language)


@given(st.integers(0, 999_999), st.integers(0, 999_999), BLANKS)
def test_two_numbers_are_never_one(one: int, other: int, blank: str) -> None:
    if not (0 < one < 1_000 and 100 <= other < 1_000):
        assert decimal(f"{one}{blank}{other}") == str(one)


@pytest.mark.parametrize(
    "text", ["1" * 60_000, "1," * 30_000, "1,111" * 12_000, "1 111" * 12_000, "-" * 60_000, ".," * 30_000]
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    began = time.thread_time()
    assert len(decimal(text)) <= 1_000
    assert time.thread_time() - began < 0.1
