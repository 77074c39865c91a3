"""Known pages: each in one place whatever happens, and those visited whose visits are worth most."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontier.shard import Shard, at, page, rows
from frontier.small_web import Crawl, small_web
from fyke.core.batches import Kind, texts
from fyke.core.messages import Links
from fyke.frontier.gone import GONE_S
from fyke.frontier.known_pages import KnownPages
from fyke.frontier.list_signals import NEWS
from fyke.frontier.page_history import COPY, ENDED, News, Visited
from fyke.frontier.revisit.choice import Terms
from fyke.frontier.sizes import Sizes
from fyke.frontier.weights import Weights

DAY = 86400.0
Page = tuple[int, int]


def ended(pages: Sequence[Page], visited: int, news: int, when: float, kind: int = Kind.PAGE) -> pa.RecordBatch:
    """Visits that ended alike."""
    count = len(pages)
    columns = (np.full(count, visited, np.uint8), np.full(count, news, np.uint8), np.full(count, when))
    urls = rows(pages, kind=kind)
    return pa.RecordBatch.from_arrays([*urls.columns, *map(pa.array, columns)], schema=ENDED)


def learn(again: KnownPages, batch: pa.RecordBatch) -> None:
    again.learn(batch, np.zeros(batch.num_rows, bool), np.zeros(batch.num_rows, COPY))


def plan(again: KnownPages, now: float, most: int | None) -> None:
    for _ in again.plan(now, Terms(most=most)):
        pass


def taken(again: KnownPages, count: int = 1000, level: int | None = None) -> list[Page]:
    found: list[Page] = []
    while len(found) < count and (urls := again.get(count - len(found), level)) is not None:
        found += [page(url) for url in texts(urls)]
    return found


@dataclass
class Model:
    """Where each page is."""

    told: set[Page] = field(default_factory=set)  # their visits ended, and no plan was made since
    rests: int = 0
    waits: int = 0
    out: set[Page] = field(default_factory=set)
    gone: set[Page] = field(default_factory=set)


class Pages(Shard[KnownPages, Model]):
    """Twenty pages that are visited, told, planned, in any order."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, lambda store, state: KnownPages(store, 20_000, state), Model())
        self.every = {(number % 3, number) for number in range(20)}
        learn(self.stage, ended(sorted(self.every), Visited.THERE, News.CHANGED, DAY))
        self.model.told = set(self.every)
        self.now = 2 * DAY
        self.planning: Iterator[None] | None = None
        self.save()

    def restart(self) -> None:
        self.planning = None
        super().restart()

    def tell(self, visited: int, news: int) -> None:
        self.planning = None  # visits that ended are told of at the next plan
        self.now += DAY
        some = sorted(self.model.out)[:3]
        learn(self.stage, ended(some, visited, news, self.now))
        self.model.out -= set(some)
        if visited == Visited.GONE:
            self.model.gone |= set(some)
        else:
            self.model.told |= set(some)

    def plan(self, most: int | None) -> None:
        self.planning = None
        self.now += DAY
        there = self.model.waits + len(self.model.told) + self.model.rests
        if most is None:  # then those that are gone are asked for too
            there, self.model.gone = there + len(self.model.gone), set()
        plan(self.stage, self.now, most)
        chosen = there if most is None else min(most, there)  # also of those that waited since the plan before
        assert len(self.stage) == chosen
        self.model.rests, self.model.waits, self.model.told = there - chosen, chosen, set()

    def plan_a_little(self) -> None:
        """A batch of a plan that may never be read to its end. Until it is, what it chose is not handed out."""
        if self.planning is None:
            self.now += DAY
            self.planning = self.stage.plan(self.now, Terms(), by_line=True)
            self.model.rests += len(self.model.told)
            self.model.told = set()
        if next(self.planning, "end") == "end":
            self.planning = None
        moved = len(self.stage) - self.model.waits
        self.model.waits += moved
        self.model.rests -= moved

    def visit(self) -> None:
        found = taken(self.stage, 4)
        assert not set(found) & (self.model.out | self.model.told | self.model.gone)
        assert len(set(found)) == len(found)
        self.model.out |= set(found)
        self.model.waits -= len(found)


