"""The protocol between agents, judged without processes: seeded histories of a toy crawl on a network that misbehaves.

    python benches/histories.py [--histories 100000] [--first 0] [--break acknowledge|resend]

Each history is a tree-shaped web (one parent a page, so that a lost link is a lost page) crawled by two to four agents
that deal by `fyke.crawl.post`, as real ones do. Envelopes are dropped, repeated, put out of order; agents are killed at
any step, freeze and wake; checkpoints take long to be safe; hosts move to another agent's address. Then the trouble
ends, and the crawl must end: every page archived once and counted once, no host asked by two agents at a time or before
its rest was over. `--break` runs a protocol that is wrong in one way, and must be caught.
"""

import argparse
import pickle
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fyke.crawl.post.dealings import Dealings, Deeds, Mail
from fyke.crawl.post.handed import Told
from fyke.crawl.post.letters import Envelope, Letter, Letters

REST = 3  # steps that a host rests after each visit
PIN = 5  # steps that a host stays with its agent
CALM = 4000  # steps after the trouble within which a crawl must end


class Wrong(Exception):
    """A law was broken."""


@dataclass
class Toy:
    """What an agent knows: all of it goes into its checkpoints but what is said to be in hand."""

    seen: set[int] = field(default_factory=set)
    ready: list[int] = field(default_factory=list)
    out: set[int] = field(default_factory=set)  # handed out by this shard, here too; waiting, in a checkpoint
    counted: Counter[int] = field(default_factory=Counter)
    archive: list[int] = field(default_factory=list)
    # In hand alone.
    hand: dict[int, int] = field(default_factory=dict)  # visits that wait here: page -> when they may be made
    under_way: dict[int, int] = field(default_factory=dict)  # page -> when it ends
    guests: set[int] = field(default_factory=set)  # of them, those of other shards


class History:
    """One crawl from `seed` on."""

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
        self.asked_until = dict.fromkeys(range(hosts), 0)  # the servers' ledger: no request before
        self.asking: dict[int, int] = {}  # host -> agent
        self.journals: list[dict[int, int]] = [{} for _ in range(self.agents)]  # rests, which outlive a kill
        self.disks: list[Any] = [None] * self.agents
        self.cells: list[Cell | None] = [None] * self.agents
        self.frozen = [0] * self.agents
        self.lives = 0
        trouble = rng.choice([(0.0, 0.0), (0.02, 0.0), (0.1, 0.01), (0.3, 0.03), (0.05, 0.06)])
        self.faults, self.kills = trouble
        self.slow = rng.choice([1, 5, 40])
        for agent in range(self.agents):
            self.start(agent)

    def shard(self, page: int) -> int:
        """Whose frontier has the page: by its host, as by its domain."""
        return self.host[page] % self.agents

    def start(self, agent: int) -> None:
        self.lives += 1
        self.cells[agent] = Cell(self, agent, self.lives, self.disks[agent])

    def kill(self, agent: int) -> None:
        self.cells[agent] = None
        for host in [host for host, by in self.asking.items() if by == agent]:
            del self.asking[host]  # the server noticed the end; the rest counts from here
            self.asked_until[host] = self.step + REST
            self.journals[agent][host] = self.step + REST

    def run(self) -> None:
        """Raises Wrong."""
        troubled = self.random.randint(0, 400)
        for self.step in range(1, troubled + CALM):
            trouble = self.step < troubled
            self.turn(trouble)
            if not trouble and self.step % 5 == 0 and self.over:
                break
        else:
            raise Wrong("the crawl does not end")
        self.judge()

    def turn(self, trouble: bool) -> None:
        """One step of all agents, and of the network."""
        self._move_agents(trouble)
        if trouble and self.random.random() < 0.02:
            self.owner[self.random.choice(list(self.owner))] = self.random.randrange(self.agents)
        self._carry(trouble)

    def _move_agents(self, trouble: bool) -> None:
        rng = self.random
        for agent, cell in enumerate(self.cells):
            if trouble and rng.random() < self.kills:
                self.kill(agent)
            elif cell is None:
                if not trouble or rng.random() < 0.1:
                    self.start(agent)
            elif self.frozen[agent]:
                self.frozen[agent] -= 1
            elif trouble and rng.random() < self.kills / 2:
                self.frozen[agent] = rng.randint(1, 60)
            else:
                cell.turn()

    def _carry(self, trouble: bool) -> None:
        rng = self.random
        arriving, self.network = self.network, []
        if trouble and self.faults:
            rng.shuffle(arriving)
        for to, envelope in arriving:
            reader = self.cells[to]
            if trouble and rng.random() < self.faults:
                kind = rng.randrange(3)
                if kind:
                    self.network.append((to, envelope))  # later
                if kind != 2:  # lost, or late
                    continue
            if reader is not None and not self.frozen[to]:
                reader.read(envelope)
            elif self.frozen[to]:
                self.network.append((to, envelope))

    @property
    def over(self) -> bool:
        return all(cell is not None and cell.quiet for cell in self.cells)

    def judge(self) -> None:
        """Raises Wrong unless each page was archived once and counted once."""
        pages = dict.fromkeys(self.children, 1)
        archived = Counter(page for cell in self.cells if cell for page in cell.toy.archive)
        counted = sum((cell.toy.counted for cell in self.cells if cell), Counter[int]())
        if archived != pages:
            raise Wrong(f"archived {dict(archived)}")
        if counted != pages:
            raise Wrong(f"counted {dict(counted)}")


