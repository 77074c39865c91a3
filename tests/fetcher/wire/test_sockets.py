"""A turn of the loop ends in time, whatever is ready; and all come to their turn."""

import asyncio
import os

import pycurl
import pytest

from fyke.core.clock import VirtualClock
from fyke.fetcher.wire.sockets import HANDSHAKES, READY, TURN_S, WatchedSockets
from fyke.fetcher.wire.transfer import Calls, Slot


async def test_few_shake_hands_in_a_turn_and_after_all_others():
    """Whatever is ready, and in whatever order."""
    calls, turns = Calls(), list[list[int]]()
    pipes = [os.pipe() for _ in range(4 * HANDSHAKES)]
    shaking = {ours for ours, _ in pipes[::2]}
    calls.greeted.update((ours, Slot([], 1, None, calls)) for ours in shaking)

    def go_on(fd, _selected):
        turns[-1].append(fd)
        if fd in shaking:
            os.read(fd, 1)  # it goes on when the server said more

    sockets = WatchedSockets(asyncio.get_running_loop(), VirtualClock(), calls, go_on, lambda: None)
    for ours, theirs in pipes:
        os.write(theirs, b"x")
        sockets.watch(pycurl.POLL_IN, ours, None, None)
    for _ in range(2):
        turns.append([])
        sockets._ready()
        assert turns[-1][-HANDSHAKES:] == [fd for fd in turns[-1] if fd in shaking]
        assert len(turns[-1]) == 3 * HANDSHAKES
    assert {fd for turn in turns for fd in turn} == {ours for ours, _ in pipes}
    gone = pipes[0][0]
    sockets._left[gone] = 1
    sockets.watch(pycurl.POLL_REMOVE, gone, None, None)
    turns.append([])
    sockets._ready()
    assert gone not in turns[-1]
    sockets.stop()
    for pair in pipes:
        for end in pair:
            os.close(end)
    sockets.close()


async def test_handshakes_go_on_however_much_others_have_to_say():
    calls, clock, turns = Calls(), VirtualClock(), list[list[int]]()
    pipes = [os.pipe() for _ in range(READY)]
    shaking = [ours for ours, _ in pipes[: 2 * HANDSHAKES]]
    calls.greeted.update((ours, Slot([], 1, None, calls)) for ours in shaking)

    def go_on(fd, _selected):
        clock.advance(TURN_S / 3)
        turns[-1].append(fd)

    sockets = WatchedSockets(asyncio.get_running_loop(), clock, calls, go_on, lambda: None)
    for ours, theirs in pipes:
        os.write(theirs, b"x")  # and nobody reads it: they stay ready
        sockets.watch(pycurl.POLL_IN, ours, None, None)
    for _ in range(2 * HANDSHAKES):
        turns.append([])
        began = clock.now()
        sockets._ready()
        assert clock.now() - began <= TURN_S + 2 * TURN_S / 3 + 1e-6
    came = [fd for turn in turns for fd in turn]
    assert {*shaking} <= {*came} and {*came} - {*shaking}
    sockets.stop()
    for pair in pipes:
        for end in pair:
            os.close(end)
    sockets.close()


@pytest.mark.parametrize("each_s", [0.0, TURN_S / 3, 2 * TURN_S])
async def test_a_turn_ends_once_it_took_long_and_nobody_is_left_out(each_s):
    clock = VirtualClock()
    turns: list[list[int]] = []
    pipes = [os.pipe() for _ in range(3 * READY)]
    begins = clock.now()

    def go_on(fd, _selected):
        clock.advance(each_s)
        turns[-1].append(fd)

    sockets = WatchedSockets(asyncio.get_running_loop(), clock, Calls(), go_on, lambda: None)
    ready = sockets._ready

    for ours, theirs in pipes:
        os.write(theirs, b"x")  # and nobody reads it: they stay ready
        sockets.watch(pycurl.POLL_IN, ours, None, None)
    for _ in range(6 * READY):
        turns.append([])
        begins = clock.now()
        ready()
        assert clock.now() - begins <= TURN_S + each_s + 1e-6
        assert len(turns[-1]) <= READY
    counts = [sum(ours in turn for turn in turns) for ours, _ in pipes]
    assert min(counts) > 0 and max(counts) - min(counts) <= 1
    sockets.stop()
    for ours, theirs in pipes:
        os.close(ours)
        os.close(theirs)
    sockets.close()
