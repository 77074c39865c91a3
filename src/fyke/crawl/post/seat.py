"""The place of an agent among those of its crawl, and the rooms that its post office acts through."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fyke.archive.division import Division
from fyke.core.clock import Clock
from fyke.crawl.past import Past
from fyke.crawl.post.mailbag import Transport
from fyke.disk.store import Store
from fyke.fetcher.names import Resolver
from fyke.fetcher.rests import Rests


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The place of an agent among those of its crawl."""

    me: int
    division: Division
    transport: Transport
    most_rules: int  # origins that a shard asks for their rules at a time
    moved: bool  # whether addresses went from agent to agent since the last run
    deaths: Mapping[str, int]  # of its process, as in `CrawlStatistics`
    clock: Mapping[str, Any]  # as noted by the clock that all agents go on by


@dataclass(frozen=True, slots=True, kw_only=True)
class PostRooms:
    """The rooms that a post office acts through."""

    store: Store
    resolver: Resolver
    rests: Rests
    past: Past
    clock: Clock