STEPS: dict[str, Callable[[Pages], None]] = {
    "visit": Pages.visit,
    "same": lambda pages: pages.tell(Visited.THERE, News.SAME),
    "changed": lambda pages: pages.tell(Visited.THERE, News.CHANGED),
    "failed": lambda pages: pages.tell(Visited.THERE, News.NONE),
    "gone": lambda pages: pages.tell(Visited.GONE, News.NONE),
    "plan all": lambda pages: pages.plan(None),
    "plan 5": lambda pages: pages.plan(5),
    "plan a little": Pages.plan_a_little,
    "save": Pages.save,
    "restart": Pages.restart,
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=40))
def test_each_page_is_in_one_place(tmp_path_factory: Any, steps: list[str]) -> None:
    pages = Pages(tmp_path_factory.mktemp("again"))
    for step in steps:
        STEPS[step](pages)
        assert (len(pages.stage), pages.stage.resting) == (pages.model.waits, pages.model.rests)
    pages.plan(100)
    assert {*taken(pages.stage), *pages.model.out} == pages.every - pages.model.gone
    gone = pages.model.gone
    plan(pages.stage, *((pages.now + DAY, None) if len(steps) % 2 else (pages.now + GONE_S, 100)))
    assert set(taken(pages.stage)) == gone, "seldom, but not never; and in each pass over all pages"
    pages.close()


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard[KnownPages, None]]:
    shard = Shard(tmp_path, lambda store, state: KnownPages(store, 1 << 20, state), None)
    yield shard
    shard.close()


def test_the_oldest_of_equal_pages_come_first_and_lists_before_all(shard: Shard[KnownPages, None]) -> None:
    for number in range(30):
        learn(shard.stage, ended([(1, number)], Visited.THERE, News.CHANGED, DAY * (number + 1)))
    learn(shard.stage, ended([(2, 0), (2, 1)], Visited.THERE, News.CHANGED, DAY * 30, Kind.LISTING))
    plan(shard.stage, 31 * DAY, 12)
    found = taken(shard.stage)
    assert found[:2] == [(2, 0), (2, 1)]
    assert sorted(found[2:]) == [(1, number) for number in range(10)]


def test_who_waited_in_vain_rests_as_it_did_before(shard: Shard[KnownPages, None]) -> None:
    """Of twenty pages that were planned, a pass of five visits has those that change."""
    pages = [(1, number) for number in range(20)]
    for day in range(1, 6):
        learn(shard.stage, ended(pages[:15], Visited.THERE, News.CHANGED if day == 1 else News.SAME, DAY * day))
        learn(shard.stage, ended(pages[15:], Visited.THERE, News.CHANGED, DAY * day))
        plan(shard.stage, DAY * (day + 0.5), None)
        assert len(shard.stage) == 20
        if day < 5:
            taken(shard.stage)
    shard.save()
    shard.restart()
    plan(shard.stage, DAY * 7, 5)
    assert (len(shard.stage), shard.stage.resting) == (5, 15)
    assert set(taken(shard.stage)) == set(pages[15:])
    plan(shard.stage, DAY * 8, None)
    assert set(taken(shard.stage)) == set(pages[:15])


def test_pages_that_change_are_visited_sooner_and_none_is_forgotten(shard: Shard[KnownPages, None]) -> None:
    every = [(number, 0) for number in range(40)]
    busy = set(every[::8])
    learn(shard.stage, ended(every, Visited.THERE, News.CHANGED, DAY))
    visits = dict.fromkeys(every, 0)
    for day in range(2, 102):
        plan(shard.stage, day * DAY, None if day < 8 else 8)
        for one in taken(shard.stage):
            visits[one] += 1
            learn(shard.stage, ended([one], Visited.THERE, News.CHANGED if one in busy else News.SAME, day * DAY))
    seldom = [visits[one] for one in every if one not in busy]
    assert min(visits[one] for one in busy) > 2 * max(seldom)
    assert min(seldom) >= 8


def test_a_page_that_is_too_deep_waits_for_its_level(shard: Shard[KnownPages, None]) -> None:
    for depth in (2, 0, 1):
        batch = ended([(depth, 0)], Visited.THERE, News.CHANGED, DAY)
        place = batch.schema.get_field_index("depth")
        learn(shard.stage, batch.set_column(place, batch.schema.field(place), pa.array([depth], pa.uint16())))
    plan(shard.stage, 2 * DAY, None)
    for level in range(3):
        assert taken(shard.stage, level=level) == [(level, 0)]
        assert shard.stage.spent
        shard.stage.next_level()
    assert not len(shard.stage)


