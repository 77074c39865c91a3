"""A turn of the loop ends in time, whatever is ready; and all come to their turn."""

import asyncio
import os

import pycurl
import pytest

from fyke.core.clock import VirtualClock
from fyke.fetcher.wire.sockets import READY, TURN_S, WatchedSockets
from fyke.fetcher.wire.transfer import Calls


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
    for _ in range(100):
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
