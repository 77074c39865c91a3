"""Shapes: what differs in numbers, in values, or in what looks made up has them all in common."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.shapes import (
    DIGEST,
    LONG_URL,
    MOST_LEFT_OUT,
    MOST_NAMES,
    MOST_PARTS,
    VARIANTS,
    lacks,
    shape_keys,
    shapes,
    skeleton,
    variant_keys,
    variants,
    without_names,
)
from fyke.core.urls import canonical

PARTS = st.lists(st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True), max_size=6)
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}=[a-z0-9]{0,9}", fullmatch=True), max_size=4)


@given(PARTS, NAMES, st.integers(0, 99), st.integers(0, 99))
def test_numbers_and_values_make_no_other_shape(parts: list[str], names: list[str], one: int, other: int) -> None:
    def url(number: int) -> str:
        path = re.sub(r"[0-9]+", str(number), "/".join(parts))
        query = "&".join(f"{name.partition('=')[0]}={number}" for name in names)
        return f"http://www{number}.example.org/{path}" + (f"?{query}" if query else "")

    assert shapes(skeleton(url(one))) == shapes(skeleton(url(other)))


@given(PARTS, NAMES)
def test_shapes_are_in_words_and_few(parts: list[str], names: list[str]) -> None:
    url = canonical(f"http://www.example.org/{'/'.join(parts)}?{'&'.join(names)}") or ""
    found = shapes(skeleton(url))
    assert not re.search(r"[0-9]", found.own.partition("?")[0])
    assert {name.partition("=")[0] for name in names} >= {name[1:].partition("=")[0] for name in found.names}
    sharp, coarse = shape_keys(found, 1, 2, met_on_fresh=False)
    assert len(sharp) <= MOST_NAMES + 5 and len(coarse) <= 5
    assert sharp == shape_keys(found, 1, 2, met_on_fresh=True)[0]
    assert not set(coarse) & set(shape_keys(found, 1, 2, met_on_fresh=True)[1])


def test_what_looks_made_up_is_one_shape() -> None:
    one, other = (f"http://h/session/{made_up}/list" for made_up in ("3f2a1b99", "77aa8c1d0e"))
    assert shapes(skeleton(one)) == shapes(skeleton(other)) != shapes(skeleton("http://h/session/3f2a/list"))
    assert shapes(skeleton(one)).own == "/session/*/list"
    assert shapes(skeleton("http://h/out/1ee666397c")).own == "/out/*", "a digest, with however few numbers"
    assert shapes(skeleton("http://h/x;jsessionid=592A693DB50FA329")).own == "/*"
    assert shapes(skeleton("http://h/12345678-1234-4f2a-8899-123456789012/x")).own == "/*/x", "a UUID"
    assert shapes(skeleton("http://h/decades/facade/deadbeefs")).own == "/decades/facade/deadbeefs"


def test_a_query_is_parted_by_semicolons_too() -> None:
    found = shapes(skeleton("http://h/index.php?action=profile;u=12;area=posts"))
    assert found == shapes(skeleton("http://h/index.php?action=profile&u=7&area=posts"))
    assert found.names == ["?action=", "?area=", "?u="] and "?action=profile" in found.words
    assert lacks("http://h/index.php?action=profile;u=12") == [DIGEST], "what follows it is no session of a path"
    assert not lacks("http://h/index.php?topic=3;sid=3f2a1b99")
    assert variants("http://h/index.php?sid=3f2a1b99;topic=3")[DIGEST] == "http://h/index.php?topic=3"


def test_repeats_depth_and_length_are_shapes() -> None:
    assert "a part that repeats" in shapes(skeleton("http://h/a/b/a/")).sharp
    assert any("parts and more" in shape for shape in shapes(skeleton("http://h/a/b/c/d/e/f/g/i")).sharp)
    assert any("characters and more" in shape for shape in shapes(skeleton("http://h/" + "a" * LONG_URL)).sharp)


@pytest.mark.parametrize("piece", ["/", "1", "a1", "1a", "#", "&", "=", "a=&", "/1a1", "."])
def test_the_longest_urls_have_few_shapes(piece: str) -> None:
    found = shapes(skeleton("http://h/" + piece * (8000 // len(piece))))
    assert len(found.own) <= 66 * (MOST_PARTS + MOST_NAMES)


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
        ("the order of its parts, and how often they come", "/red/small/", "/small/red/red/"),
        ("the order of its parts, and how often they come", "/list?a=1&b=2", "/list?b=2&a=1"),
    ],
)
def test_variants_have_in_common_what_they_do_not_differ_in(what: str, one: str, other: str) -> None:
    keys = [variant_keys(f"http://h{path}", 1) for path in (one, other)]
    same = [word for word, first, second in zip(VARIANTS, *keys, strict=True) if first == second]
    assert what in same
    assert not set(keys[0]) & set(variant_keys(f"http://h{one}", 2)), "hosts are apart"


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


@given(PARTS, NAMES)
def test_pages_of_other_names_are_no_variants(parts: list[str], names: list[str]) -> None:
    url = canonical(f"http://www.example.org/{'/'.join(parts)}?{'&'.join(names)}") or ""
    assert len(variants(url)) == len(VARIANTS)
    assert not set(variant_keys(url, 1)) & set(variant_keys("http://www.example.org/quite/another?page", 1))
