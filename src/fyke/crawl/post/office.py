"""The post office of an agent: what is for other agents goes out as letters, what comes in is given to the loop.

    outbox ─► sort by shard ─► letters ─► transport          links, outcomes
    frontier ─► route by host ─► letters ─► transport        visits; those for this agent go on to the fetcher
    transport ─► letters ─► events ─► the loop moves them

The rules are those of `dealings`; here are the columns, the names that must be resolved before a visit can be routed,
and what a checkpoint keeps. With one agent there is none of this: the loop has `fyke.crawl.mail.Alone` in its place.

Invariant: what the loop put in is in a letter, or waits here, or was given back; and a checkpoint finds nothing of it
in memory but what the frontier has as handed out.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from fyke.archive.division import Division
from fyke.core.batches import EMPTY, URLS, Kind, concat, keep, numbers, texts, u64, url_batch
from fyke.core.clock import Clock
from fyke.core.messages import ENDED, NONE_ENDED, NONE_LEARNED, Links, Outcomes, links_of
from fyke.core.urls import Locator, host_keys, key_of, locate, robots_url, split
from fyke.core.visits import Exchange, Visit, robots_visit
from fyke.crawl.mail import MESSAGE_ROWS
from fyke.crawl.post import columns
from fyke.crawl.post.dealings import Dealings, Deeds, Mail
from fyke.crawl.post.drawer import Drawer
from fyke.crawl.post.handed import Told
from fyke.crawl.post.letters import Envelope, Letter
from fyke.disk.queue import DiskQueue
from fyke.disk.store import Store
from fyke.fetcher.names import Resolution, Resolver
from fyke.fetcher.rests import BOOKED_WAIT_S, Rests

LINGER_S = 0.05  # that links and outcomes wait for others to the same shard
UNPIN_S = 1.0  # between looks for hosts that may go to another agent
_WHOSE = ("key", "host", "domain")
_HOW = [field.name for field in ENDED if field.name not in _WHOSE]
LENT = pa.schema([*URLS, *(ENDED.field(name).with_name(f"ended_{name}") for name in _HOW)])  # a visit, and how it ended
_TOLD = [pa.field("agent", pa.uint32()), pa.field("life", pa.uint64()), pa.field("number", pa.uint64())]
UNSAFE = pa.schema([*LENT, *_TOLD])


class Transport(Protocol):
    """What carries envelopes. It may lose them, repeat them and put them out of order."""

    def send(self, to: int, frame: bytes) -> None:
        """Carry the frame to the agent `to`, if that can be done now."""


@dataclass(frozen=True, slots=True)
class Met:
    """An agent lives anew, or we do: drop what waits here of the visits of its shard, and say `hold`."""

    agent: int


@dataclass(frozen=True, slots=True)
class Found:
    """Links to URLs of this shard, or where seeds redirect to; the latter may be of other shards."""

    links: Links
    landed: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Ended:
    """Visits that are out have ended: let go of them. Where `told` is not None, they are to be given to `keep`."""

    keys: list[int]
    ended: pa.RecordBatch  # schema `ENDED`, one row for each key
    told: Told | None


@dataclass(frozen=True, slots=True)
class Done:
    """Visits that ended and were let go of are safe (schema `ENDED`)."""

    ended: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Learned:
    """Rules that were learned (schema `LEARNED`)."""

    learned: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Again:
    """Visits that ended, in vain (schema `URLS`), and keys of visits that are out, with nobody: they wait again."""

    urls: pa.RecordBatch
    keys: list[int]


@dataclass(frozen=True, slots=True)
class Visits:
    """Visits to be made here (schema `URLS`)."""

    urls: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Errand:
    """A robots.txt to be fetched for another agent."""

    visit: Visit


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an errand of ours."""

    exchange: Exchange


Event = Met | Found | Ended | Done | Learned | Again | Visits | Errand | Answer


