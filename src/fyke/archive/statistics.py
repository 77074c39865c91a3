"""The state of a crawl: one frozen record, read by the panel, the log, the summary and `fyke status`.

Counts are over the whole crawl, across restarts; `elapsed_s` and the rates are of this run. `sum_of_agents` combines
the records of several agents.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from fyke.core.freshness import Freshness

_NO_FAILURES = ("ok", "unchanged", "redirected", "robots_forbade")


class PassFound(NamedTuple):
    """What the last pass over a crawl found so far."""

    number: int  # from 1 on
    began_at: float  # unix seconds
    unchanged: int = 0  # pages, as are the next three
    changed: int = 0
    new: int = 0
    gone: int = 0  # with a 404 or 410 for the second visit in a row; counted when that is found
    requests: int = 0
    bytes: int = 0  # of their answers: heads and bodies
    forever: bool = False


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
    rewrite_exceptions: int = 0  # pages into which rewrite rules make no URL any more
    archive_bytes: int = 0
    memory_bytes: int = 0
    plugin_failures: dict[str, int] = field(default_factory=dict)
    deaths: dict[str, int] = field(default_factory=dict)  # of agents' processes that were started again, by `death_key`
    again: PassFound | None = None
    freshness: Freshness | None = None

    @property
    def failed(self) -> int:
        """Visits that brought no page for a reason on the other side."""
        return sum(n for kind, n in self.outcomes.items() if kind not in _NO_FAILURES)

    def as_dict(self) -> dict[str, Any]:
        """Return it as checkpoints, the control socket and `--json` have it."""
        told = asdict(self)
        for name in _RECORDS:
            told[name] = {} if (record := getattr(self, name)) is None else record._asdict()
        return told

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "CrawlStatistics":
        """Return the statistics that `as_dict` gave."""
        records = {name: record(**told[name]) for name, record in _RECORDS.items() if told.get(name)}
        return cls(**{**told, **dict.fromkeys(_RECORDS), **records})


def death_key(agents: Sequence[int], how: str) -> str:
    """Return the key in `deaths` for the process of `agents`."""
    return f"{'agents' if len(agents) > 1 else 'agent'} {', '.join(map(str, agents))}: {how}"


def totals_of(states: Iterable[Mapping[str, Any]]) -> CrawlStatistics:
    """Return how a crawl stands, by the checkpoints of its agents."""
    return sum_of_agents([CrawlStatistics.read(state["totals"]) for state in states])


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
        elif name in _RECORDS:
            known = [value for value in values if value is not None]
            sums[name] = _ADDED[name](known) if known else None
        elif isinstance(values[0], dict):
            sums[name] = dict(sum(map(Counter, values), Counter[str]()))
        else:
            sums[name] = sum(values)
    return CrawlStatistics(**sums)


def _added_passes(many: Sequence[PassFound]) -> PassFound:
    """Return what the last pass found, over all agents that began it."""
    number = max(one.number for one in many)
    last = [one for one in many if one.number == number]
    sums = PassFound(*(sum(values) for values in zip(*last, strict=True)))
    return sums._replace(number=number, began_at=min(one.began_at for one in last), forever=last[0].forever)


def _added_freshness(many: Sequence[Freshness]) -> Freshness:
    """Return how fresh the copies of all shards were, each at its last plan."""
    pages = sum(one.pages for one in many)
    return Freshness(
        at=max(one.at for one in many),
        pages=pages,
        fresh=sum(one.fresh * one.pages for one in many) / max(1, pages),
        due=sum(one.due for one in many),
        chosen=sum(one.chosen for one in many),
        next_at=min(one.next_at for one in many),
    )


_RECORDS: dict[str, type[PassFound | Freshness]] = {"again": PassFound, "freshness": Freshness}
_ADDED: dict[str, Callable[[Any], PassFound | Freshness]] = {"again": _added_passes, "freshness": _added_freshness}
