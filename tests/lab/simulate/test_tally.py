"""What is counted stays bounded, and says what it should."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.visits import Visit
from fyke.disk.checkpoint import Checkpoint
from fyke.fetcher.host import Host
from fyke.lab.simulate.calendar import Calendar, PendingRequest
from fyke.lab.simulate.distinct import MOST_KEYS, DistinctSample
from fyke.lab.simulate.tally import MOST_SAMPLES, Sample, Tally, tally_of

HOST, VISIT = Host(1, "h"), Visit("u", 1, 1, 1)


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=50), max_size=8), st.integers(1, 7))
def test_few_distinct_keys_are_counted_exactly(batches, nth):
    sample = DistinctSample()
    for batch in batches:
        keys = np.array(batch, np.uint64)
        sample.add(keys, keys % np.uint64(nth) == 0)
        sample = DistinctSample(json.loads(json.dumps(sample.state())))
    distinct = {key for batch in batches for key in batch}
    assert sample.distinct == len(distinct)
    assert sample.spam_share * max(1, len(distinct)) == pytest.approx(sum(key % nth == 0 for key in distinct))


def test_many_distinct_keys_are_estimated_in_bounded_memory():
    rng = np.random.default_rng(0)
    sample = DistinctSample()
    everything = rng.integers(0, 2**64, 1_000_000, np.uint64)
    for keys in np.split(everything, 100):
        sample.add(keys, keys % np.uint64(10) < 3)
        sample.add(keys, keys % np.uint64(10) < 3)  # met again
    assert len(sample.state()["keys"]) <= MOST_KEYS
    assert sample.distinct == pytest.approx(1_000_000, rel=0.03)
    assert sample.spam_share == pytest.approx(0.3, abs=0.02)


@given(st.lists(st.floats(0, 1000), max_size=50), st.floats(0.01, 10), st.lists(st.floats(0, 50), max_size=20))
def test_a_calendar_gives_each_request_once_and_never_early(ends, slice_s, steps):
    calendar = Calendar(slice_s)
    calendar.note([PendingRequest(at, HOST, VISIT, 0, 1.0) for at in ends])
    now, given_back = 0.0, []
    for step in [*steps, 2000]:
        now += step
        due = [ending.at for ending in calendar.due(now)]
        assert all(at <= now + 1e-6 for at in due)
        given_back += due
        assert len(calendar) == len(ends) - len(given_back)
        assert all(ending.at > now - slice_s for ending in calendar)
    assert sorted(given_back) == sorted(ends)
    assert calendar.next_due() is None


def sample_at(pages):
    return Sample(0.0, pages, *[0] * 13)


def test_a_series_is_thinned_and_outlives_a_restart(tmp_path):
    with Checkpoint(tmp_path) as checkpoint:
        tally = Tally(np.zeros(10, np.uint32), every_pages=1)
        for pages in range(5000):
            tally.totals.pages = pages
            if tally.sample_due:
                tally.add(sample_at(pages))
        tally.fetched(np.array([3, 3, 9]), np.array([False, False, True]))
        steps = np.diff([sample.pages for sample in tally.samples])
        assert len(tally.samples) < MOST_SAMPLES
        assert set(steps.tolist()) <= {tally.every_pages, tally.every_pages // 2}
        saved = json.loads(json.dumps(tally.save(checkpoint.store)))
        again = tally_of(10, checkpoint.store, saved)
    assert again.totals == tally.totals
    assert again.samples == tally.samples
    assert again.pages_of.tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 0, 1]
