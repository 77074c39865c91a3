"""What came from other agents, for the rooms of this one: a record for each kind of event.

`remote` moves them. Invariant: an event does not change once it is made.
"""

from dataclasses import dataclass

import pyarrow as pa

from fyke.core.messages import Links, Outcomes
from fyke.core.visits import Exchange, Visit
from fyke.crawl.post.handed import ToldIn


@dataclass(frozen=True, slots=True)
class Met:
    """`agent` or this agent began a new life: drop waiting visits of its shard, and call `Office.hold`."""

    agent: int


@dataclass(frozen=True, slots=True)
class LinksCame:
    """Links to URLs of this shard, and URLs to which seeds redirect (`landed`), which may be of other shards."""

    links: Links
    landed: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Ended:
    """Visits that are out have ended: let go of them. If `told` is not None, give them to `Office.keep`."""

    keys: list[int]
    ended: pa.RecordBatch  # schema `ENDED`, one row for each key
    told: ToldIn | None


@dataclass(frozen=True, slots=True)
class Done:
    """Visits that ended and were let go of are safe (schema `ENDED`)."""

    ended: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Visits of this shard (key and host each) that are under way elsewhere, or brought pages. The shard went back to
    its checkpoint and forgot that it had handed them out."""

    visits: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Heard:
    """Outcomes for the frontier, except for ended visits: rules, visits that are out and were put off, pages that were
    judged."""

    outcomes: Outcomes  # none ended


@dataclass(frozen=True, slots=True)
class WaitAgain:
    """Visits that wait again: `urls` (schema `URLS`) were not made, or what they brought is lost; `keys` are out with
    no agent."""

    urls: pa.RecordBatch
    keys: list[int]


@dataclass(frozen=True, slots=True)
class VisitsCame:
    """Visits to be made here (schema `URLS`), and what is `known` of their pages, if anything (schema `EARLIER`)."""

    urls: pa.RecordBatch
    known: pa.RecordBatch | None


@dataclass(frozen=True, slots=True)
class Errand:
    """A robots.txt to be fetched for another agent."""

    visit: Visit


@dataclass(frozen=True, slots=True)
class ErrandAnswer:
    """The answer to an errand of this agent."""

    exchange: Exchange


Event = Met | LinksCame | Ended | Done | Elsewhere | Heard | WaitAgain | VisitsCame | Errand | ErrandAnswer
