"""The protocol between agents, in seeded histories (`benches/histories.py` runs a hundred thousand of them)."""

from itertools import count

import pytest
from histories import BROKEN, History, failing


def test_nothing_is_lost_and_nothing_counts_twice() -> None:
    """Whatever is dropped, repeated, put out of order, killed, frozen and woken: each page once, each host politely."""
    assert failing(first=0, count=120) == {}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_protocol_is_caught(how: str) -> None:
    """To say durable of what was only applied, and not to send again: the histories notice both."""
    assert any(failing(seed, 1, BROKEN[how]) for seed in range(40))


def test_histories_hold_the_troubles_they_are_for() -> None:
    """Agents die in them, more than once, and visits are lent."""
    lives = lent = 0
    for seed in count():
        history = History(seed)
        history.run()
        lives += history.lives - history.agents
        lent += any(cell.toy.archive for cell in history.cells[1:] if cell)
        if lives > 20 and lent > 5:
            break
        assert seed < 60
