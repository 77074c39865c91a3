"""From links to URLs that may be fetched: the frontier's stages in one place.

    Links -> filter -> seen -> level -> star -> beast -> robots gate -> order -> ready -> window -> Visits

An engine: the loop hands in `Links` and `Outcomes`, calls `turn`, and takes `visits` out. All go through the
stages as batches of columns. Up to `beast` URLs are pushed, by merges that wait until they are worth it; from
there on they are pulled, as the window of what the fetcher holds runs low.

With a depth limit the crawl goes level by level: a URL waits in `later` until all pages nearer to the
seeds are done. Else a page met first by a long way round would pass its greater depth on to its links,
and pages within the limit would be lost. In a crawl whose scope is one domain, STAR and BEAST have nothing to
decide and cost nothing: URLs go through `backlog`.

A budget is a rate: so many URLs a round. A round lasts as long as a host without reputation takes for the default
budget, and ends sooner only when the crawl runs dry. Else rounds would turn as fast as URLs are pulled, and while the
honest hosts rest, those of a farm, which never end, would take all that is left.

Invariant: every URL that the filters accepted is in `seen`, and when it was new in exactly one queue, or in the
window until its outcome comes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import URLS, Kind, concat, first_of_each_key, keep, numbers, u64, url_batch
from fyke.core.choices import Enforcement
from fyke.core.config import FrontierSection
from fyke.core.messages import LEARNED, OK, SOON_S, Links, Outcomes, Rules
from fyke.core.urls import Locator, locate, robots_url
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.again import Again
from fyke.frontier.asleep import WAITING, Asleep
from fyke.frontier.beast import Backlog, Enforcer, enforcer
from fyke.frontier.blocked import Blocked
from fyke.frontier.budgets import budget_function
from fyke.frontier.domains import Domains
from fyke.frontier.filters import Filters, among
from fyke.frontier.landing import Landing
from fyke.frontier.order import BreadthFirst, crawl_order
from fyke.frontier.ready import Ready
from fyke.frontier.revisit.choice import Terms
from fyke.frontier.robots_gate import RobotsGate
from fyke.frontier.seen import UrlSeen
from fyke.frontier.sizes import SIZES, Sizes
from fyke.frontier.star import Star
from fyke.frontier.traps import Traps
from fyke.frontier.window import Refill, Window

SLICES = 8  # of what was over budget, read again in one turn that is in need
RELEASED = 4  # traps let through, for each visit that the fetcher can make at a time, when nothing else is left


class Need(IntEnum):
    """How much a frontier wants for visits to hand out."""

    NONE = 0
    LOW = 1  # the fetcher soon has too little to choose from
    DRY = 2  # fewer visits are handed out than could be made at once
    IDLE = 3  # nothing is handed out


@dataclass(frozen=True, slots=True)
class FrontierStatistics:
    """Counts since the crawl began, and rows that wait."""

    accepted: int
    unique: int
    unchecked: int  # for their check against the URLs seen
    later: int  # for pages nearer to the seeds
    again: int  # for their next visit
    unweighed: int  # for the budget of their domain
    rounds: int  # that BEAST spreads URLs over
    waiting: int  # for their round
    over_budget: int
    without_rules: int  # for their host's robots.txt
    ready: int
    spilled: int  # for room at their host
    out: int  # handed out
    blocked: int  # for a person to take the block of their host back
    asleep: int  # for their host, which rests for long
    trapped: int  # behind everything else, since pages like them brought no new text
    barren: int  # shapes of URLs of which that is so
    domains: int
    edges: int  # pairs of domains of which one links to the other

    @property
    def rows(self) -> int:
        """URLs that wait to be fetched, wherever."""
        rows = self.later + self.again + self.unweighed + self.waiting + self.over_budget
        rows += self.without_rules + self.ready + self.spilled + self.out
        return rows + self.blocked + self.asleep + self.trapped


class Frontier:
    """One shard of the frontier, on the files of one `Store`. Times are unix seconds."""

    def __init__(  # noqa: PLR0913 - most are facts of other rooms, each by its name
        self,
        store: Store,
        config: FrontierSection,
        filters: Filters,
        *,
        by_level: bool,
        host_delay_s: float,
        few_visits: int,
        opened_at: float,
        state: Mapping[str, Any] | None = None,
        descends: bool = True,
        sizes: Sizes = SIZES,
    ) -> None:
        """`host_delay_s`: how long a host without reputation rests after each visit; `few_visits`: how many the
        fetcher can make at a time. Where there are other shards it `descends` to the next level when it is told, else
        by itself.

        Raises ConfigurationError or PluginError for a budget function or an order that is none.
        """
        saved = state or {}
        memory = config.table_memory_bytes
        order = crawl_order(config)
        self._filters = filters
        self._store = store
        self._sizes = sizes
        self._landing = Landing(filters, saved)
        self._ended: list[pa.RecordBatch] = []  # visits that the records of their domains were not told of
        self._ended_rows = 0
        self._by_level = by_level
        self._descends = descends
        self._ready_rows = sizes.ready if isinstance(order, BreadthFirst) else sizes.ordered
        self._few_visits = few_visits
        self._round_s = config.default_budget_urls * host_delay_s
        self._round_ends_at = float(saved.get("round_ends_at", 0.0))
        self.level = int(saved.get("level", 0))
        self.known_share = 1.0  # of what is handed out, pages that are visited again, while new ones wait too
        self._known_ahead = 0.0  # by so many rows they had more than that
        self.accepted = int(saved.get("accepted", 0))
        self.seen = UrlSeen(store, 4 * memory, saved.get("seen"))
        self.later = DiskQueue(store, "later", URLS, saved.get("later"))
        self.domains = Domains(store, memory, saved.get("domains"))
        self.star = Star(
            store, self.domains, budget_function(config), config.default_budget_urls, memory, saved.get("star"), sizes
        )
        self.backlog = Backlog(store, saved.get("backlog"))
        alone = config.enforcement is Enforcement.NONE
        self.beast: Enforcer = self.backlog if alone else enforcer(config.enforcement, store, saved.get("beast"), sizes)
        self.gate = RobotsGate(store, memory, opened_at, saved.get("gate"), sizes)
        self.again = Again(store, memory, saved.get("again"))
        self.ready = Ready(store, order, saved.get("ready"))
        self.window = Window(config.window_visits, config.host_visits, host_delay_s)
        self.blocked = Blocked(store, saved.get("blocked"))
        self.asleep = Asleep(store, saved.get("asleep"))
        self.traps = Traps(store, config.trap_pages, saved.get("traps"))
        self._refill = Refill(self.ready, self.window, self.blocked, self.asleep, self.traps)
        self._leased = DiskQueue(store, "leased", URLS, saved.get("leased"))

    def __repr__(self) -> str:
        return f"Frontier({len(self.seen)} seen, {self.seen.pending} unchecked, {self.beast!r}, {self.ready!r})"

    # --- what comes in

    def put_links(self, links: Links) -> None:
        """What pages point at. A link of kind `SEED` that was met on a page is where that seed redirects to."""
        urls = links.urls
        self.extend_scope(urls)
        if not self._alone:
            targets = u64(urls, "domain")
            within = self._filters.domains
            inside = slice(None) if within is None else among(targets, within)
            self.star.link(links.sources[inside], targets[inside])
        # Filter before the repeats go: a refused row must not hide an accepted one.
        accepted = first_of_each_key(self._filters.accept(urls))
        if accepted.num_rows:
            self.accepted += accepted.num_rows
            self.seen.check_update(accepted)

    def extend_scope(self, urls: pa.RecordBatch) -> None:
        """Take note of where seeds redirect to, if `urls` say so; they need not be of this shard."""
        self._landing.follow(urls)

    @property
    def _alone(self) -> bool:
        """Whether one domain is all that is in scope."""
        domains = self._filters.domains
        return domains is not None and len(domains) < 2

    def put_seeds(self, seeds: Sequence[Locator], *, named: bool = True) -> None:
        """Begin, or go on, with these as well; no filter applies to them."""
        self.know_seeds(seeds, named=named)
        urls = url_batch(seeds, kind=Kind.SEED)
        self.put_links(Links(urls, np.zeros(urls.num_rows, np.uint64)))

    def know_seeds(self, seeds: Sequence[Locator], *, named: bool = True) -> None:
        """The scope is theirs too; `named` as in `Landing.know`."""
        self._landing.know(seeds, named=named)

    def put_outcomes(self, outcomes: Outcomes, now: float) -> None:
        """How visits ended, and what was learned of robots.txt files."""
        ended = outcomes.ended
        if ended.num_rows:
            self.window.ended(u64(ended, "key"), u64(ended, "host"))
            self.note_rests(ended)
            self.put_done(ended)
        columns = (outcomes.learned.column(name).to_pylist() for name in LEARNED.names)
        for origin, rules, until in zip(*columns, strict=True):
            self.gate.known(origin.decode(), Rules(rules), until, now)
        if outcomes.put_off.num_rows:
            self._put_off(outcomes.put_off, now)
        self.traps.learn(outcomes.judged)

    def note_rests(self, ended: pa.RecordBatch) -> None:
        """Visits that ended (schema `ENDED`) say how long their hosts rest, which is how much they may have out."""
        asked = keep(ended, numbers(ended, "rest_s") >= 0)
        self.window.rests(u64(asked, "host").tolist(), numbers(asked, "rest_s").tolist())

    def _put_off(self, visits: pa.RecordBatch, now: float) -> None:
        """Visits come back: they wait for room at their host, or asleep."""
        hosts, host_until = u64(visits, "host"), visits.column("host_until").to_numpy()
        self.window.ended(u64(visits, "key"), hosts)
        rests = dict(zip(hosts.tolist(), host_until.tolist(), strict=True))
        self.asleep.sleep({host: until for host, until in rests.items() if until > now + SOON_S}, now)
        self.window.rests(rests, (until - now for until in rests.values()))
        sleep = visits.column("until").to_numpy() > now + SOON_S
        self.asleep.put(keep(visits, sleep).select(WAITING.names), now)
        self._refill.spill(keep(visits, ~sleep).select(URLS.names))

    def put_done(self, ended: pa.RecordBatch) -> None:
        """Visits that are over (schema `ENDED`) and out no more: their domains are told."""
        self._ended.append(ended)
        self._ended_rows += ended.num_rows
        if self._ended_rows >= self._sizes.batch:
            self._count_ended()

    def _count_ended(self) -> None:
        """Tell the records of domains of the visits that ended."""
        if not self._ended:
            return
        ended = pa.concat_batches(self._ended)
        ended = ended.filter(pc.invert(ended.column("again")))  # they were counted at their first visit
        domains, places = np.unique(u64(ended, "domain"), return_inverse=True)
        pages = (numbers(ended, "outcome") == OK) & (numbers(ended, "kind") != Kind.LISTING)
        fetched = np.bincount(places, pages, len(domains)).astype(np.uint32)
        counts = np.bincount(places, minlength=len(domains)).astype(np.uint32)
        self.domains.add(domains, ended=counts, fetched=fetched)
        self._ended, self._ended_rows = [], 0

    # --- from stage to stage

    @property
    def need(self) -> Need:
        """How much it wants for visits to hand out."""
        if not self.window.low or self.ready.waiting:
            return Need.NONE
        if not len(self.window):
            return Need.IDLE
        return Need.DRY if len(self.window) < self._few_visits else Need.LOW

    def turn(self, now: float, *, hungry: bool) -> bool:
        """Move what was found on towards the ready queues; whether anything moved.

        `hungry`: merges of less than a full batch are granted, since visits run low (`need`). What they cost is the
        caller's to weigh, since it has a clock and the frontier has none.
        """
        if hungry:
            self._count_ended()
        for woken in self.asleep.woken(now):
            self.ready.put(woken)
        if (cleared := self.traps.cleared()).num_rows:
            self.ready.put(self.gate.put(cleared, now))
        moved = self.seen.full or (hungry and self.seen.pending > 0)
        if moved:
            self._advance()
        moved |= self._budget(hungry)
        moved |= self._let_through(now, hungry)
        if not moved and len(self.traps) and not self._others_wait:
            self.ready.put(self.gate.put(self.traps.release(max(1, RELEASED * self._few_visits)), now))
            moved = True
        if self._descends and not moved and self.level_done and (len(self.later) or len(self.again)):
            self.descend(self.level + 1)
            moved = True
        return moved

    def _advance(self) -> None:
        """Merge the URLs found with those seen; the new ones go on to their domain's budget."""
        for unique in self.seen.merge():
            for start in range(0, unique.num_rows, self._sizes.batch):  # what comes at once is held at once, and copied
                urls = unique.slice(start, self._sizes.batch)
                if self._by_level:
                    near = numbers(urls, "depth") <= self.level
                    self.later.put(keep(urls, ~near))
                    urls = keep(urls, near)
                self._weigh(urls)

    def _weigh(self, urls: pa.RecordBatch) -> None:
        """Let new URLs wait for what is known of their domains; with a single domain in scope straight on."""
        if not urls.num_rows:
            return
        domains, counts = np.unique(u64(urls, "domain"), return_counts=True)
        if not self._alone:
            self.domains.ask(urls)
        else:
            self.domains.name_new(urls, domains)
            self.backlog.put(urls, domains[:0])
        self.domains.add(domains, urls=counts)
        if self.domains.full:  # a merge of the URLs seen lets go of more than this one may hold
            self._place()

    def _budget(self, hungry: bool) -> bool:
        """Give URLs their budgets and places, those that were over budget too; whether there were any."""
        moved = False
        for _ in range(SLICES if hungry else 1):
            if self.beast.splitting and not self.domains.full:
                self._ask_again()
                moved = True
        if self.star.full or self.domains.full or (hungry and (self.star.pending or self.domains.pending)):
            self._place()
            moved = True
        return moved

    def _ask_again(self) -> None:
        """URLs that were over budget learn how their domain stands now."""
        batch = self.beast.failed(self._sizes.batch)
        if batch is not None:
            self.domains.ask(batch)

    def _place(self) -> None:
        """STAR's budgets for all that waits for one, and BEAST's rounds."""
        if self.star.count():
            self.beast.reconsider()
        planned: Counter[int] = Counter()  # what this merge adds to plans of its bucket; the records say it at the next
        before = 0
        for urls, records, bucket in self.star.merge():
            if bucket != before:
                planned.clear()
                before = bucket
            slots = records["slot"].astype(np.uint64)
            if planned:
                domains, places = np.unique(u64(urls, "domain"), return_inverse=True)
                slots += np.fromiter((planned[domain] for domain in domains.tolist()), np.uint64, len(domains))[places]
            grown, by = self.beast.put(urls, slots)
            planned.update(dict(zip(grown.tolist(), by.tolist(), strict=True)))
            self.domains.add(grown, slot=by)

    def _let_through(self, now: float, hungry: bool) -> bool:
        """Pull URLs through the robots gate while the ready queues are low; whether any moved."""
        moved = False
        while self.ready.waiting + self.gate.unchecked < self._ready_rows and self.gate.asks < self._sizes.asks:
            batch = self._known_or_new(now)
            if batch is None:
                break
            wanted = self.traps.divert(batch)  # before the rules of their hosts are asked for
            self.ready.put(self.gate.put(wanted, now))
            moved = True
            if wanted.num_rows < batch.num_rows:  # there may be no end of them
                break
        moved |= self.gate.recheck(now, hungry=hungry)
        if self.gate.full or (hungry and self.gate.unchecked):
            for passed in self.gate.merge(now):
                self.ready.put(passed)
            moved = True
        return moved

    def _known_or_new(self, now: float) -> pa.RecordBatch | None:
        """The next URLs: of pages that are visited again their share, while new ones wait too."""
        known_first = self._known_ahead <= 0
        batch = self._known() if known_first else self._new(now)
        if batch is not None:
            share = self.known_share
            self._known_ahead += batch.num_rows * (1 - share if known_first else -share)
            return batch
        self._known_ahead = 0.0
        return self._new(now) if known_first else self._known()

    def _known(self) -> pa.RecordBatch | None:
        return self.again.get(self._sizes.batch, self.level if self._by_level else None)

    def _new(self, now: float) -> pa.RecordBatch | None:
        batch = self.backlog.get(self._sizes.batch)
        return self._of_round(now) if batch is None else batch

    def _of_round(self, now: float) -> pa.RecordBatch | None:
        """URLs of the round that is read, or of the next one if that may begin."""
        before = self.beast.round
        batch = self.beast.get(self._sizes.batch, next_round=self.need >= Need.DRY or now >= self._round_ends_at)
        if self.beast.round != before:
            self._round_ends_at = now + self._round_s
        return batch

    @property
    def level_done(self) -> bool:
        """Whether nothing waits or is out but for pages nearer to the seeds."""
        return not len(self.window) and self._nothing_near

    def descend(self, level: int) -> None:
        """All pages nearer to the seeds are done: let go of those of `level`."""
        self.level = level
        self.again.next_level()
        left = len(self.later)
        while left and (batch := self.later.get(min(left, self._sizes.batch))) is not None:
            left -= batch.num_rows
            near = numbers(batch, "depth") <= level
            self.later.put(keep(batch, ~near))
            self._weigh(keep(batch, near))

    # --- what goes out

    def resume(self) -> None:
        """Go on after a restart: what was handed out before and not fetched waits again."""
        while (urls := self._leased.get(self._sizes.batch)) is not None:
            self.ready.put(urls)
        self.gate.resume()

    def visits(self, now: float, most_rules: int) -> pa.RecordBatch:
        """What the fetcher may have now (schema `URLS`), possibly nothing: pages, out until their outcomes come, and
        at most `most_rules` robots.txt to be brought, of kind `RULES`."""
        wanted = [robots_url(origin) for origin in self.gate.wanted(most_rules)]
        rules = url_batch([locate(url) for url in wanted], kind=Kind.RULES)
        pages = self._refill.visits(now)
        return concat([batch for batch in (rules, pages) if batch.num_rows])

    # --- what a person asks for

    def block(self, hosts: Iterable[int]) -> None:
        """Hand out nothing of hosts with these keys."""
        self.blocked.add(hosts)

    def unblock(self, hosts: Iterable[int]) -> int:
        """Go on with hosts with these keys, and with what waits though its host is not blocked; how many URLs."""
        count = 0
        for urls in self.blocked.release(hosts):
            count += urls.num_rows
            self.ready.put(urls)
        return count

    def plan_again(self, now: float, terms: Terms, *, by_line: bool = False) -> Iterator[None]:
        """Visit known pages once more, as `Again.plan` has it: level by level, if that is how the crawl goes."""
        yield from self.again.plan(now, terms, by_line=by_line)
        self.level = 0

    def take_back(self, urls: pa.RecordBatch) -> None:
        """Visits that the fetcher gave back, not made: they wait again."""
        self.window.ended(u64(urls, "key"), u64(urls, "host"))
        self.ready.put(urls)

    def let_go(self, keys: Iterable[int]) -> pa.RecordBatch:
        """The visits with these keys, out no more (schema `URLS`): whoever asks holds them from now on."""
        return self.window.let_go(keys)

    def overflowed(self, host: int) -> bool:
        """Whether more of the host with this key waits on disk than is handed out."""
        return self._refill.overflowed(host)

    # --- what is told

    def accused(self) -> Sequence[int]:
        """Hosts with visits out that may be traps, as was learned since this was last asked: to be taken back."""
        domains = self.traps.take_accused()
        return self.window.hosts_of(domains) if domains else ()

    def refused(self) -> pa.RecordBatch:
        """URLs that robots.txt refused since this was last asked (schema `URLS`), out until their outcomes come."""
        refused = self.gate.refused()
        self.window.note(refused)
        return refused

    @property
    def plugin_failures(self) -> Counter[str]:
        """How often the budget function or the order raised or gave nonsense, by the plug-in's name."""
        return self.star.failures + self.ready.failures

    @property
    def empty(self) -> bool:
        """Whether nothing waits anywhere and nothing is out; what no budget is left for does not count."""
        return self.level_done and not (len(self.later) or len(self.again))

    def rests_until(self, now: float) -> float:
        """When the first of what waits may go on, where all of it waits for hosts that rest; 0 where it does not, or
        nothing waits."""
        until = min(self.asleep.wakes_at, self.gate.rests_until)
        return 0.0 if self._others_wait or len(self.traps) or until == math.inf else max(now, until)

    @property
    def _others_wait(self) -> bool:
        """Whether anything is out or waits that is no trap, but for what hosts that rest hold up."""
        unplaced = self.seen.pending or self.star.pending or self.domains.pending
        planned = len(self.backlog) or (len(self.beast) and not self.beast.stuck)
        near = unplaced or planned or len(self.ready) or len(self.window)
        return bool(near or not self.again.spent or self.gate.rests_until == 0)

    @property
    def _nothing_near(self) -> bool:
        unplaced = self.seen.pending or self.star.pending or self.domains.pending
        planned = len(self.backlog) or (len(self.beast) and not self.beast.stuck)
        near = unplaced or planned or len(self.gate) or len(self.ready) or len(self.asleep) or len(self.traps)
        return self.again.spent and not near

    def state(self) -> dict[str, object]:
        """Everything a restart needs; nothing found stays in memory only."""
        self._count_ended()
        return {
            "level": self.level,
            **self._landing.state(),
            "round_ends_at": self._round_ends_at,
            "accepted": self.accepted,
            "seen": self.seen.state(),
            "later": self.later.state(),
            "star": self.star.state(),
            "domains": self.domains.state(),
            "again": self.again.state(),
            "backlog": self.backlog.state(),
            "beast": self.beast.state(),
            "gate": self.gate.state(),
            "ready": self.ready.state(),
            "blocked": self.blocked.state(),
            "asleep": self.asleep.state(),
            "traps": self.traps.state(),
            "leased": self._lease(),
        }

    def _lease(self) -> dict[str, Any]:
        """Write down what is handed out, in place of what was written before."""
        self._leased.destroy()
        self._leased = DiskQueue(self._store, "leased", URLS)
        for urls in self.window.rows():
            self._leased.put(urls)
        return self._leased.state()

    def statistics(self) -> FrontierStatistics:
        enforced = self.beast.statistics()
        backlog = len(self.backlog) if self.beast is not self.backlog else 0
        return FrontierStatistics(
            accepted=self.accepted,
            unique=len(self.seen),
            unchecked=self.seen.pending,
            later=len(self.later),
            again=len(self.again),
            unweighed=self.domains.unchecked_urls,
            rounds=enforced["rounds"],
            waiting=enforced["waiting"] + backlog,
            over_budget=enforced["over_budget"],
            without_rules=self.gate.statistics().waiting,
            ready=self.ready.waiting,
            spilled=self.ready.spilled,
            out=len(self.window),
            blocked=len(self.blocked),
            asleep=len(self.asleep),
            trapped=len(self.traps),
            barren=self.traps.barren,
            domains=len(self.domains),
            edges=self.star.edges,
        )

    def close(self) -> None:
        for stage in (self.seen, self.later, self.star, self.domains, self.backlog, self.beast, self.gate, self.ready):
            stage.close()
        self.again.close()
        self.blocked.close()
        self.asleep.close()
        self.traps.close()
        self._leased.close()
