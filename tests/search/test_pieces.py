"""Pieces hold all words of a text, and say which are words of links."""

import re
from random import Random
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.search.main_text import TEXT_CHARS
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
    for each in (pieces.spaced, pieces.keys, pieces.forms, pieces.linked, pieces.part):
        assert len(each) == len(pieces.sizes)
    assert (pieces.shingles() == shingles(words)).all()
    one_by_one = [pieces.shingles(np.arange(len(pieces.sizes)) == at) for at in range(len(pieces.sizes))]
    assert all(np.isin(one, shingles(words)).all() for one in one_by_one)


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("aB1. \n-É中日7_"), max_size=80))
def test_signs_and_numbers_do_not_count_for_notes(text: str) -> None:
    """But a letter of a script that is written without blanks does."""
    wanted = 0
    for run in text.split():
        words = re.findall("[中日]|[aB17É]+", run)
        wanted += sum(word in "中日" or (at == 0 and word[0] not in "17") for at, word in enumerate(words))
    assert pieces_of(text).spaced.sum() == wanted


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


@pytest.mark.parametrize("month", ["октября", "de enero de", "mars"])
def test_the_name_of_a_month_is_of_a_number(month: str) -> None:
    first, other = pieces_of(f"обновлено 7 {month} 2009\nобновлено 12 декабря 2013").forms.tolist()
    assert first == other
    day, name = pieces_of(f"sold on 7 {month} 2009\nsold at 7 {month} 2009").forms.tolist()
    assert day != name


def test_a_piece_is_of_a_link_if_half_of_its_words_are() -> None:
    dice = Random(3)
    title, said = (" ".join(dice.choices(WORDS, k=12)) for _ in range(2))
    lines = [title, f"{title} 12.50 Euro", f"{' '.join(said.split()[:11])} {title}", said, f"{said} {title} more"]

    def found(text: str, told: list[str]) -> list[bool]:
        return list(map(bool, pieces_of(text, told).linked))

    assert found("\n".join(lines), [title]) == [True, True, True, False, False]
    halves = title.split()
    assert not any(found(title, [" ".join(halves[:3]), "other", " ".join(halves[9:])]))
    assert not any(found("\n".join(halves), [title])), "a piece of less than a shingle is in no link"


def test_a_piece_is_of_the_title_if_hardly_a_word_is_not() -> None:
    """A title may be the beginning of a first sentence, and is what is answered in a thread."""
    sentence = "Twelve ships came in that night with the tide."
    lines = ["Twelve ships came in that night", "Ships came in, that night", sentence, "Twelve ships"]
    pieces = pieces_of("\n".join(lines), title=f"{lines[0]} | The Harbour")
    assert pieces.linked.tolist() == [True, True, False, False]
    for sign in ("Re: ", "AW: ", "Fwd: Re: ", "Re[2]: "):
        answers = pieces_of("\n".join(f"{sign}{line}" for line in lines), title=lines[0])
        assert answers.linked.tolist() == [True, True, False, False]


@pytest.mark.parametrize("sign", ["-", "–", "—"])
def test_a_dateline_is_a_piece(sign: str) -> None:
    assert len(pieces_of(f"LIMA, 3 May 2010 (XYZ) {sign} Here it is told").sizes) == 2
    assert len(pieces_of(f"It is here {sign} so we were told {sign} that it is").sizes) == 1


@pytest.mark.parametrize("worst", ["1 ", "1", "A1.\n", ". ", "。", "\n", "中", "a " * 19 + "1. ", "É1 "])
def test_work_is_linear_in_the_text(worst: str) -> None:
    def seconds(size: int) -> float:
        text = (worst * size)[:size]
        begun = process_time()
        pieces_of(text, [text[:120]] * (size // 120), text)
        return process_time() - begun

    pieces_of(worst)
    small = min(seconds(TEXT_CHARS // 8) for _ in range(3))
    assert seconds(TEXT_CHARS) < 8 * 4 * small + 0.2
