"""A web in a dict, and a loop that crawls it through a frontier in virtual time; no network, no politeness."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from frontier.shard import Shard
from fyke.core.batches import Kind, keep, numbers, texts, url_batch
from fyke.core.choices import Enforcement
from fyke.core.config import CrawlSection, FrontierSection, Scope
from fyke.core.messages import Links, Outcomes, Rules, ended_batch, learned_batch
from fyke.core.outcomes import Outcome
from fyke.core.site import SiteSection
from fyke.core.slices import whole
from fyke.core.urls import locate, split
from fyke.core.visits import visits_of
from fyke.disk.store import Store
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier, Need
from fyke.frontier.looking import BLOCKED, LEFT_OUT, OVER_QUOTA, TRAPPED, SavedFrontier
from fyke.frontier.sizes import SIZES, Sizes

LEASED_ROWS = 50  # that are fetched at a time
UNCHECKED = "to be checked against the URLs seen"
FAR = 1e9  # how long the rules of a server are believed


@dataclass(frozen=True)
class SmallWeb:
    """What each page links to, where a crawl begins, and which origins forbid everything or fail so many
    times."""

    links: Mapping[str, list[str]]
    seeds: list[str]
    closed: frozenset[str] = frozenset()
    failing: Mapping[str, int] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()  # pages that are linked to, and not there

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

    def outcome(self, url: str) -> Outcome:
        """What comes of a visit."""
        return Outcome.CLIENT_ERROR if url in self.missing else Outcome.OK

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
        sizes: Sizes = SIZES,
        sites: Sequence[SiteSection] = (),
        **settings: Any,
    ) -> None:
        self.crawl = crawl or CrawlSection(scope=Scope.WEB)
        self.web, self.now, self.sites = web, 1_000_000.0, sites
        self.asked: list[str] = []  # origins whose rules are on their way
        self.turns = 0
        self.section = FrontierSection(**{"window_visits": 100, **settings})
        self.seeds = [locate(seed) for seed in web.seeds]

        def opened(store: Store, state: Mapping[str, Any]) -> Frontier:
            filters = filters_for(self.crawl, self.seeds, ("http", "https"), [])
            return Frontier(
                store,
                self.section,
                filters,
                by_level=self.crawl.depth > 0,
                host_delay_s=1.0,
                few_visits=0,
                opened_at=self.now,
                state=store.participant("frontier"),
                sizes=sizes,
                sites=self.sites,
            )

        super().__init__(directory, opened, Progress())
        self.stage.put_seeds(self.seeds)

    @property
    def frontier(self) -> Frontier:
        return self.stage

    def save(self) -> None:
        snapshot = self.checkpoint.take({"frontier": self.stage.state()})
        snapshot.make_durable()
        self.checkpoint.committed(snapshot)
        self.keep_safe()
        with SavedFrontier(self._directory, self.section) as seen:  # who looks at the checkpoint sees it all
            assert counted(seen.places()) == counted(places(self.stage))

    def enforce(self, kind: Enforcement) -> None:
        """Go on from the last checkpoint with other settings."""
        self.section = self.section.model_copy(update={"enforcement": kind})
        self.restart()

    def restart(self) -> None:
        super().restart()
        self.asked = []
        self.model.leased = []
        self.stage.resume()
        self.stage.put_seeds(self.seeds)

    # --- the loop

    def turn(self) -> bool:
        """Once around: whether the frontier moved, or anything was taken or answered."""
        self.turns += 1
        moved = whole(self.stage.steps(self.now, may_merge=self.stage.need > Need.NONE))
        refused = self.stage.refused()
        self.model.refused.update(texts(refused))
        ended = ended_batch((visit, Outcome.ROBOTS_FORBADE) for visit in visits_of(refused))
        self.stage.put_outcomes(Outcomes(ended), self.now)
        self.answer()
        visits = self.stage.visits(self.now, 4)
        rules = numbers(visits, "kind") == Kind.RULES
        self.asked = [split(url).origin for url in texts(keep(visits, rules))]
        pages = keep(visits, ~rules)
        for start in range(0, pages.num_rows, LEASED_ROWS):
            self.model.leased.append(pages.slice(start, LEASED_ROWS))
        assert len(self.stage._stages.window) == self.model.held
        return moved or visits.num_rows > 0

    def answer(self) -> None:
        """Say what the robots.txt are that were asked for a turn ago."""
        learned = []
        for origin in self.asked:
            rules, end = Rules.OPEN, self.now + FAR
            if origin in self.web.closed:
                rules = Rules.CLOSED
            elif self.model.failures[origin] < self.web.failing.get(origin, 0):
                self.model.failures[origin] += 1
                rules, end = Rules.UNREACHABLE, self.now + 30
            learned.append((origin, rules, end))
        self.stage.put_outcomes(Outcomes(learned=learned_batch(learned)), self.now)

    def learn(self, origin: str, rules: Rules, until: float) -> None:
        """Tell the frontier what one robots.txt says."""
        self.stage.put_outcomes(Outcomes(learned=learned_batch([(origin, rules, until)])), self.now)

    def fetch(self) -> None:
        """Bring the batch that was leased first."""
        if not self.model.leased:
            return
        urls = self.model.leased.pop(0)
        pages = texts(urls)
        self.model.done.update(pages)
        depths = numbers(urls, "depth").tolist()
        self.model.depths |= dict(zip(pages, depths, strict=True))
        ended = ended_batch((visit, self.web.outcome(visit.url)) for visit in visits_of(urls))
        self.stage.put_outcomes(Outcomes(ended), self.now)
        links = [
            (locate(target), locate(page), depth + 1)
            for page, depth in zip(pages, depths, strict=True)
            for target in self.web.links[page]
        ]
        if links:
            found, sources, deeper = zip(*links, strict=True)
            batch = url_batch(found, via=[source.key for source in sources], depth=deeper)
            self.stage.put_links(Links(batch, np.array([source.domain for source in sources], np.uint64)))

    def finish(self, each_turn: Callable[[], None] | None = None, most_turns: int = 3000) -> None:
        """Go on until nothing is left; time passes when nothing moves."""
        for _ in range(most_turns):
            moved = self.turn()
            if each_turn is not None:
                each_turn()
            if self.stage.empty:
                return
            self.fetch()
            self.now += 0.25 if moved else 15.0
        raise AssertionError(f"{self.stage!r} is not done after {most_turns} turns: {self.stage.statistics()}")

    # --- what is where

    def waiting(self) -> Counter[str]:
        """Every URL that waits somewhere in the frontier."""
        return sum(counted(places(self.stage)).values(), Counter[str]())


def places(frontier: Frontier) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Everywhere a URL may wait in a frontier that runs, in the words of `SavedFrontier.places`."""
    yield UNCHECKED, frontier._stages.seen.unchecked()
    yield "for pages nearer to the seeds to be done", frontier._stages.later.scan()
    yield "for the budget of its domain to be known", frontier.domains.unchecked()
    rounds = (*frontier._stages.backlog.queues(), *frontier._stages.beast.queues())
    for queue in {queue.name: queue for queue in rounds}.values():
        over = queue.name.startswith("beast-over")
        yield "because its domain is over its budget" if over else "for its turn", queue.scan()
    yield "for the robots.txt of its host", frontier._stages.gate.scan()
    yield "in line, on disk", frontier._stages.ready.scan()
    yield BLOCKED, frontier._stages.blocked.scan()
    yield LEFT_OUT, frontier.left_out._links.scan()
    yield LEFT_OUT, frontier.left_out._urls.scan()
    yield OVER_QUOTA, frontier._stages.quota.scan()
    yield TRAPPED, frontier._stages.traps.scan()
    yield "for its host's turn", frontier._stages.window.rows()


def counted(found: Iterator[tuple[str, Iterator[pa.RecordBatch]]]) -> dict[str, Counter[str]]:
    """How often each URL is in each place that is not empty."""
    places: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for words, batches in found:
        places[words].update(url for urls in batches for url in texts(urls))
    return {words: urls for words, urls in places.items() if urls}


def shallow(web: SmallWeb, depth: int) -> SmallWeb:
    """`web` as far as it is `depth` links from a seed."""
    near = {page for page, distance in web.distances().items() if distance <= depth}
    return replace(web, links={page: [to for to in web.links[page] if to in near] for page in near})
