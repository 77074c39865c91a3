"""The loop by itself: the real frontier, outbox and keeper, between a fetcher and a worker that are a web in a dict."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busy import note_busy
from frontier.shard import Shard
from frontier.small_web import FAR, UNCHECKED, SmallWeb, counted, places, small_web
from fyke.core.batches import EMPTY, Kind, keep, numbers, texts, url_batch
from fyke.core.clock import VirtualClock
from fyke.core.config import CrawlSection, FrontierSection, Scope
from fyke.core.messages import Links, Rules
from fyke.core.outcomes import Outcome
from fyke.core.pace import LIGHT_S, Pace
from fyke.core.slices import Steps, whole
from fyke.core.urls import locate, split
from fyke.core.visits import Visit, visits_of
from fyke.crawl import loop as loop_module
from fyke.crawl.engines import Engines
from fyke.crawl.keeper import Keeper
from fyke.crawl.loop import GRACE_S, LINK_BYTES, Ending, Loop
from fyke.crawl.outbox import LinkCache, Outbox
from fyke.crawl.past import Past
from fyke.crawl.post.alone import Alone
from fyke.crawl.post.events import LinksCame
from fyke.crawl.post.office import Office
from fyke.crawl.remote import Remote
from fyke.disk import operations, pending
from fyke.disk.store import Store
from fyke.fetcher.fetcher import Fetcher
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier
from fyke.frontier.sizes import Sizes

SMALL = Sizes(batch=16, ready=10)
ASKED = CrawlSection(scope=Scope.WEB)


@pytest.fixture(autouse=True, scope="module")
def nobody_lingers() -> Iterator[None]:
    """The clock of these loops stands still meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module, "LINGER_S", 0.0)
        yield


class DictFetcher:
    """Answers up to `at_a_time` of what it holds in each turn; `pages` are what it may bring, 0 for any number."""

    def __init__(self, web: SmallWeb, *, at_a_time: int = 5, pages: int = 0, answers: bool = True) -> None:
        self.web = web
        self.at_a_time = at_a_time
        self.most_pages = pages
        self.answers = answers
        self.held: list[Visit] = []
        self.rules: list[str] = []
        self.over: list[tuple[Visit, Outcome]] = []
        self.given: Counter[str] = Counter()
        self.brought = 0
        self.stopped = self.aborted = self.reads = False

    rules_room = 4

    @property
    def in_flight(self) -> int:
        return len(self.held)

    @property
    def ended(self) -> int:
        return len(self.over)

    @property
    def idle(self) -> bool:
        return not (self.held or self.rules or self.over or self.reads)

    @property
    def has_its_pages(self) -> bool:
        return 0 < self.most_pages <= self.brought

    @property
    def unreached(self) -> bool:
        return not self.answers and self.brought == 0 and bool(self.given)

    def put(self, visits: pa.RecordBatch) -> None:
        rules = numbers(visits, "kind") == Kind.RULES
        self.rules += [split(visit.url).origin for visit in visits_of(keep(visits, rules))]
        pages = visits_of(keep(visits, ~rules))
        self.given.update(visit.url for visit in pages)
        self.held += pages

    def recall(self, host: int) -> pa.RecordBatch:
        return EMPTY

    def refuse(self, visits: pa.RecordBatch) -> None:
        self.over += [(visit, Outcome.ROBOTS_FORBADE) for visit in visits_of(visits)]

    def take(self, *, exchanges: bool = True) -> tuple[list[tuple[Visit, Outcome]], list[str]]:
        if not exchanges:
            return [], []
        taken = self.over, self.rules
        self.over, self.rules = [], []
        return taken

    def give_back(self, pages: int) -> None:
        self.brought -= pages

    def pump(self) -> None:
        if self.answers and not self.stopped:
            come, self.held = self.held[: self.at_a_time], self.held[self.at_a_time :]
            self.brought += len(come)
            # What was refused as a crawl was killed is handed out again: a fetcher asks the rules itself.
            self.over += [(visit, Outcome.OK if self.web.open(visit.url) else Outcome.ROBOTS_FORBADE) for visit in come]

    def stop(self) -> None:
        self.stopped = True

    def abort(self) -> None:
        self.aborted = True
        self.held.clear()