class Cell:
    """One life of one agent."""

    def __init__(self, history: History, me: int, life: int, disk: Any) -> None:
        self.history, self.me = history, me
        others = [agent for agent in range(history.agents) if agent != me]
        saved = pickle.loads(disk) if disk else {"toy": Toy(), "letters": None, "unsafe": [], "early": []}
        self.toy = saved["toy"]
        self.toy.ready += sorted(self.toy.out)
        self.toy.out.clear()
        self.toy.hand, self.toy.under_way, self.toy.guests = {}, {}, set()
        self.dealings = Dealings(me, others, life, PIN, saved["letters"])
        if history.letters is not Letters:
            self.dealings.letters = history.letters(me, others, life, saved["letters"])
        self.dealings.letters._again_s = 9.0  # steps are its seconds
        self.dealings.handed.restore(saved["unsafe"], saved["early"])
        for host, until in history.journals[me].items():
            if until > history.step:
                self.dealings.handed.holds(me, life, [], [(host, until - history.step)], history.step)
        self.writing: tuple[int, Any] | None = None  # a checkpoint that will be safe, and when
        self.checkpoint_at = history.step + history.random.randint(1, 40)
        self.calm = True
        if me == history.shard(0):
            self.found([0])

    # --- what comes

    def read(self, envelope: Envelope) -> None:
        sender, now = envelope.sender, self.history.step
        deeds = self.dealings.take(envelope, now)
        if deeds.met:
            toy = self.toy
            for page in [page for page in toy.hand if self.history.shard(page) == sender]:
                del toy.hand[page]
                toy.guests.discard(page)
            held = [
                (page, self.history.host[page]) for page in sorted(toy.guests) if self.history.shard(page) == sender
            ]
            rests = [(host, due - now) for host, due in self.history.journals[self.me].items() if due > now]
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

    def apply(self, sender: int, letter: Letter, now: int) -> None:  # noqa: C901 - a case for each kind
        match letter.kind:
            case Mail.LINKS:
                self.found(letter.body)
            case Mail.OUTCOMES:
                ended = self.dealings.told(sender, letter, letter.body, letter.body, now)
                self.toy.out.difference_update(ended)
                if ended:
                    self.dealings.handed.keep(Told(sender, letter.life, letter.number), ended)
            case Mail.HOLDS:
                self.dealings.held(sender, letter, now)
            case Mail.VISITS:
                for page in letter.body:
                    if page not in self.toy.guests:
                        self.toy.guests.add(page)
                        self.toy.hand[page] = now
            case Mail.RETURNED:
                for page in letter.body:
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
        now, rng = self.history.step, self.history.random
        self.keep(now)
        self.end(now)
        self.hand_out(now)
        self.begin(now)
        if rng.random() < 0.5:
            self.dealings.handed.unpin(now)
        for other in range(self.history.agents):
            if other != self.me:
                self.history.network += [(other, envelope) for envelope in self.dealings.letters.post(other, now)]
        self.dealings.letters.dropped()

    def keep(self, now: int) -> None:
        if self.writing is not None:
            due, disk = self.writing
            if now >= due:
                self.history.disks[self.me] = disk
                self.dealings.letters.committed()
                self.writing = None
                self.checkpoint_at = now + self.history.random.randint(1, 40)
        elif now >= self.checkpoint_at:
            handed = self.dealings.handed
            disk = pickle.dumps(
                {
                    "toy": self.toy, "letters": self.dealings.letters.state(), "unsafe": handed.unsafe(),
                    "early": handed.early_rows(),
                }
            )  # fmt: skip
            self.writing = now + self.history.random.randint(0, self.history.slow), disk

    def end(self, now: int) -> None:
        history, toy = self.history, self.toy
        for page in [page for page, due in toy.under_way.items() if due <= now]:
            del toy.under_way[page]
            host = history.host[page]
            del history.asking[host]
            history.asked_until[host] = now + REST
            history.journals[self.me][host] = now + REST
            if history.random.random() < 0.05:  # it failed, and is tried again
                toy.hand[page] = now
                continue
            toy.archive.append(page)
            for child in history.children[page]:
                shard = history.host[child] % history.agents
                if shard == self.me:
                    self.found([child])
                else:
                    self.dealings.letters.seal(shard, Mail.LINKS, [child])
            if page in toy.guests:
                toy.guests.remove(page)
                self.dealings.letters.seal(history.shard(page), Mail.OUTCOMES, [page])
            else:
                toy.out.remove(page)
                self.dealings.handed.back(page, now)
                toy.counted[page] += 1

    def hand_out(self, now: int) -> None:
        if not self.dealings.ready:
            return
        history, toy, handed = self.history, self.toy, self.dealings.handed
        for page in list(toy.ready):
            host = history.host[page]
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
                agent = history.owner[host]
                handed.pin(host, agent, now)
            elif agent != history.owner[host]:
                continue  # it moved: first all that is out comes back
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
        history, toy = self.history, self.toy
        for page in list(toy.hand):
            host = history.host[page]
            if history.owner[host] != self.me:
                del toy.hand[page]
                if page in toy.guests:
                    toy.guests.remove(page)
                    self.dealings.letters.seal(history.shard(page), Mail.RETURNED, [page])
                else:
                    self.dealings.handed.back(page, now)
                    toy.out.remove(page)
                    toy.ready.append(page)
            elif history.journals[self.me].get(host, 0) <= now and host not in {
                history.host[other] for other in toy.under_way
            }:
                if host in history.asking:
                    raise Wrong(f"host {host} is asked by {history.asking[host]} and {self.me} at a time")
                if now < history.asked_until[host]:
                    raise Wrong(f"host {host} is asked early, by {self.me}")
                del toy.hand[page]
                history.asking[host] = self.me
                toy.under_way[page] = now + history.random.randint(1, 12)

    @property
    def quiet(self) -> bool:
        toy, handed = self.toy, self.dealings.handed
        busy = toy.ready or toy.out or toy.hand or toy.under_way or handed.out or handed.ended
        return not busy and self.dealings.letters.quiet


