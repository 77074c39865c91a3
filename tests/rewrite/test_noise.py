"""A number that changes at every request is known, and none that says something."""

from collections.abc import Callable
from random import Random

import hypothesis.strategies as st
from hypothesis import given

from fyke.harvest.prints import Place
from fyke.rewrite.noise import LEAST_PARTS, LEAST_PATHS, noise, numbers_of

KEYS = ["ref", "utm", "print", "back", "from"]


def site(pages: int, keys: list[str], text: Callable[[int, dict[str, str], int], str], seed: int) -> frozenset[Place]:
    """What is found at a site whose `text` depends on the page, the query and the number of the request."""
    dice, found, request = Random(seed), [], 1000
    for page in range(pages):
        queries = [{}, *({key: str(dice.randrange(9))} for key in keys)]
        for query in queries:
            request += dice.randrange(1, 50)
            target = "&".join(f"{key}={value}" for key, value in query.items())
            words = text(page, query, request).split()
            found.append((f"p{page}", f"http://a.test/p{page}" + (f"?{target}" if target else ""), numbers_of(words)))
    return noise(found)


@given(st.integers(LEAST_PATHS, 30), st.integers(LEAST_PARTS, 5), st.integers(0, 99))
def test_a_counter_is_found_beside_numbers_that_stay(pages: int, keys: int, seed: int) -> None:
    found = site(
        pages,
        KEYS[:keys],
        lambda page, _, now: f"Story {page} of 30 . Seen {now} times since 2019 , at {now}:00 h",
        seed,
    )
    assert found == {("<", ".", "Seen"), (">", "times", "since"), ("<", ",", "at"), (">", "h", "")}


@given(st.integers(LEAST_PATHS, 30), st.integers(0, 99))
def test_what_stands_before_may_be_of_another_part(pages: int, seed: int) -> None:
    """A story, with other words on each page."""
    found = site(
        pages, KEYS, lambda page, _, now: f"Story w{'x' * page} {now} served . Word{'y' * page} end {now}", seed
    )
    assert found == {(">", "served", ".")}


@given(st.integers(1, 40), st.integers(0, 5), st.integers(0, 99))
def test_few_pages_or_keys_prove_nothing(pages: int, keys: int, seed: int) -> None:
    found = site(pages, KEYS[:keys], lambda page, _, now: f"Story {page} . Seen {now} times", seed)
    assert bool(found) == (pages >= LEAST_PATHS and keys >= LEAST_PARTS)


@given(st.integers(10, 30), st.sampled_from(KEYS), st.integers(0, 99))
def test_a_price_that_one_key_changes_is_none(pages: int, key: str, seed: int) -> None:
    def text(page: int, query: dict[str, str], now: int) -> str:
        return f"Item {page} . Price {page * 10 + int(query.get(key, 9))} now"

    assert not site(pages, KEYS, text, seed)


@given(st.lists(st.sampled_from(["a", "b", "1", "22", "c3", ","]), max_size=40))
def test_only_places_that_come_once_are_known(words: list[str]) -> None:
    for (_, *beside), number in numbers_of(words).items():
        assert any(map(str.isdigit, number)) and number in words
        assert all(word == "0" or not any(map(str.isdigit, word)) for word in beside)
