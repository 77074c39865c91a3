"""The laws of slow hosts: who has no end in sight goes slowly beside others, alone as fast as ever; all comes out."""

from collections import Counter
from collections.abc import Callable
from math import ceil, floor
from pathlib import Path

import numpy as np
import pytest

from frontier.shard import at, domain_of, pages, rows
from frontier.test_window import end, line, refilled
from fyke.core.batches import u64
from fyke.core.shapes import shapes, skeleton
from fyke.frontier.slow import LEAST_REST_S, MOST, RESTS, Slow
from fyke.frontier.traps.probes import ASK_AFTER, LATELY, PACE, Probes
from fyke.frontier.window import Window

SHAPES = shapes(skeleton("http://www.d1.example/1"))
REST_S = 1.0
SMALL, SMALL_PAGES = 40, 60
LARGE, LARGE_PAGES = range(SMALL, SMALL + 4), 200


def crawled(directory: Path, is_endless: Callable[[int], bool]) -> list[Counter[int]]:
    """How many pages of each domain were fetched in each rest, by a fetcher that makes one visit to each host in it."""
    queues = line(directory)
    sizes = {domain: LARGE_PAGES if domain in LARGE else SMALL_PAGES for domain in range(LARGE.stop)}
    queues.stage.put(rows([(domain, number) for domain, size in sizes.items() for number in range(size)]))
    window = Window(10_000, 32, REST_S)
    refill = refilled(queues, window)
    out: list[tuple[int, int]] = []
    seen: list[Counter[int]] = []
    while len(seen) < sum(sizes.values()) and (out or len(queues.stage)):
        out += pages(refill.visits(len(seen) * REST_S))
        done = list({domain: (domain, number) for domain, number in reversed(out)}.values())
        seen.append(Counter(domain for domain, _ in done))
        located = [at(*page) for page in done]
        window.ended(*(np.array([getattr(one, name) for one in located], np.uint64) for name in ("key", "host")))
        hosts = np.array([one.host for one in located], np.uint64)
        endless = np.array([is_endless(domain) for domain, _ in done], np.bool_)
        window.slow.ended(hosts, [REST_S] * len(done), endless)
        slowed = window.slow.take_new()
        back = window.take_out([at(*page).key for page in out if page not in done and at(*page).host in slowed])
        queues.stage.put(back)
        out = [page for page in out if page not in done and page not in pages(back)]
    assert sum(seen, Counter()) == Counter(sizes), "everything once"
    queues.close()
    return seen


def test_who_has_no_end_in_sight_goes_slowly_until_others_are_done(tmp_path: Path) -> None:
    seen = crawled(tmp_path, LARGE.__contains__)
    small = [sum(fetched[domain] for domain in range(SMALL)) for fetched in seen]
    beside = small.index(0)
    assert beside <= SMALL_PAGES + 1, "others lose nothing by it"
    for domain in LARGE:
        assert sum(fetched[domain] for fetched in seen[:beside]) <= SMALL_PAGES // RESTS + 4
        alone = sum(fetched[domain] for fetched in seen[beside : beside + 50])
        assert alone >= 50 - 2 * RESTS, "as fast as ever once it is alone"


@pytest.mark.parametrize("endless", ["all", "none", "every other"])
def test_nobody_is_slow_where_most_are_alike(tmp_path: Path, endless: str) -> None:
    seen = crawled(
        tmp_path, {"all": lambda _: True, "none": lambda _: False, "every other": lambda of: of % 2 == 0}[endless]
    )
    assert len(seen) <= LARGE_PAGES + 2


def test_who_goes_on_growing_has_no_end_in_sight(tmp_path: Path) -> None:
    """Neither a site whose first pages name all others, however many, nor a chain of pages that lead to each other."""
    queues = line(tmp_path)
    probes = Probes(queues.checkpoint.store)
    sites = (1, 100, 0), (2, 1000, 0), (3, 0, floor(PACE)), (4, 0, ceil(PACE)), (5, 500, 2 * int(PACE))
    for domain, first, later in sites:
        one, of = at(domain, 0), domain_of(domain)
        host, owner = np.array([one.host], np.uint64), np.array([of], np.uint64)
        probes.note_fresh(one.url.decode(), SHAPES, one.host, of)
        probes.note_found(host.repeat(first), owner.repeat(first))
        told = []
        for _ in range(100):
            told.append(bool(probes.note_visited(host, owner)[0]))
            probes.note_found(host.repeat(later), owner.repeat(later))
        assert not any(told[: ASK_AFTER - 1])
        assert all(told[ASK_AFTER:]) if later > PACE else not any(told[5 * LATELY :])
    queues.close()


def beside_others(slow: Slow, now: float) -> None:
    """Many other hosts, which have an end, were visited by `now`."""
    slow.at(now, alone=False)
    others = u64(rows([(domain, 0) for domain in range(1, 200)]), "host")
    slow.ended(others, [REST_S] * len(others), np.zeros(len(others), np.bool_))


def kept_out(slow: Slow, host: int) -> bool:
    return host in slow and not slow.is_due(host)


def test_visits_that_began_before_a_host_was_slow_stand_for_one() -> None:
    """However many end together: otherwise a few would look like most visits, and nobody would be slow."""
    slow, endless = Slow(), at(0, 0).host
    beside_others(slow, 100.0)
    for _ in range(32):
        slow.ended(np.array([endless], np.uint64), [REST_S], np.ones(1, np.bool_))
        assert kept_out(slow, endless)


@pytest.mark.parametrize("rest_s", [0.0, 0.001])
def test_a_host_that_hardly_rests_goes_slowly_too(rest_s: float) -> None:
    slow = Slow()
    host = np.array([at(0, 0).host], np.uint64)
    beside_others(slow, 100.0)
    slow.ended(host, [rest_s], np.ones(1, np.bool_))
    assert kept_out(slow, int(host[0]))
    slow.at(100.0 + RESTS * LEAST_REST_S, alone=False)
    assert not kept_out(slow, int(host[0]))


def test_a_window_that_is_empty_for_a_moment_makes_no_host_due(tmp_path: Path) -> None:
    """While pages of other hosts wait on disk."""
    queues = line(tmp_path)
    window = Window(10_000, 4, REST_S)
    refill = refilled(queues, window)
    queues.stage.put(rows([(domain, number) for domain in (1, 2) for number in range(12)]))
    out = pages(refill.visits(0.0))
    assert Counter(domain for domain, _ in out) == {1: 4, 2: 4}
    slow = at(1, 0)
    beside_others(window.slow, 0.0)
    window.slow.ended(np.array([slow.host], np.uint64), [100.0], np.ones(1, np.bool_))
    for turn in range(1, 4):
        end(window, out)
        assert not len(window)
        out = pages(refill.visits(float(turn)))
        assert {domain for domain, _ in out} <= ({2} if turn < 3 else {1}), "the slow host goes once the other is done"
        assert out
    queues.close()


def test_what_is_remembered_is_bounded() -> None:
    slow = Slow()
    hosts = u64(rows([(domain, 0) for domain in range(100)]), "host")
    slow.ended(hosts.repeat(64), [1.0] * 6400, np.zeros(6400, np.bool_))
    for turn in range(3 * MOST // 20):
        slow.at(100.0 * turn, alone=False)
        slow.ended(np.arange(turn * 100, turn * 100 + 100, dtype=np.uint64), [1.0] * 100, np.arange(100) < 20)
        assert len(slow._due) <= MOST + 100
