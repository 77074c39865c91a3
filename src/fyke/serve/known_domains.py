"""The domains that a crawl knows, as of its newest checkpoint: a running crawl keeps their names on disk.

It only reads, takes no lock, and slows no crawl. Invariant: if a file disappears while it is read, because the crawl
took another checkpoint, it looks again.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from fyke.archive.directory import CrawlDirectory
from fyke.archive.division import division
from fyke.archive.reading import read_table
from fyke.core.errors import NotACrawl
from fyke.core.urls import key_of
from fyke.frontier.domains import waiting_urls
from fyke.frontier.looking import Known, SavedFrontier, looked_again

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


def top_domains(directory: CrawlDirectory, limit: int, within: str = "") -> list[Domain]:
    """Return at most `limit` domains that most others link to, with `within` in their names. Raises NotACrawl."""

    def read(frontier: SavedFrontier) -> list[Domain]:
        return _top(limit, (one for known in frontier.domains() for one in _told(known) if within in one.domain))

    try:
        return _top(limit, [one for part in directory.parts for one in _looked(directory, part.shard, read)])
    except NotACrawl:
        return _from_table(directory, limit, within)


def one_domain(directory: CrawlDirectory, name: str) -> Domain | None:
    """Return what the crawl knows of the domain `name`; None if it never met it. Raises NotACrawl."""

    def read(frontier: SavedFrontier) -> Domain | None:
        known = frontier.domain(name)
        return None if known is None else next(_told(known))

    shard = division(directory.state).shard_of(key_of(name))
    return _looked(directory, directory.parts[shard].shard, read)


def _looked(directory: CrawlDirectory, shard: Path, read: Callable[[SavedFrontier], _Found]) -> _Found:
    """Return what `read` makes of one `shard` of the frontier, in its newest checkpoint. Raises NotACrawl,
    StateDamaged."""
    config = directory.config()

    def look() -> _Found:
        with SavedFrontier(shard, config.frontier) as frontier:
            return read(frontier)

    return looked_again(look)


def _told(known: Known) -> Iterator[Domain]:
    records = known.records
    columns = (
        records["in_degree"],
        known.ranks,
        known.budgets,
        records["urls"],
        records["fetched"],
        waiting_urls(records),
    )
    for name, *numbers in zip(known.names, *(column.tolist() for column in columns), strict=True):
        yield Domain(name, *numbers)


def _from_table(directory: CrawlDirectory, limit: int, within: str) -> list[Domain]:
    """Return the same as `top_domains`, from the table that a crawl leaves when it closes."""
    names = list(asdict(Domain("", 0, 0, 0, 0, 0, 0)))
    rows = read_table(directory.path, "domains", names).to_pylist()
    return _top(limit, (Domain(**row) for row in rows if within in row["domain"]))


def _top(limit: int, domains: Iterable[Domain]) -> list[Domain]:
    return heapq.nlargest(limit, domains, key=attrgetter("in_degree", "urls", "domain"))
