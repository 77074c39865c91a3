"""What has become of a page is the difference of what it was and what it is, however often it changed between."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fyke.export.changes import ROW, Change, of_pages

# (page, what it held, 0: nothing; whether it was found as it was, and whether it then asks not to be indexed)
VISITS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans(), st.booleans()), max_size=30)


@given(visits=VISITS, before=st.integers(0, 30))
def test_a_change_is_between_the_date_and_now(visits: list[tuple[int, int, bool, bool]], before: int) -> None:
    """`before` of the visits are before the date."""
    rows = np.zeros(len(visits), ROW)
    was: dict[int, int] = {}
    now: dict[int, int] = {}
    held: dict[int, int] = {}
    for at, (page, said, again, asks) in enumerate(visits):
        if again:
            rows[at] = (page, at, 0, not asks, at < before, False, 0)
            said = 0 if asks else held.get(page, 0)
        else:
            rows[at] = (page, at, min(said, 2), said > 0, at < before, True, said)  # 2 and 3: in another charset
            held[page] = said
        if page in held:
            now[page] = said
            if at < before:
                was[page] = now[page]
    last, changes = of_pages(np.random.default_rng(1).permutation(rows))
    found = dict(zip(last["key"].tolist(), map(Change, changes.tolist()), strict=True))
    assert found.keys() == now.keys()
    for page, said in now.items():
        old = was.get(page, 0)
        word = Change.NONE if old == said else Change.CHANGED if old and said else Change.NEW if said else Change.GONE
        assert found[page] is word
