"""A turn of the loop ends in time, whatever is ready; and all come to their turn."""

import asyncio
import os
from contextlib import contextmanager
from itertools import chain

import pycurl
import pytest

from fyke.core.clock import VirtualClock
from fyke.fetcher.wire.sockets import HANDSHAKES, READY, TURN_S, WatchedSockets
from fyke.fetcher.wire.transfer import Calls, Slot


@contextmanager
def watched(calls, clock, pipes, go_on):
    """So many pipes that have something to read, which nobody does unless `go_on` does: the ends of ours."""
    sockets = WatchedSockets(asyncio.get_running_loop(), clock, calls, go_on, lambda: None)
    ends = [os.pipe() for _ in range(pipes)]
    for ours, theirs in ends:
        os.write(theirs, b"x")
        sockets.watch(pycurl.POLL_IN, ours, None, None)
    yield sockets, [ours for ours, _ in ends]
    sockets.stop()
    for end in chain(*ends):
        os.close(end)
    sockets.close()


async def test_few_shake_hands_in_a_turn_and_after_all_others():
    """Whatever is ready, and in whatever order."""
    calls, turns = Calls(), list[list[int]]()

    def go_on(fd, _selected):
        turns[-1].append(fd)
        if fd in shaking:
            os.read(fd, 1)  # it goes on when the server said more

    with watched(calls, VirtualClock(), 4 * HANDSHAKES, go_on) as (sockets, ours):
        shaking = {*ours[::2]}
        calls.greeted.update((fd, Slot([], 1, None, calls)) for fd in shaking)
        for _ in range(2):
            turns.append([])
            sockets._ready()
            assert turns[-1][-HANDSHAKES:] == [fd for fd in turns[-1] if fd in shaking]
            assert len(turns[-1]) == 3 * HANDSHAKES
        assert {fd for turn in turns for fd in turn} == {*ours}
        sockets._left[ours[0]] = 1
        sockets.watch(pycurl.POLL_REMOVE, ours[0], None, None)
        turns.append([])
        sockets._ready()
        assert ours[0] not in turns[-1]


async def test_handshakes_go_on_however_much_others_have_to_say():
    calls, clock, turns = Calls(), VirtualClock(), list[list[int]]()

    def go_on(fd, _selected):
        clock.advance(TURN_S / 3)
        turns[-1].append(fd)

    with watched(calls, clock, READY, go_on) as (sockets, ours):
        shaking = ours[: 2 * HANDSHAKES]
        calls.greeted.update((fd, Slot([], 1, None, calls)) for fd in shaking)
        for _ in range(2 * HANDSHAKES):
            turns.append([])
            began = clock.now()
            sockets._ready()
            assert clock.now() - began <= TURN_S + 2 * TURN_S / 3 + 1e-6
    came = [fd for turn in turns for fd in turn]
    assert {*shaking} <= {*came} and {*came} - {*shaking}


@pytest.mark.parametrize("each_s", [0.0, TURN_S / 3, 2 * TURN_S])
async def test_a_turn_ends_once_it_took_long_and_nobody_is_left_out(each_s):
    clock = VirtualClock()
    turns: list[list[int]] = []

    def go_on(fd, _selected):
        clock.advance(each_s)
        turns[-1].append(fd)

    with watched(Calls(), clock, 3 * READY, go_on) as (sockets, ours):
        for _ in range(6 * READY):
            turns.append([])
            begins = clock.now()
            sockets._ready()
            assert clock.now() - begins <= TURN_S + each_s + 1e-6
            assert len(turns[-1]) <= READY
    counts = [sum(fd in turn for turn in turns) for fd in ours]
    assert min(counts) > 0 and max(counts) - min(counts) <= 1
