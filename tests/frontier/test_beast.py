"""The laws of budget enforcement: nothing lost, nothing twice, no domain over its budget, none behind another."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontier.shard import Shard, pages, rows
from fyke.core.batches import concat, u64, url_batch, with_column
from fyke.core.urls import Locator
from fyke.disk.store import Store
from fyke.frontier.beast import CARRIED, Backlog, Beast, Enforcer, NaiveEnforcer
from fyke.frontier.sizes import SIZES, Sizes

KINDS: list[type[Any]] = [Beast, NaiveEnforcer, Backlog]
ALL = 1 << 30
SPAM = 999


class Plans:
    """An enforcer, with the plans that the records of domains would keep for it."""

    def __init__(self, make: Callable[[Store, Any], Enforcer], store: Store, state: Mapping[str, Any]) -> None:
        self.enforcer = make(store, state.get("enforcer"))
        self.slots: dict[int, int] = {int(domain): slot for domain, slot in state.get("slots", {}).items()}
        self.failed = 0  # rows that were read again

    def put(self, urls: pa.RecordBatch) -> None:
        slots = np.array([self.slots.get(domain, 0) for domain in u64(urls, "domain").tolist()], np.uint64)
        domains, by = self.enforcer.put(urls, slots)
        assert len(set(domains.tolist())) == len(domains)
        for domain, more in zip(domains.tolist(), by.tolist(), strict=True):
            self.slots[domain] = self.slots.get(domain, 0) + more
            assert self.slots[domain] < 1 << 63

    def again(self, rows: int, weighed: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None) -> bool:
        """Put some of QF again, with the budgets that `weighed` gives them."""
        urls = self.enforcer.take_over_budget(rows)
        if urls is None:
            return False
        self.failed += urls.num_rows
        self.put(urls if weighed is None else weighed(urls))
        return True

    def drained(self, rows: int = ALL) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """All that comes out, with the number of the round: QF is spread as soon as it is to be."""
        while len(self.enforcer) and not self.enforcer.stuck:
            while self.again(ALL):
                pass
            urls = self.enforcer.get(rows)
            if urls is not None:
                yield round_of(self.enforcer), pages(urls)

    def state(self) -> dict[str, Any]:
        slots = {str(domain): slot for domain, slot in self.slots.items()}
        return {"enforcer": self.enforcer.state(), "slots": slots}

    def close(self) -> None:
        self.enforcer.close()


def round_of(enforcer: Enforcer) -> int:
    return getattr(enforcer, "_current", 0)


def few_rounds(kind: type[Any]) -> Callable[[Store, Any], Enforcer]:
    """Enforcers of this kind with eight rounds at most, of which five rows are in memory."""
    if kind is Backlog:
        return Backlog
    return lambda store, state: kind(store, state, Sizes(rounds=8, round_buffer=5))


def shard(directory: Path, kind: Callable[[Store, Any], Enforcer]) -> Shard[Plans, dict[str, Any]]:
    return Shard(directory, partial(Plans, kind), {"waiting": Counter(), "number": 0})


def batch(counts: list[tuple[int, int]], first: int = 0, **columns: Any) -> pa.RecordBatch:
    """Pages from number `first` on: of each domain so many."""
    return rows([(domain, first + n) for domain, count in counts for n in range(count)], **columns)


def weighed(urls: pa.RecordBatch, budget_of: Callable[[int], int]) -> pa.RecordBatch:
    return with_column(urls, "budget", np.array([budget_of(domain) for domain, _ in pages(urls)], np.int64))


# --- nothing lost, nothing twice

STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(st.integers(0, 4), st.integers(1, 12)), min_size=1, max_size=4)),
    st.tuples(st.just("get"), st.integers(1, 30)),
    st.tuples(st.just("again"), st.integers(1, 30)),
    st.tuples(st.just("reconsider"), st.none()),
    st.tuples(st.just("save"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)


class Crawl:
    """Steps on a shard and the multiset of what waits; budgets change from one weighing to the next."""

    def __init__(self, directory: Path, kind: Callable[[Store, Any], Enforcer], budgets: list[int]) -> None:
        self.shard = shard(directory, kind)
        self.budgets = budgets

    def budget(self, domain: int) -> int:
        return self.budgets[(domain + self.shard.model["number"]) % len(self.budgets)]

    def step(self, step: str, argument: Any) -> None:
        plans, model = self.shard.stage, self.shard.model
        if step == "put":
            urls = weighed(batch(argument, first=model["number"]), self.budget)
            model["number"] += urls.num_rows
            model["waiting"].update(pages(urls))
            plans.put(urls)
        elif step == "get":
            urls = plans.enforcer.get(argument)
            model["waiting"].subtract(pages(urls))
        elif step == "again":
            plans.again(argument, lambda urls: weighed(urls, self.budget))
        elif step == "reconsider":
            plans.enforcer.reconsider()
        else:
            getattr(self.shard, step)()
        self.check()

    def check(self) -> None:
        enforcer, waiting = self.shard.stage.enforcer, +self.shard.model["waiting"]
        assert len(enforcer) == waiting.total()
        assert Counter(one for queue in enforcer.queues() for urls in queue.scan() for one in pages(urls)) == waiting
        told = enforcer.statistics()
        assert told.waiting + told.over_budget == len(enforcer)
        assert 1 <= told.rounds <= SIZES.rounds
        assert len(enforcer.queues()) <= SIZES.rounds + 3

    def drain(self) -> None:
        plans, model = self.shard.stage, self.shard.model
        for _, came in plans.drained(7):
            model["waiting"].subtract(came)
            self.check()
        plans.enforcer.reconsider()
        while plans.enforcer.get(ALL) is not None or plans.again(ALL, lambda urls: weighed(urls, lambda _: 3)):
            pass
        assert len(plans.enforcer) == 0
        self.shard.close()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(steps=st.lists(STEPS, max_size=25), budgets=st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_what_waits_comes_out_once(
    tmp_path_factory: pytest.TempPathFactory, kind: type[Any], steps: list[tuple[str, Any]], budgets: list[int]
) -> None:
    crawl = Crawl(tmp_path_factory.mktemp("beast"), few_rounds(kind), budgets)
    for step, argument in steps:
        crawl.step(step, argument)
    crawl.drain()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_comes_of_nothing(tmp_path: Path, kind: type[Any]) -> None:
    shelf = shard(tmp_path, kind)
    for _ in range(5):
        assert shelf.stage.enforcer.get(10) is None
        assert shelf.stage.enforcer.take_over_budget(10) is None
        assert not shelf.stage.enforcer.splitting
    assert round_of(shelf.stage.enforcer) == 0
    assert len(shelf.stage.enforcer) == 0
    shelf.close()


def test_a_backlog_is_first_come_first_served(tmp_path: Path) -> None:
    shelf = shard(tmp_path, Backlog)
    found = [(n % 3, n) for n in range(100)]
    shelf.stage.put(rows(found, budget=0))
    shelf.save()
    shelf.restart()
    assert [one for _, came in shelf.stage.drained(7) for one in came] == found
    shelf.close()


# --- rounds

BUDGETS = st.dictionaries(st.integers(0, 5), st.integers(1, 40), min_size=1)


@pytest.mark.parametrize("kind", [Beast, NaiveEnforcer])
@settings(max_examples=40, deadline=None)
@given(
    budgets=BUDGETS,
    puts=st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 200)), max_size=4), min_size=1, max_size=6),
    taken=st.integers(1, 100),
)
def test_no_round_has_more_of_a_domain_than_its_budget(
    tmp_path_factory: pytest.TempPathFactory,
    kind: type[Any],
    budgets: dict[int, int],
    puts: list[list[tuple[int, int]]],
    taken: int,
) -> None:
    shelf = shard(tmp_path_factory.mktemp("rounds"), kind)
    passed: Counter[tuple[int, int]] = Counter()
    rounds, most = [], 1
    for number, counts in enumerate(puts):
        known = [(domain, count) for domain, count in counts if domain in budgets]
        shelf.stage.put(weighed(batch(known, first=1000 * number), budgets.__getitem__))
        last = number == len(puts) - 1
        for round_number, came in shelf.stage.drained(taken):
            rounds.append(round_number)
            passed.update((round_number, domain) for domain, _ in came)
            most = max(most, shelf.stage.enforcer._budgets)  # type: ignore[attr-defined]
            if not last:
                break
        shelf.save()
        shelf.restart()
    assert passed.total() == sum(count for counts in puts for domain, count in counts if domain in budgets)
    assert rounds == sorted(rounds)
    assert all(count <= budgets[domain] * most for (_, domain), count in passed.items())
    assert most == 1 or kind is Beast
    shelf.close()


@pytest.mark.parametrize("kind", [Beast, NaiveEnforcer])
@pytest.mark.parametrize("budget", [1, 3, 7, 10, 1000, 9999, 65_535])
def test_a_round_is_the_whole_budget(tmp_path: Path, kind: type[Any], budget: int) -> None:
    """All of it, but for a part in a thousand when it does not divide the round."""
    shelf = shard(tmp_path, kind)
    whole = 2 * budget + budget // 2 + 1
    shelf.stage.put(batch([(1, whole)], budget=budget))
    passed: Counter[int] = Counter()
    for round_number, came in shelf.stage.drained():
        passed[round_number] += len(came)
    assert list(passed) == list(range(min(passed), min(passed) + len(passed)))
    shares = list(passed.values())
    assert max(shares) <= budget
    assert all(share >= budget - max(1, budget // 1000) * (budget > 100) for share in shares[:2])
    assert sum(shares) == whole
    shelf.close()


def test_order_within_a_domain_is_that_of_arrival(tmp_path: Path) -> None:
    shelf = shard(tmp_path, Beast)
    random = np.random.default_rng(1)
    found = [(int(domain), number) for number, domain in enumerate(random.integers(0, 9, 3000))]
    for start in range(0, len(found), 500):
        shelf.stage.put(weighed(rows(found[start : start + 500]), lambda domain: 1 + domain))
    came: dict[int, list[int]] = defaultdict(list)
    for _, urls in shelf.stage.drained(100):
        for domain, number in urls:
            came[domain].append(number)
    assert sum(map(len, came.values())) == len(found)
    assert all(numbers == sorted(numbers) for numbers in came.values())
    shelf.close()


def test_every_row_has_its_own_budget(tmp_path: Path) -> None:
    """A seed has one where the other URLs of its domain have none, wherever in the batch it stands."""
    shelf = shard(tmp_path, Beast)
    shelf.stage.put(rows([(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)], budget=[0, 10, 0, 10, 0]))
    came = [one for _, urls in shelf.stage.drained() for one in urls]
    assert sorted(came) == [(1, 2), (2, 1)]
    assert shelf.stage.enforcer.stuck
    shelf.close()


# --- fairness

SMALL = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 60)), min_size=1, max_size=5, unique_by=lambda one: one[0])


@settings(max_examples=25, deadline=None)
@given(
    waves=st.lists(SMALL, min_size=1, max_size=5),
    budget=st.integers(1, 12),
    between=st.integers(1, 60),
    stream=st.booleans(),
)
def test_a_small_domain_never_waits_for_a_large_one(
    tmp_path_factory: pytest.TempPathFactory,
    waves: list[list[tuple[int, int]]],
    budget: int,
    between: int,
    stream: bool,
) -> None:
    """Its n URLs are out within the ceil(n / budget) + 1 rounds after they came, whatever a spammer has there, and
    whether or not a `stream` of new domains keeps the rounds from running dry."""
    shelf = shard(tmp_path_factory.mktemp("fair"), Beast)
    plans = shelf.stage
    due: dict[int, list[int]] = defaultdict(list)  # rounds by which a URL of the domain is to be out
    late = []
    new_domain = count(SPAM + 1)

    def serve(most: int) -> None:
        for round_number, came in plans.drained(20):
            late.extend(one for one in came if one[0] < SPAM and round_number > due[one[0]].pop(0))
            most -= 1
            if not most or not any(due.values()):
                break
            if stream:
                plans.put(batch([(next(new_domain), 1)], budget=budget))

    for wave, counts in enumerate(waves):
        plans.put(batch([(SPAM, 1000)], first=1000 * wave, budget=budget))
        for domain, more in counts:
            plans.put(batch([(domain, more)], first=100 * wave, budget=budget))
            rounds = -(-(len(due[domain]) + more) // budget) + 1
            due[domain] += [round_of(plans.enforcer) + rounds] * more
        serve(between)
    serve(ALL)
    assert not late
    assert not any(due.values())
    shelf.close()


@settings(max_examples=25, deadline=None)
@given(waves=st.lists(SMALL, min_size=1, max_size=8), budget=st.integers(1, 12), taken=st.integers(1, 60))
def test_so_long_as_no_round_may_begin_all_get_their_budgets_and_no_more(
    tmp_path_factory: pytest.TempPathFactory, waves: list[list[tuple[int, int]]], budget: int, taken: int
) -> None:
    """What is found meanwhile passes at once, so far as its domain has budget left; the next round has the rest."""
    shelf = shard(tmp_path_factory.mktemp("held"), Beast)
    plans, found, came = shelf.stage, Counter[int](), Counter[int]()
    for number, wave in enumerate(waves):
        assert plans.enforcer.get(taken, next_round=False) is None
        plans.put(batch(wave, first=100 * number, budget=budget))
        found.update(dict(wave))
        while (urls := plans.enforcer.get(taken, next_round=False)) is not None:
            came.update(domain for domain, _ in pages(urls))
        assert came == {domain: min(budget, many) for domain, many in found.items()}
        shelf.save()
        shelf.restart()
    came.update(domain for _, urls in plans.drained() for domain, _ in urls)
    assert came == found
    shelf.close()


# --- without a budget


@pytest.mark.parametrize("kind", [Beast, NaiveEnforcer])
def test_what_has_no_budget_waits_until_it_has_one(tmp_path: Path, kind: type[Any]) -> None:
    def only_the_first(urls: pa.RecordBatch) -> pa.RecordBatch:
        return weighed(urls, lambda domain: 3 * (domain == 1))

    shelf = shard(tmp_path, kind)
    plans = shelf.stage
    plans.put(batch([(1, 30), (2, 5)], budget=[0] * 30 + [2] * 5))
    for _ in range(3):
        came = [one for _, urls in plans.drained() for one in urls]
        assert {domain for domain, _ in came} <= {2}
        assert plans.enforcer.stuck
        before = plans.failed
        assert plans.enforcer.get(10) is None
        assert not plans.again(10)
        assert plans.failed == before
        shelf.save()
        shelf.restart()
        plans = shelf.stage
        assert plans.enforcer.stuck
        plans.put(batch([(3, 4)], first=100, budget=0))
        plans.enforcer.reconsider()
        assert not plans.enforcer.stuck
    plans.enforcer.reconsider()
    assert plans.enforcer.get(10) is None
    assert plans.again(10, only_the_first)
    shelf.save()
    shelf.restart()
    plans = shelf.stage
    while plans.again(ALL, only_the_first):
        pass
    assert {domain for _, urls in plans.drained() for domain, _ in urls} == {1}
    assert plans.enforcer.stuck
    assert len(plans.enforcer) == 3 * 4
    shelf.close()


def test_what_came_while_qf_was_read_is_read_after_it(tmp_path: Path) -> None:
    """Also when the rounds run dry meanwhile, and all that was read has lost its budget."""
    shelf = shard(tmp_path, Beast)
    plans = shelf.stage
    plans.put(batch([(1, 25)], budget=5))
    assert len(pages(plans.enforcer.get(5))) == 5
    assert plans.enforcer.splitting
    plans.put(batch([(2, 25)], budget=5))
    while plans.enforcer.get(ALL) is not None:
        pass
    assert plans.again(ALL, lambda urls: weighed(urls, lambda _: 0))
    assert not plans.enforcer.stuck
    assert {domain for _, came in plans.drained() for domain, _ in came} == {2}
    assert plans.enforcer.stuck
    shelf.close()


def test_what_has_no_budget_is_read_again_as_seldom(tmp_path: Path) -> None:
    """However often reputations change: where most domains have none, their URLs are most of what waits."""
    shelf = shard(tmp_path, Beast)
    plans, passed = shelf.stage, 0
    plans.put(batch([(1, 20_000)], budget=0))
    plans.put(batch([(2, 300), (3, 300)], first=50_000, budget=10))
    for _, came in plans.drained(20):
        passed += len(came)
        if passed > 20_000:
            break
        plans.put(batch([(2, 10), (3, 11)], first=100_000 + passed, budget=10))
        plans.enforcer.reconsider()
    assert 20_000 <= plans.failed < 2 * CARRIED * passed  # as much as of those over budget
    shelf.close()


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.tuples(st.integers(0, 3), st.integers(1, 200))),
            st.tuples(st.just("get"), st.integers(1, 400)),
            st.tuples(st.just("again"), st.integers(1, 400)),
        ),
        max_size=60,
    )
)
def test_stuck_means_that_only_urls_without_budget_wait(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    """Domain 0 never has a budget, the others have 1, 2 and 3."""
    shelf = shard(tmp_path_factory.mktemp("stuck"), few_rounds(Beast))
    plans, waiting, number = shelf.stage, Counter[int](), 0
    for step, argument in steps:
        if step == "put":
            plans.put(batch([argument], first=number, budget=argument[0]))
            waiting[argument[0]] += argument[1]
            number += argument[1]
        elif step == "get":
            waiting.subtract(domain for domain, _ in pages(plans.enforcer.get(argument)))
        else:
            plans.again(argument)
        if plans.enforcer.stuck:
            assert set(+waiting) == {0}
    waiting.subtract(domain for _, urls in plans.drained() for domain, _ in urls)
    assert set(+waiting) <= {0}
    assert plans.enforcer.stuck == (waiting[0] > 0)
    shelf.close()


def test_who_is_planned_beyond_a_narrower_horizon_is_not_stuck(tmp_path: Path) -> None:
    shelf = shard(tmp_path, lambda store, state: Beast(store, state or {"width": 4}))
    plans = shelf.stage
    plans.put(batch([(1, 1500)], budget=500))
    drain = plans.drained(500)
    assert [len(next(drain)[1]), len(next(drain)[1])] == [500, 500]
    plans.put(batch([(2, 35)], budget=10))
    assert sum(len(came) for _, came in plans.drained()) == 500 + 35
    assert len(plans.enforcer) == 0
    shelf.close()


# --- what it costs


def read_again(directory: Path, kind: type[Any], crawled: int) -> tuple[float, int]:
    """Rows of QF read for each URL that was let through, and the backlog, once so many were: each URL of a spammer
    leads to six more of his (the paper's L of 6.5), and three honest domains have always something new."""
    shelf = shard(directory, kind)
    plans, passed = shelf.stage, 0
    plans.put(batch([(SPAM, 100), *((domain, 5) for domain in range(3))], budget=10))
    for _, came in plans.drained(64):
        passed += len(came)
        if passed >= crawled:
            break
        links = Counter({SPAM: 0})
        for domain, _ in came:
            links[domain] += 6 if domain == SPAM else 1
        plans.put(batch(list(links.items()), first=passed * 100, budget=10))
    backlog = len(plans.enforcer)
    shelf.close()
    return plans.failed / passed, backlog


def test_what_is_read_again_does_not_grow_with_the_backlog(tmp_path: Path) -> None:
    """Theorem 5; beside it Theorem 4: the naive enforcer reads more and more."""
    cost, backlog = zip(*(read_again(tmp_path / f"beast-{n}", Beast, n) for n in (300, 30_000)), strict=True)
    assert backlog[1] > 100 * backlog[0]
    assert max(cost) < CARRIED + 2
    naive = [read_again(tmp_path / f"naive-{n}", NaiveEnforcer, n)[0] for n in (300, 3000)]
    assert naive[1] > 4 * naive[0]


def test_three_huge_domains_come_out_whole(tmp_path: Path) -> None:
    """With nothing else in scope a round is widened until QF is carried: once for each doubling, then `CARRIED`."""
    shelf = shard(tmp_path, Beast)
    plans, beast, each = shelf.stage, shelf.stage.enforcer, 200_000
    widest = 0
    like = url_batch([Locator(b"http://d/", 0, 0, 0)] * 25_000, budget=10)
    for start in range(0, 3 * each, like.num_rows):
        keys = np.arange(start, start + like.num_rows, dtype=np.uint64)
        plans.put(with_column(with_column(like, "key", keys), "domain", keys // np.uint64(each)))
    met = []
    while len(beast):
        while plans.again(ALL):
            widest = max(widest, beast.statistics().rounds, len(beast.queues()) - 3)
        urls = beast.get(ALL)
        if urls is not None:
            met.append(u64(urls, "key"))
    assert len(np.unique(np.concatenate(met))) == sum(map(len, met)) == 3 * each
    assert plans.failed / (3 * each) < CARRIED + np.log2(3 * each / (3 * 10 * CARRIED))
    assert widest == SIZES.rounds
    assert len(shelf.checkpoint.store.lengths()) <= 2 * SIZES.rounds
    shelf.close()


def test_what_waits_in_memory_is_no_more_than_its_rows(tmp_path: Path) -> None:
    """A row in the buffer of its round does not keep the batch that it came with."""
    shelf = shard(tmp_path, Beast)
    plans, before = shelf.stage, pa.total_allocated_bytes()
    spam = batch([(SPAM, 4096)], budget=1)
    for number in range(100):
        plans.put(concat([batch([(number, 1)], budget=1), spam]))
    assert plans.enforcer.statistics().waiting == 101
    assert pa.total_allocated_bytes() - before < 8 * spam.nbytes
    shelf.close()
