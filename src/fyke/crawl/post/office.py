"""The post office of an agent: sends rows for other agents as letters, and gives what comes in to the loop.

    outbox ─► outgoing: sort by shard ─► mailbag ─► transport      links, outcomes
    frontier ─► routes: by host ─► mailbag ─► transport            visits; those for this agent go on to the fetcher
    transport ─► dealings ─► events ─► the loop moves them

Acts on the rules of `dealings` with columns; `state` is what a checkpoint keeps. With one agent, the loop has
`fyke.crawl.post.alone.Alone` in its place.

Invariant: rows that the loop put in are in a letter, or wait here, or were given back. At a checkpoint memory holds
none of them, except for visits that the frontier has as handed out.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.core.batches import EMPTY, Mask, concat, keep, u64
from fyke.core.messages import ENDED, NONE_ENDED, OK, Links, Outcomes
from fyke.core.urls import Locator, host_keys, key_of, robots_url
from fyke.core.visits import Exchange, Visit
from fyke.crawl.post import columns
from fyke.crawl.post.dealings import Dealings, Deeds, Mail
from fyke.crawl.post.errands import Errands, without
from fyke.crawl.post.events import Done, Elsewhere, Ended, Event, Heard, LinksCame, Met, VisitsCame, WaitAgain
from fyke.crawl.post.handed import ToldIn
from fyke.crawl.post.lent import Guests, Unsafe, ended_of, lent_rows, urls_of
from fyke.crawl.post.letters import Envelope, Letter
from fyke.crawl.post.mailbag import Mailbag
from fyke.crawl.post.outgoing import Outgoing
from fyke.crawl.post.routes import Routes
from fyke.crawl.post.seat import PostRooms, Seat
from fyke.fetcher.rests import BOOKED_WAIT_S
from fyke.frontier.landing import are_landings

_HOST, _OUTCOME = ENDED.get_field_index("host"), ENDED.get_field_index("outcome")


class Office:
    """The post of the agent at `seat`, in its present `life`."""

    def __init__(self, seat: Seat, rooms: PostRooms, life: int, saved: Mapping[str, Any], news: asyncio.Event) -> None:
        """`saved` is what `state` gave."""
        self._me = me = seat.me
        self._division = division = seat.division
        self._resolver, self._rests, self._past, self._clock = rooms.resolver, rooms.rests, rooms.past, rooms.clock
        self._most_rules = seat.most_rules
        self._news = news
        others = [agent for agent in range(division.agents) if agent != me]
        self._dealings = Dealings(me, others, life, BOOKED_WAIT_S, saved.get("letters"))
        self._handed, self._letters = self._dealings.handed, self._dealings.letters
        self._mailbag = Mailbag(self._letters, others, seat.transport, rooms.store)
        self._outgoing = Outgoing(me, division, self._mailbag)
        self._routes = Routes(me, division, self._dealings, self._resolver, news)
        self._errands = Errands(me, division, self._mailbag, self._routes)
        self._unsafe = Unsafe(rooms.store, saved.get("unsafe"))
        self._restore(saved)
        self._guests = Guests()
        self._events: list[Event] = []
        self._inbox: list[Envelope] = []
        self.ready = False  # whether the frontier may hand out visits: it knows which of them ended, or are under way
        self.activity = 0  # grows with everything that comes in, goes out or is told

    def __repr__(self) -> str:
        return f"Office(agent {self._me} of {self._division.agents}, {self._dealings!r})"

    def _restore(self, saved: Mapping[str, Any]) -> None:
        early = ((key, ToldIn(*told), tuple(row)) for key, told, row in saved.get("early", []))
        self._handed.restore(self._unsafe.opened(), early)
        now = self._clock.now()
        resting = [(host_keys(name)[0], due - now) for name, due in self._rests.hosts(now)]
        self._handed.holds(self._me, 0, (), resting, now)

    # --- what the loop asks

    def owns(self, address: str) -> bool:
        """Return whether the server at `address` is asked from here."""
        return self._division.agent_of(address) == self._me

    def of_shard(self, agent: int) -> Callable[[int], bool]:
        """Return a function that says whether a domain, by its key, is of the shard of `agent`."""
        return lambda domain: self._division.shard_of(domain) == agent

    def own_seeds(self, seeds: Sequence[Locator]) -> Sequence[Locator]:
        """Return the `seeds` of this shard."""
        return [seed for seed in seeds if self._division.shard_of(seed.domain) == self._me]

    @property
    def lent(self) -> bool:
        """True if visits of this shard are with others, or on their way."""
        return bool(self._handed.out or self._errands.wanted or self._routes.waiting)

    @property
    def quiet(self) -> bool:
        """True if nothing waits here, or is on its way from here."""
        busy = self._inbox or self._events or self._outgoing.rows or self._guests or self.lent
        return not busy and self._letters.quiet

    @property
    def unsafe_letters(self) -> int:
        """Number of letters with outcomes that are not safe yet."""
        return self._handed.unsafe_letters

    def rules_room(self, here: int) -> int:
        """Return how many more origins may be asked for their rules."""
        return max(0, self._most_rules - self._routes.asked)

    # --- what comes in

    def put(self, envelope: Envelope) -> None:
        """Take in an envelope."""
        self._inbox.append(envelope)
        self._news.set()

    def receive(self, now: float) -> Iterator[Event]:
        """Yield the events of what came since the last call, in order."""
        events, self._events = self._events, []
        yield from events
        inbox, self._inbox = self._inbox, []
        self.activity += len(events)
        for envelope in inbox:
            sender = envelope.sender
            deeds = self._dealings.take(envelope, now)
            self._mailbag.forget_dropped()
            if deeds.is_new_life:
                yield Met(sender)
                self._errands.send_again(sender)
            if deeds.letter is not None:
                self.activity += 1
                yield from self._opened(sender, deeds.letter, now)
            yield from self._follow(self._dealings.after(sender, now))
        if not self.ready and self._dealings.ready:
            self.ready = True
            early = self._handed.early_rows()
            pages = [(key, row[_HOST]) for key, _, row in early if row[_OUTCOME] == OK]
            yield Elsewhere([*pages, *self._handed.under_way()])

    def _opened(self, sender: int, letter: Letter, now: float) -> Iterator[Event]:
        match letter.kind:
            case Mail.LINKS | Mail.FIXED:
                yield self._found(columns.links_opened(letter.body, fixed=letter.kind == Mail.FIXED))
            case Mail.OUTCOMES:
                yield from self._told(sender, letter, columns.outcomes_opened(letter.body), now)
            case Mail.HOLDS:
                self._dealings.held(sender, letter._replace(body=json.loads(letter.body)), now)
            case Mail.VISITS:
                urls, named, errands, known = columns.visits_opened(letter.body)
                self._resolver.load(named)
                yield from self._errands.make(sender, urls, errands)
                yield VisitsCame(self._guested(sender, without(urls, errands)), known)
            case Mail.RETURNED:
                self._came_back(columns.visits_opened(letter.body).visits, now)
            case Mail.ERRAND:
                self._errands.take(sender, columns.errand_opened(letter.body))
            case Mail.ANSWER:
                self._events += self._errands.answered(letter.body, now)

    def _found(self, links: Links) -> LinksCame:
        ours = self._division.shards_of(u64(links.urls, "domain")) == self._me
        return LinksCame(links.keep(ours), EMPTY if ours.all() else keep(links.urls, ~ours))

    def _told(self, sender: int, letter: Letter, outcomes: Outcomes, now: float) -> Iterator[Event]:
        self._rules_came(outcomes.learned, now)
        put_off = keep(outcomes.put_off, self._back(outcomes.put_off, now))
        yield Heard(replace(outcomes, ended=NONE_ENDED, put_off=put_off))
        ended = outcomes.ended
        keys = self._dealings.told(sender, letter, u64(ended, "key").tolist(), partial(columns.row, ended), now)
        if keys:
            out = ended if len(keys) == ended.num_rows else keep(ended, np.isin(u64(ended, "key"), keys))
            yield Ended(keys, out, ToldIn(sender, letter.life, letter.number))

    def _rules_came(self, learned: pa.RecordBatch, now: float) -> None:
        for origin in learned.column("origin").to_pylist():
            self._routes.rules_over(key_of(robots_url(origin.decode())), now)

    def _guested(self, sender: int, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Return the visits of `urls`, lent by `sender`, that are new here and not blocked; send blocked ones back."""
        urls = self._guests.take(sender, urls)
        blocked = self._routes.blocked(urls)
        self._own(keep(urls, blocked))
        return keep(urls, ~blocked)

    def _came_back(self, urls: pa.RecordBatch, now: float) -> None:
        """Have visits of this shard, not made because their host moved, wait for another agent."""
        urls = keep(urls, self._back(urls, now))
        blocked = self._routes.blocked(urls)
        if blocked.any():
            self._events.append(WaitAgain(keep(urls, blocked), []))
        self._routes.move(keep(urls, ~blocked))

    def _follow(self, deeds: Deeds) -> Iterator[Event]:
        for rows in deeds.done:
            yield Done(ended_of(rows))
        self.activity += len(deeds.done) + len(deeds.again) + len(deeds.lost)
        lost = self._routes.without_rules(deeds.lost)
        if deeds.again or lost:
            yield WaitAgain(concat([urls_of(rows) for rows in deeds.again]), lost)

    def keep(self, told: ToldIn, urls: pa.RecordBatch, ended: pa.RecordBatch) -> None:
        """Keep the visits `urls`, which ended as `ended` says, until they are safe."""
        self._handed.keep(told, lent_rows(urls, ended))

    def hold(self, agent: int, dropped: Iterable[pa.RecordBatch], now: float) -> None:
        """Write to `agent` which visits of its shard are under way here, and which hosts rest; waiting ones were
        `dropped`."""
        self.flush()  # it must hear of ended visits before it hands out any
        for urls in dropped:
            self._guests.drop(u64(urls, "key").tolist())
        self._errands.drop_shard(agent)
        resting = [
            (key, due - now)
            for name, due in self._rests.hosts(now)
            for key, domain in [host_keys(name)]
            if self._division.shard_of(domain) == agent
        ]
        holds = self._dealings.holding(agent, self._guests.of_shard(agent), resting)
        self._mailbag.keep(agent, Mail.HOLDS, json.dumps(holds).encode())

    # --- links and outcomes

    def post(self, links: Links, outcomes: Outcomes, now: float) -> tuple[Links, Outcomes]:
        """Take the rows for other shards; return those for ours."""
        before = self._outgoing.rows
        ours = self._post_links(links, now), self._post_outcomes(outcomes, now)
        self.activity += self._outgoing.rows - before
        return ours

    def _post_links(self, links: Links, now: float) -> Links:
        urls = links.urls
        if not urls.num_rows:
            return links
        landed = are_landings(urls)  # every shard must know
        if landed.any():
            others = self._division.shards_of(u64(urls, "domain")) != self._me
            self._events.append(LinksCame(Links(EMPTY, links.sources[:0]), keep(urls, landed & others)))
        return self._outgoing.put_links(links, landed, now)

    def _post_outcomes(self, outcomes: Outcomes, now: float) -> Outcomes:
        ours = {}
        for part in columns.PARTS:
            rows = getattr(outcomes, part)
            ours[part] = self._outgoing.put(part, rows, now) if rows.num_rows else rows
        for visits in (outcomes.ended, outcomes.put_off):  # made or not, they have left
            self._guests.drop(u64(visits, "key").tolist())
            self._back(visits, now)
        self._rules_came(ours["learned"], now)
        return Outcomes(**ours)

    def flush(self) -> None:
        """Seal the rows that wait for other shards."""
        self._outgoing.flush()

    def send(self, now: float, *, idle: bool) -> None:
        """Send what is due; few rows linger, unless this agent is `idle`."""
        if self._outgoing.due(now, idle=idle):
            self.flush()
        self._mailbag.send(now)

    # --- visits

    def route(self, visits: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Send `visits` (schema `URLS`), which the frontier hands out, to the agents that ask their hosts; return those
        to be made here, also of earlier calls."""
        self.activity += visits.num_rows
        self._routes.put(visits)
        if not self._dealings.ready:
            return EMPTY  # some visits may have ended, or be under way
        for urls in self._routes.take_new():
            self._routes.sort(self._without_ended(urls))
        here = EMPTY
        for agent, urls in self._routes.due(now):
            if agent == self._me:
                here = urls
            else:
                self._lend(agent, urls)
        keys, hosts = u64(here, "key").tolist(), u64(here, "host").tolist()
        self._handed.hand(self._me, 0, zip(keys, hosts, strict=True))
        errands = self._errands.among(keys)
        self._events += self._errands.make(self._me, here, errands)
        return without(here, errands)

    def refuse(self, visits: pa.RecordBatch) -> pa.RecordBatch:
        """Take `visits` that the rules of their hosts refuse, and return none: `route` sends them to the agents that
        have the rules."""
        self.activity += visits.num_rows
        self._routes.refuse(visits)
        return EMPTY

    def _without_ended(self, visits: pa.RecordBatch) -> pa.RecordBatch:
        """Return `visits` without those known to have ended, or to be under way."""
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

    def _lend(self, agent: int, urls: pa.RecordBatch) -> None:
        """Hand `urls` to `agent`, with the addresses of hosts that are new to it."""
        keys, hosts = u64(urls, "key").tolist(), u64(urls, "host").tolist()
        self._handed.hand(agent, self._letters.knows(agent), zip(keys, hosts, strict=True))
        self._routes.note_rules(urls)
        named, known = self._routes.take_named(hosts), self._past.known(u64(urls, "key"))
        body = columns.visits_sealed(urls, named, self._errands.among(keys), known)
        self._mailbag.pass_on(agent, Mail.VISITS, body)

    def stray(self, urls: pa.RecordBatch, now: float) -> None:
        """Route the visits `urls` anew: their hosts moved to the address of another agent."""
        own = self.give_back(urls, now)
        self._errands.drop(u64(own, "key").tolist())
        self._routes.move(own)

    def give_back(self, urls: pa.RecordBatch, now: float) -> pa.RecordBatch:
        """Return the visits of `urls`, none made here, that are of this shard; send the others back."""
        own = self._own(urls)
        self._back(own, now)
        return own

    def _back(self, visits: pa.RecordBatch, now: float) -> Mask:
        """Note that `visits` are not out any more. Returns which of them were: bool[n]."""
        return np.array([self._handed.back(key, now) for key in u64(visits, "key").tolist()], np.bool_)

    def _own(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Return the visits of `urls` of this shard; send the others back."""
        shards = self._division.shards_of(u64(urls, "domain"))
        for shard in np.unique(shards[shards != self._me]).tolist():
            rows = keep(urls, shards == shard)
            keys = u64(rows, "key").tolist()
            self._guests.drop(keys)
            self._errands.drop(keys)
            self._mailbag.keep(shard, Mail.RETURNED, columns.visits_sealed(rows))
        return keep(urls, shards == self._me)

    def block(self, host: int) -> pa.RecordBatch:
        """Request nothing more of `host`; return visits to it that wait here (schema `URLS`)."""
        return self._routes.block(host)

    def unblock(self, host: int) -> None:
        """Go on with `host`."""
        self._routes.unblock(host)

    # --- errands

    def errand(self, visit: Visit) -> None:
        """Have `visit`, to which a robots.txt of our hosts redirects, made by the agent that asks its host."""
        self._errands.want(visit)

    def answer(self, exchange: Exchange, now: float) -> None:
        """Pass on the `exchange` of an errand that was made here."""
        self._events += self._errands.answer(exchange, now)

    # --- what a checkpoint keeps

    def state(self) -> dict[str, Any]:
        """Return what a restart needs. Call `flush` before, so that every row is in a letter."""
        early = [[key, list(told), list(row)] for key, told, row in self._handed.early_rows()]
        return {"letters": self._letters.state(), "unsafe": self._unsafe.write(self._handed.unsafe()), "early": early}

    def dirty_files(self) -> list[Path]:
        """Return none: all files are the store's."""
        return []

    def durable(self) -> None:
        """Note that the checkpoint with the last `state` is safe."""
        self._letters.committed()

    def close(self) -> None:
        """Look up nothing more, and give the files back."""
        self._routes.close()
        self._mailbag.close()
        self._unsafe.close()