class DictWorker:
    """Keeps what came, then tells of it."""

    body_bytes = 0

    def __init__(self, web: SmallWeb, clock: VirtualClock) -> None:
        self.web, self.clock = web, clock
        self.kept: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.fails = False

    @property
    def answered(self) -> bool:
        return bool(self.kept)

    waiting = 0
    behind = crowded = False

    def gather(self, fetched: tuple[list[tuple[Visit, Outcome]], list[str]], outbox: Outbox) -> Steps[int]:
        ended, origins = fetched
        for visit, outcome in ended:
            if self.fails:
                raise RuntimeError("the disk is full")
            if outcome is Outcome.OK:
                self.kept[visit.url] += 1
                found = [locate(target) for target in self.web.links[visit.url]]
                urls = url_batch(found, via=visit.key, depth=visit.depth + 1)
                outbox.put_links(Links(urls, np.full(len(found), visit.domain, np.uint64)))
            else:
                self.refused[visit.url] += 1
            outbox.put_ended(visit, outcome)
            if outcome is Outcome.OK:
                outbox.put_judged(visit, visit.key % 5 == 0)  # so most of it are traps, which are fetched all the same
        for origin in origins:
            rules = Rules.OPEN if self.web.open(f"{origin}/") else Rules.CLOSED
            outbox.put_learned(origin, rules, self.clock.now() + FAR)
        yield
        return 0


class FoundElsewhere(Alone):
    """A post with links that another agent found."""

    def __init__(self, links: list[Links]) -> None:
        self.links = links

    def receive(self, now: float) -> list[LinksCame]:
        links, self.links = self.links, []
        return [LinksCame(one, EMPTY) for one in links]


class OneByOne(DictFetcher):
    """Ends what it holds one by one, in each round of the event loop one; tells `news` of each."""

    def __init__(self, web: SmallWeb, visits: int, news: asyncio.Event) -> None:
        super().__init__(web, answers=False)
        self.left, self.news = visits, news
        self.takes: list[int] = []

    @property
    def in_flight(self) -> int:
        return self.left

    def end_one(self) -> None:
        if self.left:
            self.left -= 1
            self.over.append((self.held[0], Outcome.OK))
            self.news.set()
            asyncio.get_running_loop().call_soon(self.end_one)

    def take(self, *, exchanges: bool = True) -> tuple[list[tuple[Visit, Outcome]], list[str]]:
        self.takes.append(len(self.over))
        return super().take(exchanges=exchanges)


class SmallCrawl(Shard[Frontier, Counter[str]]):
    """A loop over `web` in `directory`; the model is what the worker has kept."""

    def __init__(
        self, directory: Path, web: SmallWeb, asked: CrawlSection = ASKED, link_bytes: int = LINK_BYTES, **fetcher: Any
    ) -> None:
        self.web, self.asked, self.how = replace(web, failing={}), asked, fetcher
        self.link_bytes = link_bytes
        self.clock = VirtualClock()
        self.seeds = [locate(seed) for seed in web.seeds]
        super().__init__(directory, self._opened, Counter())
        self._begin()
        self.stage.put_seeds(self.seeds)

    def _opened(self, store: Store, state: Mapping[str, Any]) -> Frontier:
        return Frontier(
            store,
            FrontierSection(window_visits=20, trap_pages=2),
            filters_for(self.asked, self.seeds, ("http", "https"), []),
            by_level=False,
            host_delay_s=1.0,
            few_visits=0,
            opened_at=self.clock.now(),
            state=state,
            sizes=SMALL,
        )

    def _begin(self) -> None:
        self.fetcher = DictFetcher(self.web, **self.how)
        self.worker = DictWorker(self.web, self.clock)
        self.worker.kept = Counter(self.model)
        self.engines = Engines(self.stage, self.fetcher, self.worker, Outbox(LinkCache(100, by_depth=False)))
        self.go_on()

    def go_on(self) -> None:
        """A new loop over the same engines."""
        self.news = asyncio.Event()
        self.loop = Loop(self.engines, self.asked, self.clock, self.news, link_bytes=self.link_bytes)
        self.fetcher.stopped = self.fetcher.aborted = False

    def turn(self) -> None:
        self.loop.turn()
        self.clock.advance(0.25)

    def save(self) -> None:
        """A checkpoint between turns, as `Loop.run` takes one."""
        self.loop.settle()
        self.model = Counter(self.worker.kept)
        super().save()

    def restart(self) -> None:
        super().restart()
        self._begin()
        self.stage.resume()

    def run(self, every_s: float = 1e9) -> Ending:
        """Until the end; time passes while the loop rests."""
        keeper = Keeper(self.checkpoint, {"stage": self.stage}, {}, self.clock, every_s)

        async def passing() -> None:
            while True:
                await asyncio.sleep(0)
                self.turn_of_others()

        async def crawl() -> Ending:
            time = asyncio.create_task(passing())
            try:
                return await self.loop.run(keeper)
            finally:
                time.cancel()

        ending = asyncio.run(crawl())
        self.taken = keeper.taken
        return ending

    def turn_of_others(self) -> None:
        """What comes in each round of the event loop."""
        if not self.news.is_set():  # else the loop has yet to look
            self.clock.advance(0.25)
            self.news.set()

    def waiting(self) -> Counter[str]:
        """The visits that wait. What is yet to be checked against the URLs seen is none: a kept page may be in it."""
        found = counted(places(self.stage))
        found.pop(UNCHECKED, None)
        return sum(found.values(), Counter[str]())


