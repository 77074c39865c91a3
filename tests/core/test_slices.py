"""Laws of work in slices: it comes to its end, and nobody waits for more than a slice of it."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.clock import SystemClock
from fyke.core.pace import Pace
from fyke.core.slices import FIRST_STEPS, SLICE_STEPS, TURN_STEPS, Slicer, Slices, whole

UNIT = 300
WORKS = st.lists(st.lists(st.integers(0, UNIT), max_size=40), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(WORKS)
def test_between_two_turns_of_the_loop_there_is_one_slice_of_work(works):
    taken = [0]  # steps in each turn of the loop
    ended: list[int] = []

    def work(name: int, units: list[int]) -> Slices[int]:
        for steps in units:
            taken[-1] += steps
            yield steps
        return name

    async def run() -> None:
        resumed = asyncio.Event()
        slicer = Slicer(resumed.set, Pace(SystemClock()).share())
        for name, units in enumerate(works):
            slicer.run(work(name, units), ended.append)
        while slicer:
            taken.append(0)
            await asyncio.sleep(0)
        slicer.stop()

    asyncio.run(run())
    assert sorted(ended) == list(range(len(works)))
    assert taken[0] <= len(works) * (FIRST_STEPS + UNIT)
    assert all(steps <= SLICE_STEPS + UNIT for steps in taken[1:])


def test_short_work_does_not_wait_for_long_work_to_end():
    ended: list[str] = []

    def work(name: str, units: int) -> Slices[str]:
        for _ in range(units):
            yield TURN_STEPS
        return name

    async def run() -> None:
        resumed = asyncio.Event()
        slicer = Slicer(resumed.set, Pace(SystemClock()).share())
        for name, units in (("long", 400), ("longer", 800), ("short", 3)):
            slicer.run(work(name, units), ended.append)
        assert not ended and len(slicer) == 3
        await resumed.wait()
        assert ended == ["short"]
        while slicer:
            resumed.clear()
            await resumed.wait()
        slicer.stop()

    asyncio.run(run())
    assert ended == ["short", "long", "longer"]


def test_what_is_short_is_done_at_once_and_stop_lets_go():
    def work(units: int) -> Slices[int]:
        for _ in range(units):
            yield FIRST_STEPS // 2
        return units

    ended: list[int] = []

    async def run() -> None:
        slicer = Slicer(lambda: None, Pace(SystemClock()).share())
        slicer.run(work(1), ended.append)
        assert ended == [1]
        slicer.run(work(100), ended.append)
        slicer.stop()
        assert not slicer

    asyncio.run(run())
    assert ended == [1] and whole(work(5)) == 5
