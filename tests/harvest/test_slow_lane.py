"""Work beside the loop comes in order, is bounded, and takes its share of the time."""

import gc
import threading
import weakref
from functools import partial

import pytest

from busy import note_busy
from fyke.core.clock import VirtualClock
from fyke.core.pace import LIGHT_S, PARTS, PIECE_S, Pace, breathe
from fyke.harvest.slow_lane import BYTE_S, SlowLane
from harvest.reaping import PACE, settle


def test_while_light_work_is_going_on_large_pages_are_read_one_by_one() -> None:
    """Each once so much time has passed that what is expected of it is its share, by what is read and not by what may
    be held; in a hurry, and when there is none, all at once."""
    clock = VirtualClock()
    pace = Pace(clock)
    lane: SlowLane[int] = SlowLane(lambda: None, pace)
    for number in range(6):
        lane.put(partial(int, number), 2_000_000, 1_000_000)
    for begun in (0, 1, 2):
        note_busy(pace)
        lane.go_on()
        settle(lane)
        assert sum(work.result.done() for work in lane._untaken) == begun
        clock.advance(1_000_000 * BYTE_S * PARTS)
    note_busy(pace)
    lane.go_on(hurry=True)
    settle(lane)
    assert lane.take() == list(range(6))
    lane.close()


def test_what_waits_is_not_begun_once_light_work_goes_on_again() -> None:
    """A moment without light work, since the loop was held up maybe, begins one piece and not all that wait."""
    clock = VirtualClock()
    pace = Pace(clock)
    lane: SlowLane[None] = SlowLane(lambda: None, pace)
    for _ in range(6):
        lane.put(lambda: note_busy(pace), 1)
    lane.go_on()
    settle(lane)
    assert len(lane.take()) == 1
    clock.advance(LIGHT_S)
    lane.go_on(hurry=True)
    settle(lane)
    assert len(lane.take()) == 5
    lane.close()


def test_long_work_takes_its_share_piece_by_piece() -> None:
    """Among its pieces it waits as long as others do before they begin; in a hurry it waits no more."""
    clock = VirtualClock()
    pace = Pace(clock)
    lane: SlowLane[None] = SlowLane(lambda: None, pace)
    breaths, goes_on = threading.Semaphore(0), threading.Semaphore(0)

    def long() -> None:
        for _ in range(4):
            assert goes_on.acquire(timeout=60)
            clock.advance(2 * PIECE_S)
            note_busy(pace)
            breathe()
            breaths.release()

    lane.put(long, 1)
    lane.go_on()
    for _ in range(3):
        goes_on.release()
        assert not breaths.acquire(timeout=0.3), "it did not wait"
        clock.advance(2 * PIECE_S * PARTS)
        assert breaths.acquire(timeout=60)
    goes_on.release()
    lane.go_on(hurry=True)
    assert breaths.acquire(timeout=60)
    settle(lane)
    assert len(lane.take()) == 1
    lane.close()


def test_who_closes_does_not_wait_for_long_work() -> None:
    """It ends where it would have made room for others; nobody takes what it made so far."""
    lane: SlowLane[None] = SlowLane(lambda: None, PACE)
    begun, steps = threading.Event(), []

    def endless() -> None:
        while True:
            begun.set()
            steps.append(1)
            breathe()

    lane.put(endless, 1)
    lane.go_on()
    assert begun.wait(timeout=60)
    lane.close()
    assert steps


def test_no_more_is_made_than_may_wait_to_be_taken() -> None:
    """However little of it there was before: results may be larger than what they are made of."""
    made: list[int] = []
    lane = SlowLane(lambda: None, PACE, most_bytes=100)
    for number in range(5):
        lane.put(partial(made.append, number), 60)
    for most in (2, 4, 5):
        lane.go_on()
        settle(lane)
        assert made == list(range(most))
        lane.take()
    lane.close()


def test_what_waits_is_bounded() -> None:
    """While it is full, what is done first is taken first; what was not taken counts, done or not."""
    lane: SlowLane[int] = SlowLane(lambda: None, PACE, most_bytes=10)
    lane.put(lambda: 1, 6)
    assert lane.has_room(4) and not lane.has_room(5)
    lane.put(lambda: 2, 4)
    taken: list[int] = []
    while not lane.has_room(11):  # more than there ever is: alone
        assert not lane.has_room(1 if len(taken) == 0 else 11)
        lane.go_on()
        settle(lane)
        taken += lane.take(1)
    taken += lane.take()
    assert taken == [1, 2]
    lane.close()


def test_a_fault_of_ours_is_not_hidden() -> None:
    lane: SlowLane[None] = SlowLane(lambda: None, PACE)

    def fail() -> None:
        raise ZeroDivisionError

    lane.put(fail, 1)
    lane.go_on()
    settle(lane)
    with pytest.raises(ZeroDivisionError):
        lane.take()
    lane.close()


def test_each_piece_of_work_has_a_thread_that_ends_with_it() -> None:
    """glibc gives nothing back of a heap in which it keeps blocks for a thread."""
    done = threading.Semaphore(0)
    lane: SlowLane[threading.Thread] = SlowLane(done.release, PACE)
    for _ in range(3):
        lane.put(threading.current_thread, 1)
    lane.go_on()
    assert all(done.acquire(timeout=60) for _ in range(3))
    threads = lane.take()
    lane.close()
    assert len(set(threads)) == 3
    assert not any(thread.is_alive() for thread in threads)


def test_nothing_is_kept_of_work_that_was_given_up() -> None:
    begun = threading.Event()
    lane: SlowLane[None] = SlowLane(lambda: None, PACE)

    class Page:
        pass

    def read(page: Page) -> None:
        begun.set()
        while page:
            breathe()

    page = Page()
    lane.put(partial(read, page), 1)
    lane.go_on()
    assert begun.wait(timeout=60)
    kept = weakref.ref(page)
    del page
    gc.disable()
    try:
        lane.close()
        assert kept() is None
    finally:
        gc.enable()
