"""The state of a crawl: one frozen record, read by the panel, the log, the summary and `fyke status`.

Counts are over the whole crawl, across restarts; `elapsed_s` and the rates are of this run. `added` combines the
records of several agents.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

_NO_FAILURES = ("ok", "unchanged", "redirected", "robots_forbade")


@dataclass(frozen=True, slots=True)
class CrawlStatistics:
    """Counts, sizes in bytes, times in seconds."""

    pages: int = 0  # answers archived as pages, outcome ok
    visits: int = 0  # visits to pages that ended, whatever their outcome
    cut: int = 0  # pages whose end was not read, because reading all would have cost too much
    listings: int = 0  # visits to sitemaps and feeds that ended: neither pages nor visits
    outcomes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0  # bodies as the wire had them
    elapsed_s: float = 0.0
    total_s: float = 0.0  # over all runs
    in_flight: int = 0
    hosts: int = 0  # at the workbench
    hosts_asleep: int = 0
    rest_until: float = 0.0  # unix seconds until which all hosts with work rest; 0 if one does not
    links: int = 0  # found
    urls: int = 0  # distinct ones accepted
    waiting: int = 0  # to be fetched, in memory and on disk
    unchecked: int = 0  # waiting for their check against the URLs seen
    domains: int = 0  # met
    over_budget: int = 0  # of those waiting, URLs whose domain is over its budget
    without_rules: int = 0  # of those waiting, URLs whose host's robots.txt is not there yet
    blocked: int = 0  # of those waiting, URLs whose host a person blocked
    queues: dict[str, int] = field(default_factory=dict)  # URLs that wait, by where
    rounds: int = 0  # that URLs wait for
    edges: int = 0  # pairs of domains of which one links to the other
    left_out: dict[str, int] = field(default_factory=dict)  # links that are not followed, by the rule that forbids them
    rewritten: dict[str, int] = field(default_factory=dict)  # URLs put aside, by the rule that rewrites them
    revoked: dict[str, int] = field(default_factory=dict)  # revoked rewrite rules, with their numbers of contradictions
    archive_bytes: int = 0
    memory_bytes: int = 0
    plugin_failures: dict[str, int] = field(default_factory=dict)
    deaths: dict[str, int] = field(default_factory=dict)  # of agents' processes that were started again: see `died`
    again: dict[str, Any] = field(default_factory=dict)  # what the last pass over the crawl found; empty without one
    freshness: dict[str, Any] = field(default_factory=dict)  # of a crawl that never ends, at its last plan

    @property
    def failed(self) -> int:
        """Visits that brought no page for a reason on the other side."""
        return sum(n for kind, n in self.outcomes.items() if kind not in _NO_FAILURES)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def figures(self) -> dict[str, Any]:
        """Return it as those hear it who watch the crawl: whole, and apart what they draw by itself."""
        return {"statistics": self.as_dict(), "queues": self.queues, "rounds": self.rounds, "edges": self.edges}


def death_key(agents: Sequence[int], how: str) -> str:
    """Return the key in `deaths` for the process of `agents`."""
    return f"{'agents' if len(agents) > 1 else 'agent'} {', '.join(map(str, agents))}: {how}"


def totals_of(states: Iterable[Mapping[str, Any]]) -> CrawlStatistics:
    """Return how a crawl stands, by the checkpoints of its agents."""
    return sum_of_agents([CrawlStatistics(**state["totals"]) for state in states])


def sum_of_agents(many: Sequence[CrawlStatistics]) -> CrawlStatistics:
    """Return the statistics of a crawl from those of its agents; all zeros for none."""
    if len(many) < 2:
        return many[0] if many else CrawlStatistics()
    sums: dict[str, Any] = {}
    for name in (one.name for one in fields(CrawlStatistics)):
        values = [getattr(statistics, name) for statistics in many]
        if name in ("elapsed_s", "total_s", "rounds"):
            sums[name] = max(values)
        elif name == "rest_until":  # all hosts rest if every agent with hosts says so
            working = [one.rest_until for one in many if one.hosts or one.in_flight or one.rest_until]
            sums[name] = min(working) if working and all(working) else 0.0
        elif name in ("again", "freshness"):
            known = [value for value in values if value]
            sums[name] = _ADDED[name](known) if known else {}
        elif isinstance(values[0], dict):
            sums[name] = dict(sum(map(Counter, values), Counter[str]()))
        else:
            sums[name] = sum(values)
    return CrawlStatistics(**sums)


def _added_passes(many: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the last pass found, over all agents that began it."""
    number = max(one["number"] for one in many)
    last = [one for one in many if one["number"] == number]
    counts = {name: sum(one[name] for one in last) for name in last[0]}
    began = {"number": number, "began_at": min(one["began_at"] for one in last), "forever": last[0]["forever"]}
    return {**counts, **began}


def _added_freshness(many: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how fresh the copies of all shards were, each at its last plan."""
    sums = {name: sum(one[name] for one in many) for name in ("pages", "due", "chosen")}
    fresh = sum(one["fresh"] * one["pages"] for one in many) / max(1, sums["pages"])
    return {
        **sums,
        "fresh": fresh,
        "at": max(one["at"] for one in many),
        "next_at": min(one["next_at"] for one in many),
    }


_ADDED = {"again": _added_passes, "freshness": _added_freshness}
