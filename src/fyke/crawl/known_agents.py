"""What the supervisor knows of the agents of a crawl: what they said last, and what they may begin."""

from dataclasses import dataclass, field
from typing import Any

from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.statistics import CrawlStatistics


@dataclass(eq=False)
class KnownAgent:
    """What is known of one agent."""

    stand: dict[str, Any] = field(default_factory=dict)  # its answer to the question `round`
    round: int = 0
    figures: dict[str, Any] = field(default_factory=dict)
    statistics: CrawlStatistics = field(default_factory=CrawlStatistics)
    allowed: int = -1  # pages it may have in all; -1: it has not said how many it has
    checkpoints: int = 0


def standing_before(directory: CrawlDirectory, agent: int) -> CrawlStatistics:
    """How the agent stood when it was last told of, as long as it says nothing itself."""
    totals = saved_state(CrawlDirectory(directory.path, agent).shard).get("totals", {})
    return CrawlStatistics(**{**totals, "elapsed_s": 0.0, "memory_bytes": 0, "in_flight": 0})


def all_unreached(stands: list[dict[str, Any]]) -> bool:
    """Whether there are hosts, and no agent reaches any of its own."""
    working = [stand for stand in stands if stand["hosts"]]
    return bool(working) and all(stand["unreached"] for stand in working)