def test_every_page_is_kept_once_and_the_crawl_knows_its_end(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path, small_web(2))
    assert crawl.run(every_s=1.0) is Ending.FINISHED
    assert crawl.worker.kept == Counter(dict.fromkeys(crawl.web.distances(), 1))
    assert all(not crawl.web.open(url) for url in crawl.worker.refused)
    assert crawl.worker.refused
    assert crawl.taken > 1
    assert crawl.fetcher.stopped
    assert crawl.stage._stages.traps.barren, "some of it waited for all else"
    assert crawl.loop.idle
    crawl.close()


def test_few_origins_are_handed_out_in_a_turn_to_be_asked_for_their_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a look at the host book."""
    monkeypatch.setattr(loop_module, "RULES_A_STEP", 1)
    crawl = SmallCrawl(tmp_path, small_web(2))
    put, asked = crawl.fetcher.put, []

    def noted(visits: pa.RecordBatch) -> None:
        asked.append(int((numbers(visits, "kind") == Kind.RULES).sum()))
        put(visits)

    monkeypatch.setattr(crawl.fetcher, "put", noted)
    assert crawl.run(every_s=1.0) is Ending.FINISHED
    assert max(asked) == 1 and sum(asked) > 1
    assert crawl.worker.kept == Counter(dict.fromkeys(crawl.web.distances(), 1))
    crawl.close()


def test_traps_wait_while_a_page_that_may_lead_on_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pages of a list in which each leads to the next, nothing else is left for a moment."""
    crawl = SmallCrawl(tmp_path, small_web(2))
    frontier, now = crawl.stage, crawl.clock.now()
    while not len(frontier._stages.traps):
        crawl.turn()
    monkeypatch.setattr(type(frontier._stages), "others_wait", False)
    for _ in range(100):
        whole(frontier.steps(now, may_merge=True, quiet=False))
    waiting = len(frontier._stages.traps)
    assert waiting and not whole(frontier.steps(now, may_merge=True, quiet=False))
    assert len(frontier._stages.traps) == waiting
    assert whole(frontier.steps(now, may_merge=True, quiet=True))
    assert len(frontier._stages.traps) < waiting
    crawl.close()


def test_the_frontier_knows_when_nothing_is_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = SmallCrawl(tmp_path, small_web(2))
    steps, told = crawl.stage.steps, []

    def noted(now: float, *, may_merge: bool, quiet: bool) -> Steps[bool]:
        told.append(quiet)
        return steps(now, may_merge=may_merge, quiet=quiet)

    monkeypatch.setattr(crawl.stage, "steps", noted)
    crawl.fetcher.reads = True
    for _ in range(5):
        crawl.turn()
    assert told == [False] * 5
    crawl.fetcher.reads = False
    assert crawl.run() is Ending.FINISHED
    assert told[-1]
    crawl.close()