class AcknowledgesWhatIsApplied(Letters):
    """A control that must lose: it says durable of what was applied."""

    def _envelope(self, to: int, letter: Letter | None) -> Envelope:
        peer = self._peers[to]
        peer.durable = dict(peer.read)
        return super()._envelope(to, letter)


class SendsOnce(Letters):
    """A control that must lose: it does not send again."""

    def post(self, to: int, now: float) -> list[Envelope]:
        peer = self._peers[to]
        sent = [(lane, lane.sent) for lane in peer.lanes()]
        peer.waited_since = max(peer.waited_since, now) if peer.knows else peer.waited_since
        for lane, number in sent:
            lane.sent = max(lane.sent, number)
        return super().post(to, now)


BROKEN = {"acknowledge": AcknowledgesWhatIsApplied, "resend": SendsOnce}


def failing(first: int, count: int, letters: type[Letters] = Letters) -> dict[int, str]:
    """Seeds of histories in which a law was broken, and how."""
    found = {}
    for seed in range(first, first + count):
        try:
            History(seed, letters).run()
        except (Wrong, KeyError, ValueError) as error:
            found[seed] = f"{type(error).__name__}: {error}"
    return found


def main() -> None:
    """The whole of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--break", dest="broken", choices=list(BROKEN))
    asked = parser.parse_args()
    began = time.perf_counter()
    found = failing(asked.first, asked.histories, BROKEN.get(asked.broken, Letters))
    for seed, what in list(found.items())[:5]:
        print(f"history {seed}: {what}")
    spent = time.perf_counter() - began
    print(f"{asked.histories:,} histories, {len(found):,} in which a law was broken, {spent:,.0f} s")
    sys.exit(bool(found) is not bool(asked.broken))


if __name__ == "__main__":
    main()
