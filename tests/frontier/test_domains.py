"""The law of the domains: sums by domain, and each name once."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontier.shard import Shard, domain_of, pages, rows
from fyke.core.batches import u64
from fyke.frontier.domains import RECORD, Domains

COUNTS = [name for name in RECORD.names or () if name not in ("in_degree", "urls")]
DOMAINS = st.integers(0, 6)
STEPS = st.one_of(
    st.tuples(st.just("met"), st.lists(st.tuples(DOMAINS, st.integers(1, 9)), min_size=1, max_size=12, unique=True)),
    st.tuples(st.just("count"), st.tuples(st.sampled_from(COUNTS), st.lists(DOMAINS, min_size=1, unique=True))),
    st.tuples(st.just("link"), st.lists(DOMAINS, min_size=1, max_size=7, unique=True)),
    st.tuples(st.just("merge"), st.none()),
    st.tuples(st.just("save"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)


class Model:
    def __init__(self) -> None:
        self.counts: dict[str, Counter[int]] = {name: Counter() for name in ("in_degree", "urls", *COUNTS)}
        self.waiting: list[tuple[int, int]] = []  # pages in order of arrival

    def of(self, domain: int) -> tuple[int, ...]:
        return tuple(self.counts[name][domain] for name in RECORD.names or ())


class Met(Shard[Domains, Model]):
    """Domains as STAR uses them: what is new is asked for, named when its record says so, and counted."""

    def met(self, found: list[tuple[int, int]]) -> None:
        urls = rows(found)
        self.stage.ask(urls)
        domains, counts = np.unique(u64(urls, "domain"), return_counts=True)
        self.stage.add(domains, urls=counts)
        self.model.waiting += found
        self.model.counts["urls"].update(domain for domain, _ in found)

    def count(self, what: tuple[str, list[int]]) -> None:
        name, domains = what
        self.stage.add(np.array([domain_of(one) for one in domains], np.uint64), **{name: 3})
        self.model.counts[name].update(dict.fromkeys(domains, 3))

    def link(self, domains: list[int]) -> None:
        self.stage.link(np.array([domain_of(one) for one in domains], np.uint64), np.full(len(domains), 2))
        self.model.counts["in_degree"].update(dict.fromkeys(domains, 2))

    def merge(self, _: None = None) -> None:
        came = []
        for urls, domains, records, _ in self.stage.merge():
            assert len(domains) == len(records) == urls.num_rows
            asked = u64(urls, "key") != 0
            assert np.array_equal(u64(urls, "domain")[asked], domains[asked])
            new = urls.filter(asked & (records["urls"] == 0))
            if new.num_rows:
                self.stage.name(new)
            came += pages(urls.filter(asked))
        assert sorted(came) == sorted(self.model.waiting)
        self.model.waiting = []

    def check(self) -> None:
        waiting = [one for urls in self.stage.unchecked() for one in pages(urls)]
        assert sorted(waiting) == sorted(self.model.waiting)
        assert self.stage.unchecked_urls == len(waiting)
        for domain in range(7):
            record = self.stage.of(domain_of(domain))
            assert (tuple(record) if record is not None else (0,) * len(RECORD)) == self.model.of(domain)

    def check_names(self) -> None:
        met = {f"d{domain}.example": self.model.of(domain) for domain in +self.model.counts["urls"]}
        named = [
            (name, tuple(record))
            for names, records in self.stage.named()
            for name, record in zip(names, records.tolist(), strict=True)
        ]
        assert len(named) == len(met)
        assert dict(named) == met


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=20), st.sampled_from([1, 2000, 1 << 20]))
def test_counts_add_up_and_names_come_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]], memory_bytes: int
) -> None:
    directory = tmp_path_factory.mktemp("domains")
    domains = Met(directory, lambda store, state: Domains(store, memory_bytes, state), Model())
    for step, argument in steps:
        getattr(domains, step)(*([] if argument is None else [argument]))
        domains.check()
    domains.merge()
    domains.check()
    domains.check_names()
    assert len(domains.stage) == sum(any(domains.model.of(domain)) for domain in range(7))
    domains.save()
    domains.restart()
    domains.check_names()
    domains.close()


def test_a_crawl_of_one_domain_names_it_without_a_merge(tmp_path: Path) -> None:
    shard = Shard(tmp_path, lambda store, state: Domains(store, 1 << 20, state), None)
    for first in (0, 5):
        urls = rows([(1, first), (1, first + 1), (2, first)])
        domains, counts = np.unique(u64(urls, "domain"), return_counts=True)
        shard.stage.name_new(urls, domains)
        shard.stage.add(domains, urls=counts)
        shard.save()
        shard.restart()
    assert sorted(name for names, _ in shard.stage.named() for name in names) == ["d1.example", "d2.example"]
    shard.close()
