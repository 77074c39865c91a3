"""Shapes: what differs in numbers, in values, or in what looks made up has them all in common."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.shapes import LONG_URL, MOST_NAMES, MOST_PARTS, Role, Shapes, shape_keys, shapes, skeleton
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
    sharp, coarse = _sharp_and_coarse(shape_keys(found, 1, 2, met_on_fresh=False))
    assert len(sharp) <= 2 * MOST_NAMES + 5 and len(coarse) <= 5
    sharp_on_fresh, coarse_on_fresh = _sharp_and_coarse(shape_keys(found, 1, 2, met_on_fresh=True))
    assert sharp == sharp_on_fresh
    assert not set(coarse) & set(coarse_on_fresh)


def _sharp_and_coarse(keys: Shapes[int]) -> tuple[list[int], list[int]]:
    assert [role for role, _ in keys.in_order()] == sorted(role for role, _ in keys.in_order())
    assert keys.sharp == [key for role, key in keys.in_order() if role < Role.KINDS]
    return keys.sharp, [key for role, key in keys.in_order() if role >= Role.KINDS]


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


def test_repeats_depth_and_length_are_shapes() -> None:
    assert "a part that repeats" in shapes(skeleton("http://h/a/b/a/")).traits
    assert any("parts and more" in shape for shape in shapes(skeleton("http://h/a/b/c/d/e/f/g/i")).traits)
    assert any("characters and more" in shape for shape in shapes(skeleton("http://h/" + "a" * LONG_URL)).traits)


@pytest.mark.parametrize("piece", ["/", "1", "a1", "1a", "#", "&", "=", "a=&", "/1a1", "."])
def test_the_longest_urls_have_few_shapes(piece: str) -> None:
    found = shapes(skeleton("http://h/" + piece * (8000 // len(piece))))
    assert len(found.own) <= 66 * (MOST_PARTS + MOST_NAMES)
