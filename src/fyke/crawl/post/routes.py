"""Which agent asks which host? Visits of this shard wait here until that is known, and they can go out.

A host's address decides. If it is not known, it is looked up, and the host is pinned to the address's agent (`handed`)
as long as visits of it are out. Invariant: a visit that was put in is with the caller of `due`, or waits here, or was
blocked.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from fyke.archive.division import Division
from fyke.core.batches import Kind, Mask, concat, keep, numbers, texts, u64
from fyke.core.urls import split
from fyke.crawl.post.dealings import Dealings
from fyke.fetcher.names import Resolution, Resolver
from fyke.fetcher.refusals import Refusals

UNPIN_S = 1.0  # between looks for hosts that may go to another agent


class Routes:
    """The visits of the shard of agent `me` that are on their way to agents."""

    def __init__(
        self, me: int, division: Division, dealings: Dealings, resolver: Resolver, news: asyncio.Event
    ) -> None:
        """`news` is set when a name was looked up."""
        self._me = me
        self._division = division
        self._dealings = dealings
        self._handed = dealings.handed
        self._resolver = resolver
        self._news = news
        self._new: list[pa.RecordBatch] = []  # visits that came from the frontier since the last turn
        self._refused = Refusals()  # visits to be refused by the agents that ask their hosts
        self._waiting: dict[int, list[pa.RecordBatch]] = {}  # visits whose hosts have no agent yet
        self._for: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)  # visits that can go out
        self._lookups: dict[int, asyncio.Task[None]] = {}
        self._named: dict[int, Resolution] = {}  # names looked up, of which no agent was told yet
        self._moving: set[int] = set()  # hosts that must be with no agent before they have another
        self._blocked: set[int] = set()
        self._unpin_at = 0.0
        self._asked: dict[int, pa.RecordBatch] = {}  # by key: visits for rules that other agents bring

    def __repr__(self) -> str:
        return f"Routes({len(self._waiting)} hosts wait, {len(self._lookups)} looked up)"

    @property
    def waiting(self) -> bool:
        """True if any visit waits here."""
        return bool(self._new or self._refused or self._waiting or any(self._for.values()))

    def put(self, visits: pa.RecordBatch) -> None:
        """Take `visits` (schema `URLS`) that the frontier hands out."""
        if visits.num_rows:
            self._new.append(visits)

    def refuse(self, visits: pa.RecordBatch) -> None:
        """Take `visits` that rules forbid; a portion goes out at a time."""
        self._refused.put(visits)

    def take_new(self) -> list[pa.RecordBatch]:
        """Return the visits that were put in; the caller gives those that are to be made to `sort`."""
        self.put(self._refused.next())
        new, self._new = self._new, []
        return new

    def sort(self, visits: pa.RecordBatch) -> None:
        """Sort `visits` by the agent of their host; visits to a host without one wait."""
        hosts = u64(visits, "host")
        unique, places = np.unique(hosts, return_inverse=True)
        agents = [-1 if host in self._waiting else self._handed.agent_of(host) for host in unique.tolist()]
        of_row = np.array([-1 if agent is None else agent for agent in agents], np.int64)[places]
        for agent in np.unique(of_row).tolist():
            rows = keep(visits, of_row == agent)
            if agent >= 0:
                self._for[agent].append(rows)
            else:
                self.wait(rows)

    def wait(self, visits: pa.RecordBatch) -> None:
        """Let `visits` wait for their hosts to have an agent."""
        hosts = u64(visits, "host")
        for host in np.unique(hosts).tolist():
            self._waiting.setdefault(host, []).append(keep(visits, hosts == host))

    def move(self, visits: pa.RecordBatch) -> None:
        """Let `visits` wait, whose host moved, until it is with no agent and then has another."""
        self._moving.update(u64(visits, "host").tolist())
        self.wait(visits)

    def due(self, now: float) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield visits that go out now, by the agent that makes them."""
        self._assign(now)
        for agent, batches in self._for.items():
            if batches and self._dealings.reachable(agent):
                urls = concat(batches)
                batches.clear()
                yield agent, urls

    def _assign(self, now: float) -> None:
        """Give hosts without an agent one if their address is known, and release the visits that wait for that."""
        if now >= self._unpin_at:
            self._unpin_at = now + UNPIN_S
            on_their_way = [u64(urls, "host").tolist() for batches in self._for.values() for urls in batches]
            self._handed.unpin(now, set(chain.from_iterable(on_their_way)))
        for host in [host for host in self._waiting if host not in self._lookups]:
            agent = self._handed.agent_of(host)
            if agent is not None and host in self._moving:
                continue  # first all visits that are out come back, and the host rests
            if agent is None:
                agent = self._agent_for(host)
                if agent is None:
                    continue
                self._handed.pin(host, agent, now)
            self._moving.discard(host)
            self._for[agent] += self._waiting.pop(host)

    def _agent_for(self, host: int) -> int | None:
        """Return the agent that asks `host`; None while its name is looked up. A host without an address is ours, to be
        given up."""
        name = split(texts(self._waiting[host][0].slice(0, 1))[0]).host
        answer = self._resolver.cached(name)
        if answer is None:
            task = asyncio.get_running_loop().create_task(self._look_up(host, name))
            self._lookups[host] = task
            return None
        if not answer.addresses:
            return self._me
        agent = self._division.agent_of(answer.addresses[0])
        if agent != self._me:
            self._named[host] = answer
        return agent

    async def _look_up(self, host: int, name: str) -> None:
        try:
            await self._resolver.resolve(name)
        finally:
            del self._lookups[host]
            self._news.set()

    def take_named(self, hosts: Iterable[int]) -> list[Resolution]:
        """Return the addresses of `hosts` that no agent was told of yet."""
        return [self._named.pop(host) for host in dict.fromkeys(hosts) if host in self._named]

    # --- rules

    @property
    def asked(self) -> int:
        """Number of robots.txt that other agents are to bring."""
        return len(self._asked)

    def note_rules(self, lent: pa.RecordBatch) -> None:
        """Note the visits that bring rules among those `lent`."""
        rules = keep(lent, numbers(lent, "kind") == Kind.RULES)
        self._asked.update((key, rules.slice(row, 1)) for row, key in enumerate(u64(rules, "key").tolist()))

    def rules_over(self, key: int, now: float) -> None:
        """Note that the rules with this key came, or are no longer asked for."""
        self._asked.pop(key, None)
        self._handed.back(key, now)

    def without_rules(self, lost: Iterable[int]) -> list[int]:
        """Return the keys of pages among the `lost`; rules wait here to be asked for again."""
        pages = []
        for key in lost:
            rules = self._asked.pop(key, None)
            if rules is None:
                pages.append(key)
            else:
                self.wait(rules)
        return pages

    # --- what a person blocked

    def blocked(self, visits: pa.RecordBatch) -> Mask:
        """Return which of `visits` are to hosts that are blocked: bool[n]."""
        return np.isin(u64(visits, "host"), list(self._blocked))

    def block(self, host: int) -> pa.RecordBatch:
        """Request nothing more of `host`; return its pages that wait here (schema `URLS`)."""
        self._blocked.add(host)
        waiting = [*self._waiting.pop(host, []), self._refused.take_back("host", lambda hosts: np.equal(hosts, host))]
        for batches in (self._new, *self._for.values()):
            waiting += [keep(urls, u64(urls, "host") == host) for urls in batches]
            batches[:] = [keep(urls, u64(urls, "host") != host) for urls in batches]
        return concat([keep(urls, numbers(urls, "kind") != Kind.RULES) for urls in waiting])

    def unblock(self, host: int) -> None:
        """Go on with `host`."""
        self._blocked.discard(host)

    def close(self) -> None:
        """Look up nothing more."""
        for task in self._lookups.values():
            task.cancel()
