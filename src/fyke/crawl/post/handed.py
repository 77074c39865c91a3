"""Visits that a shard of the frontier has handed to other agents, and what came of them. Pure: no clock, no file.

Hosts belong to the frontier's shard of their domain, and are asked by the agent that owns their server's address. A
visit is thus lent: it is the shard's until its results are safe with the agent that made it, and then done.

    waits ─► out ─► ended ─► done
       ▲      │       │
       └──────┴───────┘

A visit has *ended* when its outcome was told. The window may hand out more in its place, but a checkpoint of the shard
has it as waiting until a checkpoint of the agent has record, links and outcome.

If an agent dies, its next *life*, which is the next run of its process, says how far it got (`letters`): visits that it
ended after that, or had in hand, wait again. If a shard dies, it goes back to its checkpoint, and may have forgotten
that it handed a visit out. The outcome is never forgotten: it is kept and told again. If it comes *early*, before the
visit is handed out again, that is noted, and the visit is not made twice. Visits that waited at agents are dropped
there, because the shard has them again. Visits under way are named to the shard, with the hosts that rest, before it
hands out anything.

Politeness by host: a host is *pinned* to one agent while it has visits out, and for `rest_s` after the last of them
ended, whatever its name resolves to meanwhile. A longer rest is in the host book, which every agent can read.
Politeness by address needs nothing here: an address has one owner.

Invariant: each visit that was lent is out, ended or done; and a host has visits out with one agent at most.
"""

from collections import Counter, deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class _Out(NamedTuple):
    agent: int
    life: int  # of the agent
    host: int


class ToldIn(NamedTuple):
    """The letter that told an outcome: its `number` in one `life` of an `agent`."""

    agent: int
    life: int
    number: int


@dataclass(slots=True)
class _Pin:
    agent: int
    out: int
    until: float  # the host stays pinned until then, unless visits are out


