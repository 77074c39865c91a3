"""What is chosen is due, no more than there is room for, and worth more than what is not."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.frontier.revisit.belief import Belief
from fyke.frontier.revisit.choice import (
    CELLS,
    CHANCE,
    LEAST,
    LEAST_OF_CELL,
    LIST,
    Choice,
    Lines,
    Resting,
    Room,
    Terms,
    due_at,
)
from fyke.frontier.revisit.finds import finding
from fyke.frontier.revisit.signals import MOST_RECALL, Trust, counted_age, credit, no_trust
from fyke.frontier.revisit.worth import worth

HOUR, DAY = 3600.0, 86400.0
NOW = 1000 * DAY
TERMS = Terms(HOUR, 30 * DAY)


def resting(
    count: int,
    rng: np.random.Generator,
    hosts: int = 3,
    *,
    tried_later: bool = False,
    lists: float = 0.0,
    signals: bool = False,
) -> Resting:
    at = NOW - rng.uniform(0, 90, count) * DAY
    return Resting(
        rng.integers(0, hosts, count).astype(np.uint64),
        at,
        np.minimum(at + (rng.uniform(0, 9, count) * DAY if tried_later else 0.0), NOW),
        Belief(rng.uniform(0.3, 9, count), rng.uniform(0.1, 90, count) * DAY),
        rng.random(count) < lists,
        Trust(rng.uniform(0, MOST_RECALL, count), np.exp(rng.normal(0, 2, count)) / DAY)
        if signals
        else no_trust(count),
        rng.integers(0, 4, count).astype(float) if signals else np.zeros(count),
        np.exp(rng.normal(0, 3, count)) if signals else np.ones(count),
        rng.choice([0.0, 0.1 / DAY, 5 / DAY], count) if signals else np.zeros(count),
    )


def part(pages: Any, of: slice) -> Any:
    """Some of n pages: of each column, also of those within a belief or a trust."""
    return type(pages)(*(part(column, of) for column in pages)) if isinstance(pages, tuple) else pages[of]


def chosen(choice: Choice, pages: Resting) -> npt.NDArray[np.bool_]:
    batches = [part(pages, slice(begin, begin + 7)) for begin in range(0, len(pages.at), 7)]
    for batch in batches:
        choice.count(batch)
    if not choice.settle():
        return np.zeros(len(pages.at), np.bool_)
    return np.concatenate([choice.take(batch) for batch in batches])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 30), count=st.integers(1, 60), room=st.integers(0, 60), cell=st.integers(0, 30))
def test_the_worthiest_of_what_is_due_are_chosen_as_far_as_there_is_room(
    seed: int, count: int, room: int, cell: int
) -> None:
    pages = resting(
        count, np.random.default_rng(seed), tried_later=bool(seed % 2), signals=bool(seed // 2 % 2), lists=seed % 3 / 4
    )
    choice = Choice(NOW, TERMS, Room(room, np.full(CELLS, cell)))
    taken = chosen(choice, pages)
    due = due_at(pages, TERMS, NOW) <= NOW
    assert not (taken & ~due).any()
    of_host = [int((taken & (pages.host == host)).sum()) for host in range(3)]
    wanted = [min(cell, int((due & (pages.host == host)).sum())) for host in range(3)]
    assert all(have <= most for have, most in zip(of_host, wanted, strict=True))
    assert taken.sum() == min(room, sum(wanted))
    ages = counted_age(pages.belief, pages.trusted, pages.signals, np.maximum(NOW - pages.at, 1.0))
    weight = pages.weight * np.where(pages.first, LIST, 1.0)
    worths = worth(pages.belief, weight, ages)
    worths += weight * finding(pages.finds, np.maximum(NOW - pages.at, 1.0))
    for host in range(3):  # within a host, and within the quarter of a doubling that is one bin
        mine = pages.host == host
        if (taken & mine).any() and (due & ~taken & mine).any():
            assert worths[due & ~taken & mine].max() <= 2**0.25 * max(worths[taken & mine].min(), 2**-10) * 1.001
    assert (choice.freshness.due, choice.freshness.chosen) == (due.sum(), taken.sum())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_a_page_is_due_when_it_is_likely_to_have_changed_and_not_too_soon(seed: int) -> None:
    pages = resting(40, np.random.default_rng(seed), tried_later=True, signals=bool(seed % 2))
    due = due_at(pages, TERMS, NOW)
    assert (due >= pages.tried + HOUR).all()
    assert (due <= np.maximum(pages.at, pages.tried) + 30 * DAY).all()
    shape, time = pages.belief
    usual = (due > pages.tried + HOUR) & (due < pages.at + 30 * DAY) & (pages.tried == pages.at)
    silent, true = 1.0 - pages.trusted.recall, credit(pages.belief, pages.trusted)
    chance = 1 - (time / (time + silent * (due - pages.at))) ** shape * (1 - true) ** pages.signals
    brings = pages.finds * (due - pages.at)
    usual &= due > pages.at
    assert np.maximum(chance, brings)[usual] == pytest.approx(CHANCE)
    away = pages.tried > pages.at
    assert (due[away] >= pages.tried[away] + np.minimum(pages.tried - pages.at, 30 * DAY)[away]).all()


def test_without_terms_all_are_due_even_by_a_clock_that_was_set_back() -> None:
    pages = resting(50, np.random.default_rng(1), tried_later=True)
    assert chosen(Choice(NOW - 200 * DAY, Terms()), pages).all()


def test_lists_of_pages_come_before_all_pages() -> None:
    pages = resting(60, np.random.default_rng(2), lists=0.2)
    taken = chosen(Choice(NOW, Terms(most=int(pages.first.sum()))), pages)
    assert (taken == pages.first).all()


def test_a_line_follows_what_is_visited() -> None:
    """As many as are visited in two plans: it doubles while all are visited, and shrinks with what is not."""
    lines, host = Lines(), np.zeros(1, np.uint64)
    assert lines.room().of_cell[0] == LEAST_OF_CELL
    fast, waiting = 0, 0
    for _ in range(6):
        room = lines.room()
        lines.wait(np.repeat(host, room.of_cell[0]))
        lines.visited(np.repeat(host, room.of_cell[0]))  # all that was chosen
        assert room.of_cell[0] >= fast
        fast = int(room.of_cell[0])
    assert fast >= LEAST_OF_CELL * 2**5
    for _ in range(40):  # then 100 a plan
        room = lines.room()
        waiting += int(room.of_cell[0])
        lines.wait(np.repeat(host, room.of_cell[0]))
        visited = min(100, waiting)
        lines.visited(np.repeat(host, visited))
        waiting -= visited
    assert 100 <= waiting + 100 <= 200
    assert lines.room().in_all <= LEAST


def test_a_host_with_more_lists_than_time_has_its_pages_visited_too() -> None:
    rng = np.random.default_rng(5)
    pages, begun = resting(400, rng, hosts=1), NOW - 90 * DAY
    pages = pages._replace(first=rng.random(400) < 0.9, at=np.full(400, begun), tried=np.full(400, begun))
    longest = np.zeros(400)
    for hour in range(24 * 60):
        now = NOW + hour * HOUR
        choice = Choice(now, TERMS, Room(1000, np.full(CELLS, 20)))
        choice.count(pages)
        taken = choice.take(pages) if choice.settle() else np.zeros(400, np.bool_)
        pages = pages._replace(at=np.where(taken, now, pages.at), tried=np.where(taken, now, pages.tried))
        longest = np.maximum(longest, (now - pages.at) * (hour > 240))
    assert longest.max() < 30 * DAY
