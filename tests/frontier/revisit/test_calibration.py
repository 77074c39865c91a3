"""What is told of freshness is near the truth, also of pages that change as no belief has it."""

import numpy as np
import pytest
from freshness import NUTCH, Crawler, World
from hypothesis import given
from hypothesis import strategies as st

from fyke.frontier.revisit.calibration import BEFORE, Calibration
from fyke.frontier.revisit.choice import CHANCE
from fyke.frontier.revisit.signals import fresh_chance, no_trust

STEPS, STEP_TIME, PAGES = 1200, 0.02, 1500


def bursting(share: float, cycle: float, seed: int) -> World:
    """Pages that change only for a `share` of the time, once each `cycle` changes; rates even over four decades."""
    rng = np.random.default_rng(seed)
    rates = 10 ** rng.uniform(-3, 1, PAGES)
    on = rng.random(PAGES) < share
    changes = np.empty((STEPS, PAGES), np.uint16)
    for step in range(STEPS):
        stay = np.where(on, share, 1 - share) * cycle / rates
        on ^= (rng.random(PAGES) < -np.expm1(-STEP_TIME / stay)) & (share < 1)
        changes[step] = rng.poisson(rates * STEP_TIME * np.where(on, 1 / share, 0))
    return World(rates, np.ones(PAGES), rng.integers(0, PAGES // 50, PAGES), changes, STEP_TIME, PAGES)


def told_and_true(where: World) -> tuple[float, float, float]:
    """Freshness as is believed, as is told, and as it is, of a crawl that visits what is due."""
    crawler, calibration = Crawler(where), Calibration()
    crawler.ages[:] = 0
    missed, found = np.zeros(PAGES, np.int64), []
    for step in range(STEPS):
        missed += where.changes[step]
        crawler.ages += STEP_TIME
        believed = fresh_chance(crawler.belief, no_trust(PAGES), np.zeros(PAGES), crawler.ages)
        if step > STEPS // 3 and step % 20 == 0:
            found.append((believed.mean(), calibration.fresh(believed).mean(), np.mean(missed == 0)))
        due = np.flatnonzero(believed < 1 - CHANCE)
        calibration.note(believed[due], missed[due] > 0, crawler.ages[due])
        crawler.visit(due, missed[due] > 0, NUTCH)
        missed[due] = 0
    return tuple(np.mean(found, 0).tolist())


@pytest.mark.parametrize(("share", "cycle"), [(1.0, 1.0), (0.1, 1.0), (0.1, 10.0), (0.03, 30.0)])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_told_is_near_the_truth(share: float, cycle: float, seed: int) -> None:
    believed, told, true = told_and_true(bursting(share, cycle, seed))
    assert abs(told - true) < 0.02
    assert abs(told - true) < abs(believed - true) + 0.01


@given(believed=st.floats(0.01, 1), changes=st.lists(st.booleans(), max_size=300))
def test_no_copy_is_told_to_be_fresher_than_is_believed(believed: float, changes: list[bool]) -> None:
    calibration, chance = Calibration(), np.full(len(changes), believed)
    calibration.note(chance, np.array(changes, np.bool_), np.ones(len(changes)))
    assert 1 <= calibration.factor <= 100 + BEFORE
    assert 0 <= calibration.fresh(np.array([believed]))[0] <= believed
    assert Calibration(calibration.state()).factor == calibration.factor
