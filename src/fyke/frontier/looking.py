"""The frontier of a crawl as a checkpoint has it, for another process: where URLs wait, and facts of domains.

`fyke why` and `fyke serve` read it, also beside the crawl. No frontier is built; the queues and tables that the
checkpoint names are opened when they are asked for. Invariant: nothing is written and no lock is taken. StateDamaged
for a file that goes while it is read means that the crawl took another checkpoint: look again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import URLS, u64
from fyke.core.closing import Closing
from fyke.core.config import FrontierSection
from fyke.core.errors import StateDamaged
from fyke.core.freshness import Freshness
from fyke.core.urls import Locator, key_of, pay_level_domain, split
from fyke.disk.checkpoint import look
from fyke.disk.drum import Drum
from fyke.disk.operations import Values
from fyke.disk.queue import DiskQueue
from fyke.frontier.asleep import WAITING
from fyke.frontier.budgets import budget_function
from fyke.frontier.domains import Domains
from fyke.frontier.list_signals import ListSignals
from fyke.frontier.nameless import domains_in_vain
from fyke.frontier.new_links import NewLinks
from fyke.frontier.page_history import ENDED, KNOWN
from fyke.frontier.revisit.signals import EVIDENCE, Trust, trust
from fyke.frontier.robots_gate import RECORD
from fyke.frontier.seen import UrlSeen
from fyke.frontier.star import Star
from fyke.frontier.traps.waiting import Traps

BLOCKED = "because its host is blocked"  # a place where URLs wait
YOUNGER = "its outcome is younger than the last checkpoint"
LEFT_OUT = "because a rule of the settings refuses it"  # a place as well; its URLs are left out
OVER_QUOTA = "because its host has reached its limit of pages"  # a place as well; its URLs are left out
UNRULED = "for the robots.txt of its host"  # a place as well
TRAPPED = "behind everything else, as a trap"  # a place as well; see `trap`
LOOKS = 3  # at a crawl that takes another checkpoint each time

_Found = TypeVar("_Found")
_Closable = TypeVar("_Closable", UrlSeen, Domains, Drum, DiskQueue, ListSignals, NewLinks, Star, Traps)


def looked_again(look: Callable[[], _Found]) -> _Found:
    """Return what `look` finds in a checkpoint; look again if that goes meanwhile. Raises StateDamaged,
    FileNotFoundError."""
    for _ in range(LOOKS - 1):
        with suppress(StateDamaged, FileNotFoundError):
            return look()
    return look()


class Known(NamedTuple):
    """Domains by name, with their records [n] (dtype `RECORD` of `domains`), ranks and budgets [n]."""

    names: list[str]
    records: Values
    ranks: npt.NDArray[np.integer]
    budgets: npt.NDArray[np.integer]


class SavedFrontier(Closing):
    """The frontier in the newest checkpoint of a shard. Use as a context manager."""

    def __init__(self, shard: Path, config: FrontierSection) -> None:
        """Raises NotACrawl if there is no checkpoint, StateDamaged."""
        self._store, _ = look(shard)
        self._state: Mapping[str, Any] = self._store.participant("frontier")
        self._config = config
        self._opened = ExitStack()

    def __repr__(self) -> str:
        return f"SavedFrontier({self._store!r})"

    def close(self) -> None:
        self._opened.close()

    def _until_closed(self, opened: _Closable) -> _Closable:
        """Return `opened`, which is closed with this."""
        self._opened.callback(opened.close)
        return opened

    # --- URLs

    def places(self) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        """Yield every place where URLs may wait, in words, with its URLs (schema `URLS`)."""
        state = self._state
        yield "to be checked against the URLs seen", self._seen().unchecked()
        yield "for pages nearer to the seeds to be done", self._queue("later", state.get("later"))
        again = state.get("again", {})
        yield "for its next visit", self._queue("again", again.get("queue"))
        yield "for the budget of its domain to be known", self._domains().unchecked()
        for name, rows in {**state.get("backlog", {}), **self._rounds()}.items():
            over = name.startswith("beast-over")
            yield "because its domain is over its budget" if over else "for its turn", self._queue(name, rows)
        gate = state.get("gate", {})
        yield UNRULED, self._queue("robots-waiting", gate.get("waiting"))
        yield UNRULED, self._unchecked_rules(gate.get("cache"))
        for name, rows in state.get("ready", {}).items():
            yield "in line, on disk", self._queue(name, rows)
        yield BLOCKED, self._queue("blocked", state.get("blocked"))
        for name, rows in state.get("asleep", {}).get("queues", {}).items():
            yield "for its host, which rests for long, or as a redirect asked", self._queue(name, rows, WAITING)
        yield TRAPPED, self._queue("traps", state.get("traps", {}).get("queue"))
        left_out = state.get("left_out", {})
        yield LEFT_OUT, self._queue("left-out", left_out.get("links"))
        yield LEFT_OUT, self._queue("withdrawn", left_out.get("urls"))
        yield OVER_QUOTA, self._queue("quota", state.get("quota", {}).get("queue"))
        yield "for its host's turn", self._queue("leased", state.get("leased"))

    def reason(self, place: str, at: Locator, wall_ahead_s: float) -> str:
        """Return in words why `at` waits in this place, if that is not plain."""
        if place == TRAPPED:
            return self._trap(at.key)
        if place == LEFT_OUT:
            return "it goes on with the crawl once no rule refuses it"
        in_vain = domains_in_vain(self._state.get("gate", {}).get("nameless", {})).get(at.domain)
        if place != UNRULED or in_vain is None:
            return ""
        domain = pay_level_domain(split(at.url.decode()).host)
        until = datetime.fromtimestamp(in_vain[1] + wall_ahead_s, UTC)
        names = f"{in_vain[0]:,} names in a row below {domain} had no address"
        return f"{names}, so the next is looked up after {until:%Y-%m-%d %H:%M:%S} UTC"

    def _trap(self, key: int) -> str:
        """Return in words why the URL with this key waits as a trap; empty if it is not one any more."""
        config = self._config
        traps = Traps(self._store, config.trap_pages, self._state.get("traps"), probes=config.probes)
        self._until_closed(traps)
        for urls in traps.scan():
            for row in np.flatnonzero(u64(urls, "key") == np.uint64(key)).tolist():
                return traps.explain(urls.slice(row, 1))
        return ""

    def met(self, key: int) -> bool:
        """Return whether the URL with this key was met."""
        return self._seen().holds(key)

    @property
    def freshness(self) -> Freshness:
        """How fresh copies were at the last plan."""
        return Freshness(*self._state.get("again", {}).get("standing", ()))

    def known(self, key: int) -> Any | None:
        """Return the page's history as of the last plan (`page_history.KNOWN`); None if it has none."""
        saved = self._state.get("again", {}).get("known")
        found, record = self._until_closed(Drum(self._store, "known", saved, value=KNOWN, aux=ENDED)).get(key)
        return record if found else None

    def told(self, at: Locator, since: float) -> tuple[Trust, float, float]:
        """Return how far signals of the host of the page `at` are believed, how many signals this page had after
        `since` (unix seconds), and how many new links a second it brings."""
        state = self._state.get("again", {})
        drum = self._until_closed(Drum(self._store, "evidence", state.get("evidence"), value=EVIDENCE))
        told = self._until_closed(ListSignals(self._store, state.get("told")))
        found = self._until_closed(NewLinks(self._store, self._config.table_memory_bytes, state.get("found")))
        trusted = trust(drum.values_of(np.array([at.host], np.uint64)))
        return trusted, told.of(at.key, since), float(found.rates_of(np.array([at.key], np.uint64))[0])

    def _rounds(self) -> dict[str, Any]:
        enforcer = self._state.get("beast", {})
        beast = {f"beast-{name}": rows for name, rows in enforcer.get("queues", {}).items()}
        return beast or {name: rows for name, rows in enforcer.items() if name == "backlog"}

    def _queue(self, name: str, rows: Mapping[str, Any] | None, schema: pa.Schema = URLS) -> Iterator[pa.RecordBatch]:
        return self._until_closed(DiskQueue(self._store, name, schema, dict(rows) if rows else None)).scan()

    def _unchecked_rules(self, state: dict[str, Any] | None) -> Iterator[pa.RecordBatch]:
        cache = self._until_closed(Drum(self._store, "robots", state, value=RECORD, aux=URLS))
        return (urls for _, _, urls in cache.scan_pending() if urls is not None)

    def _seen(self) -> UrlSeen:
        return self._until_closed(UrlSeen(self._store, self._config.table_memory_bytes, self._state.get("seen")))

    # --- domains

    def domains(self) -> Iterator[Known]:
        """Yield all domains that were met, in batches, in the order in which they were."""
        domains = self._domains()
        star = self._star(domains)
        for names, records in domains.named():
            yield _known(star, names, records)

    def domain(self, name: str) -> Known | None:
        """Return one domain; None if it was never met."""
        domains = self._domains()
        record = domains.of(key_of(name))
        return None if record is None else _known(self._star(domains), [name], np.atleast_1d(record))

    def _domains(self) -> Domains:
        return self._until_closed(Domains(self._store, self._config.table_memory_bytes, self._state.get("domains")))

    def _star(self, domains: Domains) -> Star:
        config = self._config
        function, memory = budget_function(config), config.table_memory_bytes
        star = Star(self._store, domains, function, config.default_budget_urls, memory, self._state.get("star"))
        return self._until_closed(star)


def _known(star: Star, names: list[str], records: Values) -> Known:
    degrees = records["in_degree"]
    keys = np.fromiter(map(key_of, names), np.uint64, len(names))
    return Known(names, records, star.ranking.rank(degrees), star.budgets(keys, degrees))
