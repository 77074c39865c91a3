"""The law of what sleeps: it comes out once, not before its time, and little after it, whatever servers ask for."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontier.shard import Shard, at, pages, rows
from fyke.core.batches import U64, u64
from fyke.core.messages import DELAYED
from fyke.frontier.asleep import LEVELS, MOST_DELAYED, STEP_S, WAITING, Asleep
from fyke.frontier.blocked import Blocked
from fyke.frontier.filters import Filters
from fyke.frontier.left_out import LeftOut
from fyke.frontier.order import BreadthFirst
from fyke.frontier.quota import Quota
from fyke.frontier.ready import Ready
from fyke.frontier.traps.waiting import Traps
from fyke.frontier.window import Refill, Window

Page = tuple[int, int]


def waiting(until: Mapping[Page, float]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*rows(until).columns, pa.array(until.values(), pa.float64())], schema=WAITING)


def bed(directory: Path) -> Shard[Asleep, dict[Page, float]]:
    return Shard(directory, Asleep, {})


STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(st.floats(0.1, 200_000.0), min_size=1, max_size=20)),
    st.tuples(st.just("pass"), st.floats(0.5, 50_000.0)),
    st.tuples(st.just("save"), st.none()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("rouse"), st.booleans()),  # and whether the process dies before any came out
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=25))
def test_each_wakes_once_at_its_time(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]) -> None:
    crawl = bed(tmp_path_factory.mktemp("asleep"))
    now, number = 1e9, 0

    def wake(roused: frozenset[Page]) -> None:
        woken = Counter(page for batch in crawl.stage.woken(now) for page in pages(batch))
        assert set(woken.values()) <= {1}
        for page in woken:
            assert crawl.model.pop(page) <= now or page in roused, "it was woken too early"
        assert not roused & crawl.model.keys()
        assert all(until > now - STEP_S for until in crawl.model.values()), "it slept for too long"
        assert len(crawl.stage) == len(crawl.model)
        assert crawl.stage.wakes_at <= min(crawl.model.values(), default=float("inf"))

    safe: frozenset[Page] = frozenset()  # those roused in the last checkpoint
    for step, value in steps:
        roused: frozenset[Page] = frozenset()
        match step:
            case "put":
                fresh = {(number + n, n): now + wait for n, wait in enumerate(value)}
                number += len(fresh)
                crawl.stage.put(waiting(fresh), now)
                crawl.model |= fresh
            case "pass":
                now += value
            case "save":
                crawl.save()
                safe = frozenset()
            case "restart":
                crawl.restart()
                roused = safe
            case "rouse":
                crawl.stage.rouse()
                roused = frozenset(crawl.model)
                if value:
                    crawl.save()
                    safe = roused
                    crawl.restart()
        wake(roused)
    crawl.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.integers(1, 9), st.floats(0.1, 90_000.0)),
    st.lists(st.integers(0, 9), min_size=1, max_size=20),
    st.floats(0.0, 100_000.0),
    st.booleans(),
)
def test_a_redirect_that_asks_to_wait_delays_its_target_alone(
    tmp_path_factory: pytest.TempPathFactory, waits: dict[int, float], via: list[int], passed_s: float, restarts: bool
) -> None:
    """Until its time, also if all are roused; a URL first named by another page waits for no redirect."""
    crawl = bed(tmp_path_factory.mktemp("delayed"))
    delayed = [{"via": of, "domain": 0, "until": 1e9 + wait_s} for of, wait_s in waits.items()]
    crawl.stage.delay(pa.RecordBatch.from_pylist(delayed, DELAYED), 1e9)
    if restarts:
        crawl.save()
        crawl.restart()
    found, now = {(n, n): waits.get(of, 0.0) for n, of in enumerate(via)}, 1e9 + passed_s
    free = {page for page, wait_s in found.items() if 1e9 + wait_s <= now}
    assert set(pages(crawl.stage.divert(rows(found, via=via), now))) == free
    crawl.stage.rouse()
    roused = list(crawl.stage.woken(now))
    assert {page for batch in roused for page in pages(batch)} == found.keys() - free
    assert not any(crawl.stage.divert(batch, now).num_rows for batch in roused)
    crawl.close()


def test_of_redirects_that_ask_to_wait_the_oldest_are_forgotten(tmp_path: Path) -> None:
    crawl = bed(tmp_path)
    redirects = [{"via": via, "domain": 0, "until": 2e9} for via in range(1, MOST_DELAYED + 3)]
    for some in (redirects[:9], redirects[9:]):
        crawl.stage.delay(pa.RecordBatch.from_pylist(some, DELAYED), 1e9)
    found = [(via, via) for via in range(1, MOST_DELAYED + 3)]
    assert pages(crawl.stage.divert(rows(found, via=[via for via, _ in found]), 1e9)) == found[:2]
    crawl.close()


def test_a_row_is_moved_as_often_as_there_are_levels_below_it(tmp_path: Path) -> None:
    """Ten thousand hosts wake in their own seconds over ten days: each is read a few times, not once a second."""
    crawl = bed(tmp_path)
    hosts = 10_000
    until = {(host, 0): 1e9 + 60 + 86.4 * host for host in range(hosts)}
    crawl.stage.put(waiting(until), 1e9)
    now, woken = 1e9, 0
    while len(crawl.stage):
        now += 40.0
        woken += sum(batch.num_rows for batch in crawl.stage.woken(now))
    read = sum(level.queue.statistics().got_rows for level in crawl.stage._levels)
    assert woken == hosts
    assert read < 4 * LEVELS * hosts
    crawl.close()


def window_of(directory: Path, normal: int, sleeping: int, each: int) -> tuple[Shard[Ready, None], Asleep, list[Page]]:
    line = Shard(directory, lambda store, state: Ready(store, BreadthFirst(), state), None)
    asleep = Asleep(line.checkpoint.store)
    line.stage.put(rows([(host, n) for n in range(each) for host in range(normal, normal + sleeping)]))
    pages_of_normal = [(host, n) for n in range(50) for host in range(normal)]
    line.stage.put(rows(pages_of_normal))
    return line, asleep, pages_of_normal


def test_hosts_that_sleep_leave_the_window_to_the_others(tmp_path: Path) -> None:
    """Hosts whose visits would fill the window three times ask for an hour: the others' pages come out at once."""
    line, asleep, normal = window_of(tmp_path, normal=20, sleeping=60, each=100)
    window = Window(visits=2000, host_visits=50)
    store = line.checkpoint.store
    refill = Refill(
        line.stage,
        window,
        LeftOut(store, Filters([])),
        Blocked(store),
        asleep,
        Traps(store, 0),
        Quota(store, (), 1 << 20),
    )
    sleepers = {at(host, 0).host: 3600.0 for host in range(20, 80)}
    left = set(normal)
    turns = 0
    while left:
        turns += 1
        given = refill.visits(float(turns))
        hosts: U64 = u64(given, "host")
        window.ended(u64(given, "key"), hosts)
        sleep = np.isin(hosts, list(sleepers))
        asleep.sleep({host: sleepers[host] for host in hosts[sleep].tolist()}, float(turns))
        back = given.filter(pa.array(sleep))
        asleep.put(waiting(dict.fromkeys(pages(back), 3600.0)), float(turns))
        left -= set(pages(given))
        assert turns < 30, f"{len(left)} pages of hosts that do not sleep still wait"
    assert len(asleep) + line.stage.spilled + line.stage.waiting == 6000
    assert not any(asleep.woken(3599.0))
    line.close()


def test_a_slow_host_has_as_many_visits_out_as_it_comes_to_soon() -> None:
    window = Window(visits=1000, host_visits=100, rest_s=1.0)
    assert window.share(1) == 60
    window.rests([1, 2, 3, 4], [30.0, 0.0, 59.0, 7200.0])
    assert [window.share(host) for host in (1, 2, 3, 4)] == [2, 100, 1, 1]
    window.rests([1], [1.0])
    assert window.share(1) == 60
