"""The next URLs to be fetched, pulled through the robots gate while the ready queues are low.

A budget is a rate: a number of URLs a round. A round lasts as long as a host without reputation takes for the default
budget, and ends sooner only when the crawl runs dry. Otherwise rounds would turn as fast as URLs are pulled, and while
the honest hosts rest, a farm, whose hosts never end, would take all that is left.

*Known* pages, which are visited again, have their share of the pulled URLs while new ones wait too. If a limit may end
a pass before all were visited, known pages go *first*: as long as one is ready, out, or on its way, no new URL is let
go. With a depth limit that holds for each level. Known pages of hosts that rest for long are not waited for. Traps are
put aside before the rules of their hosts are asked for.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fyke.core.batches import NO_KEYS, keep, u64
from fyke.core.slices import Steps
from fyke.frontier.sizes import Sizes
from fyke.frontier.stages import Stages
from fyke.frontier.traps.waiting import portions


class Supply:
    """Fills the ready queues of `stages` up to `ready_rows`; a round lasts `round_s` seconds."""

    def __init__(
        self, stages: Stages, sizes: Sizes, *, ready_rows: int, round_s: float, saved: Mapping[str, Any]
    ) -> None:
        self._stages = stages
        self._sizes = sizes
        self._ready_rows = ready_rows
        self._round_s = round_s
        self._round_ends_at = float(saved.get("round_ends_at", 0.0))  # unix seconds
        self.revisit_share = 1.0  # share of known pages among pulled URLs, while new ones wait too
        self._known_ahead = 0.0  # rows that known pages had beyond their share
        self._known_first = bool(saved.get("known_first", False))  # in this pass
        self._new_waits = self._known_first  # now, or until the next level

    def __repr__(self) -> str:
        return f"Supply({self._stages.ready!r}, {self._stages.gate!r})"

    def fill(self, now: float, level: int | None, *, may_merge: bool, dry: bool, quiet: bool) -> Steps[bool]:
        """Pull URLs while the ready queues are low. Returns whether any moved. `level`: pages up to this one, or None
        for all; `dry`: the next round may begin before its time; `quiet`: nothing is being fetched."""
        ready, gate, traps = self._stages.ready, self._stages.gate, self._stages.traps
        moved = False
        self._let_new(quiet=quiet)
        while ready.waiting + gate.unchecked < self._ready_rows and len(gate.asks) < self._sizes.asks:
            batch = self.pull(now, level, dry=dry)
            if batch is None:
                break
            wanted = 0
            for portion in portions(batch):
                urls = traps.divert(self._stages.left_out.divert(portion))
                self.make_ready(gate.put(urls, now))
                wanted += urls.num_rows
                yield
            moved = True
            if wanted < batch.num_rows:  # traps may have no end
                break
        passed = gate.recheck(now, urgent=may_merge)
        if passed is not None:
            self.make_ready(passed)
            moved = True
        if gate.full or (may_merge and gate.unchecked):
            for checked in gate.merge(now, self._stages.left_out.divert):
                self.make_ready(checked)
                yield
            moved = True
        return moved

    def put(self, urls: pa.RecordBatch, now: float) -> None:
        """Take `urls` that were put aside and come back: they go through the robots gate to the ready queues."""
        if urls.num_rows:
            self.make_ready(self._stages.gate.put(urls, now))

    def make_ready(self, urls: pa.RecordBatch) -> None:
        """Make `urls` ready, because they passed every stage. New ones may wait behind known pages."""
        if self._new_waits and urls.num_rows:
            known = self._stages.known_pages.knows(u64(urls, "key"))
            self._stages.backlog.put(keep(urls, ~known), NO_KEYS)
            urls = keep(urls, known)
        self._stages.ready.put(urls)

    # --- known pages first

    def plan(self, *, known_first: bool, by_line: bool) -> None:
        """Begin with the known pages of a plan, which are those of a pass, or `by_line` some that are due. In a pass,
        ready URLs go back: known pages wait among the planned ones, new URLs beside them, or behind them if
        `known_first`."""
        self._known_first = self._new_waits = known_first
        pages, backlog = self._stages.known_pages, self._stages.backlog
        for urls in () if by_line else self._stages.ready.drain(self._sizes.batch):
            known = pages.knows(u64(urls, "key"))
            pages.wait(keep(urls, known))
            backlog.put(keep(urls, ~known), NO_KEYS)

    def next_level(self) -> None:
        """Begin another level, which has known pages of its own."""
        self._stages.known_pages.next_level()
        self._new_waits = self._known_first

    def _let_new(self, *, quiet: bool) -> None:
        """Let new URLs go once no known page is on its way."""
        if self._new_waits and quiet:
            at = self._stages
            busy = len(at.ready) or len(at.window) or at.gate.rests_until == 0
            self._new_waits = bool(busy or not at.known_pages.spent)

    def pull(self, now: float, level: int | None, *, dry: bool) -> pa.RecordBatch | None:
        """Return the next URLs: pages that are visited again have their share, while new ones wait too."""
        known_first = self._known_ahead <= 0
        batch = self._known(level) if known_first else self._new(now, level, dry=dry)
        if batch is not None:
            share = self.revisit_share
            self._known_ahead += batch.num_rows * (1 - share if known_first else -share)
            return batch
        self._known_ahead = 0.0
        return self._new(now, level, dry=dry) if known_first else self._known(level)

    def _known(self, level: int | None) -> pa.RecordBatch | None:
        return self._stages.known_pages.get(self._sizes.batch, level)

    def _new(self, now: float, level: int | None, *, dry: bool) -> pa.RecordBatch | None:
        if self._new_waits:
            return None
        batch = self._stages.backlog.get(self._sizes.batch)
        batch = self._of_round(now, dry=dry) if batch is None else batch
        if batch is None or level is None or not self._known_first:
            return batch
        return self._stages.put_off_deeper(batch, level)  # a pass begins at the first level, whatever waited by then

    def _of_round(self, now: float, *, dry: bool) -> pa.RecordBatch | None:
        """Return URLs of the current round, or of the next if that may begin."""
        beast = self._stages.beast
        before = beast.round
        next_round = dry and not self._stages.ready.waiting
        batch = beast.get(self._sizes.batch, next_round=next_round or now >= self._round_ends_at)
        if beast.round != before:
            self._round_ends_at = now + self._round_s
        return batch

    def state(self) -> dict[str, Any]:
        return {"round_ends_at": self._round_ends_at, "known_first": self._known_first}
