"""A page that holds all of another is known to, however large both are. If both are small, so is what it lacks."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from fyke.core.urls import key_of
from fyke.harvest.containment import MOST_HELD, held_by, is_part, missing, words_of_url

URL = "http://a.test/news/one.html"
numbers = st.lists(st.integers(0, 3000), min_size=1, max_size=1500, unique=True)


def page(words: list[int], links: list[int]) -> bytes:
    anchors = "".join(f"<p><a href='/page{link}?print=1'>more</a></p>" for link in links)
    return f"<html><title>more</title><body>{' '.join(f'Word{word},' for word in words)}{anchors}</body>".encode()


def held(words: list[int], links: list[int]) -> np.ndarray:
    found = held_by(page(words, links), "text/html", URL, lambda url: url.removesuffix("?print=1"))
    assert len(found) <= MOST_HELD and np.array_equal(found, np.unique(found))
    return found


@given(numbers, numbers, numbers, st.data())
def test_a_part_is_never_missing(words: list[int], more: list[int], links: list[int], data: st.DataObject) -> None:
    few = data.draw(st.lists(st.sampled_from(words), unique=True))
    part, whole = held(few, links[:200]), held([*more, *words], links)
    assert not len(missing(part, whole))
    assert is_part(part, whole) in (True, None)


@given(st.sets(st.integers(0, 100), min_size=20), st.sets(st.integers(0, 100)), st.sets(st.integers(101, 300)))
def test_what_small_pages_lack_is_known(words: set[int], more: set[int], other: set[int]) -> None:
    lacking = missing(held([*words, *other], [7]), held([*words, *more], [7]))
    assert set(lacking.tolist()) == {key_of(f"word{number}") for number in other}


@given(numbers.filter(lambda words: len(words) > 100))
def test_a_page_of_other_words_is_no_part(words: list[int]) -> None:
    assert is_part(held(words, []), held([word + 5000 for word in words], [])) is False


@pytest.mark.parametrize(
    ("body", "counts"),
    [(b"<p>one<a href=/x>two</a>", {"one", "two", "http://a.test/x"}),
     (b"<base href=/deep/><a href=x>x</a>", {"x", "http://a.test/deep/x"}),
     (b"<p>one<script>two</script><div class=ads>three</div><img src=/p.png>", {"one", "http://a.test/p.png"}),
     (b"<a href=one.html#top>up</a>", {"up"}), (b"", set())],
)  # fmt: skip
def test_words_links_and_what_is_shown_count(body: bytes, counts: set[str]) -> None:
    assert set(held_by(body, "text/html", URL, str).tolist()) == set(map(key_of, counts))


def test_what_is_not_read_says_nothing() -> None:
    assert not len(held_by(b"%PDF", "application/pdf", URL, str))
    assert not len(held_by(b"<p>" * 200_000, "text/html", URL, str))
    assert is_part(held([1], []), held([1], [])) is None, "too little"
    assert {key_of("news"), key_of("one")} <= set(words_of_url(URL).tolist())
