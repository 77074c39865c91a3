"""What has become of a page is the difference of what it was and what it is, however often it changed between."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fyke.export.changes import ROW, Change, of_pages

VISITS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.booleans()), max_size=30)


@given(visits=VISITS, before=st.integers(0, 30))
def test_a_change_is_between_the_date_and_now(visits: list[tuple[int, int, bool]], before: int) -> None:
    """Visits are (page, what it held, whether it was there), `before` of them before the date."""
    rows = np.zeros(len(visits), ROW)
    was: dict[int, int] = {}
    now: dict[int, int] = {}
    for at, (page, held, there) in enumerate(visits):
        rows[at] = (page, at, held, there, at < before)
        now[page] = held if there else 0
        if at < before:
            was[page] = now[page]
    last, changes = of_pages(np.random.default_rng(1).permutation(rows))
    found = dict(zip(last["key"].tolist(), map(Change, changes.tolist()), strict=True))
    assert found.keys() == now.keys()
    for page, held in now.items():
        old = was.get(page, 0)
        word = Change.NONE if old == held else Change.CHANGED if old and held else Change.NEW if held else Change.GONE
        assert found[page] is word
