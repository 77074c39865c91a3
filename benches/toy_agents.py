"""A toy agent in a toy world, which deals with others by `fyke.crawl.post` as real ones do (`histories` runs them).

Pages and hosts of the world are numbers; times are steps. An agent fetches pages, finds their children, lends and
borrows visits, and takes checkpoints that are safe some steps later. Invariant: it breaks no law by itself, so a
broken law is the protocol's fault.
"""

import pickle
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fyke.crawl.post.dealings import Dealings, Deeds, Mail
from fyke.crawl.post.handed import ToldIn
from fyke.crawl.post.letters import Envelope, Letter, Letters

REST = 3  # steps that a host rests after each visit
PIN = 5  # steps that a host stays with its agent


class Wrong(Exception):
    """A law was broken."""


@dataclass
class Toy:
    """An agent's state. All of it goes into its checkpoints, except for the fields in hand."""

    seen: set[int] = field(default_factory=set)
    ready: list[int] = field(default_factory=list)
    out: set[int] = field(default_factory=set)  # handed out by this shard, also to itself; waiting, in a checkpoint
    counted: Counter[int] = field(default_factory=Counter)
    archive: list[int] = field(default_factory=list)
    # In hand only:
    hand: dict[int, int] = field(default_factory=dict)  # visits that wait here: page -> earliest step
    under_way: dict[int, int] = field(default_factory=dict)  # page -> step of its end
    guests: set[int] = field(default_factory=set)  # pages in hand or under way of other shards


class World:
    """Pages, hosts, servers and the network around the agents."""

    def __init__(self, seed: int, letters: type[Letters] = Letters) -> None:
        self.random = rng = random.Random(seed)
        self.letters = letters
        self.agents = rng.randint(2, 4)
        pages = rng.randint(4, 24)
        hosts = rng.randint(1, 6)
        self.children: dict[int, list[int]] = {page: [] for page in range(pages)}
        for page in range(1, pages):
            self.children[rng.randrange(max(0, page - 6), page)].append(page)
        self.host = {page: rng.randrange(hosts) for page in range(pages)}
        self.owner = {host: rng.randrange(self.agents) for host in range(hosts)}
        self.network: list[tuple[int, Envelope]] = []
        self.step = 0
        self.asked_until = dict.fromkeys(range(hosts), 0)  # the servers' ledger: no request before this step
        self.asking: dict[int, int] = {}  # host -> agent
        self.journals: list[dict[int, int]] = [{} for _ in range(self.agents)]  # rests, which outlive a kill
        self.disks: list[Any] = [None] * self.agents  # the safe checkpoints
        self.slow = 1  # most steps until a checkpoint is safe

    def shard(self, page: int) -> int:
        """Return the agent whose frontier has the page: by host, as real ones by domain."""
        return self.host[page] % self.agents