class Office:
    """The post of agent `me` of a crawl that is divided so, in its present `life`."""

    def __init__(
        self,
        me: int,
        division: Division,
        transport: Transport,
        rooms: tuple[Store, Resolver, Rests, Clock],
        life: int,
        saved: Mapping[str, Any],
        most_rules: int,
        news: asyncio.Event,
    ) -> None:
        """`saved` is what `state` gave; `most_rules` are asked for at a time."""
        self._me = me
        self._division = division
        self._transport = transport
        self._store, self._resolver, self._rests, self._clock = rooms
        self._most_rules = most_rules
        self._news = news
        self._others = [agent for agent in range(division.agents) if agent != me]
        self._dealings = Dealings(me, self._others, life, BOOKED_WAIT_S, saved.get("letters"))
        self._handed, self._letters = self._dealings.handed, self._dealings.letters
        self._drawer = Drawer(self._store, self._letters.bodies())
        self._unsafe = DiskQueue(self._store, "unsafe", UNSAFE, saved.get("unsafe"))
        self._restore(saved)
        self._links: defaultdict[int, list[Links]] = defaultdict(list)
        self._ended: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._learned: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._rows = 0  # of all these
        self._since = 0.0  # when the first of them came
        self._guests: dict[int, tuple[int, int]] = {}  # pages of other shards to be visited here: shard, host
        self._asked: dict[int, pa.RecordBatch] = {}  # rules that others bring
        self._wanted: dict[int, Visit] = {}  # errands that are made for this agent, by their keys
        self._errands: dict[int, tuple[int, str, int]] = {}  # errands to hosts of this shard, as in `columns`
        self._made: dict[int, int] = {}  # errands that are made here: the shard that sent them
        self._handed_out: list[pa.RecordBatch] = []  # visits that came from the frontier since the last turn
        self._waiting: dict[int, list[pa.RecordBatch]] = {}  # visits whose hosts have no agent yet
        self._for: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)  # visits that can go out
        self._lookups: dict[int, asyncio.Task[None]] = {}
        self._named: dict[int, Resolution] = {}  # names looked up, and nobody was told of them yet
        self._events: list[Event] = []
        self._inbox: list[Envelope] = []
        self._moving: set[int] = set()  # hosts that must be with nobody before they have another agent
        self._blocked: set[int] = set()
        self._unpin_at = 0.0
        self.activity = 0  # grows with whatever comes in, goes out or is told

    def __repr__(self) -> str:
        return f"Office(agent {self._me} of {self._division.agents}, {self._dealings!r})"

    def _restore(self, saved: Mapping[str, Any]) -> None:
        unsafe = []
        for batch in self._unsafe.scan():
            places = np.stack([numbers(batch, field.name).astype(np.uint64) for field in _TOLD])
            for told in np.unique(places, axis=1).T:
                mask = (places == told[:, None]).all(axis=0)
                rows = pa.RecordBatch.from_arrays(keep(batch, mask).columns[: len(LENT)], schema=LENT)
                unsafe.append((Told(*told.tolist()), rows))
        self._handed.restore(unsafe, ((key, Told(*told), tuple(row)) for key, told, row in saved.get("early", [])))
        now = self._clock.now()
        resting = [(host_keys(name)[0], due - now) for name, due in self._rests.hosts(now)]
        self._handed.holds(self._me, 0, (), resting, now)

    # --- what the loop asks

    def owns(self, address: str) -> bool:
        """Whether the server at `address` is asked from here."""
        return self._division.agent_of(address) == self._me

    def of_shard(self, agent: int) -> Callable[[int], bool]:
        """Whether a domain, by its key, is of the shard of `agent`."""
        return lambda domain: self._division.shard_of(domain) == agent

    def own_seeds(self, seeds: Sequence[Locator]) -> Sequence[Locator]:
        """Those of `seeds` that are of this shard."""
        return [seed for seed in seeds if self._division.shard_of(seed.domain) == self._me]

    @property
    def lent(self) -> bool:
        """Whether visits of this shard are with others, or on their way."""
        waiting = self._handed_out or self._waiting or any(self._for.values())
        return bool(self._handed.out or self._wanted or waiting)

    @property
    def quiet(self) -> bool:
        """Whether nothing is on its way from here, or waits here."""
        return not (self._inbox or self._events or self._rows or self._guests or self.lent) and self._letters.quiet

    @property
    def unsafe(self) -> int:
        """How many times outcomes were told that are not safe yet."""
        return self._handed.ended

    def rules_room(self, here: int) -> int:
        """How many more origins may be asked for their rules."""
        return max(0, self._most_rules - len(self._asked))

    # --- what comes in

    def put(self, envelope: Envelope) -> None:
        """An envelope came."""
        self._inbox.append(envelope)
        self._news.set()

    def receive(self, now: float) -> Iterator[Event]:
        """What came since this was last asked, in order."""
        events, self._events = self._events, []
        yield from events
        inbox, self._inbox = self._inbox, []
        self.activity += len(events)
        for envelope in inbox:
            sender = envelope.sender
            deeds = self._dealings.take(envelope, now)
            self._drawer.drop(self._letters.dropped())
            if deeds.met:
                yield Met(sender)
                self._send_errands_again(sender)
            if deeds.letter is not None:
                self.activity += 1
                yield from self._opened(sender, deeds.letter, now)
            yield from self._follow(self._dealings.after(sender, now))

    def _opened(self, sender: int, letter: Letter, now: float) -> Iterator[Event]:
        match letter.kind:
            case Mail.LINKS:
                yield self._found(columns.links_opened(letter.body))
            case Mail.OUTCOMES:
                yield from self._told(sender, letter, columns.outcomes_opened(letter.body), now)
            case Mail.HOLDS:
                self._dealings.held(sender, letter._replace(body=json.loads(letter.body)), now)
            case Mail.VISITS:
                urls, named, errands = columns.visits_opened(letter.body)
                self._resolver.load(named)
                yield from self._errands_in(sender, urls, errands)
                yield Visits(self._guested(sender, _without(urls, errands)))
            case Mail.RETURNED:
                self._came_back(columns.visits_opened(letter.body)[0], now)
            case Mail.ERRAND:
                self._errand_of(sender, columns.errand_opened(letter.body))
            case Mail.ANSWER:
                self._answered(letter.body, now)

    def _found(self, links: Links) -> Found:
        ours = self._division.shards_of(u64(links.urls, "domain")) == self._me
        urls = keep(links.urls, ours)
        return Found(Links(urls, links.sources[ours]), EMPTY if ours.all() else keep(links.urls, ~ours))

    def _told(self, sender: int, letter: Letter, outcomes: Outcomes, now: float) -> Iterator[Event]:
        if outcomes.learned.num_rows:
            self._rules_came(outcomes.learned, now)
            yield Learned(outcomes.learned)
        ended = outcomes.ended
        rows = list(zip(*(column.to_pylist() for column in ended.columns), strict=True))
        keys = self._dealings.told(sender, letter, u64(ended, "key").tolist(), rows, now)
        if keys:
            out = ended if len(keys) == ended.num_rows else keep(ended, np.isin(u64(ended, "key"), keys))
            yield Ended(keys, out, Told(sender, letter.life, letter.number))

    def _rules_came(self, learned: pa.RecordBatch, now: float) -> None:
        for origin in learned.column("origin").to_pylist():
            key = key_of(robots_url(origin.decode()))
            self._asked.pop(key, None)
            self._handed.back(key, now)

    def _guested(self, sender: int, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Those of `urls`, lent by `sender`, that are not here yet."""
        keys = u64(urls, "key").tolist()
        new = np.fromiter((key not in self._guests for key in keys), np.bool_, len(keys))
        urls = keep(urls, new)
        pages = keep(urls, numbers(urls, "kind") != Kind.RULES)
        for key, host in zip(u64(pages, "key").tolist(), u64(pages, "host").tolist(), strict=True):
            self._guests[key] = sender, host
        blocked = np.isin(u64(urls, "host"), list(self._blocked))
        if blocked.any():
            self._own(keep(urls, blocked))
        return keep(urls, ~blocked)

    def _came_back(self, urls: pa.RecordBatch, now: float) -> None:
        """Visits of this shard were not made, since their host moved: they wait until it has another agent."""
        out = [self._handed.back(key, now) for key in u64(urls, "key").tolist()]
        urls = keep(urls, np.array(out, np.bool_))
        blocked = np.isin(u64(urls, "host"), list(self._blocked))
        if blocked.any():
            self._events.append(Again(keep(urls, blocked), []))
        urls = keep(urls, ~blocked)
        self._moving.update(u64(urls, "host").tolist())
        self._wait(urls)

    def _follow(self, deeds: Deeds) -> Iterator[Event]:
        for rows in deeds.done:
            yield Done(_ended_of(rows))
        lost = []
        self.activity += len(deeds.done) + len(deeds.again) + len(deeds.lost)
        for key in deeds.lost:
            rules = self._asked.pop(key, None)
            if rules is None:
                lost.append(key)
            else:
                self._wait(rules)
        again = [rows.select(URLS.names) for rows in deeds.again]
        if again or lost:
            yield Again(concat([pa.RecordBatch.from_arrays(rows.columns, schema=URLS) for rows in again]), lost)

    def keep(self, told: Told, urls: pa.RecordBatch, ended: pa.RecordBatch) -> None:
        """The visits `urls` ended as `ended` says, and are not safe yet."""
        urls, ended = urls.sort_by("key"), ended.sort_by("key")
        arrays = [*urls.columns, *(ended.column(name) for name in _HOW)]
        self._handed.keep(told, pa.RecordBatch.from_arrays(arrays, schema=LENT))

    def hold(self, agent: int, dropped: Iterable[pa.RecordBatch], now: float) -> None:
        """What waited of the shard of `agent` was `dropped` here: say what of it is under way, and which hosts rest."""
        self.flush()  # of what ended before, it must hear before it hands out anything
        for urls in dropped:
            for key in u64(urls, "key").tolist():
                self._guests.pop(key, None)
        self._made = {key: shard for key, shard in self._made.items() if shard != agent}
        under_way = [(key, host) for key, (shard, host) in self._guests.items() if shard == agent]
        resting = [
            (key, due - now)
            for name, due in self._rests.hosts(now)
            for key, domain in [host_keys(name)]
            if self._division.shard_of(domain) == agent
        ]
        body = self._dealings.holding(agent, under_way, resting)
        self._seal(agent, Mail.HOLDS, json.dumps(body).encode())

    # --- links and outcomes

    def post(self, links: Links, outcomes: Outcomes, now: float) -> tuple[Links, Outcomes]:
        """Take what is for other shards; what is for ours comes back."""
        return self._post_links(links, now), self._post_outcomes(outcomes, now)

    def _note(self, rows: int, now: float) -> None:
        self.activity += rows
        if rows and not self._rows:
            self._since = now
        self._rows += rows

    def _post_links(self, links: Links, now: float) -> Links:
        urls = links.urls
        if not urls.num_rows:
            return links
        shards = self._division.shards_of(u64(urls, "domain"))
        landed = (numbers(urls, "kind") == Kind.SEED) & (u64(urls, "via") != 0)  # every shard is to know
        for shard in range(self._division.shards):
            if shard != self._me:
                mask = (shards == shard) | landed
                if mask.any():
                    self._links[shard].append(Links(keep(urls, mask), links.sources[mask]))
                    self._note(int(mask.sum()), now)
        ours = shards == self._me
        if landed.any():
            self._events.append(Found(Links(EMPTY, links.sources[:0]), keep(urls, landed & ~ours)))
        return Links(keep(urls, ours), links.sources[ours])

    def _post_outcomes(self, outcomes: Outcomes, now: float) -> Outcomes:
        ended, learned = outcomes.ended, outcomes.learned
        if ended.num_rows:
            shards = self._division.shards_of(u64(ended, "domain"))
            for key, shard in zip(u64(ended, "key").tolist(), shards.tolist(), strict=True):
                if shard == self._me:
                    self._handed.back(key, now)
                else:
                    self._guests.pop(key, None)
            for shard in np.unique(shards[shards != self._me]).tolist():
                rows = keep(ended, shards == shard)
                self._ended[shard].append(rows)
                self._note(rows.num_rows, now)
            ended = keep(ended, shards == self._me)
        if learned.num_rows:
            domains = [locate(f"{origin.decode()}/").domain for origin in learned.column("origin").to_pylist()]
            shards = self._division.shards_of(np.array(domains, np.uint64))
            for shard in np.unique(shards[shards != self._me]).tolist():
                self._learned[shard].append(keep(learned, shards == shard))
                self._note(1, now)
            learned = keep(learned, shards == self._me)
            self._rules_came(learned, now)
        return Outcomes(ended, learned, judged=outcomes.judged)

    def flush(self) -> None:
        """Seal what waits for other shards."""
        for shard, links in self._links.items():
            if links:
                self._seal(shard, Mail.LINKS, columns.links_sealed(links_of(links)))
        for shard in self._ended.keys() | self._learned.keys():
            ended, learned = self._ended[shard], self._learned[shard]
            if ended or learned:
                outcomes = Outcomes(
                    pa.concat_batches(ended) if ended else NONE_ENDED,
                    pa.concat_batches(learned) if learned else NONE_LEARNED,
                )
                self._seal(shard, Mail.OUTCOMES, columns.outcomes_sealed(outcomes))
        for waiting in (self._links, self._ended, self._learned):
            waiting.clear()
        self._rows = 0

    def _seal(self, shard: int, kind: Mail, body: bytes) -> None:
        self._letters.seal(shard, kind, self._drawer.put(body))

    # --- visits

    def route(self, visits: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Send `visits` (schema `URLS`), which the frontier hands out, to the agents that ask their hosts; those that
        are made here come back, those of earlier calls too."""
        self.refuse(visits)
        if not self._dealings.ready:
            return EMPTY  # some may have ended, or be under way
        for urls in self._handed_out:
            self._sort(self._without_ended(urls))
        self._handed_out.clear()
        self._assign(now)
        here = []
        for agent, batches in self._for.items():
            if agent == self._me:
                here += batches
                batches.clear()
            elif batches and self._dealings.reachable(agent):
                self._lend(agent, concat(batches))
                batches.clear()
        urls = concat(here)
        errands = {key: self._errands[key] for key in u64(urls, "key").tolist() if key in self._errands}
        self._events += self._errands_in(self._me, urls, errands)
        self._handed.hand(self._me, 0, zip(u64(urls, "key").tolist(), u64(urls, "host").tolist(), strict=True))
        return _without(urls, errands)

    def refuse(self, visits: pa.RecordBatch) -> pa.RecordBatch:
        """`visits` are refused by their hosts' rules, which the agents that ask these hosts have: none is ended here
        at once."""
        if visits.num_rows:
            self.activity += visits.num_rows
            self._handed_out.append(visits)
        return EMPTY

    def _without_ended(self, visits: pa.RecordBatch) -> pa.RecordBatch:
        """`visits` without those of which is known that they ended, or are under way."""
        if not self._handed.remembers:
            return visits
        wanted = []
        for key in u64(visits, "key").tolist():
            early = self._dealings.early(key)
            if early is not None:
                told, row, safe = early
                arrays = [pa.array([value], field.type) for value, field in zip(row, ENDED, strict=True)]
                ended = pa.RecordBatch.from_arrays(arrays, schema=ENDED)
                self._events.append(Ended([key], ended, None if safe else told))
            wanted.append(early is None and not self._handed.goes_on(key))
        return keep(visits, np.array(wanted, np.bool_))

    def _sort(self, visits: pa.RecordBatch) -> None:
        """By agent, where the host has one; else the visits wait for that."""
        hosts = u64(visits, "host")
        unique, places = np.unique(hosts, return_inverse=True)
        agents = [-1 if host in self._waiting else self._handed.agent_of(host) for host in unique.tolist()]
        of_row = np.array([-1 if agent is None else agent for agent in agents], np.int64)[places]
        for agent in np.unique(of_row).tolist():
            rows = keep(visits, of_row == agent)
            if agent >= 0:
                self._for[agent].append(rows)
            else:
                self._wait(rows)

    def _wait(self, visits: pa.RecordBatch) -> None:
        """Let `visits` wait for their hosts to have an agent."""
        hosts = u64(visits, "host")
        for host in np.unique(hosts).tolist():
            self._waiting.setdefault(host, []).append(keep(visits, hosts == host))

    def _assign(self, now: float) -> None:
        """Give hosts that have none an agent, where their address is known, and let go of what waits for that."""
        if now >= self._unpin_at:
            self._unpin_at = now + UNPIN_S
            self._handed.unpin(now)
        for host in [host for host in self._waiting if host not in self._lookups]:
            agent = self._handed.agent_of(host)
            if agent is not None and host in self._moving:
                continue  # first all that is out comes back, and the host rests
            if agent is None:
                agent = self._agent_for(host)
                if agent is None:
                    continue
                self._handed.pin(host, agent, now)
            self._moving.discard(host)
            self._for[agent] += self._waiting.pop(host)

    def _agent_for(self, host: int) -> int | None:
        """Who asks `host`; None while its name is looked up. A host without an address is ours, to be given up."""
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

    def _lend(self, agent: int, urls: pa.RecordBatch) -> None:
        """Hand `urls` to `agent`, with the addresses of hosts that are new to it."""
        keys, hosts = u64(urls, "key").tolist(), u64(urls, "host").tolist()
        answers = [self._named.pop(host) for host in dict.fromkeys(hosts) if host in self._named]
        named = [
            (answer.host, answer.addresses, answer.expires_at) for answer in answers if isfinite(answer.expires_at)
        ]
        self._handed.hand(agent, self._letters.knows(agent), zip(keys, hosts, strict=True))
        for row in np.flatnonzero(numbers(urls, "kind") == Kind.RULES).tolist():
            self._asked[keys[row]] = urls.slice(row, 1)
        errands = {key: self._errands[key] for key in keys if key in self._errands}
        self._letters.seal(agent, Mail.VISITS, columns.visits_sealed(urls, named, errands), passing=True)

    def stray(self, urls: pa.RecordBatch, now: float) -> None:
        """The visits `urls` were not made here, since their hosts moved to the address of another agent."""
        own = self._own(urls)
        self._moving.update(u64(own, "host").tolist())
        for key in u64(own, "key").tolist():
            self._handed.back(key, now)
            self._made.pop(key, None)
        self._wait(own)

    def give_back(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """The visits `urls` were not made here, since a person blocked their host: those of this shard."""
        own = self._own(urls)
        for key in u64(own, "key").tolist():
            self._handed.back(key, now)
        return own

    def _own(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Those of `urls` that are of this shard; the others are sent back to theirs."""
        shards = self._division.shards_of(u64(urls, "domain"))
        for shard in np.unique(shards[shards != self._me]).tolist():
            rows = keep(urls, shards == shard)
            for key in u64(rows, "key").tolist():
                self._guests.pop(key, None)
                self._made.pop(key, None)
            self._seal(shard, Mail.RETURNED, columns.visits_sealed(rows))
        return keep(urls, shards == self._me)

    def block(self, host: int) -> pa.RecordBatch:
        """Nothing is to be requested of `host` any more: visits to it that wait here (schema `URLS`)."""
        self._blocked.add(host)
        waiting = self._waiting.pop(host, [])
        for batches in (self._handed_out, *self._for.values()):
            waiting += [keep(urls, u64(urls, "host") == host) for urls in batches]
            batches[:] = [keep(urls, u64(urls, "host") != host) for urls in batches]
        return concat([keep(urls, numbers(urls, "kind") != Kind.RULES) for urls in waiting])

    def unblock(self, host: int) -> None:
        """Go on with `host`."""
        self._blocked.discard(host)

    # --- errands: a robots.txt that redirects to a host which another agent may have to ask

    def errand(self, visit: Visit) -> None:
        """Have `visit`, to which a robots.txt of a host of ours leads, made by whoever asks its host."""
        shard = self._division.shard_of(visit.domain)
        self._wanted[_errand_key(visit, self._me)] = visit
        if shard == self._me:
            self._errand_of(self._me, visit)
        else:
            self._letters.seal(shard, Mail.ERRAND, columns.errand_sealed(visit), passing=True)

    def _send_errands_again(self, shard: int) -> None:
        """That shard lives anew, and knows nothing of errands."""
        for visit in self._wanted.values():
            if self._division.shard_of(visit.domain) == shard:
                self._letters.seal(shard, Mail.ERRAND, columns.errand_sealed(visit), passing=True)

    def _errand_of(self, agent: int, visit: Visit) -> None:
        """`agent` wants what `visit`, to a host of this shard, brings."""
        key = _errand_key(visit, agent)
        if key not in self._errands:
            self._errands[key] = agent, visit.robots_of, visit.depth
            self._wait(url_batch([locate(visit.url)._replace(key=key)], kind=Kind.RULES))

    def _errands_in(self, shard: int, urls: pa.RecordBatch, errands: columns.Errands) -> list[Errand]:
        """Those of `urls`, sent by `shard`, that are errands, to be made here."""
        made = []
        for url, key in zip(texts(urls), u64(urls, "key").tolist(), strict=True) if errands else ():
            if key in errands and key not in self._made:
                self._made[key] = shard
                _, origin, redirects = errands[key]
                visit = robots_visit(url, origin)
                visit.depth, visit.errand = redirects, key
                made.append(Errand(visit))
        return made

    def answer(self, exchange: Exchange, now: float) -> None:
        """An errand was made here, and `exchange` came of it."""
        key = exchange.visit.errand
        shard = self._made.pop(key, None)
        body = columns.answer_sealed(key, exchange)
        if shard == self._me:
            self._answered(body, now)
        elif shard is not None:
            self._letters.seal(shard, Mail.ANSWER, body, passing=True)

    def _answered(self, body: bytes, now: float) -> None:
        """What came of an errand: of one of this agent, or of another that this shard had it made for."""
        key = columns.answered(body)
        errand = self._errands.pop(key, None)
        if errand is not None:
            self._asked.pop(key, None)
            self._handed.back(key, now)
            if errand[0] != self._me:
                self._letters.seal(errand[0], Mail.ANSWER, body, passing=True)
                return
        exchange = columns.answer_opened(body, lambda key: self._wanted.pop(key, None))
        if exchange is not None:
            self._events.append(Answer(exchange))

    # --- what goes out

    def send(self, now: float, *, idle: bool) -> None:
        """Send what is to be sent; what is little lingers, unless this agent is `idle`."""
        if self._rows and (idle or self._rows >= MESSAGE_ROWS or now - self._since >= LINGER_S):
            self.flush()
        for other in self._others:
            for envelope in self._letters.post(other, now):
                self._transport.send(other, columns.envelope_sealed(envelope, self._body(envelope.letter)))

    def _body(self, letter: Letter | None) -> bytes:
        if letter is None:
            return b""
        body: bytes = letter.body if letter.lane else self._drawer.get(letter.body)
        return body

    # --- what a checkpoint keeps

    def state(self) -> dict[str, Any]:
        """What a restart needs. Say `flush` before, so that all is in letters."""
        self._unsafe.destroy()
        self._unsafe = DiskQueue(self._store, "unsafe", UNSAFE)
        for told, rows in self._handed.unsafe():
            places = [
                pa.array(np.full(rows.num_rows, value, field.type.to_pandas_dtype()))
                for value, field in zip(told, _TOLD, strict=True)
            ]
            self._unsafe.put(pa.RecordBatch.from_arrays([*rows.columns, *places], schema=UNSAFE))
        early = [[key, list(told), list(row)] for key, told, row in self._handed.early_rows()]
        return {"letters": self._letters.state(), "unsafe": self._unsafe.state(), "early": early}

    def dirty_files(self) -> list[Path]:
        """All files are the store's."""
        return []

    def durable(self) -> None:
        """The checkpoint with the last `state` is safe."""
        self._letters.committed()

    def close(self) -> None:
        for task in self._lookups.values():
            task.cancel()
        self._drawer.close()
        self._unsafe.close()


def _errand_key(visit: Visit, agent: int) -> int:
    """What an errand of `agent` is known by."""
    return key_of(f"{visit.url} {visit.robots_of} {visit.depth} {agent}")


def _without(urls: pa.RecordBatch, errands: columns.Errands) -> pa.RecordBatch:
    """`urls` without the rows whose keys are those of `errands`."""
    return keep(urls, ~np.isin(u64(urls, "key"), np.array(list(errands), np.uint64))) if errands else urls


def _ended_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of `ENDED` in rows of `LENT`."""
    arrays = [rows.column(name) for name in (*_WHOSE, *(f"ended_{name}" for name in _HOW))]
    return pa.RecordBatch.from_arrays(arrays, schema=ENDED)
