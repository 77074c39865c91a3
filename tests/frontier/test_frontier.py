"""The laws of the whole: every page is fetched once, whatever the settings, and a crawl knows when it is done."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontier.small_web import FAR, Crawl, SmallWeb, counted, places, small_web
from fyke.core.batches import Kind, concat, texts, url_batch
from fyke.core.config import CrawlSection, Enforcement, Scope
from fyke.core.messages import Links, Rules
from fyke.core.slices import whole
from fyke.core.urls import key_of, locate, pay_level_domain, split
from fyke.frontier.sizes import Sizes

SMALL = {"table_memory_bytes": 100}


SMALL_SIZES = Sizes(batch=16, ready=10, ordered=20, asks=3, looked_up=4)  # so small that a few pages fill every stage


def check_done(crawl: Crawl, expected: set[str]) -> None:
    """Everything was fetched once, the rest was refused, and nothing is left or ever moves again."""
    assert set(crawl.model.done) == expected
    assert set(crawl.model.done.values()) <= {1}
    assert not any(crawl.web.open(url) for url in crawl.model.refused)
    assert set(crawl.model.refused.values()) <= {1}
    for _ in range(3):
        assert crawl.frontier.empty
        whole(crawl.frontier.steps(crawl.now, may_merge=True))
    assert not whole(crawl.frontier.steps(crawl.now, may_merge=True))
    assert crawl.frontier.empty
    assert not crawl.waiting()
    assert crawl.frontier.statistics().rows == 0


@pytest.mark.parametrize("enforcement", list(Enforcement))
@pytest.mark.parametrize(
    "options",
    [
        {"order": "breadth-first", "budget": "reputation", **SMALL},
        {"order": "depth", "budget": "equal", "default_budget_urls": 2},
        {"order": "in-degree", "budget": "equal", "default_budget_urls": 1, **SMALL},
        {"order": "random", "budget": "reputation", "default_budget_urls": 65_535},
        {"order": "patterns", "order_patterns": ["far", "/[0-3]$"]},
    ],
    ids=lambda options: options["order"],
)
def test_every_page_is_fetched_once(tmp_path: Path, options: dict[str, Any], enforcement: Enforcement) -> None:
    web = small_web(1)
    crawl = Crawl(tmp_path, web, sizes=SMALL_SIZES, enforcement=enforcement, **options)
    crawl.finish(most_turns=600)
    check_done(crawl, set(web.distances()))
    crawl.close()


@pytest.mark.parametrize("enforcement", list(Enforcement))
def test_a_large_crawl_is_no_other(tmp_path: Path, enforcement: Enforcement) -> None:
    web = small_web(2, domains=30, pages=20, spam=2000)
    crawl = Crawl(tmp_path, web, enforcement=enforcement, default_budget_urls=5, table_memory_bytes=20_000)
    crawl.finish(most_turns=2000)
    check_done(crawl, set(web.distances()))
    crawl.close()


STEPS = st.one_of(
    st.tuples(st.just("turn"), st.none()),
    st.tuples(st.just("turn"), st.none()),
    st.tuples(st.just("fetch"), st.none()),
    st.tuples(st.just("save"), st.none()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("rest"), st.sampled_from([0.0, 1.0, 40.0])),
)


def all_is_somewhere(crawl: Crawl) -> None:
    """What was seen waits in one place, is leased, or came out; statistics say as much."""
    progress, told = crawl.model, crawl.frontier.statistics()
    found = counted(places(crawl.frontier))
    unchecked = found.pop("to be checked against the URLs seen", Counter[str]())
    waiting = sum(found.values(), Counter[str]())
    assert told.rows == waiting.total()
    somewhere = waiting + progress.done + progress.refused
    assert set(somewhere.values()) <= {1}
    assert told.unique == somewhere.total()
    assert told.unchecked >= unchecked.total()


@pytest.mark.parametrize("kinds", list(product(Enforcement, repeat=3)), ids="-".join)
def test_no_url_is_lost_if_budgets_are_enforced_in_another_way(tmp_path: Path, kinds: Sequence[Enforcement]) -> None:
    web = small_web(4, domains=8, pages=12, spam=60)
    crawl = Crawl(tmp_path, web, sizes=SMALL_SIZES, enforcement=kinds[0], default_budget_urls=2)
    over_budget = []
    for kind in kinds[1:]:
        for _ in range(8):
            crawl.turn()
            crawl.fetch()
        over_budget.append(crawl.frontier.statistics().over_budget)
        crawl.save()
        crawl.enforce(kind)
        all_is_somewhere(crawl)
    assert [kind == Enforcement.NONE for kind in kinds[:2]] == [not urls for urls in over_budget]
    crawl.finish(most_turns=600)
    check_done(crawl, set(web.distances()))
    crawl.close()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEPS, max_size=30),
    enforcement=st.sampled_from(list(Enforcement)),
    options=st.sampled_from(
        [SMALL, {"order": "depth", "default_budget_urls": 2}, {"default_budget_urls": 3, "table_memory_bytes": 100}]
    ),
    window=st.sampled_from([2, 20, 100]),
    begun=st.sampled_from([0, 6, 12]),
)
def test_a_crawl_that_was_killed_goes_on(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, Any]],
    enforcement: Enforcement,
    options: dict[str, Any],
    window: int,
    begun: int,
) -> None:
    web = small_web(3, domains=6, pages=4, spam=30)
    crawl = Crawl(
        tmp_path_factory.mktemp("crawl"),
        web,
        sizes=Sizes(batch=16, ready=10),
        enforcement=enforcement,
        window_visits=window,
        **options,
    )
    for _ in range(begun):
        crawl.turn()
        crawl.fetch()
    crawl.save()
    for step, argument in steps:
        if step == "rest":
            crawl.now += argument
        else:
            getattr(crawl, step)()
        all_is_somewhere(crawl)
    crawl.save()
    crawl.restart()
    crawl.finish(most_turns=400)
    check_done(crawl, set(web.distances()))
    crawl.close()


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_a_depth_limit_is_exact(tmp_path: Path, depth: int) -> None:
    """Whatever the way by which a page was met first; killed and opened again in the midst of it."""
    web = small_web(4, far=8)
    crawl = Crawl(tmp_path, web, CrawlSection(scope=Scope.WEB, depth=depth), sizes=SMALL_SIZES, default_budget_urls=2)

    def sometimes_killed() -> None:
        if crawl.turns % 10 == 0:
            crawl.save()
        if crawl.turns % 13 == 0:
            crawl.restart()

    crawl.finish(sometimes_killed, most_turns=900)
    distances = web.distances()
    check_done(crawl, {page for page, distance in distances.items() if distance <= depth})
    assert crawl.model.depths == {page: distances[page] for page in crawl.model.done}
    crawl.close()


# --- the parts together


def test_domains_are_counted(tmp_path: Path) -> None:
    web = small_web(5)
    crawl = Crawl(tmp_path, web, default_budget_urls=3)
    crawl.finish()
    domain_of = {url: pay_level_domain(split(url).host) for url in web.links}
    urls, fetched, neighbours = Counter[str](), Counter[str](), dict[str, set[str]]()
    for url in set(web.distances()) | set(crawl.model.refused):
        urls[domain_of[url]] += 1
        fetched[domain_of[url]] += url in crawl.model.done
    for page in crawl.model.done:
        for target in web.links[page]:
            if domain_of[target] != domain_of[page]:
                neighbours.setdefault(domain_of[target], set()).add(domain_of[page])
    told = {
        name: (int(record["urls"]), int(record["fetched"]), int(record["in_degree"]))
        for names, records in crawl.frontier.domains.named()
        for name, record in zip(names, records, strict=True)
    }
    assert told == {name: (urls[name], fetched[name], len(neighbours.get(name, ()))) for name in urls}
    assert crawl.frontier.statistics().domains == len(urls)
    assert crawl.frontier.statistics().edges == sum(map(len, neighbours.values()))
    crawl.close()


@pytest.mark.parametrize("enforcement", [Enforcement.BEAST, Enforcement.NAIVE])
def test_one_domain_costs_star_and_beast_nothing(tmp_path: Path, enforcement: Enforcement) -> None:
    web = small_web(6, domains=1, pages=40, spam=5)
    web = replace(web, seeds=web.seeds[:1])
    crawl = Crawl(tmp_path, web, CrawlSection(scope=Scope.DOMAIN), enforcement=enforcement)

    def nothing_but_the_backlog() -> None:
        assert len(crawl.frontier._stages.beast) == crawl.frontier.star.pending == crawl.frontier.star.edges == 0
        all_is_somewhere(crawl)
        crawl.save()
        names = crawl.checkpoint.store.lengths()
        assert not [name for name in names if name.startswith(("beast", "edges", "ranking"))]

    crawl.finish(nothing_but_the_backlog)
    inside = {url for url in web.distances() if pay_level_domain(split(url).host) == "d0.example"}
    check_done(crawl, inside)
    ((names, records),) = crawl.frontier.domains.named()
    assert names == ["d0.example"]
    assert records["fetched"].tolist() == [len(inside)]
    crawl.close()


def test_spam_gets_no_more_than_its_budget(tmp_path: Path) -> None:
    """Each page of a farm leads to six others, each honest one to two: without budgets the farm is all one sees."""
    honest = [f"http://www.d{n % 50}.example/{n}" for n in range(400)]
    farm = [f"http://h{n}.spam.example/" for n in range(2000)]
    links = {page: honest[2 * n + 1 : 2 * n + 3] for n, page in enumerate(honest)}
    links |= {page: farm[6 * n + 1 : 6 * n + 7] for n, page in enumerate(farm)}
    web = SmallWeb(links, [honest[0], farm[0]])

    def spam(enforcement: Enforcement) -> int:
        crawl = Crawl(
            tmp_path / enforcement,
            web,
            sizes=SMALL_SIZES,
            enforcement=enforcement,
            default_budget_urls=3,
            budget="equal",
            window_visits=20,
        )
        while crawl.model.done.total() < 300:
            crawl.turn()
            crawl.fetch()
        crawl.close()
        return sum("spam" in url for url in crawl.model.done)

    assert spam(Enforcement.BEAST) < 100
    assert spam(Enforcement.NONE) > 200


def test_what_is_never_popular_does_not_keep_the_crawl_from_its_end(tmp_path: Path) -> None:
    """What becomes popular is fetched then, though it had no budget when it was met."""
    web = small_web(8)
    web = replace(web, seeds=[next(page for page in web.links if f"d{domain}.example" in page) for domain in range(6)])
    crawl = Crawl(tmp_path, web, sizes=Sizes(ranked=10, met_a_place=1), budget="popular", max_budget_urls=3)
    crawl.finish(most_turns=500)
    assert set(web.seeds) < set(crawl.model.done) < set(web.distances())
    assert crawl.frontier.empty
    left = crawl.waiting()
    assert set(left) & set(crawl.model.done) == set()
    assert left.total() == crawl.frontier.statistics().over_budget > 0
    for url in left:
        domain = locate(url).domain
        record = crawl.frontier.domains.of(domain)
        assert record is not None
        budgets = crawl.frontier.star.budgets(np.array([domain], np.uint64), record["in_degree"].reshape(1))
        assert budgets.tolist() == [0]
    crawl.save()
    crawl.restart()
    crawl.finish(most_turns=20)
    assert crawl.waiting() == left
    crawl.close()


def test_a_turn_without_anything_to_do_says_so(tmp_path: Path) -> None:
    """Also while robots.txt are on their way and while a server is tried again later: the caller may rest."""
    home = "http://a.example/"
    crawl = Crawl(tmp_path, SmallWeb({home: []}, [home]))

    def still() -> bool:
        return not any([whole(crawl.frontier.steps(crawl.now, may_merge=True)) for _ in range(6)][-3:])

    assert not crawl.frontier.empty
    assert still()
    assert not crawl.frontier.empty
    assert texts(crawl.frontier.visits(crawl.now, 10)) == [f"{home}robots.txt"]
    assert still()
    crawl.learn(split(home).origin, Rules.UNREACHABLE, crawl.now + 60)
    assert still()
    crawl.now += 61
    assert whole(crawl.frontier.steps(crawl.now, may_merge=True))
    assert texts(crawl.frontier.visits(crawl.now, 10)) == [f"{home}robots.txt"]
    crawl.learn(split(home).origin, Rules.OPEN, crawl.now + FAR)
    assert still()
    assert texts(crawl.frontier.visits(crawl.now, 10)) == [home]
    crawl.close()


def test_a_turn_says_when_qf_is_to_be_read_again(tmp_path: Path) -> None:
    """Else a caller that rests when nothing moved would rest before every reading."""
    home = "http://a.example/"
    web = SmallWeb({home: [], **{f"{home}{n}": [] for n in range(40)}}, [home, *(f"{home}{n}" for n in range(40))])
    crawl = Crawl(tmp_path, web, sizes=Sizes(looked_up=0), default_budget_urls=1, budget="equal")
    rests = unweighed = 0
    while len(crawl.model.done) < len(web.links):
        rests += not crawl.turn()
        whole(crawl.frontier.steps(crawl.now, may_merge=False))
        unweighed = max(unweighed, crawl.frontier.statistics().unweighed)
        all_is_somewhere(crawl)
        crawl.fetch()
    assert rests <= 1
    assert unweighed > 0
    crawl.close()


def test_only_what_will_soon_be_needed_is_pulled_through(tmp_path: Path) -> None:
    """A round is not emptied into the gate while the rules of its hosts are not known."""
    pages = [f"http://h{n}.d{n % 100}.example/" for n in range(1000)]
    crawl = Crawl(tmp_path, SmallWeb({page: [] for page in pages}, pages), sizes=Sizes(ready=100, batch=50))
    whole(crawl.frontier.steps(crawl.now, may_merge=True))
    assert crawl.frontier.statistics().without_rules <= 150
    crawl.finish()
    check_done(crawl, set(pages))
    crawl.close()


def test_a_link_that_is_refused_hides_no_other(tmp_path: Path) -> None:
    """A page too far away, or outside, may be met again in the same batch by a way that is allowed."""
    home, outside = locate("http://a.example/"), locate("http://b.example/picture")
    crawl = Crawl(tmp_path, SmallWeb({"http://a.example/": []}, ["http://a.example/"]), CrawlSection(scope=Scope.HOST))
    found = [(outside, Kind.PAGE), (outside, Kind.REQUISITE)]
    urls = url_batch([at for at, _ in found], depth=1, kind=[kind for _, kind in found])
    crawl.frontier.put_links(Links(urls, np.full(2, home.domain, np.uint64)))
    crawl.web = SmallWeb({"http://a.example/": [], outside.url.decode(): []}, crawl.web.seeds)
    crawl.finish()
    check_done(crawl, {"http://a.example/", outside.url.decode()})
    crawl.close()


def test_a_requisite_beyond_the_scope_is_handed_out_as_one(tmp_path: Path) -> None:
    """Also after a kill, and when it came back unfetched: what it needs is no requisite of a page in scope."""
    home, near, far = (locate(f"http://{name}.example/") for name in ("a", "near.a", "b"))
    pages = {at.url.decode(): [] for at in (home, near, far)}
    crawl = Crawl(tmp_path, SmallWeb(pages, [home.url.decode()]), CrawlSection(scope=Scope.DOMAIN))
    found = url_batch([near, far], depth=1, kind=Kind.REQUISITE)
    crawl.frontier.put_links(Links(found, np.full(2, home.domain, np.uint64)))

    def handed_out() -> dict[str, int]:
        while len(crawl.frontier._stages.window) < 3:
            crawl.turn()
        leased = [url for urls in crawl.model.leased for url in urls.to_pylist()]
        return {url["url"].decode(): url["kind"] for url in leased}

    expected = dict(zip(pages, (Kind.SEED, Kind.REQUISITE, Kind.BEYOND), strict=True))
    assert handed_out() == expected
    crawl.save()
    crawl.restart()
    assert handed_out() == expected
    crawl.frontier.take_back(concat(crawl.model.leased))
    crawl.model.leased = []
    assert handed_out() == expected
    crawl.finish()
    check_done(crawl, set(pages))
    crawl.close()


class Broken:
    """A plug-in of every kind that does nothing but raise."""

    def budgets(self, in_degree: Any, standing: Any) -> Any:
        raise RuntimeError("broken")

    def levels(self, urls: Any) -> Any:
        raise RuntimeError("broken")


def test_broken_plug_ins_neither_end_nor_widen_a_crawl(tmp_path: Path) -> None:
    web = small_web(9, domains=5)
    broken = f"{__name__}:Broken"
    crawl = Crawl(tmp_path, web, budget=broken, order=broken)
    crawl.finish()
    check_done(crawl, set(web.distances()))
    assert crawl.frontier.plugin_failures["Broken"] > 0
    crawl.close()


def test_another_process_sees_where_a_url_waits(tmp_path: Path) -> None:
    """`fyke why` asks the files of a checkpoint; STAR's rows without a URL are nowhere."""
    web = small_web(10)
    crawl = Crawl(tmp_path, web, default_budget_urls=2, window_visits=10)
    for _ in range(12):
        crawl.turn()
        crawl.fetch()
        crawl.save()
        all_is_somewhere(crawl)
        assert all(crawl.frontier._stages.seen.holds(key_of(url)) or url in crawl.waiting() for url in crawl.model.done)
    crawl.close()