def test_what_shows_nothing_new_is_known_as_soon_as_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others like it are fetched until then, while outcomes wait for a message that is worth its cost."""
    crawl = SmallCrawl(tmp_path, small_web(2))
    knows: set[str] = set()
    learn = crawl.stage.learn

    def learning(judged: pa.RecordBatch) -> Steps[None]:
        knows.update(texts(judged))
        return learn(judged)

    monkeypatch.setattr(crawl.stage, "learn", learning)
    read: set[str] = set()
    while len(read) < 20:
        crawl.turn()
        whole(crawl.loop._gather())
        read = {url for url in crawl.worker.kept if locate(url).key % 5}
        assert read <= knows
    crawl.close()


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.sampled_from(["turn", "turn", "turn", "save", "restart"]), max_size=60),
    link_bytes=st.sampled_from([1, 50, LINK_BYTES]),
)
def test_at_a_checkpoint_each_visit_is_kept_or_waits(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], link_bytes: int
) -> None:
    """Also what was handed out; so a kill at any turn loses nothing, and what was kept is not fetched again."""
    web = small_web(3, domains=5, pages=4, spam=20)
    crawl = SmallCrawl(tmp_path_factory.mktemp("loop"), web, link_bytes=link_bytes, at_a_time=3)
    crawl.save()
    for step in steps:
        getattr(crawl, step)()
        if step == "save":
            waits = crawl.waiting()
            assert not set(waits) & set(crawl.worker.kept)
            assert {visit.url for visit in crawl.fetcher.held} <= set(waits)
    assert crawl.run() is Ending.FINISHED
    assert crawl.worker.kept == Counter(dict.fromkeys(crawl.web.distances(), 1))
    crawl.close()


def test_it_ends_at_its_pages_at_its_time_and_when_it_is_told(tmp_path: Path) -> None:
    web = small_web(4)
    few = SmallCrawl(tmp_path / "few", web, pages=7)
    assert few.run() is Ending.PAGES
    assert 7 <= few.worker.kept.total() <= 7 + few.fetcher.at_a_time

    short = SmallCrawl(tmp_path / "short", web, CrawlSection(scope=Scope.WEB, for_s=30.0), at_a_time=0)
    began = short.clock.now()
    assert short.run() is Ending.TIME
    assert short.clock.now() - began >= 30.0

    told = SmallCrawl(tmp_path / "told", web)
    told.loop.stop()
    assert told.run() is Ending.STOPPED
    for crawl in (few, short, told):
        crawl.close()


def test_it_says_that_no_server_answers_only_when_none_ever_did(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path, small_web(5), answers=False)
    assert crawl.run() is Ending.UNREACHED
    crawl.go_on()
    crawl.worker.kept["http://earlier.example/"] = 1
    crawl.loop.stop()
    assert crawl.run() is Ending.STOPPED
    crawl.close()


def test_what_waits_for_a_blocked_host_is_no_end(tmp_path: Path) -> None:
    web = SmallWeb({"http://a.example/": ["http://b.example/"], "http://b.example/": []}, ["http://a.example/"])
    crawl = SmallCrawl(tmp_path, web)
    host = locate("http://b.example/").host
    crawl.stage.block([host])
    assert crawl.run() is Ending.BLOCKED
    assert set(crawl.worker.kept) == {"http://a.example/"}
    assert crawl.stage.unblock([host]) == 1
    crawl.go_on()
    assert crawl.run() is Ending.FINISHED
    assert set(crawl.worker.kept) == set(web.links)
    crawl.close()


def test_what_is_under_way_at_the_end_has_its_time_and_then_waits(tmp_path: Path) -> None:
    """What came in that time is kept and told of; what did not come is in the window still."""
    crawl = SmallCrawl(tmp_path, small_web(6), at_a_time=0)
    while not crawl.fetcher.held:
        crawl.turn()
    under_way = [visit.url for visit in crawl.fetcher.held]
    came, crawl.fetcher.held = crawl.fetcher.held[:1], crawl.fetcher.held[1:]
    crawl.fetcher.over += [(visit, Outcome.OK) for visit in came]
    began = crawl.clock.now()
    crawl.loop.stop()
    assert crawl.run() is Ending.STOPPED
    assert crawl.fetcher.aborted
    assert crawl.clock.now() - began >= GRACE_S
    assert crawl.worker.kept == Counter([came[0].url])
    assert {url for urls in crawl.stage._stages.window.rows() for url in texts(urls)} == set(under_way) - {came[0].url}
    crawl.close()


def test_a_failure_ends_the_crawl_and_what_failed_is_not_told_of(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path, small_web(7))
    crawl.save()
    crawl.worker.fails = True
    with pytest.raises(RuntimeError, match="the disk is full"):
        crawl.run()
    assert not crawl.worker.kept
    crawl.restart()
    assert crawl.run() is Ending.FINISHED
    assert set(crawl.worker.kept) == set(crawl.web.distances())
    crawl.close()


@pytest.mark.parametrize("rounds", range(1, 40, 2))
def test_a_checkpoint_of_a_crawl_that_was_cancelled_in_the_midst_of_a_turn_is_whole(
    tmp_path: Path, rounds: int
) -> None:
    crawl = SmallCrawl(tmp_path, small_web(2))
    keeper = Keeper(crawl.checkpoint, {"stage": crawl.stage}, {}, crawl.clock, 1e9)

    async def cancelled() -> None:
        running = asyncio.create_task(crawl.loop.run(keeper))
        for _ in range(rounds):
            await asyncio.sleep(0)
            crawl.clock.advance(0.25)
            crawl.news.set()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    crawl.save()
    crawl.restart()
    assert crawl.run() is Ending.FINISHED
    assert crawl.worker.kept == Counter(crawl.web.distances().keys())
    crawl.close()


def test_what_ended_waits_for_what_is_about_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn costs as much for one page as for ten; but the last page waits for nothing."""
    monkeypatch.setattr(loop_module, "LINGER_S", 0.2)
    crawl = SmallCrawl(tmp_path, small_web(2))
    visits = 200

    async def pages_of_turns() -> list[int]:
        news = asyncio.Event()
        fetcher = OneByOne(crawl.web, visits, news)
        fetcher.held = visits_of(url_batch([locate("http://one.example/")]))
        crawl.worker.web = replace(crawl.web, links={"http://one.example/": []})
        loop = Loop(replace(crawl.engines, fetcher=fetcher), ASKED, crawl.clock, news)
        fetcher.end_one()
        running = asyncio.create_task(loop.run(Keeper(crawl.checkpoint, {}, {}, crawl.clock, 1e9)))
        while fetcher.left or fetcher.over:
            await asyncio.sleep(0)
        crawl.fetcher.abort()  # the clock stands still: nobody would wait for it in vain
        loop.stop()
        await running
        return fetcher.takes

    takes = asyncio.run(pages_of_turns())
    assert sum(takes) == visits
    assert sum(map(bool, takes)) <= visits / 4
    crawl.close()