def test_what_was_visited_is_known_with_its_copy(shard: Shard[KnownPages, None]) -> None:
    keys = np.array([at(1, 0).key, at(1, 1).key, at(1, 2).key], np.uint64)
    assert shard.stage.before(keys) is None
    copies = np.zeros(2, COPY)
    copies["offset"], copies["length"] = [77, 0], [5, 0]
    batch = ended([(1, 0), (1, 1)], Visited.MISSING, News.CHANGED, DAY)
    shard.stage.learn(batch, np.array([True, False]), copies)
    plan(shard.stage, 2 * DAY, 0)
    shard.save()
    shard.restart()
    before = shard.stage.before(keys)
    assert before is not None
    assert before.visited.tolist() == [Visited.MISSING, Visited.MISSING, Visited.NEVER]
    assert before.copies["offset"].tolist() == [77, 0, 0]


def test_a_page_that_was_never_seen_again_is_believed_to_be_like_others_of_its_domain(
    shard: Shard[KnownPages, None],
) -> None:
    busy, quiet = [(1, number) for number in range(20)], [(2, number) for number in range(20)]
    learn(shard.stage, ended([*busy, *quiet], Visited.THERE, News.CHANGED, DAY))
    for day in range(2, 6):
        plan(shard.stage, day * DAY, None)
        assert len(taken(shard.stage)) == 40
        learn(shard.stage, ended(busy, Visited.THERE, News.CHANGED, day * DAY))
        learn(shard.stage, ended(quiet, Visited.THERE, News.SAME, day * DAY))
    shard.save()
    shard.restart()
    learn(shard.stage, ended([(1, 100), (2, 100)], Visited.THERE, News.CHANGED, 5 * DAY))
    for _ in shard.stage.plan(6 * DAY, Terms(DAY / 2, 30 * DAY), by_line=True):
        pass
    found = taken(shard.stage)
    assert (1, 100) in found and (2, 100) not in found


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_known_pages_have_their_share_of_what_is_handed_out_while_new_ones_wait(tmp_path: Path, share: float) -> None:
    crawl = Crawl(tmp_path, small_web(1), sizes=Sizes(batch=10, ready=10, ordered=20, asks=3))
    frontier = crawl.frontier
    frontier.supply.revisit_share = share
    known, new = [(1, number) for number in range(400)], [(2, number) for number in range(400)]
    learn(frontier.known_pages, ended(known, Visited.THERE, News.CHANGED, DAY))
    plan(frontier.known_pages, 2 * DAY, None)
    frontier._stages.backlog.put(rows(new), np.zeros(0, np.uint64))
    came = []
    while (batch := frontier.supply.pull(crawl.now, None, dry=True)) is not None:
        came += [page(url)[0] for url in texts(batch)]
    assert abs(came[:400].count(1) - 400 * share) <= 10
    assert sorted(came) == [1] * 400 + [2] * 400
    crawl.close()


def note(again: KnownPages, pages: Sequence[Page], when: float) -> None:
    keys = np.array([at(*one).key for one in pages], np.uint64)
    again.note(pa.RecordBatch.from_arrays([pa.array(keys), pa.array(np.full(len(pages), when))], schema=NEWS))


def test_lists_that_proved_true_bring_visits_and_others_do_not(shard: Shard[KnownPages, None]) -> None:
    """Domain 1 announces its changes, 2 says each day that all has changed; both change alike."""
    rng = np.random.default_rng(3)
    honest, lying = [(1, number) for number in range(40)], [(2, number) for number in range(40)]
    learn(shard.stage, ended([*honest, *lying], Visited.THERE, News.CHANGED, DAY))
    changed: set[Page] = set()
    for day in range(2, 60):
        new = {one for one in [*honest, *lying] if rng.random() < 0.1}
        changed |= new
        note(shard.stage, sorted((new & set(honest)) | set(lying)), (day - 0.5) * DAY)
        plan(shard.stage, day * DAY, 20)
        if day == 30:
            shard.save()
            shard.restart()
        for one in taken(shard.stage):
            learn(shard.stage, ended([one], Visited.THERE, News.CHANGED if one in changed else News.SAME, day * DAY))
            changed.discard(one)
    plan(shard.stage, 60 * DAY, None)
    learn(shard.stage, ended(taken(shard.stage), Visited.THERE, News.SAME, 60 * DAY))
    note(shard.stage, [honest[7], *lying], 60.5 * DAY)
    plan(shard.stage, 61 * DAY, 10)
    found = taken(shard.stage)
    assert honest[7] in found and sum(one in honest for one in found) == 1


def test_a_signal_is_of_no_worth_once_its_page_was_visited(shard: Shard[KnownPages, None]) -> None:
    learn(shard.stage, ended([(1, 0)], Visited.THERE, News.CHANGED, DAY))
    note(shard.stage, [(1, 0)], 2 * DAY)
    plan(shard.stage, 3 * DAY, None)
    learn(shard.stage, ended(taken(shard.stage), Visited.THERE, News.CHANGED, 3 * DAY))
    plan(shard.stage, 4 * DAY, 0)
    assert len(shard.stage._signals.gathered(0.0)) == 0
    assert shard.stage._history._evidence.values_of(np.array([at(1, 0).host], np.uint64))["announced"][0] == 1


