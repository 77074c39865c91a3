"""Ways: two URLs that differ in one thing only have the rest in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.shapes import MOST_NAMES
from fyke.core.urls import canonical
from fyke.frontier.traps.ways import (
    MOST_LEFT_OUT,
    NAMES,
    WAYS,
    Difference,
    lacks,
    leftover_keys,
    leftovers,
    ways_in_words,
    without_names,
)

PARTS = st.lists(st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True), max_size=6)
PAIRS = st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}=[a-z0-9]{0,9}", fullmatch=True), max_size=4)


def test_a_query_is_parted_by_semicolons_too() -> None:
    assert lacks("http://h/index.php?action=profile;u=12") == [Difference.DIGEST], (
        "what follows it is no session of a path"
    )
    assert not lacks("http://h/index.php?topic=3;sid=3f2a1b99")
    assert leftovers("http://h/index.php?sid=3f2a1b99;topic=3")[Difference.DIGEST] == "http://h/index.php?topic=3"


@pytest.mark.parametrize(
    ("what", "one", "other"),
    [
        ("its query", "/contact", "/contact?from=foot"),
        ("its query", "/list?sort=up&page=2", "/list"),
        (
            "what looks made up in it",
            "/item/lamp;jsessionid=592A693DB50FA329",
            "/item/lamp;jsessionid=08AAAB4D46946FAE",
        ),
        ("what looks made up in it", "/item?sid=3f2a1b99&n=7", "/item?sid=77aa8c1d&n=7"),
        ("its folders", "/staff/lecture.html", "/staff/notes/lecture.html"),
        ("its folders", "/a/", "/b/a/"),
        ("its folders", "/notes/7", "/staff/notes/7"),
        ("its folders", "/notes/2026/11/7.html?a", "/staff/notes/2026/11/7.html?a"),
        ("the order of its parts, and how often they come", "/red/small/", "/small/red/red/"),
        ("the order of its parts, and how often they come", "/list?a=1&b=2", "/list?b=2&a=1"),
    ],
)
def test_variants_have_in_common_what_they_do_not_differ_in(what: str, one: str, other: str) -> None:
    keys = [leftover_keys(f"http://h{path}", 1) for path in (one, other)]
    same = [way for way in Difference if keys[0][way] == keys[1][way]]
    assert what in [ways_in_words(f"http://h{one}")[way] for way in same]
    assert not set(keys[0]) & set(leftover_keys(f"http://h{one}", 2)), "hosts are apart"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/comic/7", "/map/3/7"),
        ("/map/3/7", "/map/4/7"),
        ("/7", "/comic/7"),
        ("/mail/000123.html", "/map/000123.html"),
        ("/comic/7/", "/map/7/"),
        ("/2026/11/7", "/2025/11/7"),
    ],
)
def test_numbers_are_no_names_that_pages_in_other_folders_have_in_common(one: str, other: str) -> None:
    found = [leftovers(f"http://h{path}")[Difference.FOLDERS] for path in (one, other)]
    assert found[0] != found[1]


@pytest.mark.parametrize("mark", ["&", ";"])
def test_what_is_left_without_each_name_is_the_same_for_those_that_differ_in_it(mark: str) -> None:
    one, other = (without_names(f"http://h/view?id=7{mark}sid={session}{mark}page=2") for session in ("zq8w", "44102"))
    assert [name for name, _ in one] == ["id", "sid", "page"]
    assert [name for (name, left), same in zip(one, other, strict=True) if left == same[1]] == ["sid"]
    assert one[1] == ("sid", f"http://h/view?id=7{mark}page=2")
    assert not without_names("http://h/view?id=7") and not without_names("http://h/view"), "that is its query"


@given(st.lists(st.from_regex(r"[a-z]{1,3}=[a-z0-9]{0,3}", fullmatch=True), max_size=40))
def test_a_query_of_any_length_has_few_names_to_be_left_out(pairs: list[str]) -> None:
    found = without_names(f"http://h/view?{'&'.join(pairs)}")
    assert len(found) == (min(len(pairs), MOST_NAMES, MOST_LEFT_OUT) if len(pairs) > 1 else 0)
    assert len(leftover_keys(f"http://h/view?{'&'.join(pairs)}", 1)) == NAMES + len(found) <= WAYS


@given(PARTS, PAIRS)
def test_pages_of_other_names_are_no_variants(parts: list[str], names: list[str]) -> None:
    url = canonical(f"http://www.example.org/{'/'.join(parts)}?{'&'.join(names)}") or ""
    assert len(leftovers(url)) == len(Difference)
    assert not set(leftover_keys(url, 1)) & set(leftover_keys("http://www.example.org/quite/another?page", 1))
