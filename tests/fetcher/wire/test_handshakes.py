"""The law of room: connections fit by what their certificates were found to take, whatever else is going on."""

import pytest

from fyke.core.config import FetchSection
from fyke.fetcher.wire import handshakes
from fyke.fetcher.wire.handshakes import (
    EACH,
    EACH_BYTES,
    LARGE_BYTES,
    LEAST_BESIDE,
    MOST_TIMES,
    SAMPLES,
    SHARE_BYTES,
    Handshakes,
)

CAME_BYTES = 4000
CONNECTIONS = FetchSection().connections
ALL_BYTES = CONNECTIONS * SHARE_BYTES


class Process:
    """Has memory in use, of which each handshake takes some."""

    def __init__(self, monkeypatch):
        self.bytes = 0
        self.asked = 0
        self.came_bytes = CAME_BYTES
        monkeypatch.setattr(handshakes, "received_bytes", lambda _fd: self.came_bytes)
        self.handshakes = Handshakes(CONNECTIONS, self.measure)

    def measure(self):
        self.asked += 1
        return self.bytes

    def shake(self, taken_bytes, times=1):
        for _ in range(times):
            with self.handshakes.going_on(3):
                self.bytes += taken_bytes


@pytest.fixture
def process(monkeypatch):
    return Process(monkeypatch)


@pytest.mark.parametrize("taken_bytes", [CAME_BYTES, 20_000, 30 * CAME_BYTES])
def test_as_many_fit_as_take_all_there_is(process, taken_bytes):
    process.shake(taken_bytes, 2 * SAMPLES)
    assert process.handshakes.room * (EACH_BYTES + taken_bytes) == pytest.approx(ALL_BYTES, rel=0.01)


def test_a_crawl_of_a_thousand_honest_hosts_keeps_its_connections(process):
    process.shake(6 * CAME_BYTES // 4, 2 * SAMPLES)
    assert process.handshakes.room > 1000


def test_others_that_take_memory_meanwhile_make_it_no_less_than_names_would(process):
    for other_bytes in (-(1 << 30), 1 << 30):
        process.shake(other_bytes, 2 * SAMPLES * EACH)
        assert process.handshakes.room >= int(ALL_BYTES / (EACH_BYTES + MOST_TIMES * CAME_BYTES))
    process.came_bytes = LARGE_BYTES
    process.shake(1 << 30, 2 * SAMPLES * EACH)
    assert process.handshakes.room == CONNECTIONS + LEAST_BESIDE


def test_one_handshake_in_so_many_is_measured_and_no_session_that_is_taken_up(process):
    process.shake(0, SAMPLES)
    assert process.asked == 2 * SAMPLES
    process.shake(0, 10 * EACH)
    assert process.asked == 2 * SAMPLES + 2 * 10
    process.came_bytes = 400
    process.shake(1 << 20, 10 * EACH)
    assert process.asked == 2 * SAMPLES + 2 * 10
