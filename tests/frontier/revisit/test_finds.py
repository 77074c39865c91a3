"""Pages that bring links are worth visits for it, and more new pages are found for it."""

import numpy as np
import pytest
from discovery import LIFE, POLICIES, run, web
from hypothesis import given
from hypothesis import strategies as st

from fyke.frontier.revisit.finds import MOST_LINKS, brought, finding, rates

positive = st.floats(1e-3, 1e6)


@given(links=st.lists(st.integers(0, 1000), min_size=1, max_size=40), since=positive, common=positive)
def test_a_rate_is_none_until_a_page_brings_a_link_and_bounded_then(
    links: list[int], since: float, common: float
) -> None:
    """Whoever makes up links without end counts as one who brings `MOST_LINKS` at each visit."""
    found, time = np.zeros(1), np.zeros(1)
    for new in links:
        found, time = brought(found, time, np.array([float(new)]), np.array([since]))
        rate = rates(found, time, common)[0]
        assert np.isfinite(rate) and (rate > 0) == (found[0] > 0)
        assert rate <= max(MOST_LINKS / since, common) * 1.01
    assert (found[0] > 0) == any(links)


@given(rate=positive, age=positive)
def test_worth_grows_with_the_square_of_age(rate: float, age: float) -> None:
    one, two = (finding(np.array([rate]), np.array([some]))[0] for some in (age, 2 * age))
    assert two == pytest.approx(4 * one)


@pytest.mark.parametrize(("skew", "seed"), [(1.0, 21), (0.8, 22), (1.2, 23)])
def test_more_new_pages_are_found_and_copies_are_as_fresh(skew: float, seed: int) -> None:
    """On webs that nothing was tuned to."""
    where = web(800, seed, skew, LIFE)
    found = {}
    for name in ("uniform", "changes alone", "Fyke"):
        (index,) = POLICIES[name](0.2)
        found[name] = run(where, 0.2, index)
    assert found["Fyke"][0] > 1.1 * found["uniform"][0]
    assert found["Fyke"][0] > 1.1 * found["changes alone"][0]
    assert found["Fyke"][2] < 1.1 * found["changes alone"][2]
