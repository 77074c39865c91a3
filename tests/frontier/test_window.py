"""The laws of the window: no host has more than its share out, all comes out, and what is out is known."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontier.shard import Shard, at, pages, rows
from fyke.core.batches import EMPTY, texts, u64, url_batch
from fyke.core.urls import locate
from fyke.frontier.asleep import Asleep
from fyke.frontier.blocked import Blocked
from fyke.frontier.filters import Filters
from fyke.frontier.left_out import LeftOut
from fyke.frontier.order import BreadthFirst
from fyke.frontier.quota import Quota
from fyke.frontier.ready import Ready
from fyke.frontier.traps.waiting import LOOK_BYTES, LOOK_ROWS, Traps, look_bytes
from fyke.frontier.window import REFILL_ROWS, Refill, Window

SHARE = 8


Line = Shard[Ready, None]  # ready queues on a directory of their own


def line(directory: Path) -> Line:
    return Line(directory, lambda store, state: Ready(store, BreadthFirst(), state), None)


def end(window: Window, done: list[tuple[int, int]]) -> None:
    located = [at(*page) for page in done]
    keys = np.array([one.key for one in located], np.uint64)
    window.ended(keys, np.array([one.host for one in located], np.uint64))


def refilled(queues: Line, window: Window) -> Refill:
    """`window`, filled out of the queues of a line; nothing else waits anywhere."""
    store = queues.checkpoint.store
    return Refill(
        queues.stage,
        window,
        LeftOut(store, Filters([])),
        Blocked(store),
        Asleep(store),
        Traps(store, 0),
        Quota(store, (), 1 << 20),
    )


class Greedy(Traps):
    """Takes every URL for a trap, and counts the bytes that it looked at."""

    looked = 0

    def divert(self, urls: Any) -> Any:
        self.looked += look_bytes(urls)
        return EMPTY


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("length", [30, 500, 2000])
def test_a_step_looks_at_few_urls_though_they_fill_no_window(tmp_path: Path, length: int, spilled: bool) -> None:
    """However long they are, and wherever they wait; and all are looked at in the end."""
    queues = line(tmp_path)
    urls = url_batch([locate(f"http://h{n % 50}.example/{'x' * length}{n}") for n in range(20 * LOOK_ROWS)])
    (queues.stage.put_back if spilled else queues.stage.put)(urls)
    store = queues.checkpoint.store
    traps = Greedy(store, 0)
    refill = Refill(
        queues.stage,
        Window(10_000, SHARE),
        LeftOut(store, Filters([])),
        Blocked(store),
        Asleep(store),
        traps,
        Quota(store, (), 1),
    )
    longest = max(map(len, texts(urls)))
    for turn in range(1000):
        before = traps.looked
        refill.visits(float(turn))
        assert traps.looked - before <= LOOK_BYTES + LOOK_ROWS * (longest + 8)
        if not len(queues.stage):
            break
    assert traps.looked >= sum(map(len, texts(urls)))
    queues.close()


@pytest.mark.parametrize("visits", [1, 3, 16, 100, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_a_host_has_its_share_and_everything_comes_out_once(tmp_path: Path, visits: int, seed: int) -> None:
    random = Random(seed)
    sizes = [1, 5, 40, 400] if visits > SHARE else [1, 5]
    waiting = [(domain, number) for domain in range(30) for number in range(random.choice(sizes))]
    random.shuffle(waiting)
    queues = line(tmp_path)
    queues.stage.put(rows(waiting))
    window = Window(visits, SHARE)
    refill = refilled(queues, window)
    out: list[tuple[int, int]] = []
    seen: Counter[tuple[int, int]] = Counter()
    now = 0.0
    while out or len(queues.stage):
        now += random.choice([0.0, 0.01, 0.1])
        given = pages(refill.visits(now))
        seen.update(given)
        out += given
        assert 0 < len(window) == len(out) <= visits
        assert max(Counter(domain for domain, _ in out).values()) <= SHARE
        assert Counter(page for batch in window.rows() for page in pages(batch)) == Counter(out)
        random.shuffle(out)
        done, out = out[: len(out) // 2 + 1], out[len(out) // 2 + 1 :]
        end(window, done)
        end(window, done)  # an outcome that comes twice counts once
    assert seen == Counter(waiting)
    assert len(window) == 0 and "of 0 hosts" in repr(window)
    queues.close()


def test_a_slow_giant_delays_only_itself(tmp_path: Path) -> None:
    """While the giant answers nothing, all others come out."""
    queues = line(tmp_path)
    queues.stage.put(rows([(0, number) for number in range(3 * REFILL_ROWS)]))
    others = [(domain, number) for domain in range(1, 200) for number in range(10)]
    queues.stage.put(rows(others))
    window = Window(100, SHARE)
    refill = refilled(queues, window)
    left = set(others)
    for turn in range(1000):
        given = pages(refill.visits(float(turn)))
        end(window, [page for page in given if page[0]])
        left -= set(given)
        if not left:
            break
    assert not left
    assert window.of_host(at(0, 0).host) == SHARE
    queues.close()


def test_hungry_hosts_are_fed_though_others_fill_the_line(tmp_path: Path) -> None:
    """A host whose pages were spilled gets more of them while the ready queues are not empty."""
    queues = line(tmp_path)
    queues.stage.put(rows([(0, number) for number in range(100)]))
    window = Window(4 * REFILL_ROWS, SHARE)
    refill = refilled(queues, window)
    refill.visits(0.0)
    queues.stage.put(rows([(domain, 0) for domain in range(1, 9 * REFILL_ROWS)]))
    fetched = 0
    for turn in range(1, 40):
        refill.visits(float(turn))
        own = [page for batch in window.rows() for page in pages(batch) if page[0] == 0]
        fetched += len(own)
        end(window, own)
    assert fetched == 100
    assert queues.stage.waiting
    queues.close()


def test_rows_that_stay_out_for_long_hold_little_memory() -> None:
    window = Window(10_000, 10_000)
    kept = []
    for turn in range(60):
        batch = [(turn, number) for number in range(REFILL_ROWS)]
        window.admit(rows(batch))
        end(window, batch[1:])
        kept.append(batch[0])
    assert Counter(page for batch in window.rows() for page in pages(batch)) == Counter(kept)
    held = {id(column): column for batch in window.rows() for column in [batch.column("url")]}
    assert sum(len(column) for column in held.values()) == len(kept)
    assert window._held <= 8 * REFILL_ROWS
    assert u64(next(window.rows()), "key").size


@given(st.lists(st.integers(1, 9), max_size=12), st.sets(st.integers(0, 120)), st.sets(st.integers(0, 120)))
def test_what_is_let_go_is_what_was_asked_for_and_out(sizes: list[int], over: set[int], asked: set[int]) -> None:
    """However its rows came, and whatever ended before."""
    window, out = Window(1000, 1000), set()
    for size in sizes:
        handed = [(number % 7, number) for number in range(len(out), len(out) + size)]
        window.note(rows(handed))
        out |= set(handed)
    over_pages = [(number % 7, number) for number in over]
    end(window, over_pages)
    out -= set(over_pages)
    wanted = {(number % 7, number) for number in asked}
    gone = window.take_out([at(*page).key for page in wanted])
    assert sorted(gone.column("key").to_pylist()) == sorted(at(*page).key for page in wanted & out)
    assert set(gone.column("url").to_pylist()) == {at(*page).url for page in wanted & out}
    assert len(window) == len(out - wanted)
    left = [key for batch in window.rows() for key in batch.column("key").to_pylist()]
    assert sorted(left) == sorted(at(*page).key for page in out - wanted)
