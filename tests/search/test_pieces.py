"""Pieces hold all words of a text, and say which are words of links."""

from random import Random
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.search.extract import TEXT_CHARS
from fyke.search.pieces import FORM_WORDS, pieces_of
from fyke.search.sketch import shingles, word_hashes
from search.webs import WORDS

SAID = st.text(st.sampled_from("aB1. \n。!É中日7|"), max_size=80) | st.text(max_size=80)


@settings(deadline=None, max_examples=300)
@given(SAID, st.lists(SAID, max_size=3))
def test_all_words_are_in_one_piece_each(text: str, links: list[str]) -> None:
    pieces = pieces_of(text, links)
    words = word_hashes(text)
    assert (pieces.words == words).all() and pieces.sizes.sum() == len(words)
    assert len(pieces.sizes) == len(pieces.keys) == len(pieces.forms) == len(pieces.linked)
    assert (pieces.shingles() == shingles(words)).all()
    one_by_one = [pieces.shingles(np.arange(len(pieces.sizes)) == at) for at in range(len(pieces.sizes))]
    assert all(np.isin(one, shingles(words)).all() for one in one_by_one)


def test_a_form_is_what_is_left_of_names_and_numbers() -> None:
    lines = [
        "Published on 28 December 2025 by Henry Müller",
        "Published on 3 May 1999 by Rosa Brown",
        "Published in 28 December 2025 by Henry Müller",
        "published by henry",
        "by 28 " * (FORM_WORDS // 2 + 1),
    ]
    first, same, other, without, long = pieces_of("\n".join(lines)).forms.tolist()
    assert first == same != other and first and other
    assert not without, "what has no number is what it says"
    assert not long


def test_a_piece_is_linked_if_half_of_it_are_words_of_one_link() -> None:
    dice = Random(3)
    title, said = (" ".join(dice.choices(WORDS, k=12)) for _ in range(2))
    assert pieces_of(f"{title}\n{title} 12.50 Euro\n{said}\n{said} {title}", [title]).linked.tolist() == [
        True,
        True,
        False,
        False,
    ]
    halves = title.split()
    assert not pieces_of(title, [" ".join(halves[:6]), "other", " ".join(halves[9:])]).linked.any()
    assert not pieces_of("\n".join(halves), [title]).linked.any(), "a piece of less than a shingle is in no link"


@pytest.mark.parametrize("worst", ["1 ", "1", "A1.\n", ". ", "。", "\n", "中", "a " * 19 + "1. ", "É1 "])
def test_work_is_linear_in_the_text(worst: str) -> None:
    def seconds(size: int) -> float:
        text = (worst * size)[:size]
        begun = process_time()
        pieces_of(text, [text[:120]] * (size // 120))
        return process_time() - begun

    pieces_of(worst)
    small = min(seconds(TEXT_CHARS // 8) for _ in range(3))
    assert seconds(TEXT_CHARS) < 8 * 4 * small + 0.2
