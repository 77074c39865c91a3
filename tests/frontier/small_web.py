"""A web in a dict, and a loop that crawls it through a frontier in virtual time; no network, no politeness."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from frontier.shard import Shard
from fyke.core.batches import Kind, concat, numbers, texts, u64, url_batch
from fyke.core.config import CrawlSection, FrontierSection, Scope
from fyke.core.urls import locate, split
from fyke.disk.store import Store
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier
from fyke.frontier.robots_gate import Rules

FAR = 1e9  # how long the rules of a server are believed


@dataclass(frozen=True)
class SmallWeb:
    """What each page links to, where a crawl begins, and which origins forbid everything or fail so many times."""

    links: Mapping[str, list[str]]
    seeds: list[str]
    closed: frozenset[str] = frozenset()
    failing: Mapping[str, int] = field(default_factory=dict)

    def distances(self) -> dict[str, int]:
        """The pages that may be fetched, and how many links each is from a seed."""
        found = {seed: 0 for seed in self.seeds if self.open(seed)}
        line = deque(found)
        while line:
            page = line.popleft()
            for target in self.links[page]:
                if target not in found and self.open(target):
                    found[target] = found[page] + 1
                    line.append(target)
        return found

    def open(self, url: str) -> bool:
        return split(url).origin not in self.closed


def small_web(seed: int = 0, *, domains: int = 12, pages: int = 8, spam: int = 150, far: int = 5) -> SmallWeb:
    """`domains` of up to twice so many `pages`, some on two hosts, and a farm whose `spam` pages link to each other.

    Some pages are only found by a way of `far` links. One origin forbids everything. One, a seed's, fails twice, and
    what it links to is found by a longer way meanwhile.
    """
    random = Random(seed)
    sites = [
        [f"http://{random.choice(['www.', ''])}d{domain}.example/{n}" for n in range(random.randint(1, 2 * pages))]
        for domain in range(domains)
    ]
    farm = [f"http://h{n % 7}.spam.example/{n}" for n in range(spam)]
    everything = [page for site in sites for page in site]
    links = {page: random.choices(everything, k=3) + random.choices(site, k=2) for site in sites for page in site}
    links |= {page: random.choices(farm, k=6) + random.choices(everything, k=1) for page in farm}
    way = [f"http://far.example/{n}" for n in range(far)]
    links |= {page: [after] for page, after in zip(way, [*way[1:], farm[0]], strict=True)} if far else {}
    slow, late = "http://slow.example/", [f"http://late.example/{n}" for n in range(4)]
    links |= {slow: late[:1]} | {page: [after] for page, after in zip(late, [*late[1:], slow], strict=True)}
    if way:
        links[way[0]] = [*links[way[0]], late[0]]
    secret = f"https://d{domains - 1}.example/secret"
    links[secret] = [everything[0]]
    first = everything[0]
    links[first] = [*links[first], *[site[0] for site in sites], *way[:1], *farm[:1], secret, first]
    return SmallWeb(links, [first, slow], frozenset([split(secret).origin]), {split(slow).origin: 2})


@dataclass
class Progress:
    """What a crawl has done so far, and what it holds: saved with the frontier, lost with it."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    leased: list[pa.RecordBatch] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    depths: dict[str, int] = field(default_factory=dict)

    @property
    def held(self) -> int:
        return sum(urls.num_rows for urls in self.leased)


