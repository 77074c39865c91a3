"""The laws of STAR: in-degrees are sets of other domains, and budgets follow from the ranking."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontier.shard import Answers, Shard, domain_of, pages, rows
from fyke.core.batches import Kind, numbers, u64
from fyke.core.config import FrontierSection
from fyke.core.plugins import BudgetFunction
from fyke.core.slices import whole
from fyke.disk.store import Store
from fyke.frontier.budgets import Equal, Popular, Reputation, budget_function
from fyke.frontier.domains import Domains
from fyke.frontier.sizes import SIZES, Sizes
from fyke.frontier.star import Star

DEFAULT = 10
COUNT = 12  # domains
FEW = Sizes(ranked=4, met_a_place=COUNT // 2)
DOMAINS = st.integers(0, COUNT - 1)
PAIRS = st.lists(st.tuples(DOMAINS, DOMAINS), min_size=1, max_size=30)
STEPS = st.one_of(
    st.tuples(st.just("link"), PAIRS),
    st.tuples(st.just("merge"), st.none()),
    st.tuples(st.just("save"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)


class DomainGraph:
    """STAR with the records it counts in."""

    def __init__(
        self, store: Store, state: Mapping[str, Any], function: BudgetFunction, memory_bytes: int, sizes: Sizes
    ) -> None:
        self.domains = Domains(store, memory_bytes, state.get("domains"))
        self.star = Star(store, self.domains, function, DEFAULT, memory_bytes, state.get("star"), sizes)

    def state(self) -> dict[str, Any]:
        return {"star": self.star.state(), "domains": self.domains.state()}

    def close(self) -> None:
        self.star.close()
        self.domains.close()


class Graph(Shard[DomainGraph, "defaultdict[int, set[int]]"]):
    """The model: of each domain, the set of others that link to it."""

    def note(self, pairs: list[tuple[int, int]]) -> None:
        for source, target in pairs:
            if source != target:
                self.model[target].add(source)

    def link(self, pairs: list[tuple[int, int]]) -> None:
        keys = np.array([(domain_of(source), domain_of(target)) for source, target in pairs], np.uint64)
        self.stage.star.link(keys[:, 0], keys[:, 1])
        self.note(pairs)

    def merge(self, _: None = None) -> None:
        whole(self.stage.star.count())
        assert not any(urls.num_rows for urls, _, _ in self.stage.star.merge())

    def check(self) -> None:
        """After a merge: in-degrees, edges and ranking."""
        degrees = {domain: len(self.model[domain]) for domain in range(COUNT)}
        for domain, degree in degrees.items():
            record = self.stage.domains.of(domain_of(domain))
            assert (0 if record is None else record["in_degree"]) == degree
        assert self.stage.star.edges == sum(degrees.values())
        places = self.stage.star.ranking._places
        highest = sorted((degree for degree in degrees.values() if degree), reverse=True)[: FEW.ranked]
        assert sorted(places["in_degree"].tolist(), reverse=True) == highest
        by_key = {domain_of(domain): degree for domain, degree in degrees.items()}
        assert {int(key): int(degree) for key, degree in places.tolist()}.items() <= by_key.items()
        self.check_ranks(highest)

    def check_ranks(self, highest: list[int]) -> None:
        asked = np.arange(COUNT + 1)
        ranks = [highest.index(degree) + 1 if degree in highest else 0 for degree in asked.tolist()]
        held = np.isin(asked, highest)
        assert self.stage.star.ranking.rank(asked)[held].tolist() == [rank for rank in ranks if rank]
        for met in (0, COUNT - 1, COUNT, 2 * COUNT, 1000):
            places = min(FEW.ranked, met // FEW.met_a_place)
            under = [sum(degree < one for degree in highest[:places]) for one in asked.tolist()]
            standing = [min(count / (places - 1), 1.0) if places > 1 else 0.0 for count in under]
            assert self.stage.star.ranking.standing(asked, met).tolist() == standing


def graph(
    directory: Path, function: BudgetFunction | None = None, memory_bytes: int = 1 << 20, sizes: Sizes = SIZES
) -> Graph:
    chosen = function or Equal(DEFAULT)
    return Graph(
        directory, lambda store, state: DomainGraph(store, state, chosen, memory_bytes, sizes), defaultdict(set)
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=16), st.sampled_from([1, 3000, 1 << 20]))
def test_in_degree_is_a_set_of_other_domains(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]], memory_bytes: int
) -> None:
    domains = graph(tmp_path_factory.mktemp("star"), memory_bytes=memory_bytes, sizes=FEW)
    for step, argument in steps:
        getattr(domains, step)(*([] if argument is None else [argument]))
        if step == "merge":
            domains.check()
    domains.merge()
    domains.check()
    assert domains.stage.star.pending == domains.stage.domains.pending == 0
    domains.save()
    domains.restart()
    domains.check()
    domains.close()


def test_links_from_nowhere_count_for_nothing(tmp_path: Path) -> None:
    domains = graph(tmp_path)
    domains.stage.star.link(np.array([0, domain_of(1)], np.uint64), np.full(2, domain_of(2), np.uint64))
    domains.merge()
    assert domains.stage.domains.of(domain_of(2))["in_degree"] == 1  # type: ignore[index]
    domains.close()


# --- budgets


def budgets(
    directory: Path,
    function: BudgetFunction,
    in_degrees: list[int],
    asked: list[int],
    met: int = 10**7,
    sizes: Sizes = SIZES,
) -> list[int]:
    """What `function` gives for the in-degrees `asked`, when `in_degrees` are ranked and `met` domains were met."""
    domains = graph(directory, function, sizes=sizes)
    domains.stage.star._domains = range(met)  # type: ignore[assignment]
    keys = np.array([domain_of(n) for n in range(len(in_degrees))], np.uint64)
    domains.stage.star.ranking.note(keys, np.array(in_degrees))
    given_out: list[int] = domains.stage.star.budgets(
        np.arange(len(asked), dtype=np.uint64), np.array(asked, np.uint32)
    ).tolist()
    domains.close()
    return given_out


def test_reputation_is_the_papers(tmp_path: Path) -> None:
    """Section 7.2: the top 10,000 get budgets interpolated linearly between 10 and 10,000, all others 10."""
    full = list(range(5, 10_005))
    last, first = 5, 10_004
    function = Reputation(10, 10_000)
    assert budgets(tmp_path / "ends", function, full, [0, 4, last, first, first + 1]) == [10, 10, 10, 10_000, 10_000]
    steps = np.diff(budgets(tmp_path / "all", function, full, full))
    assert set(steps.tolist()) <= {0, 1, 2}


def test_equal_in_degrees_have_equal_budgets(tmp_path: Path) -> None:
    five = Sizes(ranked=5)
    assert budgets(tmp_path / "ties", Reputation(10, 50), [7, 7, 3, 3, 3], [2, 3, 7], sizes=five) == [10, 10, 40]
    assert budgets(tmp_path / "few", Reputation(10, 50), [7, 3], [2, 3, 7], sizes=five) == [10, 10, 20]
    three = 3 * five.met_a_place
    assert budgets(tmp_path / "met", Reputation(10, 50), [9, 8, 7, 3, 3], [3, 7, 8, 9], three, five) == [10, 10, 30, 50]
    assert (
        budgets(tmp_path / "none", Reputation(10, 50), [7, 3], [2, 3, 7], three - five.met_a_place - 1, five)
        == [10] * 3
    )
    assert budgets(tmp_path / "equal", Equal(12), [7, 3], [0, 3, 7], sizes=five) == [12, 12, 12]
    assert budgets(tmp_path / "popular", Popular(40), [7, 6, 5, 4, 3], [0, 2, 3, 4, 7], sizes=five) == [0, 0, 0, 10, 40]


@pytest.mark.parametrize("budget", ["equal", "reputation", "popular"])
def test_no_setting_is_too_large_to_be_a_budget(tmp_path: Path, budget: str) -> None:
    section = FrontierSection(budget=budget, default_budget_urls=70_000, max_budget_urls=65_535)
    given_out = budgets(tmp_path, budget_function(section), list(range(1, 10_001)), [0, 10_000])
    assert given_out == {"equal": [65_535] * 2, "reputation": [65_535] * 2, "popular": [0, 65_535]}[budget]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([7, 8, 9], [7, 8, 9]),
        ([7.0, 8.9, 0], [7, 8, 0]),
        (np.array([1, 65_535, 0], np.int64), [1, 65_535, 0]),
        ([7, -1, 9], [7, DEFAULT, 9]),
        ([7, 65_536, 9], [7, DEFAULT, 9]),
        ([7, float("nan"), float("inf")], [7, DEFAULT, DEFAULT]),
        ([7, 8], [DEFAULT] * 3),
        ([[7, 8, 9]], [DEFAULT] * 3),
        (7, [DEFAULT] * 3),
        (None, [DEFAULT] * 3),
        ("many", [DEFAULT] * 3),
        ([10**400] * 3, [DEFAULT] * 3),
        (RuntimeError("broken"), [DEFAULT] * 3),
    ],
)
def test_a_budget_plug_in_that_talks_nonsense_is_counted(tmp_path: Path, answer: Any, expected: list[int]) -> None:
    domains = graph(tmp_path, Answers(answer))
    star = domains.stage.star
    assert star.budgets(np.arange(3, dtype=np.uint64), np.array([0, 1, 2], np.uint32)).tolist() == expected
    assert star.failures == ({"Answers": 1} if DEFAULT in expected else {})
    domains.close()


def test_urls_come_weighed_and_seeds_never_without_a_budget(tmp_path: Path) -> None:
    domains = graph(tmp_path, Popular(100))
    domains.link([(source, target) for target in range(1, 4) for source in range(4, 4 + target)])
    domains.merge()
    found = [(domain, number) for domain in range(4) for number in (1, 2)]
    kinds = [Kind.SEED, Kind.PAGE] * 4
    domains.stage.domains.ask(rows(found, kind=kinds))
    ((urls, records, _),) = domains.stage.star.merge()
    assert pages(urls) == found
    assert numbers(urls, "in_degree").tolist() == records["in_degree"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    seeds, others = numbers(urls, "budget")[::2].tolist(), numbers(urls, "budget")[1::2].tolist()
    assert seeds == [DEFAULT] * 4
    assert others == domains.stage.star.budgets(np.arange(4, dtype=np.uint64), np.arange(4)).tolist()
    assert u64(urls, "domain").tolist() == [domain_of(domain) for domain, _ in found]
    domains.close()
