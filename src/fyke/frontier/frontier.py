"""From links to URLs that may be fetched: the frontier's stages in one place.

    links -> filter -> seen -> level -> star -> beast -> robots gate -> order -> ready

The loop hands in the links of each page (`discover`) and calls `turn`; what is new comes out of `take`.
Links are gathered as they come and go through the stages as batches of columns. A bounded set of keys met
lately stands in front, since most links repeat (Mercator's cache of popular URLs). Up to `beast` URLs are
pushed, by merges that wait until they are worth it; from there on they are pulled, as the ready queue runs low.

With a depth limit the crawl goes level by level: a URL waits in `later` until all pages nearer to the
seeds are done. Else a page met first by a long way round would pass its greater depth on to its links,
and pages within the limit would be lost. In a crawl whose scope is one domain, STAR and BEAST have nothing to
decide and cost nothing: URLs go through `backlog`.

A budget is a rate: so many URLs a round. A round lasts as long as a host without reputation takes for the default
budget, and ends sooner only when the caller says that the crawl runs dry. Else rounds would turn as fast as URLs are
pulled, and while the honest hosts rest, those of a farm, which never end, would take all that is left.

Invariant: every URL that the filters accepted is in `seen`, and when it was new in exactly one queue
or handed out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, URLS, first_of_each_key, keep, numbers, u64, url_batch
from fyke.core.config import Enforcement, FrontierSection
from fyke.core.urls import Locator
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.beast import Backlog, Enforcer, enforcer
from fyke.frontier.budgets import budget_function
from fyke.frontier.domains import Domains
from fyke.frontier.filters import Filters
from fyke.frontier.order import BreadthFirst, crawl_order
from fyke.frontier.ready import Ready
from fyke.frontier.robots_gate import RobotsGate, Rules
from fyke.frontier.seen import UrlSeen
from fyke.frontier.star import Star

BATCH_ROWS = 8192
READY_ROWS = 8192  # URLs pulled ahead of the workbench
ORDERED_ROWS = 1 << 17  # the same for a crawl with an order, which needs something to choose from
SLICES = 8  # of what was over budget, read again in one turn that is in need
MOST_ASKS = 8192  # origins to be asked for their rules before no more URLs are pulled
_KEY, _DOMAIN = itemgetter(1), itemgetter(3)


@dataclass(frozen=True, slots=True)
class FrontierStatistics:
    """Counts since the crawl began, and rows that wait."""

    links: int
    accepted: int
    unique: int
    unchecked: int  # for their check against the URLs seen
    later: int  # for pages nearer to the seeds
    unweighed: int  # for the budget of their domain
    rounds: int  # that BEAST spreads URLs over
    waiting: int  # for their round
    over_budget: int
    without_rules: int  # for their host's robots.txt
    ready: int
    spilled: int  # for room at their host
    domains: int
    edges: int  # pairs of domains of which one links to the other

    @property
    def rows(self) -> int:
        """URLs that wait to be fetched, wherever."""
        rows = self.later + self.unweighed + self.waiting + self.over_budget
        return rows + self.without_rules + self.ready + self.spilled


class Frontier:
    """One shard of the frontier, on the files of one `Store`. Times are unix seconds."""

    def __init__(
        self,
        store: Store,
        config: FrontierSection,
        filters: Filters,
        *,
        by_level: bool,
        host_delay_s: float,
        opened_at: float,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """`host_delay_s`: how long a host without reputation rests after each visit.

        Raises ConfigurationError or PluginError for a budget function or an order that is none.
        """
        saved = state or {}
        memory = config.table_memory_bytes
        order = crawl_order(config)
        self._filters = filters
        self._recent_limit = config.link_cache
        self._recent: set[int] = set()
        self._found: list[tuple[Sequence[Locator], int, int, int]] = []
        self._found_links = 0
        self._ended: Counter[int] = Counter()  # visits by domain, since the records were told
        self._fetched: Counter[int] = Counter()
        self._by_level = by_level
        self._ready_rows = READY_ROWS if isinstance(order, BreadthFirst) else ORDERED_ROWS
        self._round_s = config.default_budget_urls * host_delay_s
        self._round_ends_at = float(saved.get("round_ends_at", 0.0))
        self.level = int(saved.get("level", 0))
        self.links = int(saved.get("links", 0))
        self.accepted = int(saved.get("accepted", 0))
        self.seen = UrlSeen(store, 4 * memory, saved.get("seen"))
        self.later = DiskQueue(store, "later", URLS, saved.get("later"))
        self.domains = Domains(store, memory, saved.get("domains"))
        self.star = Star(
            store, self.domains, budget_function(config), config.default_budget_urls, memory, saved.get("star")
        )
        self.backlog = Backlog(store, saved.get("backlog"))
        self.beast: Enforcer = self.backlog
        if config.enforcement is not Enforcement.NONE:
            self.beast = enforcer(config.enforcement, store, saved.get("beast"))
        self.gate = RobotsGate(store, memory, opened_at, saved.get("gate"))
        self.ready = Ready(store, order, saved.get("ready"))

    def __repr__(self) -> str:
        return f"Frontier({len(self.seen)} seen, {self.seen.pending} unchecked, {self.beast!r}, {self.ready!r})"

    # --- what comes in

    def discover(self, locators: Sequence[Locator], *, via: int, domain: int, depth: int, kind: int) -> None:
        """The page with key `via`, of `domain` (0 for none), links to `locators`, `depth` links from a seed."""
        recent = self._recent
        self.links += len(locators)
        if domain and not self._alone:
            self._count_links(domain, locators)
        if recent.issuperset(map(_KEY, locators)):
            return
        fresh = [at for at in locators if at[1] not in recent]
        if fresh:
            self._found.append((fresh, via, depth, kind))
            self._found_links += len(fresh)
            if self._found_links >= BATCH_ROWS:
                self._check_in()

    def discover_batch(self, urls: pa.RecordBatch, sources: U64) -> None:
        """Links as columns: `urls` (schema `URLS`), met on pages of the domains `sources` (uint64[n], 0 for none)."""
        self.links += urls.num_rows
        if not self._alone:
            targets = u64(urls, "domain")
            within = self._filters.domains
            inside = slice(None) if within is None else np.isin(targets, list(within))
            self.star.link_batch(sources[inside], targets[inside])
        self._submit(first_of_each_key(self._filters.accept(urls)))

    @property
    def _alone(self) -> bool:
        """Whether one domain is all that is in scope."""
        domains = self._filters.domains
        return domains is not None and len(domains) < 2

    def _count_links(self, domain: int, locators: Sequence[Locator]) -> None:
        targets = set(map(_DOMAIN, locators))
        if self._filters.domains is not None:
            targets &= self._filters.domains
        self.star.link(domain, targets)

    def fetched(self, domain: int) -> None:
        """A page of `domain` was fetched whole."""
        self._fetched[domain] += 1
        self.ended(domain)

    def ended(self, domain: int) -> None:
        """A visit to a page of `domain` has ended; for one that brought its page, `fetched` says so too."""
        self._ended[domain] += 1
        if len(self._ended) >= BATCH_ROWS:
            self._tell_ended()

    def _tell_ended(self) -> None:
        if self._ended:
            count = len(self._ended)
            self.domains.add(
                np.fromiter(self._ended, np.uint64, count),
                ended=np.fromiter(self._ended.values(), np.uint32, count),
                fetched=np.fromiter((self._fetched[domain] for domain in self._ended), np.uint32, count),
            )
            self._ended.clear()
            self._fetched.clear()

    # --- from stage to stage

    def turn(self, now: float, *, may_merge: bool, dry: bool, idle: bool) -> bool:
        """Move what was found on towards the ready queues, as far as is worth its cost; whether anything moved.

        `may_merge`: visits run low, and the caller grants merges of less than a full batch. Their cost is the
        caller's to weigh, since it has a clock and the frontier has none. `dry`: fewer visits are left than could be
        made at once; `idle`: none at all.
        """
        if may_merge:
            self._check_in()
            self._tell_ended()
        moved = self.seen.full or (may_merge and self.seen.pending > 0)
        if moved:
            self._advance()
        moved |= self._budget(may_merge)
        moved |= self._let_through(now, may_merge, dry)
        if idle and not moved and self._nothing_near and len(self.later):
            self._next_level()
            moved = True
        return moved

    def _check_in(self) -> None:
        """Filter the links found and have them checked against the URLs seen."""
        if not self._found:
            return
        groups, self._found, self._found_links = self._found, [], 0
        counts = [len(group[0]) for group in groups]
        _, vias, depths, kinds = zip(*groups, strict=True)
        batch = url_batch(
            list(chain.from_iterable(group[0] for group in groups)),
            via=np.repeat(np.array(vias, np.uint64), counts),
            depth=np.repeat(np.array(depths, np.uint16), counts),
            kind=np.repeat(np.array(kinds, np.uint8), counts),
        )
        batch = first_of_each_key(self._filters.accept(batch))  # one that is refused hides none that is not
        if len(self._recent) >= self._recent_limit:
            self._recent.clear()
        own = {at[1]: at[1] for group in groups for at in group[0]}  # the same objects are compared without a look
        self._recent.update(map(own.__getitem__, u64(batch, "key").tolist()))
        self._submit(batch)

    def _submit(self, batch: pa.RecordBatch) -> None:
        """Have `batch`, accepted and without repeats, checked against the URLs seen."""
        if batch.num_rows:
            self.accepted += batch.num_rows
            self.seen.check_update(batch)

    def _advance(self) -> None:
        """Merge the URLs found with those seen; the new ones go on to their domain's budget."""
        for unique in self.seen.merge():
            for start in range(0, unique.num_rows, BATCH_ROWS):  # what comes at once is held at once, and copied
                urls = unique.slice(start, BATCH_ROWS)
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

    def _budget(self, may_merge: bool) -> bool:
        """Give URLs their budgets and places, those that were over budget too; whether there were any."""
        moved = False
        for _ in range(SLICES if may_merge else 1):
            if self.beast.splitting and not self.domains.full:
                self._ask_again()
                moved = True
        if self.star.full or self.domains.full or (may_merge and (self.star.pending or self.domains.pending)):
            self._place()
            moved = True
        return moved

    def _ask_again(self) -> None:
        """URLs that were over budget learn how their domain stands now."""
        batch = self.beast.failed(BATCH_ROWS)
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

    def _let_through(self, now: float, may_merge: bool, dry: bool) -> bool:
        """Pull URLs through the robots gate while the ready queues are low; whether any moved."""
        moved = False
        while self.ready.waiting + self.gate.unchecked < self._ready_rows and self.gate.asks < MOST_ASKS:
            batch = self.backlog.get(BATCH_ROWS)
            if batch is None:
                batch = self._of_round(now, dry)
            if batch is None:
                break
            self.ready.put(self.gate.put(batch, now))
            moved = True
        moved |= self.gate.recheck(now, hungry=may_merge)
        if self.gate.full or (may_merge and self.gate.unchecked):
            for passed in self.gate.merge(now):
                self.ready.put(passed)
            moved = True
        return moved

    def _of_round(self, now: float, dry: bool) -> pa.RecordBatch | None:
        """URLs of the round that is read, or of the next one if that may begin."""
        before = self.beast.round
        batch = self.beast.get(BATCH_ROWS, next_round=dry or now >= self._round_ends_at)
        if self.beast.round != before:
            self._round_ends_at = now + self._round_s
        return batch

    def _next_level(self) -> None:
        self.level += 1
        for _ in range(len(self.later)):
            batch = self.later.get(BATCH_ROWS)
            if batch is None:
                break
            self._weigh(batch)

    # --- what goes out

    def resume(self, leased: Iterable[pa.RecordBatch]) -> None:
        """Go on after a restart: `leased`, handed out before and not fetched, wait again."""
        for urls in leased:
            self.ready.put(urls)
        self.gate.resume()

    def take(self, rows: int) -> pa.RecordBatch:
        """The next URLs to fetch, `rows` at most; schema `URLS`, possibly empty."""
        return self.ready.take(rows)

    def wanted(self, most: int) -> list[str]:
        """Origins (`scheme://host:port`) whose robots.txt is to be brought now, `most` at most."""
        return self.gate.wanted(most)

    def known(self, origin: str, rules: Rules, expires_at: float, now: float) -> None:
        """What came of asking `origin` for its rules."""
        self.gate.known(origin, rules, expires_at, now)

    def refused(self) -> pa.RecordBatch:
        """URLs that robots.txt refused since this was last asked; schema `URLS`."""
        return self.gate.refused()

    @property
    def plugin_failures(self) -> Counter[str]:
        """How often the budget function or the order raised or gave nonsense, by the plug-in's name."""
        return self.star.failures + self.ready.failures

    @property
    def empty(self) -> bool:
        """Whether nothing waits anywhere in the frontier; what no budget is left for does not count."""
        return self._nothing_near and not len(self.later)

    @property
    def _nothing_near(self) -> bool:
        unplaced = self._found or self.seen.pending or self.star.pending or self.domains.pending
        planned = len(self.backlog) or (len(self.beast) and not self.beast.stuck)
        return not (unplaced or planned or len(self.gate) or len(self.ready))

    def places(self) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        """Everywhere a URL may wait, in words, with what waits there."""
        yield "to be checked against the URLs seen", self.seen.unchecked()
        yield "for pages nearer to the seeds to be done", self.later.scan()
        yield "for the budget of its domain to be known", self.domains.unchecked()
        for queue in {queue.name: queue for queue in (*self.backlog.queues(), *self.beast.queues())}.values():
            over = queue.name.startswith("beast-over")
            yield "since its domain is over its budget" if over else "for its turn", queue.scan()
        yield "for the robots.txt of its host", self.gate.scan()
        yield "in line, on disk", self.ready.scan()

    def state(self) -> dict[str, object]:
        """Everything a restart needs; nothing found stays in memory only."""
        self._check_in()
        self._tell_ended()
        return {
            "level": self.level,
            "round_ends_at": self._round_ends_at,
            "links": self.links,
            "accepted": self.accepted,
            "seen": self.seen.state(),
            "later": self.later.state(),
            "star": self.star.state(),
            "domains": self.domains.state(),
            "backlog": self.backlog.state(),
            "beast": self.beast.state(),
            "gate": self.gate.state(),
            "ready": self.ready.state(),
        }

    def statistics(self) -> FrontierStatistics:
        enforced = self.beast.statistics()
        backlog = len(self.backlog) if self.beast is not self.backlog else 0
        return FrontierStatistics(
            links=self.links,
            accepted=self.accepted,
            unique=len(self.seen),
            unchecked=self.seen.pending + self._found_links,
            later=len(self.later),
            unweighed=self.domains.unchecked_urls,
            rounds=enforced["rounds"],
            waiting=enforced["waiting"] + backlog,
            over_budget=enforced["over_budget"],
            without_rules=self.gate.statistics().waiting,
            ready=self.ready.waiting,
            spilled=self.ready.spilled,
            domains=len(self.domains),
            edges=self.star.edges,
        )

    def close(self) -> None:
        for stage in (self.seen, self.later, self.star, self.domains, self.backlog, self.beast, self.gate, self.ready):
            stage.close()
