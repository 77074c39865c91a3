"""From links to URLs that may be fetched: the frontier's stages in one place.

    Links -> filter -> seen -> level -> star -> beast -> robots gate -> order -> ready -> window -> Visits

An engine: the loop hands in `Links` and `Outcomes`, runs its `steps`, and takes `visits` out. All go through the stages
as batches of columns. Up to `beast` URLs are pushed, by merges that wait until they are worth it; from there on they
are pulled, as the window of what the fetcher holds runs low.

With a depth limit the crawl goes level by level: a URL waits in `later` until all pages nearer to the seeds are done.
Otherwise a page first met by a long way round would pass its greater depth on, and pages within the limit would be
lost.

Invariant: every URL that the filters accepted, except for probes, is in `seen`. If it was new, it is in exactly one
queue, or in the window until its outcome comes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, URLS, Kind, concat, keep, numbers, u64, url_batch
from fyke.core.config import FrontierSection
from fyke.core.messages import LEARNED, Links, Outcomes, Rules
from fyke.core.rests import SOON_S
from fyke.core.site import SiteSection
from fyke.core.slices import Steps, whole
from fyke.core.sorting import among
from fyke.core.urls import Locator, locate
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.frontier.asleep import WAITING
from fyke.frontier.filters import Filters
from fyke.frontier.landing import Landing
from fyke.frontier.order import BreadthFirst, crawl_order
from fyke.frontier.placing import Placing
from fyke.frontier.revisit.choice import Terms
from fyke.frontier.sizes import SIZES, Sizes
from fyke.frontier.stages import FrontierStatistics, Stages
from fyke.frontier.supply import Supply
from fyke.frontier.window import Refill

JUDGED_ROWS = 16  # pages in a step: to learn from each takes a tenth of a millisecond
RELEASED = 4  # traps for each visit that the fetcher can make at a time, when nothing else is left


class Need(IntEnum):
    """Urgency with which a frontier wants more visits to hand out."""

    NONE = 0
    LOW = 1  # the fetcher soon has too little to choose from
    DRY = 2  # fewer visits are handed out than could be made at once


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
        sites: Sequence[SiteSection] = (),
        sizes: Sizes = SIZES,
    ) -> None:
        """`host_delay_s`: rest of a host without reputation after each visit. `few_visits`: visits that the fetcher can
        make at a time. `descends`: whether it begins the next level by itself, or is told to, as with other shards.
        `sites` may limit the pages of hosts. Raises ConfigurationError or PluginError for an unknown budget function or
        order."""
        saved, order = state or {}, crawl_order(config)
        self._filters = filters
        self._store = store
        self._sizes = sizes
        self._landing = Landing(filters, saved)
        self._by_level = by_level
        self._descends = descends
        self._few_visits = few_visits
        self.level = int(saved.get("level", 0))
        self._stages = at = Stages(
            store, config, order, filters, host_delay_s=host_delay_s, opened_at=opened_at, saved=saved, sizes=sizes,
            sites=sites,
        )  # fmt: skip
        self.known_pages, self.domains, self.star, self.left_out = at.known_pages, at.domains, at.star, at.left_out
        self._placing = Placing(at, sizes)
        ready_rows = sizes.ready if isinstance(order, BreadthFirst) else sizes.ordered
        round_s = config.default_budget_urls * host_delay_s
        self.supply = Supply(at, sizes, ready_rows=ready_rows, round_s=round_s, saved=saved)
        self._refill = Refill(at.ready, at.window, at.left_out, at.blocked, at.asleep, at.traps, at.quota)
        self._leased = DiskQueue(store, "leased", URLS, saved.get("leased"))

    def __repr__(self) -> str:
        return f"Frontier({self._stages!r})"

    # --- coming in

    def put_links(self, links: Links) -> None:
        """Take the links of pages. A link of kind `SEED` that was met on a page is where that seed redirects to."""
        urls = links.urls
        self.extend_scope(urls)
        if not self._alone:
            targets = u64(urls, "domain")
            within = self._filters.domains
            inside = slice(None) if within is None else among(targets, within)
            self.star.link(links.sources[inside], targets[inside])
        self._stages.seen.check_update(self.left_out.accepted(urls))

    def extend_scope(self, urls: pa.RecordBatch) -> None:
        """Note where seeds redirect to, if `urls` say so. The URLs need not be of this shard."""
        self._landing.follow(urls)

    @property
    def _alone(self) -> bool:
        """True if the scope is a single domain."""
        return self._filters.domains is not None and len(self._filters.domains) < 2

    def put_seeds(self, seeds: Sequence[Locator], *, named: bool = True) -> None:
        """Begin, or go on, with more seeds; no filter applies to them."""
        self.know_seeds(seeds, named=named)
        urls = url_batch(seeds, kind=Kind.SEED)
        self.put_links(Links(urls, np.zeros(urls.num_rows, np.uint64)))

    def know_seeds(self, seeds: Sequence[Locator], *, named: bool = True) -> None:
        """Take `seeds` into the scope; `named` as in `Landing.know`."""
        self._landing.know(seeds, named=named)

    def rouse(self) -> None:
        """Let the URLs of sleeping hosts go, because settings changed. The fetcher gives back those whose hosts still
        rest."""
        self._stages.asleep.rouse()

    def put_outcomes(self, outcomes: Outcomes, now: float) -> None:
        """Take the ends of visits, and answers about robots.txt files."""
        ended = outcomes.ended
        if ended.num_rows:
            self._stages.window.ended(u64(ended, "key"), u64(ended, "host"))
            self.note_ended(ended)
            self.put_done(ended)
        columns = (outcomes.learned.column(name).to_pylist() for name in LEARNED.names)
        for origin, rules, until in zip(*columns, strict=True):
            self._stages.gate.learn_rules(origin.decode(), Rules(rules), until, now)
        if outcomes.put_off.num_rows:
            self._put_off(outcomes.put_off, now)
        self.known_pages.note(outcomes.dated)
        self._stages.asleep.delay(outcomes.delayed, now)

    def learn(self, judged: pa.RecordBatch) -> Steps[None]:
        """Learn from pages that were read for new text (schema `JUDGED`)."""
        for start in range(0, judged.num_rows, JUDGED_ROWS):
            self._stages.traps.learn(judged.slice(start, JUDGED_ROWS))
            yield

    def note_ended(self, ended: pa.RecordBatch) -> None:
        """Note that visits ended (schema `ENDED`). The rest of a host decides how many visits it may have out; the
        number of its visits is compared with what was found of it."""
        planned = keep(ended, numbers(ended, "kind") != Kind.PROBE)
        hosts = u64(planned, "host")
        endless = self._stages.traps.note_visited(u64(planned, "key"), hosts, u64(planned, "domain"))
        self._stages.window.slow.ended(hosts, numbers(planned, "rest_s").tolist(), endless)
        self._stages.gate.asks.over(u64(ended, "domain"))
        asked = keep(ended, numbers(ended, "rest_s") >= 0)
        self._stages.window.rests(u64(asked, "host").tolist(), numbers(asked, "rest_s").tolist())

    def _put_off(self, visits: pa.RecordBatch, now: float) -> None:
        """Take visits back; they wait for room at their host, or asleep."""
        self._stages.gate.asks.over(u64(visits, "domain"), asked=False)
        hosts, host_until = u64(visits, "host"), visits.column("host_until").to_numpy()
        self._stages.window.ended(u64(visits, "key"), hosts)
        rests = dict(zip(hosts.tolist(), host_until.tolist(), strict=True))
        self._stages.asleep.sleep({host: until for host, until in rests.items() if until > now + SOON_S}, now)
        self._stages.window.rests(rests, (until - now for until in rests.values()))
        sleep = visits.column("until").to_numpy() > now + SOON_S
        self._stages.asleep.put(keep(visits, sleep).select(WAITING.names), now)
        self._refill.spill(keep(visits, ~sleep).select(URLS.names))

    def put_done(self, ended: pa.RecordBatch) -> None:
        """Note that visits are over (schema `ENDED`) and not out any more, and count them for their domains."""
        self._stages.quota.count(ended)
        self.domains.note_ended(keep(ended, numbers(ended, "kind") != Kind.PROBE), self._sizes.batch)

    def hold(self, ended: pa.RecordBatch) -> None:
        """Note that visits are over (schema `ENDED`) and not out any more, but their results are not safe."""
        self._stages.quota.hold_ended(ended)

    def hold_visits(self, visits: Iterable[tuple[int, int]]) -> None:
        """Note that results of these visits (key and host each) may be with other agents, not safe yet."""
        self._stages.quota.hold(visits)

    # --- from stage to stage

    @property
    def need(self) -> Need:
        """Urgency with which more visits to hand out are wanted."""
        if not self._stages.window.low or self._stages.ready.waiting:
            return Need.NONE
        return Need.DRY if len(self._stages.window) < max(1, self._few_visits) else Need.LOW

    @property
    def known_share(self) -> float:
        """Share of known URLs among those that a merge would read, 0 to 1."""
        seen = self._stages.seen
        return len(seen) / max(1, len(seen) + seen.pending)

    def steps(self, now: float, *, may_merge: bool, quiet: bool = True) -> Steps[bool]:
        """Move found URLs on towards the ready queues. Returns whether any moved. Between two steps the caller may only
        put URLs and block hosts.

        `quiet`: nothing is being fetched that may lead to more URLs, so that traps may go if nothing else waits.
        `may_merge`: merges of less than a full batch are granted, because visits run low (`need`). Their cost is the
        caller's to weigh, because it has a clock and the frontier has none.
        """
        if may_merge:
            self.domains.count_ended()
        for woken in self._stages.asleep.woken(now):
            self.supply.make_ready(woken)
        for released in self._stages.quota.released():
            self.supply.make_ready(released)
        if self.left_out.freed:
            self._stages.seen.check_update(self.left_out.links_again())
            self.supply.put(self.left_out.urls_again(), now)
        self.supply.put(self._stages.traps.take_cleared(), now)
        self.supply.put(self._stages.traps.take_share(), now)
        self.supply.put(self._probes(), now)
        moved = self._stages.seen.full or (may_merge and self._stages.seen.pending > 0)
        if moved:
            yield from self._advance()
        moved |= yield from self._placing.turn(may_merge=may_merge)
        near = self.level if self._by_level else None
        moved |= yield from self.supply.fill(now, near, may_merge=may_merge, dry=self.need >= Need.DRY, quiet=quiet)
        if moved:
            return True
        if quiet and len(self._stages.traps) and not self._stages.others_wait:
            self.supply.put(self._stages.traps.release(max(1, RELEASED * self._few_visits)), now)
            return True
        if self._descends and self.level_done and self.later_urls:
            yield from self.descend(self.level + 1)
            return True
        return False

    def _probes(self) -> pa.RecordBatch:
        """Return the probes to make now: pages that cannot be there (schema `URLS`)."""
        if not (wanted := self._stages.traps.probes.take()):
            return EMPTY
        urls, about = zip(*wanted, strict=True)
        return self._filters.accept(url_batch(list(map(locate, urls)), via=about, kind=Kind.PROBE))

    def _advance(self) -> Steps[None]:
        """Merge the URLs found with those seen. New ones go on to their domain's budget."""
        for unique in self._stages.seen.merge():
            self.known_pages.note_new_links(u64(unique, "via"))
            self._stages.traps.probes.note_found(u64(unique, "host"), u64(unique, "domain"))
            yield
            for start in range(0, unique.num_rows, self._sizes.batch):  # a merge may return millions
                urls = unique.slice(start, self._sizes.batch)
                urls = self._stages.put_off_deeper(urls, self.level) if self._by_level else urls
                yield from self._placing.put(urls, alone=self._alone)

    @property
    def level_done(self) -> bool:
        """True if no URL is out, and no URL waits except as in `Stages.nothing_waits_at_level`."""
        return not len(self._stages.window) and self._stages.nothing_waits_at_level

    def descend(self, level: int) -> Steps[None]:
        """Let go of the pages of `level`, because all pages nearer to the seeds are done."""
        self.level = level
        self.supply.next_level()
        for batch in self._stages.later.drain(self._sizes.batch):
            yield from self._placing.put(self._stages.put_off_deeper(batch, level), alone=self._alone)

    # --- going out

    def resume(self) -> None:
        """Let visits wait again that were handed out before a restart and not made."""
        while (urls := self._leased.get(self._sizes.batch)) is not None:
            self.supply.make_ready(urls)
        self._stages.gate.resume()

    def visits(self, now: float, most_rules: int) -> pa.RecordBatch:
        """Return the visits that the fetcher may have now (schema `URLS`), possibly none: pages, which are out until
        their outcomes come, and at most `most_rules` robots.txt files to bring, of kind `RULES`."""
        traps = self._stages.traps
        nothing_else = not len(self._stages.window) and not len(traps)
        rules = self._stages.gate.asks.wanted(most_rules, now, traps.are_hosts_in_doubt, all_of_a_domain=nothing_else)
        pages = self._filters.marked(self._refill.visits(now))
        return concat([batch for batch in (rules, pages) if batch.num_rows])

    # --- what a person asks for

    def block(self, hosts: Iterable[int]) -> None:
        """Hand out no URL of hosts with these keys."""
        self._stages.blocked.add(hosts)

    def unblock(self, hosts: Iterable[int]) -> int:
        """Unblock hosts with these keys, and go on with all URLs of unblocked hosts. Returns their number."""
        count = 0
        for urls in self._stages.blocked.release(hosts):
            count += urls.num_rows
            self.supply.make_ready(urls)
        return count

    def plan_revisits(self, now: float, terms: Terms, *, by_line: bool = False, first: bool = False) -> Iterator[None]:
        """Plan visits to known pages, as `KnownPages.plan` does: level by level if the crawl has levels, and before new
        pages if `first`."""
        if self._stages.seen.pending:  # links found at first visits must not count as new links of known pages
            whole(self._advance())
        if not by_line:
            self.resume()
        self.supply.plan(known_first=first, by_line=by_line)
        yield from self.known_pages.plan(now, terms, by_line=by_line)
        self.level = 0

    def take_back(self, urls: pa.RecordBatch) -> None:
        """Let visits wait again that the fetcher gave back unmade."""
        self._stages.window.ended(u64(urls, "key"), u64(urls, "host"))
        self._stages.ready.put(urls)

    def take_out(self, keys: Iterable[int]) -> pa.RecordBatch:
        """Take out and return the visits with these keys (schema `URLS`), not out any more: the caller holds them from
        now on."""
        return self._stages.window.take_out(keys)

    def overflowed(self, host: int) -> bool:
        """Return whether more URLs of the host with this key wait on disk than are handed out."""
        return self._refill.overflowed(host)

    # --- reports

    def accused(self) -> Sequence[int]:
        """Return hosts whose visits that are out may be traps, or come too soon, as learned since the last call."""
        accused = self._stages.traps.take_accused() | self._stages.window.slow.take_new()
        return self._stages.window.hosts_of(accused) if accused else ()

    def refused(self) -> pa.RecordBatch:
        """Return the URLs that robots.txt refused since the last call (schema `URLS`), out until their outcomes
        come."""
        refused = self._stages.gate.refused()
        self._stages.window.note(refused)
        return refused

    @property
    def plugin_failures(self) -> Counter[str]:
        """Number of times the budget function or the order raised or gave nonsense, by the plug-in's name."""
        return self.star.failures + self._stages.ready.failures

    @property
    def empty(self) -> bool:
        """True if no URL is out, and none waits except for URLs without any budget, of blocked hosts, beyond a limit of
        pages, or refused by a rule."""
        return self.level_done and not self.later_urls

    @property
    def later_urls(self) -> int:
        """Number of URLs that wait for pages nearer to the seeds to be done, or for their next visit."""
        return len(self._stages.later) + len(self.known_pages)

    @property
    def blocked_urls(self) -> int:
        """Number of URLs that wait for a person to unblock their host."""
        return len(self._stages.blocked)

    @property
    def policy_bytes(self) -> int:
        """Bytes that the queues of rounds wrote and read in this process."""
        counts = (queue.statistics() for queue in self._stages.beast.queues())
        return sum(count.written_bytes + count.read_bytes for count in counts)

    def rests_until(self, now: float) -> float:
        """Return when the first waiting URL may go on, if all wait for hosts that rest; 0 otherwise."""
        return self._stages.rests_until(now)

    def state(self) -> dict[str, object]:
        """Return everything that a restart needs; nothing found stays in memory only."""
        own = {"level": self.level, "leased": self._lease()}
        return {**own, **self._landing.state(), **self.supply.state(), **self._stages.state()}

    def _lease(self) -> dict[str, Any]:
        """Write down the visits that are out, in place of the last list."""
        self._leased.destroy()
        self._leased = DiskQueue(self._store, "leased", URLS)
        for urls in self._stages.window.rows():
            self._leased.put(urls)
        return self._leased.state()

    def statistics(self) -> FrontierStatistics:
        return self._stages.statistics()

    def close(self) -> None:
        self._stages.close()
        self._leased.close()
