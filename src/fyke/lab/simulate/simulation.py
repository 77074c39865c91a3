"""A crawl that never opens a socket: the real loop, frontier and workbench on a virtual clock and a virtual web.

`fyke simulate` and the benches use it through `fyke.lab.simulate.keep`. `step` runs one turn of the real loop
(`fyke.crawl.loop`) and one slice of virtual time; if nothing happens, the clock jumps. Only the fetcher and the
harvest are virtual (`fyke.lab.simulate.fetcher`).

Invariant: no wall clock is read and nothing is drawn at random, so the same web and policy give the same bytes on any
machine.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fyke.core.clock import VirtualClock
from fyke.core.config import Config
from fyke.core.hours import HostHours
from fyke.core.messages import Links
from fyke.crawl.engines import Engines
from fyke.crawl.loop import Loop
from fyke.crawl.outbox import LinkCache, Outbox
from fyke.crawl.revisits import Revisits
from fyke.disk.store import Store
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier
from fyke.lab.simulate.changing import Copies, Lists, Pages
from fyke.lab.simulate.fetcher import VirtualFetcher, VirtualHarvest
from fyke.lab.simulate.tally import Tally, tally_of
from fyke.lab.simulate.texts import Text
from fyke.lab.simulate.web import START, VirtualWeb

SLICE_S = 0.25
MERGE_S = 1.0  # seconds between small merges while visits run low; replaces their measured cost
SEEDS = 100

Fetched = Callable[[Text], None]


class Simulation:
    """A crawl of `web` under `config`, on the files of `store`; goes on from `saved`."""

    def __init__(
        self, web: VirtualWeb, config: Config, store: Store, saved: Mapping[str, Any], *, fetched: Fetched | None
    ) -> None:
        """`fetched` is called with the URLs of each batch of pages before their links are handed in."""
        self.web = web
        started = float(saved.get("now", START))
        self.clock = VirtualClock(started)
        self.tally: Tally = tally_of(web.spec.all_domains, store, saved.get("tally", {}))
        filters = filters_for(config.crawl, [], ("http",), [])
        self.frontier = Frontier(
            store,
            config.frontier,
            filters,
            by_level=False,
            host_delay_s=config.politeness.host_delay_s,
            few_visits=config.fetch.connections,
            opened_at=started,
            state=saved.get("frontier"),
        )
        self.copies = self._copies(saved.get("copies", {}))
        self._revisits: Revisits | None = None
        if self.copies is not None:
            self._revisits = Revisits(self.frontier, lambda: iter(()), lambda: None, self.clock, config.revisit)
        rested_since = started if saved else 0.0
        self.fetcher = VirtualFetcher(
            web, config, self.clock, self.tally, slice_s=SLICE_S, rested_since=rested_since, copies=self.copies
        )
        self._pages = VirtualHarvest(web, self.tally, fetched, self.clock, self.copies)
        self._outbox = Outbox(LinkCache(0, by_depth=False))
        self._loop = Loop(
            Engines(self.frontier, self.fetcher, self._pages, self._outbox, revisits=self._revisits),
            config.crawl,
            self.clock,
            asyncio.Event(),
            least_merge_s=MERGE_S,
            hours=HostHours(config.politeness.hours, config.site),
        )
        if saved:
            self.frontier.resume()
        else:
            seeds = web.seeds(SEEDS)
            self.frontier.put_links(Links(seeds, np.zeros(seeds.num_rows, np.uint64)))

    def _copies(self, saved: dict[str, Any]) -> Copies | None:
        """Return the copies of pages that change, or None if no page of this web changes."""
        spec = self.web.spec
        if not spec.change_days:
            return None
        pages = Pages(spec.seed, spec.change_days, spec.bursty_share, START)
        lists = Lists(spec.seed, pages, self.web.domains, spec.listed_share)
        return Copies(pages, lists, self.frontier.known_pages, saved)

    def __repr__(self) -> str:
        return f"Simulation({self.tally.totals.pages} pages in {self.virtual_s:.0f} s, {self.frontier!r})"

    @property
    def virtual_s(self) -> float:
        """Virtual seconds since the simulation began."""
        return self.clock.now() - START

    def step(self) -> bool:
        """Run one turn of the loop and the next slice of time; return whether anything is left to do."""
        self._loop.turn()
        if self._loop.idle and (self._loop.moved or (self.frontier.empty and self._revisits is None)):
            return self._revisits is not None or not self.frontier.empty
        self._advance(self.clock.now())
        return True

    def _advance(self, now: float) -> None:
        """Move the clock to the next slice in which something may happen."""
        due = self.fetcher.next_due()
        if due is None and self._loop.idle:
            due = self.frontier.rests_until(now)
            if self._revisits is not None:
                due = min(due or self._revisits.next_at, self._revisits.next_at)
        number = max(np.floor(now / SLICE_S) + 1, np.ceil((due or 0.0) / SLICE_S))
        self.clock.advance(max(0.0, float(number) * SLICE_S - now))

    def state(self, store: Store) -> dict[str, Any]:
        """Return everything that a restart needs."""
        self._pages.hand_on(self._outbox)
        self._loop.settle()
        copies = self.copies.state() if self.copies is not None else {}
        state = {"frontier": self.frontier.state(), "tally": self.tally.save(store), "copies": copies}
        return {"now": self.clock.now(), **state}

    def close(self) -> None:
        self.frontier.close()
