"""Distance by its definition."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from fyke.search.spelling import distance

WORDS = st.text("abc", max_size=7)


def by_definition(one: str, other: str) -> int:
    """Optimal string alignment, by recursion."""

    @cache
    def between(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        best = min(between(i - 1, j) + 1, between(i, j - 1) + 1, between(i - 1, j - 1) + (one[i - 1] != other[j - 1]))
        if i > 1 and j > 1 and one[i - 2 : i] == other[j - 2 : j][::-1]:
            best = min(best, between(i - 2, j - 2) + 1)
        return best

    return between(len(one), len(other))


@given(one=WORDS, other=WORDS, most=st.integers(0, 3))
def test_distance(one: str, other: str, most: int) -> None:
    assert distance(one, other, most) == min(by_definition(one, other), most + 1)
