"""The protocol between agents, judged without processes: seeded histories of a toy crawl on a faulty network.

    python benches/histories.py [--histories 100000] [--first 0] [--break acknowledge|resend]

Each history is a tree-shaped web (one parent a page, so a lost link is a lost page). Two to four agents crawl it and
deal by `fyke.crawl.post`, as real ones do. Envelopes are dropped, repeated and reordered. Agents are killed at any
step, freeze and wake. Checkpoints take long to be safe, and hosts move to another agent's address. Then the trouble
ends, and the crawl must end: every page archived once and counted once, no host asked by two agents at a time or
before its rest was over. `--break` runs a protocol with one fault, which must be caught.
"""

import argparse
import sys
import time
from collections import Counter

from toy_agents import REST, Cell, World, Wrong

from fyke.crawl.post.letters import Envelope, Letter, Letters

CALM = 4000  # steps after the trouble, within which a crawl must end


class History(World):
    """One crawl from `seed` on."""

    def __init__(self, seed: int, letters: type[Letters] = Letters) -> None:
        super().__init__(seed, letters)
        rng = self.random
        self.cells: list[Cell | None] = [None] * self.agents
        self.frozen = [0] * self.agents
        self.lives = 0
        trouble = rng.choice([(0.0, 0.0), (0.02, 0.0), (0.1, 0.01), (0.3, 0.03), (0.05, 0.06)])
        self.faults, self.kills = trouble
        self.slow = rng.choice([1, 5, 40])
        for agent in range(self.agents):
            self.start(agent)

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
        """Run to the end. Raises Wrong if a law is broken."""
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
        """Make one step of all agents and of the network."""
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
        """Raise Wrong unless each page was archived once and counted once."""
        pages = dict.fromkeys(self.children, 1)
        archived = Counter(page for cell in self.cells if cell for page in cell.toy.archive)
        counted = sum((cell.toy.counted for cell in self.cells if cell), Counter[int]())
        if archived != pages:
            raise Wrong(f"archived {dict(archived)}")
        if counted != pages:
            raise Wrong(f"counted {dict(counted)}")


class AcknowledgesWhatIsApplied(Letters):
    """A control that must fail: it acknowledges letters as durable once they are applied."""

    def _envelope(self, to: int, letter: Letter | None) -> Envelope:
        peer = self._peers[to]
        peer.durable = dict(peer.read)
        return super()._envelope(to, letter)


class NeverResends(Letters):
    """A control that must fail: it does not send again."""

    def post(self, to: int, now: float) -> list[Envelope]:
        peer = self._peers[to]
        sent = [(lane, lane.sent) for lane in peer.lanes()]
        peer.waited_since = max(peer.waited_since, now) if peer.knows else peer.waited_since
        for lane, number in sent:
            lane.sent = max(lane.sent, number)
        return super().post(to, now)


BROKEN = {"acknowledge": AcknowledgesWhatIsApplied, "resend": NeverResends}


def failing(first: int, count: int, letters: type[Letters] = Letters) -> dict[int, str]:
    """Return the seeds of histories in which a law was broken, and how."""
    found = {}
    for seed in range(first, first + count):
        try:
            History(seed, letters).run()
        except (Wrong, KeyError, ValueError) as error:
            found[seed] = f"{type(error).__name__}: {error}"
    return found


def main() -> None:
    """Run all histories; exit 0 if the protocol was judged as it should be."""
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