class Handed:
    """The visits of one shard that are with `others`; times are seconds of any one clock."""

    def __init__(self, others: Iterable[int], rest_s: float) -> None:
        self._others = frozenset(others)
        self._rest_s = rest_s
        self._out: dict[int, _Out] = {}  # by the visit's key
        self._of_life: Counter[tuple[int, int]] = Counter()  # number of visits out, by agent and life
        self._ended: dict[tuple[int, int], deque[tuple[int, Any]]] = {}  # by agent and life: number, rows
        self._early: dict[int, tuple[ToldIn, Any]] = {}  # by the visit's key
        self._under_way: dict[int, _Out] = {}  # visits under way since before this shard's last death
        self._pins: dict[int, _Pin] = {}
        self._ready: set[int] = set()  # agents that named their visits under way

    def __repr__(self) -> str:
        return f"Handed({len(self._out)} out, {self.unsafe_letters} letters not safe, {len(self._pins)} hosts)"

    @property
    def out(self) -> int:
        """Number of visits with other agents."""
        return len(self._out)

    @property
    def unsafe_letters(self) -> int:
        """Number of letters whose outcomes are not safe yet."""
        return sum(map(len, self._ended.values()))

    # --- which agent asks which host

    @property
    def ready(self) -> bool:
        """True if all others have said what they had under way, so that hosts may be asked."""
        return self._ready >= self._others

    def agent_of(self, host: int) -> int | None:
        """Return the agent that `host` is pinned to, if any."""
        pin = self._pins.get(host)
        return None if pin is None else pin.agent

    def pin(self, host: int, agent: int, now: float) -> None:
        """Pin `host`, which no agent asks, to `agent`."""
        self._pins[host] = _Pin(agent, 0, now + self._rest_s)

    def unpin(self, now: float, wanted: Container[int] = ()) -> None:
        """Let go of hosts that have nothing out and have rested, except for those `wanted`, to which visits are about
        to go out, and those of an agent that is not heard."""
        for host in [host for host, pin in self._pins.items() if not pin.out and pin.until <= now]:
            if host not in wanted and self._pins[host].agent not in self._others - self._ready:
                del self._pins[host]

    def reachable(self, agent: int) -> bool:
        """Return whether visits may be handed to `agent` now."""
        return agent in self._ready

    # --- out and back

    def hand(self, agent: int, life: int, visits: Iterable[tuple[int, int]]) -> None:
        """Note that `visits` (key and host each), at hosts pinned to `agent`, are with it in its present `life`."""
        by_host: dict[int, _Out] = {}  # shared, because few hosts have many visits
        for key, host in visits:
            out = by_host.get(host)
            if out is None:
                out = by_host[host] = _Out(agent, life, host)
            self._put(key, out)
            self._pins[host].out += 1

    def _put(self, key: int, out: _Out) -> None:
        self._out[key] = out
        self._of_life[out[:2]] += 1

    def _take(self, key: int) -> _Out | None:
        out = self._out.pop(key, None)
        if out is not None:
            left = self._of_life[out[:2]] - 1
            if left:
                self._of_life[out[:2]] = left
            else:
                del self._of_life[out[:2]]
        return out

    @property
    def remembers(self) -> bool:
        """True if visits that were not handed out yet may have ended, or be under way."""
        return bool(self._early or self._under_way)

    def goes_on(self, key: int) -> bool:
        """Return whether the visit `key`, about to be handed out, is under way already; then it is out, and not
        sent."""
        under_way = self._under_way.pop(key, None)
        if under_way is not None:
            self._put(key, under_way)
        return under_way is not None

    def early(self, key: int) -> tuple[ToldIn, Any] | None:
        """Return the letter that told early that the visit `key`, about to be handed out, ended, and its row."""
        return self._early.pop(key, None)

    def under_way(self) -> list[tuple[int, int]]:
        """Return the visits that are under way since before, and were not handed out yet: key and host."""
        return [(key, out.host) for key, out in self._under_way.items()]

    def told(self, agent: int, key: int, now: float) -> bool:
        """Note that `agent` ended the visit `key`; return whether it was out. If not, call `note_early`."""
        if self._under_way:
            self._back(self._under_way.pop(key, None), now)
        out = self._out.get(key)
        if out is None or out.agent != agent:
            return False
        self._back(self._take(key), now)
        return True

    def note_early(self, told: ToldIn, key: int, row: Any) -> None:
        """Keep `row` of the visit `key`, which ended before it was handed out again, until it is about to be."""
        self._early[key] = told, row

    def back(self, key: int, now: float) -> bool:
        """Note that the visit `key` is with no agent and was not ended; return whether it was out."""
        if self._under_way:
            self._back(self._under_way.pop(key, None), now)
        out = self._take(key)
        self._back(out, now)
        return out is not None

    def _back(self, out: _Out | None, now: float) -> None:
        pin = self._pins.get(out.host) if out is not None else None
        if pin is not None:
            pin.out -= 1
            pin.until = now + self._rest_s

    def keep(self, told: ToldIn, rows: Any) -> None:
        """Keep `rows` that ended, as `told` says, until they are safe."""
        letters = self._ended.setdefault((told.agent, told.life), deque())
        if letters and letters[-1][0] > told.number:  # told early, and handed out only now
            letters.append((told.number, rows))
            self._ended[told.agent, told.life] = deque(sorted(letters, key=lambda letter: letter[0]))
        else:
            letters.append((told.number, rows))

    # --- what is safe, and what is lost

    def safe(self, agent: int, life: int, number: int) -> list[Any]:
        """Return the rows that are done, because outcomes of that life up to `number` are safe."""
        letters = self._ended.get((agent, life))
        done = []
        while letters and letters[0][0] <= number:
            done.append(letters.popleft()[1])
        return done

    def settle(self, agent: int, life: int, end: int) -> tuple[list[Any], list[Any]]:
        """Close a life that is over, whose letters after `end` are void; return rows that are done, and rows that wait
        again."""
        done = self.safe(agent, life, end)
        again = [rows for _, rows in self._ended.pop((agent, life), ())]
        for key, (told, _) in list(self._early.items()):
            if told.agent == agent and told.life == life and told.number > end:
                del self._early[key]
        return done, again

    def lost(self, agent: int, life: int, now: float) -> list[int]:
        """Return keys of visits that were out with lives of `agent` before `life`, which are all settled: they wait
        again."""
        if not any(one == agent and before < life for one, before in self._of_life):
            return []  # nearly always
        keys = [key for key, out in self._out.items() if out.agent == agent and out.life < life]
        for key in keys:
            self._back(self._take(key), now)
        return keys

    # --- meeting again

    def await_holds(self, agent: int, now: float) -> None:
        """Hand nothing to `agent` until it has said what it has under way: it or this shard began a new life."""
        self._ready.discard(agent)
        for key in [key for key, out in self._under_way.items() if out.agent == agent]:
            self._back(self._under_way.pop(key), now)

    def holds(
        self,
        agent: int,
        life: int,
        under_way: Iterable[tuple[int, int]],
        resting: Iterable[tuple[int, float]],
        now: float,
    ) -> None:
        """Note visits of this shard (key and host each) that `agent` still has under way, and hosts that rest, with the
        seconds left."""
        for host, rest_s in resting:
            if host not in self._pins:
                self.pin(host, agent, now)
            pin = self._pins[host]
            if pin.agent == agent:
                pin.until = max(pin.until, now + rest_s)
        for key, host in under_way:
            if key in self._out:
                continue  # this shard has not forgotten that it sent the visit there
            if self.agent_of(host) != agent:
                self.pin(host, agent, now)
            self._under_way[key] = _Out(agent, life, host)
            self._pins[host].out += 1
        self._ready.add(agent)

    # --- what a checkpoint has

    def unsafe(self) -> list[tuple[ToldIn, Any]]:
        """Return rows that ended and are not safe, with the letters that told them."""
        return [
            (ToldIn(agent, life, number), rows)
            for (agent, life), letters in self._ended.items()
            for number, rows in letters
        ]

    def early_rows(self) -> Sequence[tuple[int, ToldIn, Any]]:
        """Return the visits that ended before they were handed out: key, letter that told it, and row."""
        return [(key, told, row) for key, (told, row) in self._early.items()]

    def restore(self, unsafe: Iterable[tuple[ToldIn, Any]], early: Iterable[tuple[int, ToldIn, Any]]) -> None:
        """Go on with what `unsafe` and `early_rows` gave."""
        for told, rows in unsafe:
            self.keep(told, rows)
        self._early = {key: (told, row) for key, told, row in early}
