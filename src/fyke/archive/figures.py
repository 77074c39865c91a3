"""What a running crawl tells once a second to those who watch it, and its agents to their supervisor.

It crosses from process to process as a JSON object: over the control socket, and on to browsers and programs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fyke.archive.statistics import CrawlStatistics


class HostFigures(NamedTuple):
    """How a host stands at the workbench."""

    host: str
    state: str  # awake, resting, under way, blocked, or awaits name or rules
    waiting: int  # visits in memory
    more_on_disk: bool
    rest_s: float
    delay_s: float
    left_s: float  # how long the visits in memory take at this delay
    crawl_delay_s: float
    failures: int
    budget: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How a crawl stands."""

    at: float  # unix seconds
    held: bool = False
    statistics: CrawlStatistics
    bench: Mapping[str, float] = field(default_factory=dict)  # counts of the workbench
    slowest: Sequence[HostFigures] = ()
    blocked: Sequence[str] = ()  # hosts

    def as_dict(self) -> dict[str, Any]:
        """Return it as those hear it who watch: the statistics whole, and apart what they draw by itself."""
        now = self.statistics
        return {
            "at": self.at,
            "held": self.held,
            "statistics": now.as_dict(),
            "queues": now.queues,
            "rounds": now.rounds,
            "edges": now.edges,
            "bench": self.bench,
            "slowest": [host._asdict() for host in self.slowest],
            "blocked": self.blocked,
        }

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Figures":
        """Return the figures that `as_dict` gave."""
        return cls(
            at=told["at"],
            held=told["held"],
            statistics=CrawlStatistics.read(told["statistics"]),
            bench=told["bench"],
            slowest=[HostFigures(**host) for host in told["slowest"]],
            blocked=told["blocked"],
        )