def visits_of_days(again: KnownPages, pages: Sequence[Page], days: int, a_day: int) -> dict[Page, int]:
    """How often each of `pages`, which change each fourth day, is visited when there is time for so many visits."""
    learn(again, ended(pages, Visited.THERE, News.CHANGED, DAY))
    visits = dict.fromkeys(pages, 0)
    for day in range(2, 2 + days):
        plan(again, day * DAY, a_day)
        for one in taken(again):
            visits[one] += 1
            news = News.CHANGED if (day + one[1]) % 4 == 0 else News.SAME
            learn(again, ended([one], Visited.THERE, news, day * DAY))
    return visits


def test_heavy_pages_are_visited_more_often_and_light_ones_too(shard: Shard[KnownPages, None]) -> None:
    pages = [(number % 5, number) for number in range(40)]
    heavy = pages[::8]
    keys = np.array([at(*one).key for one in heavy], np.uint64)
    shard.stage.weights = Weights(keys=keys, weights=np.full(len(heavy), 30, np.float32))
    visits = visits_of_days(shard.stage, pages, 60, 4)
    others = [visits[one] for one in pages if one not in heavy]
    assert min(visits[one] for one in heavy) > 2 * max(others) and min(others) > 0


def test_pages_of_domains_that_many_link_to_are_visited_more_often(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, small_web(1))
    domains, again = crawl.frontier.domains, crawl.frontier.known_pages
    again.weights = Weights(by_in_degree=True)
    domains.add(np.array([at(1, 0).domain], np.uint64), in_degree=50)
    pages = [(number % 5, number) for number in range(40)]
    visits = visits_of_days(again, pages, 60, 4)
    of_domain = [sum(count for page, count in visits.items() if page[0] == number) for number in range(5)]
    assert of_domain[1] > 2 * max(of_domain[:1] + of_domain[2:]) and min(visits.values()) > 0
    crawl.close()


def test_pages_that_bring_links_are_visited_more_often_and_none_is_for_those_of_its_first_visit(
    shard: Shard[KnownPages, None],
) -> None:
    pages = [(number % 5, number) for number in range(40)]
    hubs = pages[::8]
    keys = {one: at(*one).key for one in pages}
    shard.stage.note_new_links(np.array([*keys.values()] * 9, np.uint64))  # nothing is known yet
    learn(shard.stage, ended(pages, Visited.THERE, News.CHANGED, DAY))
    visits, last = dict.fromkeys(pages, 0), dict.fromkeys(pages, 1)
    for day in range(2, 62):
        plan(shard.stage, day * DAY, 4)
        for one in taken(shard.stage):
            visits[one] += 1
            if one in hubs:  # two new links a day
                shard.stage.note_new_links(np.array([keys[one]] * (2 * (day - last[one])), np.uint64))
            last[one] = day
            learn(shard.stage, ended([one], Visited.THERE, News.CHANGED, day * DAY))
        if day == 30:
            shard.save()
            shard.restart()
    others = [visits[one] for one in pages if one not in hubs]
    assert min(visits[one] for one in hubs) > 2 * max(others) and min(others) > 0
    rates = shard.stage._new_links.rates_of(np.array([keys[one] for one in pages], np.uint64)) * DAY
    assert [rate > 0 for rate in rates] == [one in hubs for one in pages]
    assert all(0.5 < rate < 4 for rate in rates if rate)


def test_only_urls_that_nobody_had_met_count_for_the_page_they_were_found_on(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, small_web(1))
    again, known, unknown = crawl.frontier.known_pages, at(1, 0).key, at(2, 0).key
    learn(again, ended([(1, 0)], Visited.THERE, News.CHANGED, DAY))

    def find(pages: Sequence[Page], on: int) -> int:
        crawl.frontier.put_links(Links(rows(pages, via=on), np.zeros(len(pages), np.uint64)))
        for _ in crawl.frontier.plan_revisits(2 * DAY, Terms(most=0)):
            pass
        return int(again._new_links._new.values_of(np.array([on], np.uint64))["links"][0])

    assert find([(3, 1), (3, 2)], known) == 0  # of its first visit: no plan was made since
    assert find([(3, 2), (3, 3), (3, 4)], known) == 2
    assert find([(3, 4), (3, 5)], unknown) == 0
    assert find([(3, 5)], known) == 2
    crawl.close()
