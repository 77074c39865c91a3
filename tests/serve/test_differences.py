"""The difference of two texts has all of both, and what is the same in it is as much as can be."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.serve.differences import MOST_CELLS, MOST_LETTERS, MOST_PIECES, ChangeKind, _TableRoom, compared, differences

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


def side(steps: list[tuple[ChangeKind, str]], other: ChangeKind) -> list[str]:
    return [piece for kind, piece in steps if kind is not other]


def longest(old: list[str], new: list[str]) -> int:
    if not (old and new):
        return 0
    if old[0] == new[0]:
        return 1 + longest(old[1:], new[1:])
    return max(longest(old[1:], new), longest(old, new[1:]))


@given(old=WORDS, new=WORDS)
def test_all_of_both_is_there_and_no_more_could_be_the_same(old: list[str], new: list[str]) -> None:
    steps = compared(old, new, _TableRoom(MOST_CELLS))
    assert (side(steps, ChangeKind.NEW), side(steps, ChangeKind.OLD)) == (old, new)
    assert sum(kind is ChangeKind.SAME for kind, _ in steps) == longest(old, new)


@given(old=st.text("ab \n", max_size=60), new=st.text("ab \n", max_size=60))
def test_equal_texts_have_no_difference_and_others_some(old: str, new: str) -> None:
    shown = differences(old, new)
    assert bool(shown) == (old != new)
    for other, text in ((ChangeKind.NEW, old), (ChangeKind.OLD, new)):
        pieces = [piece for block in shown for piece in block if piece.kind is not other]
        if all(piece.kind is not ChangeKind.LEFT_OUT for piece in pieces) and shown:
            assert "".join(piece.text for piece in pieces).replace("\n", "") == text.replace("\n", "")


def test_a_word_in_a_long_text_is_found_and_what_is_far_from_it_is_left_out() -> None:
    lines = [f"line {number} of the text" for number in range(5 * MOST_PIECES)]
    other = [*lines[:4000], "line 4000 of a text", *lines[4001:]]
    shown = differences("\n".join(lines), "\n".join(other))
    assert [[piece.kind for piece in block] for block in shown if block[0].kind is not ChangeKind.LEFT_OUT][1] == [
        ChangeKind.SAME,
        ChangeKind.OLD,
        ChangeKind.NEW,
        ChangeKind.SAME,
    ]
    assert [block[0].text for block in shown if block[0].kind is ChangeKind.LEFT_OUT] == ["3998", "3497"]


def test_texts_that_are_too_long_to_be_compared_are_told_as_replaced() -> None:
    old, new = ["x", *["a", "b"] * MOST_PIECES, "y"], ["z", *["b", "a"] * MOST_PIECES, "w"]
    steps = compared(old, new, _TableRoom(MOST_CELLS))
    assert [kind for kind, _ in steps] == [ChangeKind.OLD] * len(old) + [ChangeKind.NEW] * len(new)


def test_many_changes_are_compared_as_far_as_there_is_room() -> None:
    """Each table is bounded, and so are all together: behind that, blocks are told as replaced."""
    old, new = (
        "\n".join(f"same {n}\n{' '.join(f'{letter}{m} x' for m in range(100))}" for n in range(400)) for letter in "ab"
    )
    shown = differences(old, new)
    for other, text in ((ChangeKind.NEW, old), (ChangeKind.OLD, new)):
        told = "".join(piece.text for block in shown for piece in block if piece.kind is not other)
        assert told.replace("\n", "") == text.replace("\n", "")
    pieces = [len(block) for block in shown if block[0].kind is not ChangeKind.SAME]
    assert pieces[0] > 100 and pieces[-1] == 3  # the last word is the same
    assert sum(one > 3 for one in pieces) <= MOST_CELLS / 300**2


@pytest.mark.parametrize(("old", "new"), [("\n", "a\n"), ("a ", "b "), ("a\n", "\nb")])
def test_memory_is_bounded_whatever_the_texts_are(old: str, new: str) -> None:
    texts = [piece * (16 * MOST_LETTERS // len(piece)) for piece in (old, new)]
    tracemalloc.start()
    differences(*texts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400 * MOST_LETTERS
