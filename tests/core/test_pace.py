"""Laws of the share of time: what is heavy takes no more of it while light work is going on, and all of it else."""

import threading
import time
from contextlib import suppress
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from busy import note_busy
from fyke.core.clock import SystemClock, VirtualClock
from fyke.core.pace import LIGHT_S, MANY, PARTS, GivenUp, Pace

PIECES = st.lists(st.tuples(st.floats(0, 0.3), st.floats(0, 0.3)), min_size=1, max_size=20)


@given(PIECES)
def test_heavy_work_takes_one_part_of_the_time_while_light_work_is_going_on(pieces):
    """Each piece is expected to take one time, and takes another. All that was taken is its part of the time by when
    the next piece begins."""
    clock = VirtualClock()
    pace = Pace(clock)
    share = pace.share()
    began_at, taken_s = clock.now(), 0.0
    for expected_s, takes_s in pieces:
        note_busy(pace)
        while wait_s := share.wait_s(expected_s):
            assert 0 < wait_s <= LIGHT_S
            clock.advance(wait_s)
            note_busy(pace)
        assert taken_s * PARTS <= clock.now() - began_at + 1e-3
        with share.taken(expected_s):
            clock.advance(takes_s)
        assert pace.busy  # light work may have been held up
        taken_s += takes_s


@given(st.lists(st.floats(0, 10), max_size=5))
def test_where_nothing_light_is_going_on_nothing_is_waited_for(pieces):
    clock = VirtualClock()
    share = Pace(clock).share()
    for takes_s in pieces:
        assert share.wait_s(takes_s) == 0
        with share.taken():
            clock.advance(takes_s)


@given(st.lists(st.floats(0, 0.02), max_size=50), st.floats(0.001, 0.02))
def test_what_was_taken_while_nothing_light_was_going_on_is_owed_by_nobody(pieces, last_s):
    """Else who was alone for a minute would wait for most of an hour once others come."""
    clock = VirtualClock()
    pace = Pace(clock)
    share = pace.share()
    for took_s in pieces:
        clock.advance(took_s)
        share.count_unexpected(took_s)
    note_busy(pace)
    share.count_unexpected(last_s)
    begun_at = clock.now()
    while wait_s := share.wait_s():
        clock.advance(wait_s)
        note_busy(pace)
    before_s = pieces[-1] if pieces else 0.0
    assert clock.now() - begun_at <= (before_s + last_s) * PARTS


@given(st.floats(1e-5, 0.02), st.floats(0, LIGHT_S))
def test_heavy_work_does_not_take_itself_for_light_work(piece_s, since_s):
    """When no more light work ends, that is soon seen, however short the pieces; no rest is taken from then on."""
    clock = VirtualClock()
    pace = Pace(clock)
    share = pace.share()
    note_busy(pace)
    clock.advance(since_s)
    waited_s = 0.0
    for _ in range(200):
        while wait_s := share.wait_s():
            clock.advance(wait_s)
            waited_s += wait_s
        with share.taken():
            clock.advance(piece_s)
    assert waited_s <= 2 * LIGHT_S


@given(st.integers(1, 12), st.floats(0.001, 1.0))
def test_light_work_is_going_on_where_much_of_it_ends(pieces, every_s):
    clock = VirtualClock()
    pace = Pace(clock)
    for _ in range(pieces):
        clock.advance(every_s)
        pace.note_light()
    assume(abs((MANY - 1) * every_s - LIGHT_S) > 1e-5)
    assert pace.busy == (pieces >= MANY and (MANY - 1) * every_s < LIGHT_S)
    clock.advance(LIGHT_S)
    assert not pace.busy


def test_who_works_beside_the_loop_takes_less_than_it_while_it_has_something_to_do():
    """The loop gives up the interpreter at every system call, and nothing light ends meanwhile: it would hardly get on
    if who works beside it took all that it gives up."""
    pace = Pace(SystemClock())
    share = pace.share()
    took_s = [0.0]

    def work():
        begun_s = time.thread_time()
        with share.taken_beside(), suppress(GivenUp):
            while True:
                sum(range(2_000))
                share.breathe()
        took_s[0] = time.thread_time() - begun_s

    thread = threading.Thread(target=work)
    begun_s = time.thread_time()
    thread.start()
    while time.thread_time() - begun_s < 0.5:
        Path("/").stat()
    share.given_up = share.hurried = True
    thread.join()
    assert 0 < took_s[0] < 0.25