class Cell:
    """One life of one agent."""

    def __init__(self, world: World, me: int, life: int, disk: Any) -> None:
        self.world, self.me = world, me
        others = [agent for agent in range(world.agents) if agent != me]
        saved = pickle.loads(disk) if disk else {"toy": Toy(), "letters": None, "unsafe": [], "early": []}
        self.toy = saved["toy"]
        self.toy.ready += sorted(self.toy.out)
        self.toy.out.clear()
        self.toy.hand, self.toy.under_way, self.toy.guests = {}, {}, set()
        self.dealings = Dealings(me, others, life, PIN, saved["letters"])
        if world.letters is not Letters:
            self.dealings.letters = world.letters(me, others, life, saved["letters"])
        self.dealings.letters._again_s = 9.0  # its seconds are steps here
        self.dealings.handed.restore(saved["unsafe"], saved["early"])
        for host, until in world.journals[me].items():
            if until > world.step:
                self.dealings.handed.holds(me, life, [], [(host, until - world.step)], world.step)
        self.writing: tuple[int, Any] | None = None  # a checkpoint under way, and when it will be safe
        self.checkpoint_at = world.step + world.random.randint(1, 40)
        self.calm = True
        if me == world.shard(0):
            self.found([0])

    # --- what comes

    def read(self, envelope: Envelope) -> None:
        sender, now = envelope.sender, self.world.step
        deeds = self.dealings.take(envelope, now)
        if deeds.is_new_life:
            toy = self.toy
            for page in [page for page in toy.hand if self.world.shard(page) == sender]:
                del toy.hand[page]
                toy.guests.discard(page)
            held = [(page, self.world.host[page]) for page in sorted(toy.guests) if self.world.shard(page) == sender]
            rests = [(host, due - now) for host, due in self.world.journals[self.me].items() if due > now]
            self.dealings.letters.seal(sender, Mail.HOLDS, self.dealings.holding(sender, held, rests))
        if deeds.letter is not None:
            self.apply(sender, deeds.letter, now)
        self.act(self.dealings.after(sender, now))

    def act(self, deeds: Deeds) -> None:
        for rows in deeds.done:
            self.toy.counted.update(rows)
        for rows in deeds.again:
            self.toy.ready += rows
        for page in deeds.lost:
            self.toy.out.remove(page)
            self.toy.ready.append(page)

    def apply(self, sender: int, letter: Letter, now: int) -> None:
        match letter.kind:
            case Mail.LINKS:
                self.found(letter.body)
            case Mail.OUTCOMES:
                told, put_off = letter.body
                ended = self.dealings.told(sender, letter, told, told.__getitem__, now)
                self.toy.out.difference_update(ended)
                if ended:
                    self.dealings.handed.keep(ToldIn(sender, letter.life, letter.number), ended)
                self.not_made(put_off, now)
            case Mail.HOLDS:
                self.dealings.held(sender, letter, now)
            case Mail.VISITS:
                for page in letter.body:
                    if page not in self.toy.guests:
                        self.toy.guests.add(page)
                        self.toy.hand[page] = now
            case Mail.RETURNED:
                self.not_made(letter.body, now)

    def not_made(self, pages: list[int], now: int) -> None:
        for page in pages:
            if self.dealings.handed.back(page, now):
                self.toy.out.remove(page)
                self.toy.ready.append(page)

    def found(self, pages: list[int]) -> None:
        for page in pages:
            if page not in self.toy.seen:
                self.toy.seen.add(page)
                self.toy.ready.append(page)

    # --- a turn

    def turn(self) -> None:
        now, rng = self.world.step, self.world.random
        self.keep(now)
        self.end(now)
        self.hand_out(now)
        self.begin(now)
        if rng.random() < 0.5:
            self.dealings.handed.unpin(now)
        for other in range(self.world.agents):
            if other != self.me:
                self.world.network += [(other, envelope) for envelope in self.dealings.letters.post(other, now)]
        self.dealings.letters.dropped()

    def keep(self, now: int) -> None:
        if self.writing is not None:
            due, disk = self.writing
            if now >= due:
                self.world.disks[self.me] = disk
                self.dealings.letters.committed()
                self.writing = None
                self.checkpoint_at = now + self.world.random.randint(1, 40)
        elif now >= self.checkpoint_at:
            handed = self.dealings.handed
            disk = pickle.dumps(
                {
                    "toy": self.toy,
                    "letters": self.dealings.letters.state(),
                    "unsafe": handed.unsafe(),
                    "early": handed.early_rows(),
                }
            )
            self.writing = now + self.world.random.randint(0, self.world.slow), disk

    def end(self, now: int) -> None:
        world, toy = self.world, self.toy
        for page in [page for page, due in toy.under_way.items() if due <= now]:
            del toy.under_way[page]
            host = world.host[page]
            del world.asking[host]
            world.asked_until[host] = now + REST
            world.journals[self.me][host] = now + REST
            if world.random.random() < 0.05:  # it failed, and is tried again
                toy.hand[page] = now
                continue
            toy.archive.append(page)
            for child in world.children[page]:
                shard = world.host[child] % world.agents
                if shard == self.me:
                    self.found([child])
                else:
                    self.dealings.letters.seal(shard, Mail.LINKS, [child])
            if page in toy.guests:
                toy.guests.remove(page)
                self.dealings.letters.seal(world.shard(page), Mail.OUTCOMES, ([page], []))
            else:
                toy.out.remove(page)
                self.dealings.handed.back(page, now)
                toy.counted[page] += 1

    def hand_out(self, now: int) -> None:
        if not self.dealings.ready:
            return
        world, toy, handed = self.world, self.toy, self.dealings.handed
        for page in list(toy.ready):
            host = world.host[page]
            early = self.dealings.early(page)
            if early is not None:
                toy.ready.remove(page)
                told, row, safe = early
                if safe:
                    toy.counted[row] += 1
                else:
                    handed.keep(told, [row])
                continue
            if handed.goes_on(page):
                toy.ready.remove(page)
                toy.out.add(page)
                continue
            agent = handed.agent_of(host)
            if agent is None:
                agent = world.owner[host]
                handed.pin(host, agent, now)
            elif agent != world.owner[host]:
                continue  # the host moved: first all its visits that are out come back
            if not self.dealings.reachable(agent):
                continue
            toy.ready.remove(page)
            toy.out.add(page)
            handed.hand(agent, self.dealings.letters.knows(agent) if agent != self.me else 0, [(page, host)])
            if agent == self.me:
                toy.hand[page] = now
            else:
                self.dealings.letters.seal(agent, Mail.VISITS, [page], passing=True)

    def begin(self, now: int) -> None:
        world, toy = self.world, self.toy
        for page in list(toy.hand):
            host = world.host[page]
            if world.owner[host] != self.me:
                self.give_back(page, Mail.RETURNED, [page])
            elif world.random.random() < 0.02:  # its host rests for long
                self.give_back(page, Mail.OUTCOMES, ([], [page]))
            elif world.journals[self.me].get(host, 0) <= now and host not in {
                world.host[other] for other in toy.under_way
            }:
                if host in world.asking:
                    raise Wrong(f"host {host} is asked by {world.asking[host]} and {self.me} at a time")
                if now < world.asked_until[host]:
                    raise Wrong(f"host {host} is asked early, by {self.me}")
                del toy.hand[page]
                world.asking[host] = self.me
                toy.under_way[page] = now + world.random.randint(1, 12)

    def give_back(self, page: int, kind: Mail, body: Any) -> None:
        """Give back `page`, which cannot be visited here."""
        del self.toy.hand[page]
        if page in self.toy.guests:
            self.toy.guests.remove(page)
            self.dealings.letters.seal(self.world.shard(page), kind, body)
        else:
            self.not_made([page], self.world.step)

    @property
    def quiet(self) -> bool:
        toy, handed = self.toy, self.dealings.handed
        busy = toy.ready or toy.out or toy.hand or toy.under_way or handed.out or handed.unsafe_letters
        return not busy and self.dealings.letters.quiet
