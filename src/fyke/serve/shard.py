"""The frontier of a crawl as its newest checkpoint has it: how long its queues are, and the domains it knows.

Asked by the watch where no crawl says more, and for the table of domains, whose names a running crawl keeps on disk.
Reads only, takes no lock, and slows no crawl. Invariant: a file that goes while it is read (the crawl took another
checkpoint) is met by looking again.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from fyke.archive import read_table
from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory
from fyke.core.errors import NotACrawl, StateDamaged
from fyke.core.urls import key_of
from fyke.disk.checkpoint import newest
from fyke.disk.store import Store
from fyke.frontier.filters import Filters
from fyke.frontier.frontier import Frontier

LOOKS = 3
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Domain:
    """A pay-level domain, as the crawl knows it."""

    domain: str
    in_degree: int  # other domains that link to it
    rank: int  # by in-degree, 1 for the highest; 0 below the ranking
    budget: int  # URLs a round
    urls: int
    fetched: int
    waiting: int


def queues_of(directory: CrawlDirectory) -> dict[str, Any]:
    """The queues' lengths, as `fyke.crawl.control.Steering.figures` tells them; nothing before the first checkpoint."""

    def read(frontier: Frontier, state: Mapping[str, Any]) -> dict[str, Any]:
        now = frontier.statistics()
        queues = {
            "unchecked": now.unchecked,
            "later": now.later,
            "round": now.waiting,
            "over_budget": now.over_budget,
            "without_rules": now.without_rules,
            "ready": now.ready,
            "spilled": now.spilled,
            "memory": _rows(state.get("leased")),
            "blocked": _rows(state.get("blocked")),
        }
        return {"queues": queues, "rounds": now.rounds, "edges": now.edges}

    try:
        found = _looked(directory, read)
    except NotACrawl:
        found = {}
    return {
        "queues": {},
        "rounds": 0,
        "edges": 0,
        "slowest": [],
        "blocked": AskedLater(directory.state).blocked,
        **found,
    }


def _rows(queue: dict[str, Any] | None) -> int:
    return int((queue or {}).get("rows", 0))


def top_domains(directory: CrawlDirectory, limit: int, within: str = "") -> list[Domain]:
    """The domains that most others link to, `limit` at most; those with `within` in their name. Raises NotACrawl."""

    def read(frontier: Frontier, state: Mapping[str, Any]) -> list[Domain]:
        return heapq.nlargest(limit, _domains(frontier, within), key=attrgetter("in_degree", "urls", "domain"))

    try:
        return _looked(directory, read)
    except NotACrawl:
        return _from_table(directory, limit, within)


def one_domain(directory: CrawlDirectory, name: str) -> Domain | None:
    """What the crawl knows of the domain `name`; None when it never met it. Raises NotACrawl."""

    def read(frontier: Frontier, state: Mapping[str, Any]) -> Domain | None:
        record = frontier.domains.of(key_of(name))
        if record is None:
            return None
        return next(_told(frontier, [name], np.atleast_1d(record)))

    return _looked(directory, read)


def _looked(directory: CrawlDirectory, read: Callable[[Frontier, Mapping[str, Any]], _Found]) -> _Found:
    """What `read` makes of the frontier in the newest checkpoint. Raises NotACrawl, StateDamaged."""
    config = directory.config()
    for left in reversed(range(LOOKS)):
        try:
            manifest = newest(directory.shard)
            if not manifest.number:
                raise NotACrawl(f"{directory.path} holds no checkpoint yet")
            state = manifest.participants
            store = Store(directory.shard, files=manifest.files, participants=state, read_only=True)
            with closing(
                Frontier(
                    store,
                    config.frontier,
                    Filters([]),
                    by_level=False,
                    host_delay_s=0.0,
                    few_visits=0,
                    opened_at=0.0,
                    state=state["frontier"],
                )
            ) as frontier:
                return read(frontier, state)
        except (StateDamaged, FileNotFoundError):
            if not left:
                raise
    raise AssertionError("the last look returns or raises")


def _domains(frontier: Frontier, within: str) -> Iterator[Domain]:
    for names, records in frontier.domains.named():
        if not within:
            yield from _told(frontier, names, records)
            continue
        rows = [row for row, name in enumerate(names) if within in name]
        if rows:
            yield from _told(frontier, [names[row] for row in rows], records[rows])


def _told(frontier: Frontier, names: list[str], records: Any) -> Iterator[Domain]:
    star = frontier.star
    waiting = np.maximum(records["urls"].astype(np.int64) - records["ended"], 0)
    columns = (
        records["in_degree"], star.ranking.rank(records["in_degree"]), star.budgets(records["in_degree"]),
        records["urls"], records["fetched"], waiting,
    )  # fmt: skip
    for name, *numbers in zip(names, *(column.tolist() for column in columns), strict=True):
        yield Domain(name, *numbers)


def _from_table(directory: CrawlDirectory, limit: int, within: str) -> list[Domain]:
    """The same out of the table that a crawl leaves when it closes."""
    names = list(asdict(Domain("", 0, 0, 0, 0, 0, 0)))
    rows = read_table(directory.path, "domains", names).to_pylist()
    found = (Domain(**row) for row in rows if within in row["domain"])
    return heapq.nlargest(limit, found, key=attrgetter("in_degree", "urls", "domain"))
