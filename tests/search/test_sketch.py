"""Sketches find what is near at the rate that the formula says, and nothing that is not."""

import unicodedata
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.batches import NO_KEYS
from fyke.disk.ranges import Array
from fyke.search.sketch import (
    BAND_BINS,
    BANDS,
    LEAST_SHINGLES,
    MOST_SIGNS,
    SHINGLE_WORDS,
    SIGNS,
    shingles,
    sketch_of,
    word_hashes,
)
from search.near_kit import apart, formula

WORDS = np.array([f"{one}{other}" for one in "bcdfghklmnprst" for other in ("ab", "eth", "inder", "olm", "ust")])


def text(dice: np.random.Generator, words: int) -> list[str]:
    return dice.choice(WORDS, words).tolist()


def sketch(said: str) -> Array:
    """Of the whole of a text."""
    found = shingles(word_hashes(said))
    return sketch_of(found if len(found) >= LEAST_SHINGLES else NO_KEYS)


def edited(dice: np.random.Generator, words: list[str], edits: int) -> list[str]:
    out = list(words)
    for place in dice.choice(len(words), edits, replace=False):
        out[place] = f"new{place}"
    return out


def jaccard(one: str, other: str) -> float:
    sets = [set(shingles(word_hashes(one)).tolist()) for one in (one, other)]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1 << 30), st.integers(2 * LEAST_SHINGLES, 600))
def test_what_is_between_words_does_not_count(seed: int, words: int) -> None:
    dice = np.random.default_rng(seed)
    said = text(dice, words)
    between = dice.choice(
        [" ", "\n", ", ", " - ", ". ", " — ", "” “", "\xa0» «", "。", " • ", "… ", "！", "\u3000"], words
    ).tolist()
    other = "".join(word.title() + gap for word, gap in zip(said, between, strict=True))
    assert sketch(" ".join(said)) == sketch(other)
    assert sketch(other)["bands"].all()


@settings(deadline=None, max_examples=200)
@given(st.text())
def test_any_text_has_words(text: str) -> None:
    """As a plain loop over the characters finds them."""
    found, word = [], ""
    for letter in text.lower().encode("utf-8", "replace").decode():
        of_words = ord(letter) >= 1 << 16 or unicodedata.category(letter)[0] in "LMN"
        if of_words and len(letter.encode()) > 2:
            found += [word, letter]
            word = ""
        elif of_words:
            word += letter
        else:
            found.append(word)
            word = ""
    found = [one for one in [*found, word] if one]
    hashes = word_hashes(text)
    assert len(hashes) == len(found)
    assert len(np.unique(hashes)) == len(set(found))
    runs = {tuple(found[at : at + SHINGLE_WORDS]) for at in range(len(found) - SHINGLE_WORDS + 1)}
    assert len(shingles(hashes)) == len(runs)
    assert sketch(text)["bands"].any() == (len(runs) >= LEAST_SHINGLES)


def test_what_repeats_itself_says_no_more() -> None:
    """A text of few different runs has no sketch, however long it is: its estimates would be by chance."""
    assert not sketch("the river flows slowly through the meadows. " * 500)["bands"].any()


def test_edits_are_found_at_the_rate_of_the_formula() -> None:
    """By exact Jaccard coefficients, of texts of 400 words and with 2 to 40 of them changed."""
    dice = np.random.default_rng(12)
    expected, found = [], []
    for number in range(1_200):
        one = text(dice, 400)
        other = edited(dice, one, 2 + number % 39)
        sketches = sketch(" ".join(one)), sketch(" ".join(other))
        expected.append(formula(jaccard(" ".join(one), " ".join(other))))
        bands = (sketches[0]["bands"] == sketches[1]["bands"]).any()
        found.append(bool(bands) and apart(*sketches) <= MOST_SIGNS)
    expected, found = np.array(expected), np.array(found)
    for low, high in ((0.95, 1.01), (0.5, 0.95), (0.05, 0.5), (0.0, 0.05)):
        some = (expected >= low) & (expected < high)
        assert some.sum() >= 50
        assert abs(found[some].mean() - expected[some].mean()) < 4 * np.sqrt(0.25 / some.sum())


def test_unrelated_texts_are_never_near() -> None:
    dice = np.random.default_rng(5)
    sketches = np.array(
        [sketch(" ".join(text(dice, int(words)))) for words in dice.integers(2 * LEAST_SHINGLES, 900, 1_500)]
    )
    assert len(np.unique(sketches["bands"])) == sketches["bands"].size  # so none is a candidate of another


def test_the_formula_is_what_the_constants_say() -> None:
    """Below near-duplicates (0.9) by what pages say beside their articles, above what is none (0.8)."""
    assert (BANDS, BAND_BINS, SHINGLE_WORDS) == (10, 9, 4)
    assert 1 - 2 * MOST_SIGNS / SIGNS > 0.84 > 1 - 2 * (MOST_SIGNS + 1) / SIGNS
    assert formula(1.0) == 1 and formula(0.95) > 0.9999 and formula(0.9) > 0.99 and formula(0.75) < 0.01
    assert sum(comb(SIGNS, n) for n in range(MOST_SIGNS + 1)) / 2**SIGNS < 1e-80  # of two texts without relation


@pytest.mark.parametrize("words", [34, 60, 150])
def test_short_texts_are_found_as_the_formula_says(words: int) -> None:
    """Few shingles fill few bins: what the others take must not make some words count for many."""
    dice = np.random.default_rng(words)
    near, far = [], []
    for _ in range(400):
        one = text(dice, words)
        for out, wanted in ((near, 0.9), (far, 0.75)):
            other = [*one, *text(dice, round((words - 3) * (1 / wanted - 1)))]
            sketches = sketch(" ".join(one)), sketch(" ".join(other))
            out.append(bool((sketches[0]["bands"] == sketches[1]["bands"]).any()) and apart(*sketches) <= MOST_SIGNS)
    assert np.mean(near) > 0.97 and np.mean(far) < 0.05