def test_a_long_turn_is_no_quiet_in_which_heavy_work_goes_on(tmp_path: Path) -> None:
    """Nothing light can end during a step, however slow the machine is."""
    crawl = SmallCrawl(tmp_path, small_web(2))
    pace = Pace(crawl.clock)
    loop = Loop(replace(crawl.engines, pace=pace), ASKED, crawl.clock, crawl.news)
    busy: list[bool] = []

    def long_steps() -> Steps[None]:
        for _ in range(5):
            crawl.clock.advance(10 * LIGHT_S)
            yield
            busy.append(pace.busy)
        crawl.clock.advance(10 * LIGHT_S)

    note_busy(pace)
    asyncio.run(loop._take(long_steps()))
    assert busy == [True] * 5 and pace.busy
    crawl.clock.advance(1.1 * LIGHT_S)
    assert not pace.busy
    crawl.close()


def test_what_ends_without_being_under_way_holds_up_nobody(tmp_path: Path) -> None:
    """Refusals end by themselves, turn after turn: in between others have theirs."""
    crawl = SmallCrawl(tmp_path, small_web(2))
    crawl.fetcher.over = [(visits_of(url_batch(crawl.seeds))[0], Outcome.ROBOTS_FORBADE)]
    turns: list[int] = []

    async def rests() -> None:
        for number in range(5):
            asyncio.get_running_loop().call_soon(turns.append, number)
            await crawl.loop._rest()
            assert len(turns) == number + 1

    asyncio.run(rests())
    crawl.close()


def test_a_page_of_many_links_comes_in_portions(tmp_path: Path) -> None:
    """Each turn gives the frontier a part of them; the visit ends with the last. What is too much waits elsewhere."""
    root, many = "http://one.example/", [f"http://one.example/{number:07}" for number in range(100_000)]
    crawl = SmallCrawl(tmp_path, SmallWeb({root: many, **{url: [] for url in many}}, [root]))
    while not crawl.engines.outbox.waiting:
        crawl.turn()
    stage, outbox, left = crawl.stage, crawl.engines.outbox, [len(many)]
    while outbox.waiting:
        assert stage._stages.window.of_host(locate(root).host), "it is not over"
        left.append(outbox.waiting)
        crawl.turn()
    most = LINK_BYTES // len(many[0]) + 1
    assert all(before - after <= most for before, after in pairwise(left))
    assert len(left) > len(many) // most
    crawl.close()


