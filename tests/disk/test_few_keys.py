"""Which keys a table may have, as far as memory knows."""

from hypothesis import given
from hypothesis import strategies as st

from fyke.disk.few_keys import ANY, FewKeys

KEYS = st.lists(st.integers(-5, 5))


@given(KEYS, KEYS, st.integers(ANY, 6))
def test_a_key_that_was_put_may_be_there_and_another_only_where_they_are_many(
    before: list[int], since: list[int], most: int
) -> None:
    keys = FewKeys(iter(before), most)
    for key in since:
        keys.add(key)
    have = {*before, *since}
    for key in range(-6, 7):
        assert (key in keys) == (key in have or len(have) > most)