class Crawl(Shard[Frontier, Progress]):
    """A crawl of `web`; `turn` is the loop's."""

    def __init__(
        self,
        directory: Path,
        web: SmallWeb,
        crawl: CrawlSection | None = None,
        *,
        columns: bool = False,
        **settings: Any,
    ) -> None:
        crawl = crawl or CrawlSection(scope=Scope.WEB)
        self.web, self.columns, self.now = web, columns, 1_000_000.0
        self.asked: list[str] = []  # origins whose rules are on their way
        self.turns = 0
        section = FrontierSection(**settings)
        self.seeds = [locate(seed) for seed in web.seeds]

        def opened(store: Store, state: Mapping[str, Any]) -> Frontier:
            filters = filters_for(crawl, self.seeds, ("http", "https"), [])
            return Frontier(
                store,
                section,
                filters,
                by_level=crawl.depth > 0,
                host_delay_s=1.0,
                opened_at=self.now,
                state=state.get("frontier"),
            )

        super().__init__(directory, opened, Progress())
        self.sow()

    @property
    def frontier(self) -> Frontier:
        return self.stage

    def sow(self) -> None:
        self.stage.discover(self.seeds, via=0, domain=0, depth=0, kind=Kind.SEED)

    def save(self) -> None:
        snapshot = self.checkpoint.take({"stage": {"frontier": self.stage.state()}})
        snapshot.make_durable()
        self.checkpoint.committed(snapshot)
        self.keep_safe()

    def restart(self) -> None:
        super().restart()
        self.asked = []
        leased, self.model.leased = self.model.leased, []
        self.stage.resume(leased)
        self.sow()

    # --- the loop

    def turn(self, *, take: int = 50, idle: bool | None = None) -> bool:
        """Once around: whether the frontier moved, or anything was taken or answered."""
        self.turns += 1
        idle = not self.model.held if idle is None else idle
        moved = self.stage.turn(self.now, may_merge=idle, dry=idle, idle=idle)
        self.model.refused.update(texts(self.stage.refused()))
        self.answer()
        self.asked = self.stage.wanted(4)
        urls = self.stage.take(take)
        if urls.num_rows:
            self.model.leased.append(urls)
        return moved or bool(self.asked) or urls.num_rows > 0

    def answer(self) -> None:
        """Say what the robots.txt are that were asked for a turn ago."""
        for origin in self.asked:
            rules, end = Rules.OPEN, self.now + FAR
            if origin in self.web.closed:
                rules = Rules.CLOSED
            elif self.model.failures[origin] < self.web.failing.get(origin, 0):
                self.model.failures[origin] += 1
                rules, end = Rules.UNREACHABLE, self.now + 30
            self.stage.known(origin, rules, end, self.now)

    def fetch(self) -> None:
        """Bring the batch that was leased first."""
        if not self.model.leased:
            return
        urls = self.model.leased.pop(0)
        pages = texts(urls)
        self.model.done.update(pages)
        depths = numbers(urls, "depth").tolist()
        self.model.depths |= dict(zip(pages, depths, strict=True))
        for domain in u64(urls, "domain").tolist():
            self.stage.fetched(domain)
        if self.columns:
            self._discover_columns(pages, depths)
            return
        for page, depth in zip(pages, depths, strict=True):
            source = locate(page)
            found = [locate(target) for target in self.web.links[page]]
            self.stage.discover(found, via=source.key, domain=source.domain, depth=depth + 1, kind=Kind.PAGE)

    def _discover_columns(self, pages: Iterable[str], depths: Iterable[int]) -> None:
        links = [
            (locate(target), locate(page), depth + 1)
            for page, depth in zip(pages, depths, strict=True)
            for target in self.web.links[page]
        ]
        if links:
            found, sources, deeper = zip(*links, strict=True)
            urls = url_batch(found, via=[source.key for source in sources], depth=deeper)
            self.stage.discover_batch(urls, np.array([source.domain for source in sources], np.uint64))

    def finish(self, each_turn: Callable[[], None] | None = None, most_turns: int = 3000) -> None:
        """Go on until nothing is left; time passes when nothing moves."""
        for _ in range(most_turns):
            moved = self.turn()
            if each_turn is not None:
                each_turn()
            if self.stage.empty and not self.model.held:
                return
            self.fetch()
            self.now += 0.25 if moved else 15.0
        raise AssertionError(f"{self.stage!r} is not done after {most_turns} turns: {self.stage.statistics()}")

    # --- what is where

    def waiting(self) -> Counter[str]:
        """Every URL that waits somewhere in the frontier."""
        return Counter(url for _, batches in self.stage.places() for urls in batches for url in texts(urls))

    def leased(self) -> list[str]:
        return texts(concat(self.model.leased))


def shallow(web: SmallWeb, depth: int) -> SmallWeb:
    """`web` as far as it is `depth` links from a seed."""
    near = {page for page, distance in web.distances().items() if distance <= depth}
    return replace(web, links={page: [to for to in web.links[page] if to in near] for page in near})