def test_others_have_their_turns_between_portions_of_what_a_page_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many hosts that is: in a round of the event loop each stage takes no more than a portion."""
    for module in (operations, pending):
        monkeypatch.setattr(module, "LOT_ROWS", SMALL.batch)
    root, many = "http://one.example/", [f"http://one.example{number}/" for number in range(500)]
    crawl = SmallCrawl(tmp_path, SmallWeb({root: many, **{url: [] for url in many}}, [root]))
    stages, rounds = crawl.stage._stages, [Counter[str]()]

    def counted(owner: Any, name: str) -> None:
        does = getattr(owner, name)

        def doing(*given: Any, **how: Any) -> Any:
            rounds[-1][f"{type(owner).__name__}.{name}"] += next(
                one.num_rows for one in given if isinstance(one, pa.RecordBatch)
            )
            return does(*given, **how)

        monkeypatch.setattr(owner, name, doing)

    for owner, name in ((stages.domains, "name"), (stages.beast, "put"), (stages.gate, "put"), (stages.gate, "_ask")):
        counted(owner, name)
    others = crawl.turn_of_others
    monkeypatch.setattr(crawl, "turn_of_others", lambda: (rounds.append(Counter()), others()))
    assert crawl.run() is Ending.FINISHED
    assert crawl.worker.kept.keys() == {root, *many}
    totals = sum(rounds, Counter[str]())
    assert len(totals) == 4 and min(totals.values()) >= len(many)
    assert max(max(one.values(), default=0) for one in rounds) <= SMALL.batch
    crawl.close()


def test_links_of_other_agents_are_in_the_frontier_before_a_checkpoint(tmp_path: Path) -> None:
    """They wait for links of this agent, to be one message with them, but no longer than until then."""
    crawl = SmallCrawl(tmp_path, small_web(2))
    found = url_batch([locate("http://one.example/a"), locate("http://one.example/b")])
    post = FoundElsewhere([Links(found.slice(row, 1), np.zeros(1, np.uint64)) for row in range(2)])
    outbox, nobody = crawl.engines.outbox, cast(Fetcher, SimpleNamespace(take_strayed=list))
    remote = Remote(crawl.stage, nobody, outbox, cast(Office, post), cast(Past, None), crawl.clock)
    loop = Loop(replace(crawl.engines, remote=remote), ASKED, crawl.clock, crawl.news)
    accepted = crawl.stage._stages.seen.pending
    remote.receive(crawl.clock.now())
    assert crawl.stage._stages.seen.pending == accepted
    loop.settle()
    assert crawl.stage._stages.seen.pending == accepted + 2
    assert not outbox
    crawl.close()


def test_who_is_crowded_is_given_no_exchanges_and_others_have_their_turns(tmp_path: Path) -> None:
    """Until there is room again, which sets the news; nobody spins meanwhile."""
    crawl = SmallCrawl(tmp_path, small_web(2))

    async def turns() -> tuple[int, int]:
        news = asyncio.Event()
        loop = Loop(crawl.engines, ASKED, crawl.clock, news)
        while not crawl.engines.fetcher.ended:
            loop.turn()
        crawl.worker.crowded = True
        kept = crawl.worker.kept.total()
        running = asyncio.create_task(loop.run(Keeper(crawl.checkpoint, {}, {}, crawl.clock, 1e9)))
        for _ in range(5):
            await asyncio.sleep(0)
            news.set()
        while_crowded = crawl.worker.kept.total() - kept
        crawl.worker.crowded = False
        news.set()
        while crawl.worker.kept.total() == kept:
            await asyncio.sleep(0)
        loop.stop()
        while not running.done():
            crawl.fetcher.abort()  # the clock stands still: nobody would wait for it in vain
            await asyncio.sleep(0)
        return while_crowded, crawl.worker.kept.total() - kept

    while_crowded, after = asyncio.run(asyncio.wait_for(turns(), 20))
    assert while_crowded == 0 < after
    crawl.close()
